/* The input is [Deployment, strategic merge patch]. Neither is changed, and an empty patch can be applied
 * to the result. */
#include "fuzz.h"
#include "json/strategic.h"

#include "../unit/json/shapes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    struct json *input;
    err_t e;
    if (json_parse(&a, (str){ (const char *)data, size }, &input, &e) < 0 || json_len(input) != 2 ||
        input->type != JSON_ARR)
        return 0;
    struct json *before = json_copy(&a, input), *object = input->items[0];
    if (strategic_patch(&a, &deployment, &object, input->items[1], &e) == 0) {
        struct json *same = object;
        if (strategic_patch(&a, &deployment, &same, json_new_obj(&a), &e) < 0 ||
            !json_eq(same, object))
            abort();
    }
    if (!json_eq(input, before))
        abort();
    return 0;
}
