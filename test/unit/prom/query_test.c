/* The query client against a scripted Prometheus on the same loop, in virtual time. */
#include "tap.h"

#include "base/buf.h"
#include "base/file.h"
#include "base/vec.h"
#include "net/http_server.h"
#include "prom/query.h"

#include <fcntl.h>
#include <unistd.h>

static const char VECTOR[] =
    "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
    "{\"metric\":{\"pod\":\"p\"},\"value\":[1,\"2.5\"]}]}}";

/* What the server does with request number i; the last entry applies to all later ones. */
struct step {
    int status; /* 0: never answers */
    const char *body;
};

static struct {
    struct loop *loop;
    struct http_server *server;
    struct prom_client *client;
    const struct step *steps;
    int requests;
    int64_t at_ns[16];
    VEC(struct exchange *) waiting;
    size_t most_connections;
    char method[8], path[64], query[8192], token[64];

    int done, good, unasked;
    int64_t done_ns;
    size_t series;
    double value;
    err_t failure;
} t;

static void keep(char *out, size_t room, str text)
{
    snprintf(out, room, STR_FMT, STR_ARG(text));
}

static void on_request(void *context, struct exchange *x)
{
    (void)context;
    keep(t.method, sizeof(t.method), exchange_method(x));
    keep(t.path, sizeof(t.path), exchange_path(x));
    bool post = str_eq(exchange_method(x), S("POST"));
    keep(t.query, sizeof(t.query), post ? exchange_body(x) : exchange_query(x));
    keep(t.token, sizeof(t.token), exchange_header(x, S("authorization")));
    if (t.requests < 16)
        t.at_ns[t.requests] = loop_mono_ns(t.loop);
    const struct step *step = &t.steps[0];
    for (int i = 0; i < t.requests && step[1].body; i++)
        step++;
    t.requests++;
    t.most_connections = MAX(t.most_connections, http_server_connections(t.server));
    if (step->status && !strstr(t.query, "hangs"))
        exchange_answer(x, step->status, HTTP_HEADERS({ S("content-type"), S("application/json") }),
                        str_c(step->body));
    else
        vec_push(&t.waiting, x);
}

static void on_done(void *context, const struct prom_result *result, const err_t *failure)
{
    (void)context;
    t.done++;
    t.done_ns = loop_mono_ns(t.loop);
    t.good += result != NULL;
    t.unasked += failure && failure->code == EBUSY;
    OK(!result != !failure);
    if (result) {
        t.series = result->n;
        t.value = result->n ? result->series[0].samples[0].value : 0;
    } else if (failure) {
        t.failure = *failure;
    }
}

static void start_client(const struct step *steps, struct prom_client_options options)
{
    memset(&t, 0, sizeof(t));
    t.steps = steps;
    err_t e;
    OK_CALL(loop_new(&(struct loop_options){ .time = LOOP_VIRTUAL }, &t.loop, &e), &e);
    OK_CALL(http_server_new(t.loop, &(struct http_server_options){ .on_request = on_request },
                            &t.server, &e),
            &e);
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", http_server_port(t.server));
    options.url = options.url.n ? options.url : str_c(url);
    options.seed = 7;
    OK_CALL(prom_client_new(t.loop, &options, &t.client, &e), &e);
}

static void stop(void)
{
    prom_client_free(t.client);
    for (size_t i = 0; i < t.waiting.n; i++)
        exchange_abort(t.waiting.at[i]);
    vec_done(&t.waiting);
    http_server_free(t.server);
    loop_free(t.loop);
}

static struct prom_call *ask(struct prom_query q)
{
    q.on_done = on_done;
    q.promql = q.promql.n ? q.promql : S("up");
    return prom_client_query(t.client, &q);
}

static void wait_for(const int *count, int want)
{
    for (int i = 0; i < 100000 && *count < want; i++)
        loop_turn(t.loop);
    OK(*count >= want);
}

static const struct step ANSWERS[] = { { 200, VECTOR }, { 0 } };

