/* Runs validating admission policies on a write.
 *
 *   for each binding, its policy, if both match the request
 *     matchConditions      one that is false: the policy does not apply
 *     for each set of parameters
 *       validations        false, or an error with failurePolicy Fail: Deny refuses, Warn warns
 *
 * Only the first refusal is reported, as kube-apiserver does. Variables are evaluated when an expression first refers to
 * them, once per set of parameters. */
#include "admission.h"
#include "access.h"
#include "read.h"
#include "webhook.h"

#define GROUP S("admissionregistration.k8s.io")

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

struct evaluation {
    struct cel_host host; /* first: CEL calls back with it */
    const struct admission_request *request;
    const struct policy *policy;
    str policy_name, binding_name;
    const struct json *actions; /* NULL: a refusal denies */
    struct cel_value values[POLICY_VARIABLE_N];
    struct cel_value *variables; /* results; kind CEL_PARAM: not evaluated yet */
    int64_t budget;
};

/* Runs an expression and charges it to the budget of the policy, which all its expressions share. */
static struct cel_value run_program(struct evaluation *e, const struct cel_program *p)
{
    struct arena *a = e->request->call->arena;
    struct cel_run run = { .arena = a, .variables = e->values, .host = &e->host };
    if (e->budget < 0)
        return cel_fail(a, "operation cancelled: actual cost limit exceeded");
    struct cel_value v = cel_run(p, &run);
    e->budget -= (int64_t)run.cost;
    return v;
}

