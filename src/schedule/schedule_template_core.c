/* From a template to an HPA: see schedule_template_core.h.
 *
 * An HPA that a schedule creates is owned by it and deleted with it. Owner references do not cross namespaces,
 * so a template for another namespace is rejected. A hash of the template is kept in an annotation: the HPA is
 * applied again only if the template itself changed, so that edits of the live object by other clients are not
 * fought over. */
#include "schedule_template_core.h"

#include "../base/sum.h"

/* A template without a name gets that of the schedule, with a suffix. */
struct schedule_target schedule_template_target(struct arena *a, const struct schedule_spec *spec,
                                                str ns, str name)
{
    const struct json *metadata = json_get(spec->template, "metadata");
    str own_name = json_text(json_get(metadata, "name"));
    str own_ns = json_text(json_get(metadata, "namespace"));
    return (struct schedule_target){
        .ns = own_ns.n ? own_ns : ns,
        .name = own_name.n ? own_name : arena_printf(a, STR_FMT "-generated", STR_ARG(name)),
        .from_template = true,
    };
}

/* No kind means an HPA, for manifests from before other targets existed. */
static enum schedule_target_kind kind_of(str kind)
{
    if (!kind.n || str_eqc(kind, "HorizontalPodAutoscaler"))
        return SCHEDULE_TARGET_HPA;
    return str_eqc(kind, "ScaledObject") ? SCHEDULE_TARGET_SCALED_OBJECT : SCHEDULE_TARGET_WORKLOAD;
}

struct schedule_target schedule_target(struct arena *a, const struct schedule_spec *spec, str ns,
                                       str name)
{
    if (spec->hpa_name.n)
        return (struct schedule_target){
            .ns = spec->hpa_namespace.n ? spec->hpa_namespace : ns,
            .name = spec->hpa_name,
            .kind = kind_of(spec->hpa_kind),
            .api_version = spec->hpa_api_version.n ? spec->hpa_api_version : S("apps/v1"),
            .kind_name = spec->hpa_kind,
        };
    if (!spec->template)
        return (struct schedule_target){ 0 };
    return schedule_template_target(a, spec, ns, name);
}

/* Returns the first problem of the template. */
struct schedule_template_problem schedule_template_check(struct arena *a,
                                                         const struct schedule_object *o)
{
    const struct json *spec = json_get(o->spec->template, "spec");
    const struct json *target = json_get(spec, "scaleTargetRef");
    if (!json_text(json_get(target, "kind")).n || !json_text(json_get(target, "name")).n)
        return (struct schedule_template_problem){
            "NoScaleTarget",
            S("HPASpecTemplate.spec.scaleTargetRef must set kind and name; no HPA is created"),
        };
    if (!o->spec->template_config.has_max || o->spec->template_config.max < 1)
        return (struct schedule_template_problem){
            "NoMaxReplicas",
            S("HPASpecTemplate.spec.maxReplicas must be at least 1; no HPA is created"),
        };
    str ns = schedule_template_target(a, o->spec, o->ns, o->name).ns;
    if (!str_eq(ns, o->ns))
        return (struct schedule_template_problem){
            "OtherNamespace",
            arena_printf(a,
                         "HPASpecTemplate.metadata.namespace is " STR_FMT
                         ", but must be the schedule's own, " STR_FMT "; no HPA is created",
                         STR_ARG(ns), STR_ARG(o->ns)),
        };
    return (struct schedule_template_problem){ 0 };
}

static struct json *make_owner(struct arena *a, const struct schedule_object *o)
{
    struct json *list = json_new_arr(a), *one = json_new_obj(a);
    json_set_str(a, one, "apiVersion", S("autoscaling.sarabala.io/v1alpha1"));
    json_set_str(a, one, "kind", S("SmartHorizontalPodAutoscaler"));
    json_set_str(a, one, "name", o->name);
    json_set_str(a, one, "uid", o->uid);
    json_set_bool(a, one, "controller", true);
    json_set_bool(a, one, "blockOwnerDeletion", true);
    json_push(a, list, one);
    return list;
}

static void copy_members(struct arena *a, struct json *to, const struct json *from,
                         const char *const *names)
{
    for (; *names; names++) {
        const struct json *value = json_get(from, *names);
        if (value && value->type != JSON_NULL)
            json_set(a, to, str_c(*names), json_copy(a, value));
    }
}

/* What creation and update have in common: names, owner and target. */
static struct json *begin_hpa(struct arena *a, const struct schedule_object *o)
{
    const struct json *from = json_get(o->spec->template, "spec");
    struct schedule_target target = schedule_template_target(a, o->spec, o->ns, o->name);
    struct json *hpa = json_new_obj(a);
    json_set_str(a, hpa, "apiVersion", S("autoscaling/v2"));
    json_set_str(a, hpa, "kind", S("HorizontalPodAutoscaler"));
    struct json *metadata = json_make(a, hpa, "metadata", NULL);
    json_set_str(a, metadata, "name", target.name);
    json_set_str(a, metadata, "namespace", target.ns);
    json_set(a, metadata, S("ownerReferences"), make_owner(a, o));
    struct json *workload = json_copy(a, json_get(from, "scaleTargetRef"));
    if (!json_text(json_get(workload, "apiVersion")).n)
        json_set_str(a, workload, "apiVersion", S("apps/v1"));
    json_set(a, json_make(a, hpa, "spec", NULL), S("scaleTargetRef"), workload);
    return hpa;
}

/* The HPA with only its bounds, which is what a schedule decides on. */
struct json *schedule_template_hpa(struct arena *a, const struct schedule_object *o)
{
    struct json *hpa = begin_hpa(a, o);
    copy_members(a, json_get(hpa, "spec"), json_get(o->spec->template, "spec"),
                 (const char *const[]){ "minReplicas", "maxReplicas", NULL });
    return hpa;
}

/* The whole HPA for server-side apply, with the bounds that it has now: only the plan changes those. Only
 * fields that an HPA has are copied; unknown members of the template are dropped. */
struct json *schedule_template_apply(struct arena *a, const struct schedule_object *o,
                                     struct schedule_bounds live)
{
    const struct json *template = o->spec->template;
    struct json *hpa = begin_hpa(a, o), *spec = json_get(hpa, "spec"),
                *metadata = json_get(hpa, "metadata");
    copy_members(a, metadata, json_get(template, "metadata"),
                 (const char *const[]){ "labels", "annotations", NULL });
    json_set_str(a, json_make(a, metadata, "annotations", NULL), SCHEDULE_TEMPLATE,
                 schedule_template_hash(a, o->spec));
    json_set_int(a, spec, "minReplicas", live.min);
    json_set_int(a, spec, "maxReplicas", live.max);
    copy_members(a, spec, json_get(template, "spec"),
                 (const char *const[]){ "metrics", "behavior", NULL });
    return hpa;
}

/* Without the bounds, which change with the schedule. */
str schedule_template_hash(struct arena *a, const struct schedule_spec *spec)
{
    const struct json *template = spec->template, *from = json_get(template, "spec"),
                      *metadata = json_get(template, "metadata");
    const struct json *parts[] = { json_get(from, "scaleTargetRef"), json_get(from, "metrics"),
                                   json_get(from, "behavior"), json_get(metadata, "labels"),
                                   json_get(metadata, "annotations") };
    uint64_t hash = 0;
    for (size_t i = 0; i < countof(parts); i++)
        hash = sum64(parts[i] ? json_to_str(a, parts[i]) : S("-"), hash);
    return arena_printf(a, "%016llx", (unsigned long long)hash);
}