static void asks_an_instant_query(void)
{
    start_client(ANSWERS, (struct prom_client_options){ .token = S(" secret\n") });
    ask((struct prom_query){ .promql = S("a{b=\"c d\"}+1"), .time_ms = 1767611744005 });
    EQ_INT(t.done, 0);
    wait_for(&t.done, 1);
    EQ_STR(str_c(t.method), S("POST"));
    EQ_STR(str_c(t.path), S("/api/v1/query"));
    EQ_STR(str_c(t.query), S("query=a%7Bb%3D%22c%20d%22%7D%2B1&time=1767611744.005"));
    EQ_STR(str_c(t.token), S("Bearer secret"));
    EQ_INT(t.series, 1);
    EQ_REAL(t.value, 2.5);
    stop();
}

static void asks_a_range_query(void)
{
    start_client(ANSWERS, (struct prom_client_options){ 0 });
    ask((struct prom_query){ .start_ms = 1000, .end_ms = 61500, .step_ms = 15000 });
    wait_for(&t.done, 1);
    EQ_STR(str_c(t.path), S("/api/v1/query_range"));
    EQ_STR(str_c(t.query), S("query=up&start=1.000&end=61.500&step=15.000"));
    EQ_STR(str_c(t.token), S(""));
    stop();
}

/* If POST is refused, the query is sent again at once with GET, and so are all later ones that are short enough; a
 * refused GET is a failure. */
static void gets_where_it_may_not_post(void)
{
    static const int refusals[] = { 403, 405, 501 };
    char text[3000];
    memset(text, 'a', sizeof(text));
    for (size_t i = 0; i < countof(refusals); i++) {
        struct step steps[] = { { refusals[i], "" }, { 200, VECTOR }, { 0 } };
        start_client(steps, (struct prom_client_options){ 0 });
        int64_t before = loop_mono_ns(t.loop);
        ask((struct prom_query){ .promql = S("a b"), .time_ms = 1500 });
        wait_for(&t.done, 1);
        EQ_INT(t.requests, 2);
        EQ_INT((t.done_ns - before) / NS_PER_MS, 0);
        EQ_STR(str_c(t.method), S("GET"));
        EQ_STR(str_c(t.query), S("query=a%20b&time=1.500"));
        EQ_INT(t.series, 1);
        ask((struct prom_query){ 0 });
        wait_for(&t.done, 2);
        EQ_INT(t.requests, 3);
        EQ_STR(str_c(t.method), S("GET"));
        ask((struct prom_query){ .promql = { text, sizeof(text) } });
        wait_for(&t.done, 3);
        EQ_STR(str_c(t.method), S("POST"));
        EQ_INT(strlen(t.query), sizeof(text) + strlen("query="));
        stop();
    }
    static const struct step never[] = { { 403, "" }, { 0 } };
    start_client(never, (struct prom_client_options){ .retry = { 2, NS_PER_S, 1, 0 } });
    ask((struct prom_query){ 0 });
    wait_for(&t.done, 1);
    EQ_INT(t.requests, 3); /* a POST and two GETs */
    OK(strstr(t.failure.text, "403"));
    stop();
}

/* Whether the delay between two requests is `ms`, or up to a tenth more. */
static void check_pause(int before, int64_t ms)
{
    int64_t pause = t.at_ns[before + 1] - t.at_ns[before];
    OK(pause >= ms * NS_PER_MS && pause <= ms * NS_PER_MS * 12 / 10);
}

static void tries_again_with_growing_pauses(void)
{
    static const struct step steps[] = { { 503, "" },
                                         { 200, "<html>" },
                                         { 500, "{\"status\":\"error\",\"error\":\"x\"}" },
                                         { 200, VECTOR },
                                         { 0 } };
    start_client(steps, (struct prom_client_options){ 0 });
    ask((struct prom_query){ 0 });
    wait_for(&t.done, 1);
    EQ_INT(t.requests, 4);
    check_pause(0, 500);
    check_pause(1, 1000);
    check_pause(2, 2000);
    EQ_INT(t.series, 1);
    stop();
}

