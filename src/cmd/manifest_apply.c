/* Applies manifests in their order: see manifest_apply.h.
 *
 *      apply_current(): discover the kind -> create or apply -> if a CRD, wait until served -> next
 *
 * A CustomResourceDefinition counts as applied when its kind is served, so custom resources may
 * follow in the same list. Discovery of a kind that is not known yet is retried for 10 s of real
 * time; MANIFEST_APPLY_MISSING comes after all definitions, so there an unknown kind fails at once. One request is pending at a time; documents and messages live in the arena until
 * manifest_apply_free(). */
#include "manifest_apply.h"

#include "../base/clock.h"
#include "../net/loop.h"

struct manifest_apply {
    struct kube *kube;
    enum manifest_apply_mode mode;
    struct arena arena;
    struct json *documents; /* in the arena */
    size_t at;              /* index of the document that is being applied */
    int64_t give_up_ns;     /* monotonic time of the machine: end of retries for an unknown kind */
    struct timer again;     /* start, and retries */
    struct kube_call *call; /* in flight; NULL: none */
    void (*done)(void *context, const char *failure);
    void *context;
    bool verifying; /* a CRD was applied: waiting for its kind to be served */
};

static void apply_current(struct manifest_apply *a);
static void on_discovered(void *context, const struct resource *resource, const char *failure);

/* Last: the caller may free `a` in it. */
static void report_result(struct manifest_apply *a, const char *failure)
{
    a->done(a->context, failure);
}

/* Names the object, because a scenario has many. */
static void report_failure(struct manifest_apply *a, const char *why)
{
    const struct json *o = json_item(a->documents, a->at);
    str kind = json_text(json_get(o, "kind")),
        name = json_text(json_at(o, "metadata", "name", NULL));
    report_result(
        a,
        arena_printf(&a->arena, STR_FMT " " STR_FMT ": %s", STR_ARG(kind), STR_ARG(name), why).p);
}

static void apply_next(struct manifest_apply *a)
{
    a->at++;
    a->give_up_ns = 0;
    a->verifying = false;
    apply_current(a);
}

/* A CRD was applied: asks discovery whether its first version is served. */
static void check_served(struct manifest_apply *a)
{
    const struct json *spec = json_get(json_item(a->documents, a->at), "spec");
    str group = json_text(json_get(spec, "group"));
    str version = json_text(json_get(json_item(json_get(spec, "versions"), 0), "name"));
    a->verifying = true;
    kube_discover(a->kube,
                  arena_printf(&a->arena, STR_FMT "/" STR_FMT, STR_ARG(group), STR_ARG(version)),
                  json_text(json_at(spec, "names", "kind", NULL)), on_discovered, a);
}

/* The object was written, or existed already and may stay. */
static void on_applied(void *context, const struct kube_reply *reply)
{
    struct manifest_apply *a = context;
    a->call = NULL;
    bool exists = a->mode == MANIFEST_APPLY_MISSING && reply->reason == KUBE_ALREADY_EXISTS;
    if (reply->failure && !exists) {
        report_failure(a, reply->failure);
        return;
    }
    const struct json *o = json_item(a->documents, a->at);
    if (str_eqc(json_text(json_get(o, "kind")), "CustomResourceDefinition"))
        check_served(a);
    else
        apply_next(a);
}

/* The kind was not served yet: its definition, or one that came before, needs a moment. */
static void on_retry_timer(struct timer *timer)
{
    struct manifest_apply *a = container_of(timer, struct manifest_apply, again);
    if (a->verifying)
        check_served(a);
    else
        apply_current(a);
}

/* Retries every 10 ms, until the deadline. */
static void wait_for_kind(struct manifest_apply *a, const char *why)
{
    struct loop *loop = kube_loop(a->kube);
    int64_t now =
        clock_mono_ns(); /* the server needs real time, even if the loop's time is scaled */
    if (!a->give_up_ns)
        a->give_up_ns =
            now + (a->mode == MANIFEST_APPLY_MISSING && !a->verifying ? 0 : 10 * NS_PER_S);
    if (now >= a->give_up_ns)
        report_failure(a, why);
    else
        timer_set(loop, &a->again, loop_mono_ns(loop) + 10 * NS_PER_MS, on_retry_timer);
}

/* The kind is known, or not yet: sends the object, ends the wait for a CRD, or retries. */
static void on_discovered(void *context, const struct resource *resource, const char *failure)
{
    struct manifest_apply *a = context;
    if (!resource) {
        wait_for_kind(a, failure);
        return;
    }
    if (a->verifying) {
        apply_next(a);
        return;
    }
    struct json *o = json_item(a->documents, a->at);
    str ns = json_text(json_at(o, "metadata", "namespace", NULL));
    if (resource->namespaced && !ns.n)
        ns = S("default");
    bool missing = a->mode == MANIFEST_APPLY_MISSING;
    struct kube_request request = {
        .verb = missing ? KUBE_CREATE : KUBE_APPLY,
        .resource = resource,
        .ns = resource->namespaced ? ns : S(""),
        .name = missing ? S("") : json_text(json_at(o, "metadata", "name", NULL)),
        .body = json_to_str(&a->arena, o),
        .done = on_applied,
        .context = a,
    };
    a->call = kube_send(a->kube, &request);
}

/* Begins with the present document; after the last one, reports success. */
static void apply_current(struct manifest_apply *a)
{
    const struct json *o = json_item(a->documents, a->at);
    if (!o) {
        report_result(a, NULL);
        return;
    }
    kube_discover(a->kube, json_text(json_get(o, "apiVersion")), json_text(json_get(o, "kind")),
                  on_discovered, a);
}

/* Starts from the loop, so that `done` is never called before the caller has the pointer. */
static void on_start_timer(struct timer *timer)
{
    apply_current(container_of(timer, struct manifest_apply, again));
}

struct manifest_apply *manifest_apply_start(struct kube *k, enum manifest_apply_mode mode,
                                            const struct json *documents,
                                            void (*done)(void *context, const char *failure),
                                            void *context)
{
    struct manifest_apply *a = mem_zero(1, sizeof(*a));
    a->kube = k;
    a->mode = mode;
    a->documents = json_copy(&a->arena, documents);
    a->done = done;
    a->context = context;
    struct loop *loop = kube_loop(k);
    timer_set(loop, &a->again, loop_mono_ns(loop),
              on_start_timer); /* `done` must not be called from here */
    return a;
}

void manifest_apply_free(struct manifest_apply *a)
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
