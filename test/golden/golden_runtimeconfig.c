/* Families of runtimeconfig: aim-path-render (`recommended` where present, else `expect`), aim-runtimeconfig
 * and aim-route-httproute (with timeouts as `recommendedTimeout` has them). */
#include "golden.h"

#include "runtimeconfig/route_core.h"
#include "runtimeconfig/runtimeconfig.h"

/* ---- aim-path-render */

/* Which group of the file's `about.error_groups` an error class is in. */
static str group_of(const struct golden *g, str class)
{
    const struct json *groups = json_at(g->file, "about", "error_groups", NULL);
    json_each(group, groups)
        for (size_t i = 0; i < json_len(group->value); i++)
            if (str_eq(json_text(json_item(group->value, i)), class))
                return group->key;
    return class;
}

static str fault_group(enum aim_path_fault fault)
{
    bool strict = fault == PATH_NOT_SCALAR || fault == PATH_DOT_SEGMENT;
    return strict ? S("strict_only") : str_c(aim_path_fault_name(fault));
}

/* The other encoding, where the original gave a path and our stricter reading of the template does. */
static void check_squeezed(struct golden *g, const struct json *c, struct aim_path_template t)
{
    struct aim_path_problem problem = { 0 };
    struct buf path = { 0 };
    const struct json *want = json_at(c, "rfc1123_kaiwo", "path", NULL);
    t.encoding = PATH_RFC1123;
    if (want && aim_path_render(&t, json_get(c, "object"), g->arena, &path, &problem) == 0)
        golden_eq_str(g, "rfc1123", buf_str(&path), want);
    buf_done(&path);
}

static void run_path(struct golden *g, const struct json *c)
{
    const struct json *want = json_get(c, "recommended"), *object = json_get(c, "object");
    if (!want)
        want = json_get(c, "expect");
    struct aim_path_template t;
    struct aim_path_problem problem = { 0 };
    struct buf path = { 0 };
    int failed = aim_path_compile(g->arena, json_text(json_get(c, "template")), &t, &problem);
    if (!failed)
        check_squeezed(g, c, t);
    failed = failed ? failed : aim_path_render(&t, object, g->arena, &path, &problem);
    const struct json *error = json_get(want, "error");
    if (error)
        golden_ok(g,
                  failed && str_eq(fault_group(problem.fault),
                                   group_of(g, json_text(json_get(error, "class")))),
                  "want error " STR_FMT ", got %s %s" STR_FMT,
                  STR_ARG(json_text(json_get(error, "class"))), aim_path_fault_name(problem.fault),
                  problem.text, STR_ARG(buf_str(&path)));
    else if (golden_ok(g, !failed, "want a path, got %s", problem.text))
        golden_eq_str(g, "path", buf_str(&path), json_get(want, "path"));
    buf_done(&path);
}

/* ---- aim-runtimeconfig */

static const struct json *find_config(const struct json *list, str ns, str name)
{
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *meta = json_get(json_item(list, i), "metadata");
        if (str_eq(json_text(json_get(meta, "name")), name) &&
            str_eq(json_text(json_get(meta, "namespace")), ns))
            return json_item(list, i);
    }
    return NULL;
}

static void run_resolution(struct golden *g, const struct json *c)
{
    const struct json *consumer = json_get(c, "consumer"), *want = json_get(c, "expect");
    struct aim_resolve_question q = { json_text(json_get(consumer, "runtimeConfigName")),
                                      json_text(json_get(consumer, "namespace")),
                                      json_text(json_get(c, "operatorNamespace")) };
    str name = aim_resolve_name(&q), ns = aim_resolve_namespace(&q);
    golden_eq_str(g, "configName", name, json_get(want, "configName"));
    golden_eq_str(g, "lookupNamespace", ns, json_get(want, "lookupNamespace"));
    struct aim_resolved r =
        aim_resolve_objects(&q, find_config(json_get(c, "namespaceConfigs"), ns, name),
                            find_config(json_get(c, "clusterConfigs"), S(""), name));
    golden_eq_str(g, "outcome", str_c(aim_resolve_outcome_name(r.outcome)),
                  json_get(want, "outcome"));
    const char *reason;
    bool holds = aim_resolve_condition(&r, &reason);
    const struct json *condition = json_get(want, "condition");
    golden_eq_str(g, "reason", str_c(reason), json_get(condition, "reason"));
    golden_eq_str(g, "status", holds ? S("True") : S("False"), json_get(condition, "status"));
    golden_eq_bool(g, "requeue", r.outcome == RESOLVE_MISSING, json_get(want, "requeue"));
    const struct json *effective = json_get(want, "effectiveRuntimeConfig");
    struct json *got = aim_resolve_effective(g->arena, &r);
    if (got)
        golden_eq_json(g, "effectiveRuntimeConfig", got, effective);
    else
        golden_ok(g, !json_is(effective, JSON_OBJ), "nothing governs, want something");
}

