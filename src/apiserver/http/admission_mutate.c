/* Mutating admission policies: what their expressions return becomes part of the object.
 *
 *   ApplyConfiguration   an Object; merged into the object as server-side apply merges, without ownership
 *   JSONPatch            a list of operations; a failed "test" leaves the object as it is
 *
 * The result is decoded as its kind and gets its defaults before the next mutation sees it. An error does not end the
 * round: all are reported as causes of one refusal, as kube-apiserver does. */
#include "../../json/patch.h"
#include "admission_run.h"
#include "convert.h"
#include "ownership.h"
#include "webhook.h"

/* ---- applying */

/* Whether objects are named after their place. The check is at run time, as in kube-apiserver: the type of a field of an
 * Object is not known before. */
static bool are_names_right(struct arena *a, struct cel_value v, err_t *e)
{
    auto_buf struct buf wrong = { 0 };
    if (v.kind == CEL_OBJECT && !v.is_json)
        cel_check_names(a, v, str_c(v.type->name), &wrong);
    if (wrong.n)
        err_set(e, EINVAL, "type mismatch: " STR_FMT, STR_ARG(buf_str(&wrong)));
    return !wrong.n;
}

/* Sets the fields that the configuration names, and no others. */
static int apply_configuration(struct arena *a, const struct kind *k, const struct json *object,
                               struct cel_value v, struct json **ret, err_t *e)
{
    if (!are_names_right(a, v, e))
        return -EINVAL;
    struct json *configuration = cel_to_json(a, v);
    json_set_str(a, configuration, "apiVersion", kind_api_version(a, k));
    json_set_str(a, configuration, "kind", k->kind);
    return ownership_merge(a, schema_shape(k->schema), object, configuration, ret, e);
}

/* A failed "test" is the way of a policy to state a condition, so it is no error. */
static int apply_operations(struct arena *a, const struct json *object, struct cel_value v,
                            struct json **ret, err_t *e)
{
    struct json *patch = cel_to_json(a, v);
    err_t why = { 0 };
    for (uint32_t i = 0; i < json_len(patch); i++) {
        struct cel_value value = cel_patch_value(v, i);
        if (!are_names_right(a, value, e))
            return -EINVAL;
    }
    int failed = patch_apply(a, object, patch, ret, &why);
    if (failed == -ESTALE) {
        *ret = json_copy(a, object);
        return 0;
    }
    return failed ? err_set(e, EINVAL, "JSON Patch: " STR_FMT,
                            STR_ARG(webhook_describe_patch_error(a, object, patch, &why)))
                  : 0;
}

/* ---- one policy */

/* Errors are collected, because the mutations that follow run in any case. */
static void add_error(struct admission_run *e, const char *reason, str why)
{
    struct mutation *m = e->context;
    struct arena *a = e->request->call->arena;
    struct json *cause = json_new_obj(a);
    json_set_str(a, cause, "message",
                 arena_printf(a,
                              "policy '" STR_FMT "' with binding '" STR_FMT
                              "' denied request: " STR_FMT,
                              STR_ARG(e->policy_name), STR_ARG(e->binding_name), STR_ARG(why)));
    if (!m->errors)
        m->errors = json_new_arr(a);
    if (!m->errors->n)
        m->reason = reason;
    json_push(a, m->errors, cause);
}

static bool fail_configuration(struct admission_run *e, str why)
{
    add_error(e, "Forbidden", why);
    return true;
}

/* What a built-in kind does not have is refused; custom resources are pruned. False: answered. */
static bool decode_result(struct call *c, const struct kind *k, bool strict, struct json *result)
{
    struct schema_unknown unknown = { .arena = c->arena };
    err_t e = { 0 };
    int failed = kind_decode(k, c->arena, result, &unknown, &e);
    if (!failed && strict && !k->custom && unknown.n)
        failed = err_set(&e, EINVAL, "strict decoding error: unknown field \"" STR_FMT "\"",
                         STR_ARG(unknown.paths[0]));
    if (failed)
        webhook_answer_internal(c, arena_str(c->arena, str_c(e.text)));
    return !failed;
}

