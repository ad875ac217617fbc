/* An object of any built-in kind, then an update of it: {"old": ..., "new": ...}, of the kind of
 * the new one. Decoding, preparing, validating and printing must survive any object. */
#include "fuzz.h"

#include "apiserver/kinds/kinds.h"
#include "apiserver/kinds/table.h"

static void print_row(struct arena *a, const struct kind *k, const struct json *object)
{
    struct table_options options = { .now_ns = INT64_C(1700000000000000000),
                                     .api_version = S("meta.k8s.io/v1") };
    table_make(a, k, &object, 1, NULL, options);
}

static bool write(struct arena *a, const struct kind *k, struct json *object,
                  const struct json *old, enum kind_sub sub)
{
    struct kind_env env = { .arena = a, .now_ns = INT64_C(1700000000000000000) };
    struct kind_change change = { k, sub, object, old };
    struct kind_fault fault;
    if (kind_decode(k, a, object, NULL, NULL) < 0)
        return false;
    kind_prepare(&change, &env, &fault);
    if (!fault.code)
        kind_validate(&change, &env, &fault);
    print_row(a, k, object);
    return !fault.code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    struct json *v;
    if (json_parse(&a, (str){ (const char *)data, size }, &v, NULL) < 0)
        return 0;
    struct json *object = json_get(v, "new"), *old = json_get(v, "old");
    str name = json_text(json_get(object, "kind"));
    size_t n = 0;
    const struct kind *const *kinds = kinds_builtin(&n);
    for (size_t i = 0; i < n; i++) {
        if (!str_eq(kinds[i]->kind, name))
            continue;
        struct json *before = json_copy(&a, old);
        bool there = before && write(&a, kinds[i], before, NULL, KIND_MAIN);
        for (int sub = KIND_MAIN; sub < KIND_SUB_N; sub++)
            write(&a, kinds[i], json_copy(&a, object), there ? before : NULL, (enum kind_sub)sub);
    }
    return 0;
}
