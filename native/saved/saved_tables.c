/* What autograd keeps (see saved_tables.h): blocks by address in a chained hash table, each with the lines it counts
 * for. */
#include "saved/saved_tables.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/lock_order.h"
#include "base/moment.h"
#include "base/pointer_hash.h"
#include "holders/ledger.h"
#include "holders/thread_line.h"

struct owner {
    struct owner *next;
    struct pml_saved_table *table; /* one reference */
    uint64_t generation;
    int index;
    enum pml_saved_kind kind;
};

struct known {
    struct known *next;
    const void *pointer;
    int64_t size;
    uint64_t born;   /* `pml_moment` at its allocation; 0 if that was not seen */
    uint64_t hooked; /* the outermost call in which it was given to hooks */
    int device;
    bool asked;
    bool parameter;
    struct owner *owners;
};

_Atomic bool pml_saved_tables_following;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct known **bucket;
static size_t buckets; /* a power of two, or 0 */
static size_t count;
static bool lost; /* a block, for want of memory */
static bool (*is_parameter)(const void *handle);

void pml_saved_tables_lock(void)
{
    pml_lock_order_taken(PML_RANK_SAVED, 0);
    pthread_mutex_lock(&mutex);
}

void pml_saved_tables_unlock(void)
{
    pthread_mutex_unlock(&mutex);
    pml_lock_order_given(PML_RANK_SAVED, 0);
}

/* ---- blocks; the mutex is held ---- */

static struct known **bucket_of(const void *pointer)
{
    return &bucket[pml_pointer_hash(pointer) & (buckets - 1)];
}

static void widen(void)
{
    size_t old = buckets;
    struct known **from = bucket;
    struct known **to = calloc(old ? old * 2 : 1024, sizeof *to);
    if (!to)
        return; /* chains become longer */
    bucket = to;
    buckets = old ? old * 2 : 1024;
    for (size_t i = 0; i < old; i++)
        while (from[i]) {
            struct known *block = from[i];
            from[i] = block->next;
            block->next = *bucket_of(block->pointer);
            *bucket_of(block->pointer) = block;
        }
    free(from);
}

static struct known *find(const void *pointer)
{
    struct known *block = buckets ? *bucket_of(pointer) : NULL;
    while (block && block->pointer != pointer)
        block = block->next;
    return block;
}

static struct known *insert(const void *pointer, int64_t size, int device, uint64_t born)
{
    if (count >= buckets)
        widen();
    struct known *block = buckets ? calloc(1, sizeof *block) : NULL;
    if (!block) {
        lost = true;
        return NULL;
    }
    block->pointer = pointer;
    block->size = size;
    block->device = device;
    block->born = born;
    block->next = *bucket_of(pointer);
    *bucket_of(pointer) = block;
    count++;
    return block;
}

static void drop_reference(struct pml_saved_table *table)
{
    if (--table->references)
        return;
    for (int d = 0; d < PML_MAX_DEVICES; d++)
        free(table->figures[d]);
    free(table);
}

static void disown(struct known *block)
{
    while (block->owners) {
        struct owner *owner = block->owners;
        if (owner->generation == owner->table->generation)
            owner->table->figures[block->device][owner->index].now[owner->kind] -= block->size;
        block->owners = owner->next;
        drop_reference(owner->table);
        free(owner);
    }
}

static void forget(const void *pointer)
{
    struct known **link = buckets ? bucket_of(pointer) : NULL;
    while (link && *link && (*link)->pointer != pointer)
        link = &(*link)->next;
    struct known *block = link ? *link : NULL;
    if (!block)
        return;
    *link = block->next;
    count--;
    disown(block);
    free(block);
}

static void forget_all(void)
{
    for (size_t i = 0; i < buckets; i++)
        while (bucket[i])
            forget(bucket[i]->pointer);
    free(bucket);
    bucket = NULL;
    buckets = 0;
    lost = false;
}

/* ---- events ---- */

void pml_saved_tables_ask_with(bool (*question)(const void *handle))
{
    pml_saved_tables_lock();
    is_parameter = question;
    pml_saved_tables_unlock();
}

void pml_saved_tables_follow(bool follow)
{
    pml_saved_tables_lock();
    if (!follow)
        forget_all();
    atomic_store(&pml_saved_tables_following, follow);
    pml_saved_tables_unlock();
}

