/* Code objects to subscribers: identity, several subscribers, references, tombstones. */
#include "check.h"
#include "lines/codes.h"

#define KEYS 3000
#define SUBSCRIBERS 4

static char key[KEYS * 16];
static struct pml_subscriber subscriber[SUBSCRIBERS];

static const void *key_at(int i)
{
    return &key[i * 16];
}

static void an_unknown_key_is_not_found(void)
{
    CHECK_POINTER(pml_codes_find(key_at(0)), NULL);
    pml_codes_unsubscribe(key_at(0), &subscriber[0]);
    CHECK(pml_codes_subscribe(key_at(1), &subscriber[0]));
    CHECK_POINTER(pml_codes_find(key_at(0)), NULL);
    pml_codes_unsubscribe(key_at(0), &subscriber[0]);
    pml_codes_unsubscribe(key_at(1), &subscriber[0]);
}

static void a_subscribed_key_is_found_until_the_last_leaves(void)
{
    /* GIVEN */
    CHECK(pml_codes_subscribe(key_at(0), &subscriber[0]));
    CHECK(pml_codes_subscribe(key_at(0), &subscriber[1]));
    struct pml_code *code = pml_codes_find(key_at(0));
    CHECK_POINTER(code->key, key_at(0));
    CHECK_INT(code->subscribers, 2);
    CHECK_POINTER(code->subscriber[0], &subscriber[0]);
    CHECK_POINTER(code->subscriber[1], &subscriber[1]);
    /* WHEN */
    pml_codes_unsubscribe(key_at(0), &subscriber[0]);
    /* THEN */
    CHECK_POINTER(pml_codes_find(key_at(0)), code);
    CHECK_INT(code->subscribers, 1);
    CHECK_POINTER(code->subscriber[0], &subscriber[1]);
    pml_codes_unsubscribe(key_at(0), &subscriber[1]);
    CHECK_POINTER(pml_codes_find(key_at(0)), NULL);
}

static void a_stranger_that_leaves_changes_nothing(void)
{
    CHECK(pml_codes_subscribe(key_at(0), &subscriber[0]));
    pml_codes_unsubscribe(key_at(0), &subscriber[1]);
    CHECK_INT(pml_codes_find(key_at(0))->subscribers, 1);
    pml_codes_unsubscribe(key_at(0), &subscriber[0]);
}

static void a_frame_keeps_the_entry_alive(void)
{
    /* GIVEN a frame that runs while its last subscriber leaves */
    CHECK(pml_codes_subscribe(key_at(0), &subscriber[0]));
    struct pml_code *code = pml_codes_retain(pml_codes_find(key_at(0)));
    /* WHEN */
    pml_codes_unsubscribe(key_at(0), &subscriber[0]);
    CHECK(pml_codes_subscribe(key_at(0), &subscriber[1]));
    /* THEN the frame's entry has no subscriber, and the new one is another */
    CHECK_INT(code->subscribers, 0);
    CHECK_INT(code->references, 1);
    CHECK(pml_codes_find(key_at(0)) != code);
    pml_codes_release(code);
    pml_codes_unsubscribe(key_at(0), &subscriber[1]);
}

/* ---- against a model ---- */

static unsigned model[KEYS];

static bool subscribes(const struct pml_code *code, const struct pml_subscriber *wanted)
{
    for (int i = 0; code && i < code->subscribers; i++)
        if (code->subscriber[i] == wanted)
            return true;
    return false;
}

static void compare_key(int i)
{
    struct pml_code *code = pml_codes_find(key_at(i));
    CHECK_INT(code != NULL, model[i] != 0);
    CHECK_INT(code ? code->subscribers : 0, __builtin_popcount(model[i]));
    for (int s = 0; s < SUBSCRIBERS; s++)
        CHECK_INT(subscribes(code, &subscriber[s]), model[i] >> s & 1);
}

static void change_key(struct check_random *random, int keys)
{
    int i = random_below(random, keys), s = random_below(random, SUBSCRIBERS);
    if (model[i] >> s & 1)
        pml_codes_unsubscribe(key_at(i), &subscriber[s]);
    else
        CHECK(pml_codes_subscribe(key_at(i), &subscriber[s]));
    model[i] ^= 1u << s;
    compare_key(i);
    compare_key(random_below(random, keys));
}

static void codes_at_random(struct check_random *random)
{
    int keys = random_below(random, 2) ? 20 : KEYS;
    for (int step = 0; step < 30000; step++)
        change_key(random, keys);
    for (int i = 0; i < KEYS; i++)
        compare_key(i);
    for (int i = 0; i < KEYS; i++)
        for (int s = 0; s < SUBSCRIBERS; s++)
            if (model[i] >> s & 1)
                pml_codes_unsubscribe(key_at(i), &subscriber[s]);
    for (int i = 0; i < KEYS; i++) {
        model[i] = 0;
        compare_key(i);
    }
}

static void codes_agree_with_the_model(void)
{
    check_seeds(codes_at_random, 20);
}

/* Each profiler that comes and goes leaves a tombstone; one that stays must be found through all of them. */
static void tombstones_hide_nothing(void)
{
    /* GIVEN */
    CHECK(pml_codes_subscribe(key_at(0), &subscriber[0]));
    struct pml_code *stays = pml_codes_find(key_at(0));
    /* WHEN */
    for (int i = 0; i < 200000; i++) {
        const void *passing = key_at(1 + i % (KEYS - 1));
        CHECK(pml_codes_subscribe(passing, &subscriber[1]));
        pml_codes_unsubscribe(passing, &subscriber[1]);
        CHECK_POINTER(pml_codes_find(passing), NULL);
    }
    /* THEN */
    CHECK_POINTER(pml_codes_find(key_at(0)), stays);
    pml_codes_unsubscribe(key_at(0), &subscriber[0]);
}

int main(void)
{
    RUN(an_unknown_key_is_not_found);
    RUN(a_subscribed_key_is_found_until_the_last_leaves);
    RUN(a_stranger_that_leaves_changes_nothing);
    RUN(a_frame_keeps_the_entry_alive);
    RUN(codes_agree_with_the_model);
    RUN(tombstones_hide_nothing);
    return check_report();
}
