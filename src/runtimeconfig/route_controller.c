/* The route of a service: planned, compared with what others want, written, and judged by the
 * gateway.
 *
 * Paths are claimed as soon as a service or a configuration is seen to change, before any turn on it:
 * so that a turn knows all who want its path, whatever the order in which turns come. */
#include "aim.h"

#include "../base/log.h"
#include "gateway_core.h"

struct foreign_route {
    char *key; /* owned "namespace/name" */
    struct claim_holder holder;
};

static void look_again(void *context, struct claim_holder *holder)
{
    struct aim *aim = context;
    if (!holder->foreign && !aim->stopping)
        controller_add(aim->consumers[AIM_SERVICE].controller, holder->ns, holder->name);
}

static bool is_ours(const struct route_record *route, str uid)
{
    return route && uid.n && str_eq(route->owner_uid, uid);
}

/* ---- the plan of a service */

static struct route_question question(const struct aim *aim, const struct json *service,
                                      const struct runtimeconfig_spec *own,
                                      const struct runtimeconfig_spec *config)
{
    return (struct route_question){
        .group = aim->kinds->group,
        .service = service,
        .own = own,
        .config = config,
        .encoding = aim->encoding,
        .guard =
            resolution_guard(aim, json_text(json_at(service, "spec", "runtimeConfigName", NULL))),
    };
}

static struct claim_place place_of(const struct route_plan *plan)
{
    return (struct claim_place){ plan->gateway_ns, plan->gateway_name, plan->section, plan->path };
}

/* `route` is the service's own, NULL where it has none. */
static void claim(struct aim *aim, struct aim_tracked *tracked, const struct route_plan *plan,
                  const struct json *route)
{
    struct claim_place place = place_of(plan);
    bool wants = plan->verdict == ROUTE_WAITING && plan->is_gateway &&
                 (!route || !route_is_refused(route, &place));
    claims_set(&aim->claims, &tracked->claim, &place, wants, look_again, aim);
}

bool route_place(struct aim *aim, struct aim_tracked *tracked, const struct aim_record *r,
                 const struct aim_config *config)
{
    static const struct runtimeconfig_spec none = { 0 };
    auto_arena struct arena a = { 0 };
    const struct resource *resource = &aim->kinds->at[AIM_SERVICE];
    const struct json *service = aim_record_object(&a, resource, r);
    struct runtimeconfig_spec own = runtimeconfig_spec_read(json_get(service, "spec"), false);
    struct route_question q = question(aim, service, &own, config ? &config->spec : &none);
    const struct route_record *route = cache_get(aim->routes, r->meta.ns, r->meta.name);
    struct route_plan plan = route_plan(&a, &q);
    tracked->claim.routed_ns = is_ours(route, r->meta.uid) ? route->created_ns : 0;
    if (r->deleting)
        plan.verdict = ROUTE_OFF;
    claim(aim, tracked, &plan, is_ours(route, r->meta.uid) ? route_record_object(&a, route) : NULL);
    return plan.verdict == ROUTE_INVALID && plan.source == ROUTE_CONFIG;
}

static void note_conflict(struct aim *aim, struct aim_tracked *tracked, bool conflict)
{
    if (tracked->conflict == conflict)
        return;
    aim->conflicts += conflict ? 1 : -1;
    tracked->conflict = conflict;
    runtimeconfig_metrics_conflicts(&aim->metrics, (size_t)aim->conflicts);
}

void route_leave(struct aim *aim, struct aim_tracked *tracked)
{
    claims_set(&aim->claims, &tracked->claim, NULL, 0, look_again, aim);
    note_conflict(aim, tracked, false);
}

/* ---- conflicts */

static void fail_for(struct aim_turn *t, enum route_verdict verdict, const char *reason,
                     str message)
{
    t->route.verdict = verdict;
    t->route.reason = reason;
    t->route.message = message;
}

static bool has_rival(struct aim_turn *t)
{
    struct claim_place place = place_of(&t->route);
    const struct claim_holder *rival = claims_rival(&t->aim->claims, &t->tracked->claim, &place);
    if (!rival)
        return false;
    fail_for(t, ROUTE_CONFLICT, "RouteConflict",
             arena_printf(t->r->arena,
                          "the path " STR_FMT " of gateway " STR_FMT "/" STR_FMT
                          " belongs to %s " STR_FMT "/" STR_FMT ", which is older",
                          STR_ARG(place.path), STR_ARG(place.gateway_ns), STR_ARG(place.gateway),
                          rival->foreign ? "HTTPRoute" : "AIMService", STR_ARG(rival->ns),
                          STR_ARG(rival->name)));
    return true;
}