static void gives_up_with_the_last_failure(void)
{
    static const struct step steps[] = {
        { 503, "" },
        { 503, "{\"status\":\"error\",\"errorType\":\"timeout\",\"error\":\"query timed out\"}" },
        { 0 }
    };
    start_client(steps, (struct prom_client_options){ 0 });
    ask((struct prom_query){ 0 });
    wait_for(&t.done, 1);
    EQ_INT(t.requests, 5);
    OK(strstr(t.failure.text, "(timeout): query timed out"));
    stop();
    static const struct step plain[] = { { 503, "busy" }, { 0 } };
    start_client(plain,
                 (struct prom_client_options){
                     .retry = { .attempts = 2, .first_ns = NS_PER_S, .factor = 1, .jitter = 0 } });
    ask((struct prom_query){ 0 });
    wait_for(&t.done, 1);
    EQ_INT(t.requests, 2);
    OK(strstr(t.failure.text, "Prometheus answered 503 Service Unavailable"));
    stop();
}

static void does_not_repeat_a_wrong_query(void)
{
    static const struct step steps[] = {
        { 400, "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse error\"}" },
        { 0 }
    };
    start_client(steps, (struct prom_client_options){ 0 });
    ask((struct prom_query){ 0 });
    wait_for(&t.done, 1);
    EQ_INT(t.requests, 1);
    OK(strstr(t.failure.text, "rejected the query (bad_data): parse error"));
    stop();
}

static void ends_in_time(void)
{
    static const struct step silent[] = { { 0, "" }, { 0 } };
    start_client(silent, (struct prom_client_options){ 0 });
    int64_t before = loop_mono_ns(t.loop);
    ask((struct prom_query){ 0 });
    wait_for(&t.done, 1);
    EQ_INT((t.done_ns - before) / NS_PER_MS, 10000);
    EQ_INT(t.failure.code, ETIMEDOUT);
    OK(strstr(t.failure.text, "no response from Prometheus"));
    before = loop_mono_ns(t.loop);
    ask((struct prom_query){ .deadline_ns = before + 2 * NS_PER_S });
    wait_for(&t.done, 2);
    EQ_INT((t.done_ns - before) / NS_PER_MS, 1900);
    before = loop_mono_ns(t.loop);
    ask((struct prom_query){ .deadline_ns = before });
    wait_for(&t.done, 3);
    EQ_INT((t.done_ns - before) / NS_PER_MS, 1);
    stop();
    /* The third pause would end after the deadline: it is not waited for. */
    static const struct step busy[] = { { 503, "" }, { 0 } };
    start_client(busy, (struct prom_client_options){ .timeout_ns = 3 * NS_PER_S });
    before = loop_mono_ns(t.loop);
    ask((struct prom_query){ 0 });
    wait_for(&t.done, 1);
    EQ_INT(t.requests, 3);
    OK(t.done_ns - before < 2 * NS_PER_S);
    stop();
}

/* AT_ONCE queries are sent at once and as many more each second; none waits until earlier ones end. */
static void what_hangs_is_passed(void)
{
    enum { ASKED = 300, AT_ONCE = 128 };
    static const struct step silent[] = { { 0, "" }, { 0 } };
    struct prom_call *calls[ASKED];
    start_client(silent, (struct prom_client_options){ 0 });
    int64_t before = loop_mono_ns(t.loop);
    for (int i = 0; i < ASKED; i++)
        calls[i] = ask((struct prom_query){ 0 });
    prom_call_cancel(calls[AT_ONCE + 1]); /* while it waits */
    wait_for(&t.requests, AT_ONCE);
    EQ_INT((loop_mono_ns(t.loop) - before) / NS_PER_S, 0);
    wait_for(&t.requests, AT_ONCE + 1);
    EQ_INT((loop_mono_ns(t.loop) - before) / NS_PER_S, 1);
    prom_call_cancel(calls[0]); /* while it hangs */
    wait_for(&t.requests, ASKED - 1);
    EQ_INT((loop_mono_ns(t.loop) - before) / NS_PER_S, 2);
    wait_for(&t.done, ASKED - 2);
    EQ_INT((t.done_ns - before) / NS_PER_MS, 10000);
    EQ_INT(t.failure.code, ETIMEDOUT);
    for (int i = 0; i < ASKED; i++)
        ask((struct prom_query){ .deadline_ns = loop_mono_ns(t.loop) + 600 * NS_PER_MS });
    wait_for(&t.done, ASKED - 2 + ASKED); /* also those whose turn never came */
    OK(t.requests < ASKED - 1 + ASKED);
    for (int i = 0; i < AT_ONCE + 1; i++)
        ask((struct prom_query){ 0 });
    stop(); /* with one that waits */
    EQ_INT(t.done, ASKED - 2 + ASKED + AT_ONCE + 1);
}

