/* Serving runtimes outlive their templates: see runtime_controller.h.
 *
 * An InferenceService names a (Cluster)ServingRuntime, and KServe needs it whenever it starts a pod. With an owner reference
 * to the template, as the original sets it, deleting the template would let garbage collection remove the runtime of a
 * service that is kept running. An InferenceService cannot be a second owner: it is namespaced, and a
 * ClusterServingRuntime is not. So the runtime has no owner, only a label with the name of its template, and is
 * deleted here:
 *
 *     runtime of ours, its template is gone, no InferenceService names it  ->  DELETE (with its uid)
 *
 * All three are read from caches that have been listed; if one of the kinds is not served, nothing is deleted. A runtime that
 * has another owner, or not our labels, is never touched. */
#include "runtime_controller.h"

#include "names_core.h"

#define MANAGER "aim-controller"

const struct resource *aim_runtime_resource(enum aim_kind template)
{
    return template == AIM_CLUSTER_TEMPLATE ? &aim_resource_cluster_serving_runtimes
                                            : &aim_resource_serving_runtimes;
}

struct cache *aim_runtime_cache(const struct aim_world *w, enum aim_kind template)
{
    return template == AIM_CLUSTER_TEMPLATE ? w->cluster_runtimes : w->runtimes;
}

/* Was it created for a template of its name: by us, or by a version that set an owner? */
static bool is_of_template(const struct aim_child_record *r)
{
    return (str_eqc(r->owner_kind, "AIMServiceTemplate") ||
            str_eqc(r->owner_kind, "AIMClusterServiceTemplate")) &&
           str_eq(r->owner_name, r->meta.name);
}

bool aim_runtime_is_foreign(const struct aim_child_record *r)
{
    return r && !is_of_template(r) && (r->owner_kind.n || !str_eqc(r->managed_by, MANAGER));
}

void aim_runtime_release(struct aim_turn *t)
{
    aim_send(t, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                        .resource = aim_runtime_resource(t->of->kind),
                                        .ns = t->ns,
                                        .name = t->name,
                                        .body = S("{\"metadata\":{\"ownerReferences\":null}}") });
}

/* ---- deletion */

/* Did we create it, and is it without a user? */
static bool is_unused(const struct aim_consumers *of, const struct aim_child_record *r,
                      struct arena *a)
{
    const struct aim_world *w = aim_world(of->aim);
    struct json *labels = NULL;
    if (r->deleting || r->owners.n > strlen("[]") || !str_eqc(r->managed_by, MANAGER) ||
        json_parse(a, r->labels, &labels, NULL) < 0)
        return false;
    str key = aim_names_label_key(a, aim_kinds_of(of->aim)->group, "template");
    return str_eq(json_text(json_get_str(labels, key)), aim_names_label_value(a, r->meta.name)) &&
           !cache_absent(of->cache) && !cache_get(of->cache, r->meta.ns, r->meta.name) &&
           !cache_absent(w->inference_services) &&
           !aim_world_names_runtime(w, r->meta.ns, r->meta.name);
}

static void on_deleted(struct reconcile *r, const struct kube_reply *reply)
{
    if (reply->failure && reply->reason != KUBE_NOT_FOUND && reply->reason != KUBE_CONFLICT)
        reconcile_fail_call(r, reply);
}

static struct reconciled runtime_reconcile(struct reconcile *r)
{
    const struct aim_consumers *of = r->context;
    const struct aim_child_record *runtime =
        cache_get(aim_runtime_cache(aim_world(of->aim), of->kind), r->ns, r->name);
    if (!runtime || !is_unused(of, runtime, r->arena))
        return reconciled();
    struct json *body = json_new_obj(r->arena);
    json_set_str(r->arena, json_make(r->arena, body, "preconditions", NULL), "uid",
                 runtime->meta.uid);
    reconcile_call(r,
                   &(struct kube_request){ .verb = KUBE_DELETE,
                                           .resource = aim_runtime_resource(of->kind),
                                           .ns = r->ns,
                                           .name = r->name,
                                           .body = json_to_str(r->arena, body) },
                   on_deleted);
    return reconciled();
}

/* ---- watches */

static void add_if_cached(struct controller *c, str ns, str name)
{
    const struct aim_consumers *of = controller_context(c);
    if (cache_get(aim_runtime_cache(aim_world(of->aim), of->kind), ns, name))
        controller_add(c, ns, name);
}

static void on_template_change(struct controller *c, const struct record *old,
                               const struct record *now)
{
    if (!now)
        add_if_cached(c, old->ns, old->name);
}

/* The runtime that an InferenceService no longer names. */
static void on_service_change(struct controller *c, const struct record *old,
                              const struct record *now)
{
    const struct aim_consumers *of = controller_context(c);
    const struct aim_child_record *before = record_as(struct aim_child_record, old),
                                  *after = record_as(struct aim_child_record, now);
    if (before && (!after || !str_eq(before->runtime_name, after->runtime_name)))
        add_if_cached(c, of->kind == AIM_CLUSTER_TEMPLATE ? S("") : before->meta.ns,
                      before->runtime_name);
}

void aim_runtime_start(struct aim_consumers *of)
{
    struct aim_world *w = aim_world(of->aim);
    struct controller *c =
        manager_controller(aim_manager(of->aim), &(struct controller_spec){
                                                     .name = aim_runtime_resource(of->kind)->plural,
                                                     .reconcile = runtime_reconcile,
                                                     .context = of });
    controller_watch(c, aim_runtime_cache(w, of->kind), NULL);
    controller_watch(c, of->cache, on_template_change);
    controller_watch(c, w->inference_services, on_service_change);
}
