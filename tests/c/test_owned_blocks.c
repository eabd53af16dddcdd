/* The table of blocks with owners: against a model, growth, and room given back. */
#include "check.h"
#include "holders/owned_blocks.h"

#define MANY 20000

static struct pml_owned_blocks table;
static int64_t model[MANY];
static char owner_bytes[8];

static const void *pointer_of(int i)
{
    return (const void *)(uintptr_t)(UINT64_C(0x7f0000000000) + ((uint64_t)(i & 7) << 32) + ((uint64_t)(i >> 3) << 9));
}

static struct pml_owner_bytes *held_of(int i)
{
    return (struct pml_owner_bytes *)&owner_bytes[i & 7];
}

/* Whose block was there before. */
static const struct pml_owner_bytes *put(int i, int64_t size, struct pml_owner_bytes *by)
{
    CHECK(pml_owned_blocks_has_room(&table) || pml_owned_blocks_make_room(&table));
    struct pml_owned_block *slot = pml_owned_blocks_probe(&table, pointer_of(i));
    const struct pml_owner_bytes *before = slot->size ? slot->owner_bytes : NULL;
    pml_owned_blocks_set(&table, slot, pointer_of(i), size, by, 0);
    return before;
}

/* What was there. */
static struct pml_owned_block take(int i)
{
    struct pml_owned_block *slot = pml_owned_blocks_find(&table, pointer_of(i)), taken = {.owner_bytes = NULL};
    if (slot) {
        taken = *slot;
        pml_owned_blocks_set(&table, slot, pointer_of(i), 0, slot->owner_bytes, 0);
        pml_owned_blocks_give_back_room(&table);
    }
    return taken;
}

static void a_new_block_takes_the_place_of_a_lost_one(void)
{
    CHECK_POINTER(put(1, 512, held_of(1)), NULL);
    CHECK_POINTER(put(1, 100, held_of(2)), held_of(1));
    CHECK_INT(table.used, 1);
    CHECK_INT(take(1).size, 100);
    CHECK_INT(table.used, 0);
    pml_owned_blocks_clear(&table);
}

static void a_block_is_taken_once_with_its_holder(void)
{
    put(1, 512, held_of(1));
    CHECK_POINTER(take(2).owner_bytes, NULL);
    struct pml_owned_block block = take(1);
    CHECK_INT(block.size, 512);
    CHECK_POINTER(block.owner_bytes, held_of(1));
    CHECK_POINTER(take(1).owner_bytes, NULL);
    CHECK_INT(table.used, 0);
    pml_owned_blocks_clear(&table);
}

static void room_is_given_back_when_blocks_go(void)
{
    for (int i = 0; i < MANY; i++)
        CHECK_POINTER(put(i, i + 1, held_of(i)), NULL);
    CHECK(table.capacity >= MANY);
    for (int i = 0; i < MANY; i++)
        CHECK_INT(take(i).size, i + 1);
    CHECK(table.capacity < MANY / 4);
    pml_owned_blocks_clear(&table);
}

static void addresses_that_are_used_once_do_not_fill_it(void)
{
    for (int i = 0; i < MANY; i++) {
        CHECK_POINTER(put(i, i + 1, held_of(i)), NULL);
        CHECK_INT(take(i).size, i + 1);
    }
    CHECK_INT(table.used, 0);
    CHECK_INT(table.capacity, PML_OWNED_BLOCKS_FIRST_CAPACITY);
    pml_owned_blocks_clear(&table);
}

static void random_blocks_are_those_of_the_model(struct check_random *random)
{
    int range = 1 + random_below(random, MANY), used = 0;
    for (int step = 0; step < 20000; step++) {
        int i = random_below(random, range);
        if (model[i]) {
            struct pml_owned_block block = take(i);
            CHECK_INT(block.size, model[i]);
            CHECK_POINTER(block.owner_bytes, held_of(i));
            model[i] = 0;
        } else {
            CHECK_POINTER(take(i).owner_bytes, NULL);
            model[i] = 1 + random_below(random, 1 << 20);
            CHECK_POINTER(put(i, model[i], held_of(i)), NULL);
        }
        used += model[i] ? 1 : -1;
        CHECK_INT(table.used, used);
    }
    for (int i = 0; i < range; i++) {
        CHECK_INT(take(i).size, model[i]);
        model[i] = 0;
    }
    pml_owned_blocks_clear(&table);
}

int main(void)
{
    RUN(a_block_is_taken_once_with_its_holder);
    RUN(a_new_block_takes_the_place_of_a_lost_one);
    RUN(room_is_given_back_when_blocks_go);
    RUN(addresses_that_are_used_once_do_not_fill_it);
    check_state.test = "random_blocks_are_those_of_the_model";
    check_seeds(random_blocks_are_those_of_the_model, 10);
    return check_report();
}
