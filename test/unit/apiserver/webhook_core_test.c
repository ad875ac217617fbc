/* What is sent to webhooks, and what their answers mean. */
#include "tap.h"

#include "apiserver/http/webhook_core.h"

static struct arena arena;

static struct json *parse(const char *text)
{
    struct json *tree = NULL;
    err_t e = { 0 };
    OK_CALL(json_parse(&arena, str_c(text), &tree, &e), &e);
    return tree;
}

static struct hook_verdict read_text(const char *text, bool mutating)
{
    struct hook_verdict v;
    struct hook_reply r = { .status = 200,
                            .content_type = S("application/json"),
                            .body = str_c(text) };
    webhook_admission_read(&arena, &r, S("h.example.com"), S("v1"), S("7"), mutating, &v);
    return v;
}

#define REVIEW(response)                                                                           \
    "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":" response  \
    "}"

static void paths_are_cleaned(void)
{
    static const char *const t[][2] = { { "", "/" },
                                        { "/", "/" },
                                        { "//failing", "/failing" },
                                        { "/a//b/", "/a/b" },
                                        { "/a/./b/../c", "/a/c" },
                                        { "/../../x", "/x" } };
    for (size_t i = 0; i < countof(t); i++)
        EQ_STR(webhook_clean_path(&arena, str_c(t[i][0])), str_c(t[i][1]));
}

static void the_first_known_version_is_sent(void)
{
    EQ_STR(webhook_choose_version(parse("[\"v9\",\"v1beta1\",\"v1\"]")), S("v1beta1"));
    EQ_STR(webhook_choose_version(parse("[\"v1\"]")), S("v1"));
    EQ_STR(webhook_choose_version(NULL), S(""));
}

static void a_review_has_its_uid_first(void)
{
    EQ_STR(webhook_admission_text(&arena, S("v1"), S("7"),
                                  parse("{\"name\":\"a\",\"object\":null}")),
           S("{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":"
             "{\"uid\":\"7\",\"name\":\"a\",\"object\":null}}"));
}

