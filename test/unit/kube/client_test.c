/* The client: requests as they go out, answers as they come in, retries, limits and the gate. */
#include "fake.h"

struct seen {
    bool done;
    int code;
    enum kube_reason reason;
    char failure[300], name[60];
    int64_t at_ns;
    struct fake *f;
};

static void on_reply(void *context, const struct kube_reply *reply)
{
    struct seen *seen = context;
    seen->done = true;
    seen->code = reply->code;
    seen->reason = reply->reason;
    seen->at_ns = loop_mono_ns(seen->f->loop);
    snprintf(seen->failure, sizeof(seen->failure), "%s", reply->failure ? reply->failure : "");
    snprintf(seen->name, sizeof(seen->name), STR_FMT,
             STR_ARG(json_text(json_at(reply->object, "metadata", "name", NULL))));
}

static struct seen ask(struct fake *f, struct kube_request request)
{
    struct seen seen = { .f = f };
    request.done = on_reply;
    request.context = &seen;
    kube_send(f->kube, &request);
    OK(!seen.done);
    fake_until(f, &seen.done);
    return seen;
}

static void expect_log(struct fake *f, const char *want)
{
    EQ_STR(buf_str(&f->log), str_c(want));
    buf_clear(&f->log);
}

/* ---- */

static void serve_pod(struct fake *f, struct exchange *x)
{
    (void)f;
    fake_answer(x, 200, "{\"metadata\":{\"name\":\"p\"}}");
}

