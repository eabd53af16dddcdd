/* Reading pickles of memory snapshots: what is read, and that anything else is refused with what is wrong. */
#include "snapshot_files.h"

#define MB (UINT64_C(1) << 20)

static struct file file;

static void make_small(void)
{
    begin_file(&file);
    begin_list(&file, "segments");
    begin_segment(&file, 20 * MB, 20 * MB);
    put_block(&file, "active_allocated", 20 * MB, 4 * MB, 4 * MB);
    put_block(&file, "inactive", 24 * MB, 16 * MB, 0);
    end_segment(&file);
    put(&file, 'e');
    begin_traces(&file);
    put_event(&file, "segment_alloc", 20 * MB, 20 * MB);
    put_event(&file, "alloc", 20 * MB, 4 * MB);
    put_event(&file, "alloc", 24 * MB, 3 * MB);
    put_event(&file, "free_requested", 24 * MB, 3 * MB);
    put_event(&file, "free_completed", 24 * MB, 3 * MB);
    end_traces(&file);
    end_file(&file);
}

static void check_small(void)
{
    struct world world;
    struct pml_memory_peak peaks[4];
    open_world(&world, &file);
    CHECK_INT(world.trouble, PML_FINE);
    CHECK(world.replayed);
    CHECK_INT(world.replay.count, 5);
    CHECK_INT(world.replay.allocations.used, 2);
    pml_levels_peaks(&world.replay, peaks);
    CHECK_INT(peaks[1].at.active, 7 * MB);
    CHECK_INT(peaks[1].moment, 3);
    CHECK_INT(peaks[3].at.active, 4 * MB);
    CHECK_INT(peaks[2].at.reserved, 20 * MB);
    CHECK_INT(world.replay.unequal, 0);
    close_world(&world);
}

static void reads_a_snapshot(void)
{
    make_small();
    check_small();
}

static void reads_it_in_pieces_of_any_size(void)
{
    make_small();
    for (size_t chunk = 1; chunk < 40; chunk++) {
        file.chunk = chunk;
        check_small();
    }
    file.chunk = 0;
}

/* Every beginning of a file is cut off, and says so. */
static void notices_every_end_that_comes_too_early(void)
{
    struct world world;
    make_small();
    size_t whole = file.used;
    for (file.used = 0; file.used < whole; file.used++) {
        open_world(&world, &file);
        CHECK_INT(world.trouble, file.used ? PML_TROUBLE_CUT_OFF : PML_TROUBLE_EMPTY);
        close_world(&world);
    }
}

static enum pml_trouble trouble_of(const char *bytes, size_t count, char *detail)
{
    struct world world;
    file.used = 0;
    put_bytes(&file, bytes, count);
    open_world(&world, &file);
    enum pml_trouble trouble = world.trouble;
    if (detail)
        memcpy(detail, world.pickle.detail, sizeof world.pickle.detail);
    CHECK(!world.is_snapshot);
    close_world(&world);
    return trouble;
}

#define TROUBLE(bytes, detail) trouble_of(bytes, sizeof bytes - 1, detail)

static void refuses_what_is_not_plain_data(void)
{
    char detail[128];
    CHECK_INT(TROUBLE("\x80\x02"
                      "cos\nsystem\n.",
                      detail),
              PML_TROUBLE_GLOBAL);
    CHECK(!strcmp(detail, "os.system"));
    CHECK_INT(TROUBLE("\x80\x04\x8c\x02os\x8c\x06system\x93.", detail), PML_TROUBLE_GLOBAL);
    CHECK(!strcmp(detail, "os.system"));
    CHECK_INT(TROUBLE("\x80\x02NR.", detail), PML_TROUBLE_NOT_PLAIN);
    CHECK(!strcmp(detail, "0x52"));
    CHECK_INT(TROUBLE("\x80\x02NQ.", NULL), PML_TROUBLE_NOT_PLAIN);
    CHECK_INT(TROUBLE("\x80\x04NNb.", NULL), PML_TROUBLE_NOT_PLAIN);
    CHECK_INT(TROUBLE("\x80\x05\x96", NULL), PML_TROUBLE_NOT_PLAIN);
}

static void refuses_what_is_no_pickle(void)
{
    CHECK_INT(TROUBLE("{\"json\": 1}", NULL), PML_TROUBLE_NO_PICKLE);
    CHECK_INT(TROUBLE("\x80\x01].", NULL), PML_TROUBLE_NO_PICKLE);
    CHECK_INT(TROUBLE("\x80\x06].", NULL), PML_TROUBLE_NO_PICKLE);
    CHECK_INT(TROUBLE("\x80", NULL), PML_TROUBLE_CUT_OFF);
}

static void refuses_opcodes_that_do_not_fit(void)
{
    static const char *const wrong[] = {"\x80\x02u.",
                                        "\x80\x02"
                                        "e.",
                                        "\x80\x02"
                                        "(e.",
                                        "\x80\x02"
                                        "a.",
                                        "\x80\x02N(Na.",
                                        "\x80\x02}(Nu.",
                                        "\x80\x02h\x05.",
                                        "\x80\x02.",
                                        "\x80\x02NN.",
                                        "\x80\x02N(.",
                                        "\x80\x02\x86.",
                                        "\x80\x02t.",
                                        "\x80\x02]q\x00}q\x01h\x00NNs."};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        size_t length = i == 6 ? 5 : i == 12 ? 13 : strlen(wrong[i]);
        CHECK_INT(trouble_of(wrong[i], length, NULL), PML_TROUBLE_DAMAGED);
    }
}

