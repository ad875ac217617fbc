/* Requests from a trace or a curve reach the servers of their model, whatever the tick. */
#include "tap.h"

#include "testbed/traffic.h"

#include "base/clock.h"
#include "net/http_client.h"

#include <math.h>

static const char *const csv = "s,p,o\n0,100,10\n1,100,10\n2,100,10\n3,100,10\n";

struct world {
    struct loop *loop;
    struct serving serving;
    struct traffic traffic;
    struct arena arena;
};

static void world_start(struct world *w)
{
    err_t e;
    *w = (struct world){ 0 };
    OK_CALL(loop_new(&(struct loop_options){ .time = LOOP_VIRTUAL, .start_wall_ns = NS_PER_S },
                     &w->loop, &e),
            &e);
    w->serving =
        (struct serving){ .loop = w->loop, .orphaned = traffic_reroute, .context = &w->traffic };
    w->traffic.serving = &w->serving;
}

static void world_stop(struct world *w)
{
    traffic_done(&w->traffic);
    serving_done(&w->serving);
    loop_free(w->loop);
    arena_done(&w->arena);
}

static void server(struct world *w, const char *name, const char *ip, const char *model)
{
    err_t e;
    OK_CALL(serving_put(&w->serving,
                        &(struct serving_pod){ .ns = S("llm"),
                                               .name = str_c(name),
                                               .ip = str_c(ip),
                                               .model = str_c(model),
                                               .accelerator = S("l40s") },
                        &e),
            &e);
}

static int source(struct world *w, const char *data, const char *trace, err_t *e)
{
    struct json *tree = NULL;
    OK_CALL(json_parse(&w->arena, str_c(data), &tree, e), e);
    return traffic_put(&w->traffic,
                       &(struct traffic_spec){ .ns = S("llm"),
                                               .name = S("chat"),
                                               .data = tree,
                                               .trace_csv = str_c(trace) },
                       e);
}

static void run(struct world *w, double seconds, double tick)
{
    for (double at = tick; at < seconds + tick / 2; at += tick)
        traffic_advance(&w->traffic, (int64_t)(at * 1e9));
}

/* A trace of 3 seconds and a bit, at twice its pace, plays 4 requests in each second and a half. */
static void a_trace_plays_over_again(void)
{
    for (double tick = 0.05; tick < 10; tick *= 3) {
        struct world w;
        err_t e;
        world_start(&w);
        server(&w, "a", "127.77.0.1", "m");
        OK_CALL(source(&w, "{\"model\":\"m\",\"rate\":\"2\"}", csv, &e), &e);
        run(&w, tick * floor(30 / tick), tick);
        double expected = tick * floor(30 / tick) / 1.5005 * 4;
        OK(fabs((double)w.traffic.sources.at[0]->sent - expected) <= 4);
        world_stop(&w);
    }
}

static void a_curve_sends_its_rate(void)
{
    struct world w;
    err_t e;
    world_start(&w);
    server(&w, "a", "127.77.0.1", "m");
    OK_CALL(source(&w, "{\"model\":\"m\",\"rate\":\"0s=0 10s=4 20s=0\",\"outputTokens\":\"5\"}", "",
                   &e),
            &e);
    run(&w, 200, 0.1);
    OK(fabs((double)w.traffic.sources.at[0]->sent - 400) < 5); /* two a second on average */
    world_stop(&w);
}

static void the_idler_server_gets_it(void)
{
    struct world w;
    err_t e;
    world_start(&w);
    server(&w, "a", "127.77.0.1", "m");
    server(&w, "b", "127.77.0.2", "m");
    server(&w, "c", "127.77.0.3", "other");
    OK_CALL(source(&w, "{\"model\":\"m\",\"rate\":\"20\",\"outputTokens\":\"500\"}", "", &e), &e);
    run(&w, 10, 0.1);
    struct vllm_server **s = w.serving.servers.at;
    size_t load[3];
    for (size_t i = 0; i < 3; i++)
        load[i] = (size_t)replica_running(&s[i]->replica) + s[i]->replica.waiting_n;
    OK(load[0] > 10);
    /* balanced by tokens, so nearly by requests */
    OK(load[0] * 4 <= load[1] * 5 && load[1] * 4 <= load[0] * 5);
    EQ_INT(load[2], 0);
    world_stop(&w);
}