/* At first it is not known which queries hang: many at once shorten the time that each stays fresh. Later they have
 * slots of their own, and the others are not delayed at all. */
static void suspect_queries_delay_no_others(void)
{
    enum { HUNG = 3000, WELL = 50, PLACES = 1024 };
    start_client(ANSWERS, (struct prom_client_options){ 0 });
    for (int round = 0; round < 3; round++) {
        int64_t before = loop_mono_ns(t.loop);
        t.done = t.good = 0;
        for (int i = 0; i < HUNG; i++)
            ask((struct prom_query){ .promql = S("hangs"), .suspect = round > 0 });
        for (int i = 0; i < WELL; i++)
            ask((struct prom_query){ 0 });
        while (t.done < HUNG + WELL && t.good < WELL)
            loop_turn(t.loop);
        EQ_INT(t.good, WELL);
        OK(t.done_ns - before < (round ? 100 * NS_PER_MS : 6 * NS_PER_S));
        if (round < 2) { /* else they end with the client */
            while (t.done < HUNG + WELL)
                loop_turn(t.loop);
            EQ_INT(t.failure.code, ETIMEDOUT);
            EQ_INT((t.done_ns - before) / NS_PER_S, 10);
        }
    }
    OK(t.most_connections <= PLACES);
    stop();
}

/* A call that is suspect without reason loses nothing while there are slots; one that was never sent is not reported as
 * hanging. */
static void doubts_end_with_an_answer(void)
{
    enum { PLACES = 384 };
    start_client(ANSWERS, (struct prom_client_options){ 0 });
    int64_t before = loop_mono_ns(t.loop);
    ask((struct prom_query){ .suspect = true });
    wait_for(&t.good, 1);
    EQ_INT((t.done_ns - before) / NS_PER_S, 0);
    struct prom_call *first = ask((struct prom_query){ .promql = S("hangs"), .suspect = true });
    for (int i = 1; i < PLACES; i++)
        ask((struct prom_query){ .promql = S("hangs"), .suspect = true });
    ask((struct prom_query){ .suspect = true });
    wait_for(&t.requests, 1 + PLACES);
    EQ_INT(t.good, 1);
    prom_call_cancel(first);
    wait_for(&t.good, 2);
    EQ_INT((t.done_ns - before) / NS_PER_S, 0);
    for (int i = 0; i < 1000; i++)
        ask((struct prom_query){ .promql = S("hangs"),
                                 .deadline_ns = loop_mono_ns(t.loop) + 150 * NS_PER_MS });
    t.done = 0;
    wait_for(&t.done, 1000);
    OK(t.unasked > 0 && t.unasked <= 1000 - 128);
    stop();
}

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    OK(file && fputs(text, file) >= 0);
    if (file)
        fclose(file);
}

static void reads_the_token_again(void)
{
    char path[] = "/tmp/flyball-token-XXXXXX";
    int fd = mkstemp(path);
    OK(fd >= 0);
    close(fd);
    write_file(path, "one\n");
    static const struct step steps[] = { { 401, "" }, { 200, VECTOR }, { 0 } };
    start_client(steps, (struct prom_client_options){ .token_file = path });
    ask((struct prom_query){ 0 });
    wait_for(&t.requests, 1);
    EQ_STR(str_c(t.token), S("Bearer one"));
    write_file(path, "two\n");
    wait_for(&t.done, 1);
    EQ_STR(str_c(t.token), S("Bearer two"));
    unlink(path); /* the last one stays in use */
    ask((struct prom_query){ 0 });
    wait_for(&t.done, 2);
    EQ_STR(str_c(t.token), S("Bearer two"));
    struct prom_client *none = NULL;
    err_t e;
    OK(prom_client_new(t.loop,
                       &(struct prom_client_options){ .url = S("http://h"), .token_file = path },
                       &none, &e) < 0 &&
       !none && strstr(e.text, path));
    stop();
}

static void bounds_the_answer(void)
{
    start_client(ANSWERS,
                 (struct prom_client_options){ .max_body_bytes = 50, .retry = { .attempts = 1 } });
    ask((struct prom_query){ 0 });
    wait_for(&t.done, 1);
    EQ_INT(t.failure.code, EMSGSIZE);
    OK(strstr(t.failure.text, "larger than 50 bytes"));
    stop();
}

