/* The route of a service: planned, checked for conflicts, written, and read back from the gateway's answer.
 *
 *     aim_route_claim      on every change of a service or configuration: claims the path
 *     aim_route_turn       in a turn: plan -> conflict? -> write -> what does the gateway report?
 *     aim_route_status     at the end of a turn: RoutingReady, status.routing, events
 *
 * Paths are claimed as soon as a change is seen, before any turn runs: each turn then knows all claims on its path,
 * whatever the order of the turns. A service whose path cannot be determined keeps the route that it has. */
#include "aim.h"

#include "../base/log.h"
#include "../kube/object_key.h"
#include "gateway_core.h"
#include "route_group.h"

struct aim_foreign_route {
    char *key; /* owned "namespace/name" of the HTTPRoute */
    struct aim_claim_holder holder;
};

static void enqueue_holder(void *context, struct aim_claim_holder *holder)
{
    struct aim *aim = context;
    if (!holder->foreign && !aim->stopping)
        controller_add(aim->consumers[AIM_SERVICE].controller, holder->ns, holder->name);
}

static bool is_ours(const struct aim_route_record *route, str uid)
{
    return route && uid.n && str_eq(route->owner_uid, uid);
}

/* The route of a service: one that another operator created for it, under that name, or else the one of the service's
 * name, which may have another owner. NULL: neither exists. */
static const struct aim_route_record *find_route(const struct aim *aim, str ns, str name, str uid)
{
    const struct aim_route_record *r, *adopted = NULL;
    cache_each_in(r, aim->routes, AIM_ROUTE_INDEX_OWNER, uid)
        if (uid.n && str_eq(r->meta.ns, ns) && !str_eq(r->meta.name, name) &&
            (!adopted || r->created_ns < adopted->created_ns))
            adopted = r;
    return adopted ? adopted : cache_get(aim->routes, ns, name);
}

/* ---- the plan of a service */

/* The input of a plan; the same for a claim and for a turn, except for the template. */
static struct aim_route_question make_question(const struct aim *aim, const struct json *service,
                                               const struct runtimeconfig_spec *own,
                                               const struct runtimeconfig_spec *config)
{
    return (struct aim_route_question){
        .group = aim->kinds->group,
        .service = service,
        .own = own,
        .config = config,
        .encoding = aim->encoding,
        .guard = aim_resolution_guard(aim, json_text(json_at(service, "spec", "runtimeConfigName",
                                                             NULL))),
    };
}

static struct aim_claim_place place_of(const struct aim_route_plan *plan)
{
    return (struct aim_claim_place){ plan->gateway_ns,
                                     plan->gateway_name,
                                     plan->section,
                                     plan->path,
                                     json_text(json_item(plan->hostnames, 0)),
                                     S("") };
}

/* All that the plan claims: the path, and the header if there is one, for each host name. */
static size_t places_of(struct arena *a, const struct aim_route_plan *plan,
                        struct aim_claim_place **ret)
{
    size_t hosts = MAX(json_len(plan->hostnames), (size_t)1), n = 0;
    struct aim_claim_place *at = arena_array(a, 2 * hosts, sizeof(*at));
    for (size_t i = 0; i < hosts; i++) {
        struct aim_claim_place place = place_of(plan);
        place.host = json_text(json_item(plan->hostnames, i));
        at[n++] = place;
        place.path = S("/");
        place.header = aim_route_header_key(a, plan->header_name, plan->header_value);
        if (plan->header_value.n)
            at[n++] = place;
    }
    *ret = at;
    return n;
}

/* Claims what is planned, unless there is nothing or the gateway refused the route. `route` is the service's own; NULL: none. */
static void claim_path(struct aim *aim, struct arena *a, struct aim_tracked *tracked,
                       const struct aim_route_plan *plan, const struct json *route)
{
    struct aim_claim_place *places;
    size_t n = places_of(a, plan, &places);
    bool wants = plan->verdict == ROUTE_WAITING && plan->is_gateway &&
                 (!route || !aim_route_is_refused(route, &places[0]));
    aim_claims_set(&aim->claims, &tracked->claim, places, wants ? n : 0, enqueue_holder, aim);
}

