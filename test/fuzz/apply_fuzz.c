/* The input is [live object, configuration, new object] of a custom resource. The input is not
 * changed; the result of an apply can be applied to again and updated; ownership survives a round
 * trip. */
#include "fuzz.h"
#include "json/apply.h"

#include "../unit/json/shapes.h"

static void check_owners(struct arena *a, const struct json *object)
{
    const struct json *entries = json_at(object, "metadata", "managedFields", NULL);
    for (size_t i = 0; i < json_len(entries); i++) {
        const struct json *fields = json_get(json_item(entries, i), "fieldsV1");
        struct fieldset set;
        err_t e;
        if (fieldset_parse(a, fields, &set, &e) < 0 || !json_eq(fields, fieldset_print(a, &set)))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    struct json *input;
    err_t e;
    if (json_parse(&a, (str){ (const char *)data, size }, &input, &e) < 0 || json_len(input) != 3 ||
        input->type != JSON_ARR)
        return 0;
    struct json *before = json_copy(&a, input);
    struct apply_request r = { .shape = &widget,
                               .version = S("g/v1"),
                               .manager = S("fuzz"),
                               .now = S("2026-11-15T20:38:14Z"),
                               .force = size % 2,
                               .live = json_is(input->items[0], JSON_OBJ) ? input->items[0] : NULL,
                               .object = input->items[1] };
    struct apply_result result;
    if (json_is(r.object, JSON_OBJ) && apply_patch(&a, &r, &result, &e) == 0) {
        check_owners(&a, result.object);
        r.live = result.object;
        r.force = true;
        if (apply_patch(&a, &r, &result, &e) < 0)
            abort();
    }
    r.object = input->items[2];
    if (json_is(r.object, JSON_OBJ))
        check_owners(&a, apply_update(&a, &r));
    if (!json_eq(input, before))
        abort();
    return 0;
}
