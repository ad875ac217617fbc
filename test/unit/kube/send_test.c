/* Requests that wait: those of one object are sent as one, late ones fail, and a newer decision takes the place of an older one. */
#include "fake.h"
#include "kube/controller.h"

struct seen {
    int done, code;
    enum kube_reason reason;
    char failure[300];
};

static struct exchange *held; /* the request that serve() does not answer */
static bool holds_next;

/* Refuses bodies with the word "bad". */
static void serve(struct fake *f, struct exchange *x)
{
    (void)f;
    if (holds_next) {
        holds_next = false;
        held = x;
    } else if (str_find(exchange_body(x), S("bad")) != SIZE_MAX) {
        fake_answer(x, 422, "{\"reason\":\"Invalid\",\"message\":\"no\"}");
    } else {
        fake_answer(x, 200, "{}");
    }
}

static void on_reply(void *context, const struct kube_reply *reply)
{
    struct seen *seen = context;
    seen->done++;
    seen->code = reply->code;
    seen->reason = reply->reason;
    snprintf(seen->failure, sizeof(seen->failure), "%s", reply->failure ? reply->failure : "");
}

/* One request per second, and the first second is used up. */
static void start_slow(struct fake *f)
{
    fake_start_limited(f, serve, (struct kube_options){ .rate = 1, .burst = 1 });
    kube_send(f->kube, &(struct kube_request){ .verb = KUBE_GET, .path = S("/version") });
    fake_for(f, NS_PER_MS);
    buf_clear(&f->log);
    f->requests = 0;
}

static struct kube_call *send_patch(struct fake *f, struct seen *seen, const char *name,
                                    const char *body)
{
    *seen = (struct seen){ 0 };
    return kube_send(f->kube, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                                      .resource = &resource_hpas,
                                                      .ns = S("ns"),
                                                      .name = str_c(name),
                                                      .body = str_c(body),
                                                      .done = on_reply,
                                                      .context = seen });
}

static size_t count(const struct fake *f, const char *what)
{
    size_t n = 0, at;
    for (str rest = buf_str(&f->log); (at = str_find(rest, str_c(what))) != SIZE_MAX; n++)
        rest = str_from(rest, at + 1);
    return n;
}

