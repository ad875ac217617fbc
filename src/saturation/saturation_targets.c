/* Workloads of any kind: see saturation_targets.h.
 *
 *     variant ─► (apiVersion, kind) ─► struct sat_kind: discovery ─► cache of its objects
 *                                                                      │ an object changed
 *                 struct sat_scale of the workload ◄── GET …/scale ◄───┘ (not a LeaderWorkerSet)
 *
 * Where a kind keeps its replicas is known to the API server only, so its scale subresource is read
 * when the object changed: never in a cycle, and never by polling. A LeaderWorkerSet has the usual
 * fields; its watch is enough.
 *
 * The invariant: what is not known yet is not there. A variant whose kind is being looked up is
 * skipped like one whose workload does not exist, with another reason. */
#include "saturation_targets.h"

#include "../base/labels.h"
#include "../base/log.h"
#include "../kube/controller.h"

static const int64_t discovery_ns = 60 * NS_PER_S;
static const char group_kind[] = "LeaderWorkerSet";
static const char group_version[] = "leaderworkerset.x-k8s.io/v1";
enum { KINDS_MAX = 16 }; /* each is a watch on the whole cluster */

/* ---- records */

#define AT(member) offsetof(struct workload_record, member)
#define GROUP "spec.leaderWorkerTemplate."
#define GPUS(template, member)                                                                     \
    { GROUP template ".spec.containers[].resources.requests[\"nvidia.com/gpu\"]", F_MILLI,         \
      AT(member[0]) },                                                                             \
        { GROUP template ".spec.containers[].resources.requests[\"amd.com/gpu\"]", F_MILLI,        \
          AT(member[1]) },                                                                         \
        { GROUP template ".spec.containers[].resources.requests[\"habana.ai/gaudi\"]", F_MILLI,    \
          AT(member[2]) },                                                                         \
        { GROUP template ".spec.containers[].resources.requests[\"gpu.intel.com/i915\"]", F_MILLI, \
          AT(member[3]) },                                                                         \
        { GROUP template ".spec.containers[].resources.requests[\"gpu.intel.com/xe\"]", F_MILLI,   \
          AT(member[4]) },                                                                         \
    {                                                                                              \
        GROUP template ".spec.containers[].resources.requests[\"intel.com/gpu\"]", F_MILLI,        \
            AT(member[5])                                                                          \
    }

static const struct field group_fields[] = {
    { "spec.replicas", F_INT, AT(wanted), .otherwise = 1 },
    { "status.replicas", F_INT, AT(replicas) },
    { "status.readyReplicas", F_INT, AT(ready) },
    { "metadata.deletionTimestamp", F_HAS, AT(deleting) },
    { GROUP "size", F_INT, AT(group_size), .otherwise = 1 },
    { GROUP "leaderTemplate", F_HAS, AT(has_leader) },
    { GROUP "workerTemplate.spec.nodeSelector", F_MAP, AT(node_selector) },
    { GROUP "workerTemplate.spec.tolerations", F_RAW, AT(tolerations) },
    { GROUP "workerTemplate.spec.affinity.nodeAffinity", F_RAW, AT(affinity) },
    { GROUP "workerTemplate.spec.resourceClaims", F_RAW, AT(claims) },
    { GROUP "leaderTemplate.spec.nodeSelector", F_MAP, AT(leader_selector) },
    { GROUP "leaderTemplate.spec.affinity.nodeAffinity", F_RAW, AT(leader_affinity) },
    { GROUP "workerTemplate.metadata.labels", F_MAP, AT(pod_labels) },
    { GROUP "workerTemplate.spec.containers", F_LIST, AT(containers),
      .of = &saturation_container_fields },
    { GROUP "leaderTemplate.spec.containers", F_LIST, AT(leader_containers),
      .of = &saturation_container_fields },
    { GROUP "leaderTemplate.metadata.labels", F_MAP, AT(leader_labels) },
    { GROUP "workerTemplate.metadata.labels[\"llm-d.ai/role\"]", F_WORD, AT(role) },
    { GROUP "leaderTemplate.metadata.labels[\"llm-d.ai/role\"]", F_WORD, AT(leader_role) },
    GPUS("workerTemplate", gpu_milli),
    GPUS("leaderTemplate", leader_milli),
};
static const struct field other_fields[] = {
    { "metadata.deletionTimestamp", F_HAS, AT(deleting) },
    { "metadata.annotations[\"flyball.dev/gpus-per-replica\"]", F_MILLI, AT(gpu_milli[0]) },
};
static const struct fields group_kept = { sizeof(struct workload_record), group_fields,
                                          countof(group_fields) };
