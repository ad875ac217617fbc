/* Runs the expressions of admission policies: which policies apply, with which parameters, and what expressions see.
 *
 *   for each binding, its policy, if both match the request
 *     for each set of parameters: admission_way.evaluate, which asks admission_run_conditions() first
 *
 * Variables are evaluated when an expression first refers to them, once per set of parameters. A binding or policy that
 * cannot be used is an error of configuration and counts by failurePolicy. */
#include "admission_run.h"
#include "access.h"
#include "convert.h"
#include "read.h"

/* ---- compiled policies */

/* A compiled policy, valid for one revision of its object. */
struct cached {
    struct cached *next;
    struct arena arena;
    str key;
    int64_t rev;
    struct policy *policy;
    str name;
};

struct admission {
    struct cached *first;
};

void admission_free(struct admission *a)
{
    for (struct cached *c = a ? a->first : NULL, *next; c; c = next) {
        next = c->next;
        arena_done(&c->arena);
        free(c);
    }
    free(a);
}

/* The compiled policy; an older version of it is replaced. */
static const struct cached *find_policy(struct server *s, const struct object *o)
{
    if (!s->admission)
        s->admission = mem_zero(1, sizeof(*s->admission));
    struct cached **at = &s->admission->first;
    while (*at && !str_eq((*at)->key, object_key(o)))
        at = &(*at)->next;
    if (*at && (*at)->rev == o->rev)
        return *at;
    if (*at) {
        struct cached *stale = *at;
        *at = stale->next;
        arena_done(&stale->arena);
        free(stale);
    }
    struct cached *c = mem_zero(1, sizeof(*c));
    struct json *tree = NULL;
    c->key = arena_str(&c->arena, object_key(o));
    c->rev = o->rev;
    str text = arena_str(&c->arena, object_json(o));
    if (json_parse(&c->arena, text, &tree, NULL) == 0) {
        c->name = json_text(json_at(tree, "metadata", "name", NULL));
        c->policy = kind_policy_compile(&c->arena, json_get(tree, "spec"), c->name, NULL);
    }
    c->next = s->admission->first;
    s->admission->first = c;
    return c;
}

/* ---- one evaluation */

/* Runs an expression and charges it to the budget of the policy, which all its expressions share. */
struct cel_value admission_evaluate(struct admission_run *e, const struct policy_expression *x)
{
    struct arena *a = e->request->call->arena;
    if (!x->program)
        return cel_fail(a, "does not compile");
    struct cel_run run = { .arena = a, .variables = e->values, .host = &e->host };
    if (e->budget < 0)
        return cel_fail(a, "operation cancelled: actual cost limit exceeded");
    struct cel_value v = cel_run(x->program, &run);
    e->budget -= (int64_t)run.cost;
    return v;
}

/* A variable, on first use. */
static struct cel_value get_variable(struct cel_host *host, struct arena *a, str name)
{
    struct admission_run *e = (struct admission_run *)host;
    const struct policy *p = e->policy;
    for (uint32_t i = p->n_variables; i-- > 0;) {
        if (!str_eq(p->variable_names[i], name))
            continue;
        if (e->variables[i].kind == CEL_PARAM) {
            struct cel_value v = admission_evaluate(e, &p->variables[i]);
            if (v.kind == CEL_ERROR)
                v = cel_fail(a, "composited variable \"" STR_FMT "\" fails to evaluate: " STR_FMT,
                             STR_ARG(name), STR_ARG(cel_text(v)));
            e->variables[i] = v;
        }
        return e->variables[i];
    }
    return cel_fail(a, "no such key: " STR_FMT, STR_ARG(name));
}

static str get_attribute(const struct json *attributes, const char *key)
{
    return json_text(json_get(attributes, key));
}

/* Asks RBAC for the user of the request, or for a service account. */
static struct cel_value check_access(struct cel_host *host, struct arena *a,
                                     const struct cel_value *check, str verb)
{
    struct admission_run *e = (struct admission_run *)host;
    const struct json *attributes = check->json;
    str account = get_attribute(attributes, "accountName");
    str ns = get_attribute(attributes, "accountNamespace");
    struct user user = e->request->call->user;
    str groups[] = { S("system:serviceaccounts"),
                     arena_printf(a, "system:serviceaccounts:" STR_FMT, STR_ARG(ns)) };
    if (account.n)
        user = (struct user){ .name = arena_printf(a, "system:serviceaccount:" STR_FMT ":" STR_FMT,
                                                   STR_ARG(ns), STR_ARG(account)),
                              .groups = groups,
                              .n_groups = countof(groups),
                              .authenticated = true };
    struct access want = { .verb = verb,
                           .path = get_attribute(attributes, "path"),
                           .group = get_attribute(attributes, "group"),
                           .resource = get_attribute(attributes, "resource"),
                           .subresource = get_attribute(attributes, "subresource"),
                           .ns = get_attribute(attributes, "namespace"),
                           .name = get_attribute(attributes, "name") };
    str why;
    bool allowed = access_is_allowed(e->request->call->server, a, &user, &want, &why);
    return (struct cel_value){
        .kind = CEL_DECISION, .is_json = allowed, .text = why.p, .n = (uint32_t)why.n
    };
}

