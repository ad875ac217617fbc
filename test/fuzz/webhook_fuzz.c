/* The answer of a webhook, of any bytes: no crash; what is not an answer is a failure with a reason, never a permission;
 * converted objects are as many as were sent and keep their names. */
#include "fuzz.h"

#include "apiserver/http/webhook_core.h"

static void check_admission(struct arena *a, const struct hook_reply *r, bool mutating)
{
    struct hook_verdict v;
    webhook_admission_read(a, r, S("h"), S("v1"), S("7"), mutating, &v);
    bool known = v.how == HOOK_ALLOWED || v.how == HOOK_DENIED || v.how == HOOK_FAILED;
    if (!known || (v.how == HOOK_FAILED && !v.why.n) || (v.patch && !json_len(v.patch)))
        abort();
    if (v.how == HOOK_DENIED && (v.code < 400 || v.code > 599 || !v.message.n))
        abort();
    if (v.patch && (!mutating || v.how != HOOK_ALLOWED))
        abort();
}

static void check_conversion(struct arena *a, const struct hook_reply *r)
{
    static const char sent[] =
        "[{\"apiVersion\":\"g/v1\",\"kind\":\"T\",\"metadata\":{\"name\":\"a\","
        "\"uid\":\"u\"}}]";
    struct json *objects = NULL;
    str why = S("");
    if (json_parse(a, str_c(sent), &objects, NULL) < 0)
        abort();
    struct json *made = webhook_conversion_read(a, r, S("v1"), S("7"), S("g/v2"), objects, &why);
    if (made ? json_len(made) != 1 : !why.n)
        abort();
    if (made && !str_eqc(json_text(json_at(json_item(made, 0), "metadata", "name", NULL)), "a"))
        abort();
}

/* The first byte chooses the HTTP status. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int codes[] = { 200, 500, 404, 302 };
    auto_arena struct arena a = { 0 };
    if (!size)
        return 0;
    struct hook_reply r = { .status = codes[data[0] % countof(codes)],
                            .content_type = data[0] & 128 ? S("text/plain") : S("application/json"),
                            .body = arena_str(&a, (str){ (const char *)data + 1, size - 1 }) };
    check_admission(&a, &r, false);
    check_admission(&a, &r, true);
    check_conversion(&a, &r);
    webhook_clean_path(&a, r.body);
    return 0;
}