/* ---- aim-route-httproute */

static const struct json *wanted_route(struct golden *g, const struct json *c)
{
    struct json *route = json_copy(g->arena, json_at(c, "expect", "httpRoute", NULL));
    const struct json *timeout = json_get(c, "recommendedTimeout");
    struct json *rule = json_item(json_at(route, "spec", "rules", NULL), 0);
    if (timeout)
        json_set_str(g->arena, json_make(g->arena, rule, "timeouts", NULL), "request",
                     json_text(timeout));
    return route;
}

static void check_condition(struct golden *g, const struct aim_route_plan *plan,
                            const struct json *want)
{
    if (!want)
        return;
    golden_eq_str(g, "condition.reason", str_c(plan->reason), json_get(want, "reason"));
    golden_eq_str(g, "condition.status", aim_route_is_ready(plan->verdict) ? S("True") : S("False"),
                  json_get(want, "status"));
    if (json_get(want, "message"))
        golden_eq_str(g, "condition.message", plan->message, json_get(want, "message"));
}

static void run_route(struct golden *g, const struct json *c)
{
    const struct json *service = json_get(c, "service"), *want = json_get(c, "expect");
    const struct json *template = json_get(c, "template");
    struct runtimeconfig_spec own = runtimeconfig_spec_read(json_get(service, "spec"), false),
                              config =
                                  runtimeconfig_spec_read(json_get(c, "runtimeConfigSpec"), false);
    struct aim_route_template serves = {
        .ready = true,
        .name = json_text(json_get(template, "name")),
        .model_name = json_text(json_get(template, "modelName")),
        .source_name = json_text(json_get(template, "modelSourceName")),
    };
    struct aim_route_question q = { .group = "aim.silogen.ai",
                                    .service = service,
                                    .own = &own,
                                    .config = &config,
                                    .template = &serves };
    struct aim_route_plan plan = aim_route_plan(g->arena, &q);
    golden_eq_bool(g, "enabled", plan.verdict != ROUTE_OFF, json_get(want, "enabled"));
    golden_ok(g,
              str_eq_nocase(str_c(aim_route_source_name(plan.source)),
                            json_text(json_get(want, "templateSource"))),
              "templateSource is %s", aim_route_source_name(plan.source));
    golden_ok(g, (plan.verdict == ROUTE_INVALID) == (json_get(want, "pathError") != NULL),
              "verdict %d %s", (int)plan.verdict, plan.message.p);
    golden_ok(g, str_eq(plan.served, json_text(json_get(want, "statusRoutingPath"))),
              "status.routing.path is " STR_FMT, STR_ARG(plan.served));
    check_condition(g, &plan, json_get(want, "condition"));
    if (golden_ok(g,
                  (plan.verdict == ROUTE_WAITING) == json_is(json_get(want, "httpRoute"), JSON_OBJ),
                  "verdict %d", (int)plan.verdict) &&
        plan.verdict == ROUTE_WAITING)
        golden_eq_json(g, "httpRoute", aim_route_object(g->arena, &q, &plan), wanted_route(g, c));
}

const struct golden_family golden_runtimeconfig[] = {
    { "aim-route-httproute", run_route },
    { "aim-path-render", run_path },
    { "aim-runtimeconfig", run_resolution },
    { 0 },
};
