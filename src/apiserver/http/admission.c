/* Admission policies that validate, and the entry points of admission.
 *
 *     matchConditions      one that is false: the policy does not apply
 *     validations          false, or an error with failurePolicy Fail: Deny refuses, Warn warns
 *
 * Only the first refusal is reported, as kube-apiserver does. */
#include "admission.h"
#include "admission_run.h"
#include "webhook.h"

/* ---- refusing */

static bool has_action(const struct json *actions, const char *action)
{
    for (uint32_t i = 0; i < json_len(actions); i++)
        if (str_eqc(json_text(actions->items[i]), action))
            return true;
    return false;
}

/* Answers with 422, 403 or 413; the message is that of a Forbidden error, whatever the code. */
static void refuse_request(const struct admission_run *e, str reason, str why)
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
static bool report_failure(const struct admission_run *e, str reason, str why)
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

/* The message of a validation that is false. */
static str get_message(struct admission_run *e, const struct policy_validation *v)
{
    if (v->message.program) {
        struct cel_value text = admission_evaluate(e, &v->message);
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

static enum applies check_conditions(struct admission_run *e)
{
    str failed;
    if (admission_run_conditions(e, &failed))
        return APPLIES;
    if (!failed.n || e->policy->ignores_errors)
        return DOES_NOT_APPLY;
    return report_failure(e, S("Invalid"), failed) ? DOES_NOT_APPLY : REFUSED;
}

/* False if the request was refused; a validation that only warns does not end the loop. */
static bool check_validations(struct admission_run *e)
{
    const struct policy *p = e->policy;
    for (uint32_t i = 0; i < p->n_validations; i++) {
        const struct policy_validation *v = &p->validations[i];
        struct cel_value result = admission_evaluate(e, &v->expression);
        if (result.kind == CEL_BOOL && result.boolean)
            continue;
        bool error = result.kind == CEL_ERROR;
        if (error && p->ignores_errors)
            continue;
        str why = error ? admission_error_text(e, str_trim(v->expression.text), result)
                        : get_message(e, v);
        if (!report_failure(e, error ? S("Invalid") : v->reason, why))
            return false;
    }
    return true;
}

/* With one set of parameters. */
static bool evaluate(struct admission_run *e)
{
    enum applies applies = check_conditions(e);
    return applies == APPLIES ? check_validations(e) : applies == DOES_NOT_APPLY;
}

/* The code of a refusal without a reason of its own. */
static bool fail_configuration(struct admission_run *e, str why)
{
    refuse_request(e, S("Invalid"), why);
    return false;
}

static const struct admission_way validating = { "validatingadmissionpolicies",
                                                 "validatingadmissionpolicybindings", evaluate,
                                                 fail_configuration };

bool admission_conditions_hold(const struct admission_request *r, const struct policy *p,
                               str *ret_why)
{
    struct admission_run e = { 0 };
    admission_run_init(&e, r, p);
    bool hold = admission_run_conditions(&e, ret_why);
    if (p->ignores_errors)
        *ret_why = S("");
    return hold;
}

/* ---- entry points */

bool admission_exists(struct call *c)
{
    return c->wait || admission_any_policy(c, &validating);
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
    if (!c->wait && !admission_can_mutate(c)) /* no webhooks, no policies */
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
    return admission_run_all(&r, &validating, NULL) && webhook_validate(&r);
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
    return webhook_mutate(&r) && admission_run_all(&r, &validating, NULL) && webhook_validate(&r);
}
