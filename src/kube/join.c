/* Several merge patches of one object, sent as one. In a storm requests wait, and two controllers, or one that decided twice, may
 * want something of the same object:
 *
 *     waiting    {"spec":{"a":1}}    {"spec":{"a":2}}    {"metadata":{"labels":{"x":"y"}}}
 *     sent       {"spec":{"a":2},"metadata":{"labels":{"x":"y"}}}
 *
 * They are joined at the last moment, when the first one is sent: until then each can be cancelled, replaced or late by itself.
 * Then the others (riders) leave the queue and belong to the first one. All get the same answer. If it is a refusal, the cause
 * may be in only one of them, so that each is sent again by itself. If the first one is cancelled, the others
 * wait again: a merge patch that arrives twice does no harm.
 *
 * Not joined: a patch with a version or uid, which is a condition of that patch only; and patches whose composition a
 * merge patch cannot express (json/merge.h). */
#include "../json/merge.h"
#include "client_internal.h"

enum { LOOK_MOST = 256 }; /* at waiting requests; a controller has 32 at most */

static bool can_join(const struct kube_call *call)
{
    return call->verb == KUBE_MERGE_PATCH && !call->alone && !call->attempts && !call->riders.n;
}

/* NULL: it has a condition, or is no object. */
static struct json *read_patch(struct arena *a, const struct kube_call *call)
{
    struct json *patch = NULL;
    if (json_parse(a, call->body, &patch, NULL) < 0 || !json_is(patch, JSON_OBJ))
        return NULL;
    const struct json *meta = json_get(patch, "metadata");
    return json_get(meta, "resourceVersion") || json_get(meta, "uid") ? NULL : patch;
}

void kube_join_waiting(struct kube_call *call)
{
    struct kube *k = call->k;
    auto_arena struct arena a = { 0 };
    struct json *all = NULL;
    size_t looked = 0;
    struct list_item *item = can_join(call) ? k->waiting.classes[call->class].ages.first : NULL;
    for (struct list_item *next; item && looked < LOOK_MOST; item = next, looked++) {
        struct kube_call *other = container_of(item, struct kube_call, waiting.age);
        next = item->next;
        if (!can_join(other) || other->waiting.since_ns < call->waiting.since_ns ||
            !str_eq(other->target, call->target))
            continue;
        struct json *patch = read_patch(&a, other), *both = NULL;
        if (!all)
            all = read_patch(&a, call);
        if (all && patch)
            both = merge_compose(&a, all, patch);
        if (!both) /* and those behind must not overtake it */
            break;
        all = both;
        sendqueue_remove(&k->waiting, &other->waiting);
        list_append(&call->riders, &other->rider);
    }
    if (call->riders.n)
        call->joined = json_to_str(&call->arena, all);
}

void kube_join_dissolve(struct kube_call *call)
{
    call->joined = S("");
    for (struct kube_call *rider; (rider = list_first(&call->riders, struct kube_call, rider));) {
        list_remove(&rider->rider);
        kube_call_wait(rider);
    }
}

bool kube_join_refused(struct kube_call *call, const struct kube_reply *reply)
{
    bool refused = reply->reason == KUBE_BAD_REQUEST || reply->reason == KUBE_FORBIDDEN ||
                   reply->reason == KUBE_INVALID || reply->reason == KUBE_REFUSED;
    if (!refused)
        return false;
    call->alone = true;
    list_each(struct kube_call, rider, &call->riders, rider)
        rider->alone = true;
    kube_call_restart(call);
    kube_join_dissolve(call);
    return true;
}