/* Requests under a longer path go to who has that one: allowed, but worth a word. */
static void warn_of_overlap(struct aim_turn *t)
{
    struct claim_place place = place_of(&t->route);
    str above;
    const struct claim_holder *other =
        claims_above(&t->aim->claims, &t->tracked->claim, &place, &above);
    const struct json *old = aim_status_find(t->status.old, "RouteOverlap");
    if (!other && !str_eqc(place.path, "/")) {
        aim_status_drop_condition(&t->status, "RouteOverlap");
        return;
    }
    str message = other ? arena_printf(t->r->arena,
                                       "the path " STR_FMT " lies under " STR_FMT " of %s " STR_FMT
                                       "/" STR_FMT " and takes its requests",
                                       STR_ARG(place.path), STR_ARG(above),
                                       other->foreign ? "HTTPRoute" : "AIMService",
                                       STR_ARG(other->ns), STR_ARG(other->name))
                        : S("the path / takes every request of the gateway that nobody else wants");
    const char *reason = other ? "PathUnderAnother" : "PathIsRoot";
    aim_status_condition(&t->status,
                         &(struct aim_condition){ "RouteOverlap", AIM_TRUE, reason, message });
    if (!str_eq(json_text(json_get(old, "message")), message))
        aim_status_event(&t->status, true, reason, message);
}

/* ---- writing */

static void route_written(struct reconcile *r, const struct kube_reply *reply)
{
    struct aim_turn *t = turn_of(r);
    if (!t)
        return;
    if (reply->failure)
        fail_for(t, ROUTE_FAILED, "RouteFailed", arena_str(r->arena, str_c(reply->failure)));
    else
        t->route_generation = json_int(json_at(reply->object, "metadata", "generation", NULL), 0);
    turn_answered(t, reply);
}

static void remove_stale(struct aim_turn *t, const struct route_record *live)
{
    if (!is_ours(live, t->uid) || !str_eqc(live->managed_by, ROUTE_MANAGED_BY))
        return;
    struct json *body = json_new_obj(t->r->arena);
    json_set_str(t->r->arena, json_make(t->r->arena, body, "preconditions", NULL), "uid",
                 live->meta.uid);
    log_info("the route is no longer wanted", KV("namespace", t->ns), KV("name", t->name));
    aim_send(t, &(struct kube_request){ .verb = KUBE_DELETE,
                                        .resource = &resource_httproutes,
                                        .ns = t->ns,
                                        .name = t->name,
                                        .body = json_to_str(t->r->arena, body) });
}

static void look_at_gateway(struct aim_turn *t)
{
    struct route_plan *plan = &t->route;
    const struct gateway_record *gateway =
        plan->is_gateway ? cache_get(t->aim->gateways, plan->gateway_ns, plan->gateway_name) : NULL;
    if (gateway) {
        t->url = route_url(t->r->arena, gateway->listeners, gateway->addresses, plan);
        return;
    }
    if (plan->verdict == ROUTE_WAITING && plan->is_gateway && !cache_absent(t->aim->gateways))
        fail_for(t, ROUTE_WAITING, "GatewayNotFound",
                 arena_printf(t->r->arena, "there is no Gateway " STR_FMT "/" STR_FMT,
                              STR_ARG(plan->gateway_ns), STR_ARG(plan->gateway_name)));
}

static void write_route(struct aim_turn *t, const struct route_question *q,
                        const struct json *route)
{
    struct json *desired = route_object(t->r->arena, q, &t->route);
    t->route_wanted = true;
    bool same_spec = aim_covers(json_get(route, "spec"), json_get(desired, "spec"));
    apply_then(t, &resource_httproutes, route, desired, route_written);
    if (route && same_spec)
        route_judge(&t->route, route);
    else if (route)
        t->route.message = S("Waiting for the gateway to accept the HTTPRoute");
    look_at_gateway(t);
    warn_of_overlap(t);
}

/* ---- a turn */

