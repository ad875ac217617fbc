/* Reviews: see webhook_core.h.
 *
 * A failure is worded as kube-apiserver words it, because users search for these texts. What kube-apiserver decodes
 * with Go types is checked here field by field. */
#include "webhook_core.h"

#include "../../base/base64.h"

#define ADMISSION_GROUP "admission.k8s.io/"
#define CONVERSION_GROUP "apiextensions.k8s.io/"

str webhook_clean_path(struct arena *a, str path)
{
    auto_buf struct buf clean = { 0 };
    for (str part; str_cut(&path, '/', &part);) {
        if (!part.n || str_eqc(part, "."))
            continue;
        if (!str_eqc(part, "..")) {
            buf_putc(&clean, '/');
            buf_put(&clean, part);
            continue;
        }
        while (clean.n && clean.p[clean.n - 1] != '/')
            clean.n--;
        clean.n -= clean.n > 0;
    }
    return clean.n ? arena_str(a, buf_str(&clean)) : S("/");
}

str webhook_choose_version(const struct json *versions)
{
    for (size_t i = 0; i < json_len(versions); i++) {
        str each = json_text(json_item(versions, i));
        if (str_eqc(each, "v1") || str_eqc(each, "v1beta1"))
            return each;
    }
    return S("");
}

/* Both reviews begin in the same way. */
static struct json *new_review(struct arena *a, const char *kind, const char *group, str version)
{
    struct json *review = json_new_obj(a);
    json_set_str(a, review, "kind", str_c(kind));
    json_set_str(a, review, "apiVersion", arena_printf(a, "%s" STR_FMT, group, STR_ARG(version)));
    return review;
}

str webhook_admission_text(struct arena *a, str version, str uid, const struct json *request)
{
    struct json *review = new_review(a, "AdmissionReview", ADMISSION_GROUP, version);
    struct json *with_uid = json_new_obj(a);
    json_set_str(a, with_uid, "uid", uid);
    json_each(m, request)
        json_append(a, with_uid, m->key, m->value);
    json_set(a, review, S("request"), with_uid);
    return json_to_str(a, review);
}

/* ---- what any answer must be */

/* The message of an HTTP error: the Status in the body, or a text for the code. */
static str describe_status(struct arena *a, const struct hook_reply *r)
{
    static const struct {
        int code;
        const char *text;
    } texts[] = {
        { 400, "the server rejected our request for an unknown reason" },
        { 401, "the server has asked for the client to provide credentials" },
        { 404, "the server could not find the requested resource" },
        { 405, "the server does not allow this method on the requested resource" },
        { 409, "the server reported a conflict" },
        { 422, "the server rejected our request due to an error in our request" },
        { 429, "the server has received too many requests and has asked us to try again later" },
        { 503, "the server is currently unable to handle the request" },
        { 504, "the server was unable to return a response in the time allotted, but may still be "
               "processing the request" },
    };
    struct json *tree = NULL;
    if (json_parse(a, r->body, &tree, NULL) == 0 &&
        str_eqc(json_text(json_get(tree, "kind")), "Status") &&
        json_text(json_get(tree, "message")).n)
        return json_text(json_get(tree, "message"));
    for (size_t i = 0; i < countof(texts); i++)
        if (texts[i].code == r->status)
            return str_c(texts[i].text);
    bool is_text = !r->content_type.n || str_starts(r->content_type, S("text/"));
    str said = is_text && str_trim(r->body).n ? str_trim(r->body) : S("unknown");
    if (r->status == 403 || r->status == 406 || r->status == 415)
        return said;
    if (r->status >= 500) {
        auto_buf struct buf quoted = { 0 };
        json_write_text(&quoted, str_upto(said, 1000));
        return arena_printf(a,
                            "an error on the server (" STR_FMT
                            ") has prevented the request from succeeding",
                            STR_ARG(buf_str(&quoted)));
    }
    return arena_printf(
        a, "the server responded with the status code %d but did not return more information",
        r->status);
}

/* Whether the answer is a review of the wanted kind. Kind and version that are absent are filled in by the decoder of
 * kube-apiserver and found missing later; those of another type are its errors. Returns what is wrong, or "". */