/* Plans from the record alone, because no turn is running. */
bool aim_route_claim(struct aim *aim, struct aim_tracked *tracked, const struct aim_record *r,
                     const struct aim_config *config)
{
    static const struct runtimeconfig_spec none = { 0 };
    auto_arena struct arena a = { 0 };
    const struct resource *resource = &aim->kinds->at[AIM_SERVICE];
    const struct json *service = aim_record_object(&a, resource, r);
    struct runtimeconfig_spec own = runtimeconfig_spec_read(json_get(service, "spec"), false);
    struct aim_route_question q = make_question(aim, service, &own, config ? &config->spec : &none);
    const struct aim_route_record *route = find_route(aim, r->meta.ns, r->meta.name, r->meta.uid);
    struct aim_route_plan plan = aim_route_plan(&a, &q);
    tracked->claim.routed_ns = is_ours(route, r->meta.uid) ? route->created_ns : 0;
    if (r->deleting || !aim_route_group_leads(aim, r))
        plan.verdict = ROUTE_OFF;
    claim_path(aim, &a, tracked, &plan,
               is_ours(route, r->meta.uid) ? aim_route_record_object(&a, route) : NULL);
    return plan.verdict == ROUTE_INVALID && plan.source == ROUTE_CONFIG;
}

static void set_conflict(struct aim *aim, struct aim_tracked *tracked, bool conflict)
{
    if (tracked->conflict == conflict)
        return;
    aim->conflicts += conflict ? 1 : -1;
    tracked->conflict = conflict;
    runtimeconfig_metrics_conflicts(&aim->metrics, (size_t)aim->conflicts);
}

void aim_route_drop_claim(struct aim *aim, struct aim_tracked *tracked)
{
    aim_claims_set(&aim->claims, &tracked->claim, NULL, 0, enqueue_holder, aim);
    set_conflict(aim, tracked, false);
}

/* ---- conflicts */

static void set_verdict(struct aim_turn *t, enum aim_route_verdict verdict, const char *reason,
                        str message)
{
    t->route.verdict = verdict;
    t->route.reason = reason;
    t->route.message = message;
}

/* Finds out which rules the service has lost to older holders. Returns why, naming them; empty: none. */
static str find_rivals(struct aim_turn *t)
{
    struct aim_claim_place *places;
    size_t n = places_of(t->r->arena, &t->route, &places);
    str why = S("");
    for (size_t i = 0; i < n; i++) {
        bool *lost = places[i].header.n ? &t->route.header_lost : &t->route.path_lost;
        const struct aim_claim_holder *rival =
            *lost ? NULL : aim_claims_find_older(&t->aim->claims, &t->tracked->claim, &places[i]);
        if (!rival)
            continue;
        *lost = true;
        why = arena_printf(t->r->arena,
                           STR_FMT "%sthe %s " STR_FMT " of gateway " STR_FMT "/" STR_FMT
                                   " belongs to %s " STR_FMT "/" STR_FMT ", which is older",
                           STR_ARG(why), why.n ? "; " : "", places[i].header.n ? "header" : "path",
                           STR_ARG(places[i].header.n ? places[i].header : places[i].path),
                           STR_ARG(places[i].gateway_ns), STR_ARG(places[i].gateway),
                           rival->foreign ? "HTTPRoute" : "AIMService", STR_ARG(rival->ns),
                           STR_ARG(rival->name));
    }
    return why;
}

/* A gateway with several listeners serves several sites: a route for all of them must be asked for by name. */
static bool lacks_hostnames(struct aim_turn *t)
{
    const struct aim_route_plan *plan = &t->route;
    const struct aim_gateway_record *gateway =
        plan->is_gateway ? cache_get(t->aim->gateways, plan->gateway_ns, plan->gateway_name) : NULL;
    struct json *listeners = NULL;
    return gateway && !plan->section.n && !json_len(plan->hostnames) && gateway->listeners.n &&
           json_parse(t->r->arena, gateway->listeners, &listeners, NULL) == 0 &&
           json_len(listeners) > 1;
}