static void every_verb(void)
{
    struct fake f;
    fake_start(&f, serve_pod);
    const struct {
        struct kube_request request;
        const char *log;
    } t[] = {
        { { .verb = KUBE_GET, .resource = &resource_pods, .ns = S("a"), .name = S("b") },
          "GET /api/v1/namespaces/a/pods/b\n" },
        { { .verb = KUBE_LIST,
            .resource = &resource_pods,
            .label_selector = S("a=b,c"),
            .field_selector = S("spec.nodeName=n"),
            .query = S("limit=1") },
          "GET /api/v1/pods?labelSelector=a%3Db%2Cc&fieldSelector=spec.nodeName%3Dn&limit=1\n" },
        { { .verb = KUBE_CREATE,
            .resource = &resource_pods,
            .ns = S("a"),
            .name = S("b"),
            .body = S("{}") },
          "POST /api/v1/namespaces/a/pods?fieldManager=flyball {}\n" },
        { { .verb = KUBE_UPDATE,
            .resource = &resource_deployments,
            .ns = S("a"),
            .name = S("b"),
            .subresource = "scale",
            .body = S("{}") },
          "PUT /apis/apps/v1/namespaces/a/deployments/b/scale?fieldManager=flyball {}\n" },
        { { .verb = KUBE_MERGE_PATCH,
            .resource = &resource_pods,
            .ns = S("a"),
            .name = S("b"),
            .subresource = "resize",
            .body = S("{}"),
            .dry_run = true },
          "PATCH /api/v1/namespaces/a/pods/b/resize?fieldManager=flyball&dryRun=All {}\n" },
        { { .verb = KUBE_APPLY,
            .resource = &resource_services,
            .ns = S("a"),
            .name = S("b"),
            .body = S("{}") },
          "PATCH /api/v1/namespaces/a/services/b?force=true&fieldManager=flyball {}\n" },
        { { .verb = KUBE_DELETE, .resource = &resource_nodes, .name = S("b") },
          "DELETE /api/v1/nodes/b\n" },
        { { .verb = KUBE_GET, .path = S("/version") }, "GET /version\n" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct seen seen = ask(&f, t[i].request);
        EQ_INT(seen.code, 200);
        EQ_STR(str_c(seen.failure), S(""));
        EQ_STR(str_c(seen.name), S("p"));
        expect_log(&f, t[i].log);
    }
    fake_stop(&f);
}

static void serve_nul(struct fake *f, struct exchange *x)
{
    (void)f;
    fake_answer(x, 200, "{\"metadata\":{\"name\":\"p\\u0000q\",\"namespace\":\"\\u0000\"}}");
}

static void on_nul(void *context, const struct kube_reply *reply)
{
    const struct json *meta = json_get(reply->object, "metadata");
    str name = json_text(json_get(meta, "name")), ns = json_text(json_get(meta, "namespace"));
    /* a slice and a C string of it must be the same text: code that copies by one and reads by the other over-reads */
    EQ_STR(name, str_c(name.p));
    EQ_STR(name, S("p\xef\xbf\xbdq"));
    EQ_STR(ns, S("\xef\xbf\xbd"));
    OK(str_find(reply->body, S("u0000")) == SIZE_MAX);
    *(bool *)context = true;
}

static void names_in_answers_have_no_nul(void)
{
    struct fake f;
    bool done = false;
    fake_start(&f, serve_nul);
    kube_send(f.kube, &(struct kube_request){ .verb = KUBE_GET,
                                              .resource = &resource_pods,
                                              .ns = S("ns"),
                                              .name = S("p"),
                                              .done = on_nul,
                                              .context = &done });
    fake_until(&f, &done);
    fake_stop(&f);
}

static str last_type;

static void serve_type(struct fake *f, struct exchange *x)
{
    static char text[100];
    (void)f;
    str type = exchange_header(x, S("content-type"));
    snprintf(text, sizeof(text), STR_FMT, STR_ARG(type));
    last_type = str_c(text);
    OK(str_starts(exchange_header(x, S("user-agent")), S("flyball/")));
    EQ_STR(exchange_header(x, S("accept")), S("application/json"));
    fake_answer(x, 200, "{}");
}

static void patches_say_their_kind(void)
{
    static const struct {
        enum kube_verb verb;
        const char *type;
    } t[] = { { KUBE_JSON_PATCH, "application/json-patch+json" },
              { KUBE_MERGE_PATCH, "application/merge-patch+json" },
              { KUBE_STRATEGIC_PATCH, "application/strategic-merge-patch+json" },
              { KUBE_APPLY, "application/apply-patch+yaml" },
              { KUBE_CREATE, "application/json" } };
    struct fake f;
    fake_start(&f, serve_type);
    for (size_t i = 0; i < countof(t); i++) {
        ask(&f, (struct kube_request){ .verb = t[i].verb,
                                       .resource = &resource_pods,
                                       .ns = S("a"),
                                       .name = S("b"),
                                       .body = S("[]") });
        EQ_STR(last_type, str_c(t[i].type));
    }
    fake_stop(&f);
}

/* ---- */

static const struct refusal {
    int status;
    const char *body;
    enum kube_reason reason;
    const char *says;
} refusals[] = {
    { 404,
      "{\"kind\":\"Status\",\"reason\":\"NotFound\",\"message\":\"pods \\\"b\\\" not found\",\"code\":404}",
      KUBE_NOT_FOUND, "get pods a/b: server returned 404 Not Found: pods \"b\" not found" },
    { 409, "{\"reason\":\"AlreadyExists\",\"message\":\"m\"}", KUBE_ALREADY_EXISTS,
      "409 Conflict: m" },
    { 409, "{\"reason\":\"Conflict\"}", KUBE_CONFLICT, "409 Conflict" },
    { 410, "{\"reason\":\"Expired\"}", KUBE_GONE, "410 Gone" },
    { 504,
      "{\"reason\":\"Timeout\",\"details\":{\"causes\":[{\"reason\":\"ResourceVersionTooLarge\"}]}}",
      KUBE_VERSION_TOO_LARGE, "504" },
    { 422, "{\"reason\":\"Invalid\"}", KUBE_INVALID, "422" },
    { 502, "<html>bad gateway</html>", KUBE_UNAVAILABLE, "502 Bad Gateway: <html>bad gateway" },
    { 418, "", KUBE_REFUSED, "418" },
    { 200, "{\"cut\":", KUBE_NO_ANSWER, "invalid JSON" },
};

static void serve_refusal(struct fake *f, struct exchange *x)
{
    const struct refusal *r = &refusals[f->requests - 1];
    fake_answer(x, r->status, r->body);
}

static void refusals_have_reasons(void)
{
    struct fake f;
    fake_start(&f, serve_refusal);
    for (size_t i = 0; i < countof(refusals); i++) {
        struct seen seen =
            ask(&f,
                (struct kube_request){
                    .verb = KUBE_GET, .resource = &resource_pods, .ns = S("a"), .name = S("b") });
        EQ_INT(seen.code, refusals[i].status);
        EQ_INT(seen.reason, refusals[i].reason);
        if (!OK(strstr(seen.failure, refusals[i].says)))
            printf("# failure: %s\n", seen.failure);
    }
    EQ_INT(f.requests, (int)countof(refusals)); /* none was tried again */
    fake_stop(&f);
}

static int status;

static void serve_status(struct fake *f, struct exchange *x)
{
    (void)f;
    fake_answer(x, status, "{}");
}

static enum kube_reason reason_of(struct fake *f, int answer)
{
    status = answer;
    return ask(f, (struct kube_request){ .verb = KUBE_GET, .path = S("/version") }).reason;
}

static void a_server_that_is_starting_forbids_nothing_for_good(void)
{
    struct fake f;
    fake_start(&f, serve_status);
    EQ_INT(reason_of(&f, 403), KUBE_FORBIDDEN);
    EQ_INT(reason_of(&f, 503), KUBE_UNAVAILABLE);
    EQ_INT(reason_of(&f, 403), KUBE_UNAVAILABLE);
    EQ_INT(reason_of(&f, 200), KUBE_OK);
    EQ_INT(reason_of(&f, 403), KUBE_UNAVAILABLE); /* it reads its roles one by one */
    fake_for(&f, 31 * NS_PER_S);
    EQ_INT(reason_of(&f, 403), KUBE_FORBIDDEN);
    EQ_INT(reason_of(&f, 503), KUBE_UNAVAILABLE);
    EQ_INT(reason_of(&f, 403), KUBE_UNAVAILABLE);
    fake_for(&f, 31 * NS_PER_S);
    EQ_INT(reason_of(&f, 403), KUBE_FORBIDDEN); /* and nothing else was heard of it */
    fake_stop(&f);
}

/* ---- */

static void serve_busy(struct fake *f, struct exchange *x)
{
    if (f->requests < 4)
        exchange_answer(x, f->requests == 2 ? 503 : 429, HTTP_HEADERS({ S("retry-after"), S("3") }),
                        S("{}"));
    else
        fake_answer(x, 200, "{\"metadata\":{\"name\":\"p\"}}");
}

static void waits_as_the_server_asks(void)
{
    struct fake f;
    fake_start(&f, serve_busy);
    int64_t start = loop_mono_ns(f.loop);
    struct seen seen =
        ask(&f,
            (struct kube_request){
                .verb = KUBE_CREATE, .resource = &resource_pods, .ns = S("a"), .body = S("{}") });
    EQ_INT(seen.code, 200);
    EQ_INT(f.requests, 4);
    EQ_INT((seen.at_ns - start) / NS_PER_S, 9);
    fake_stop(&f);
}

static void serve_always_busy(struct fake *f, struct exchange *x)
{
    (void)f;
    exchange_answer(x, 429, HTTP_HEADERS({ S("retry-after"), S("1") }),
                    S("{\"reason\":\"TooManyRequests\"}"));
}

static void gives_up_on_a_busy_server(void)
{
    struct fake f;
    fake_start(&f, serve_always_busy);
    struct seen seen =
        ask(&f, (struct kube_request){ .verb = KUBE_GET, .resource = &resource_pods });
    EQ_INT(seen.reason, KUBE_TOO_MANY_REQUESTS);
    EQ_INT(f.requests, 10);
    fake_stop(&f);
}

/* ---- */

static void serve_cut(struct fake *f, struct exchange *x)
{
    if (f->requests < 3)
        exchange_abort(x);
    else
        fake_answer(x, 200, "{}");
}

static void only_reads_are_repeated(void)
{
    struct fake f;
    fake_start(&f, serve_cut);
    struct seen seen =
        ask(&f, (struct kube_request){ .verb = KUBE_GET, .resource = &resource_pods });
    EQ_INT(seen.code, 200);
    f.requests = 0;
    seen = ask(&f, (struct kube_request){
                       .verb = KUBE_CREATE, .resource = &resource_pods, .body = S("{}") });
    EQ_INT(seen.reason, KUBE_NO_ANSWER);
    EQ_INT(f.requests, 1);
    fake_stop(&f);
}

/* ---- */

static void requests_are_spread(void)
{
    struct fake f;
    fake_start_limited(&f, serve_pod, (struct kube_options){ .rate = 20, .burst = 30 });
    enum { GRANTED = 5, N = 70 + GRANTED };
    struct seen seen[N];
    int64_t start = loop_mono_ns(f.loop);
    kube_add_burst(f.kube, GRANTED);
    for (int i = 0; i < N; i++) {
        seen[i] = (struct seen){ .f = &f };
        kube_send(f.kube, &(struct kube_request){ .verb = KUBE_GET,
                                                  .resource = &resource_pods,
                                                  .done = on_reply,
                                                  .context = &seen[i] });
    }
    fake_until(&f, &seen[N - 1].done);
    EQ_INT((seen[29 + GRANTED].at_ns - start) / NS_PER_MS, 0); /* the burst */
    EQ_INT((seen[N - 1].at_ns - start) / NS_PER_MS, 2000);     /* 40 more at 20 a second */
    fake_stop(&f);
}

static void serve_empty(struct fake *f, struct exchange *x)
{
    (void)f;
    fake_answer(x, 200, "{}");
}

static bool always_stale(void *context)
{
    (void)context;
    return true;
}

/* In the order of their classes, not of their arrival; a decision that a newer one replaced while it waited is not sent. */
static void what_users_notice_goes_first(void)
{
    struct fake f;
    fake_start_limited(&f, serve_empty, (struct kube_options){ .rate = 1, .burst = 1 });
    struct seen seen[4];
    static const struct kube_request requests[] = {
        { .verb = KUBE_CREATE, .resource = &resource_events, .ns = { "a", 1 } },
        { .verb = KUBE_MERGE_PATCH,
          .resource = &resource_pods,
          .name = { "p", 1 },
          .subresource = "status" },
        { .verb = KUBE_MERGE_PATCH,
          .resource = &resource_pods,
          .name = { "old", 3 },
          .subresource = "status",
          .is_stale = always_stale },
        { .verb = KUBE_MERGE_PATCH, .resource = &resource_pods, .name = { "p", 1 } },
    };
    for (size_t i = 0; i < countof(requests); i++) {
        struct kube_request one = requests[i];
        seen[i] = (struct seen){ .f = &f };
        one.ns = S("a");
        one.body = S("{}");
        one.done = on_reply;
        one.context = &seen[i];
        kube_send(f.kube, &one);
    }
    fake_until(&f, &seen[0].done);
    str log = buf_str(&f.log);
    size_t workload = str_find(log, S("/pods/p?")), report = str_find(log, S("/pods/p/status")),
           event = str_find(log, S("/events?"));
    OK(workload < report && report < event && event != SIZE_MAX);
    EQ_INT(seen[2].reason, KUBE_SUPERSEDED);
    EQ_INT(f.requests, 3);
    fake_stop(&f);
}

static void serve_overloaded(struct fake *f, struct exchange *x)
{
    if (f->requests <= 1)
        exchange_answer(x, 429, HTTP_HEADERS({ S("retry-after"), S("2") }), S("{}"));
    else
        fake_answer(x, 200, "{}");
}

/* A server that asks to wait is not asked by the other requests meanwhile. */
static void a_refusal_holds_the_others_back(void)
{
    enum { N = 20 };
    struct fake f;
    fake_start(&f, serve_overloaded);
    struct seen seen[N];
    for (int i = 0; i < N; i++) {
        seen[i] = (struct seen){ .f = &f };
        kube_send(f.kube, &(struct kube_request){ .verb = KUBE_GET,
                                                  .resource = &resource_pods,
                                                  .done = on_reply,
                                                  .context = &seen[i] });
    }
    fake_for(&f, 1900 * NS_PER_MS);
    EQ_INT(f.requests, 1); /* as many as are sent before anything is known */
    fake_for(&f, 2 * NS_PER_S);
    EQ_INT(f.requests, N + 1);
    for (int i = 0; i < N; i++)
        EQ_INT(seen[i].code, 200);
    fake_stop(&f);
}

static void serve_never(struct fake *f, struct exchange *x)
{
    (void)f;
    static struct exchange *held[10];
    static size_t n;
    if (str_eq(exchange_path(x), S("/release"))) {
        for (; n; n--)
            exchange_abort(held[n - 1]);
        fake_answer(x, 200, "{}");
        return;
    }
    held[n++] = x;
}

static void serve_some(struct fake *f, struct exchange *x)
{
    if (str_find(exchange_path(x), S("/stuck/")) != SIZE_MAX ||
        str_eq(exchange_path(x), S("/release")))
        serve_never(f, x);
    else
        fake_answer(x, 200, "{}");
}

/* Requests that hang, in a webhook of one tenant, do not keep those of the others waiting. */
static void stuck_requests_make_room(void)
{
    enum { STUCK = 8 };
    struct fake f;
    fake_start(&f, serve_some);
    struct seen seen[STUCK + 1];
    for (int i = 0; i <= STUCK; i++) {
        seen[i] = (struct seen){ .f = &f };
        kube_send(f.kube, &(struct kube_request){ .verb = KUBE_CREATE,
                                                  .resource = &resource_pods,
                                                  .ns = i < STUCK ? S("stuck") : S("free"),
                                                  .body = S("{}"),
                                                  .done = on_reply,
                                                  .context = &seen[i] });
    }
    fake_for(&f, 2 * NS_PER_S);
    OK(seen[STUCK].done && !seen[0].done);
    fake_for(&f, 10 * NS_PER_S);
    EQ_INT(f.requests, STUCK + 1);
    struct seen release = ask(&f, (struct kube_request){ .verb = KUBE_GET, .path = S("/release") });
    EQ_INT(release.code, 200);
    fake_stop(&f);
}

static void the_gate_stops_writes(void)
{
    struct fake f;
    fake_start(&f, serve_never);
    int64_t start = loop_mono_ns(f.loop);
    kube_gate(f.kube, start + 10 * NS_PER_S);
    struct kube_request write = { .verb = KUBE_MERGE_PATCH,
                                  .resource = &resource_pods,
                                  .ns = S("a"),
                                  .name = S("b"),
                                  .body = S("{}") };
    struct seen seen = ask(&f, write); /* is not answered: cut off when the gate shuts */
    EQ_INT(seen.reason, KUBE_NO_ANSWER);
    EQ_INT((seen.at_ns - start) / NS_PER_MS, 10000);
    EQ_INT(f.requests, 1);
    seen = ask(&f, write); /* is not even sent */
    EQ_INT(seen.reason, KUBE_NO_ANSWER);
    OK(strstr(seen.failure, "not the leader"));
    EQ_INT(f.requests, 1);
    kube_gate(f.kube, loop_mono_ns(f.loop) + 5 * NS_PER_S);
    seen = ask(&f, (struct kube_request){ .verb = KUBE_GET, .path = S("/release") });
    EQ_INT(seen.code, 200);
    fake_stop(&f);
}

static void a_cancelled_call_says_nothing(void)
{
    struct fake f;
    fake_start(&f, serve_pod);
    struct seen first = { .f = &f }, second = { .f = &f };
    struct kube_request request = { .verb = KUBE_GET,
                                    .resource = &resource_pods,
                                    .done = on_reply };
    request.context = &first;
    struct kube_call *call = kube_send(f.kube, &request);
    request.context = &second;
    kube_send(f.kube, &request);
    kube_call_cancel(call);
    fake_until(&f, &second.done);
    OK(!first.done);
    EQ_INT(f.requests, 1);
    request.context = &first;
    kube_send(f.kube, &request); /* is under way when the client goes */
    loop_turn(f.loop);
    fake_stop(&f);
    OK(!first.done);
}

/* ---- */

static void serve_resources(struct fake *f, struct exchange *x)
{
    (void)f;
    if (str_eq(exchange_path(x), S("/apis/apps/v1")))
        fake_answer(x, 200,
                    "{\"resources\":[{\"name\":\"deployments/scale\",\"kind\":\"Scale\"},"
                    "{\"name\":\"deployments\",\"kind\":\"Deployment\",\"namespaced\":true}]}");
    else
        fake_answer(x, 404, "{\"reason\":\"NotFound\"}");
}

struct discovered {
    bool done;
    const struct resource *resource;
    char failure[200];
};

static void on_discovered(void *context, const struct resource *resource, const char *failure)
{
    struct discovered *d = context;
    d->done = true;
    d->resource = resource;
    snprintf(d->failure, sizeof(d->failure), "%s", failure ? failure : "");
}

static void kinds_are_found(void)
{
    struct fake f;
    fake_start(&f, serve_resources);
    struct discovered d = { 0 };
    for (int i = 0; i < 2; i++) {
        d = (struct discovered){ 0 };
        kube_discover(f.kube, S("apps/v1"), S("Deployment"), on_discovered, &d);
        OK(!d.done);
        fake_until(&f, &d.done);
        if (OK(d.resource)) {
            EQ_STR(str_c(d.resource->plural), S("deployments"));
            EQ_STR(str_c(d.resource->group), S("apps"));
            OK(d.resource->namespaced);
        }
    }
    EQ_INT(f.requests, 1); /* the second was remembered */
    d = (struct discovered){ 0 };
    kube_discover(f.kube, S("example.org/v1"), S("Widget"), on_discovered, &d);
    fake_until(&f, &d.done);
    OK(!d.resource);
    EQ_STR(str_c(d.failure), S("the server has no kind Widget in example.org/v1"));
    kube_discover(f.kube, S("example.org/v1"), S("Widget"), on_discovered, &d); /* never answered */
    fake_stop(&f);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(every_verb),
                                        TAP(names_in_answers_have_no_nul),
                                        TAP(patches_say_their_kind),
                                        TAP(refusals_have_reasons),
                                        TAP(a_server_that_is_starting_forbids_nothing_for_good),
                                        TAP(waits_as_the_server_asks),
                                        TAP(gives_up_on_a_busy_server),
                                        TAP(only_reads_are_repeated),
                                        TAP(requests_are_spread),
                                        TAP(what_users_notice_goes_first),
                                        TAP(a_refusal_holds_the_others_back),
                                        TAP(stuck_requests_make_room),
                                        TAP(the_gate_stops_writes),
                                        TAP(a_cancelled_call_says_nothing),
                                        TAP(kinds_are_found),
                                        { 0 } });
}
