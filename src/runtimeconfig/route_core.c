/* Planning a route: see route_core.h.
 *
 * The service's own routing settings take precedence over those of its configuration, field by field; annotations are
 * merged. Names, labels and defaults are those of the operator that this replaces, because gateways, dashboards and
 * selectors of users depend on them.
 *
 *     routing not enabled ----------------> OFF        RoutingReady True, the route is deleted
 *     path cannot be rendered, or is not
 *       under the required prefix --------> INVALID    the service is Degraded, the route stays
 *     no gatewayRef ----------------------> NOWHERE    the service is Failed
 *     requestTimeout is invalid ----------> FAILED
 *     otherwise --------------------------> WAITING    until the gateway answers: READY or REJECTED
 *
 * Invariant: a plan with a path satisfies the required prefix of the cluster administrator. A path that does not is
 * never claimed, written or published. */
#include "route_core.h"

#include "../base/duration.h"
#include "names_core.h"
#include "service_children_core.h"
#include "service_route_core.h"

#define GATEWAY_GROUP "gateway.networking.k8s.io"

static const int64_t ns_per_ms = 1000000;

static str text_at(const struct json *o, const char *key, str otherwise)
{
    str text = json_text(json_get(o, key));
    return text.n ? text : otherwise;
}

static str service_ns(const struct aim_route_question *q)
{
    return json_text(json_at(q->service, "metadata", "namespace", NULL));
}

static str service_name(const struct aim_route_question *q)
{
    return json_text(json_at(q->service, "metadata", "name", NULL));
}

const char *aim_route_source_name(enum aim_route_source source)
{
    static const char *const names[] = { "Default", "RuntimeConfig", "Service" };
    return names[source];
}

bool aim_route_is_ready(enum aim_route_verdict verdict)
{
    return verdict == ROUTE_OFF || verdict == ROUTE_READY;
}

/* ---- which settings apply */

static bool is_enabled(const struct aim_route_question *q)
{
    const struct aim_routing_spec *own = &q->own->routing, *config = &q->config->routing;
    return own->has_enabled ? own->enabled : config->has_enabled && config->enabled;
}

static const struct json *gateway_of(const struct aim_route_question *q)
{
    return q->own->routing.gateway ? q->own->routing.gateway : q->config->routing.gateway;
}

static str timeout_of(const struct aim_route_question *q)
{
    return q->own->routing.timeout.n ? q->own->routing.timeout : q->config->routing.timeout;
}

static void choose_template(const struct aim_route_question *q, struct aim_route_plan *plan)
{
    plan->source = q->own->routing.path_template.n      ? ROUTE_SERVICE
                   : q->config->routing.path_template.n ? ROUTE_CONFIG
                                                        : ROUTE_DEFAULT;
    plan->template = plan->source == ROUTE_SERVICE ? q->own->routing.path_template
                                                   : q->config->routing.path_template;
}

/* Fields that are absent in the reference have the defaults of the Gateway API. */
static void choose_gateway(const struct aim_route_question *q, struct aim_route_plan *plan)
{
    const struct json *gateway = gateway_of(q);
    plan->gateway_name = json_text(json_get(gateway, "name"));
    plan->gateway_ns = text_at(gateway, "namespace", service_ns(q));
    plan->section = json_text(json_get(gateway, "sectionName"));
    plan->is_gateway = str_eqc(text_at(gateway, "kind", S("Gateway")), "Gateway") &&
                       str_eqc(text_at(gateway, "group", S(GATEWAY_GROUP)), GATEWAY_GROUP);
}

/* The name of the model that clients put into a header: given, or that of the first source, or the last one that is known. */
static void choose_header(const struct aim_route_question *q, struct aim_route_plan *plan)
{
    const struct json *header =
        q->own->routing.header ? q->own->routing.header : q->config->routing.header;
    str value = json_text(json_get(header, "value"));
    if (!json_bool(json_get(header, "enabled"), false))
        return;
    plan->header_name = text_at(header, "name", S("X-Gateway-Model-Name"));
    plan->header_value =
        value.n ? value
        : q->template && q->template->source_name.n
            ? q->template->source_name
            : json_text(json_at(q->service, "status", "routing", "modelName", NULL));
}

/* ---- the path */

static void set_verdict(struct aim_route_plan *plan, enum aim_route_verdict verdict,
                        const char *reason, str message)
{
    plan->verdict = verdict;
    plan->reason = reason;
    plan->message = message;
}

/* Compiles and renders a template for the service of the question. */
static int render_path(struct arena *a, const struct aim_route_question *q, str template, str *ret,
                       struct aim_path_problem *problem)
{
    struct aim_path_template t;
    auto_buf struct buf path = { 0 };
    int failed = aim_path_compile(a, template, &t, problem);
    failed = failed ? failed
                    : aim_path_render_traced(&t, q->service, a, q->trace, q->trace_context, &path,
                                             problem);
    if (!failed)
        *ret = arena_str(a, buf_str(&path));
    return failed;
}

