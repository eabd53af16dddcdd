/* The map from addresses to numbers: what was entered is found, with its value, however often it grows. */
#include "check.h"
#include "base/pointer_map.h"

#include <string.h>

static struct pml_pointer_map map;

static void an_empty_map_has_nothing(void)
{
    CHECK_POINTER(pml_pointer_map_find(&map, &map), NULL);
    CHECK_INT(map.used, 0);
}

static void what_is_entered_twice_is_there_once(void)
{
    int one;
    *pml_pointer_map_enter(&map, &one) = 7;
    CHECK_INT(*pml_pointer_map_enter(&map, &one), 7);
    CHECK_INT(map.used, 1);
    pml_pointer_map_free(&map);
    CHECK_POINTER(pml_pointer_map_find(&map, &one), NULL);
}

static void values_outlast_growth(struct check_random *random)
{
    static char memory[1 << 16];
    static uint32_t expected[sizeof memory];
    memset(expected, 0, sizeof expected);
    size_t entered = 0;
    for (int i = 1; i <= 20000; i++) {
        size_t at = (size_t)random_below(random, sizeof memory);
        entered += expected[at] == 0;
        expected[at] = (uint32_t)i;
        uint32_t *value = pml_pointer_map_enter(&map, &memory[at]);
        CHECK(value != NULL);
        *value = (uint32_t)i;
    }
    CHECK_INT(map.used, entered);
    CHECK(map.used <= map.capacity / 4 * 3);
    for (size_t at = 0; at < sizeof memory; at++) {
        uint32_t *value = pml_pointer_map_find(&map, &memory[at]);
        CHECK_INT(value ? *value : 0, expected[at]);
    }
    pml_pointer_map_free(&map);
}

int main(void)
{
    RUN(an_empty_map_has_nothing);
    RUN(what_is_entered_twice_is_there_once);
    check_state.test = "values_outlast_growth";
    check_seeds(values_outlast_growth, 5);
    return check_report();
}
