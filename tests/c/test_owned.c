/* The table of blocks with owners: against a model, growth, and room given back. */
#include "check.h"
#include "owned.h"

#define MANY 20000

static struct pml_owned_table table;
static int64_t model[MANY];
static char owner[8];

static const void *pointer_of(int i)
{
    return (const void *)(uintptr_t)(UINT64_C(0x7f0000000000) + ((uint64_t)(i & 7) << 32) + ((uint64_t)(i >> 3) << 9));
}

static struct pml_owner *owner_of(int i)
{
    return (struct pml_owner *)&owner[i & 7];
}

/* Whose block was there before. */
static const struct pml_owner *put(int i, int64_t size, struct pml_owner *by)
{
    struct pml_owned before;
    CHECK(pml_owned_put(&table, pointer_of(i), size, by, &before));
    return before.owner;
}

static void a_new_block_takes_the_place_of_a_lost_one(void)
{
    CHECK_POINTER(put(1, 512, owner_of(1)), NULL);
    CHECK_POINTER(put(1, 100, owner_of(2)), owner_of(1));
    CHECK_INT(table.used, 1);
    CHECK_INT(pml_owned_take(&table, pointer_of(1)).size, 100);
    CHECK_INT(table.used, 0);
    pml_owned_clear(&table);
}

static void a_block_is_taken_once_with_its_owner(void)
{
    put(1, 512, owner_of(1));
    CHECK_POINTER(pml_owned_take(&table, pointer_of(2)).owner, NULL);
    struct pml_owned block = pml_owned_take(&table, pointer_of(1));
    CHECK_INT(block.size, 512);
    CHECK_POINTER(block.owner, owner_of(1));
    CHECK_POINTER(pml_owned_take(&table, pointer_of(1)).owner, NULL);
    CHECK_INT(table.used, 0);
    pml_owned_clear(&table);
}

static void room_is_given_back_when_blocks_go(void)
{
    for (int i = 0; i < MANY; i++)
        CHECK_POINTER(put(i, i + 1, owner_of(i)), NULL);
    CHECK(table.capacity >= MANY);
    for (int i = 0; i < MANY; i++)
        CHECK_INT(pml_owned_take(&table, pointer_of(i)).size, i + 1);
    CHECK(table.capacity < MANY / 4);
    pml_owned_clear(&table);
}

static void random_blocks_are_those_of_the_model(struct check_random *random)
{
    int range = 1 + random_below(random, MANY), used = 0;
    for (int step = 0; step < 20000; step++) {
        int i = random_below(random, range);
        if (model[i]) {
            struct pml_owned block = pml_owned_take(&table, pointer_of(i));
            CHECK_INT(block.size, model[i]);
            CHECK_POINTER(block.owner, owner_of(i));
            model[i] = 0;
        } else {
            CHECK_POINTER(pml_owned_take(&table, pointer_of(i)).owner, NULL);
            model[i] = 1 + random_below(random, 1 << 20);
            CHECK_POINTER(put(i, model[i], owner_of(i)), NULL);
        }
        used += model[i] ? 1 : -1;
        CHECK_INT(table.used, used);
    }
    for (int i = 0; i < range; i++) {
        CHECK_INT(pml_owned_take(&table, pointer_of(i)).size, model[i]);
        model[i] = 0;
    }
    pml_owned_clear(&table);
}

int main(void)
{
    RUN(a_block_is_taken_once_with_its_owner);
    RUN(a_new_block_takes_the_place_of_a_lost_one);
    RUN(room_is_given_back_when_blocks_go);
    check_state.test = "random_blocks_are_those_of_the_model";
    check_seeds(random_blocks_are_those_of_the_model, 10);
    return check_report();
}
