/* What the C unit tests share: checks that count and print, and random numbers from a seed that a failure names.
 *
 * A failed check prints file, line and both values and the program goes on; `check_report` makes it end with 1. Checks
 * are for the main thread only. PML_SEED and PML_ROUNDS in the environment choose what the random tests run.
 */
#ifndef PML_CHECK_H
#define PML_CHECK_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK_MOST_PRINTED 25

static struct {
    int checks;
    int failures;
    const char *test;
    bool seeded;
    uint64_t seed;
} check_state;

static inline bool check_note(bool passed, const char *file, int line)
{
    check_state.checks++;
    if (passed)
        return false;
    if (++check_state.failures > CHECK_MOST_PRINTED)
        return false;
    fprintf(stderr, "%s:%d: in %s", file, line, check_state.test);
    if (check_state.seeded)
        fprintf(stderr, " (PML_SEED=%" PRIu64 ")", check_state.seed);
    fprintf(stderr, ": ");
    return true;
}

static inline void check_true(bool passed, const char *what, const char *file, int line)
{
    if (check_note(passed, file, line))
        fprintf(stderr, "not true: %s\n", what);
}

static inline void check_int(int64_t got, int64_t want, const char *what, const char *file, int line)
{
    if (check_note(got == want, file, line))
        fprintf(stderr, "%s is %" PRId64 ", not %" PRId64 "\n", what, got, want);
}

static inline void check_pointer(const void *got, const void *want, const char *what, const char *file, int line)
{
    if (check_note(got == want, file, line))
        fprintf(stderr, "%s is %p, not %p\n", what, got, want);
}

#define CHECK(condition) check_true((condition), #condition, __FILE__, __LINE__)
#define CHECK_INT(got, want) check_int((int64_t)(got), (int64_t)(want), #got, __FILE__, __LINE__)
#define CHECK_POINTER(got, want) check_pointer((got), (want), #got, __FILE__, __LINE__)
#define CHECK_BETWEEN(low, got, high) (CHECK((low) <= (got)), CHECK((got) <= (high)))

#define RUN(test) check_run(#test, test)

static inline void check_run(const char *name, void (*test)(void))
{
    check_state.test = name;
    check_state.seeded = false;
    test();
}

static inline int check_report(void)
{
    printf("%d checks, %d failed\n", check_state.checks, check_state.failures);
    return check_state.failures || !check_state.checks ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- random tests ---- */

struct check_random {
    uint64_t state;
};

static inline uint64_t random_next(struct check_random *random)
{
    /* splitmix64 */
    uint64_t z = (random->state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* 0 <= result < limit */
static inline int random_below(struct check_random *random, int limit)
{
    return (int)(random_next(random) % (uint64_t)limit);
}

static inline uint64_t check_setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* Run a test with as many seeds as asked for, until one fails. */
static inline void check_seeds(void (*test)(struct check_random *), int rounds)
{
    uint64_t first = check_setting("PML_SEED", 1);
    uint64_t count = check_setting("PML_ROUNDS", getenv("PML_SEED") ? 1 : (uint64_t)rounds);
    int failures = check_state.failures;
    check_state.seeded = true;
    for (uint64_t i = 0; i < count && check_state.failures == failures; i++) {
        struct check_random random = {first + i};
        check_state.seed = first + i;
        test(&random);
    }
    check_state.seeded = false;
}

#endif
