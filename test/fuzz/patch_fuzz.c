/* The input is [document, JSON patch, merge patch]. The input is not changed, the result is not deeper
 * than what the parser accepts, applying a merge patch twice equals applying it once, and the difference
 * of two documents turns one into the other. */
#include "fuzz.h"
#include "json/merge.h"
#include "json/patch.h"

/* A merge patch cannot express null. */
static bool has_null(const struct json *v)
{
    bool null = json_is(v, JSON_NULL);
    for (size_t i = 0; json_is(v, JSON_ARR) && i < v->n; i++)
        null = null || has_null(v->items[i]);
    json_each(m, v)
        null = null || has_null(m->value);
    return null;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    struct json *input, *out = NULL;
    err_t e;
    if (json_parse(&a, (str){ (const char *)data, size }, &input, &e) < 0 || json_len(input) != 3 ||
        input->type != JSON_ARR)
        return 0;
    struct json *before = json_copy(&a, input);
    const struct json *doc = input->items[0], *patch = input->items[2];
    if (patch_apply(&a, doc, input->items[1], &out, &e) == 0 && json_deeper(out, JSON_DEPTH_MAX))
        abort();
    struct json *once = merge_patch(&a, doc, patch);
    if (!json_eq(once, merge_patch(&a, once, patch)))
        abort();
    struct json *change = merge_diff(&a, doc, patch);
    if (!has_null(patch) && json_is(patch, JSON_OBJ) &&
        !json_eq(change ? merge_patch(&a, doc, change) : doc, patch))
        abort();
    if (!json_eq(input, before))
        abort();
    return 0;
}