/* A path below another one takes over its requests. That is allowed, but reported as a warning. */
static void report_overlap(struct aim_turn *t)
{
    struct aim_claim_place place = place_of(&t->route);
    str above;
    const struct aim_claim_holder *other =
        aim_claims_find_above(&t->aim->claims, &t->tracked->claim, &place, &above);
    const struct json *old = aim_status_find(t->status.old, "RouteOverlap");
    if (!other && !str_eqc(place.path, "/")) {
        aim_status_drop_condition(&t->status, "RouteOverlap");
        return;
    }
    str message =
        other ? arena_printf(t->r->arena,
                             "the path " STR_FMT " is under " STR_FMT " of %s " STR_FMT "/" STR_FMT
                             " and takes its requests",
                             STR_ARG(place.path), STR_ARG(above),
                             other->foreign ? "HTTPRoute" : "AIMService", STR_ARG(other->ns),
                             STR_ARG(other->name))
              : S("the path / receives every request of the gateway that no other route matches");
    const char *reason = other ? "PathUnderAnother" : "PathIsRoot";
    aim_status_condition(&t->status,
                         &(struct aim_condition){ "RouteOverlap", AIM_TRUE, reason, message });
    if (!str_eq(json_text(json_get(old, "message")), message))
        aim_status_event(&t->status, true, reason, message);
}

/* ---- writing */

/* A failed write is the verdict of this turn; the turn reports and retries it. */
static void on_route_written(struct reconcile *r, const struct kube_reply *reply)
{
    struct aim_turn *t = r->turn;
    if (reply->failure)
        set_verdict(t, ROUTE_FAILED, "RouteFailed", arena_str(r->arena, str_c(reply->failure)));
    else
        t->route_generation = json_int(json_at(reply->object, "metadata", "generation", NULL), 0);
    aim_turn_answered(t, reply);
}

/* Was it created by flyball, or by an operator that it replaces, and not by a user who made the service its owner? */
static bool is_by_operator(const struct aim_route_record *route)
{
    return str_eqc(route->managed_by, ROUTE_MANAGED_BY) ||
           str_eqc(route->managed_by, ROUTE_MANAGED_BY_NEWER);
}

/* Deletes our own route; the uid precondition protects a route that was recreated by another client. */
static void delete_route(struct aim_turn *t, const struct aim_route_record *live, const char *why)
{
    if (!is_ours(live, t->uid) || !is_by_operator(live))
        return;
    struct json *body = json_new_obj(t->r->arena);
    json_set_str(t->r->arena, json_make(t->r->arena, body, "preconditions", NULL), "uid",
                 live->meta.uid);
    log_info("deleting HTTPRoute", KV("namespace", t->ns), KV("name", live->meta.name),
             KV_C("because", why));
    aim_send(t, &(struct kube_request){ .verb = KUBE_DELETE,
                                        .resource = &aim_resource_httproutes,
                                        .ns = t->ns,
                                        .name = arena_str(t->r->arena, live->meta.name),
                                        .body = json_to_str(t->r->arena, body) });
}

/* Never two routes of one service, however many an operator before us left. */
static void delete_other_routes(struct aim_turn *t, const struct aim_route_record *live)
{
    const struct aim_route_record *r;
    cache_each_in(r, t->aim->routes, AIM_ROUTE_INDEX_OWNER, t->uid)
        if (t->uid.n && r != live && str_eq(r->meta.ns, t->ns))
            delete_route(t, r, "the service has another one");
}

/* The URL of the service, or GatewayNotFound. */
static void check_gateway(struct aim_turn *t)
{
    struct aim_route_plan *plan = &t->route;
    const struct aim_gateway_record *gateway =
        plan->is_gateway ? cache_get(t->aim->gateways, plan->gateway_ns, plan->gateway_name) : NULL;
    if (gateway) {
        t->url = aim_route_url(t->r->arena, gateway->listeners, gateway->addresses, plan);
        return;
    }
    if (plan->verdict == ROUTE_WAITING && plan->is_gateway && !cache_absent(t->aim->gateways))
        set_verdict(t, ROUTE_WAITING, "GatewayNotFound",
                    arena_printf(t->r->arena, "Gateway " STR_FMT "/" STR_FMT " does not exist",
                                 STR_ARG(plan->gateway_ns), STR_ARG(plan->gateway_name)));
}