static bool aim_route_is_under(str path, str prefix)
{
    return str_eqc(prefix, "/") || str_eq(path, prefix) ||
           (str_starts(path, prefix) && path.n > prefix.n && path.p[prefix.n] == '/');
}

/* True if the path is under the required prefix, or there is none; otherwise sets the verdict. */
static bool guard_allows(struct arena *a, const struct aim_route_question *q,
                         struct aim_route_plan *plan)
{
    struct aim_path_problem problem;
    struct aim_route_question quiet = *q;
    str prefix = S("");
    quiet.trace = NULL;
    if (!q->guard.n)
        return true;
    if (render_path(a, &quiet, q->guard, &prefix, &problem) < 0) {
        set_verdict(plan, ROUTE_INVALID, "PathTemplateInvalid",
                    arena_printf(a, "routing.requiredPrefix of the cluster's configuration: %s",
                                 problem.text));
        return false;
    }
    if (aim_route_is_under(plan->path, prefix))
        return true;
    set_verdict(plan, ROUTE_INVALID, "PathTemplateInvalid",
                arena_printf(a,
                             "the path " STR_FMT
                             " is not allowed: the cluster's configuration requires "
                             "paths of this service under " STR_FMT,
                             STR_ARG(plan->path), STR_ARG(prefix)));
    return false;
}

/* Each check that fails ends the plan with its verdict. */
struct aim_route_plan aim_route_plan(struct arena *a, const struct aim_route_question *q)
{
    struct aim_route_plan plan = { 0 };
    struct aim_path_problem problem;
    str timeout;
    err_t e;
    choose_template(q, &plan);
    if (!is_enabled(q)) {
        set_verdict(&plan, ROUTE_OFF, "RouteReady", S("Routing disabled"));
        return plan;
    }
    if (render_path(a, q, plan.template, &plan.path, &problem) < 0) {
        static const char *const whose[] = { "the default path",
                                             "routing.pathTemplate of the runtime configuration",
                                             "spec.routing.pathTemplate" };
        set_verdict(&plan, ROUTE_INVALID, "PathTemplateInvalid",
                    arena_printf(a, "%s: %s", whose[plan.source], problem.text));
        return plan;
    }
    choose_gateway(q, &plan);
    choose_header(q, &plan);
    plan.hostnames =
        q->own->routing.hostnames ? q->own->routing.hostnames : q->config->routing.hostnames;
    if (!guard_allows(a, q, &plan)) {
        plan.path = S("");
        return plan;
    }
    plan.served = plan.path;
    if (!gateway_of(q))
        set_verdict(
            &plan, ROUTE_NOWHERE, "RouteFailed",
            S("routing.gatewayRef must be specified via AIMService or runtime config when routing "
              "is enabled"));
    else if (timeout_of(q).n && aim_route_parse_timeout(a, timeout_of(q), &timeout, &e) < 0)
        set_verdict(&plan, ROUTE_FAILED, "RouteFailed",
                    arena_printf(a, "routing.requestTimeout: %s", e.text));
    else
        set_verdict(&plan, ROUTE_WAITING, "ConfiguringRoute",
                    S("Waiting for HTTPRoute to be created"));
    return plan;
}

/* ---- durations of the Gateway API: at most five digits per unit, no fractions, whole milliseconds */

/* Splits a Go duration into the units that the Gateway API allows. */
int aim_route_parse_timeout(struct arena *a, str text, str *ret, err_t *e)
{
    static const struct {
        const char *unit;
        int64_t ms;
    } units[] = { { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 } };
    int64_t ns;
    int r = duration_parse(text, &ns, e);
    if (r < 0)
        return r;
    int64_t left = ns / ns_per_ms;
    if (ns < 0 || ns % ns_per_ms || left / 3600000 > 99999)
        return err_set(e, EINVAL,
                       "duration is \"" STR_FMT
                       "\", but must be whole milliseconds from 0s to 99999h for "
                       "the Gateway API",
                       STR_ARG(text));
    auto_buf struct buf out = { 0 };
    for (size_t i = 0; i < countof(units); i++) {
        if (left / units[i].ms)
            buf_printf(&out, "%lld%s", (long long)(left / units[i].ms), units[i].unit);
        left %= units[i].ms;
    }
    *ret = out.n ? arena_str(a, buf_str(&out)) : S("0s");
    return 0;
}

/* ---- the object */

static void put_label(struct arena *a, struct json *labels, const struct aim_route_question *q,
                      const char *name, str value)
{
    if (value.n)
        json_set_str(a, labels, arena_printf(a, "%s/%s", q->group, name).p,
                     aim_names_label_value(a, value));
}

