/* The cache follows the model through everything the model can do to it. What handlers are told is
 * replayed into a plain array: a thing is added only where there was none, changed and deleted only where
 * there was one, and in the end the array is what the model holds. */
#include "kube/listwatch.h"
#include "model.h"

struct thing {
    struct record meta;
    int64_t size;
};

static const struct field thing_fields[] = { { "spec.size", F_INT, offsetof(struct thing, size) } };
static const struct resource things = { "test", "v1", "things", "Thing", true };
static const struct cache_spec spec = { .resource = &things,
                                        .keep = FIELDS(struct thing, thing_fields) };

struct run {
    struct model m;
    struct projector *projector;
    struct cache *cache;
    struct listwatch *watch;
    int64_t told[THINGS]; /* -1: none */
    int changes;          /* told */
    int troubles, syncs;
};

static enum cache_need run_need; /* of the next run */

static int number_of(const struct record *r)
{
    int64_t n = -1;
    OK(str_to_i64(str_from(r->name, 1), &n) == 0 && n >= 0 && n < THINGS);
    return (int)n;
}

static void on_change(void *context, const struct record *old, const struct record *now)
{
    struct run *run = context;
    int i = number_of(now ? now : old);
    run->changes++;
    EQ_INT(run->told[i], old ? ((const struct thing *)old)->size : -1);
    run->told[i] = now ? ((const struct thing *)now)->size : -1;
}

static void on_trouble(void *context, const char *trouble)
{
    OK(trouble && *trouble);
    ((struct run *)context)->troubles++;
}

static void on_synced(void *context)
{
    ((struct run *)context)->syncs++;
}

static void run_start(struct run *run)
{
    err_t e;
    *run = (struct run){ 0 };
    model_start(&run->m);
    memset(run->told, -1, sizeof(run->told));
    run->projector = projector_new();
    struct cache_spec own = spec;
    own.need = run_need;
    OK_CALL(cache_new(run->projector, &own, &run->cache, &e), &e);
    cache_handle(run->cache, on_change, run);
}

static void run_watch(struct run *run)
{
    run->watch = listwatch_start(&(struct listwatch_options){ .kube = run->m.f.kube,
                                                              .cache = run->cache,
                                                              .seed = 5,
                                                              .on_synced = on_synced,
                                                              .on_trouble = on_trouble,
                                                              .context = run });
}

static void run_stop(struct run *run)
{
    listwatch_stop(run->watch);
    cache_free(run->cache);
    projector_free(run->projector);
    model_stop(&run->m);
}

static bool agrees(const struct run *run)
{
    for (int i = 0; i < THINGS; i++) {
        int64_t want = model_size(&run->m, i, run->m.changes.n);
        char name[16];
        snprintf(name, sizeof(name), "t%d", i);
        const struct thing *t = cache_get(run->cache, S("ns"), str_c(name));
        if (run->told[i] != want || (t ? t->size : -1) != want)
            return false;
    }
    return true;
}

static void run_for(struct run *run, int64_t ns)
{
    fake_for(&run->m.f, ns);
}

/* ---- */

static void streams_where_it_can(void)
{
    struct run run;
    run_start(&run);
    run.m.streams = true;
    for (int i = 0; i < 20; i++)
        model_change(&run.m, i, i);
    run_watch(&run);
    run_for(&run, NS_PER_S);
    OK(cache_synced(run.cache) && agrees(&run));
    EQ_INT(run.syncs, 1);
    EQ_INT(run.m.lists, 0);
    EQ_INT(run.m.f.requests, 1);
    OK(str_find(buf_str(&run.m.f.log),
                S("sendInitialEvents=true&resourceVersionMatch=NotOlderThan")) != SIZE_MAX);
    model_change(&run.m, 3, 77);
    model_change(&run.m, 4, -1);
    model_change(&run.m, 30, 1);
    run_for(&run, NS_PER_S);
    OK(agrees(&run));
    EQ_INT(run.changes, 23);
    EQ_INT(run.m.f.requests, 1);
    EQ_INT(run.troubles, 0);
    run_stop(&run);
}

