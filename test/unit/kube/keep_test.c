/* Named texts that survive a restart, on the embedded API server: read back, bounded, in shards, and not lost to who
 * edits or deletes the ConfigMap. */
#include "kube/keep.h"

#include "base/log.h"
#include "cluster.h"
#include "tap.h"

#define NS "kept"

static struct keep *keep; /* of the operator that runs */
static size_t shards, reads;

static void on_read(void *context)
{
    (void)context;
    reads++;
}

static int start_feature(struct manager *m, void **ret_state, err_t *e)
{
    *ret_state = NULL;
    return keep_new(m,
                    &(struct keep_options){
                        .ns = S(NS), .name = S("state"), .shards = shards, .on_read = on_read },
                    &keep, e);
}

static bool flush(void *state)
{
    (void)state;
    return keep_flush(keep);
}

static void stop(void *state)
{
    (void)state;
    keep_free(keep);
    keep = NULL;
}

static const struct feature keeper = {
    .name = "keeper", .start = start_feature, .flush = flush, .stop = stop
};

static void nothing(void *context, str line)
{
    buf_put(context, line);
    buf_putc(context, '\n');
}

static void begin(struct cluster *c, struct buf *log, size_t shard_n)
{
    shards = shard_n;
    reads = 0;
    *log = (struct buf){ 0 };
    log_setup(LOG_WARN, LOG_TEXT);
    log_redirect(nothing, log);
    cluster_start(c, 1780473600);
    struct json *ns = json_new_obj(&c->arena);
    json_set_str(&c->arena, json_make(&c->arena, ns, "metadata", NULL), "name", S(NS));
    cluster_create(c, &resource_namespaces, NULL, ns);
    cluster_operator(c, &keeper, NULL);
    cluster_until(c, cluster_now(c) + 1);
    OK(keep_is_loaded(keep));
}

static void end(struct cluster *c, struct buf *log)
{
    cluster_stop(c);
    log_redirect(NULL, NULL);
    buf_done(log);
}

static void pass(struct cluster *c, int64_t seconds)
{
    cluster_until(c, cluster_now(c) + seconds);
}

static void restart(struct cluster *c)
{
    cluster_operator_down(c);
    cluster_operator(c, &keeper, NULL);
    pass(c, 1);
}

static str text_of(struct arena *a, size_t n, char fill)
{
    char *text = arena_array(a, n + 1, 1);
    memset(text, fill, n);
    return (str){ text, n };
}

static void texts_come_back(void)
{
    struct cluster c;
    struct buf log;
    begin(&c, &log, 1);
    OK(keep_get(keep, S("a")).p == NULL);
    OK(keep_put(keep, S("a"), S("one")));
    keep_put(keep, S("b"), S("line\n\"quoted\" \xc3\xa9"));
    EQ_INT((int64_t)c.operator_writes, 0); /* a change waits for others */
    pass(&c, 6);
    EQ_INT((int64_t)c.operator_writes, 1);
    keep_put(keep, S("a"), S("one")); /* the same: nothing to write */
    pass(&c, 100);
    EQ_INT((int64_t)c.operator_writes, 1);
    keep_put(keep, S("a"), S("two"));
    pass(&c, 6);
    keep_put(keep, S("a"), S("three"));
    pass(&c, 6);
    EQ_INT((int64_t)c.operator_writes, 2); /* once a minute */
    pass(&c, 60);
    EQ_INT((int64_t)c.operator_writes, 3);
    keep_del(keep, S("b"));
    pass(&c, 61);
    restart(&c);
    OK(reads >= 1);
    EQ_STR(keep_get(keep, S("a")), S("three"));
    OK(keep_get(keep, S("b")).p == NULL);
    EQ_INT((int64_t)keep_count(keep), 1);
    end(&c, &log);
}

