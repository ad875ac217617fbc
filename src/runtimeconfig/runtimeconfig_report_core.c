/* Resolving and planning outside the controller: see runtimeconfig_report_core.h.
 *
 * `flyball render` has no cluster, so conflicts with other routes and the gateway's answer are unknown: a plan that would
 * be written counts as success. */
#include "runtimeconfig_report_core.h"

static str meta_text(const struct json *object, const char *key)
{
    return json_text(json_at(object, "metadata", key, NULL));
}

static struct aim_resolve_question question_of(const struct runtimeconfig_case *c)
{
    return (struct aim_resolve_question){ json_text(json_at(c->service, "spec", "runtimeConfigName",
                                                            NULL)),
                                          meta_text(c->service, "namespace"), c->operator_ns };
}

static void put_placeholder(void *context, str expression, str value)
{
    buf_printf(context, "    {" STR_FMT "} = " STR_FMT "\n", STR_ARG(expression), STR_ARG(value));
}

static str guard_of(const struct json *config)
{
    return runtimeconfig_spec_read(json_get(config, "spec"), true).routing.required_prefix;
}

/* The same steps as a turn of the controller, with objects from the caller instead of caches. */
struct runtimeconfig_answer runtimeconfig_answer(struct arena *a,
                                                 const struct runtimeconfig_case *c)
{
    struct aim_resolve_question q = question_of(c);
    struct runtimeconfig_answer answer = { .config = aim_resolve_objects(&q, c->in_namespace,
                                                                         c->in_cluster) };
    answer.settings =
        runtimeconfig_spec_read(answer.config.spec, answer.config.outcome == RESOLVE_CLUSTER);
    answer.own = runtimeconfig_spec_read(json_get(c->service, "spec"), false);
    if (answer.config.outcome == RESOLVE_MISSING) {
        answer.fails = true;
        return answer;
    }
    str guard = guard_of(c->in_cluster);
    struct aim_route_question route = {
        .group = c->group,
        .service = c->service,
        .own = &answer.own,
        .config = &answer.settings,
        .template = &c->template,
        .encoding = c->encoding,
        .guard = guard.n ? guard : guard_of(c->cluster_default),
        .trace = put_placeholder,
        .trace_context = &answer.trace,
    };
    answer.plan = aim_route_plan(a, &route);
    answer.fails = answer.plan.verdict != ROUTE_OFF && answer.plan.verdict != ROUTE_WAITING;
    if (answer.plan.verdict == ROUTE_WAITING)
        answer.route = aim_route_object(a, &route, &answer.plan);
    return answer;
}

/* ---- text */

/* Which configuration applies, and why. */
static void put_config(struct buf *out, const struct runtimeconfig_case *c,
                       const struct runtimeconfig_answer *answer)
{
    struct aim_resolve_question q = question_of(c);
    str name = aim_resolve_name(&q), ns = aim_resolve_namespace(&q);
    switch (answer->config.outcome) {
    case RESOLVE_NAMESPACE:
        buf_printf(out, "  configuration  AIMRuntimeConfig " STR_FMT "/" STR_FMT "%s\n",
                   STR_ARG(ns), STR_ARG(name),
                   c->in_cluster ? "; it takes the place of the cluster's" : "");
        break;
    case RESOLVE_CLUSTER:
        buf_printf(out,
                   "  configuration  AIMClusterRuntimeConfig " STR_FMT
                   ", as there is no AIMRuntimeConfig " STR_FMT "/" STR_FMT "\n",
                   STR_ARG(name), STR_ARG(ns), STR_ARG(name));
        break;
    case RESOLVE_NONE:
        buf_put(out, S("  configuration  none: there is no \"default\", and none is required\n"));
        break;
    default:
        buf_printf(out,
                   "  configuration  missing: there is neither an AIMRuntimeConfig " STR_FMT
                   "/" STR_FMT " nor an AIMClusterRuntimeConfig " STR_FMT "\n",
                   STR_ARG(ns), STR_ARG(name), STR_ARG(name));
    }
    if (answer->config.config)
        buf_printf(out, "  hash           %s\n", answer->config.hash);
}

/* Whether routing is on, and the path, gateway and problem of the plan. */
static void put_route(struct buf *out, const struct runtimeconfig_answer *answer, bool trace)
{
    static const char *const sources[] = { "none: the default is /NAMESPACE/UID",
                                           "of the runtime configuration", "of the service" };
    const struct aim_route_plan *plan = &answer->plan;
    const char *who = answer->own.routing.has_enabled        ? "the service"
                      : answer->settings.routing.has_enabled ? "the runtime configuration"
                                                             : NULL;
    if (plan->verdict == ROUTE_OFF) {
        buf_printf(out, "  routing        off: %s%s\n", who ? "disabled by " : "not enabled",
                   who ? who : "");
        return;
    }
    buf_printf(out, "  routing        on, by %s\n  template       %s", who, sources[plan->source]);
    if (plan->template.n)
        buf_printf(out, ": " STR_FMT, STR_ARG(plan->template));
    buf_putc(out, '\n');
    if (trace)
        buf_put(out, buf_str(&answer->trace));
    if (plan->gateway_name.n)
        buf_printf(out, "  gateway        " STR_FMT "/" STR_FMT "%s" STR_FMT "\n",
                   STR_ARG(plan->gateway_ns), STR_ARG(plan->gateway_name),
                   plan->section.n ? ", listener " : "", STR_ARG(plan->section));
    if (plan->path.n)
        buf_printf(out, "  path           " STR_FMT "\n", STR_ARG(plan->path));
    if (answer->fails)
        buf_printf(out, "  problem        %s: " STR_FMT "\n", plan->reason, STR_ARG(plan->message));
}

void runtimeconfig_report(struct buf *out, const struct runtimeconfig_case *c,
                          const struct runtimeconfig_answer *answer, bool trace)
{
    buf_printf(out, "AIMService " STR_FMT "/" STR_FMT "\n",
               STR_ARG(meta_text(c->service, "namespace")), STR_ARG(meta_text(c->service, "name")));
    put_config(out, c, answer);
    if (answer->config.outcome != RESOLVE_MISSING)
        put_route(out, answer, trace);
}
