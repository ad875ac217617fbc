#include "tap.h"

#include "json/merge.h"

static struct json *parse(struct arena *a, const char *text)
{
    struct json *v = NULL;
    err_t e;
    OK_CALL(json_parse(a, str_c(text), &v, &e), &e);
    return v;
}

/* The table of RFC 7386, appendix A, and corner cases of Kubernetes. */
static void patches_merge(void)
{
    static const struct {
        const char *target, *patch, *want;
    } t[] = {
        { "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"a\":null}", "{}" },
        { "{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}" },
        { "{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}" },
        { "{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}" },
        { "{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}" },
        { "[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]" },
        { "{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]" },
        { "{\"a\":\"foo\"}", "null", "null" },
        { "{\"a\":\"foo\"}", "\"bar\"", "\"bar\"" },
        { "{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}" },
        { "[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}" },
        { "{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}" },
        { "{\"s\":{}}", "{\"s\":{\"owner\":{\"team\":null}}}", "{\"s\":{\"owner\":{}}}" },
        { "{\"a\":[]}", "{\"a\":[{\"x\":null,\"y\":[null,{\"z\":null}]}]}",
          "{\"a\":[{\"y\":[null,{}]}]}" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_arena struct arena a = { 0 };
        struct json *target = parse(&a, t[i].target), *patch = parse(&a, t[i].patch);
        struct json *got = merge_patch(&a, target, patch);
        EQ_STR(json_to_str(&a, got), str_c(t[i].want));
        EQ_STR(json_to_str(&a, target), str_c(t[i].target));
        EQ_STR(json_to_str(&a, patch), str_c(t[i].patch));
    }
    auto_arena struct arena a = { 0 };
    EQ_STR(json_to_str(&a, merge_patch(&a, NULL, parse(&a, "{\"a\":{\"b\":null}}"))),
           S("{\"a\":{}}"));
}

static void differences_are_smallest(void)
{
    static const struct {
        const char *from, *to, *want; /* NULL: nothing to do */
    } t[] = {
        { "{\"a\":1}", "{\"a\":1.0}", NULL },
        { "{\"a\":1,\"b\":[1]}", "{\"b\":[2],\"a\":1}", "{\"b\":[2]}" },
        { "{\"a\":1}", "{}", "{\"a\":null}" },
        { "{\"s\":{\"x\":1,\"y\":{\"z\":1}}}", "{\"s\":{\"y\":{\"z\":2},\"n\":{}}}",
          "{\"s\":{\"x\":null,\"y\":{\"z\":2},\"n\":{}}}" },
        { "{\"a\":[1]}", "{\"a\":{\"b\":1}}", "{\"a\":{\"b\":1}}" },
        { "{}", "{\"a\":null}", NULL },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_arena struct arena a = { 0 };
        struct json *from = parse(&a, t[i].from), *to = parse(&a, t[i].to);
        struct json *patch = merge_diff(&a, from, to);
        EQ_STR(patch ? json_to_str(&a, patch) : S("nothing"),
               str_c(t[i].want ? t[i].want : "nothing"));
        if (patch)
            OK(json_eq(merge_patch(&a, from, patch), to));
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(patches_merge), TAP(differences_are_smallest), { 0 } });
}