/* Nothing is known about what should be: what is there stays, and is told of. */
static void keep(struct aim_turn *t, const struct json *route)
{
    if (t->route.verdict != ROUTE_NOWHERE)
        t->route.served = route_path_of(route);
}

static void config_missing(struct aim_turn *t, const struct json *route)
{
    fail_for(t, ROUTE_WAITING, "RuntimeConfigMissing",
             S("the runtime configuration that decides about the route does not exist"));
    keep(t, route);
    if (route)
        route_judge(&t->route, route);
}

static void carry_out(struct aim_turn *t, const struct route_question *q,
                      const struct route_record *live, const struct json *route)
{
    switch (t->route.verdict) {
    case ROUTE_OFF:
        remove_stale(t, live);
        break;
    case ROUTE_WAITING:
        if (live && !route)
            fail_for(t, ROUTE_CONFLICT, "RouteConflict",
                     arena_printf(t->r->arena,
                                  "HTTPRoute " STR_FMT "/" STR_FMT
                                  " exists and does not belong to this service",
                                  STR_ARG(t->ns), STR_ARG(t->name)));
        else if (!has_rival(t) && t->template.ready)
            write_route(t, q, route);
        if (t->route.verdict == ROUTE_CONFLICT)
            keep(t, route);
        break;
    default:
        keep(t, route);
    }
}

void route_turn(struct aim_turn *t)
{
    struct arena *a = t->r->arena;
    if (t->deleting)
        return; /* the route goes with its owner */
    if (!t->of->hooks)
        t->template = (struct route_template){ .ready = true };
    const struct route_record *live = cache_get(t->aim->routes, t->ns, t->name);
    const struct json *route = is_ours(live, t->uid) ? route_record_object(a, live) : NULL;
    if (t->config.outcome == RESOLVE_MISSING) {
        config_missing(t, route);
        return;
    }
    struct route_question q = question(t->aim, t->object, &t->own, &t->settings);
    q.template = &t->template;
    t->route = route_plan(a, &q);
    if (t->route.verdict != ROUTE_OFF)
        runtimeconfig_metrics_rendered(&t->aim->metrics, t->route.path.n > 0);
    t->tracked->claim.routed_ns = route ? live->created_ns : 0;
    claim(t->aim, t->tracked, &t->route, route);
    t->route_generation = route ? live->generation : 0;
    carry_out(t, &q, live, route);
    note_conflict(t->aim, t->tracked, t->route.verdict == ROUTE_CONFLICT);
}

static void put_routing(struct aim_turn *t)
{
    struct aim_status *s = &t->status;
    struct route_plan *plan = &t->route;
    struct json *fields = json_new_obj(s->a);
    if (plan->served.n)
        json_set_str(s->a, fields, "path", plan->served);
    if (plan->gateway_name.n)
        json_set_str(s->a, fields, "gateway",
                     arena_printf(s->a, STR_FMT "/" STR_FMT, STR_ARG(plan->gateway_ns),
                                  STR_ARG(plan->gateway_name)));
    json_set_str(s->a, fields, "templateSource", str_c(route_source_name(plan->source)));
    if (t->route_generation)
        json_set_int(s->a, fields, "observedRouteGeneration", t->route_generation);
    if (t->url.n && plan->verdict == ROUTE_READY)
        json_set_str(s->a, fields, "url", t->url);
    json_set(s->a, s->next, S("routing"), fields);
}

static void tell(struct aim_turn *t)
{
    static const bool warns[ROUTE_VERDICT_N] = { [ROUTE_INVALID] = true,
                                                 [ROUTE_NOWHERE] = true,
                                                 [ROUTE_CONFLICT] = true,
                                                 [ROUTE_REJECTED] = true,
                                                 [ROUTE_FAILED] = true };
    const struct route_plan *plan = &t->route;
    if (plan->verdict == ROUTE_READY || warns[plan->verdict])
        aim_status_event(&t->status, warns[plan->verdict], plan->reason, plan->message);
}

void route_status(struct aim_turn *t)
{
    if (!t->route.reason)
        return;
    bool holds = route_verdict_holds(t->route.verdict);
    bool moved =
        aim_status_condition(&t->status,
                             &(struct aim_condition){ "RoutingReady", holds ? AIM_TRUE : AIM_FALSE,
                                                      t->route.reason, t->route.message });
    if (moved)
        tell(t);
    if (t->config.outcome == RESOLVE_MISSING)
        return;
    if (t->route.verdict == ROUTE_OFF)
        json_del(t->status.next, S("routing"));
    else
        put_routing(t);
    if (!t->route_wanted)
        aim_status_drop_condition(&t->status, "RouteOverlap");
}

