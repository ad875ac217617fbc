/* The cache against a plain list of what should be in it, and what its handlers are told. */
#include "base/buf.h"
#include "base/random.h"
#include "kube/cache.h"
#include "tap.h"

struct thing {
    struct record meta;
    str node, owner;
    int64_t size;
};

static const struct field thing_fields[] = {
    { "spec.node", F_WORD, offsetof(struct thing, node) },
    { "spec.owner", F_STR, offsetof(struct thing, owner) },
    { "spec.size", F_INT, offsetof(struct thing, size) },
};

static const struct cache_spec spec = {
    .resource = &resource_pods,
    .keep = FIELDS(struct thing, thing_fields),
    .indexes = { offsetof(struct thing, node), offsetof(struct thing, owner),
                 offsetof(struct record, ns) },
};

static struct projector *projector;
static struct cache *cache;
static struct buf told; /* "+a =a -a ..." */

static void on_change(void *context, const struct record *old, const struct record *now)
{
    (void)context;
    const struct record *r = now ? now : old;
    buf_printf(&told, "%s" STR_FMT " ", !old ? "+" : now ? "=" : "-", STR_ARG(r->name));
}

static void setup(const struct cache_spec *which)
{
    err_t e;
    projector = projector_new();
    OK_CALL(cache_new(projector, which, &cache, &e), &e);
    cache_handle(cache, on_change, NULL);
}

static void teardown(void)
{
    cache_free(cache);
    projector_free(projector);
    buf_done(&told);
}

static void put(const char *name, int rv, int node, int64_t size)
{
    char json[300];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"resourceVersion\":\"%d\"},"
             "\"spec\":{\"node\":\"n%d\",\"owner\":\"o%lld\",\"size\":%lld}}",
             name, rv, node, (long long)size, (long long)size);
    struct record *r;
    err_t e;
    if (OK_CALL(project(cache_projection(cache), str_c(json), &r, &e), &e))
        cache_put(cache, r);
}

static void expect(const char *want)
{
    EQ_STR(buf_str(&told), str_c(want));
    buf_clear(&told);
}

static void changes_are_told_once(void)
{
    setup(&spec);
    put("a", 1, 1, 1);
    put("a", 1, 1, 1); /* seen already */
    put("a", 2, 1, 1); /* nothing that was declared changed */
    put("a", 3, 1, 2);
    put("b", 4, 1, 1);
    cache_delete(cache, S("ns"), S("nobody"));
    cache_delete(cache, S("ns"), S("a"));
    expect("+a =a +b -a ");
    const struct thing *b = cache_get(cache, S("ns"), S("b"));
    EQ_STR(b->meta.rv, S("4"));
    cache_handle(cache, on_change, NULL); /* told of what is there */
    expect("+b ");
    teardown();

    struct cache_spec every = spec;
    every.every_update = true;
    setup(&every);
    put("a", 1, 1, 1);
    put("a", 1, 1, 1);
    put("a", 2, 1, 1);
    expect("+a =a ");
    teardown();
}

static void a_list_tells_the_differences(void)
{
    setup(&spec);
    OK(!cache_synced(cache));
    cache_list_begin(cache);
    put("a", 1, 1, 1);
    put("b", 2, 1, 1);
    put("c", 3, 1, 1);
    cache_list_end(cache);
    OK(cache_synced(cache));
    expect("+a +b +c ");
    cache_list_begin(cache);
    put("b", 2, 1, 1);
    cache_list_begin(cache); /* the first try broke off: what it saw does not count */
    put("c", 9, 1, 5);
    put("d", 8, 1, 1);
    put("a", 1, 1, 1);
    expect("=c +d ");
    cache_list_end(cache);
    expect("-b ");
    EQ_INT(cache_count(cache), 3);
    teardown();
}

enum { THINGS = 200 };

static void indexes_agree_with_a_scan(void)
{
    setup(&spec);
    struct random random;
    random_init(&random, 3, 1);
    int node_of[THINGS];
    memset(node_of, -1, sizeof(node_of));
    char name[16];
    for (int step = 0; step < 20000; step++) {
        int i = (int)random_below(&random, THINGS), node = (int)random_below(&random, 7) - 1;
        snprintf(name, sizeof(name), "t%d", i);
        if (node < 0)
            cache_delete(cache, S("ns"), str_c(name));
        else
            put(name, step + 1, node, i);
        node_of[i] = node;
    }
    int total = 0;
    for (int node = 0; node < 6; node++) {
        int want = 0, got = 0;
        for (int i = 0; i < THINGS; i++)
            want += node_of[i] == node;
        snprintf(name, sizeof(name), "n%d", node);
        const struct thing *t;
        cache_each_in(t, cache, 0, str_c(name)) {
            got++;
            EQ_STR(t->node, str_c(name));
            EQ_INT(node_of[t->size], node);
        }
        EQ_INT(got, want);
        total += got;
    }
    EQ_INT(cache_count(cache), total);
    int in_namespace = 0, all = 0;
    const struct thing *t;
    cache_each_in(t, cache, 2, S("ns"))
        in_namespace++;
    cache_each(t, cache)
        all++;
    EQ_INT(in_namespace, total);
    EQ_INT(all, total);
    OK(!cache_first_in(cache, 0, S("n77")));
    size_t bytes = 0;
    cache_each(t, cache)
        bytes += record_bytes(&t->meta);
    OK(cache_sizes(cache).bytes > bytes && cache_sizes(cache).records == (size_t)total);
    teardown();
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(changes_are_told_once),
                                        TAP(a_list_tells_the_differences),
                                        TAP(indexes_agree_with_a_scan),
                                        { 0 } });
}