static void put_labels(struct arena *a, struct json *metadata, const struct aim_route_question *q)
{
    const struct aim_route_template *t = q->template;
    struct json *labels = json_make(a, metadata, "labels", NULL);
    json_set_str(a, labels, "app.kubernetes.io/name", S("aim-service"));
    json_set_str(a, labels, "app.kubernetes.io/component", S("inference-service"));
    json_set_str(a, labels, "app.kubernetes.io/managed-by", S(ROUTE_MANAGED_BY));
    put_label(a, labels, q, "template", t->name);
    put_label(a, labels, q, "model-id", t->source_name.n ? t->source_name : t->model_name);
    put_label(a, labels, q, "aim-image", t->model_name);
    put_label(a, labels, q, "service-name", service_name(q));
}

static void put_annotations(struct arena *a, struct json *metadata,
                            const struct aim_route_question *q)
{
    const struct json *layers[] = { q->config->routing.annotations, q->own->routing.annotations };
    for (size_t i = 0; i < countof(layers); i++)
        json_each(m, layers[i])
            json_set(a, json_make(a, metadata, "annotations", NULL), m->key,
                     json_copy(a, m->value));
}

/* Not aim_owner(): a plan is also made without a turn, for `flyball render`. */
static void put_owner(struct arena *a, struct json *metadata, const struct aim_route_question *q)
{
    struct json *owner = json_new_obj(a), *owners = json_new_arr(a);
    json_set_str(a, owner, "apiVersion", arena_printf(a, "%s/v1alpha1", q->group));
    json_set_str(a, owner, "kind", S("AIMService"));
    json_set_str(a, owner, "name", service_name(q));
    json_set_str(a, owner, "uid", json_text(json_at(q->service, "metadata", "uid", NULL)));
    json_set_bool(a, owner, "controller", true);
    json_set_bool(a, owner, "blockOwnerDeletion", true);
    json_push(a, owners, owner);
    json_set(a, metadata, S("ownerReferences"), owners);
}

static struct json *make_list(struct arena *a, struct json *item)
{
    struct json *list = json_new_arr(a);
    json_push(a, list, item);
    return list;
}

/* The parent reference, with all defaults written out, as the original does. */
static struct json *make_parent(struct arena *a, const struct aim_route_question *q)
{
    const struct json *gateway = gateway_of(q);
    struct json *parent = json_new_obj(a);
    json_set_str(a, parent, "group", text_at(gateway, "group", S(GATEWAY_GROUP)));
    json_set_str(a, parent, "kind", text_at(gateway, "kind", S("Gateway")));
    json_set_str(a, parent, "namespace", text_at(gateway, "namespace", service_ns(q)));
    json_set_str(a, parent, "name", json_text(json_get(gateway, "name")));
    static const char *const copied[] = { "sectionName", "port" };
    for (size_t i = 0; i < countof(copied); i++)
        if (json_get(gateway, copied[i]))
            json_set(a, parent, str_c(copied[i]), json_copy(a, json_get(gateway, copied[i])));
    return parent;
}

/* A pool has neither a port nor a namespace: it is in that of the route. */
static struct json *make_backend(struct arena *a, const struct aim_route_question *q,
                                 const struct aim_route_backend *b)
{
    struct json *backend = json_new_obj(a);
    if (b->pool.n) {
        json_set_str(a, backend, "group", S("inference.networking.k8s.io"));
        json_set_str(a, backend, "kind", S("InferencePool"));
        json_set_str(a, backend, "name", b->pool);
    } else {
        json_set_str(a, backend, "kind", S("Service"));
        json_set_str(a, backend, "name", arena_printf(a, STR_FMT "-predictor", STR_ARG(b->isvc)));
        json_set_str(a, backend, "namespace", service_ns(q));
        json_set_int(a, backend, "port", 80);
    }
    if (b->weight >= 0)
        json_set_int(a, backend, "weight", b->weight);
    return backend;
}

/* Those of the group, each with its weight, or the service's own without one, as the original writes it. */
static struct json *make_backends(struct arena *a, const struct aim_route_question *q)
{
    struct json *list = json_new_arr(a);
    str isvc = q->template && q->template->backend.n
                   ? q->template->backend
                   : aim_names_inference_service(a, service_name(q), service_ns(q));
    struct aim_route_backend own = { .isvc = isvc, .pool = q->pool, .weight = -1 };
    for (size_t i = 0; i < q->backend_n; i++)
        json_push(a, list, make_backend(a, q, &q->backends[i]));
    if (!q->backend_n)
        json_push(a, list, make_backend(a, q, &own));
    return list;
}