/* ---- the variables of an expression */

static struct json *make_request_resource(const struct admission_request *r)
{
    struct call *c = r->call;
    struct json *attributes = json_new_obj(c->arena);
    json_set_str(c->arena, attributes, "group", c->kind->group);
    json_set_str(c->arena, attributes, "resource", c->kind->plural);
    json_set_str(c->arena, attributes, "subresource", str_c(kind_sub_names[c->sub]));
    json_set_str(c->arena, attributes, "namespace", c->ns);
    json_set_str(c->arena, attributes, "name", r->name);
    return attributes;
}

struct cel_value admission_value_or_null(struct arena *a, const struct json *json,
                                         const struct cel_type *type)
{
    return json ? cel_of_json(a, json, type) : (struct cel_value){ .kind = CEL_NULL };
}

/* Sets all variables that are the same for every set of parameters. */
void admission_run_init(struct admission_run *e, const struct admission_request *r,
                        const struct policy *p)
{
    struct arena *a = r->call->arena;
    e->host = (struct cel_host){ get_variable, check_access };
    e->request = r;
    e->policy = p;
    e->values[POLICY_OBJECT] = admission_value_or_null(a, r->object, NULL);
    e->values[POLICY_OLD_OBJECT] = admission_value_or_null(a, r->old, NULL);
    e->values[POLICY_REQUEST] =
        cel_of_json(a, admission_make_request(r, r->as ? r->as : r->call->kind), p->request_type);
    e->values[POLICY_NAMESPACE_OBJECT] =
        admission_value_or_null(a, admission_namespace(r), p->namespace_type);
    e->values[POLICY_PARAMS] = (struct cel_value){ .kind = CEL_NULL };
    e->values[POLICY_AUTHORIZER] = (struct cel_value){ .kind = CEL_AUTHORIZER };
    e->values[POLICY_REQUEST_RESOURCE] =
        (struct cel_value){ .kind = CEL_RESOURCE_CHECK, .json = make_request_resource(r) };
    e->values[POLICY_VARIABLES] = (struct cel_value){ .kind = CEL_DYN };
    e->variables = arena_array(a, p->n_variables + 1u, sizeof(*e->variables));
    for (uint32_t i = 0; i < p->n_variables; i++)
        e->variables[i].kind = CEL_PARAM;
    e->budget = CEL_COST_OBJECT;
}

/* ---- conditions */

/* Whether all hold. A condition that is false wins over errors of others, of which the first is in `failed`. */
bool admission_run_conditions(struct admission_run *e, str *failed)
{
    const struct policy *p = e->policy;
    *failed = S("");
    for (uint32_t i = 0; i < p->n_conditions; i++) {
        struct cel_value v = admission_evaluate(e, &p->conditions[i]);
        if (v.kind == CEL_BOOL && !v.boolean) {
            *failed = S("");
            return false;
        }
        if (v.kind == CEL_ERROR && !failed->n)
            *failed = admission_error_text(e, p->conditions[i].text, v);
    }
    return !failed->n;
}

str admission_error_text(const struct admission_run *e, str expression, struct cel_value error)
{
    return arena_printf(e->request->call->arena,
                        "expression '" STR_FMT "' resulted in error: " STR_FMT, STR_ARG(expression),
                        STR_ARG(cel_text(error)));
}

/* ---- parameters */

static const struct kind *find_param_kind(struct server *s, const struct json *param_kind)
{
    str version = json_text(json_get(param_kind, "apiVersion")), group = S("");
    size_t slash = str_find_char(version, '/');
    if (slash != SIZE_MAX) {
        group = str_upto(version, slash);
        version = str_from(version, slash + 1);
    }
    for (size_t i = 0; i < s->catalog.all.n; i++) {
        const struct kind *k = s->catalog.all.at[i];
        if (str_eq(k->group, group) && str_eq(k->version, version) &&
            str_eq(k->kind, json_text(json_get(param_kind, "kind"))))
            return k;
    }
    return NULL;
}

/* Variables are cleared, since they may depend on the parameters. */
static bool evaluate_with(struct admission_run *e, const struct json *params)
{
    e->values[POLICY_PARAMS] = admission_value_or_null(e->request->call->arena, params, NULL);
    e->params = params;
    for (uint32_t i = 0; i < e->policy->n_variables; i++)
        e->variables[i] = (struct cel_value){ .kind = CEL_PARAM };
    return e->way->evaluate(e);
}

/* A policy or binding that cannot be used fails as its expressions would. */
static bool fail_configuration(struct admission_run *e, str why)
{
    return e->policy->ignores_errors || e->way->fail_configuration(e, why);
}

