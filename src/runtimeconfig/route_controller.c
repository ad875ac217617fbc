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
#include "gateway_core.h"

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
    return (struct aim_claim_place){ plan->gateway_ns, plan->gateway_name, plan->section,
                                     plan->path };
}

/* Claims the planned path, unless there is none or the gateway refused the route. `route` is the service's own; NULL:
 * none. */
static void claim_path(struct aim *aim, struct aim_tracked *tracked,
                       const struct aim_route_plan *plan, const struct json *route)
{
    struct aim_claim_place place = place_of(plan);
    bool wants = plan->verdict == ROUTE_WAITING && plan->is_gateway &&
                 (!route || !aim_route_is_refused(route, &place));
    aim_claims_set(&aim->claims, &tracked->claim, &place, wants, enqueue_holder, aim);
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
    const struct aim_route_record *route = cache_get(aim->routes, r->meta.ns, r->meta.name);
    struct aim_route_plan plan = aim_route_plan(&a, &q);
    tracked->claim.routed_ns = is_ours(route, r->meta.uid) ? route->created_ns : 0;
    if (r->deleting)
        plan.verdict = ROUTE_OFF;
    claim_path(aim, tracked, &plan,
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

/* True if an older holder owns the path; sets the verdict. */
static bool has_rival(struct aim_turn *t)
{
    struct aim_claim_place place = place_of(&t->route);
    const struct aim_claim_holder *rival =
        aim_claims_find_older(&t->aim->claims, &t->tracked->claim, &place);
    if (!rival)
        return false;
    set_verdict(t, ROUTE_CONFLICT, "RouteConflict",
                arena_printf(t->r->arena,
                             "the path " STR_FMT " of gateway " STR_FMT "/" STR_FMT
                             " belongs to %s " STR_FMT "/" STR_FMT ", which is older",
                             STR_ARG(place.path), STR_ARG(place.gateway_ns), STR_ARG(place.gateway),
                             rival->foreign ? "HTTPRoute" : "AIMService", STR_ARG(rival->ns),
                             STR_ARG(rival->name)));
    return true;
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
    struct aim_turn *t = aim_turn_get(r);
    if (!t)
        return;
    if (reply->failure)
        set_verdict(t, ROUTE_FAILED, "RouteFailed", arena_str(r->arena, str_c(reply->failure)));
    else
        t->route_generation = json_int(json_at(reply->object, "metadata", "generation", NULL), 0);
    aim_turn_answered(t, reply);
}

/* Deletes our own route; the uid precondition protects a route that was recreated by another client. */
static void delete_route(struct aim_turn *t, const struct aim_route_record *live)
{
    if (!is_ours(live, t->uid) || !str_eqc(live->managed_by, ROUTE_MANAGED_BY))
        return;
    struct json *body = json_new_obj(t->r->arena);
    json_set_str(t->r->arena, json_make(t->r->arena, body, "preconditions", NULL), "uid",
                 live->meta.uid);
    log_info("deleting HTTPRoute: routing is disabled", KV("namespace", t->ns),
             KV("name", t->name));
    aim_send(t, &(struct kube_request){ .verb = KUBE_DELETE,
                                        .resource = &aim_resource_httproutes,
                                        .ns = t->ns,
                                        .name = t->name,
                                        .body = json_to_str(t->r->arena, body) });
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
    t->route_wanted = true;
    bool same_spec = aim_apply_covers(json_get(route, "spec"), json_get(desired, "spec"));
    aim_apply_then(t, &aim_resource_httproutes, route, desired, on_route_written);
    if (route && same_spec)
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

/* Carries out the plan: deletes, writes, or keeps the route. */
static void apply_verdict(struct aim_turn *t, const struct aim_route_question *q,
                          const struct aim_route_record *live, const struct json *route)
{
    switch (t->route.verdict) {
    case ROUTE_OFF:
        delete_route(t, live);
        break;
    case ROUTE_WAITING:
        if (live && !route)
            set_verdict(t, ROUTE_CONFLICT, "RouteConflict",
                        arena_printf(t->r->arena,
                                     "HTTPRoute " STR_FMT "/" STR_FMT
                                     " exists and does not belong to this service",
                                     STR_ARG(t->ns), STR_ARG(t->name)));
        else if (!has_rival(t) && t->template.ready)
            write_route(t, q, route);
        if (t->route.verdict == ROUTE_CONFLICT)
            keep_served_path(t, route);
        break;
    default:
        keep_served_path(t, route);
    }
}

/* Renews the claim before checking for conflicts, so that both use the same plan. */
void aim_route_turn(struct aim_turn *t)
{
    struct arena *a = t->r->arena;
    if (t->deleting)
        return; /* the route is deleted with its owner */
    if (!t->of->hooks)
        t->template = (struct aim_route_template){ .ready = true };
    const struct aim_route_record *live = cache_get(t->aim->routes, t->ns, t->name);
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
    claim_path(t->aim, t->tracked, &t->route, route);
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
    char text[AIM_KEY_MAX];
    str key = aim_key(text, r->meta.ns, r->meta.name);
    struct aim_foreign_route *f = map_get(&aim->foreign, key);
    if (!f) {
        f = mem_zero(1, sizeof(*f));
        f->key = mem_dup(key.p, key.n);
        f->holder =
            (struct aim_claim_holder){ .ns = { f->key, r->meta.ns.n },
                                       .name = { f->key + r->meta.ns.n + 1, r->meta.name.n },
                                       .foreign = true };
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
    char text[AIM_KEY_MAX];
    struct aim_foreign_route *f = map_del(&aim->foreign, aim_key(text, r->ns, r->name));
    if (f)
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
    struct aim_tracked *tracked = aim_consumer_find(services, any->ns, any->name);
    if (now)
        aim_route_track_foreign(aim, (const struct aim_route_record *)(const void *)now);
    else
        foreign_drop(aim, any);
    if (!tracked)
        return;
    const struct aim_route_record *route = (const struct aim_route_record *)(const void *)now;
    int64_t routed_ns = route && str_eqc(route->owner_kind, "AIMService") ? route->created_ns : 0;
    if (routed_ns != tracked->claim.routed_ns) {
        tracked->claim.routed_ns = routed_ns;
        aim_claims_notify(&aim->claims, &tracked->claim, enqueue_holder, aim);
    }
    const struct aim_record *service = cache_get(services->cache, any->ns, any->name);
    if (service) /* the gateway's answer decides whether its claim is valid */
        aim_resolution_link(aim, tracked, service);
    controller_add(c, any->ns, any->name); /* its own route, or a conflicting one */
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