static const struct fields other_kept = { sizeof(struct workload_record), other_fields,
                                          countof(other_fields) };

/* ---- state */

enum kind_state { KIND_SOUGHT, KIND_UNKNOWN, KIND_KNOWN };

struct sat_kind {
    struct list_item item;
    struct saturation *s;
    char *api, *kind; /* owned */
    enum kind_state state;
    char *failure; /* owned; why it is unknown */
    const struct resource *resource;
    struct cache *cache;
    struct timer retry;
    bool is_group; /* LeaderWorkerSet */
};

struct sat_scale { /* the scale subresource of a workload */
    struct saturation *s;
    struct sat_workload *target;
    struct kube_call *call; /* in progress; NULL: none */
    bool again;             /* the object changed meanwhile */
    bool known, forbidden, missing;
    struct arena arena; /* of the record and the selector */
    struct workload_record record;
    struct labels_selector selector;
    bool has_selector;
};

static void reconsider_target(struct saturation *s, const struct sat_workload *target)
{
    list_each(const struct variant, v, &target->variants, of_target) {
        controller_add(s->variants, v->ns, v->name);
        if (v->spec.model.n)
            controller_add(s->engine, v->ns, v->spec.model);
    }
}

/* Calls for every workload of the kind that variants target. */
static void reconsider_kind(struct sat_kind *k)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&k->s->targets, slot));) {
        const struct sat_workload *target = slot->value;
        if (target->kind == k)
            reconsider_target(k->s, target);
    }
}

/* ---- the scale subresource */

static void read_scale(struct sat_scale *x);

static const struct workload_record *get_record(const struct sat_workload *target)
{
    const struct variant *v = list_first(&target->variants, struct variant, of_target);
    if (!v || !target->kind || !target->kind->cache)
        return NULL;
    return cache_get(target->kind->cache, v->ns, v->spec.target_name);
}

/* Builds the record that the rest of the feature reads, as if there were a cache of workloads of this
 * kind. Its texts are copied: the cached object may be replaced at any time. */
static void take_scale(struct sat_scale *x, const struct json *object)
{
    const struct workload_record *seen = get_record(x->target);
    arena_done(&x->arena);
    x->arena = (struct arena){ 0 };
    x->record = (struct workload_record){ 0 };
    str selector = json_text(json_at(object, "status", "selector", NULL));
    x->has_selector = selector.n && labels_parse(&x->arena, arena_str(&x->arena, selector),
                                                 &x->selector, NULL) == 0;
    x->record.wanted = json_int(json_at(object, "spec", "replicas", NULL), 0);
    x->record.replicas = json_int(json_at(object, "status", "replicas", NULL), 0);
    x->record.meta.ns = arena_str(&x->arena, seen->meta.ns);
    x->record.meta.name = arena_str(&x->arena, seen->meta.name);
    x->record.meta.uid = arena_str(&x->arena, seen->meta.uid);
    x->record.meta.rv = arena_str(&x->arena, seen->meta.rv);
    memcpy(x->record.gpu_milli, seen->gpu_milli, sizeof(x->record.gpu_milli));
}

/* A 404 for an object that exists means that its kind has no scale subresource. */
static void on_scale(void *context, const struct kube_reply *reply)
{
    struct sat_scale *x = context;
    bool exists = get_record(x->target) != NULL;
    x->call = NULL;
    x->forbidden = reply->reason == KUBE_FORBIDDEN;
    x->missing = exists && reply->reason == KUBE_NOT_FOUND;
    x->known = exists && !reply->failure;
    if (x->known)
        take_scale(x, reply->object);
    reconsider_target(x->s, x->target);
    if (x->again)
        read_scale(x);
}

static void read_scale(struct sat_scale *x)
{
    const struct variant *v = list_first(&x->target->variants, struct variant, of_target);
    x->again = x->call != NULL;
    if (x->call || !v)
        return;
    x->call = kube_send(manager_kube(x->s->manager),
                        &(struct kube_request){ .verb = KUBE_GET,
                                                .resource = x->target->kind->resource,
                                                .ns = v->ns,
                                                .name = v->spec.target_name,
                                                .subresource = "scale",
                                                .done = on_scale,
                                                .context = x });
}