void pml_saved_tables_allocated(int device, const void *pointer, int64_t size)
{
    pml_saved_tables_lock();
    forget(pointer); /* its end was not seen */
    if (pml_saved_tables_following)
        insert(pointer, size, device, pml_moment_now());
    pml_saved_tables_unlock();
}

void pml_saved_tables_freed(const void *pointer)
{
    pml_saved_tables_lock();
    forget(pointer);
    pml_saved_tables_unlock();
}

/* ---- counting; the mutex is held, and no owner goes away ---- */

static void lock_lines(void)
{
    pml_saved_tables_lock();
    pml_ledger_lock(PML_CPU);
}

static void unlock_lines(void)
{
    pml_ledger_unlock(PML_CPU);
    pml_saved_tables_unlock();
}

static bool wants(const struct pml_subscriber *sub)
{
    return sub->saved && sub->recorder->recording;
}

static bool anyone_wants(const struct pml_code *code)
{
    for (int s = 0; code && s < code->subscribers; s++)
        if (wants(code->subscriber[s]))
            return true;
    return false;
}

/* The line that something is counted for. */
struct charge {
    const struct pml_code *code; /* NULL: none */
    int line;
    uint64_t call;    /* when its outermost call began */
    uint64_t segment; /* when this run of it began */
};

/* The innermost line of this thread that anyone wants this of. */
static struct charge line_of_thread(void)
{
    const struct pml_frame_stack *stack = pml_frame_stack_of_thread();
    for (int i = stack ? stack->depth - 1 : -1; i >= 0; i--) {
        const struct pml_frame *frame = stack->frame[i];
        if (anyone_wants(frame->code))
            return (struct charge){frame->code, frame->line, frame->window.outer_call, frame->segment};
    }
    return (struct charge){.code = NULL};
}

/* On autograd's own threads, which are not traced: the line that waits for them. */
static struct charge line_that_waits(void)
{
    const struct pml_owner *owner = pml_thread_line_owner();
    if (owner && owner->kind != PML_OWNER_BACKWARD)
        owner = NULL;
    for (; owner; owner = owner->around)
        if (anyone_wants(owner->code))
            return (struct charge){owner->code, owner->line, 1, pml_moment_now()};
    return (struct charge){.code = NULL};
}

static struct charge line_to_charge(const struct pml_saved_tensor *tensor)
{
    struct charge charge = line_of_thread();
    return charge.code || !tensor->backward ? charge : line_that_waits();
}

static struct pml_saved_figures *figures_at(struct pml_saved_table *table, int device, int line)
{
    if ((unsigned)line - (unsigned)table->first_line >= (unsigned)table->lines)
        return NULL;
    if (!table->figures[device])
        table->figures[device] = calloc((size_t)table->lines, sizeof **table->figures);
    if (!table->figures[device])
        table->failed = true;
    return table->figures[device] ? &table->figures[device][line - table->first_line] : NULL;
}

static bool counted(const struct known *block, int group)
{
    for (const struct owner *owner = block->owners; owner; owner = owner->next)
        if (owner->table->group == group && owner->generation == owner->table->generation)
            return true;
    return false;
}

static bool own(struct known *block, struct pml_saved_table *table, int line, enum pml_saved_kind kind)
{
    struct owner *owner = malloc(sizeof *owner);
    if (!owner) {
        table->failed = true;
        return false;
    }
    *owner = (struct owner){block->owners, table, table->generation, line - table->first_line, kind};
    block->owners = owner;
    table->references++;
    return true;
}

static void add_to_run(struct pml_saved_figures *f, uint64_t run, int64_t size)
{
    f->total += size;
    f->run_now = (f->run == run ? f->run_now : 0) + size;
    f->run = run;
    if (f->run_max < f->run_now)
        f->run_max = f->run_now;
}

static void count_kept(struct known *block, const struct charge *charge, struct pml_saved_table *table,
                       enum pml_saved_kind kind)
{
    struct pml_saved_figures *f = figures_at(table, block->device, charge->line);
    if (!f || counted(block, table->group) || !own(block, table, charge->line, kind))
        return;
    f->now[kind] += block->size;
    if (f->peak[kind] < f->now[kind])
        f->peak[kind] = f->now[kind];
    if (kind == PML_SAVED_ACTIVATION)
        add_to_run(f, charge->segment, block->size);
}

static void count_hooked(const struct known *block, const struct charge *charge, struct pml_saved_table *table)
{
    struct pml_saved_figures *f = figures_at(table, block->device, charge->line);
    if (!f)
        return;
    f->hooks_now = (f->call == charge->call ? f->hooks_now : 0) + block->size;
    f->call = charge->call;
    if (f->hooks_max < f->hooks_now)
        f->hooks_max = f->hooks_now;
}

