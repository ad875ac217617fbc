/* Manifests to the server, in their order: see apply.h. A definition counts as applied when its kind is
 * served, so custom resources may follow it in the same list. A kind that is not known yet is asked for
 * again until it is, for a few seconds. */
#include "apply.h"

#include "../base/clock.h"
#include "../net/loop.h"

struct apply {
    struct kube *kube;
    enum apply_mode mode;
    struct arena arena;
    struct json *documents;
    size_t at;
    int64_t give_up_ns; /* on the kind that is not known yet; by the machine's clock */
    struct timer again;
    struct kube_call *call;
    void (*done)(void *context, const char *failure);
    void *context;
    bool verifying; /* it was applied: is its kind served? */
};

static void next(struct apply *a);
static void discovered(void *context, const struct resource *resource, const char *failure);

static void finish(struct apply *a, const char *failure)
{
    a->done(a->context, failure);
}

static void fail(struct apply *a, const char *why)
{
    const struct json *o = json_item(a->documents, a->at);
    str kind = json_text(json_get(o, "kind")),
        name = json_text(json_at(o, "metadata", "name", NULL));
    finish(a, arena_printf(&a->arena, STR_FMT " " STR_FMT ": %s", STR_ARG(kind), STR_ARG(name), why)
                  .p);
}

static void proceed(struct apply *a)
{
    a->at++;
    a->give_up_ns = 0;
    a->verifying = false;
    next(a);
}

static void ask_whether_served(struct apply *a)
{
    const struct json *spec = json_get(json_item(a->documents, a->at), "spec");
    str group = json_text(json_get(spec, "group"));
    str version = json_text(json_get(json_item(json_get(spec, "versions"), 0), "name"));
    a->verifying = true;
    kube_discover(a->kube,
                  arena_printf(&a->arena, STR_FMT "/" STR_FMT, STR_ARG(group), STR_ARG(version)),
                  json_text(json_at(spec, "names", "kind", NULL)), discovered, a);
}

static void applied(void *context, const struct kube_reply *reply)
{
    struct apply *a = context;
    a->call = NULL;
    bool there = a->mode == APPLY_MISSING && reply->reason == KUBE_ALREADY_EXISTS;
    if (reply->failure && !there) {
        fail(a, reply->failure);
        return;
    }
    const struct json *o = json_item(a->documents, a->at);
    if (str_eqc(json_text(json_get(o, "kind")), "CustomResourceDefinition"))
        ask_whether_served(a);
    else
        proceed(a);
}

static void retry(struct timer *timer)
{
    struct apply *a = container_of(timer, struct apply, again);
    if (a->verifying)
        ask_whether_served(a);
    else
        next(a);
}

static void wait_for_kind(struct apply *a, const char *why)
{
    struct loop *loop = kube_loop(a->kube);
    int64_t now = clock_mono_ns(); /* the server needs real time, however fast the loop's passes */
    if (!a->give_up_ns)
        a->give_up_ns = now + 10 * NS_PER_S;
    if (now >= a->give_up_ns)
        fail(a, why);
    else
        timer_set(loop, &a->again, loop_mono_ns(loop) + 10 * NS_PER_MS, retry);
}

static void discovered(void *context, const struct resource *resource, const char *failure)
{
    struct apply *a = context;
    if (!resource) {
        wait_for_kind(a, failure);
        return;
    }
    if (a->verifying) {
        proceed(a);
        return;
    }
    struct json *o = json_item(a->documents, a->at);
    str ns = json_text(json_at(o, "metadata", "namespace", NULL));
    if (resource->namespaced && !ns.n)
        ns = S("default");
    bool missing = a->mode == APPLY_MISSING;
    struct kube_request request = {
        .verb = missing ? KUBE_CREATE : KUBE_APPLY,
        .resource = resource,
        .ns = resource->namespaced ? ns : S(""),
        .name = missing ? S("") : json_text(json_at(o, "metadata", "name", NULL)),
        .body = json_to_str(&a->arena, o),
        .done = applied,
        .context = a,
    };
    a->call = kube_send(a->kube, &request);
}

static void next(struct apply *a)
{
    const struct json *o = json_item(a->documents, a->at);
    if (!o) {
        finish(a, NULL);
        return;
    }
    kube_discover(a->kube, json_text(json_get(o, "apiVersion")), json_text(json_get(o, "kind")),
                  discovered, a);
}

static void begin(struct timer *timer)
{
    next(container_of(timer, struct apply, again));
}

struct apply *apply_start(struct kube *k, enum apply_mode mode, const struct json *documents,
                          void (*done)(void *context, const char *failure), void *context)
{
    struct apply *a = mem_zero(1, sizeof(*a));
    a->kube = k;
    a->mode = mode;
    a->documents = json_copy(&a->arena, documents);
    a->done = done;
    a->context = context;
    struct loop *loop = kube_loop(k);
    timer_set(loop, &a->again, loop_mono_ns(loop), begin); /* never from inside this call */
    return a;
}

void apply_free(struct apply *a)
{
    if (!a)
        return;
    timer_stop(&a->again);
    kube_call_cancel(a->call);
    a->call = NULL;
    kube_discover_forget(a->kube, a);
    arena_done(&a->arena);
    free(a);
}

size_t apply_count(const struct apply *a)
{
    return a->at;
}