/* Those that can be: a condition belongs to one patch only, and nothing overtakes a patch of its object. */
static void patches_of_an_object_are_joined(void)
{
    static const struct {
        const char *bodies[3];
        int requests;
        const char *sent; /* one of them */
    } t[] = {
        { { "{\"spec\":{\"a\":1}}", "{\"spec\":{\"a\":2}}", "{\"m\":null}" },
          1,
          "{\"spec\":{\"a\":2},\"m\":null}" },
        { { "{\"a\":1}", "{\"metadata\":{\"resourceVersion\":\"7\"}}", "{\"b\":1}" },
          3,
          "{\"b\":1}" },
        { { "{\"metadata\":{\"uid\":\"7\"}}", "{\"a\":1}", "{\"b\":1}" }, 2, "{\"a\":1,\"b\":1}" },
        { { "{\"a\":1}", "{\"b\":1}", "{\"a\":{}}" }, 2, "{\"a\":1,\"b\":1}" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct fake f;
        struct seen seen[4];
        start_slow(&f);
        for (int k = 0; k < 3; k++)
            send_patch(&f, &seen[k], "web", t[i].bodies[k]);
        send_patch(&f, &seen[3], "other", "{\"c\":1}");
        fake_for(&f, 10 * NS_PER_S);
        EQ_INT(f.requests, t[i].requests + 1);
        EQ_INT((int64_t)count(&f, t[i].sent), 1);
        for (int k = 0; k < 4; k++)
            OK(seen[k].done == 1 && seen[k].code == 200);
        fake_stop(&f);
    }
}

/* The others must not suffer from one that the server refuses. */
static void a_refusal_is_for_its_own_patch(void)
{
    struct fake f;
    struct seen seen[3];
    start_slow(&f);
    send_patch(&f, &seen[0], "web", "{\"a\":1}");
    send_patch(&f, &seen[1], "web", "{\"b\":\"bad\"}");
    send_patch(&f, &seen[2], "web", "{\"c\":1}");
    fake_for(&f, 10 * NS_PER_S);
    EQ_INT(f.requests, 4);
    EQ_INT(seen[0].code, 200);
    EQ_INT(seen[1].reason, KUBE_INVALID);
    EQ_INT(seen[2].code, 200);
    for (int i = 0; i < 3; i++)
        EQ_INT(seen[i].done, 1);
    fake_stop(&f);
}

/* Each can be cancelled by itself while they are sent as one; so can all, with the client. */
static void joined_patches_can_be_cancelled(void)
{
    for (int which = 0; which < 3; which++) {
        struct fake f;
        struct seen seen[2];
        start_slow(&f);
        struct kube_call *first = send_patch(&f, &seen[0], "web", "{\"a\":1}");
        struct kube_call *second = send_patch(&f, &seen[1], "web", "{\"b\":1}");
        holds_next = true;
        fake_for(&f, 2 * NS_PER_S);
        EQ_INT((int64_t)count(&f, "{\"a\":1,\"b\":1}"), 1);
        if (which == 0) {
            kube_call_cancel(first);
            fake_for(&f, 10 * NS_PER_S);
            EQ_INT((int64_t)count(&f, "{\"b\":1}\n"), 1);
            OK(!seen[0].done && seen[1].done == 1 && seen[1].code == 200);
        } else if (which == 1) {
            kube_call_cancel(second);
            fake_answer(held, 200, "{}");
            fake_for(&f, 10 * NS_PER_S);
            OK(seen[0].done == 1 && !seen[1].done);
            EQ_INT(f.requests, 1);
        }
        if (which != 1)
            exchange_abort(held);
        fake_stop(&f);
        OK(which < 2 || (!seen[0].done && !seen[1].done));
    }
}

/* A request that cannot be sent in time fails without being sent. */
static void late_requests_fail(void)
{
    struct fake f;
    struct seen seen[5];
    start_slow(&f);
    for (int i = 0; i < 5; i++) {
        seen[i] = (struct seen){ 0 };
        kube_send(f.kube, &(struct kube_request){ .verb = KUBE_CREATE,
                                                  .resource = &resource_hpas,
                                                  .ns = S("ns"),
                                                  .body = S("{}"),
                                                  .timeout_ns = 2500 * NS_PER_MS,
                                                  .done = on_reply,
                                                  .context = &seen[i] });
    }
    fake_for(&f, 10 * NS_PER_S);
    EQ_INT(f.requests, 2);
    for (int i = 0; i < 5; i++) {
        EQ_INT(seen[i].done, 1);
        EQ_INT(seen[i].code, i < 2 ? 200 : 0);
        EQ_INT(str_find(str_c(seen[i].failure), S("not sent before its deadline")) == SIZE_MAX,
               i < 2);
    }
    fake_stop(&f);
}

/* ---- decisions of controllers */

static const struct resource widgets = { "example.org", "v1", "widgets", "Widget", true };
static int decision, superseded;

static void on_decision_reply(struct reconcile *r, const struct kube_reply *reply)
{
    superseded += reply->reason == KUBE_SUPERSEDED;
    if (reply->failure)
        reconcile_fail_call(r, reply);
}

static struct reconciled reconcile_decide(struct reconcile *r)
{
    reconcile_call(r,
                   &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                           .resource = &widgets,
                                           .ns = r->ns,
                                           .name = r->name,
                                           .is_decision = true,
                                           .body =
                                               arena_printf(r->arena, "{\"size\":%d}", decision) },
                   on_decision_reply);
    return reconciled();
}

static struct controller *start_deciding(struct fake *f)
{
    start_slow(f);
    superseded = 0;
    struct controller *c =
        controller_new(f->kube, &(struct controller_spec){ .name = "widget",
                                                           .reconcile = reconcile_decide });
    controller_start(c);
    return c;
}

/* A decision that waits is not sent if the next turn of its key is due: that one is, in its place. */
static void a_newer_decision_replaces_an_older_one(void)
{
    struct fake f;
    struct controller *c = start_deciding(&f);
    decision = 1;
    controller_add(c, S("ns"), S("a"));
    controller_add(c, S("ns"), S("b"));
    fake_for(&f, 500 * NS_PER_MS);
    decision = 2;
    controller_add(c, S("ns"), S("a"));
    fake_for(&f, 5 * NS_PER_S);
    EQ_INT(superseded, 1);
    EQ_STR(buf_str(&f.log),
           S("PATCH /apis/example.org/v1/namespaces/ns/widgets/a?fieldManager=flyball "
             "{\"size\":2}\n"
             "PATCH /apis/example.org/v1/namespaces/ns/widgets/b?fieldManager=flyball "
             "{\"size\":1}\n"));
    controller_free(c);
    fake_stop(&f);
}

/* A key that is added all the time is written nevertheless. */
static void decisions_are_not_put_off_for_ever(void)
{
    struct fake f;
    struct controller *c = start_deciding(&f);
    for (int i = 0; i < 200; i++) {
        decision = i;
        controller_add(c, S("ns"), S("a"));
        fake_for(&f, 100 * NS_PER_MS);
    }
    OK(superseded > 0);
    OK(f.requests >= 4);
    fake_for(&f, 10 * NS_PER_S);
    EQ_INT((int64_t)count(&f, "{\"size\":199}"), 1);
    controller_free(c);
    fake_stop(&f);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(patches_of_an_object_are_joined),
                                        TAP(a_refusal_is_for_its_own_patch),
                                        TAP(joined_patches_can_be_cancelled),
                                        TAP(late_requests_fail),
                                        TAP(a_newer_decision_replaces_an_older_one),
                                        TAP(decisions_are_not_put_off_for_ever),
                                        { 0 } });
}
