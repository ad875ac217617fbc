/* The cache against a plain list of what should be in it, and what its handlers receive. */
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

static void changes_are_reported_once(void)
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
    cache_handle(cache, on_change, NULL); /* notified of what is there */
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

/* A server that ignores the selector. */
static void what_was_not_requested_is_left_out(void)
{
    struct cache_spec one = spec;
    one.field_selector = S("metadata.name=a");
    setup(&one);
    put("b", 1, 1, 1);
    put("a", 2, 1, 1);
    put("ab", 3, 1, 1);
    expect("+a ");
    EQ_INT((int64_t)cache_sizes(cache).records, 1);
    teardown();
}

static void a_list_reports_the_differences(void)
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

static const struct thing *get(const char *name)
{
    return cache_get(cache, S("ns"), str_c(name));
}

/* An object that differs only in its version stays the record it is, unless there are other references to that. */
static void what_is_equal_is_not_made_again(void)
{
    setup(&spec);
    put("a", 10, 1, 1);
    const struct thing *a = get("a");
    put("a", 11, 1, 1);
    OK(get("a") == a);
    EQ_STR(a->meta.rv, S("11"));
    expect("+a ");
    put("a", 11, 1, 1); /* the same again, as in a list */
    OK(get("a") == a);
    put("a", 112, 1, 1); /* a longer version does not fit */
    OK(get("a") != a);
    EQ_STR(get("a")->meta.rv, S("112"));
    expect("");

    struct record *held = record_ref(&get("a")->meta);
    put("a", 113, 1, 1);
    OK(&get("a")->meta != held);
    EQ_STR(held->rv, S("112"));
    EQ_STR(get("a")->meta.rv, S("113"));
    record_unref(held);

    put("a", 114, 1, 2);
    EQ_INT(get("a")->size, 2);
    put("a", 115, 2, 2);
    EQ_STR(get("a")->node, S("n2"));
    expect("=a =a ");
    put("b", 115, 2, 2); /* another object with equal fields */
    OK(get("b") && get("b") != get("a"));
    expect("+b ");
    teardown();
}

/* A new list finds what it does not delete among the records that stay. */
static void a_list_keeps_what_is_equal(void)
{
    setup(&spec);
    put("a", 10, 1, 1);
    put("b", 11, 1, 1);
    const struct thing *a = get("a");
    buf_clear(&told);
    cache_list_begin(cache);
    put("a", 12, 1, 1);
    cache_list_end(cache);
    OK(get("a") == a && !get("b"));
    expect("-b ");
    teardown();
}

/* Handlers that want every update get it, with the record before and the one after. */
static void every_update_is_a_record(void)
{
    struct cache_spec own = spec;
    own.every_update = true;
    setup(&own);
    put("a", 10, 1, 1);
    put("a", 11, 1, 1);
    expect("+a =a ");
    teardown();
}

/* ---- texts for handlers only */

struct notice {
    struct record meta;
    str text;
};

static const struct field notice_fields[] = {
    { "data", F_ONCE, offsetof(struct notice, text) },
};

static void on_notice(void *context, const struct record *old, const struct record *now)
{
    (void)context;
    const struct notice *n = record_as(struct notice, now ? now : old);
    buf_printf(&told, "%s" STR_FMT " ", !old ? "+" : now ? "=" : "-", STR_ARG(n->text));
}

static void put_notice(int rv, const char *data)
{
    auto_buf struct buf json = { 0 };
    struct record *r;
    err_t e;
    buf_printf(&json,
               "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"resourceVersion\":\"%d\"}%s}",
               rv, data);
    if (OK_CALL(project(cache_projection(cache), buf_str(&json), &r, &e), &e))
        cache_put(cache, r);
}

static void a_text_for_handlers_is_not_kept(void)
{
    const struct cache_spec notices = { .resource = &resource_configmaps,
                                        .keep = FIELDS(struct notice, notice_fields) };
    err_t e;
    projector = projector_new();
    OK_CALL(cache_new(projector, &notices, &cache, &e), &e);
    cache_handle(cache, on_notice, NULL);
    put_notice(1, ",\"data\":{\"k\": 1}");
    expect("+{\"k\":1} ");
    const struct notice *n = cache_get(cache, S("ns"), S("a"));
    EQ_STR(n->text, S(""));
    put_notice(2, ",\"data\":{\"k\": 1}"); /* known by its sum */
    OK(cache_get(cache, S("ns"), S("a")) == n);
    put_notice(3, ",\"data\":{\"k\": 2}");
    put_notice(4, "");
    put_notice(5, ",\"data\":\"\"");
    expect("={\"k\":2} = =\"\" ");
    struct record *r; /* one that no cache ever held */
    OK(project(cache_projection(cache), S("{\"data\":{}}"), &r, &e) < 0);
    OK_CALL(project(cache_projection(cache), S("{\"metadata\":{\"name\":\"b\"},\"data\":[1]}"), &r,
                    &e),
            &e);
    EQ_STR(record_as(struct notice, r)->text, S("[1]"));
    record_unref(r);
    cache_delete(cache, S("ns"), S("a"));
    expect("- ");
    teardown();
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(changes_are_reported_once),
                                        TAP(what_was_not_requested_is_left_out),
                                        TAP(a_list_reports_the_differences),
                                        TAP(indexes_agree_with_a_scan),
                                        TAP(what_is_equal_is_not_made_again),
                                        TAP(a_list_keeps_what_is_equal),
                                        TAP(every_update_is_a_record),
                                        TAP(a_text_for_handlers_is_not_kept),
                                        { 0 } });
}