static str check_type(struct arena *a, const struct json *tree, const char *kind, str wanted)
{
    str is = json_text(json_get(tree, "kind")), version = json_text(json_get(tree, "apiVersion"));
    str group = str_upto(wanted, str_find_char(wanted, '/'));
    if (is.n && (!str_eqc(is, kind) || (version.n && !str_starts(version, group))))
        return arena_printf(a,
                            "no kind \"" STR_FMT "\" is registered for version \"" STR_FMT
                            "\" in scheme \"pkg/runtime/scheme.go:111\"",
                            STR_ARG(is), STR_ARG(version.n ? version : wanted));
    if (is.n && version.n && !str_eq(version, wanted))
        return arena_printf(a,
                            "converting (" STR_FMT ".%s) to (" STR_FMT ".%s): unknown conversion",
                            STR_ARG(str_from(version, MIN(group.n + 1, version.n))), kind,
                            STR_ARG(str_from(wanted, group.n + 1)), kind);
    return S("");
}

/* The tree of the answer. NULL: `why` states what is wrong with it, beginning with how far the call came. */
static struct json *read_reply(struct arena *a, const struct hook_reply *r, const char *kind,
                               str wanted, str *why)
{
    struct json *tree = NULL;
    err_t e = { 0 };
    if (r->failure.n)
        *why = r->failure;
    else if (r->status < 200 || r->status > 206)
        *why = describe_status(a, r);
    else if (!r->body.n)
        *why = arena_printf(a, "0-length response with status code: %d and content type: " STR_FMT,
                            r->status, STR_ARG(r->content_type));
    else if (json_parse(a, r->body, &tree, &e) < 0 || !json_is(tree, JSON_OBJ))
        *why = arena_printf(a, "couldn't get version/kind; json parse error: %s",
                            tree ? "the answer is not an object" : e.text);
    else if (!(*why = check_type(a, tree, kind, wanted)).n)
        return tree;
    return NULL;
}

/* The first member of the response that has the wrong type, as kube-apiserver reports it; "" if there is none. */
static str check_members(struct arena *a, const char *kind, const struct json *response)
{
    static const struct {
        const char *key;
        enum json_type type;
        const char *go;
    } members[] = {
        { "uid", JSON_STR, "types.UID" },    { "allowed", JSON_BOOL, "bool" },
        { "status", JSON_OBJ, "v1.Status" }, { "patch", JSON_STR, "[]uint8" },
        { "patchType", JSON_STR, "string" }, { "warnings", JSON_ARR, "[]string" },
        { "result", JSON_OBJ, "v1.Status" }, { "convertedObjects", JSON_ARR, "[]RawExtension" },
    };
    for (size_t i = 0; i < countof(members); i++) {
        const struct json *value = json_get(response, members[i].key);
        if (value && !json_is(value, JSON_NULL) && !json_is(value, members[i].type))
            return arena_printf(a,
                                "json: cannot unmarshal %s into Go struct field %s.response.%s of "
                                "type %s",
                                json_type_name(value), kind, members[i].key, members[i].go);
    }
    return S("");
}

/* ---- admission */

/* `stage` is how far the call came. */
static void set_failure(struct hook_verdict *v, struct arena *a, const char *stage, str why)
{
    v->how = HOOK_FAILED;
    v->why = arena_printf(a, "%s: " STR_FMT, stage, STR_ARG(why));
}

/* A refusal: an error code, or 400; the message names the webhook. */
static void set_denial(struct hook_verdict *v, struct arena *a, str name, const struct json *status)
{
    int64_t code = json_int(json_get(status, "code"), 0);
    str message = json_text(json_get(status, "message"));
    v->how = HOOK_DENIED;
    v->status = status;
    v->code = code < 400 ? 400 : code > 599 ? 500 : (int)code;
    v->reason = json_text(json_get(status, "reason"));
    if (!message.n)
        message = v->reason;
    v->message =
        arena_printf(a, "admission webhook \"" STR_FMT "\" denied the request%s" STR_FMT,
                     STR_ARG(name), message.n ? ": " : " without explanation", STR_ARG(message));
}

/* The type as Go prints it: "admission.k8s.io/v1, Kind=AdmissionReview". */
static str get_version_text(struct arena *a, const struct json *tree)
{
    str version = json_text(json_get(tree, "apiVersion"));
    return arena_printf(a, STR_FMT "%s, Kind=" STR_FMT, STR_ARG(version), version.n ? "" : "/",
                        STR_ARG(json_text(json_get(tree, "kind"))));
}