static void refusals_have_an_error_code(void)
{
    static const struct {
        const char *response;
        int code;
        const char *message;
    } t[] = {
        { REVIEW("{\"uid\":\"7\"}"), 400, " without explanation" },
        { REVIEW("{\"uid\":\"7\",\"allowed\":false,\"status\":{\"code\":200,\"message\":\"m\"}}"),
          400, ": m" },
        { REVIEW("{\"uid\":\"7\",\"allowed\":null,\"status\":{\"code\":410,\"reason\":\"Gone\"}}"),
          410, ": Gone" },
        { REVIEW("{\"uid\":\"7\",\"allowed\":false,\"status\":{\"code\":99999}}"), 500,
          " without explanation" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct hook_verdict v = read_text(t[i].response, false);
        EQ_INT(v.how, HOOK_DENIED);
        EQ_INT(v.code, t[i].code);
        EQ_STR(v.message,
               arena_printf(&arena, "admission webhook \"h.example.com\" denied the request%s",
                            t[i].message));
    }
}

static void patches_are_decoded(void)
{
    /* base64 of [{"op":"add"}] and of [] */
    struct hook_verdict v =
        read_text(REVIEW("{\"uid\":\"7\",\"allowed\":true,\"patchType\":\"JSONPatch\",\"patch\":"
                         "\"W3sib3AiOiJhZGQifV0=\"}"),
                  true);
    EQ_INT(v.how, HOOK_ALLOWED);
    EQ_STR(json_to_str(&arena, v.patch), S("[{\"op\":\"add\"}]"));
    v = read_text(
        REVIEW("{\"uid\":\"7\",\"allowed\":true,\"patchType\":\"JSONPatch\",\"patch\":\"W10=\"}"),
        true);
    EQ_INT(v.how, HOOK_ALLOWED);
    OK(!v.patch);
    v = read_text(
        REVIEW("{\"uid\":\"7\",\"allowed\":true,\"patchType\":\"JSONPatch\",\"patch\":\"W10=\"}"),
        false);
    EQ_STR(v.why, S("received invalid webhook response: validating webhook may not return "
                    "response.patch"));
}

/* Whatever is not an answer is a failure, never a permission. */
static void everything_else_is_a_failure(void)
{
    static const char *const t[][2] = {
        { "", "0-length response" },
        { "{", "json parse error" },
        { "null", "json parse error" },
        { "[]", "not an object" },
        { "{}", "webhook response was absent" },
        { REVIEW("5"), "cannot unmarshal" },
        { REVIEW("{\"uid\":\"8\",\"allowed\":true}"), "expected response.uid=\"7\", got \"8\"" },
        { REVIEW("{\"uid\":7,\"allowed\":true}"), "cannot unmarshal integer" },
        { REVIEW("{\"uid\":\"7\",\"allowed\":\"true\"}"),
          "AdmissionReview.response.allowed of type" },
        { REVIEW("{\"uid\":\"7\",\"allowed\":true,\"patch\":\"W10=\"}"),
          "but not response.patchType" },
        { "{\"response\":{\"uid\":\"7\",\"allowed\":true}}", "got /, Kind=" },
        { "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"response\":{\"uid\":\"7\",\"allowed\":true}}",
          "no kind \"Status\" is registered for version \"v1\"" },
        { "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1beta1\",\"response\":{"
          "\"uid\":\"7\",\"allowed\":true}}",
          "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct hook_verdict v = read_text(t[i][0], true);
        EQ_INT(v.how, HOOK_FAILED);
        if (str_find(v.why, str_c(t[i][1])) == SIZE_MAX)
            EQ_STR(v.why, str_c(t[i][1]));
    }
}

static void http_errors_are_worded_by_code(void)
{
    static const struct {
        int status;
        const char *type, *body, *why;
    } t[] = {
        { 404, "application/json", "", "the server could not find the requested resource" },
        { 500, "application/json", "boom",
          "an error on the server (\"unknown\") has prevented the request from succeeding" },
        { 500, "text/plain", "boom",
          "an error on the server (\"boom\") has prevented the request from succeeding" },
        { 302, "text/html", "<a>",
          "the server responded with the status code 302 but did not return more information" },
        { 403, "text/plain", "go away\n", "go away" },
        { 418, "application/json", "{\"kind\":\"Status\",\"message\":\"teapot\"}", "teapot" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct hook_verdict v;
        struct hook_reply r = { .status = t[i].status,
                                .content_type = str_c(t[i].type),
                                .body = str_c(t[i].body) };
        webhook_admission_read(&arena, &r, S("h"), S("v1"), S("7"), true, &v);
        EQ_STR(v.why, arena_printf(&arena, "failed to call webhook: %s", t[i].why));
    }
}

static void conversions_keep_identity(void)
{
    const struct json *objects = parse(
        "[{\"apiVersion\":\"g/v1\",\"kind\":\"T\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"labels\":{"
        "\"l\":\"1\"}}}]");
    static const char *const t[][2] = {
        { "[]", "returned 0 objects, expected 1" },
        { "[{\"apiVersion\":\"g/v3\",\"kind\":\"T\"}]",
          "returned invalid object at index 0: invalid groupVersion (expected g/v2, received g/v3)" },
        { "[{\"apiVersion\":\"g/v2\",\"kind\":\"T\",\"metadata\":{\"name\":\"z\",\"uid\":\"u\"}}]",
          "returned invalid object: must have the same name: a != z" },
        { "[{\"apiVersion\":\"g/v2\",\"kind\":\"T\",\"metadata\":{\"name\":\"a\"}}]",
          "returned invalid object: must have the same UID: u != " },
        { "[{\"apiVersion\":\"g/v2\",\"kind\":\"T\",\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"labels\":{"
          "\"l\":\"2\"},\"finalizers\":[\"f\"]},\"spec\":1}]",
          "" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct hook_reply r = {
            .status = 200,
            .body =
                arena_printf(&arena,
                             "{\"kind\":\"ConversionReview\",\"apiVersion\":\"apiextensions.k8s.io/"
                             "v1\",\"response\":{\"uid\":\"7\",\"result\":{\"status\":\"Success\"},"
                             "\"convertedObjects\":%s}}",
                             t[i][0])
        };
        str why = S("");
        struct json *made =
            webhook_conversion_read(&arena, &r, S("v1"), S("7"), S("g/v2"), objects, &why);
        EQ_STR(why, str_c(t[i][1]));
        EQ_INT(made != NULL, !t[i][1][0]);
        if (made) /* labels may change, finalizers may not */
            EQ_STR(json_to_str(&arena, json_get(json_item(made, 0), "metadata")),
                   S("{\"name\":\"a\",\"uid\":\"u\",\"labels\":{\"l\":\"2\"}}"));
    }
}

int main(void)
{
    int result = tap_run((struct tap_case[]){ TAP(paths_are_cleaned),
                                              TAP(the_first_known_version_is_sent),
                                              TAP(a_review_has_its_uid_first),
                                              TAP(refusals_have_an_error_code),
                                              TAP(patches_are_decoded),
                                              TAP(everything_else_is_a_failure),
                                              TAP(http_errors_are_worded_by_code),
                                              TAP(conversions_keep_identity),
                                              { 0 } });
    arena_done(&arena);
    return result;
}
