/* The cache follows the model through everything the model can do to it. What handlers receive is
 * replayed into a plain array: a thing is added only where there was none, changed and deleted only where
 * there was one, and in the end the array is what the model holds. */
#include "listwatch_run.h"

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
    OK(cache_synced(run.cache) && run_agrees(&run));
    EQ_INT(run.syncs, 1);
    EQ_INT(run.m.lists, 0);
    EQ_INT(run.m.f.requests, 1);
    OK(str_find(buf_str(&run.m.f.log),
                S("sendInitialEvents=true&resourceVersionMatch=NotOlderThan")) != SIZE_MAX);
    model_change(&run.m, 3, 77);
    model_change(&run.m, 4, -1);
    model_change(&run.m, 30, 1);
    run_for(&run, NS_PER_S);
    OK(run_agrees(&run));
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
    OK(cache_synced(run.cache) && run_agrees(&run));
    EQ_INT(run.m.lists, 1);
    EQ_INT(run.m.f.requests, 1 + 6 + 1); /* refused, pages of 7, watch */
    OK(str_find(buf_str(&run.m.f.log), S("&resourceVersion=30")) != SIZE_MAX);
    model_change(&run.m, 3, 77);
    run_for(&run, NS_PER_S);
    OK(run_agrees(&run));
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
    OK(cache_synced(run.cache) && run_agrees(&run));
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
    model_change(&run.m, 6, 6); /* there is no watch */
    run_for(&run, 5 * NS_PER_S);
    OK(run_agrees(&run));
    EQ_INT(run.m.f.requests, 2);
    EQ_INT(run.changes, 6);
    EQ_INT(run.troubles, 1);
    OK(str_find(buf_str(&run.m.f.log), S("&resourceVersion=5\n")) != SIZE_MAX);
    run_stop(&run);
}

static void a_relist_reports_the_differences(void)
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
    OK(run_agrees(&run));
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
        OK(run_agrees(&run));
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

/* However long the server does not answer: what was known stays known, and no list is made when it comes back. */
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
    OK(run_agrees(&run));
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
                if (!OK(cache_synced(run.cache) && run_agrees(&run)))
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
        if (!OK(cache_synced(run.cache) && run_agrees(&run)))
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

static int refused;

static void serve_refusal(struct fake *f, struct exchange *x)
{
    (void)f;
    refused++;
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
        OK(run_agrees(&run) && !cache_absent(run.cache));
        EQ_INT(run.syncs, 1);
        run_stop(&run);
    }
}

typedef void serve_fn(struct fake *f, struct exchange *x);

/* The model has one object of a kind that the server does not know. Returns how it serves once it is installed. */
static serve_fn *start_uninstalled(struct run *run)
{
    run_need = CACHE_IF_KNOWN;
    run_start(run);
    run_need = CACHE_REQUIRED;
    run->m.streams = true;
    serve_fn *installed = run->m.f.serve;
    run->m.f.serve = serve_refusal;
    refusal = 404;
    refused = 0;
    model_change(&run->m, 1, 1);
    return installed;
}

/* A kind that is not installed is asked for less and less often, and is found when it comes. */
static void what_stays_absent_is_asked_for_rarely(void)
{
    struct run run;
    serve_fn *known = start_uninstalled(&run);
    run_watch(&run);
    run_for(&run, 86400 * NS_PER_S);
    OK(refused > 100 && refused < 250);
    run.m.f.serve = known;
    run_for(&run, 481 * NS_PER_S);
    OK(run_agrees(&run) && !cache_absent(run.cache));
    run_stop(&run);
}

static bool is_announced(void *context)
{
    (void)context;
    return true;
}

/* A kind whose installation is announced is not polled; nor is the announcement lost if the server is a moment late. */
static void what_is_announced_is_not_polled(void)
{
    struct run run;
    serve_fn *known = start_uninstalled(&run);
    run.watch = listwatch_start(&(struct listwatch_options){ .kube = run.m.f.kube,
                                                             .cache = run.cache,
                                                             .seed = 5,
                                                             .is_announced = is_announced,
                                                             .context = &run });
    run_for(&run, 86400 * NS_PER_S);
    EQ_INT(refused, 1);
    listwatch_retry(run.watch);
    run_for(&run, 100 * NS_PER_MS); /* announced, but not served yet */
    OK(refused > 1 && cache_absent(run.cache));
    run.m.f.serve = known;
    run_for(&run, NS_PER_S);
    OK(run_agrees(&run) && !cache_absent(run.cache));
    listwatch_retry(run.watch); /* no effect */
    model_change(&run.m, 2, 7);
    run_for(&run, NS_PER_S);
    OK(run_agrees(&run));
    run_stop(&run);
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
    OK(run_agrees(&run) && !cache_absent(run.cache));
    OK(run.troubles > 0);
    run.m.f.serve = known;
    model_change(&run.m, 2, 2);
    run_for(&run, 61 * NS_PER_S);
    OK(run_agrees(&run));
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
    OK(!run_agrees(&run));
    kube_send(run.m.f.kube, &(struct kube_request){ .verb = KUBE_GET, .path = S("/version") });
    run_for(&run, NS_PER_S);
    OK(run_agrees(&run));
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
    OK(run_agrees(&run));
    OK(str_find(buf_str(&run.m.f.log), S("sendInitialEvents=true")) != SIZE_MAX);
    run_stop(&run);
}

/* ---- in protobuf */

static const struct tap_case cases[] = {
    TAP(streams_where_it_can),
    TAP(lists_in_pages_elsewhere),
    TAP(notices_who_ignores_streaming),
    TAP(resumes_where_it_was),
    TAP(a_relist_reports_the_differences),
    TAP(a_relist_is_not_older),
    TAP(an_absence_needs_no_list),
    TAP(every_fault_is_survived),
    TAP(a_long_bad_day),
    TAP(failures_back_off),
    TAP(what_need_not_be_there_is_empty),
    TAP(what_stays_absent_is_asked_for_rarely),
    TAP(what_is_announced_is_not_polled),
    TAP(what_was_there_stays),
    TAP(a_pause_ends_when_another_is_answered),
    TAP(one_that_is_starting_streams_later),
};

static void the_same_in_protobuf(void)
{
    run_in_protobuf = true;
    for (size_t i = 0; i < countof(cases); i++)
        cases[i].run();
    run_in_protobuf = false;
}

int main(void)
{
    struct tap_case all[countof(cases) + 2] = { 0 };
    memcpy(all, cases, sizeof(cases));
    all[countof(cases)] = (struct tap_case)TAP(the_same_in_protobuf);
    return tap_run(all);
}