static enum pml_saved_kind kind_of(const struct known *block, const struct charge *charge, bool backward)
{
    if (block->parameter)
        return PML_SAVED_PARAMETER;
    if (block->born < charge->call)
        return PML_SAVED_INPUT;
    return backward ? PML_SAVED_BACKWARD : PML_SAVED_ACTIVATION;
}

static void count_block(struct known *block, const struct charge *charge, const struct pml_saved_tensor *tensor)
{
    enum pml_saved_kind kind = kind_of(block, charge, tensor->backward);
    bool hooked = tensor->hooked && kind == PML_SAVED_ACTIVATION;
    if (hooked && block->hooked == charge->call)
        return;
    if (hooked)
        block->hooked = charge->call;
    for (int s = 0; s < charge->code->subscribers; s++) {
        const struct pml_subscriber *sub = charge->code->subscriber[s];
        if (!wants(sub))
            continue;
        if (hooked)
            count_hooked(block, charge, sub->saved);
        else
            count_kept(block, charge, sub->saved, kind);
    }
}

/* What was made in the line itself is no parameter; of the rest each block is asked about once, when it is first saved.
 */
static bool must_ask(const struct known *block, const struct charge *charge)
{
    return !block->asked && !block->owners && block->born < charge->segment;
}

static struct known *known_or_new(const struct pml_saved_tensor *tensor)
{
    struct known *block = find(tensor->storage);
    return block ? block : insert(tensor->storage, tensor->bytes, tensor->device, 0);
}

/* Without locks, as Python is asked: the tensor lives meanwhile, but blocks and lines may change. */
static void ask(const struct pml_saved_tensor *tensor)
{
    bool (*question)(const void *handle) = is_parameter;
    unlock_lines();
    bool parameter = question && question(tensor->handle);
    lock_lines();
    struct known *block = known_or_new(tensor);
    if (block) {
        block->asked = true;
        block->parameter = parameter;
    }
}

void pml_saved_tables_note(const struct pml_saved_tensor *tensor)
{
    lock_lines();
    struct charge charge = line_to_charge(tensor);
    struct known *block = charge.code ? known_or_new(tensor) : NULL;
    if (block && must_ask(block, &charge)) {
        ask(tensor);
        charge = line_to_charge(tensor);
        block = charge.code ? known_or_new(tensor) : NULL;
    }
    if (block)
        count_block(block, &charge, tensor);
    unlock_lines();
}

/* ---- tables ---- */

struct pml_saved_table *pml_saved_tables_new(int first_line, int last_line, int group)
{
    struct pml_saved_table *table = calloc(1, sizeof *table);
    if (table) {
        table->first_line = first_line;
        table->lines = last_line - first_line + 1;
        table->group = group;
        table->references = 1;
    }
    return table;
}

void pml_saved_tables_release(struct pml_saved_table *table)
{
    if (!table)
        return;
    pml_saved_tables_lock();
    drop_reference(table);
    pml_saved_tables_unlock();
}

void pml_saved_tables_clear(struct pml_saved_table *table)
{
    pml_saved_tables_lock();
    for (int d = 0; d < PML_MAX_DEVICES; d++)
        for (int i = 0; table->figures[d] && i < table->lines; i++)
            table->figures[d][i] = (struct pml_saved_figures){.total = 0};
    table->generation++;
    table->failed = false;
    pml_saved_tables_unlock();
}

bool pml_saved_tables_read(struct pml_saved_table *table, int line, int device, struct pml_saved_figures *copy)
{
    static const struct pml_saved_figures none;
    pml_saved_tables_lock();
    struct pml_saved_figures *figures = table->figures[device];
    *copy = figures ? figures[line - table->first_line] : none;
    pml_saved_tables_unlock();
    bool any = copy->hooks_max > 0;
    for (int kind = 0; kind < PML_SAVED_KINDS; kind++)
        any |= copy->peak[kind] > 0;
    return any;
}

bool pml_saved_tables_incomplete(const struct pml_saved_table *table)
{
    pml_saved_tables_lock();
    bool incomplete = lost || table->failed;
    pml_saved_tables_unlock();
    return incomplete;
}

int64_t pml_saved_tables_blocks(void)
{
    pml_saved_tables_lock();
    int64_t known = (int64_t)count;
    pml_saved_tables_unlock();
    return known;
}
