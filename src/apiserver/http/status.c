/* Failures: the Status object and one function per kind of failure.
 *
 * Clients distinguish errors by `reason` and `code`, and tools compare messages, so all of it is byte for byte
 * what kube-apiserver answers; test/conformance pins it. Messages about invalid objects name the kind
 * ("Deployment.apps"), all others the resource ("deployments.apps"). */
#include "call.h"

#include <stdarg.h>
#include <stdio.h>

/* NULL if there is nothing to write and `empty_details` is not set. */
static struct json *make_details(struct arena *a, const struct status *s)
{
    if (!s->name.n && !s->group.n && !s->kind.n && !s->uid.n && !s->causes && !s->retry_after_s)
        return s->empty_details ? json_new_obj(a) : NULL;
    struct json *d = json_new_obj(a);
    const struct {
        const char *key;
        str value;
    } texts[] = {
        { "name", s->name }, { "group", s->group }, { "kind", s->kind }, { "uid", s->uid }
    };
    for (size_t i = 0; i < countof(texts); i++)
        if (texts[i].value.n)
            json_set_str(a, d, texts[i].key, texts[i].value);
    if (s->causes)
        json_set(a, d, S("causes"), s->causes);
    if (s->retry_after_s)
        json_set_int(a, d, "retryAfterSeconds", s->retry_after_s);
    return d;
}

/* Repeats the message of an internal error as a cause, as kube-apiserver does. */
static struct json *make_causes(struct arena *a, const struct status *s)
{
    if (s->causes || !s->reason || strcmp(s->reason, "InternalError") != 0)
        return s->causes;
    struct json *cause = json_new_obj(a), *causes = json_new_arr(a);
    str before = S("Internal error occurred: ");
    json_set_str(a, cause, "message",
                 str_starts(s->message, before) ? str_from(s->message, before.n) : s->message);
    json_push(a, causes, cause);
    return causes;
}

struct json *status_tree(struct arena *a, const struct status *given)
{
    struct status own = *given;
    const struct status *s = &own;
    own.causes = make_causes(a, given);
    struct json *t = json_new_obj(a);
    json_set_str(a, t, "kind", S("Status"));
    json_set_str(a, t, "apiVersion", S("v1"));
    json_set(a, t, S("metadata"), json_new_obj(a));
    json_set_str(a, t, "status", s->code < 400 ? S("Success") : S("Failure"));
    if (s->message.n)
        json_set_str(a, t, "message", s->message);
    if (s->reason)
        json_set_str(a, t, "reason", str_c(s->reason));
    struct json *details = make_details(a, s);
    if (details)
        json_set(a, t, S("details"), details);
    if (s->code != 200)
        json_set_int(a, t, "code", s->code);
    return t;
}

void call_status(struct call *c, const struct status *s)
{
    if (s->retry_after_s)
        call_add_header(c, "Retry-After", arena_printf(c->arena, "%d", s->retry_after_s));
    call_json(c, s->code, status_tree(c->arena, s));
}

/* "configmaps", "deployments.apps": how messages name a resource. */
static str qualify_name(struct arena *a, str name, str group)
{
    return group.n ? arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(name), STR_ARG(group)) : name;
}

static void fail_resource(struct call *c, const struct kind *k, str name, struct status s)
{
    s.name = name;
    s.group = k->group;
    s.kind = k->plural;
    call_status(c, &s);
}

static str format_args(struct arena *a, const char *format, va_list args) PRINTF_LIKE(2, 0);
/* printf into the arena. */
static str format_args(struct arena *a, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, again);
    va_end(again);
    char *text = arena_alloc(a, (size_t)MAX(n, 0) + 1);
    vsnprintf(text, (size_t)MAX(n, 0) + 1, format, args);
    return (str){ text, (size_t)MAX(n, 0) };
}

void call_bad_request(struct call *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    str message = format_args(c->arena, format, args);
    va_end(args);
    call_status(c, &(struct status){ .code = 400, .reason = "BadRequest", .message = message });
}

void call_not_found(struct call *c, const struct kind *k, str name)
{
    str message = arena_printf(c->arena, STR_FMT " \"" STR_FMT "\" not found",
                               STR_ARG(qualify_name(c->arena, k->plural, k->group)), STR_ARG(name));
    fail_resource(c, k, name,
                  (struct status){ .code = 404, .reason = "NotFound", .message = message });
}

