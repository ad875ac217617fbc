/* Interprets a response: maps the Status of an error to a reason, and formats one sentence for logs.
 *
 * The reason in the Status counts, not the code of the response, because several reasons share a code; without a
 * Status, as from a proxy, the code is all there is. A Status may be JSON or protobuf. */
#include "client_internal.h"

#include "../json/prototrim.h"
#include "../json/protowire.h"
#include "../net/http.h"
#include "protobuf_types.h"

enum { VALUES_MAX = 500000 }; /* per JSON object: 20 MB as a tree */

static const struct {
    const char *name;
    enum kube_reason reason;
} by_name[] = {
    { "BadRequest", KUBE_BAD_REQUEST },
    { "Unauthorized", KUBE_UNAUTHORIZED },
    { "Forbidden", KUBE_FORBIDDEN },
    { "NotFound", KUBE_NOT_FOUND },
    { "AlreadyExists", KUBE_ALREADY_EXISTS },
    { "Conflict", KUBE_CONFLICT },
    { "Gone", KUBE_GONE },
    { "Expired", KUBE_GONE },
    { "Invalid", KUBE_INVALID },
    { "Timeout", KUBE_TIMEOUT },
    { "ServerTimeout", KUBE_TIMEOUT },
    { "TooManyRequests", KUBE_TOO_MANY_REQUESTS },
    { "ServiceUnavailable", KUBE_UNAVAILABLE },
    { "InternalError", KUBE_UNAVAILABLE },
};

static const struct {
    int code;
    enum kube_reason reason;
} by_code[] = {
    { 400, KUBE_BAD_REQUEST }, { 401, KUBE_UNAUTHORIZED },      { 403, KUBE_FORBIDDEN },
    { 404, KUBE_NOT_FOUND },   { 409, KUBE_CONFLICT },          { 410, KUBE_GONE },
    { 422, KUBE_INVALID },     { 429, KUBE_TOO_MANY_REQUESTS }, { 504, KUBE_TIMEOUT },
};

bool kube_is_server_failure(const struct kube_reply *reply)
{
    return reply->reason == KUBE_NO_ANSWER || reply->reason == KUBE_UNAVAILABLE ||
           reply->reason == KUBE_TIMEOUT || reply->reason == KUBE_TOO_MANY_REQUESTS;
}

bool kube_is_expired(enum kube_reason reason)
{
    return reason == KUBE_GONE || reason == KUBE_VERSION_TOO_LARGE;
}

const char *kube_reason_name(enum kube_reason reason)
{
    for (size_t i = 0; i < countof(by_name); i++)
        if (by_name[i].reason == reason)
            return by_name[i].name;
    switch (reason) {
    case KUBE_OK:
        return "OK";
    case KUBE_VERSION_TOO_LARGE:
        return "ResourceVersionTooLarge";
    case KUBE_NO_ANSWER:
        return "NoAnswer";
    case KUBE_SUPERSEDED:
        return "Superseded";
    default:
        return "Refused";
    }
}

static bool is_too_large(const struct json *status)
{
    const struct json *causes = json_at(status, "details", "causes", NULL);
    for (size_t i = 0; i < json_len(causes); i++)
        if (str_eq(json_text(json_get(json_item(causes, i), "reason")),
                   S("ResourceVersionTooLarge")))
            return true;
    return false;
}

/* The Status' reason if it is known, otherwise the HTTP code: proxies send codes without a Status. */
static enum kube_reason reason_of(const struct json *status, int code)
{
    str name = json_text(json_get(status, "reason"));
    for (size_t i = 0; i < countof(by_name); i++)
        if (str_eqc(name, by_name[i].name))
            return by_name[i].reason == KUBE_TIMEOUT && is_too_large(status)
                       ? KUBE_VERSION_TOO_LARGE
                       : by_name[i].reason;
    for (size_t i = 0; i < countof(by_code); i++)
        if (by_code[i].code == code)
            return by_code[i].reason;
    return code >= 500 ? KUBE_UNAVAILABLE : KUBE_REFUSED;
}

/* The message of the Status, or the beginning of a body that is not a Status. */
static str message_of(const struct json *status, str body)
{
    str message = json_text(json_get(status, "message"));
    return message.n ? message : str_trim(str_upto(body, 200));
}

/* A Status in protobuf as JSON: a client that accepts protobuf gets errors in it too. Empty if it cannot be read. */
static str read_protobuf_status(struct arena *a, str body)
{
    auto_buf struct buf out = { 0 };
    const struct prototable *types = &kube_protobuf_types;
    str status;
    bool fine = protowire_unwrap(body, &status) &&
                prototrim_whole(types, prototable_find(types, "", "v1", "Status"), status, &out);
    return fine ? arena_str(a, buf_str(&out)) : S("");
}

/* A success whose body cannot be parsed counts as no response, like a broken connection. */
void kube_reply_read(struct kube_call *call, struct kube_reply *ret)
{
    json_hide_nul(call->answer.p, call->answer.n);
    str body = buf_str(&call->answer);
    if (call->protobuf)
        body = read_protobuf_status(&call->arena, body);
    *ret = (struct kube_reply){ .code = call->status, .body = body, .arena = &call->arena };
    err_t e;
    bool list = call->verb == KUBE_LIST;
    struct json_limits limits = { .values = list ? 0 : VALUES_MAX };
    bool success = call->status >= 200 && call->status < 300;
    if (success && call->text)
        return;
    int r = body.n ? json_parse_limited(&call->arena, body, &limits, &ret->object, &e) : 0;
    if (success && r < 0) {
        kube_reply_none(call, e.text, ret);
        ret->code = call->status;
        return;
    }
    if (success)
        return;
    ret->reason = reason_of(ret->object, call->status);
    if (ret->reason == KUBE_FORBIDDEN && kube_may_be_starting(call->k))
        ret->reason = KUBE_UNAVAILABLE; /* RBAC is not loaded yet: retry */
    ret->message = message_of(ret->object, body);
    ret->failure = arena_printf(&call->arena, STR_FMT ": server returned %d %s%s" STR_FMT,
                                STR_ARG(call->subject), call->status, http_reason(call->status),
                                ret->message.n ? ": " : "", STR_ARG(str_upto(ret->message, 300)))
                       .p;
}

void kube_reply_none(struct kube_call *call, const char *why, struct kube_reply *ret)
{
    *ret = (struct kube_reply){ .reason = KUBE_NO_ANSWER, .arena = &call->arena };
    ret->message = arena_str(&call->arena, str_c(why));
    ret->failure =
        arena_printf(&call->arena, STR_FMT ": %s", STR_ARG(call->subject), ret->message.p).p;
}
