#include "tap.h"
#include "test_json.h"

#include "json/patch.h"

static void operations_apply(void)
{
    static const struct {
        const char *doc, *patch, *want;
    } t[] = {
        { "{\"a\":1}", "[]", "{\"a\":1}" },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\",\"value\":[2]}]", "{\"a\":1,\"b\":[2]}" },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":2}]", "{\"a\":2}" },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\"}]", "{\"a\":1,\"b\":null}" },
        { "[1,2]", "[{\"op\":\"add\",\"path\":\"/1\",\"value\":9}]", "[1,9,2]" },
        { "[1,2]", "[{\"op\":\"add\",\"path\":\"/2\",\"value\":9}]", "[1,2,9]" },
        { "[1,2]", "[{\"op\":\"add\",\"path\":\"/-\",\"value\":9}]", "[1,2,9]" },
        { "[1,2]", "[{\"op\":\"add\",\"path\":\"/-1\",\"value\":9}]", "[1,2,9]" },
        { "[1,2]", "[{\"op\":\"add\",\"path\":\"/-3\",\"value\":9}]", "[9,1,2]" },
        { "{\"a\":{\"b\":1}}", "[{\"op\":\"remove\",\"path\":\"/a/b\"}]", "{\"a\":{}}" },
        { "[1,2,3]", "[{\"op\":\"remove\",\"path\":\"/1\"}]", "[1,3]" },
        { "[1,2,3]", "[{\"op\":\"remove\",\"path\":\"/-1\"}]", "[1,2]" },
        { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":2}]", "{\"a\":2}" },
        { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":2}]", "{\"a\":1,\"b\":2}" },
        { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":{\"z\":0}}]", "{\"z\":0}" },
        { "[1,2]", "[{\"op\":\"replace\",\"path\":\"/0\",\"value\":9}]", "[9,2]" },
        { "{\"a\":1,\"b\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b/c\"}]",
          "{\"b\":{\"c\":1}}" },
        { "[\"X\",\"b\",\"c\"]", "[{\"op\":\"move\",\"from\":\"/0\",\"path\":\"/2\"}]",
          "[\"b\",\"c\",\"X\"]" },
        { "{\"a\":{\"x\":1}}",
          "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"},"
          "{\"op\":\"add\",\"path\":\"/b/x\",\"value\":2}]",
          "{\"a\":{\"x\":1},\"b\":{\"x\":2}}" },
        { "{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"/none\",\"path\":\"/b\"}]",
          "{\"a\":1,\"b\":null}" },
        { "{\"a\":[1.0]}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":[1]}]", "{\"a\":[1.0]}" },
        { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/none\",\"value\":null}]", "{\"a\":1}" },
        { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"\",\"value\":{\"a\":1}}]", "{\"a\":1}" },
        { "{\"x/y\":{\"~\":1}}", "[{\"op\":\"replace\",\"path\":\"/x~1y/~0\",\"value\":2}]",
          "{\"x/y\":{\"~\":2}}" },
        { "{\"a\":{}}",
          "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":{\"c\":[]}},"
          "{\"op\":\"add\",\"path\":\"/a/b/c/-\",\"value\":1}]",
          "{\"a\":{\"b\":{\"c\":[1]}}}" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_arena struct arena a = { 0 };
        struct json *doc = test_json(&a, t[i].doc), *before = json_copy(&a, doc), *got = NULL;
        struct json *patch = test_json(&a, t[i].patch), *patch_before = json_copy(&a, patch);
        err_t e;
        if (OK_CALL(patch_apply(&a, doc, patch, &got, &e), &e))
            OK(json_eq(got, test_json(&a, t[i].want)) ||
               tap_note(__FILE__, __LINE__, "%s gave %s", t[i].patch, json_to_str(&a, got).p));
        OK(json_eq(doc, before) && json_eq(patch, patch_before));
    }
}