/* ---- what others do */

static struct foreign_route *foreign_put(struct aim *aim, const struct route_record *r)
{
    char text[AIM_KEY_MAX];
    str key = aim_key(text, r->meta.ns, r->meta.name);
    struct foreign_route *f = map_get(&aim->foreign, key);
    if (!f) {
        f = mem_zero(1, sizeof(*f));
        f->key = mem_dup(key.p, key.n);
        f->holder = (struct claim_holder){ .ns = { f->key, r->meta.ns.n },
                                           .name = { f->key + r->meta.ns.n + 1, r->meta.name.n },
                                           .foreign = true };
        map_put(&aim->foreign, str_c(f->key), f);
    }
    f->holder.created_ns = r->created_ns;
    return f;
}

static void foreign_free(struct aim *aim, struct foreign_route *f)
{
    claims_set(&aim->claims, &f->holder, NULL, 0, look_again, aim);
    free(f->key);
    free(f);
}

static void foreign_drop(struct aim *aim, const struct record *r)
{
    char text[AIM_KEY_MAX];
    struct foreign_route *f = map_del(&aim->foreign, aim_key(text, r->ns, r->name));
    if (f)
        foreign_free(aim, f);
}

static void foreign_claim(struct aim *aim, const struct route_record *r)
{
    auto_arena struct arena a = { 0 };
    struct route_places places = route_places(&a, route_record_object(&a, r));
    claims_set(&aim->claims, &foreign_put(aim, r)->holder, places.at, places.n, look_again, aim);
}

void route_seen(struct aim *aim, const struct route_record *now)
{
    if (str_eqc(now->owner_kind, "AIMService"))
        foreign_drop(aim, &now->meta);
    else
        foreign_claim(aim, now);
}

static void route_changed(struct controller *c, const struct record *old, const struct record *now)
{
    struct aim_consumers *services = controller_context(c);
    struct aim *aim = services->aim;
    const struct record *any = now ? now : old;
    struct aim_tracked *tracked = consumer_find(services, any->ns, any->name);
    if (now)
        route_seen(aim, (const struct route_record *)(const void *)now);
    else
        foreign_drop(aim, any);
    if (!tracked)
        return;
    const struct route_record *route = (const struct route_record *)(const void *)now;
    int64_t routed_ns = route && str_eqc(route->owner_kind, "AIMService") ? route->created_ns : 0;
    if (routed_ns != tracked->claim.routed_ns) {
        tracked->claim.routed_ns = routed_ns;
        claims_touch(&aim->claims, &tracked->claim, look_again, aim);
    }
    const struct aim_record *service = cache_get(services->cache, any->ns, any->name);
    if (service) /* accepted or refused, its claim counts or does not */
        resolution_place(aim, tracked, service);
    controller_add(c, any->ns, any->name); /* ours, or in the way */
}

static void gateway_changed(struct controller *c, const struct record *old,
                            const struct record *now)
{
    const struct aim_consumers *services = controller_context(c);
    const struct record *any = now ? now : old;
    for (struct map_slot *s = NULL; (s = map_next(&services->tracked, s));) {
        const struct aim_tracked *one = s->value;
        if (claims_holds(&one->claim, any->ns, any->name))
            controller_add(c, one->ns, one->name);
    }
}

int route_start(struct aim *aim, err_t *e)
{
    struct controller *c = aim->consumers[AIM_SERVICE].controller;
    int r = manager_cache(aim->manager, &route_cache, &aim->routes, e);
    r = r < 0 ? r : manager_cache(aim->manager, &gateway_cache, &aim->gateways, e);
    if (r < 0)
        return r;
    controller_watch(c, aim->routes, route_changed);
    controller_watch(c, aim->gateways, gateway_changed);
    return 0;
}

void route_stop(struct aim *aim)
{
    for (struct map_slot *s = NULL; (s = map_next(&aim->foreign, s));)
        foreign_free(aim, s->value);
    map_done(&aim->foreign);
    claims_done(&aim->claims);
}
