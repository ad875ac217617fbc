/* Families of runtimeconfig: aim-path-render (`recommended` where present, else `expect`) and
 * aim-runtimeconfig. */
#include "golden.h"

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

static str fault_group(enum path_fault fault)
{
    bool strict = fault == PATH_NOT_SCALAR || fault == PATH_DOT_SEGMENT;
    return strict ? S("strict_only") : str_c(path_fault_name(fault));
}

static void run_path(struct golden *g, const struct json *c)
{
    const struct json *want = json_get(c, "recommended"), *object = json_get(c, "object");
    if (!want)
        want = json_get(c, "expect");
    struct path_template t;
    struct path_problem problem = { 0 };
    struct buf path = { 0 };
    int failed = path_compile(g->arena, json_text(json_get(c, "template")), &t, &problem);
    failed = failed ? failed : path_render(&t, object, g->arena, &path, &problem);
    const struct json *error = json_get(want, "error");
    if (error)
        golden_ok(g,
                  failed && str_eq(fault_group(problem.fault),
                                   group_of(g, json_text(json_get(error, "class")))),
                  "want error " STR_FMT ", got %s %s" STR_FMT,
                  STR_ARG(json_text(json_get(error, "class"))), path_fault_name(problem.fault),
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
    struct resolve_question q = { json_text(json_get(consumer, "runtimeConfigName")),
                                  json_text(json_get(consumer, "namespace")),
                                  json_text(json_get(c, "operatorNamespace")) };
    str name = resolve_name(&q), ns = resolve_namespace(&q);
    golden_eq_str(g, "configName", name, json_get(want, "configName"));
    golden_eq_str(g, "lookupNamespace", ns, json_get(want, "lookupNamespace"));
    struct resolved r = resolve(&q, find_config(json_get(c, "namespaceConfigs"), ns, name),
                                find_config(json_get(c, "clusterConfigs"), S(""), name));
    golden_eq_str(g, "outcome", str_c(resolve_outcome_name(r.outcome)), json_get(want, "outcome"));
    const char *reason;
    bool holds = resolve_condition(&r, &reason);
    const struct json *condition = json_get(want, "condition");
    golden_eq_str(g, "reason", str_c(reason), json_get(condition, "reason"));
    golden_eq_str(g, "status", holds ? S("True") : S("False"), json_get(condition, "status"));
    golden_eq_bool(g, "requeue", r.outcome == RESOLVE_MISSING, json_get(want, "requeue"));
    const struct json *effective = json_get(want, "effectiveRuntimeConfig");
    struct json *got = resolve_effective(g->arena, &r);
    if (got)
        golden_eq_json(g, "effectiveRuntimeConfig", got, effective);
    else
        golden_ok(g, !json_is(effective, JSON_OBJ), "nothing governs, want something");
}

const struct golden_family golden_runtimeconfig[] = {
    { "aim-path-render", run_path },
    { "aim-runtimeconfig", run_resolution },
    { 0 },
};