/* A variable, on first use. */
static struct cel_value get_variable(struct cel_host *host, struct arena *a, str name)
{
    struct evaluation *e = (struct evaluation *)host;
    const struct policy *p = e->policy;
    for (uint32_t i = p->n_variables; i-- > 0;) {
        if (!str_eq(p->variable_names[i], name))
            continue;
        if (e->variables[i].kind == CEL_PARAM) {
            struct cel_value v = p->variables[i].program ? run_program(e, p->variables[i].program)
                                                         : cel_fail(a, "does not compile");
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
    struct evaluation *e = (struct evaluation *)host;
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

static struct cel_value value_or_null(struct arena *a, const struct json *json,
                                      const struct cel_type *type)
{
    return json ? cel_of_json(a, json, type) : (struct cel_value){ .kind = CEL_NULL };
}

/* Sets all variables that are the same for every set of parameters. */
static void init_evaluation(struct evaluation *e, const struct admission_request *r,
                            const struct policy *p)
{
    struct arena *a = r->call->arena;
    e->host = (struct cel_host){ get_variable, check_access };
    e->request = r;
    e->policy = p;
    e->values[POLICY_OBJECT] = value_or_null(a, r->object, NULL);
    e->values[POLICY_OLD_OBJECT] = value_or_null(a, r->old, NULL);
    e->values[POLICY_REQUEST] =
        cel_of_json(a, admission_make_request(r, r->call->kind), p->request_type);
    e->values[POLICY_NAMESPACE_OBJECT] =
        value_or_null(a, admission_namespace(r), p->namespace_type);
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

/* ---- refusing */

static bool has_action(const struct json *actions, const char *action)
{
    for (uint32_t i = 0; i < json_len(actions); i++)
        if (str_eqc(json_text(actions->items[i]), action))
            return true;
    return false;
}

/* Answers with 422, 403 or 413; the message is that of a Forbidden error, whatever the code. */
static void refuse_request(const struct evaluation *e, str reason, str why)
{
    struct call *c = e->request->call;
    str text = arena_printf(c->arena,
                            "ValidatingAdmissionPolicy '" STR_FMT "' with binding '" STR_FMT
                            "' denied request: " STR_FMT,
                            STR_ARG(e->policy_name), STR_ARG(e->binding_name), STR_ARG(why));
    struct json *causes = json_new_arr(c->arena), *cause = json_new_obj(c->arena);
    json_set_str(c->arena, cause, "message", text);
    json_push(c->arena, causes, cause);
    bool forbidden = str_eqc(reason, "Forbidden"), large = str_eqc(reason, "RequestEntityTooLarge");
    str group = c->kind->group;
    call_status(c, &(struct status){
                       .code = forbidden ? 403
                               : large   ? 413
                                         : 422,
                       .reason = forbidden ? "Forbidden"
                                 : large   ? "RequestEntityTooLarge"
                                           : "Invalid",
                       .message = arena_printf(
                           c->arena, STR_FMT "%s" STR_FMT " \"" STR_FMT "\" is forbidden: " STR_FMT,
                           STR_ARG(c->kind->plural), group.n ? "." : "", STR_ARG(group),
                           STR_ARG(e->request->name), STR_ARG(text)),
                       .name = e->request->name,
                       .group = group,
                       .kind = c->kind->plural,
                       .causes = causes });
}

/* A failed validation: false if the request was refused. */
static bool report_failure(const struct evaluation *e, str reason, str why)
{
    struct call *c = e->request->call;
    if (has_action(e->actions, "Warn"))
        call_warn(c, arena_printf(c->arena,
                                  "Validation failed for ValidatingAdmissionPolicy '" STR_FMT
                                  "' with binding '" STR_FMT "': " STR_FMT,
                                  STR_ARG(e->policy_name), STR_ARG(e->binding_name), STR_ARG(why)));
    if (e->actions && !has_action(e->actions, "Deny"))
        return true;
    refuse_request(e, reason, why);
    return false;
}

static str format_error(const struct evaluation *e, str expression, struct cel_value error)
{
    return arena_printf(e->request->call->arena,
                        "expression '" STR_FMT "' resulted in error: " STR_FMT, STR_ARG(expression),
                        STR_ARG(cel_text(error)));
}

/* The message of a validation that is false. */
static str get_message(struct evaluation *e, const struct policy_validation *v)
{
    if (v->message.program) {
        struct cel_value text = run_program(e, v->message.program);
        str trimmed = text.kind == CEL_STRING ? str_trim(cel_text(text)) : S("");
        if (trimmed.n && trimmed.n <= 5 * 1024 && str_find_char(trimmed, '\n') == SIZE_MAX)
            return trimmed;
    }
    if (v->plain_message.n)
        return v->plain_message;
    return arena_printf(e->request->call->arena, "failed expression: " STR_FMT,
                        STR_ARG(str_trim(v->expression.text)));
}

/* ---- policies */

enum applies { APPLIES, DOES_NOT_APPLY, REFUSED };

/* Whether all hold. A condition that is false wins over errors of others, of which the first is in `failed`. */
static bool do_conditions_hold(struct evaluation *e, str *failed)
{
    const struct policy *p = e->policy;
    *failed = S("");
    for (uint32_t i = 0; i < p->n_conditions; i++) {
        struct cel_value v = p->conditions[i].program
                                 ? run_program(e, p->conditions[i].program)
                                 : cel_fail(e->request->call->arena, "does not compile");
        if (v.kind == CEL_BOOL && !v.boolean) {
            *failed = S("");
            return false;
        }
        if (v.kind == CEL_ERROR && !failed->n)
            *failed = format_error(e, p->conditions[i].text, v);
    }
    return !failed->n;
}

static enum applies check_conditions(struct evaluation *e)
{
    str failed;
    if (do_conditions_hold(e, &failed))
        return APPLIES;
    if (!failed.n || e->policy->ignores_errors)
        return DOES_NOT_APPLY;
    return report_failure(e, S("Invalid"), failed) ? DOES_NOT_APPLY : REFUSED;
}

/* False if the request was refused; a validation that only warns does not end the loop. */
static bool check_validations(struct evaluation *e)
{
    const struct policy *p = e->policy;
    for (uint32_t i = 0; i < p->n_validations; i++) {
        const struct policy_validation *v = &p->validations[i];
        struct cel_value result = v->expression.program
                                      ? run_program(e, v->expression.program)
                                      : cel_fail(e->request->call->arena, "does not compile");
        if (result.kind == CEL_BOOL && result.boolean)
            continue;
        bool error = result.kind == CEL_ERROR;
        if (error && p->ignores_errors)
            continue;
        str why = error ? format_error(e, str_trim(v->expression.text), result) : get_message(e, v);
        if (!report_failure(e, error ? S("Invalid") : v->reason, why))
            return false;
    }
    return true;
}

/* Evaluates the policy with one set of parameters. Variables are cleared, since they may depend on it. */
static bool check_with_params(struct evaluation *e, const struct json *params)
{
    struct arena *a = e->request->call->arena;
    e->values[POLICY_PARAMS] = value_or_null(a, params, NULL);
    for (uint32_t i = 0; i < e->policy->n_variables; i++)
        e->variables[i] = (struct cel_value){ .kind = CEL_PARAM };
    enum applies applies = check_conditions(e);
    return applies == APPLIES ? check_validations(e) : applies == DOES_NOT_APPLY;
}

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

/* Evaluates once for each object that the reference selects. */
static bool check_all_params(struct evaluation *e, const struct kind *k, const struct json *ref)
{
    struct call *c = e->request->call;
    str ns = json_text(json_get(ref, "namespace")), name = json_text(json_get(ref, "name"));
    const struct json *selector = json_get(ref, "selector");
    size_t found = 0;
    if (k->namespaced && !ns.n)
        ns = c->ns;
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
        if (!check_with_params(e, tree))
            return false;
    }
    if (found || !str_eqc(json_text(json_get(ref, "parameterNotFoundAction")), "Deny"))
        return true;
    refuse_request(e, S("Invalid"),
                   S("failed to configure binding: no params found for policy binding with `Deny` "
                     "parameterNotFoundAction"));
    return false;
}

/* One binding with its policy. A binding whose policy does not exist or does not compile has no effect. */
static bool check_binding(const struct admission_request *r, const struct json *binding)
{
    struct call *c = r->call;
    const struct json *spec = json_get(binding, "spec");
    str key =
        store_key_make(c->arena,
                       (struct store_key_parts){ GROUP, S("validatingadmissionpolicies"), S(""),
                                                 json_text(json_get(spec, "policyName")) });
    const struct object *o = store_get(c->server->store, key);
    const struct cached *cached = o ? find_policy(c->server, o) : NULL;
    if (!cached || !cached->policy)
        return true;
    const struct json *policy = cached->policy->spec, *kind = json_get(policy, "paramKind");
    const struct json *ref = json_get(spec, "paramRef");
    if (!admission_matches(r, json_get(policy, "matchConstraints")) ||
        !admission_matches(r, json_get(spec, "matchResources")))
        return true;
    struct evaluation e = { .policy_name = cached->name,
                            .binding_name = json_text(json_at(binding, "metadata", "name", NULL)),
                            .actions = json_get(spec, "validationActions") };
    init_evaluation(&e, r, cached->policy);
    if (!kind || !ref)
        return check_with_params(&e, NULL);
    const struct kind *k = find_param_kind(c->server, kind);
    if (k)
        return check_all_params(&e, k, ref);
    if (cached->policy->ignores_errors)
        return true;
    refuse_request(&e, S("Invalid"),
                   arena_printf(c->arena,
                                "failed to configure policy: failed to find resource referenced by "
                                "paramKind: '" STR_FMT ", Kind=" STR_FMT "'",
                                STR_ARG(json_text(json_get(kind, "apiVersion"))),
                                STR_ARG(json_text(json_get(kind, "kind")))));
    return false;
}

bool admission_conditions_hold(const struct admission_request *r, const struct policy *p,
                               str *ret_why)
{
    struct evaluation e = { 0 };
    init_evaluation(&e, r, p);
    bool hold = do_conditions_hold(&e, ret_why);
    if (p->ignores_errors)
        *ret_why = S("");
    return hold;
}

/* ---- entry points */

static str get_bindings_prefix(struct arena *a)
{
    return store_key_make(a, (struct store_key_parts){
                                 GROUP, S("validatingadmissionpolicybindings"), S(""), S("") });
}

bool admission_exists(struct call *c)
{
    str prefix = get_bindings_prefix(c->arena);
    struct tree_cursor cursor = tree_seek(store_tree(c->server->store), prefix);
    return c->wait || tree_next_in(&cursor, prefix);
}

/* Policies and webhooks cannot lock out their own removal. */
static bool check_policies(const struct admission_request *r)
{
    struct call *c = r->call;
    if (str_eq(c->kind->group, GROUP))
        return true;
    str prefix = get_bindings_prefix(c->arena);
    struct tree_cursor cursor = tree_seek(store_tree(c->server->store), prefix);
    for (const struct object *o; (o = tree_next_in(&cursor, prefix));) {
        struct json *binding = NULL;
        if (json_parse(c->arena, object_json(o), &binding, NULL) == 0 && !check_binding(r, binding))
            return false;
    }
    return true;
}

static struct admission_request make_write(struct call *c, const struct json *object,
                                           const struct json *old, bool dry_run)
{
    struct admission_request r = { .call = c,
                                   .operation = old ? "UPDATE" : "CREATE",
                                   .kind = kind_of_sub(c->kind, c->sub),
                                   .object = object,
                                   .old = old,
                                   .name = json_text(json_at(object, "metadata", "name", NULL)),
                                   .dry_run = dry_run };
    if (c->sub == KIND_SCALE) {
        r.object = kind_scale_of(c->kind, c->arena, object, NULL);
        r.old = old ? kind_scale_of(c->kind, c->arena, old, NULL) : NULL;
    } else if (kind_of_posted_sub(c->sub) && c->name.n) {
        r.name = c->name;
    }
    return r;
}

bool admission_mutate(struct call *c, struct json **object, const struct json *old, bool dry_run)
{
    if (!c->wait) /* no webhooks */
        return true;
    struct admission_request r = make_write(c, *object, old, dry_run);
    const struct json *before = r.object;
    if (!webhook_mutate(&r))
        return false;
    if (r.object == before)
        return true;
    struct json *managed = json_at(*object, "metadata", "managedFields", NULL);
    if (c->sub == KIND_SCALE) {
        struct kind_fault fault = { .errors.arena = c->arena };
        kind_scale_apply(c->kind, c->arena, r.object, *object, &fault);
        if (fault.code || fault.errors.n)
            call_fault(c, c->kind, c->name, &fault);
        return !fault.code && !fault.errors.n;
    }
    *object = json_copy(c->arena, r.object);
    struct json *metadata = json_make(c->arena, *object, "metadata", NULL);
    json_del(metadata, S("managedFields")); /* what a webhook sets belongs to no manager */
    if (managed)
        json_set(c->arena, metadata, S("managedFields"), managed);
    return true;
}

bool admission_check_write(struct call *c, struct json *object, const struct json *old,
                           bool dry_run)
{
    struct admission_request r = make_write(c, object, old, dry_run);
    return check_policies(&r) && webhook_validate(&r);
}

bool admission_check_delete(struct call *c, const struct json *old, str name,
                            const struct json *options, bool dry_run)
{
    struct admission_request r = { .call = c,
                                   .operation = "DELETE",
                                   .kind = c->kind,
                                   .old = old,
                                   .options = options,
                                   .name = name,
                                   .dry_run = dry_run };
    return webhook_mutate(&r) && check_policies(&r) && webhook_validate(&r);
}
