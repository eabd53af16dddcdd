/* GOT patching on small libraries: bound lazily or at once, read-only or not, by call or by pointer; symbols and
 * libraries that are not there; patching again; while other threads load libraries.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "elf/elf_got.h"

typedef int answer_function(int);
typedef int count_function(void);

extern int got_answer(int x);

static answer_function *original;

static int replaced(int x)
{
    return original(x) + 1000;
}

static int replaced_again(int x)
{
    return original(x) + 2000;
}

static void *load(const char *name, int mode)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", FAKE_DIR, name);
    void *handle = dlopen(path, mode);
    if (!handle)
        fprintf(stderr, "%s\n", dlerror());
    CHECK(handle != NULL);
    return handle;
}

static int call(void *handle, int x)
{
    answer_function *function = (answer_function *)dlsym(handle, "call_answer");
    return function ? function(x) : -1;
}

static int count_up(void *handle)
{
    count_function *function = (count_function *)dlsym(handle, "count_up");
    return function ? function() : -1;
}

static int patch(const char *library, void *replacement)
{
    return pml_elf_got_patch(library, "got_answer", replacement, (void **)&original);
}

/* Calls go to the replacement, from there to the function, and the library's own data can still be written. */
static void check_patched(void *handle, const char *name)
{
    original = NULL;
    CHECK_INT(patch(name, replaced), 1);
    CHECK_POINTER(original, got_answer);
    CHECK_INT(call(handle, 5), 1006);
    CHECK_INT(call(handle, 6), 1007);
}

static void check_data_writable(void *handle)
{
    int count = count_up(handle);
    CHECK_INT(count_up(handle), count + 1);
}

static void a_slot_not_bound_yet_is_patched(void)
{
    void *handle = load("libgotlazy.so.1", RTLD_LAZY);
    check_patched(handle, "libgotlazy.so");
    check_data_writable(handle);
    dlclose(handle);
}

static void a_slot_bound_by_a_call_is_patched(void)
{
    void *handle = load("libgotlazy.so.1", RTLD_LAZY);
    CHECK_INT(call(handle, 5), 6);
    check_patched(handle, "libgotlazy.so");
    dlclose(handle);
}

static void a_read_only_slot_is_patched(void)
{
    void *handle = load("libgotnow.so.1", RTLD_NOW);
    check_patched(handle, "libgotnow.so");
    check_data_writable(handle);
    dlclose(handle);
}

static void a_call_without_plt_is_patched(void)
{
    void *handle = load("libgotnoplt.so.1", RTLD_NOW);
    check_patched(handle, "libgotnoplt.so");
    check_data_writable(handle);
    dlclose(handle);
}

static void a_pointer_taken_after_patching_is_the_replacement(void)
{
    void *handle = load("libgotpointer.so.1", RTLD_NOW);
    answer_function *(*pointer)(void) = (answer_function * (*)(void)) dlsym(handle, "answer_pointer");
    CHECK_POINTER(pointer(), got_answer);
    check_patched(handle, "libgotpointer.so");
    CHECK_POINTER(pointer(), replaced);
    dlclose(handle);
}

static void a_library_without_read_only_part_is_patched(void)
{
    void *handle = load("libgotopen.so.1", RTLD_NOW);
    check_patched(handle, "libgotopen.so");
    check_data_writable(handle);
    dlclose(handle);
}

/* How many bytes of a library can be written. */
static unsigned long writable_bytes(const char *library)
{
    char line[512], rights[5];
    unsigned long from, to, bytes = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        if (sscanf(line, "%lx-%lx %4s", &from, &to, rights) == 3 && rights[1] == 'w' && strstr(line, library))
            bytes += to - from;
    if (maps)
        fclose(maps);
    return bytes;
}

static void what_was_read_only_is_so_again(void)
{
    void *handle = load("libgotnow.so.1", RTLD_NOW);
    unsigned long bytes = writable_bytes("libgotnow.so");
    CHECK(bytes > 0);
    check_patched(handle, "libgotnow.so");
    CHECK_INT(writable_bytes("libgotnow.so"), bytes);
    dlclose(handle);
}