static void lists_in_pages_elsewhere(void)
{
    struct run run;
    run_start(&run);
    for (int i = 0; i < 30; i++)
        model_change(&run.m, i, i);
    run_watch(&run);
    run_for(&run, NS_PER_S);
    OK(cache_synced(run.cache) && agrees(&run));
    EQ_INT(run.m.lists, 1);
    EQ_INT(run.m.f.requests, 1 + 6 + 1); /* refused, pages of 7, watch */
    OK(str_find(buf_str(&run.m.f.log), S("&resourceVersion=30")) != SIZE_MAX);
    model_change(&run.m, 3, 77);
    run_for(&run, NS_PER_S);
    OK(agrees(&run));
    run_stop(&run);
}

static void notices_who_ignores_streaming(void)
{
    struct run run;
    run_start(&run);
    run.m.ignores = true;
    model_change(&run.m, 1, 1);
    run_watch(&run);
    run_for(&run, 9 * NS_PER_S);
    OK(!cache_synced(run.cache));
    run_for(&run, 2 * NS_PER_S);
    OK(cache_synced(run.cache) && agrees(&run));
    EQ_INT(run.changes, 1);
    run_stop(&run);
}

static void resumes_where_it_was(void)
{
    struct run run;
    run_start(&run);
    run.m.streams = true;
    model_change(&run.m, 1, 1);
    run_watch(&run);
    run_for(&run, NS_PER_S);
    for (int i = 2; i < 6; i++)
        model_change(&run.m, i, i);
    run_for(&run, NS_PER_S);
    exchange_end_stream(run.m.watches->x, true);
    loop_turn(run.m.f.loop);
    model_change(&run.m, 6, 6); /* nobody watches */
    run_for(&run, 5 * NS_PER_S);
    OK(agrees(&run));
    EQ_INT(run.m.f.requests, 2);
    EQ_INT(run.changes, 6);
    EQ_INT(run.troubles, 1);
    OK(str_find(buf_str(&run.m.f.log), S("&resourceVersion=5\n")) != SIZE_MAX);
    run_stop(&run);
}

static void a_relist_tells_the_differences(void)
{
    struct run run;
    run_start(&run);
    for (int i = 0; i < 10; i++)
        model_change(&run.m, i, i);
    run.m.next_watch = FAULT_NONE;
    run_watch(&run);
    run_for(&run, NS_PER_S);
    EQ_INT(run.changes, 10);
    /* the watch breaks, the world moves on and history is compacted away */
    exchange_end_stream(run.m.watches->x, true);
    loop_turn(run.m.f.loop);
    model_change(&run.m, 0, -1);
    model_change(&run.m, 1, 100);
    model_change(&run.m, 20, 1);
    model_change(&run.m, 21, 1);
    model_change(&run.m, 21, -1);
    run.m.compacted = run.m.changes.n;
    run_for(&run, 10 * NS_PER_S);
    OK(agrees(&run));
    EQ_INT(run.m.expirings, 1);
    EQ_INT(run.changes, 10 + 3);
    EQ_INT(run.m.lists, 2);
    run_stop(&run);
}

/* First from the version known, so that time does not go back; only if the server has not got that, from
 * whatever it has, and both without a pause. */
static void a_relist_is_not_older(void)
{
    for (int streams = 0; streams < 2; streams++) {
        struct run run;
        run_start(&run);
        run.m.streams = streams;
        for (int i = 0; i < 10; i++)
            model_change(&run.m, i, i);
        run_watch(&run);
        run_for(&run, 30 * NS_PER_S);
        exchange_end_stream(run.m.watches->x, true);
        loop_turn(run.m.f.loop);
        model_change(&run.m, 0, 5);
        run.m.compacted = run.m.changes.n;
        run.m.refuses_versions = true;
        buf_clear(&run.m.f.log);
        run_for(&run, 2 * NS_PER_S);
        OK(agrees(&run));
        str log = buf_str(&run.m.f.log);
        size_t versioned = str_find(log, streams ? S("NotOlderThan&resourceVersion=10\n")
                                                 : S("limit=500&resourceVersion=10&"
                                                     "resourceVersionMatch=NotOlderThan\n"));
        size_t plain =
            str_find(log, streams ? S("resourceVersionMatch=NotOlderThan\n") : S("limit=500\n"));
        OK(versioned != SIZE_MAX && plain != SIZE_MAX && versioned < plain);
        run_stop(&run);
    }
}

