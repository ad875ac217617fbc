/* What a server can do with the offer to send protobuf. That the cache follows it in protobuf as in JSON is in
 * listwatch_test.c. */
#include "listwatch_run.h"

static void start_run(struct run *run, bool streams, enum offer offer)
{
    run_in_protobuf = true;
    run_start(run);
    run->m.streams = streams;
    run->m.offer = offer;
    model_change(&run->m, 1, 1);
    run_watch(run);
    run_for(run, 10 * NS_PER_S);
    OK(run_agrees(run));
}

/* The watch ends in this way once it has sent two more events. */
static void end_watch(struct run *run, enum fault fault)
{
    if (OK(run->m.watches != NULL))
        run->m.watches->fault = fault;
    for (int i = 2; i < 6; i++) {
        model_change(&run->m, i, i);
        run_for(run, 2 * NS_PER_S);
    }
    run_for(run, 50 * NS_PER_S);
    OK(run_agrees(run));
}

/* JSON is requested for good once protobuf was refused or was something else; JSON in its place is no failure. */
static void protobuf_is_an_offer(void)
{
    static const struct {
        enum offer first, later;
        bool trouble, json;
    } t[] = {
        { OFFER_PROTOBUF, OFFER_PROTOBUF, false, false },
        { OFFER_PROTOBUF, OFFER_JSON, false, false },
        { OFFER_JSON, OFFER_PROTOBUF, false, false },
        { OFFER_PROTOBUF, OFFER_REFUSE, false, true },
        { OFFER_REFUSE, OFFER_PROTOBUF, false, true },
        { OFFER_PROTOBUF, OFFER_LIE, true, true },
        { OFFER_LIE, OFFER_PROTOBUF, true, true },
    };
    for (size_t i = 0; i < 2 * countof(t); i++) {
        struct run run;
        start_run(&run, i % 2, t[i / 2].first);
        run.m.offer = t[i / 2].later;
        end_watch(&run, FAULT_END);
        OK(run.m.in_protobuf > 0);
        EQ_INT(run.m.in_json > 0, t[i / 2].json);
        EQ_INT(run.troubles > 0, t[i / 2].trouble);
        run_stop(&run);
    }
}

/* A frame that is cut proves nothing about the encoding, and neither does an error: the next request accepts protobuf
 * again. */
static void other_faults_do_not_end_it(void)
{
    static const enum fault faults[] = { FAULT_CUT, FAULT_ABORT, FAULT_GONE, FAULT_ERROR };
    for (size_t i = 0; i < 2 * countof(faults); i++) {
        struct run run;
        start_run(&run, i % 2, OFFER_PROTOBUF);
        end_watch(&run, faults[i / 2]);
        OK(run.troubles > 0);
        EQ_INT(run.m.in_json, 0);
        run_stop(&run);
    }
}

/* An error before the watch begins is a Status in protobuf; its reason decides what happens. */
static void a_status_is_read(void)
{
    for (int streams = 0; streams < 2; streams++) {
        struct run run;
        start_run(&run, streams, OFFER_PROTOBUF);
        run.m.compacted = 100; /* the version of the next watch is too old */
        run.m.watches->fault = FAULT_END;
        exchange_wake_stream(run.m.watches->x);
        run_for(&run, NS_PER_S);
        run.m.compacted = 0;
        OK(listwatch_stats(run.watch)->expired > 0);
        run_for(&run, 60 * NS_PER_S);
        OK(run_agrees(&run));
        EQ_INT(run.m.in_json, 0);
        run_stop(&run);
    }
}

/* A kind of the cluster's own is never requested in protobuf, and neither is a field that the table does not have. */
static void the_rest_stays_json(void)
{
    static const struct field odd[] = { { "spec.size", F_INT, offsetof(struct thing, size) } };
    const struct cache_spec others[] = {
        run_specs[0], { .resource = &resource_deployments, .keep = FIELDS(struct thing, odd) }
    };
    for (size_t i = 0; i < countof(others); i++) {
        struct run run = { 0 };
        err_t e;
        model_start(&run.m);
        memset(run.seen, -1, sizeof(run.seen));
        run.projector = projector_new();
        OK_CALL(cache_new(run.projector, &others[i], &run.cache, &e), &e);
        cache_handle(run.cache, run_on_change, &run);
        model_change(&run.m, 1, 1);
        run_watch(&run);
        run_for(&run, NS_PER_S);
        OK(run_agrees(&run));
        EQ_INT(run.m.in_protobuf, 0);
        run_stop(&run);
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(protobuf_is_an_offer),
                                        TAP(other_faults_do_not_end_it),
                                        TAP(a_status_is_read),
                                        TAP(the_rest_stays_json),
                                        { 0 } });
}