static void need_scale(struct saturation *s, struct sat_workload *target)
{
    if (!target->kind->cache || target->kind->is_group || !get_record(target))
        return;
    if (!target->scale) {
        target->scale = mem_zero(1, sizeof(*target->scale));
        target->scale->s = s;
        target->scale->target = target;
    }
    read_scale(target->scale);
}

void saturation_targets_leave(struct sat_workload *target)
{
    struct sat_scale *x = take(target->scale);
    if (!x)
        return;
    kube_call_cancel(x->call);
    arena_done(&x->arena);
    free(x);
}

/* ---- kinds */

/* An object of a watched kind changed: only those that variants target matter. */
static void on_object(void *context, const struct record *old, const struct record *now)
{
    struct sat_kind *k = context;
    const struct record *r = now ? now : old;
    for (struct map_slot *slot = NULL; (slot = map_next(&k->s->targets, slot));) {
        struct sat_workload *target = slot->value;
        const struct variant *v = list_first(&target->variants, struct variant, of_target);
        if (target->kind != k || !v || !str_eq(v->ns, r->ns) ||
            !str_eq(v->spec.target_name, r->name))
            continue;
        if (target->scale && !now)
            target->scale->known = false;
        if (!k->is_group && now)
            need_scale(k->s, target);
        else if (!old || !now)
            reconsider_target(k->s, target);
    }
}

static void look_up(struct timer *timer);

/* Opens the cache of a kind that exists; another one is looked up again, since it may be installed
 * later. */
static void on_discovered(void *context, const struct resource *resource, const char *failure)
{
    struct sat_kind *k = context;
    struct loop *loop = manager_loop(k->s->manager);
    err_t e;
    free(take(k->failure));
    struct cache_spec spec = { .resource = resource,
                               .need = CACHE_IF_ALLOWED,
                               .keep = k->is_group ? &group_kept : &other_kept,
                               .every_update = !k->is_group };
    if (resource && resource->namespaced &&
        manager_cache(k->s->manager, &spec, &k->cache, &e) == 0) {
        k->state = KIND_KNOWN;
        k->resource = resource;
        cache_handle(k->cache, on_object, k);
    } else {
        if (resource)
            failure = resource->namespaced ? e.text : "objects of this kind have no namespace";
        k->state = KIND_UNKNOWN;
        k->failure = mem_dup(failure, strlen(failure));
        timer_set(loop, &k->retry, loop_mono_ns(loop) + discovery_ns, look_up);
    }
    reconsider_kind(k);
}

static void look_up(struct timer *timer)
{
    struct sat_kind *k = container_of(timer, struct sat_kind, retry);
    kube_discover(manager_kube(k->s->manager), str_c(k->api), str_c(k->kind), on_discovered, k);
}

/* The kind, looked up if it is new. NULL: there are too many. */
static struct sat_kind *find_kind(struct saturation *s, str api, str kind)
{
    list_each(struct sat_kind, k, &s->kinds, item)
        if (str_eqc(api, k->api) && str_eqc(kind, k->kind))
            return k;
    if (s->kinds.n >= KINDS_MAX)
        return NULL;
    struct sat_kind *k = mem_zero(1, sizeof(*k));
    k->s = s;
    k->api = mem_dup(api.p, api.n);
    k->kind = mem_dup(kind.p, kind.n);
    k->is_group = str_eqc(kind, group_kind) && str_starts(api, S("leaderworkerset.x-k8s.io/"));
    list_append(&s->kinds, &k->item);
    look_up(&k->retry);
    return k;
}

void saturation_targets_join(struct saturation *s, struct variant *v)
{
    str api = v->spec.target_api;
    if (!v->target || v->target->kind || saturation_is_built_in(v))
        return;
    if (!api.n && str_eqc(v->spec.target_kind, group_kind))
        api = str_c(group_version);
    if (api.n)
        v->target->kind = find_kind(s, api, v->spec.target_kind);
    if (v->target->kind)
        need_scale(s, v->target);
}

void saturation_targets_stop(struct saturation *s)
{
    for (struct sat_kind *k; (k = list_first(&s->kinds, struct sat_kind, item));) {
        kube_discover_forget(manager_kube(s->manager), k);
        timer_stop(&k->retry);
        list_remove(&k->item);
        free(k->failure);
        free(k->api);
        free(k->kind);
        free(k);
    }
}

/* ---- reading */

const struct resource *saturation_targets_resource(const struct variant *v)
{
    return v->target && v->target->kind ? v->target->kind->resource : NULL;
}