/* The same for all rules of a route. */
static void put_timeout(struct arena *a, const struct aim_route_question *q, struct json *rule)
{
    str timeout;
    if (timeout_of(q).n && aim_route_parse_timeout(a, timeout_of(q), &timeout, NULL) == 0)
        json_set_str(a, json_make(a, rule, "timeouts", NULL), "request", timeout);
}

/* By model name, on every path; nothing is rewritten. */
static struct json *make_header_rule(struct arena *a, const struct aim_route_question *q,
                                     const struct aim_route_plan *plan)
{
    struct json *rule = json_new_obj(a), *match = json_new_obj(a), *header = json_new_obj(a);
    struct json *path = json_make(a, match, "path", NULL);
    json_set_str(a, path, "type", S("PathPrefix"));
    json_set_str(a, path, "value", S("/"));
    json_set_str(a, header, "type", S("Exact"));
    json_set_str(a, header, "name", plan->header_name);
    json_set_str(a, header, "value", plan->header_value);
    json_set(a, match, S("headers"), make_list(a, header));
    json_set(a, rule, S("matches"), make_list(a, match));
    json_set(a, rule, S("backendRefs"), make_backends(a, q));
    put_timeout(a, q, rule);
    return rule;
}

/* Prefix match, rewritten to "/", to the predictor of the InferenceService. */
static struct json *make_rule(struct arena *a, const struct aim_route_question *q, str path)
{
    struct json *rule = json_new_obj(a), *match = json_new_obj(a), *filter = json_new_obj(a);
    struct json *value = json_make(a, match, "path", NULL);
    json_set_str(a, value, "type", S("PathPrefix"));
    json_set_str(a, value, "value", path);
    json_set(a, rule, S("matches"), make_list(a, match));
    json_set_str(a, filter, "type", S("URLRewrite"));
    struct json *rewrite = json_make(a, filter, "urlRewrite", "path", NULL);
    json_set_str(a, rewrite, "type", S("ReplacePrefixMatch"));
    json_set_str(a, rewrite, "replacePrefixMatch", S("/"));
    json_set(a, rule, S("filters"), make_list(a, filter));
    json_set(a, rule, S("backendRefs"), make_backends(a, q));
    put_timeout(a, q, rule);
    return rule;
}

/* Labels are propagated last, so that they do not replace ours. */
struct json *aim_route_object(struct arena *a, const struct aim_route_question *q,
                              const struct aim_route_plan *plan)
{
    struct json *route = json_new_obj(a);
    json_set_str(a, route, "apiVersion", S(GATEWAY_GROUP "/v1"));
    json_set_str(a, route, "kind", S("HTTPRoute"));
    struct json *metadata = json_make(a, route, "metadata", NULL);
    json_set_str(a, metadata, "name", service_name(q));
    json_set_str(a, metadata, "namespace", service_ns(q));
    put_labels(a, metadata, q);
    put_annotations(a, metadata, q);
    put_owner(a, metadata, q);
    aim_service_copy_labels(a, q->config, q->service, route);
    struct json *spec = json_make(a, route, "spec", NULL);
    json_set(a, spec, S("parentRefs"), make_list(a, make_parent(a, q)));
    struct json *rules = json_new_arr(a);
    if (!plan->path_lost)
        json_push(a, rules, make_rule(a, q, plan->path));
    if (plan->header_value.n && !plan->header_lost)
        json_push(a, rules, make_header_rule(a, q, plan));
    json_set(a, spec, S("rules"), rules);
    if (json_len(plan->hostnames))
        json_set(a, spec, S("hostnames"), json_copy(a, plan->hostnames));
    return route;
}

str aim_route_path_of(const struct json *route)
{
    const struct json *rules = json_at(route, "spec", "rules", NULL);
    for (size_t i = 0; i < json_len(rules); i++) {
        const struct json *match = json_item(json_get(json_item(rules, i), "matches"), 0);
        if (!json_get(match, "headers"))
            return json_text(json_at(match, "path", "value", NULL));
    }
    return S(""); /* only the rule of the header */
}

/* ---- the gateway's answer */

/* The reason of a rejection is the gateway's own. */
void aim_route_read_status(struct aim_route_plan *plan, const struct json *route)
{
    struct aim_service_route_fact fact = aim_service_route_fact(route);
    switch (fact.state) {
    case SERVICE_ROUTE_READY:
        set_verdict(plan, ROUTE_READY, "RouteReady", S("HTTPRoute is ready"));
        break;
    case SERVICE_ROUTE_REJECTED:
        set_verdict(plan, ROUTE_REJECTED, fact.reason.p, fact.message);
        break;
    case SERVICE_ROUTE_NO_BACKEND:
        set_verdict(plan, ROUTE_NO_BACKEND, fact.reason.p, fact.message);
        break;
    default:
        set_verdict(plan, ROUTE_WAITING, fact.reason.p, fact.message);
    }
}
