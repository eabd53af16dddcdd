/* Memory snapshots made up for the C tests: a byte buffer that is written as Python's pickler writes, and a reader of
 * it. */
#ifndef PML_SNAPSHOT_FILES_H
#define PML_SNAPSHOT_FILES_H

#include <string.h>

#include "check.h"
#include "snapshot/expandable.h"
#include "snapshot/figures.h"
#include "snapshot/levels.h"
#include "snapshot/pickle.h"
#include "snapshot/replay.h"
#include "snapshot/sizes.h"
#include "snapshot/spans.h"

struct file {
    unsigned char bytes[1 << 18];
    size_t used;
    size_t read;
    size_t chunk; /* bytes given at a time; 0: all */
};

static inline void put_bytes(struct file *file, const void *bytes, size_t count)
{
    if (file->used + count > sizeof file->bytes)
        count = sizeof file->bytes - file->used;
    memcpy(file->bytes + file->used, bytes, count);
    file->used += count;
}

static inline void put(struct file *file, int byte)
{
    put_bytes(file, &(unsigned char){(unsigned char)byte}, 1);
}

static inline void put_text(struct file *file, const char *text)
{
    put(file, 0x8c);
    put(file, (int)strlen(text));
    put_bytes(file, text, strlen(text));
    put(file, 0x94);
}

static inline void put_number(struct file *file, uint64_t number)
{
    put(file, 0x8a);
    put(file, 9);
    put_bytes(file, &number, 8);
    put(file, 0);
}

static inline void put_item(struct file *file, const char *key, uint64_t number)
{
    put_text(file, key);
    put_number(file, number);
}

static inline void begin_dict(struct file *file)
{
    put_bytes(file, "}\x94(", 3);
}

static inline void begin_list(struct file *file, const char *key)
{
    put_text(file, key);
    put_bytes(file, "]\x94(", 3);
}

static inline void begin_file(struct file *file)
{
    file->used = file->read = 0;
    put_bytes(file, "\x80\x04", 2);
    begin_dict(file);
}

static inline void put_event(struct file *file, const char *action, uint64_t address, uint64_t size)
{
    begin_dict(file);
    put_text(file, "action");
    put_text(file, action);
    put_item(file, "addr", address);
    put_item(file, "size", size);
    put_item(file, "stream", 0);
    put(file, 'u');
}

static inline void put_block(struct file *file, const char *state, uint64_t address, uint64_t size, uint64_t requested)
{
    begin_dict(file);
    put_text(file, "state");
    put_text(file, state);
    put_item(file, "address", address);
    put_item(file, "size", size);
    put_item(file, "requested_size", requested);
    put(file, 'u');
}

static inline void begin_segment(struct file *file, uint64_t address, uint64_t size)
{
    begin_dict(file);
    put_item(file, "device", 0);
    put_item(file, "address", address);
    put_item(file, "total_size", size);
    begin_list(file, "blocks");
}

static inline void end_segment(struct file *file)
{
    put_bytes(file, "eu", 2);
}

static inline void begin_traces(struct file *file)
{
    begin_list(file, "device_traces");
    put_bytes(file, "]\x94(", 3);
}

static inline void end_traces(struct file *file)
{
    put_bytes(file, "ee", 2);
}

static inline void end_file(struct file *file)
{
    put_bytes(file, "u.", 2);
}

static inline int64_t read_file(void *arg, void *into, size_t most)
{
    struct file *file = arg;
    size_t left = file->used - file->read;
    size_t count = file->chunk && file->chunk < most ? file->chunk : most;
    count = count < left ? count : left;
    memcpy(into, file->bytes + file->read, count);
    file->read += count;
    return (int64_t)count;
}

/* A snapshot read and its first trace replayed. */
struct world {
    struct pml_pickle pickle;
    struct pml_contents contents;
    struct pml_replay replay;
    enum pml_trouble trouble;
    bool is_snapshot;
    bool replayed;
};

static inline void open_world(struct world *world, struct file *file)
{
    bool failed = false;
    memset(world, 0, sizeof *world);
    file->read = 0;
    CHECK(pml_pickle_init(&world->pickle, read_file, file));
    world->trouble = pml_pickle_read(&world->pickle);
    world->is_snapshot = !world->trouble && pml_contents_find(&world->contents, &world->pickle, &failed) && !failed;
    if (world->is_snapshot && world->contents.traces.used)
        world->replayed =
            pml_replay_init(&world->replay, &world->contents, &world->pickle.rows, &world->contents.traces.items[0]);
}

static inline void close_world(struct world *world)
{
    pml_replay_drop(&world->replay);
    pml_contents_drop(&world->contents);
    pml_pickle_drop(&world->pickle);
}

#endif