/* Applies the route. The gateway's answer counts only if the spec did not change. */
static void write_route(struct aim_turn *t, const struct aim_route_question *q,
                        const struct json *route)
{
    struct json *desired = aim_route_object(t->r->arena, q, &t->route);
    const struct json *labels = json_at(route, "metadata", "labels", NULL);
    json_set_str(t->r->arena, json_get(desired, "metadata"), "name", t->route_name);
    if (labels && !t->template.name.n) /* the template is gone: its labels stay */
        json_set(t->r->arena, json_get(desired, "metadata"), S("labels"),
                 json_copy(t->r->arena, labels));
    t->route_wanted = true;
    bool same_spec = aim_apply_covers(json_get(route, "spec"), json_get(desired, "spec"));
    aim_apply_then(t, &aim_resource_httproutes, route, desired, on_route_written);
    bool unseen = !json_len(json_at(route, "status", "parents", NULL));
    if (route && (same_spec || unseen))
        aim_route_read_status(&t->route, route);
    else if (route)
        t->route.message = S("Waiting for the gateway to accept the HTTPRoute");
    check_gateway(t);
    report_overlap(t);
}

/* ---- a turn */

/* The wanted path is unknown: keeps the route, and reports the path that it serves. */
static void keep_served_path(struct aim_turn *t, const struct json *route)
{
    if (t->route.verdict != ROUTE_NOWHERE)
        t->route.served = aim_route_path_of(route);
}

static void report_config_missing(struct aim_turn *t, const struct json *route)
{
    set_verdict(t, ROUTE_WAITING, "RuntimeConfigMissing",
                S("the runtime configuration does not exist; the route stays as it is"));
    keep_served_path(t, route);
    if (route)
        aim_route_read_status(&t->route, route);
}

/* Writes the rules that no older service or route has; if there are none, the route is kept, or not created. A pool that cannot be
 * used is reported; until then an existing route leads to the Service. */
static void write_what_is_free(struct aim_turn *t, const struct aim_route_question *q,
                               const struct json *route)
{
    struct aim_route_question with = *q;
    struct aim_route_group g = aim_route_group(t, route);
    str no_pool, why = find_rivals(t);
    with.pool = aim_route_pool(t, &no_pool);
    with.backends = g.backends;
    with.backend_n = g.n;
    bool can = g.n ? true : route ? t->template.exists : t->template.ready;
    bool any = !t->route.path_lost || (t->route.header_value.n && !t->route.header_lost);
    if (g.reason)
        set_verdict(t, strcmp(g.reason, "RouteWeightsZero") ? ROUTE_WAITING : ROUTE_FAILED,
                    g.reason, g.message);
    else if (any && can && (route || !no_pool.n))
        write_route(t, &with, route);
    if (no_pool.n)
        set_verdict(t, ROUTE_FAILED, "RouteFailed", no_pool);
    else if (why.n)
        set_verdict(t, ROUTE_CONFLICT, "RouteConflict", why);
}

/* Carries out the plan: deletes, writes, or keeps the route. */
static void apply_verdict(struct aim_turn *t, const struct aim_route_question *q,
                          const struct aim_route_record *live, const struct json *route)
{
    switch (t->route.verdict) {
    case ROUTE_OFF:
        delete_route(t, live, "routing is disabled");
        break;
    case ROUTE_WAITING:
        if (live && !route)
            set_verdict(t, ROUTE_CONFLICT, "RouteConflict",
                        arena_printf(t->r->arena,
                                     "HTTPRoute " STR_FMT "/" STR_FMT
                                     " exists and does not belong to this service",
                                     STR_ARG(t->ns), STR_ARG(t->name)));
        else if (lacks_hostnames(t))
            set_verdict(t, ROUTE_NOWHERE, "RouteHostnameRequired",
                        S("Parent gateway has multiple listeners but no routing hostnames are "
                          "configured; refusing to create an all-hosts route"));
        else
            write_what_is_free(t, q, route);
        if (t->route.verdict == ROUTE_CONFLICT || (route && !t->route_wanted))
            keep_served_path(t, route);
        if (route && !t->route_wanted && t->route.verdict == ROUTE_WAITING)
            aim_route_read_status(&t->route, route);
        break;
    default:
        keep_served_path(t, route);
    }
}

/* The service shares the route of an older one. Its own route stays until that one leads to it. */
static void follow_leader(struct aim_turn *t, const struct aim_route_group *g,
                          const struct aim_route_record *live)
{
    str why;
    aim_claims_set(&t->aim->claims, &t->tracked->claim, NULL, 0, enqueue_holder, t->aim);
    set_conflict(t->aim, t->tracked, false);
    (void)aim_route_pool(t, &why);
    aim_route_group_follow(t, g);
    if (t->route.verdict == ROUTE_READY)
        delete_route(t, live, "the service shares the route of its group");
}