static void who_deletes_or_edits_it_is_overruled_by_the_leader_only(void)
{
    struct cluster c;
    struct buf log;
    begin(&c, &log, 1);
    keep_put(keep, S("a"), S("one"));
    pass(&c, 6);
    cluster_do(&c, KUBE_DELETE, &resource_configmaps, NS, "state", S(""));
    pass(&c, 70);
    EQ_STR(json_text(
               json_at(cluster_get(&c, &resource_configmaps, NS, "state"), "data", "a", NULL)),
           S("one"));
    cluster_do(&c, KUBE_MERGE_PATCH, &resource_configmaps, NS, "state",
               S("{\"data\":{\"a\":\"other\"}}"));
    pass(&c, 70);
    EQ_STR(json_text(
               json_at(cluster_get(&c, &resource_configmaps, NS, "state"), "data", "a", NULL)),
           S("one"));
    restart(&c); /* it has put nothing yet: it follows */
    cluster_do(&c, KUBE_MERGE_PATCH, &resource_configmaps, NS, "state",
               S("{\"data\":{\"a\":\"other\"}}"));
    pass(&c, 70);
    EQ_STR(keep_get(keep, S("a")), S("other"));
    cluster_do(&c, KUBE_DELETE, &resource_configmaps, NS, "state", S(""));
    pass(&c, 70);
    EQ_INT((int64_t)keep_count(keep), 0);
    end(&c, &log);
}

static void it_is_bounded(void)
{
    struct cluster c;
    struct buf log;
    auto_arena struct arena a = { 0 };
    begin(&c, &log, 2);
    OK(!keep_put(keep, S("huge"), text_of(&a, KEEP_SHARD_BYTES, 'x')));
    OK(str_find(buf_str(&log), S("too large")) != SIZE_MAX);
    for (int i = 0; i < 8; i++) /* 4 fit into a shard */
        OK(keep_put(keep, arena_printf(&a, "k%d", i), text_of(&a, 220 << 10, (char)('a' + i))));
    OK(str_find(buf_str(&log), S("state is full")) == SIZE_MAX);
    keep_put(keep, S("k0"), text_of(&a, 220 << 10, 'a')); /* used again: k1 is the oldest now */
    OK(keep_put(keep, S("k8"), text_of(&a, 220 << 10, 'z')));
    OK(str_find(buf_str(&log), S("evicted the least recently used entry")) != SIZE_MAX);
    OK(keep_get(keep, S("k1")).p == NULL);
    OK(keep_get(keep, S("k0")).p != NULL);
    pass(&c, 70);
    OK(cluster_get(&c, &resource_configmaps, NS, "state") != NULL);
    OK(cluster_get(&c, &resource_configmaps, NS, "state-1") != NULL);
    restart(&c);
    EQ_INT((int64_t)keep_count(keep), 8);
    EQ_STR(keep_get(keep, S("k8")), text_of(&a, 220 << 10, 'z'));
    end(&c, &log);
}

static void stopped(void *context)
{
    *(bool *)context = true;
}

static void the_end_waits_for_the_last_write(void)
{
    struct cluster c;
    struct buf log;
    bool over = false;
    begin(&c, &log, 1);
    keep_put(keep, S("a"), S("last"));
    manager_stop(c.manager, stopped, &over);
    while (!over)
        loop_turn(c.loop);
    restart(&c);
    EQ_STR(keep_get(keep, S("a")), S("last"));
    end(&c, &log);
}

static void keys_are_made_of_any_text(void)
{
    auto_arena struct arena a = { 0 };
    str one = keep_key(&a, "good", (const str[]){ S("a"), S("b/c d") }, 2);
    str two = keep_key(&a, "good", (const str[]){ S("a"), S("b/c e") }, 2);
    EQ_INT((int64_t)one.n, 5 + 16);
    OK(str_starts(one, S("good.")) && !str_eq(one, two));
    /* the first 16 hexadecimal digits of SHA-256("a|b") */
    EQ_STR(keep_key(&a, "x", (const str[]){ S("a"), S("b") }, 2), S("x.0eab8a0a3380abf4"));
}

int main(void)
{
    return tap_run(
        (struct tap_case[]){ TAP(texts_come_back),
                             TAP(who_deletes_or_edits_it_is_overruled_by_the_leader_only),
                             TAP(it_is_bounded),
                             TAP(the_end_waits_for_the_last_write),
                             TAP(keys_are_made_of_any_text),
                             { 0 } });
}
