/* Building a status: see status_core.h.
 *
 *     old status --copy--> next --set fields, conditions--> merge_diff(old, next) --> patch, or nothing
 *
 * Conditions are replaced in place, so that their order in the list never changes: a different order would be a
 * different list, and thus a write. */
#include "status_core.h"

#include "../base/rfc3339.h"
#include "../json/merge.h"

/* A status that is not an object, which only a client without validation can write, counts as none. */
void aim_status_begin(struct aim_status *s, struct arena *a, const struct json *old, int64_t now,
                      int64_t generation)
{
    bool usable = json_is(old, JSON_OBJ);
    *s = (struct aim_status){ .a = a,
                              .old = usable ? old : NULL,
                              .next = usable ? json_copy(a, old) : json_new_obj(a),
                              .now = now,
                              .generation = generation };
    s->last_event = &s->events;
    json_set_int(a, s->next, "observedGeneration", generation);
}

/* Where the condition is in the list, so that it can be replaced; NULL: not there. */
static struct json **find_slot(const struct json *status, const char *type)
{
    const struct json *list = json_get(status, "conditions");
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(json_item(list, i), "type")), type))
            return &list->items[i];
    return NULL;
}

const struct json *aim_status_find(const struct json *status, const char *type)
{
    struct json **slot =
        json_is(json_get(status, "conditions"), JSON_ARR) ? find_slot(status, type) : NULL;
    return slot ? *slot : NULL;
}

static str truth_word(enum aim_truth truth)
{
    return truth == AIM_TRUE ? S("True") : truth == AIM_FALSE ? S("False") : S("Unknown");
}

static struct json *make_condition(const struct aim_status *s, const struct aim_condition *c,
                                   str since)
{
    struct json *out = json_new_obj(s->a);
    json_set_str(s->a, out, "type", str_c(c->type));
    json_set_str(s->a, out, "status", truth_word(c->truth));
    json_set_int(s->a, out, "observedGeneration", s->generation);
    json_set_str(s->a, out, "lastTransitionTime", since);
    json_set_str(s->a, out, "reason", str_c(c->reason));
    json_set_str(s->a, out, "message", c->message);
    return out;
}

/* Compares with the old status, not with an earlier call of this turn: the last call wins. */
bool aim_status_condition(struct aim_status *s, const struct aim_condition *c)
{
    char text[RFC3339_TEXT_MAX];
    const struct json *before = aim_status_find(s->old, c->type);
    str since = json_text(json_get(before, "lastTransitionTime"));
    bool moved = !str_eq(json_text(json_get(before, "status")), truth_word(c->truth)) ||
                 !str_eqc(json_text(json_get(before, "reason")), c->reason);
    if (moved || !since.n)
        since = rfc3339_text(s->now, text);
    struct json *made = make_condition(s, c, since), *list = json_get(s->next, "conditions");
    if (!json_is(list, JSON_ARR)) {
        list = json_new_arr(s->a);
        json_set(s->a, s->next, S("conditions"), list);
    }
    struct json **slot = find_slot(s->next, c->type);
    if (slot)
        *slot = made;
    else
        json_push(s->a, list, made);
    return moved;
}

bool aim_status_set(struct aim_status *s, const char *type, bool holds, const char *reason,
                    str message)
{
    return aim_status_condition(s, &(struct aim_condition){ type, holds ? AIM_TRUE : AIM_FALSE,
                                                            reason, message });
}

void aim_status_drop_condition(struct aim_status *s, const char *type)
{
    struct json *list = json_get(s->next, "conditions");
    struct json **slot = json_is(list, JSON_ARR) ? find_slot(s->next, type) : NULL;
    if (slot)
        json_remove(list, (size_t)(slot - list->items));
}

/* Conditions that both generations write, such as Ready, are not listed: they are overwritten. */
void aim_status_drop_newer(struct aim_status *s)
{
    static const char *const types[] = {
        /* of all kinds */
        "RuntimeConfigReady", "DependenciesReachable", "AuthValid", "ConfigValid",
        /* of services */
        "ModelReady", "TemplateReady", "InferenceServiceReady", "InferenceServicePodsReady",
        "HTTPRouteReady", "RouteConfigReady", "HPAReady",
        /* of models */
        "ImageMetadataReady", "ServiceTemplatesReady", "ClusterServiceTemplatesReady",
        /* of templates */
        "ClusterModelReady", "DiscoveryJobReady", "DiscoveryPodsReady", "GPUReady"
    };
    for (size_t i = 0; i < countof(types); i++)
        aim_status_drop_condition(s, types[i]);
}

void aim_status_event(struct aim_status *s, bool warning, const char *reason, str message)
{
    struct aim_event *event = arena_new(s->a, struct aim_event);
    *event = (struct aim_event){ warning, reason, message, NULL };
    *s->last_event = event;
    s->last_event = &event->next;
}

void aim_status_text(struct aim_status *s, const char *field, str value)
{
    if (value.n)
        json_set_str(s->a, s->next, field, value);
    else
        json_del(s->next, str_c(field));
}

/* The form of all references in AIM statuses: name, namespace, scope, kind, uid. */
void aim_status_reference(struct aim_status *s, const char *field, const struct json *object)
{
    if (!object) {
        json_del(s->next, str_c(field));
        return;
    }
    const struct json *meta = json_get(object, "metadata");
    str ns = json_text(json_get(meta, "namespace")), uid = json_text(json_get(meta, "uid"));
    struct json *ref = json_new_obj(s->a);
    json_set_str(s->a, ref, "name", json_text(json_get(meta, "name")));
    if (ns.n)
        json_set_str(s->a, ref, "namespace", ns);
    json_set_str(s->a, ref, "scope", ns.n ? S("Namespace") : S("Cluster"));
    json_set_str(s->a, ref, "kind", json_text(json_get(object, "kind")));
    if (uid.n)
        json_set_str(s->a, ref, "uid", uid);
    json_set(s->a, s->next, str_c(field), ref);
}

struct json *aim_status_patch(const struct aim_status *s)
{
    return merge_diff(s->a, s->old ? s->old : json_new_obj(s->a), s->next);
}
