/* Events: what is written, what is counted, combined and dropped, and that failure never hurts. */
#include "fake.h"
#include "kube/correlate.h"
#include "kube/events.h"

struct run {
    struct fake f;
    struct events *events;
    int fail;       /* so many requests fail with 503 */
    bool forgotten; /* patches answer 404 */
};

static void serve(struct fake *f, struct exchange *x)
{
    struct run *run = container_of(f, struct run, f);
    if (run->fail-- > 0)
        fake_answer(x, 503, "{}");
    else if (run->forgotten && str_eq(exchange_method(x), S("PATCH")))
        fake_answer(x, 404, "{\"reason\":\"NotFound\"}");
    else
        fake_answer(x, 201, "{}");
}

static void run_start(struct run *run)
{
    *run = (struct run){ 0 };
    fake_start(&run->f, serve);
    run->events = events_new(run->f.kube, "flyball");
}

static void run_stop(struct run *run)
{
    events_free(run->events);
    fake_stop(&run->f);
}

static void emit(struct run *run, const char *name, const char *message)
{
    events_emit(run->events, &(struct kube_event){ .resource = &resource_hpas,
                                                   .ns = S("ns"),
                                                   .name = str_c(name),
                                                   .uid = S("u-1"),
                                                   .reason = "Scaled",
                                                   .message = str_c(message) });
}

static size_t count(const struct run *run, const char *what)
{
    size_t n = 0, at;
    for (str rest = buf_str(&run->f.log); (at = str_find(rest, str_c(what))) != SIZE_MAX; n++)
        rest = str_from(rest, at + 1);
    return n;
}

static void a_new_event_is_written_whole(void)
{
    struct run run;
    run_start(&run);
    emit(&run, "web", "1 -> 5");
    fake_for(&run.f, NS_PER_S);
    EQ_STR(buf_str(&run.f.log),
           S("POST /api/v1/namespaces/ns/events?fieldManager=flyball "
             "{\"metadata\":{\"name\":\"web.186cc6acd4b00000\",\"namespace\":\"ns\"},"
             "\"involvedObject\":{\"apiVersion\":\"autoscaling/v2\",\"kind\":"
             "\"HorizontalPodAutoscaler\",\"name\":\"web\",\"namespace\":\"ns\",\"uid\":\"u-1\"},"
             "\"reason\":\"Scaled\",\"message\":\"1 -> 5\",\"type\":\"Normal\",\"source\":"
             "{\"component\":\"flyball\"},\"reportingComponent\":\"flyball\",\"reportingInstance\":"
             "\"\",\"count\":1,\"firstTimestamp\":\"2025-10-09T08:53:20Z\",\"lastTimestamp\":"
             "\"2025-10-09T08:53:20Z\"}\n"));
    run_stop(&run);
}

/* Time stands still within a turn; names must not. */
static void events_of_one_turn_have_names_of_their_own(void)
{
    struct run run;
    run_start(&run);
    emit(&run, "web", "1 -> 5");
    emit(&run, "web", "5 -> 9");
    fake_for(&run.f, NS_PER_S);
    EQ_INT(count(&run, "\"name\":\"web.186cc6acd4b00000\""), 1);
    EQ_INT(count(&run, "\"name\":\"web.186cc6acd4b00001\""), 1);
    run_stop(&run);
}

static void a_repeat_raises_the_count(void)
{
    struct run run;
    run_start(&run);
    emit(&run, "web", "a");
    emit(&run, "web", "a"); /* while the first is under way */
    fake_for(&run.f, 5 * NS_PER_S);
    emit(&run, "web", "a");
    fake_for(&run.f, NS_PER_S);
    EQ_INT(count(&run, "POST "), 1);
    EQ_INT(count(&run, "PATCH /api/v1/namespaces/ns/events/web.186cc6acd4b00000"), 2);
    OK(count(&run, "{\"count\":3,\"message\":\"a\",\"lastTimestamp\":\"2025-10-09T08:53:25Z\"}"));
    run.forgotten = true;
    emit(&run, "web", "a");
    fake_for(&run.f, NS_PER_S);
    EQ_INT(count(&run, "POST "), 2); /* the server had forgotten it */
    run_stop(&run);
}

