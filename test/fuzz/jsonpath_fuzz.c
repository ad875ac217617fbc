/* The first byte selects how keys are parsed, the rest is a path. The single value of a
 * plain path is the one that the general evaluation finds. */
#include "fuzz.h"
#include "json/jsonpath.h"

static const char object[] =
    "{\"a\":{\"b\":[1,2.5,\"x\",{\"c\":null,\"n\":\"a\"},[[3]]],\"d.e\":{\"f\":true}},\"g\":\"text\","
    "\"l\":[{\"n\":\"a\",\"v\":1},{\"n\":\"b\",\"v\":2,\"x\":[]}]}";

static void one_and_all(struct arena *a, const struct jsonpath *p, const struct json *root)
{
    struct jsonpath_values all;
    const struct json *one = NULL;
    err_t e;
    int found = jsonpath_find(a, p, root, &all, &e), single = jsonpath_one(a, p, root, &one, &e);
    if (found < 0 ? single != found : single != (all.n == 0 ? -ENOENT : all.n == 1 ? 0 : -E2BIG))
        abort();
    if (found == 0 && all.n == 1 && !json_eq(one, all.at[0]))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    struct json *root;
    struct jsonpath p;
    err_t e;
    if (!size || json_parse(&a, (str){ object, sizeof(object) - 1 }, &root, &e) < 0)
        return 0;
    struct jsonpath_source source = { .text = { (const char *)data + 1, size - 1 },
                                      .flags = data[0] & 3 };
    if (jsonpath_parse(&a, source, &p, &e) == 0)
        one_and_all(&a, &p, root);
    return 0;
}