/* However long nobody answers: what was known stays known, and no list is made when it comes back. */
static void an_absence_needs_no_list(void)
{
    struct run run;
    run_start(&run);
    run.m.streams = true;
    model_change(&run.m, 1, 1);
    run_watch(&run);
    run_for(&run, NS_PER_S);
    run.m.away = true;
    exchange_end_stream(run.m.watches->x, true);
    run_for(&run, 600 * NS_PER_S);
    model_change(&run.m, 2, 2);
    run.m.away = false;
    buf_clear(&run.m.f.log);
    run_for(&run, 60 * NS_PER_S);
    OK(agrees(&run));
    EQ_INT(run.changes, 2);
    OK(str_find(buf_str(&run.m.f.log), S("sendInitialEvents")) == SIZE_MAX);
    run_stop(&run);
}

/* Each fault once at each place, and recovery from it. */
static void every_fault_is_survived(void)
{
    for (int streams = 0; streams < 2; streams++)
        for (int place = 0; place < 2; place++)
            for (int fault = FAULT_GONE; fault < FAULT_N; fault++) {
                struct run run;
                run_start(&run);
                run.m.streams = streams;
                for (int i = 0; i < 30; i++)
                    model_change(&run.m, i, i);
                *(place ? &run.m.next_watch : &run.m.next_list) = (enum fault)fault;
                run_watch(&run);
                run_for(&run, 2 * NS_PER_S);
                for (int i = 5; i < 35; i++)
                    model_change(&run.m, i, i * 2);
                run_for(&run, 700 * NS_PER_S); /* a silent watch ends with its time */
                if (!OK(cache_synced(run.cache) && agrees(&run)))
                    printf("# streams %d place %d fault %d\n", streams, place, fault);
                run_stop(&run);
            }
}

static void a_long_bad_day(void)
{
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct run run;
        run_start(&run);
        random_init(&run.m.random, seed, 9);
        run.m.streams = seed % 2;
        run.m.random_faults = true;
        run_watch(&run);
        for (int step = 0; step < 400; step++) {
            int burst = (int)random_below(&run.m.random, 4);
            for (int i = 0; i < burst; i++)
                model_change(&run.m, (int)random_below(&run.m.random, THINGS),
                             (int64_t)random_below(&run.m.random, 50) - 10 < 0
                                 ? -1
                                 : (int64_t)random_below(&run.m.random, 50));
            if (random_below(&run.m.random, 40) == 0)
                run.m.compacted = run.m.changes.n;
            run_for(&run, (int64_t)random_below(&run.m.random, 3000) * NS_PER_MS);
        }
        run.m.random_faults = false;
        run_for(&run, 1400 * NS_PER_S);
        if (!OK(cache_synced(run.cache) && agrees(&run)))
            printf("# seed %d\n", (int)seed);
        run_stop(&run);
    }
}

static int64_t failure_times[40];
static int failure_n;

static void serve_down(struct fake *f, struct exchange *x)
{
    if (failure_n < 40)
        failure_times[failure_n++] = loop_mono_ns(f->loop);
    fake_answer(x, 403, "{\"reason\":\"Forbidden\"}");
}

static void failures_back_off(void)
{
    struct run run;
    run_start(&run);
    run.m.f.serve = serve_down;
    failure_n = 0;
    run_watch(&run);
    run_for(&run, 400 * NS_PER_S);
    OK(failure_n >= 14 && failure_n <= 25);
    for (int i = 1; i < failure_n; i++) {
        double wait = (double)(failure_times[i] - failure_times[i - 1]) / NS_PER_S;
        double least = fmin(0.8 * pow(2, i - 1), 30), most = fmin(least * 2, 30);
        if (!OK(wait > least - 0.01 && wait < most + 0.01))
            printf("# wait %d was %g\n", i, wait);
    }
    run_stop(&run);
}

static int refusal; /* the answer of a server that does not know the kind, or does not show it */

static void serve_refusal(struct fake *f, struct exchange *x)
{
    (void)f;
    fake_answer(x, refusal, "{}");
}

