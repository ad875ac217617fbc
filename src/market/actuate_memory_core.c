/* The memory part of a resize, and the patch: see actuate_core.h.
 *
 * A limit is never lowered unless the allocation asks for it: a lower limit frees nothing, and an
 * allocation that outlived a change by the owner must not get a container killed. For the same
 * reason opting out restores the request, but a limit only if it is below the original. */
#include "actuate_core.h"

#include "../base/quantity.h"

static bool is_same(struct actuate_bytes a, struct actuate_bytes b)
{
    return a.request == b.request && a.limit == b.limit;
}

bool actuate_memory_is_target(const struct actuate_container *c)
{
    return is_same(c->memory, c->memory_target);
}

/* Nodes that do not report memory have nothing to wait for. */
bool actuate_memory_is_enacted(const struct actuate_container *c)
{
    return (c->memory_now.limit < 0 || c->memory_now.limit == c->memory.limit) &&
           (c->memory_now.request < 0 || c->memory_now.request == c->memory.request);
}

void actuate_keep_memory(const struct actuate_pod *pod)
{
    for (size_t i = 0; i < pod->n; i++)
        pod->containers[i].memory_target = pod->containers[i].memory;
}

/* What cannot be used is left alone: no limit to grow, an amount that is not one, or a container
 * that the change would restart. A Burstable request stays below its limit, because the QoS class
 * of a running pod must not change. */
bool actuate_target_memory(const struct actuate_pod *pod)
{
    bool differs = false;
    actuate_keep_memory(pod);
    for (size_t i = 0; i < pod->n; i++) {
        struct actuate_container *c = &pod->containers[i];
        struct actuate_bytes want = c->memory_desired;
        bool equal = pod->qos == QOS_GUARANTEED;
        if (want.limit <= 0 || want.request <= 0 || c->memory.limit <= 0 || c->memory_fixed)
            continue;
        if (!c->memory_shrink)
            want.limit = MAX(want.limit, c->memory.limit);
        want.request = equal ? want.limit : MIN(want.request, want.limit - 1000);
        c->memory_target = want;
        differs |= !actuate_memory_is_target(c);
    }
    return differs;
}

void actuate_restore_memory(const struct actuate_pod *pod)
{
    actuate_keep_memory(pod);
    for (size_t i = 0; i < pod->n; i++) {
        struct actuate_container *c = &pod->containers[i];
        if (c->memory_original.limit < 0 || c->memory_original.request < 0 || c->memory_fixed)
            continue;
        c->memory_target.limit = MAX(c->memory.limit, c->memory_original.limit);
        c->memory_target.request =
            pod->qos == QOS_GUARANTEED ? c->memory_target.limit : c->memory_original.request;
    }
}

/* For a withdrawal: the request that the node admitted and the limit in force. */
bool actuate_admit_memory(const struct actuate_pod *pod)
{
    actuate_keep_memory(pod);
    for (size_t i = 0; i < pod->n; i++) {
        struct actuate_container *c = &pod->containers[i];
        if (c->memory.limit >= 0 && c->memory_now.limit >= 0)
            c->memory_target.limit = c->memory_now.limit;
        if (c->memory.request >= 0 && c->memory_now.request >= 0)
            c->memory_target.request = c->memory_now.request;
    }
    return true;
}

/* ---- the patch */

static void put_amount(struct arena *a, struct json *container, const char *kind,
                       const char *resource, const struct quantity *q)
{
    char text[QUANTITY_TEXT_MAX];
    json_set_str(a, json_make(a, container, "resources", kind, NULL), resource,
                 quantity_text(q, text));
}

static void put_cpu(struct arena *a, struct json *container, const char *kind, int64_t milli)
{
    struct quantity q = quantity_of(milli, -3, QUANTITY_DECIMAL);
    if (milli >= 0)
        put_amount(a, container, kind, "cpu", &q);
}

static void put_memory(struct arena *a, struct json *container, const char *kind, int64_t milli)
{
    struct quantity q = quantity_of(MAX(milli + 999, (int64_t)0) / 1000, 0, QUANTITY_BINARY);
    if (milli >= 0)
        put_amount(a, container, kind, "memory", &q);
}

struct json *actuate_patch(struct arena *a, const struct actuate_pod *pod)
{
    struct json *body = json_new_obj(a), *spec = json_make(a, body, "spec", NULL);
    for (size_t i = 0; i < pod->n; i++) {
        const struct actuate_container *c = &pod->containers[i];
        if (c->request_milli == c->target_request && c->limit_milli == c->target_limit &&
            actuate_memory_is_target(c))
            continue;
        str list_name = c->sidecar ? S("initContainers") : S("containers");
        struct json *list = json_get_str(spec, list_name), *one = json_new_obj(a);
        if (!list)
            json_set(a, spec, list_name, list = json_new_arr(a));
        json_set_str(a, one, "name", c->name);
        put_cpu(a, one, "limits", c->target_limit);
        put_cpu(a, one, "requests", c->target_request);
        if (!actuate_memory_is_target(c)) {
            put_memory(a, one, "limits", c->memory_target.limit);
            put_memory(a, one, "requests", c->memory_target.request);
        }
        json_push(a, list, one);
    }
    return body;
}