static void failures_are_tried_again_and_then_dropped(void)
{
    struct run run;
    run_start(&run);
    run.fail = 3;
    emit(&run, "web", "a");
    fake_for(&run.f, 29 * NS_PER_S);
    EQ_INT(count(&run, "POST "), 3);
    fake_for(&run.f, 2 * NS_PER_S);
    EQ_INT(count(&run, "POST "), 4);
    buf_clear(&run.f.log);
    run.fail = 1000;
    emit(&run, "web", "b");
    fake_for(&run.f, 600 * NS_PER_S);
    EQ_INT(count(&run, "POST "), 12);
    run.fail = 0;
    emit(&run, "web", "c");
    fake_for(&run.f, NS_PER_S);
    EQ_INT(count(&run, "\"message\":\"c\""), 1);
    run_stop(&run);
}

static void one_object_cannot_flood(void)
{
    struct run run;
    run_start(&run);
    for (int i = 0; i < 100; i++) {
        emit(&run, "noisy", "the same");
        fake_for(&run.f, NS_PER_MS); /* each is sent: those that wait would be merged */
    }
    emit(&run, "calm", "x");
    fake_for(&run.f, 100 * NS_PER_S);
    EQ_INT(count(&run, "POST ") + count(&run, "PATCH "), 26);
    fake_for(&run.f, 301 * NS_PER_S);
    emit(&run, "noisy", "the same");
    emit(&run, "noisy", "the same");
    fake_for(&run.f, NS_PER_S);
    EQ_INT(count(&run, "POST ") + count(&run, "PATCH "), 27); /* one more in 300 s */
    run_stop(&run);
}

/* Repetitions of an event that waits become one request with the last count. */
static void repetitions_are_merged_while_they_wait(void)
{
    struct run run;
    run_start(&run);
    for (int i = 0; i < 10; i++)
        emit(&run, "web", "a");
    fake_for(&run.f, NS_PER_S);
    EQ_INT(count(&run, "POST "), 1);
    EQ_INT(count(&run, "PATCH "), 1);
    OK(count(&run, "{\"count\":10,"));
    run_stop(&run);
}

/* Requests for workloads that wait for their rate limit, five a second, and so many objects with an event. */
static void emit_in_crowd(struct run *run, int crowd, int objects, bool is_warning, int64_t for_ns)
{
    for (int i = 0; i < crowd; i++)
        kube_send(run->f.kube,
                  &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                          .resource = &resource_hpas,
                                          .ns = S("ns"),
                                          .name = S("web"),
                                          .timeout_ns = 600 * NS_PER_S,
                                          .body = S("{\"metadata\":{\"uid\":\"u\"}}") });
    for (int i = 0; i < objects; i++) {
        char name[40];
        snprintf(name, sizeof(name), "object-%d", i);
        events_emit(run->events, &(struct kube_event){ .resource = &resource_hpas,
                                                       .ns = S("ns"),
                                                       .name = str_c(name),
                                                       .warning = is_warning && i % 10 == 0,
                                                       .reason = "Scaled",
                                                       .message = str_c(name) });
    }
    fake_for(&run->f, for_ns);
}

