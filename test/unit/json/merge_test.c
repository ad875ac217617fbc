#include "tap.h"
#include "test_json.h"

#include "base/random.h"
#include "json/merge.h"

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
        struct json *target = test_json(&a, t[i].target), *patch = test_json(&a, t[i].patch);
        struct json *got = merge_patch(&a, target, patch);
        EQ_STR(json_to_str(&a, got), str_c(t[i].want));
        EQ_STR(json_to_str(&a, target), str_c(t[i].target));
        EQ_STR(json_to_str(&a, patch), str_c(t[i].patch));
    }
    auto_arena struct arena a = { 0 };
    EQ_STR(json_to_str(&a, merge_patch(&a, NULL, test_json(&a, "{\"a\":{\"b\":null}}"))),
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
        struct json *from = test_json(&a, t[i].from), *to = test_json(&a, t[i].to);
        struct json *patch = merge_diff(&a, from, to);
        EQ_STR(patch ? json_to_str(&a, patch) : S("nothing"),
               str_c(t[i].want ? t[i].want : "nothing"));
        if (patch)
            OK(json_eq(merge_patch(&a, from, patch), to));
    }
}

static void two_patches_are_one(void)
{
    static const struct {
        const char *first, *second, *want; /* NULL: it cannot be expressed */
    } t[] = {
        { "{\"a\":1}", "{\"b\":2}", "{\"a\":1,\"b\":2}" },
        { "{\"a\":1}", "{\"a\":2}", "{\"a\":2}" },
        { "{\"a\":1}", "{\"a\":null}", "{\"a\":null}" },
        { "{\"a\":null}", "{\"a\":[1]}", "{\"a\":[1]}" },
        { "{\"s\":{\"x\":1,\"y\":1}}", "{\"s\":{\"x\":null,\"z\":{\"u\":null}}}",
          "{\"s\":{\"x\":null,\"y\":1,\"z\":{\"u\":null}}}" },
        { "{\"a\":null}", "{\"a\":{\"b\":1}}", NULL },
        { "{\"a\":7}", "{\"a\":{}}", NULL },
        { "{\"s\":{\"a\":[1]}}", "{\"s\":{\"a\":{\"b\":1}}}", NULL },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_arena struct arena a = { 0 };
        struct json *first = test_json(&a, t[i].first), *second = test_json(&a, t[i].second);
        struct json *both = merge_compose(&a, first, second);
        EQ_STR(both ? json_to_str(&a, both) : S("none"), str_c(t[i].want ? t[i].want : "none"));
        EQ_STR(json_to_str(&a, first), str_c(t[i].first));
    }
}

/* A small value with few names, so that patches concern the same members. */
static struct json *random_value(struct arena *a, struct random *random, int depth)
{
    static const char *const names[] = { "a", "b", "c" };
    int64_t kind = random_below(random, depth ? 6 : 3);
    if (kind == 0)
        return json_new_null(a);
    if (kind <= 2)
        return json_new_int(a, random_below(random, 3));
    struct json *object = json_new_obj(a);
    for (int64_t n = random_below(random, 4); n > 0; n--)
        json_set(a, object, str_c(names[random_below(random, 3)]),
                 random_value(a, random, depth - 1));
    return object;
}

/* Whatever the target is, one patch has the effect of both. */
static void the_effect_is_that_of_both(void)
{
    struct random random;
    random_init(&random, 19, 1);
    int composed = 0;
    for (int i = 0; i < 20000; i++) {
        auto_arena struct arena a = { 0 };
        struct json *target = merge_patch(&a, NULL, random_value(&a, &random, 3));
        struct json *first = random_value(&a, &random, 3), *second = random_value(&a, &random, 3);
        struct json *both = merge_compose(&a, first, second);
        if (!both)
            continue;
        composed++;
        struct json *want = merge_patch(&a, merge_patch(&a, target, first), second);
        if (!OK(json_eq(merge_patch(&a, target, both), want)))
            return;
    }
    OK(composed > 5000);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(patches_merge),
                                        TAP(differences_are_smallest),
                                        TAP(two_patches_are_one),
                                        TAP(the_effect_is_that_of_both),
                                        { 0 } });
}