/* Runs one mutation. False: the call is answered. */
static bool run_mutation(struct admission_run *e, const struct policy_mutation *mutation,
                         struct admission_request *seen)
{
    struct mutation *m = e->context;
    struct call *c = seen->call;
    struct json *result = NULL;
    err_t why = { 0 };
    e->budget = CEL_COST_OBJECT;
    e->values[POLICY_OBJECT] = admission_value_or_null(c->arena, seen->object, NULL);
    struct cel_value v = admission_evaluate(e, &mutation->expression);
    str text = S("");
    if (v.kind == CEL_ERROR)
        text = admission_error_text(e, str_trim(mutation->expression.text), v);
    else if ((mutation->apply
                  ? apply_configuration(c->arena, seen->kind, seen->object, v, &result, &why)
                  : apply_operations(c->arena, seen->object, v, &result, &why)) < 0)
        text = arena_str(c->arena, str_c(why.text));
    if (text.n) {
        if (!e->policy->ignores_errors)
            add_error(e, "Invalid", text);
        return true;
    }
    if (!decode_result(c, seen->kind, !mutation->apply, result))
        return false;
    m->changed = true;
    seen->object = result;
    return true;
}

/* Whether the policy runs in this round: in the second only if it wants to and ran in the first. */
static bool is_invoked(struct admission_run *e)
{
    struct mutation *m = e->context;
    struct arena *a = e->request->call->arena;
    str id = arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(e->binding_name),
                          STR_ARG(json_text(json_at(e->params, "metadata", "name", NULL))));
    if (m->round)
        return json_get_str(m->again, id);
    if (str_eqc(json_text(json_get(e->policy->spec, "reinvocationPolicy")), "IfNeeded"))
        json_set(a, m->again, id, json_new_null(a));
    return true;
}

/* All mutations of one policy with one set of parameters. The object is converted back once, at the end. */
static bool evaluate(struct admission_run *e)
{
    struct admission_request *r = e->original, seen = *e->request;
    const struct kind *k = seen.kind;
    str failed;
    if (!admission_run_conditions(e, &failed)) {
        if (failed.n && !e->policy->ignores_errors)
            add_error(e, "Invalid", failed);
        return true;
    }
    if (!is_invoked(e))
        return true;
    const struct json *before = seen.object;
    for (uint32_t i = 0; i < e->policy->n_mutations; i++)
        if (!run_mutation(e, &e->policy->mutations[i], &seen))
            return false;
    if (seen.object == before)
        return true;
    r->object = k == r->kind ? seen.object : convert_tree(seen.call, k, r->kind, seen.object);
    return r->object != NULL;
}

static const struct admission_way mutating = { "mutatingadmissionpolicies",
                                               "mutatingadmissionpolicybindings", evaluate,
                                               fail_configuration };

/* ---- all policies */

bool admission_can_mutate(struct call *c)
{
    return admission_any_policy(c, &mutating);
}

/* Deletes have no object that could change. All errors of a round are one answer: code 403, whatever the reason, as
 * kube-apiserver has it. */
bool admission_run_mutations(struct admission_request *r, struct mutation *m)
{
    struct call *c = r->call;
    if (!r->object)
        return true;
    if (!m->again)
        m->again = json_new_obj(c->arena);
    if (!admission_run_all(r, &mutating, m))
        return false;
    if (json_len(m->errors)) {
        str text = json_text(json_get(m->errors->items[0], "message"));
        call_status(c, &(struct status){ .code = 403,
                                         .reason = m->reason,
                                         .message = text,
                                         .name = r->name,
                                         .group = c->kind->group,
                                         .kind = c->kind->plural,
                                         .causes = m->errors });
        return false;
    }
    return true;
}