/* While more important requests wait, 50 events wait behind them, or none if very many do, and warnings beyond that. */
static void a_storm_writes_few_normal_events(void)
{
    static const struct {
        int crowd, objects;
        bool is_warning;
        int written;
    } t[] = { { 20, 40, false, 40 },
              { 20, 500, false, 50 },
              { 20, 500, true, 95 },
              { 120, 40, false, 0 },
              { 120, 500, true, 50 } };
    for (size_t i = 0; i < countof(t); i++) {
        struct run run = { 0 };
        fake_start_limited(&run.f, serve, (struct kube_options){ .rate = 5, .burst = 1 });
        run.events = events_new(run.f.kube, "flyball");
        emit_in_crowd(&run, t[i].crowd, t[i].objects, t[i].is_warning, 300 * NS_PER_S);
        EQ_INT((int64_t)count(&run, "POST "), t[i].written);
        emit(&run, "later", "after the storm");
        fake_for(&run.f, 10 * NS_PER_S);
        EQ_INT((int64_t)count(&run, "after the storm"), 1);
        run_stop(&run);
    }
}

/* The reports of a storm come when its changes are done, and nothing waits for a moment. They are part of it. */
static void a_storm_is_not_over_at_once(void)
{
    struct run run = { 0 };
    fake_start_limited(&run.f, serve, (struct kube_options){ .rate = 100, .burst = 1 });
    run.events = events_new(run.f.kube, "flyball");
    emit_in_crowd(&run, 120, 0, false, 3 * NS_PER_S);
    for (int i = 0; i < 5; i++) { /* fewer at a time, for longer */
        EQ_INT((int64_t)kube_crowd(run.f.kube), KUBE_STORM);
        emit(&run, "web", "in the storm");
        emit_in_crowd(&run, 20, 0, false, 5 * NS_PER_S);
    }
    fake_for(&run.f, 10 * NS_PER_S);
    EQ_INT((int64_t)kube_crowd(run.f.kube), 0);
    emit(&run, "web", "after it");
    fake_for(&run.f, NS_PER_S);
    EQ_INT((int64_t)count(&run, "in the storm"), 0);
    EQ_INT((int64_t)count(&run, "after it"), 1);
    run_stop(&run);
}

static void similar_ones_are_combined(void)
{
    struct correlate c = { 0 };
    char message[20];
    int64_t now = NS_PER_S;
    for (int i = 0; i < 14; i++) {
        snprintf(message, sizeof(message), "m%d", i);
        struct correlated fate =
            correlate(&c, &(struct correlate_in){ S("object"), S("alike"), str_c(message) }, now);
        EQ_INT(fate.combined, i >= 10);
        EQ_INT(fate.count, i < 10 ? 1 : i - 9);
    }
    now += 601 * NS_PER_S;
    struct correlated fate =
        correlate(&c, &(struct correlate_in){ S("object"), S("alike"), S("m99") }, now);
    OK(!fate.combined && fate.count == 1);
    correlate_done(&c);
}

static void memory_is_bounded(void)
{
    struct correlate c = { 0 };
    char name[40];
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof(name), "object %d", i);
        correlate(&c, &(struct correlate_in){ str_c(name), str_c(name), S("m") }, NS_PER_S);
    }
    OK(c.facts.n <= 3 * 1024);
    correlate_done(&c);
}

static void long_messages_are_cut(void)
{
    struct run run;
    run_start(&run);
    auto_buf struct buf text = { 0 };
    for (int i = 0; i < 1023; i++)
        buf_putc(&text, 'x');
    buf_put(&text, S("\xc3\xa9 and more"));
    emit(&run, "web", text.p);
    fake_for(&run.f, NS_PER_S);
    EQ_INT(count(&run, "xxx\",\"type\""), 1); /* not in the middle of the letter */
    run_stop(&run);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_new_event_is_written_whole),
                                        TAP(events_of_one_turn_have_names_of_their_own),
                                        TAP(a_repeat_raises_the_count),
                                        TAP(failures_are_tried_again_and_then_dropped),
                                        TAP(one_object_cannot_flood),
                                        TAP(repetitions_are_merged_while_they_wait),
                                        TAP(a_storm_writes_few_normal_events),
                                        TAP(a_storm_is_not_over_at_once),
                                        TAP(similar_ones_are_combined),
                                        TAP(memory_is_bounded),
                                        TAP(long_messages_are_cut),
                                        { 0 } });
}
