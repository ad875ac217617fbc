/* Keys of objects: found by namespace and name, whatever their length. */
#include "tap.h"

#include "kube/object_key.h"

struct entry {
    char *key;
    str ns, name;
};

static struct entry *add(struct map *m, str ns, str name)
{
    struct entry *e = mem_zero(1, sizeof(*e));
    e->key = object_key_new(ns, name, &e->ns, &e->name);
    map_put(m, str_c(e->key), e);
    return e;
}

static void entries_are_found_by_both_parts(void)
{
    struct map m = { 0 };
    char many[1000];
    memset(many, 'x', sizeof(many));
    str none = { NULL, 0 }, longest = { many, 253 }, invalid = { many, sizeof(many) };
    const str pairs[][2] = {
        { S("a"), S("b") },          { none, S("b") },        { S("a"), none },
        { longest, longest },        { invalid, S("b") },     { S("b"), invalid },
        { S("shop-a"), S("b/web") }, { S("shop"), S("a-b") },
    };
    struct entry *added[countof(pairs)];
    for (size_t i = 0; i < countof(pairs); i++) {
        OK(!object_key_find(&m, pairs[i][0], pairs[i][1]));
        added[i] = add(&m, pairs[i][0], pairs[i][1]);
        EQ_STR(added[i]->ns, pairs[i][0]);
        EQ_STR(added[i]->name, pairs[i][1]);
    }
    for (size_t i = 0; i < countof(pairs); i++) {
        OK(object_key_find(&m, pairs[i][0], pairs[i][1]) == added[i]);
        free(added[i]->key);
        free(added[i]);
    }
    map_done(&m);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(entries_are_found_by_both_parts), { 0 } });
}
