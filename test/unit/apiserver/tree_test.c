/* The tree against a sorted array, over many chunks. */
#include "tap.h"

#include "apiserver/store/tree.h"
#include "base/random.h"

enum { KEYS = 3000 };

static struct object *make(int n, int64_t rev)
{
    char key[40], json[120];
    snprintf(key, sizeof(key), "/t/ns%d/k%05d", n % 3, n);
    snprintf(json, sizeof(json),
             "{\"kind\":\"T\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"%lld\"}}",
             (long long)rev);
    struct object *o;
    if (object_new(str_c(key), str_c(json), rev, false, &o) < 0)
        abort();
    return o;
}

static void keeps_order_through_random_changes(void)
{
    struct tree t = { 0 };
    struct random r;
    random_init(&r, 1, 1);
    bool there[KEYS] = { 0 };
    size_t n = 0;
    for (int i = 0; i < 20000; i++) {
        int k = (int)random_below(&r, KEYS);
        struct object *o = make(k, i + 1), *old;
        if (random_below(&r, 3)) {
            old = tree_put(&t, o);
            n += !there[k];
            OK((old != NULL) == there[k]);
            there[k] = true;
        } else {
            old = tree_del(&t, object_key(o));
            n -= there[k];
            OK((old != NULL) == there[k]);
            there[k] = false;
            object_unref(o);
        }
        object_unref(old);
    }
    EQ_INT(t.n, n);
    struct tree_cursor c = tree_seek(&t, S(""));
    str before = S("");
    size_t seen = 0;
    for (struct object *o; (o = tree_next(&c)); seen++) {
        OK(str_cmp(before, object_key(o)) < 0);
        before = object_key(o);
        OK(tree_get(&t, before) == o);
    }
    EQ_INT(seen, n);
    EQ_INT(tree_count(&t, S("/t/ns0/"), S("/t/ns0/")) + tree_count(&t, S("/t/ns1/"), S("/t/ns1/")) +
               tree_count(&t, S("/t/ns2/"), S("/t/ns2/")),
           n);
    tree_done(&t);
}

static void seeks_to_the_next_key(void)
{
    struct tree t = { 0 };
    OK(!tree_get(&t, S("x")));
    struct tree_cursor c = tree_seek(&t, S("x"));
    OK(!tree_next(&c));
    for (int i = 0; i < 3; i++)
        tree_put(&t, make(i * 3, 1)); /* ns0: k00000, k00003, k00006 */
    c = tree_seek(&t, S("/t/ns0/k00001"));
    EQ_STR(object_key(tree_next(&c)), S("/t/ns0/k00003"));
    OK(tree_next_in(&c, S("/t/ns0/")) != NULL);
    OK(!tree_next_in(&c, S("/t/ns0/")));
    tree_done(&t);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(keeps_order_through_random_changes), TAP(seeks_to_the_next_key), { 0 } });
}