/* What v1 demands beyond v1beta1: the uid of the request, its type, patch and patchType together. "": nothing is wrong. */
static str check_admission(struct arena *a, const struct json *tree, const struct json *response,
                           str wanted, str uid, bool mutating)
{
    str is = json_text(json_get(response, "uid"));
    const struct json *type = json_get(response, "patchType");
    bool patch = json_text(json_get(response, "patch")).n > 0, typed = json_is(type, JSON_STR);
    bool v1 = str_ends(wanted, S("/v1"));
    if (v1 && !str_eq(is, uid))
        return arena_printf(a, "expected response.uid=\"" STR_FMT "\", got \"" STR_FMT "\"",
                            STR_ARG(uid), STR_ARG(is));
    if (v1 && (!json_text(json_get(tree, "kind")).n || !json_text(json_get(tree, "apiVersion")).n))
        return arena_printf(a,
                            "expected webhook response of " STR_FMT
                            ", Kind=AdmissionReview, got " STR_FMT,
                            STR_ARG(wanted), STR_ARG(get_version_text(a, tree)));
    if (!v1)
        return S("");
    if (!mutating && patch)
        return S("validating webhook may not return response.patch");
    if (!mutating && typed)
        return S("validating webhook may not return response.patchType");
    if (patch && !typed)
        return S("webhook returned response.patch but not response.patchType");
    if (!patch && typed)
        return S("webhook returned response.patchType but not response.patch");
    if (typed && !json_text(type).n)
        return S("webhook returned invalid response.patchType of \"\"");
    return S("");
}

/* The operations of the patch; no operations are no patch. */
static void read_patch(struct arena *a, const struct json *response, struct hook_verdict *v)
{
    str text = json_text(json_get(response, "patch")),
        type = json_text(json_get(response, "patchType"));
    auto_buf struct buf bytes = { 0 };
    struct json *patch = NULL;
    err_t e = { 0 };
    if (!text.n)
        return;
    if (base64_decode(&bytes, text) < 0)
        set_failure(v, a, "failed to call webhook", S("illegal base64 data in response.patch"));
    else if (json_parse(a, arena_str(a, buf_str(&bytes)), &patch, &e) < 0)
        set_failure(v, a, "received undecodable patch in webhook response", str_c(e.text));
    else if (!json_is(patch, JSON_ARR))
        set_failure(v, a, "received undecodable patch in webhook response",
                    arena_printf(a,
                                 "json: cannot unmarshal %s into Go value of type jsonpatch.Patch",
                                 json_type_name(patch)));
    else if (type.n && !str_eqc(type, "JSONPatch"))
        set_failure(v, a, "unsupported patch type",
                    arena_printf(a, "\"" STR_FMT "\"", STR_ARG(type)));
    else if (json_len(patch))
        v->patch = patch;
}

void webhook_admission_read(struct arena *a, const struct hook_reply *reply, str name, str version,
                            str uid, bool mutating, struct hook_verdict *v)
{
    *v = (struct hook_verdict){ 0 };
    str wanted = arena_printf(a, ADMISSION_GROUP STR_FMT, STR_ARG(version)), why = S("");
    struct json *tree = read_reply(a, reply, "AdmissionReview", wanted, &why);
    const struct json *response = json_get(tree, "response");
    if (tree && response && !json_is(response, JSON_NULL) && !json_is(response, JSON_OBJ))
        why = S("json: cannot unmarshal response into Go type AdmissionResponse");
    else if (tree)
        why = check_members(a, "AdmissionReview", response);
    if (why.n || !tree) {
        set_failure(v, a, "failed to call webhook", why);
        return;
    }
    why = json_is(response, JSON_OBJ) ? check_admission(a, tree, response, wanted, uid, mutating)
                                      : S("webhook response was absent");
    if (why.n) {
        set_failure(v, a, "received invalid webhook response", why);
        return;
    }
    v->warnings = json_get(response, "warnings");
    if (!json_bool(json_get(response, "allowed"), false)) {
        set_denial(v, a, name, json_get(response, "status"));
        return;
    }
    v->how = HOOK_ALLOWED;
    if (mutating)
        read_patch(a, response, v);
}

/* ---- conversion */

str webhook_conversion_text(struct arena *a, str version, str uid, str wanted,
                            const struct json *objects)
{
    struct json *review = new_review(a, "ConversionReview", CONVERSION_GROUP, version);
    struct json *request = json_make(a, review, "request", NULL);
    struct json *response = json_make(a, review, "response", NULL);
    json_set_str(a, request, "uid", uid);
    json_set_str(a, request, "desiredAPIVersion", wanted);
    json_set(a, request, S("objects"), json_copy(a, objects));
    json_set_str(a, response, "uid", S(""));
    json_set(a, response, S("convertedObjects"), json_new_null(a));
    json_make(a, response, "result", "metadata", NULL);
    return json_to_str(a, review);
}