/* Renews the claim before checking for conflicts, so that both use the same plan. */
void aim_route_turn(struct aim_turn *t)
{
    struct arena *a = t->r->arena;
    if (t->deleting)
        return; /* the route is deleted with its owner */
    if (!t->of->hooks)
        t->template = (struct aim_route_template){ .ready = true, .exists = true };
    const struct aim_route_record *live = find_route(t->aim, t->ns, t->name, t->uid);
    t->route_name = arena_str(a, live ? live->meta.name : t->name);
    delete_other_routes(t, live);
    const struct json *route = is_ours(live, t->uid) ? aim_route_record_object(a, live) : NULL;
    if (t->config.outcome == RESOLVE_MISSING) {
        report_config_missing(t, route);
        return;
    }
    struct aim_route_question q = make_question(t->aim, t->object, &t->own, &t->settings);
    q.template = &t->template;
    t->route = aim_route_plan(a, &q);
    if (t->route.verdict != ROUTE_OFF)
        runtimeconfig_metrics_rendered(&t->aim->metrics, t->route.path.n > 0);
    t->tracked->claim.routed_ns = route ? live->created_ns : 0;
    struct aim_route_group g = { 0 };
    if (t->route.verdict == ROUTE_WAITING)
        g = aim_route_group(t, route);
    if (g.follows) {
        follow_leader(t, &g, live);
        return;
    }
    claim_path(t->aim, a, t->tracked, &t->route, route);
    t->route_generation = route ? live->generation : 0;
    apply_verdict(t, &q, live, route);
    set_conflict(t->aim, t->tracked, t->route.verdict == ROUTE_CONFLICT);
}

/* status.routing: the path that is served, the gateway, the source of the template, and the URL once ready. */
static void put_routing(struct aim_turn *t)
{
    struct aim_status *s = &t->status;
    struct aim_route_plan *plan = &t->route;
    struct json *fields = json_new_obj(s->a);
    if (plan->served.n)
        json_set_str(s->a, fields, "path", plan->served);
    if (plan->gateway_name.n)
        json_set_str(s->a, fields, "gateway",
                     arena_printf(s->a, STR_FMT "/" STR_FMT, STR_ARG(plan->gateway_ns),
                                  STR_ARG(plan->gateway_name)));
    json_set_str(s->a, fields, "templateSource", str_c(aim_route_source_name(plan->source)));
    if (t->route_generation)
        json_set_int(s->a, fields, "observedRouteGeneration", t->route_generation);
    if (t->url.n && plan->verdict == ROUTE_READY)
        json_set_str(s->a, fields, "url", t->url);
    if (plan->header_value.n)
        json_set_str(s->a, fields, "modelName", plan->header_value);
    json_set(s->a, s->next, S("routing"), fields);
}

/* Waiting is not worth an event: it is the normal start of every route. */
static void emit_route_event(struct aim_turn *t)
{
    static const bool warns[ROUTE_VERDICT_N] = { [ROUTE_INVALID] = true,
                                                 [ROUTE_NOWHERE] = true,
                                                 [ROUTE_CONFLICT] = true,
                                                 [ROUTE_REJECTED] = true,
                                                 [ROUTE_FAILED] = true };
    const struct aim_route_plan *plan = &t->route;
    if (plan->verdict == ROUTE_READY || warns[plan->verdict])
        aim_status_event(&t->status, warns[plan->verdict], plan->reason, plan->message);
}

/* Without a configuration, status.routing stays as it was: nothing is known about the route. */
void aim_route_status(struct aim_turn *t)
{
    if (!t->route.reason)
        return;
    bool holds = aim_route_is_ready(t->route.verdict);
    bool moved =
        aim_status_condition(&t->status,
                             &(struct aim_condition){ "RoutingReady", holds ? AIM_TRUE : AIM_FALSE,
                                                      t->route.reason, t->route.message });
    if (moved)
        emit_route_event(t);
    if (t->config.outcome == RESOLVE_MISSING)
        return;
    if (t->route.verdict == ROUTE_OFF)
        json_del(t->status.next, S("routing"));
    else
        put_routing(t);
    if (!t->route_wanted)
        aim_status_drop_condition(&t->status, "RouteOverlap");
}

/* ---- watches */

