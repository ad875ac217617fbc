/* See route_group.h.
 *
 * Services of one namespace with the same spec.routing.group are versions of one service: the oldest has the route, and each is a
 * backend with its weight. The shift is safe:
 *
 *     a version that is not ready is left out, so that a new one gets no requests before it can answer them
 *     if what is ready has no weight, the route stays as it is: the old version serves until the new one can
 *     all weights are 0: refused (RouteWeightsZero), because a gateway would answer every request with 500
 *
 * When the oldest one is deleted, the next one creates a route of its own. */
#include "route_group.h"

#include "names_core.h"

#define POOL_PORT 8000

/* ---- members */

static bool is_member(const struct aim_record *r, str ns, str group)
{
    return str_eq(r->meta.ns, ns) && str_eq(r->route_group, group) && !r->deleting;
}

/* The oldest, then the smallest name: the same for all members, and after a restart. */
static const struct aim_record *find_leader(const struct aim *aim, str ns, str group)
{
    const struct aim_record *r, *best = NULL;
    cache_each(r, aim->caches[AIM_SERVICE])
        if (is_member(r, ns, group) &&
            (!best || r->created_ns < best->created_ns ||
             (r->created_ns == best->created_ns && str_cmp(r->meta.name, best->meta.name) < 0)))
            best = r;
    return best;
}

bool aim_route_group_leads(const struct aim *aim, const struct aim_record *r)
{
    return !r->route_group.n || find_leader(aim, r->meta.ns, r->route_group) == r;
}

/* Each member: the leader writes the route, and the others report it. */
void aim_route_group_enqueue(struct aim *aim, str ns, str group)
{
    const struct aim_record *r;
    cache_each(r, aim->caches[AIM_SERVICE])
        if (group.n && is_member(r, ns, group))
            controller_add(aim->consumers[AIM_SERVICE].controller, r->meta.ns, r->meta.name);
}

/* The InferenceService of a service; NULL: none. */
static const struct aim_child_record *runtime_of(const struct aim *aim, str ns, str service)
{
    const struct aim_child_record *r;
    cache_each_in(r, aim->world.inference_services, AIM_CHILD_INDEX_OWNER, service)
        if (str_eq(r->meta.ns, ns) && str_eqc(r->owner_kind, "AIMService"))
            return r;
    return NULL;
}

/* Unknown is not ready: a version that was not read gets no requests. */
static bool is_runtime_ready(struct arena *a, const struct aim_child_record *r)
{
    struct json *status = NULL;
    if (!r || !r->status.n || json_parse(a, r->status, &status, NULL) < 0)
        return false;
    return str_eqc(json_text(json_get(aim_status_find(status, "Ready"), "status")), "True");
}

/* The pool that a service wants; empty: its backend is the Service of its predictor. */
static str pool_name(struct arena *a, const struct aim_routing_spec *own,
                     const struct aim_routing_spec *config, str isvc)
{
    str backend = own->backend.n ? own->backend : config->backend;
    str name = json_text(json_get(own->pool ? own->pool : config->pool, "name"));
    if (!str_eqc(backend, "InferencePool"))
        return S("");
    return name.n ? name : arena_printf(a, STR_FMT "-pool", STR_ARG(isvc));
}

/* A member as a backend; false: it has no InferenceService, or does not want to be routed. */
static bool read_member(struct aim_turn *t, const struct aim_record *r,
                        struct aim_route_backend *ret, bool *ret_ready)
{
    struct arena *a = t->r->arena;
    struct json *spec = NULL;
    const struct aim_child_record *runtime = runtime_of(t->aim, r->meta.ns, r->meta.name);
    if (!runtime || json_parse(a, r->spec, &spec, NULL) < 0)
        return false;
    struct runtimeconfig_spec own = runtimeconfig_spec_read(spec, false);
    bool pools = !cache_absent(t->aim->world.pools);
    str isvc = arena_str(a, runtime->meta.name);
    *ret_ready = is_runtime_ready(a, runtime);
    *ret = (struct aim_route_backend){
        .service = arena_str(a, r->meta.name),
        .isvc = isvc,
        .pool = pools ? pool_name(a, &own.routing, &t->settings.routing, isvc) : S(""),
        .weight = own.routing.weight,
    };
    return !own.routing.has_enabled || own.routing.enabled;
}