static void failures_have_distinct_codes(void)
{
    static const struct {
        const char *doc, *patch;
        int code;
        const char *sentence;
    } t[] = {
        { "{}", "{\"op\":\"add\"}", EINVAL, "a JSON patch is an array of operations, not object" },
        { "{}", "[1]", EINVAL, "JSON patch operation 0 must be an object, not integer" },
        { "{}", "[{\"op\":1}]", EINVAL,
          "JSON patch operation 0: op must be a string, not integer" },
        { "{}", "[{\"op\":\"nonsense\",\"path\":\"/a\"},{\"op\":\"add\",\"path\":{}}]", EINVAL,
          "JSON patch operation 1: path must be a string, not object" },
        { "{}", "[{\"op\":\"nonsense\",\"path\":\"/a\"}]", ENOENT,
          "JSON patch operation 0 (nonsense \"/a\") does not apply: op is one of add, remove, "
          "replace, move, copy and test" },
        { "{}", "[{\"path\":\"/a\"}]", ENOENT, NULL },
        { "{}", "[{\"op\":\"add\",\"value\":1}]", ENOENT, NULL },
        { "{}", "[{\"op\":\"add\",\"path\":\"a\",\"value\":1}]", ENOENT, NULL },
        { "{}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]", ENOENT,
          "JSON patch operation 0 (add \"/a/b\") does not apply: there is no such path" },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]", ENOENT, NULL },
        { "{}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", ENOENT,
          "JSON patch operation 0 (remove \"/a\") does not apply: there is nothing to remove" },
        { "[1]", "[{\"op\":\"add\",\"path\":\"/9\",\"value\":1}]", ENOENT,
          "JSON patch operation 0 (add \"/9\") does not apply: there is no such index" },
        { "[1]", "[{\"op\":\"add\",\"path\":\"/x\",\"value\":1}]", ENOENT, NULL },
        { "[1]", "[{\"op\":\"add\",\"path\":\"/-3\",\"value\":1}]", ENOENT, NULL },
        { "[1]", "[{\"op\":\"replace\",\"path\":\"/1\",\"value\":1}]", ENOENT, NULL },
        { "[1]", "[{\"op\":\"remove\",\"path\":\"/-\"}]", ENOENT, NULL },
        { "{}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":1}]", ENOENT, NULL },
        { "{}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b\"}]", ENOENT, NULL },
        { "{\"a\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b\"}]", ENOENT, NULL },
        { "{}", "[{\"op\":\"copy\",\"from\":\"/a/b\",\"path\":\"/b\"}]", ENOENT, NULL },
        { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]", ESTALE,
          "JSON patch operation 0 (test \"/a\") failed: the value is different" },
        { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\"}]", ESTALE, NULL },
        { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/b\",\"value\":2}]", ESTALE, NULL },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_arena struct arena a = { 0 };
        struct json *got = NULL;
        err_t e = { 0 };
        EQ_INT(patch_apply(&a, test_json(&a, t[i].doc), test_json(&a, t[i].patch), &got, &e),
               -t[i].code);
        OK(got == NULL);
        if (t[i].sentence)
            EQ_STR(str_c(e.text), str_c(t[i].sentence));
    }
}

static struct json *many(struct arena *a, size_t n, const char *operation)
{
    struct json *patch = json_new_arr(a);
    for (size_t i = 0; i < n; i++)
        json_push(a, patch, test_json(a, operation));
    return patch;
}

static void hostile_patches_are_bounded(void)
{
    auto_arena struct arena a = { 0 };
    struct json *got = NULL, *doc = test_json(&a, "{\"a\":{\"x\":\"0123456789\"}}");
    err_t e;
    const char *test = "{\"op\":\"test\",\"path\":\"/b\"}";
    EQ_INT(patch_apply(&a, doc, many(&a, PATCH_OPERATIONS_MAX, test), &got, &e), 0);
    EQ_INT(patch_apply(&a, doc, many(&a, PATCH_OPERATIONS_MAX + 1, test), &got, &e), -E2BIG);
    /* each copies twice the one before */
    struct json *bomb = json_new_arr(&a);
    for (int i = 0; i < 100; i++) {
        json_push(&a, bomb, test_json(&a, "{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"}"));
        json_push(&a, bomb, test_json(&a, "{\"op\":\"move\",\"from\":\"/b\",\"path\":\"/a/b\"}"));
        json_push(&a, bomb, test_json(&a, "{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/c\"}"));
        json_push(&a, bomb, test_json(&a, "{\"op\":\"move\",\"from\":\"/c\",\"path\":\"/a/c\"}"));
    }
    EQ_INT(patch_apply(&a, doc, bomb, &got, &e), -ENOENT);
    OK(str_ends(str_c(e.text), S("the patch copies more than 3 MiB")));
}

static void depth_is_bounded(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf path = { 0 };
    struct json *patch = json_new_arr(&a), *got = NULL;
    for (int i = 0; i < 5000; i++) {
        buf_put(&path, S("/a"));
        struct json *operation = test_json(&a, "{\"op\":\"add\",\"value\":{}}");
        json_set_str(&a, operation, "path", buf_str(&path));
        json_push(&a, patch, operation);
    }
    err_t e;
    EQ_INT(patch_apply(&a, json_new_obj(&a), patch, &got, &e), -ENOENT);
    json_push(&a, patch, test_json(&a, "{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"}"));
    EQ_INT(patch_apply(&a, json_new_obj(&a), patch, &got, &e), -ENOENT);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(operations_apply),
                                        TAP(failures_have_distinct_codes),
                                        TAP(hostile_patches_are_bounded),
                                        TAP(depth_is_bounded),
                                        { 0 } });
}