/* The entry of a foreign route, created on first use. */
static struct aim_foreign_route *foreign_put(struct aim *aim, const struct aim_route_record *r)
{
    struct aim_foreign_route *f = object_key_find(&aim->foreign, r->meta.ns, r->meta.name);
    if (!f) {
        f = mem_zero(1, sizeof(*f));
        f->key = object_key_new(r->meta.ns, r->meta.name, &f->holder.ns, &f->holder.name);
        f->holder.foreign = true;
        map_put(&aim->foreign, str_c(f->key), f);
    }
    f->holder.created_ns = r->created_ns;
    return f;
}

static void foreign_free(struct aim *aim, struct aim_foreign_route *f)
{
    aim_claims_set(&aim->claims, &f->holder, NULL, 0, enqueue_holder, aim);
    free(f->key);
    free(f);
}

static void foreign_drop(struct aim *aim, const struct record *r)
{
    struct aim_foreign_route *f = object_key_find(&aim->foreign, r->ns, r->name);
    if (!f)
        return;
    map_del(&aim->foreign, str_c(f->key));
    foreign_free(aim, f);
}

static void foreign_claim(struct aim *aim, const struct aim_route_record *r)
{
    auto_arena struct arena a = { 0 };
    struct aim_route_paths places = aim_route_paths(&a, aim_route_record_object(&a, r));
    aim_claims_set(&aim->claims, &foreign_put(aim, r)->holder, places.at, places.n, enqueue_holder,
                   aim);
}

void aim_route_track_foreign(struct aim *aim, const struct aim_route_record *now)
{
    if (str_eqc(now->owner_kind, "AIMService"))
        foreign_drop(aim, &now->meta);
    else
        foreign_claim(aim, now);
}

/* Updates claims, then enqueues the service of that name: the route is its own, or in its way. */
static void on_route_change(struct controller *c, const struct record *old,
                            const struct record *now)
{
    struct aim_consumers *services = controller_context(c);
    struct aim *aim = services->aim;
    const struct record *any = now ? now : old;
    const struct aim_route_record *either = record_as(struct aim_route_record, any);
    const struct aim_route_record *route = record_as(struct aim_route_record, now);
    bool owned = str_eqc(either->owner_kind, "AIMService") && either->owner_name.n;
    str name = owned ? either->owner_name : any->name; /* an adopted route has another name */
    struct aim_tracked *tracked = aim_consumer_find(services, any->ns, name);
    if (now)
        aim_route_track_foreign(aim, route);
    else
        foreign_drop(aim, any);
    if (!tracked)
        return;
    int64_t routed_ns = route && owned ? route->created_ns : 0;
    if (routed_ns != tracked->claim.routed_ns) {
        tracked->claim.routed_ns = routed_ns;
        aim_claims_notify(&aim->claims, &tracked->claim, enqueue_holder, aim);
    }
    const struct aim_record *service = cache_get(services->cache, any->ns, name);
    if (service)
        aim_route_group_enqueue(aim, service->meta.ns, service->route_group);
    if (service) /* the gateway's answer decides whether its claim is valid */
        aim_resolution_link(aim, tracked, service);
    controller_add(c, any->ns, name); /* its own route, or a conflicting one */
}

/* Affects the services that claim a path of this gateway: their URL or GatewayNotFound may change. */
static void on_gateway_change(struct controller *c, const struct record *old,
                              const struct record *now)
{
    const struct aim_consumers *services = controller_context(c);
    const struct record *any = now ? now : old;
    for (struct map_slot *s = NULL; (s = map_next(&services->tracked, s));) {
        const struct aim_tracked *one = s->value;
        if (aim_claims_has_gateway(&one->claim, any->ns, any->name))
            controller_add(c, one->ns, one->name);
    }
}

int aim_route_start(struct aim *aim, err_t *e)
{
    struct controller *c = aim->consumers[AIM_SERVICE].controller;
    int r = manager_cache(aim->manager, &aim_route_cache, &aim->routes, e);
    r = r < 0 ? r : manager_cache(aim->manager, &aim_gateway_cache, &aim->gateways, e);
    if (r < 0)
        return r;
    controller_watch(c, aim->routes, on_route_change);
    controller_watch(c, aim->gateways, on_gateway_change);
    return 0;
}

void aim_route_stop(struct aim *aim)
{
    for (struct map_slot *s = NULL; (s = map_next(&aim->foreign, s));)
        foreign_free(aim, s->value);
    map_done(&aim->foreign);
    aim_claims_done(&aim->claims);
}