/* By name, so that the route does not change with the order of the cache. */
static int compare_backends(const void *x, const void *y)
{
    const struct aim_route_backend *a = x, *b = y;
    return str_cmp(a->service, b->service);
}

/* The backends of the route: what is ready and, if nothing is, what exists. */
static void gather_backends(struct aim_turn *t, struct aim_route_group *g, const struct json *route)
{
    const struct aim_record *r;
    struct cache *services = t->aim->caches[AIM_SERVICE];
    struct aim_route_backend *all = arena_array(t->r->arena, cache_count(services), sizeof(*all));
    int64_t wanted = 0, serving = 0;
    size_t n = 0;
    g->backends = arena_array(t->r->arena, cache_count(services), sizeof(*all));
    cache_each(r, services) {
        bool ready;
        if (!is_member(r, t->ns, t->own.routing.group) || !read_member(t, r, &all[n], &ready))
            continue;
        wanted += all[n].weight;
        serving += ready ? all[n].weight : 0;
        if (ready)
            g->backends[g->n++] = all[n];
        n++;
    }
    if (n && !wanted) {
        g->reason = "RouteWeightsZero";
        g->message = arena_printf(t->r->arena,
                                  "the weights of all services of the group " STR_FMT
                                  " are 0; set spec.routing.weight of one of them",
                                  STR_ARG(aim_names_quote(t->r->arena, t->own.routing.group)));
    } else if (g->n && !serving) {
        g->reason = "ConfiguringRoute";
        g->message = S("Waiting for a service of the group with a weight to become ready");
    } else if (!g->n && route) {
        g->reason = "ConfiguringRoute";
        g->message = S("Waiting for a service of the group to become ready");
    } else if (!g->n) {
        g->backends = all;
        g->n = n;
    }
    if (g->n)
        qsort(g->backends, g->n, sizeof(*g->backends), compare_backends);
}

/* Without a group the answer is empty: the route leads to the service alone, without a weight. */
struct aim_route_group aim_route_group(struct aim_turn *t, const struct json *route)
{
    struct aim_route_group g = { 0 };
    str group = t->own.routing.group;
    if (!group.n)
        return g;
    const struct aim_record *leader = find_leader(t->aim, t->ns, group);
    g.follows = leader && !str_eq(leader->meta.name, t->name);
    if (g.follows)
        g.leader = arena_str(t->r->arena, leader->meta.name);
    else
        gather_backends(t, &g, route);
    return g;
}

/* ---- a follower */

/* The weight with which the route leads to this InferenceService or pool; -1: it does not. */
static int64_t weight_in(const struct json *route, str isvc, str pool)
{
    const struct json *rule = json_item(json_at(route, "spec", "rules", NULL), 0);
    const struct json *refs = json_get(rule, "backendRefs");
    for (size_t i = 0; i < json_len(refs); i++) {
        str name = json_text(json_get(json_item(refs, i), "name"));
        bool ours = pool.n
                        ? str_eq(name, pool)
                        : str_starts(name, isvc) && str_eqc(str_from(name, isvc.n), "-predictor");
        if (ours)
            return json_int(json_get(json_item(refs, i), "weight"), 1);
    }
    return -1;
}

/* The route of the leader, under whatever name. */
static const struct aim_route_record *route_of(const struct aim *aim, str ns, str service)
{
    const struct aim_record *leader = cache_get(aim->caches[AIM_SERVICE], ns, service);
    const struct aim_route_record *r;
    if (!leader)
        return NULL;
    cache_each_in(r, aim->routes, AIM_ROUTE_INDEX_OWNER, leader->meta.uid)
        if (str_eq(r->meta.ns, ns))
            return r;
    return NULL;
}

