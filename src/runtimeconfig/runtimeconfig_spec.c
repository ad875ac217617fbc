/* Reading and checking a configuration: see runtimeconfig_spec.h. A field of the wrong type counts as unset: the API
 * server validates manifests, and `flyball render` must not fail where the controller would not. */
#include "runtimeconfig_spec.h"

#include <stdio.h>

static const struct json *of_type(const struct json *v, enum json_type type)
{
    return json_is(v, type) ? v : NULL;
}

/* requiredPrefix is read from cluster configurations only: a tenant must not be able to lift it. */
static struct aim_routing_spec read_routing(const struct json *routing, bool cluster)
{
    const struct json *enabled = json_get(routing, "enabled");
    return (struct aim_routing_spec){
        .has_enabled = json_is(enabled, JSON_BOOL),
        .enabled = json_bool(enabled, false),
        .gateway = of_type(json_get(routing, "gatewayRef"), JSON_OBJ),
        .path_template = json_text(json_get(routing, "pathTemplate")),
        .timeout = json_text(json_get(routing, "requestTimeout")),
        .annotations = of_type(json_get(routing, "annotations"), JSON_OBJ),
        .required_prefix = cluster ? json_text(json_get(routing, "requiredPrefix")) : S(""),
        .hostnames = of_type(json_get(routing, "hostnames"), JSON_ARR),
        .header = of_type(json_get(routing, "modelHeader"), JSON_OBJ),
        .pool = of_type(json_get(routing, "inferencePool"), JSON_OBJ),
        .backend = json_text(json_get(routing, "backend")),
        .group = json_text(json_get(routing, "group")),
        .weight = json_int(json_get(routing, "weight"), 1),
    };
}

/* Newer manifests nest the two storage fields; the nested one takes precedence. */
static void read_storage(const struct json *spec, struct runtimeconfig_spec *ret)
{
    const struct json *nested = json_get(spec, "storage");
    str class = json_text(json_get(nested, "defaultStorageClassName"));
    const struct json *headroom = json_get(nested, "pvcHeadroomPercent");
    if (!json_is(headroom, JSON_INT))
        headroom = json_get(spec, "pvcHeadroomPercent");
    ret->storage_class = class.n ? class : json_text(json_get(spec, "defaultStorageClassName"));
    ret->has_headroom = json_is(headroom, JSON_INT);
    ret->headroom_percent = json_int(headroom, PVC_HEADROOM_DEFAULT);
}

/* `cluster` selects the fields that only one of the two kinds may set. */
struct runtimeconfig_spec runtimeconfig_spec_read(const struct json *spec, bool cluster)
{
    const struct json *propagation = json_get(spec, "labelPropagation");
    struct runtimeconfig_spec ret = {
        .routing = read_routing(json_get(spec, "routing"), cluster),
        .no_discovery = !json_bool(json_at(spec, "model", "autoDiscovery", NULL), true),
        .env = of_type(json_get(spec, "env"), JSON_ARR),
        .propagate = json_bool(json_get(propagation, "enabled"), false)
                         ? of_type(json_get(propagation, "match"), JSON_ARR)
                         : NULL,
    };
    read_storage(spec, &ret);
    ret.refused_credentials =
        cluster && (json_get(spec, "imagePullSecrets") || json_get(spec, "serviceAccountName"));
    if (!cluster) {
        ret.pull_secrets = of_type(json_get(spec, "imagePullSecrets"), JSON_ARR);
        ret.service_account = json_text(json_get(spec, "serviceAccountName"));
    }
    return ret;
}

/* ---- validation */

/* The first field of an expression such as ".metadata.name"; empty if it starts differently. */
static str root_field(str expression)
{
    if (str_starts(expression, S("$")))
        expression = str_from(expression, 1);
    if (!str_starts(expression, S(".")) || str_starts(expression, S("..")))
        return S("");
    expression = str_from(expression, 1);
    size_t n = 0;
    while (n < expression.n && ((expression.p[n] >= 'a' && expression.p[n] <= 'z') ||
                                (expression.p[n] >= 'A' && expression.p[n] <= 'Z')))
        n++;
    bool ends = n == expression.n || strchr(".[ ", expression.p[n]);
    return ends ? str_upto(expression, n) : S("");
}

static bool is_known_root(str name)
{
    static const char *const known[] = { "apiVersion", "kind", "metadata", "spec", "status" };
    for (size_t i = 0; i < countof(known); i++)
        if (str_eqc(name, known[i]))
            return true;
    return !name.n;
}

/* Checks the placeholders, and the path with a short text in place of each. */
static int lint_parts(const struct aim_path_template *t, struct aim_path_problem *problem)
{
    auto_buf struct buf literal = { 0 }, path = { 0 };
    for (size_t i = 0; i < t->n; i++) {
        const struct aim_path_part *part = &t->parts[i];
        str root = root_field(part->expression);
        if (!is_known_root(root)) {
            problem->fault = PATH_MISSING;
            snprintf(problem->text, sizeof(problem->text),
                     "placeholder %u, column %zu: an AIMService has no field \"" STR_FMT
                     "\"; it has apiVersion, kind, metadata, spec and status",
                     part->number, part->column, STR_ARG(root));
            return -EINVAL;
        }
        buf_put(&literal, part->expression.n ? S("x") : part->literal);
    }
    return literal.n ? aim_path_normalize(buf_str(&literal), &path, problem) : 0;
}

static int lint_template(struct arena *a, str text, struct aim_path_problem *problem)
{
    struct aim_path_template t;
    int failed = aim_path_compile(a, text, &t, problem);
    return failed ? failed : lint_parts(&t, problem);
}

int runtimeconfig_lint(struct arena *a, const struct runtimeconfig_spec *spec,
                       struct aim_path_problem *problem)
{
    int failed = lint_template(a, spec->routing.path_template, problem);
    if (!failed && spec->routing.required_prefix.n)
        failed = lint_template(a, spec->routing.required_prefix, problem);
    return failed;
}
