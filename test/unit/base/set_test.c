/* The set against a plain array, through growth, removal and shrinking. */
#include "base/random.h"
#include "base/set.h"
#include "tap.h"

struct number {
    struct set_node node;
    uint32_t value;
    bool in;
};

static bool same(const struct set_node *member, const void *key)
{
    return ((const struct number *)member)->value == *(const uint32_t *)key;
}

static void agrees_with_an_array(void)
{
    enum { N = 3000 };
    static struct number numbers[N];
    struct set s = { 0 };
    struct random random;
    random_init(&random, 7, 1);
    size_t in = 0;
    for (int step = 0; step < 60000; step++) {
        uint32_t value = random_below(&random, step < 40000 ? N : 300);
        struct number *n = &numbers[value];
        *n = (struct number){ { value * 2654435761u >> 24 }, value, n->in }; /* few hashes */
        if (n->in)
            OK(set_remove(&s, &n->node));
        else
            set_add(&s, &n->node);
        n->in = !n->in;
        in += n->in ? 1 : (size_t)-1;
    }
    EQ_INT(s.n, in);
    for (uint32_t i = 0; i < N; i++) {
        struct set_node *found = set_find(&s, i * 2654435761u >> 24, same, &i);
        OK(found == (numbers[i].in ? &numbers[i].node : NULL));
        OK(numbers[i].in || !set_remove(&s, &numbers[i].node));
    }
    size_t seen = 0;
    for (size_t at = 0; set_next(&s, &at);)
        seen++;
    EQ_INT(seen, in);
    set_done(&s);
}

static void swaps_in_place(void)
{
    struct set s = { 0 };
    struct number a = { { 5 }, 1, true }, b = { { 5 }, 2, true }, other = { { 5 }, 1, true };
    set_add(&s, &a.node);
    set_add(&s, &b.node);
    set_swap(&s, &a.node, &other.node);
    OK(set_find(&s, 5, same, &(uint32_t){ 1 }) == &other.node);
    OK(set_find(&s, 5, same, &(uint32_t){ 2 }) == &b.node);
    EQ_INT(s.n, 2);
    set_done(&s);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(agrees_with_an_array), TAP(swaps_in_place), { 0 } });
}