/* What a server leaves behind goes on elsewhere, and waits while there is nowhere. */
static void nothing_is_lost_with_a_server(void)
{
    struct world w;
    err_t e;
    world_start(&w);
    server(&w, "a", "127.77.0.1", "m");
    OK_CALL(source(&w, "{\"model\":\"m\",\"rate\":\"10\",\"outputTokens\":\"100\"}", "", &e), &e);
    run(&w, 5, 0.1);
    uint64_t done = w.serving.servers.at[0]->replica.counters.succeeded,
             sent = w.traffic.sources.at[0]->sent;
    size_t open = (size_t)(sent - done);
    OK(open > 0);
    serving_remove(&w.serving, S("llm"), S("a"));
    EQ_INT(w.traffic.sources.at[0]->held.n, open);
    server(&w, "b", "127.77.0.2", "m");
    traffic_advance(&w.traffic, 6 * NS_PER_S);
    EQ_INT(w.traffic.sources.at[0]->held.n, 0);
    const struct replica *b = &w.serving.servers.at[0]->replica;
    OK((size_t)replica_running(b) + b->waiting_n + b->counters.succeeded >= open);
    world_stop(&w);
}

/* A server whose pod is deleted finishes what runs and gives back what waits. */
static void a_server_drains(void)
{
    struct world w;
    err_t e;
    world_start(&w);
    server(&w, "a", "127.77.0.1", "m");
    server(&w, "b", "127.77.0.2", "m");
    OK_CALL(source(&w, "{\"model\":\"m\",\"rate\":\"30\",\"outputTokens\":\"100\"}", "", &e), &e);
    run(&w, 5, 0.1);
    struct replica *a = &w.serving.servers.at[0]->replica, *b = &w.serving.servers.at[1]->replica;
    uint64_t sent = w.traffic.sources.at[0]->sent;
    OK(replica_running(a) > 0);
    OK(serving_drain(&w.serving, S("llm"), S("a"), 5 * NS_PER_S));
    EQ_INT(a->waiting_n, 0);
    traffic_advance(&w.traffic, 25 * NS_PER_S);
    OK(!serving_drain(&w.serving, S("llm"), S("a"), 25 * NS_PER_S)); /* it is done */
    EQ_INT(a->counters.succeeded, a->counters.ttft.count);           /* who got a token got all */
    OK(a->counters.succeeded + b->counters.succeeded > sent / 2);
    OK(!serving_drain(&w.serving, S("llm"), S("nobody"), 0));
    world_stop(&w);
}

static void nonsense_is_refused(void)
{
    const struct {
        const char *data, *trace, *says;
    } t[] = {
        { "{}", "", "model" },
        { "{\"model\":\"m\",\"rate\":\"fast\"}", "", "fast" },
        { "{\"model\":\"m\",\"promptTokens\":\"0\"}", "", "promptTokens" },
        { "{\"model\":\"m\"}", "x\ny\n", "line 2" },
    };
    struct world w;
    world_start(&w);
    for (size_t i = 0; i < countof(t); i++) {
        err_t e = { 0 };
        OK(source(&w, t[i].data, t[i].trace, &e) < 0);
        OK(strstr(e.text, t[i].says) && strstr(e.text, "llm/chat"));
    }
    err_t e;
    OK(serving_put(&w.serving,
                   &(struct serving_pod){ .ip = S("127.77.0.1"), .accelerator = S("TPU") },
                   &e) < 0);
    OK(strstr(e.text, "TPU"));
    world_stop(&w);
}

/* ---- the page, over HTTP */

struct page {
    bool done;
    struct buf text;
};

static void fetched(void *context, const struct http_response *response, const err_t *failure)
{
    struct page *page = context;
    page->done = true;
    if (!failure && response->status == 200)
        buf_put(&page->text, response->body);
}

static void metrics_are_served_on_its_address(void)
{
    struct world w;
    err_t e;
    world_start(&w);
    struct json *containers = NULL;
    OK_CALL(json_parse(&w.arena, S("[{\"ports\":[{\"name\":\"metrics\",\"containerPort\":8123}]}]"),
                       &containers, &e),
            &e);
    OK_CALL(serving_put(&w.serving,
                        &(struct serving_pod){ .ns = S("llm"),
                                               .name = S("a"),
                                               .ip = S("127.77.1.2"),
                                               .model = S("m"),
                                               .containers = containers },
                        &e),
            &e);
    struct http_client *client = NULL;
    OK_CALL(http_client_new(w.loop,
                            &(struct http_client_options){ .url = S("http://127.77.1.2:8123") },
                            &client, &e),
            &e);
    struct page page = { 0 };
    http_client_fetch(client, &(struct http_fetch){ .method = S("GET"),
                                                    .target = S("/metrics"),
                                                    .on_done = fetched,
                                                    .context = &page });
    while (!page.done)
        loop_turn(w.loop);
    OK(str_find(buf_str(&page.text), S("vllm:num_requests_waiting{model_name=\"m\"} 0")) !=
       SIZE_MAX);
    buf_done(&page.text);
    http_client_free(client);
    world_stop(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_trace_plays_over_again),
                                        TAP(a_curve_sends_its_rate),
                                        TAP(the_idler_server_gets_it),
                                        TAP(nothing_is_lost_with_a_server),
                                        TAP(a_server_drains),
                                        TAP(nonsense_is_refused),
                                        TAP(metrics_are_served_on_its_address),
                                        { 0 } });
}