static void can_be_cancelled(void)
{
    static const struct step steps[] = { { 0, "" }, { 503, "" }, { 0 } };
    start_client(steps, (struct prom_client_options){ 0 });
    struct prom_call *waiting = ask((struct prom_query){ 0 });
    wait_for(&t.requests, 1);
    prom_call_cancel(waiting);
    struct prom_call *pausing = ask((struct prom_query){ 0 });
    wait_for(&t.requests, 2);
    loop_turn(t.loop);
    prom_call_cancel(pausing);
    prom_call_cancel(ask((struct prom_query){ 0 }));
    EQ_INT(t.done, 0);
    ask((struct prom_query){ 0 });
    ask((struct prom_query){ 0 });
    prom_client_free(t.client);
    t.client = NULL;
    EQ_INT(t.done, 2);
    EQ_INT(t.failure.code, ECANCELED);
    stop();
}

static void reports_an_unreachable_server(void)
{
    start_client(ANSWERS, (struct prom_client_options){ .url = S("http://127.0.0.1:1"),
                                                        .retry = { .attempts = 1 } });
    ask((struct prom_query){ 0 });
    wait_for(&t.done, 1);
    OK(strstr(t.failure.text, "no response from Prometheus"));
    stop();
    struct prom_client *none = NULL;
    err_t e;
    struct loop *loop;
    OK_CALL(loop_new(&(struct loop_options){ 0 }, &loop, &e), &e);
    OK(prom_client_new(loop, &(struct prom_client_options){ .url = S("prometheus:9090") }, &none,
                       &e) < 0 &&
       !none);
    loop_free(loop);
}

static void escapes_values(void)
{
    auto_buf struct buf out = { 0 };
    prom_query_escape(&out, S("a\\b\"c\nd"));
    EQ_STR(buf_str(&out), S("a\\\\b\\\"c\nd"));
    buf_clear(&out); /* a line break inside quotes would be a syntax error */
    prom_query_matcher(&out, "model_name", S("a\"b\nc\n"));
    EQ_STR(buf_str(&out), S("model_name=\"a\\\"b\\nc\\n\""));
    buf_clear(&out);
    prom_query_matcher(&out, "pod", S(""));
    EQ_STR(buf_str(&out), S("pod=\"\""));
}

static void a_token_is_not_sent_in_the_clear(void)
{
    struct loop *loop;
    struct prom_client *client = NULL;
    err_t e = { 0 };
    OK_CALL(loop_new(&(struct loop_options){ .time = LOOP_VIRTUAL }, &loop, &e), &e);
    struct prom_client_options o = { .url = S("http://prometheus.example:9090"), .token = S("x") };
    EQ_INT(prom_client_new(loop, &o, &client, &e), -EPERM);
    OK(strstr(e.text, "--allow-insecure-token"));
    o.insecure_token = true;
    OK_CALL(prom_client_new(loop, &o, &client, &e), &e);
    prom_client_free(client);
    o = (struct prom_client_options){ .url = S("http://prometheus.example:9090") };
    OK_CALL(prom_client_new(loop, &o, &client, &e), &e);
    prom_client_free(client);
    loop_free(loop);
}

int main(void)
{
    file_raise_limit();
    return tap_run((struct tap_case[]){ TAP(asks_an_instant_query),
                                        TAP(asks_a_range_query),
                                        TAP(gets_where_it_may_not_post),
                                        TAP(tries_again_with_growing_pauses),
                                        TAP(gives_up_with_the_last_failure),
                                        TAP(does_not_repeat_a_wrong_query),
                                        TAP(ends_in_time),
                                        TAP(what_hangs_is_passed),
                                        TAP(suspect_queries_delay_no_others),
                                        TAP(doubts_end_with_an_answer),
                                        TAP(reads_the_token_again),
                                        TAP(bounds_the_answer),
                                        TAP(can_be_cancelled),
                                        TAP(reports_an_unreachable_server),
                                        TAP(escapes_values),
                                        TAP(a_token_is_not_sent_in_the_clear),
                                        { 0 } });
}