/* Lengths that lie allocate nothing: they are cut off, or refused. */
static void does_not_believe_lengths(void)
{
    CHECK_INT(TROUBLE("\x80\x02X\xff\xff\xff\x03.", NULL), PML_TROUBLE_CUT_OFF);
    CHECK_INT(TROUBLE("\x80\x02X\xff\xff\xff\xff.", NULL), PML_TROUBLE_TOO_MUCH);
    CHECK_INT(TROUBLE("\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\x7f.", NULL), PML_TROUBLE_TOO_MUCH);
    CHECK_INT(TROUBLE("\x80\x02\x8b\xff\xff\xff\x7f.", NULL), PML_TROUBLE_NOT_PLAIN);
    CHECK_INT(TROUBLE("\x80\x02Nr\xff\xff\xff\xff.", NULL), PML_TROUBLE_DAMAGED);
}

/* ---- endless files ---- */

struct flood {
    size_t given;
    size_t most;
    const char *pattern;
    size_t length;
};

static int64_t read_flood(void *arg, void *into, size_t most)
{
    struct flood *flood = arg;
    char *bytes = into;
    size_t count = most < flood->most - flood->given ? most : flood->most - flood->given;
    for (size_t i = 0; i < count; i++, flood->given++)
        bytes[i] = flood->given < 2 ? "\x80\x04"[flood->given] : flood->pattern[(flood->given - 2) % flood->length];
    return (int64_t)count;
}

/* What could fill the memory is given up early. */
static void gives_up_on_floods(void)
{
    static const char *const patterns[] = {"]",
                                           "]\x94",
                                           "}",
                                           "(",
                                           "]a",
                                           "K\x01\x85",
                                           "K\x01K\x02\x86",
                                           "N\x94",
                                           "G12345678",
                                           "](K\x01K\x01K\x01K\x01K\x01K\x01K\x01K\x01K\x01"
                                           "e"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        struct flood flood = {.most = (size_t)1 << 31, .pattern = patterns[i], .length = strlen(patterns[i])};
        struct pml_pickle pickle;
        CHECK(pml_pickle_init(&pickle, read_flood, &flood));
        enum pml_trouble trouble = pml_pickle_read(&pickle);
        CHECK(trouble == PML_TROUBLE_TOO_MUCH || trouble == PML_TROUBLE_DAMAGED);
        CHECK(flood.given < (size_t)256 << 20);
        pml_pickle_drop(&pickle);
    }
}

static int64_t fails(void *arg, void *into, size_t most)
{
    return -1;
}

static void tells_that_reading_failed(void)
{
    struct pml_pickle pickle;
    CHECK(pml_pickle_init(&pickle, fails, NULL));
    CHECK_INT(pml_pickle_read(&pickle), PML_TROUBLE_READ);
    pml_pickle_drop(&pickle);
}

static void reads_numbers_of_all_kinds(void)
{
    static const char bytes[] =
        "\x80\x02](K\xffM\xff\xffJ\xff\xff\xff\xff\x8a\x00\x8a\x01\xff\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80"
        "\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00\x88\x89"
        "e.";
    static const int64_t wanted[] = {255, 65535, -1, 0, -1, INT64_MIN, -1, 1, 0};
    struct world world;
    file.used = 0;
    put_bytes(&file, bytes, sizeof bytes - 1);
    open_world(&world, &file);
    const pml_items *items = pml_values_items(&world.pickle.values, world.pickle.root, PML_IS_LIST);
    CHECK(items && items->used == 9);
    for (size_t i = 0; items && i < 9; i++) {
        int64_t number = 77;
        CHECK(pml_values_as_integer(&world.pickle.values, items->items[i], &number));
        CHECK_INT(number, wanted[i]);
    }
    close_world(&world);
}

/* A dict that is an event is not one more: its keys were read already. */
static void keeps_single_events_in_other_lists(void)
{
    struct world world;
    begin_file(&file);
    begin_list(&file, "device_traces");
    put_bytes(&file, "]\x94(", 3);
    put_event(&file, "alloc", 4096, 512);
    put(&file, 'N');
    put_bytes(&file, "ee", 2);
    end_file(&file);
    open_world(&world, &file);
    CHECK_INT(world.trouble, PML_FINE);
    CHECK(!world.is_snapshot);
    close_world(&world);
}

static void notes_keys_that_it_does_not_know(void)
{
    struct world world;
    size_t length;
    begin_file(&file);
    begin_traces(&file);
    begin_dict(&file);
    put_text(&file, "action");
    put_text(&file, "alloc");
    put_item(&file, "colour", 3);
    put(&file, 'u');
    end_traces(&file);
    end_file(&file);
    open_world(&world, &file);
    CHECK(world.replayed);
    CHECK_INT(world.pickle.rows.unknown.used, 1);
    CHECK(!memcmp(pml_names_text(&world.pickle.rows.names, world.pickle.rows.unknown.items[0], &length), "colour", 6));
    CHECK_INT(length, 6);
    close_world(&world);
}

int main(void)
{
    RUN(reads_a_snapshot);
    RUN(reads_it_in_pieces_of_any_size);
    RUN(notices_every_end_that_comes_too_early);
    RUN(refuses_what_is_not_plain_data);
    RUN(refuses_what_is_no_pickle);
    RUN(refuses_opcodes_that_do_not_fit);
    RUN(does_not_believe_lengths);
    RUN(gives_up_on_floods);
    RUN(tells_that_reading_failed);
    RUN(reads_numbers_of_all_kinds);
    RUN(keeps_single_events_in_other_lists);
    RUN(notes_keys_that_it_does_not_know);
    return check_report();
}
