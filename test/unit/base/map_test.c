#include "tap.h"

#include "base/map.h"
#include "base/random.h"

enum { KEYS = 300 };
static char names[KEYS][8];

static str key(uint32_t i)
{
    return str_c(names[i]);
}

/* Random puts and deletes beside a plain array: the two must always agree. */
static void agrees_with_an_array(void)
{
    auto_map struct map m = { 0 };
    int *model[KEYS] = { 0 };
    static int values[KEYS];
    struct random r;
    random_init(&r, 7, 7);
    for (int step = 0; step < 50000; step++) {
        uint32_t i = random_below(&r, KEYS);
        if (random_below(&r, 2)) {
            OK(map_put(&m, key(i), &values[i]) == model[i]);
            model[i] = &values[i];
        } else {
            OK(map_del(&m, key(i)) == model[i]);
            model[i] = NULL;
        }
        uint32_t j = random_below(&r, KEYS);
        if (!OK(map_get(&m, key(j)) == model[j]))
            return;
    }
    size_t n = 0;
    for (uint32_t i = 0; i < KEYS; i++)
        n += model[i] != NULL;
    EQ_INT(m.n, n);
    for (struct map_slot *s = NULL; (s = map_next(&m, s));)
        n--;
    EQ_INT(n, 0);
}

static void empty_map_answers(void)
{
    auto_map struct map m = { 0 };
    OK(map_get(&m, S("x")) == NULL);
    OK(map_del(&m, S("x")) == NULL);
    OK(map_next(&m, NULL) == NULL);
    int one = 1;
    map_put(&m, S(""), &one);
    OK(map_get(&m, (str){ NULL, 0 }) == &one);
}

int main(void)
{
    for (uint32_t i = 0; i < KEYS; i++)
        snprintf(names[i], sizeof(names[i]), "k%u", i);
    return tap_run((struct tap_case[]){ TAP(agrees_with_an_array), TAP(empty_map_answers), { 0 } });
}