/* A copy of a library whose read-only part ends within a page, as it does for a kernel with larger pages. */
static bool copy_with_shorter_read_only_part(const char *from, const char *to)
{
    static char image[1 << 20];
    FILE *file = fopen(from, "rb");
    size_t size = file ? fread(image, 1, sizeof image, file) : 0;
    if (file)
        fclose(file);
    const ElfW(Ehdr) *header = (const void *)image;
    ElfW(Phdr) *part = (void *)(image + header->e_phoff);
    bool found = false;
    for (int i = 0; i < header->e_phnum && size; i++)
        if (part[i].p_type == PT_GNU_RELRO) {
            part[i].p_memsz -= sizeof(void *);
            found = true;
        }
    file = found ? fopen(to, "wb") : NULL;
    bool written = file && fwrite(image, 1, size, file) == size;
    return file && fclose(file) == 0 && written;
}

static void a_page_that_the_linker_left_writable_stays_so(void)
{
    /* GIVEN */
    CHECK(copy_with_shorter_read_only_part(FAKE_DIR "/libgotnow.so.1", FAKE_DIR "/libgotpartial.so.1"));
    void *handle = load("libgotpartial.so.1", RTLD_NOW);
    unsigned long bytes = writable_bytes("libgotpartial.so");
    /* WHEN */
    check_patched(handle, "libgotpartial.so");
    /* THEN */
    CHECK_INT(writable_bytes("libgotpartial.so"), bytes);
    check_data_writable(handle);
    dlclose(handle);
}

static void patching_again_keeps_the_original(void)
{
    /* GIVEN */
    void *handle = load("libgotnow.so.1", RTLD_NOW);
    check_patched(handle, "libgotnow.so");
    answer_function *first = original;
    /* WHEN */
    CHECK_INT(patch("libgotnow.so", replaced), 1);
    /* THEN */
    CHECK_POINTER(original, first);
    CHECK_INT(call(handle, 5), 1006);
    dlclose(handle);
}

static void a_second_replacement_gets_the_first_as_its_original(void)
{
    void *handle = load("libgotnow.so.1", RTLD_NOW);
    check_patched(handle, "libgotnow.so");
    answer_function *first = original;
    CHECK_INT(patch("libgotnow.so", replaced_again), 1);
    CHECK_POINTER(original, replaced);
    original = first;
    CHECK_INT(call(handle, 5), 2006);
    dlclose(handle);
}

static void a_symbol_that_is_not_there_changes_nothing(void)
{
    void *handle = load("libgotnow.so.1", RTLD_NOW), *before = &before;
    void *result = before;
    CHECK_INT(pml_elf_got_patch("libgotnow.so", "got_answe", replaced, &result), 0);
    CHECK_INT(pml_elf_got_patch("libgotnow.so", "got_answer_", replaced, &result), 0);
    CHECK_POINTER(result, before);
    CHECK_INT(call(handle, 5), 6);
    dlclose(handle);
}

static void a_library_that_is_not_there_changes_nothing(void)
{
    original = NULL;
    CHECK_INT(patch("libgotnothing.so", replaced), 0);
    CHECK_POINTER(original, NULL);
}

static void only_the_file_name_counts_and_only_its_beginning(void)
{
    void *handle = load("libgotnow.so.1", RTLD_NOW);
    CHECK_INT(patch("gotnow.so.1", replaced), 0);
    CHECK_INT(patch("fake/libgotnow", replaced), 0);
    CHECK_INT(patch("libgotnow.so.11", replaced), 0);
    CHECK_INT(call(handle, 5), 6);
    check_patched(handle, "libgotnow.so.1");
    dlclose(handle);
}

static void every_library_of_that_name_is_patched(void)
{
    void *a = load("libgottwin.so.a", RTLD_NOW), *b = load("libgottwin.so.b", RTLD_NOW);
    CHECK_INT(patch("libgottwin.so", replaced), 2);
    CHECK_INT(call(a, 5), 1006);
    CHECK_INT(call(b, 5), 1006);
    dlclose(a);
    dlclose(b);
}