const struct workload_record *saturation_targets_find(const struct variant *v)
{
    const struct sat_workload *target = v->target;
    const struct workload_record *w = target ? get_record(target) : NULL;
    if (!w || w->deleting || target->kind->is_group)
        return w && !w->deleting ? w : NULL;
    return target->scale && target->scale->known ? &target->scale->record : NULL;
}

/* Why there is no workload: the reason of the condition, and its message. */
static const char *find_problem(const struct saturation *s, const struct variant *v,
                                struct arena *a, str *ret_message)
{
    const struct sat_kind *k = v->target ? v->target->kind : NULL;
    const struct sat_scale *x = v->target ? v->target->scale : NULL;
    str kind = v->spec.target_kind.n ? v->spec.target_kind : S("Deployment");
    str what = arena_printf(a, "Scale target " STR_FMT " " STR_FMT, STR_ARG(kind),
                            STR_ARG(v->spec.target_name));
    *ret_message = v->missing;
    const struct workload_record *w = NULL;
    if (saturation_is_built_in(v))
        w = cache_get(str_eqc(kind, "StatefulSet") ? s->statefulsets : s->deployments, v->ns,
                      v->spec.target_name);
    else if (v->target)
        w = get_record(v->target);
    if (w && w->deleting) {
        *ret_message = arena_printf(a, STR_FMT " is being deleted", STR_ARG(what));
        return "TargetDeleting";
    }
    if (saturation_is_built_in(v) || !v->spec.target_name.n)
        return "TargetNotFound";
    if (!k) {
        *ret_message = arena_printf(a, STR_FMT " has no known kind; set scaleTargetRef.apiVersion",
                                    STR_ARG(what));
        return "UnknownKind";
    }
    if (k->state == KIND_UNKNOWN || (x && x->missing)) {
        *ret_message = arena_printf(a, STR_FMT " cannot be scaled: %s", STR_ARG(what),
                                    k->failure ? k->failure : "it has no scale subresource");
        return "UnknownKind";
    }
    if ((k->cache && cache_absent(k->cache)) || (x && x->forbidden)) {
        *ret_message = arena_printf(a,
                                    STR_FMT " cannot be read: flyball needs get, list and watch of "
                                            "%s.%s, and get and patch of %s/scale",
                                    STR_ARG(what), k->resource->plural, k->resource->group,
                                    k->resource->plural);
        return "TargetForbidden";
    }
    return "TargetNotFound";
}

struct sat_condition saturation_targets_condition(const struct saturation *s, struct arena *a,
                                                  const struct variant *v)
{
    struct sat_condition c = { true, true, "TargetFound", v->found };
    if (saturation_get_workload(s, v))
        return c;
    c.holds = false;
    c.reason = find_problem(s, v, a, &c.message);
    return c;
}

/* ---- pods */

bool saturation_get_label(const void *labels, str key, str *ret_value)
{
    const struct labels *l = labels;
    for (size_t i = 0; l && i < l->n; i++)
        if (str_eq(word_str(l->at[i].key), key)) {
            *ret_value = word_str(l->at[i].value);
            return true;
        }
    return false;
}

/* The pods of a group's leaders are owned by a StatefulSet that the group owns; those of workers by
 * StatefulSets that the leaders own, which do not count: a worker serves no requests. */
static void each_leader(const struct saturation *s, const struct workload_record *w,
                        saturation_pod_fn *fn, void *context)
{
    const struct workload_record *set;
    const struct replica_record *pod;
    cache_each_in(set, s->statefulsets, 0, w->meta.uid) {
        if (!str_eq(set->meta.ns, w->meta.ns))
            continue;
        cache_each_in(pod, s->pods, 0, set->meta.uid)
            if (str_eq(pod->meta.ns, w->meta.ns))
                fn(context, pod);
    }
}

void saturation_targets_each_pod(const struct saturation *s, const struct variant *v,
                                 saturation_pod_fn *fn, void *context)
{
    const struct workload_record *w = saturation_targets_find(v);
    const struct replica_record *pod;
    if (!w)
        return;
    if (v->target->kind->is_group) {
        each_leader(s, w, fn, context);
        return;
    }
    const struct sat_scale *x = v->target->scale;
    if (x->has_selector)
        cache_each(pod, s->pods)
            if (str_eq(pod->meta.ns, v->ns) &&
                labels_match(&x->selector, saturation_get_label, pod->labels))
                fn(context, pod);
}