/* Compares what a conversion must not change. "": nothing is wrong. */
static str check_identity(struct arena *a, const struct json *was, const struct json *is)
{
    static const char *const keys[] = { "name", "namespace", "uid" };
    static const char *const words[] = { "name", "namespace", "UID" };
    for (size_t i = 0; i < countof(keys); i++) {
        str before = json_text(json_at(was, "metadata", keys[i], NULL)),
            after = json_text(json_at(is, "metadata", keys[i], NULL));
        if (!str_eq(before, after))
            return arena_printf(a, "must have the same %s: " STR_FMT " != " STR_FMT, words[i],
                                STR_ARG(before), STR_ARG(after));
    }
    return str_eq(json_text(json_get(was, "kind")), json_text(json_get(is, "kind")))
               ? S("")
               : arena_printf(a, "must have the same kind: " STR_FMT " != " STR_FMT,
                              STR_ARG(json_text(json_get(was, "kind"))),
                              STR_ARG(json_text(json_get(is, "kind"))));
}

/* Labels and annotations may change; all other metadata is that of the original. */
static void restore_metadata(struct arena *a, const struct json *was, struct json *is)
{
    static const char *const changeable[] = { "labels", "annotations" };
    struct json *now = json_get(is, "metadata");
    struct json *metadata = json_copy(a, json_get(was, "metadata"));
    for (size_t i = 0; metadata && i < countof(changeable); i++) {
        struct json *value = json_get(now, changeable[i]);
        if (json_is(value, JSON_OBJ))
            json_set(a, metadata, str_c(changeable[i]), value);
        else
            json_del(metadata, str_c(changeable[i]));
    }
    if (metadata)
        json_set(a, is, S("metadata"), metadata);
}

/* What is wrong with one converted object; "": nothing. */
static str check_converted(struct arena *a, const struct json *was, const struct json *is,
                           str wanted, size_t index, bool alone)
{
    str version = json_text(json_get(is, "apiVersion")), why = S("");
    const char *what = alone ? "object" : "converted object";
    if (!str_eq(version, wanted))
        return arena_printf(
            a,
            "returned invalid %s at index %zu: invalid groupVersion (expected " STR_FMT
            ", received " STR_FMT ")",
            what, index, STR_ARG(wanted), STR_ARG(version));
    why = check_identity(a, was, is);
    if (!why.n)
        return S("");
    return alone ? arena_printf(a, "returned invalid object: " STR_FMT, STR_ARG(why))
                 : arena_printf(a, "returned invalid converted object at index %zu: " STR_FMT,
                                index, STR_ARG(why));
}

/* Why the whole review failed; "": it did not. */
static str check_conversion(struct arena *a, const struct json *tree, str uid)
{
    const struct json *response = json_get(tree, "response"),
                      *result = json_get(response, "result");
    str why = check_members(a, "ConversionReview", response);
    str is = json_text(json_get(response, "uid")), status = json_text(json_get(result, "status"));
    str message = json_text(json_get(result, "message"));
    if (why.n)
        return why;
    if (!json_is(response, JSON_OBJ))
        return S("no response provided");
    if (!str_eq(is, uid))
        return arena_printf(a, "expected response.uid=\"" STR_FMT "\", got \"" STR_FMT "\"",
                            STR_ARG(uid), STR_ARG(is));
    if (str_eqc(status, "Success"))
        return S("");
    return message.n
               ? message
               : arena_printf(a, "response.result.status was '" STR_FMT "', expected 'Success'",
                              STR_ARG(status));
}

struct json *webhook_conversion_read(struct arena *a, const struct hook_reply *reply, str version,
                                     str uid, str wanted, const struct json *objects, str *ret_why)
{
    str type = arena_printf(a, CONVERSION_GROUP STR_FMT, STR_ARG(version)), why = S("");
    struct json *tree = read_reply(a, reply, "ConversionReview", type, &why);
    if (tree)
        why = check_conversion(a, tree, uid);
    if (why.n || !tree) {
        *ret_why = arena_printf(a, "failed: " STR_FMT, STR_ARG(why));
        return NULL;
    }
    struct json *converted = json_at(tree, "response", "convertedObjects", NULL);
    size_t n = json_len(objects);
    if (json_len(converted) != n) {
        *ret_why = arena_printf(a, "returned %zu objects, expected %zu", json_len(converted), n);
        return NULL;
    }
    for (size_t i = 0; i < n; i++) {
        *ret_why =
            check_converted(a, json_item(objects, i), json_item(converted, i), wanted, i, n == 1);
        if (ret_why->n)
            return NULL;
        restore_metadata(a, json_item(objects, i), json_item(converted, i));
    }
    return converted;
}