static void other_libraries_are_left_alone(void)
{
    void *patched = load("libgotnow.so.1", RTLD_NOW), *other = load("libgotopen.so.1", RTLD_NOW);
    check_patched(patched, "libgotnow.so");
    CHECK_INT(call(other, 5), 6);
    CHECK_INT(got_answer(5), 6);
    dlclose(patched);
    dlclose(other);
}

/* Not bound, and the function cannot be found by name from here: the slot is left as it is. */
static void a_function_that_cannot_be_found_is_left_alone(void)
{
    void *handle = load("libgotlocal.so.1", RTLD_LAZY | RTLD_LOCAL);
    void *result = NULL;
    int patched = pml_elf_got_patch("libgotlocal.so", "got_hidden_answer", replaced, &result);
    if (patched) /* the linker bound at once (LD_BIND_NOW) */
        original = (answer_function *)result;
    CHECK_INT(call(handle, 5), patched ? 1006 : 6);
    dlclose(handle);
}

static void once_bound_it_is_patched(void)
{
    void *handle = load("libgotlocal.so.1", RTLD_LAZY | RTLD_LOCAL);
    CHECK_INT(call(handle, 5), 6);
    original = NULL;
    CHECK_INT(pml_elf_got_patch("libgotlocal.so", "got_hidden_answer", replaced, (void **)&original), 1);
    CHECK(original != NULL && original != got_answer);
    CHECK_INT(call(handle, 5), 1006);
    dlclose(handle);
}

/* ---- other threads load libraries meanwhile ---- */

static _Atomic bool stop_loading;
static _Atomic int loads;

static void *load_and_unload(void *unused)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", FAKE_DIR, "libgotopen.so.1");
    while (!atomic_load(&stop_loading)) {
        void *handle = dlopen(path, RTLD_NOW);
        if (handle)
            dlclose(handle);
        atomic_fetch_add(&loads, 1);
    }
    return NULL;
}

/* A deadlock between the linker's locks would be ended by the alarm. */
static void patching_while_others_load_libraries_ends(void)
{
    /* GIVEN a slot that stays unbound, as its function is not found */
    pthread_t thread;
    void *local = load("libgotlocal.so.1", RTLD_LAZY | RTLD_LOCAL), *result = NULL;
    atomic_store(&stop_loading, false);
    alarm(60);
    pthread_create(&thread, NULL, load_and_unload, NULL);
    /* WHEN */
    while (atomic_load(&loads) < 3000)
        pml_elf_got_patch("libgotlocal.so", "got_hidden_answer", replaced, &result);
    for (int i = 0; i < 100; i++) {
        void *handle = load("libgotlazy.so.1", RTLD_LAZY);
        check_patched(handle, "libgotlazy.so");
        dlclose(handle);
    }
    /* THEN it has ended */
    atomic_store(&stop_loading, true);
    pthread_join(thread, NULL);
    alarm(0);
    dlclose(local);
}

int main(void)
{
    RUN(a_slot_not_bound_yet_is_patched);
    RUN(a_slot_bound_by_a_call_is_patched);
    RUN(a_read_only_slot_is_patched);
    RUN(a_call_without_plt_is_patched);
    RUN(a_pointer_taken_after_patching_is_the_replacement);
    RUN(a_library_without_read_only_part_is_patched);
    RUN(what_was_read_only_is_so_again);
    RUN(a_page_that_the_linker_left_writable_stays_so);
    RUN(patching_again_keeps_the_original);
    RUN(a_second_replacement_gets_the_first_as_its_original);
    RUN(a_symbol_that_is_not_there_changes_nothing);
    RUN(a_library_that_is_not_there_changes_nothing);
    RUN(only_the_file_name_counts_and_only_its_beginning);
    RUN(every_library_of_that_name_is_patched);
    RUN(other_libraries_are_left_alone);
    RUN(a_function_that_cannot_be_found_is_left_alone);
    RUN(once_bound_it_is_patched);
    RUN(patching_while_others_load_libraries_ends);
    return check_report();
}