/* The leader is enqueued if this service became ready, is no longer, or has another weight: only its turn writes the route. */
void aim_route_group_follow(struct aim_turn *t, const struct aim_route_group *g)
{
    struct arena *a = t->r->arena;
    const struct aim_route_record *shared = route_of(t->aim, t->ns, g->leader);
    const struct json *route = shared ? aim_route_record_object(a, shared) : NULL;
    const struct aim_child_record *runtime = runtime_of(t->aim, t->ns, t->name);
    str isvc = runtime ? arena_str(a, runtime->meta.name) : S("");
    str pool = cache_absent(t->aim->world.pools)
                   ? S("")
                   : pool_name(a, &t->own.routing, &t->settings.routing, isvc);
    int64_t weight = runtime ? weight_in(route, isvc, pool) : -1;
    bool ready = is_runtime_ready(a, runtime);
    t->route.served = aim_route_path_of(route);
    t->route.verdict = ROUTE_WAITING;
    t->route.reason = "ConfiguringRoute";
    t->route.message =
        arena_printf(a, "Waiting for AIMService " STR_FMT " to add this service to its route",
                     STR_ARG(g->leader));
    if (weight >= 0) {
        t->route_generation = shared->generation;
        aim_route_read_status(&t->route, route);
    }
    if (ready ? weight != t->own.routing.weight : weight >= 0)
        controller_add(t->of->controller, t->ns, g->leader);
}

/* ---- pools */

/* The pool selects the pods of the InferenceService; an endpoint picker chooses among them. */
static struct json *make_pool(struct aim_turn *t, str name, str isvc, const struct json *spec)
{
    struct arena *a = t->r->arena;
    const struct json *picker = json_get(spec, "endpointPicker");
    struct json *pool = json_new_obj(a), *metadata = json_make(a, pool, "metadata", NULL);
    struct json *port = json_new_obj(a), *ports = json_new_arr(a);
    str mode = json_text(json_get(picker, "failureMode"));
    json_set_str(a, metadata, "name", name);
    json_set_str(a, json_make(a, metadata, "labels", NULL), "app.kubernetes.io/managed-by",
                 S(ROUTE_MANAGED_BY));
    json_set(a, metadata, S("ownerReferences"), aim_owner(t));
    json_set_str(a, json_make(a, pool, "spec", "selector", "matchLabels", NULL),
                 "serving.kserve.io/inferenceservice", isvc);
    json_set_int(a, port, "number", json_int(json_get(spec, "port"), POOL_PORT));
    json_push(a, ports, port);
    json_set(a, json_get(pool, "spec"), S("targetPorts"), ports);
    struct json *ref = json_make(a, pool, "spec", "endpointPickerRef", NULL);
    json_set_str(a, ref, "group", S(""));
    json_set_str(a, ref, "kind", S("Service"));
    json_set_str(a, ref, "name", json_text(json_get(picker, "name")));
    json_set_int(a, json_make(a, ref, "port", NULL), "number",
                 json_int(json_get(picker, "port"), 9002));
    json_set_str(a, ref, "failureMode", mode.n ? mode : S("FailClose"));
    return pool;
}

/* A pool that the user names is not created: it is used as it is. */
str aim_route_pool(struct aim_turn *t, str *ret_why)
{
    const struct aim_routing_spec *own = &t->own.routing, *config = &t->settings.routing;
    const struct json *spec = own->pool ? own->pool : config->pool;
    struct cache *pools = t->aim->world.pools;
    str name = pool_name(t->r->arena, own, config, t->template.backend);
    *ret_why = S("");
    if (!name.n || t->deleting)
        return S("");
    if (cache_absent(pools)) {
        *ret_why = S("InferencePool is not served by this cluster");
        return S("");
    }
    if (json_text(json_get(spec, "name")).n)
        return name;
    if (!json_text(json_at(spec, "endpointPicker", "name", NULL)).n) {
        *ret_why = S("routing.inferencePool.endpointPicker.name must be set");
        return S("");
    }
    if (t->template.ready)
        aim_apply(t, &aim_resource_pools,
                  aim_child_object(t->r->arena, cache_get(pools, t->ns, name)),
                  make_pool(t, name, t->template.backend, spec));
    return name;
}