static void what_need_not_be_there_is_empty(void)
{
    static const struct {
        enum cache_need need;
        int status;
        bool is_fine;
    } table[] = { { CACHE_REQUIRED, 404, false },  { CACHE_IF_KNOWN, 404, true },
                  { CACHE_IF_KNOWN, 403, false },  { CACHE_IF_ALLOWED, 403, true },
                  { CACHE_IF_ALLOWED, 404, true }, { CACHE_IF_ALLOWED, 500, false } };
    for (size_t i = 0; i < countof(table); i++) {
        struct run run;
        run_need = table[i].need;
        refusal = table[i].status;
        run_start(&run);
        run_need = CACHE_REQUIRED;
        run.m.streams = true;
        void (*known)(struct fake *f, struct exchange *x) = run.m.f.serve;
        run.m.f.serve = serve_refusal;
        model_change(&run.m, 1, 1);
        run_watch(&run);
        run_for(&run, NS_PER_S);
        EQ_INT(cache_synced(run.cache), table[i].is_fine);
        EQ_INT(cache_absent(run.cache), table[i].is_fine);
        EQ_INT(run.syncs, table[i].is_fine);
        run.m.f.serve = known; /* it is installed now */
        run_for(&run, 61 * NS_PER_S);
        OK(agrees(&run) && !cache_absent(run.cache));
        EQ_INT(run.syncs, 1);
        run_stop(&run);
    }
}

/* A server that starts may not know its kinds yet: nothing is deleted for that. */
static void what_was_there_stays(void)
{
    struct run run;
    run_need = CACHE_IF_ALLOWED;
    run_start(&run);
    run_need = CACHE_REQUIRED;
    run.m.streams = true;
    model_change(&run.m, 1, 1);
    run_watch(&run);
    run_for(&run, NS_PER_S);
    void (*known)(struct fake *f, struct exchange *x) = run.m.f.serve;
    run.m.f.serve = serve_refusal;
    refusal = 404;
    run.m.next_watch = FAULT_ABORT;
    run_for(&run, 1300 * NS_PER_S); /* the watch has ended by then */
    OK(agrees(&run) && !cache_absent(run.cache));
    OK(run.troubles > 0);
    run.m.f.serve = known;
    model_change(&run.m, 2, 2);
    run_for(&run, 61 * NS_PER_S);
    OK(agrees(&run));
    run_stop(&run);
}

static void a_pause_ends_when_another_is_answered(void)
{
    struct run run;
    run_start(&run);
    model_change(&run.m, 1, 1);
    void (*known)(struct fake *f, struct exchange *x) = run.m.f.serve;
    run.m.f.serve = serve_refusal;
    refusal = 503;
    run_watch(&run);
    run_for(&run, 200 * NS_PER_S);
    run.m.f.serve = known;
    run_for(&run, NS_PER_S);
    OK(!agrees(&run));
    kube_send(run.m.f.kube, &(struct kube_request){ .verb = KUBE_GET, .path = S("/version") });
    run_for(&run, NS_PER_S);
    OK(agrees(&run));
    run_stop(&run);
}

/* Nor does it refuse to stream for good. */
static void one_that_is_starting_streams_later(void)
{
    struct run run;
    run_start(&run);
    run.m.streams = true;
    model_change(&run.m, 1, 1);
    void (*known)(struct fake *f, struct exchange *x) = run.m.f.serve;
    run.m.f.serve = serve_refusal;
    refusal = 503;
    run_watch(&run);
    run_for(&run, 7 * NS_PER_S);
    refusal = 403;
    run_for(&run, 20 * NS_PER_S);
    run.m.f.serve = known;
    buf_clear(&run.m.f.log);
    run_for(&run, 61 * NS_PER_S);
    OK(agrees(&run));
    OK(str_find(buf_str(&run.m.f.log), S("sendInitialEvents=true")) != SIZE_MAX);
    run_stop(&run);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(streams_where_it_can),
                                        TAP(lists_in_pages_elsewhere),
                                        TAP(notices_who_ignores_streaming),
                                        TAP(resumes_where_it_was),
                                        TAP(a_relist_tells_the_differences),
                                        TAP(a_relist_is_not_older),
                                        TAP(an_absence_needs_no_list),
                                        TAP(every_fault_is_survived),
                                        TAP(a_long_bad_day),
                                        TAP(failures_back_off),
                                        TAP(what_need_not_be_there_is_empty),
                                        TAP(what_was_there_stays),
                                        TAP(a_pause_ends_when_another_is_answered),
                                        TAP(one_that_is_starting_streams_later),
                                        { 0 } });
}