void call_no_resource(struct call *c)
{
    call_status(c,
                &(struct status){ .code = 404,
                                  .reason = "NotFound",
                                  .message = S("the server could not find the requested resource"),
                                  .empty_details = true });
}

void call_no_page(struct call *c)
{
    call_text(c, 404, "text/plain; charset=utf-8", S("404 page not found\n"));
}

/* kube-apiserver has one text for built-in kinds and another for custom ones. */
void call_method_not_allowed(struct call *c)
{
    struct status s = { .code = 405, .reason = "MethodNotAllowed", .empty_details = true };
    s.message = S("the server does not allow this method on the requested resource");
    if (!c->kind || !c->kind->custom) {
        call_status(c, &s);
        return;
    }
    static const char *const words[] = { "this method", "get",    "list",
                                         "watch",       "create", "update",
                                         "patch",       "delete", "deletecollection" };
    s.message =
        arena_printf(c->arena, "%s is not supported on resources of kind \"" STR_FMT "\"",
                     words[c->verb], STR_ARG(qualify_name(c->arena, c->kind->plural, c->group)));
    fail_resource(c, c->kind, S(""), s);
}

void call_already_exists(struct call *c, const struct kind *k, str name, bool deleting)
{
    str message = arena_printf(c->arena, "%s" STR_FMT " \"" STR_FMT "\" already exists",
                               deleting ? "object is being deleted: " : "",
                               STR_ARG(qualify_name(c->arena, k->plural, k->group)), STR_ARG(name));
    fail_resource(c, k, name,
                  (struct status){ .code = 409, .reason = "AlreadyExists", .message = message });
}

void call_conflict(struct call *c, const struct kind *k, str name, str why)
{
    if (!why.n)
        why = S(
            "the object has been modified; please apply your changes to the latest version and try "
            "again");
    str message =
        arena_printf(c->arena,
                     "Operation cannot be fulfilled on " STR_FMT " \"" STR_FMT "\": " STR_FMT,
                     STR_ARG(qualify_name(c->arena, k->plural, k->group)), STR_ARG(name),
                     STR_ARG(why));
    fail_resource(c, k, name,
                  (struct status){ .code = 409, .reason = "Conflict", .message = message });
}

void call_forbidden(struct call *c, const struct kind *k, str name, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    str why = format_args(c->arena, format, args);
    va_end(args);
    str quoted = name.n ? arena_printf(c->arena, " \"" STR_FMT "\"", STR_ARG(name)) : S("");
    str message = arena_printf(c->arena, STR_FMT STR_FMT " is forbidden: " STR_FMT,
                               STR_ARG(qualify_name(c->arena, k->plural, k->group)),
                               STR_ARG(quoted), STR_ARG(why));
    fail_resource(c, k, name,
                  (struct status){ .code = 403, .reason = "Forbidden", .message = message });
}

void call_invalid(struct call *c, str kind, str group, str name, const struct field_errors *errors)
{
    str message = arena_printf(c->arena, STR_FMT " \"" STR_FMT "\" is invalid: " STR_FMT,
                               STR_ARG(qualify_name(c->arena, kind, group)), STR_ARG(name),
                               STR_ARG(field_summary(c->arena, errors)));
    call_status(c, &(struct status){ .code = 422,
                                     .reason = "Invalid",
                                     .message = message,
                                     .name = name,
                                     .group = group,
                                     .kind = kind,
                                     .causes = field_causes(c->arena, errors) });
}

/* The failure that a kind reported: field errors (422), or its own code and reason. */
void call_fault(struct call *c, const struct kind *k, str name, const struct kind_fault *fault)
{
    if (fault->errors.n) {
        const struct kind *about = fault->about ? fault->about : k->storage;
        call_invalid(c, about->kind, about->group, name, &fault->errors);
        return;
    }
    struct status s = { .code = fault->code, .reason = fault->reason, .message = fault->message };
    if (fault->cause) {
        struct json *cause = json_new_obj(c->arena);
        json_set_str(c->arena, cause, "reason", str_c(fault->cause));
        json_push(c->arena, s.causes = json_new_arr(c->arena), cause);
    }
    if (fault->code == 403 || fault->code == 404 || fault->code == 409)
        fail_resource(c, k, name, s);
    else
        call_status(c, &s);
}

void call_expired(struct call *c, const char *message)
{
    call_status(c, &(struct status){ .code = 410, .reason = "Expired", .message = str_c(message) });
}