/* Evaluates once for each object that the reference selects. */
static bool evaluate_all(struct admission_run *e, const struct kind *k, const struct json *ref)
{
    struct call *c = e->request->call;
    str ns = json_text(json_get(ref, "namespace")), name = json_text(json_get(ref, "name"));
    const struct json *selector = json_get(ref, "selector");
    size_t found = 0;
    if (!k->namespaced && ns.n)
        return fail_configuration(
            e, S("failed to configure binding: paramRef.namespace must not be provided "
                 "for a cluster-scoped `paramKind`"));
    if (k->namespaced && !ns.n)
        ns = c->ns;
    if (k->namespaced && !ns.n)
        return fail_configuration(
            e, S("failed to configure binding: cannot use namespaced paramRef in policy "
                 "binding that matches cluster-scoped resources"));
    str prefix = catalog_prefix(c->arena, k, k->namespaced ? ns : S(""));
    struct tree_cursor cursor = tree_seek(store_tree(c->server->store), prefix);
    for (const struct object *o; (o = tree_next_in(&cursor, prefix));) {
        struct json *tree = read_tree(c->arena, k, o);
        bool selected =
            name.n ? str_eq(json_text(json_at(tree, "metadata", "name", NULL)), name)
                   : kind_selector_matches(selector, json_at(tree, "metadata", "labels", NULL));
        if (!selected)
            continue;
        found++;
        if (!evaluate_with(e, tree))
            return false;
    }
    if (found || !str_eqc(json_text(json_get(ref, "parameterNotFoundAction")), "Deny"))
        return true;
    return fail_configuration(
        e, S("failed to configure binding: no params found for policy binding with `Deny` "
             "parameterNotFoundAction"));
}

/* ---- bindings */

/* One binding with its policy. A binding whose policy does not exist has no effect. */
static bool run_binding(struct admission_request *r, const struct admission_way *way,
                        const struct json *binding, void *context)
{
    struct call *c = r->call;
    const struct json *spec = json_get(binding, "spec");
    str key = store_key_make(c->arena,
                             (struct store_key_parts){ POLICY_GROUP, str_c(way->policies), S(""),
                                                       json_text(json_get(spec, "policyName")) });
    const struct object *o = store_get(c->server->store, key);
    const struct cached *cached = o ? find_policy(c->server, o) : NULL;
    if (!cached || !cached->policy)
        return true;
    const struct json *policy = cached->policy->spec, *kind = json_get(policy, "paramKind");
    const struct json *ref = json_get(spec, "paramRef");
    const struct kind *as = admission_matches(r, json_get(policy, "matchConstraints"));
    struct admission_request seen;
    if (!as || !admission_matches(r, json_get(spec, "matchResources")))
        return true;
    if (!admission_view(r, as, &seen))
        return false;
    struct admission_run e = { .way = way,
                               .context = context,
                               .original = r,
                               .policy_name = cached->name,
                               .binding_name =
                                   json_text(json_at(binding, "metadata", "name", NULL)),
                               .actions = json_get(spec, "validationActions") };
    admission_run_init(&e, &seen, cached->policy);
    if (!kind || !ref)
        return evaluate_with(&e, NULL);
    const struct kind *k = find_param_kind(c->server, kind);
    if (k)
        return evaluate_all(&e, k, ref);
    return fail_configuration(
        &e, arena_printf(c->arena,
                         "failed to configure policy: failed to find resource referenced by "
                         "paramKind: '" STR_FMT ", Kind=" STR_FMT "'",
                         STR_ARG(json_text(json_get(kind, "apiVersion"))),
                         STR_ARG(json_text(json_get(kind, "kind")))));
}

/* The keys of all bindings begin with this. */
static str get_bindings_prefix(struct arena *a, const struct admission_way *way)
{
    return store_key_make(a, (struct store_key_parts){ POLICY_GROUP, str_c(way->bindings), S(""),
                                                       S("") });
}

bool admission_any_policy(struct call *c, const struct admission_way *way)
{
    str prefix = get_bindings_prefix(c->arena, way);
    struct tree_cursor cursor = tree_seek(store_tree(c->server->store), prefix);
    return tree_next_in(&cursor, prefix);
}

/* Policies and webhooks cannot lock out their own removal. */
bool admission_run_all(struct admission_request *r, const struct admission_way *way, void *context)
{
    struct call *c = r->call;
    if (str_eq(c->kind->group, POLICY_GROUP))
        return true;
    str prefix = get_bindings_prefix(c->arena, way);
    struct tree_cursor cursor = tree_seek(store_tree(c->server->store), prefix);
    for (const struct object *o; (o = tree_next_in(&cursor, prefix));) {
        struct json *binding = NULL;
        if (json_parse(c->arena, object_json(o), &binding, NULL) == 0 &&
            !run_binding(r, way, binding, context))
            return false;
    }
    return true;
}
