/* A schema and a value from one document {"schema": ..., "value": ...}: a schema that builds can prune,
 * default and validate any value; pruning and defaulting a second time change nothing. */
#include "fuzz.h"

#include "apiserver/schema/cel/cel_rules.h"
#include "apiserver/schema/schema.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    struct json *v;
    if (json_parse(&a, (str){ (const char *)data, size }, &v, NULL) < 0)
        return 0;
    const struct json *openapi = json_get(v, "schema");
    struct json *value = json_get(v, "value");
    if (!json_is(openapi, JSON_OBJ) || !value)
        return 0;
    struct field_errors errors = { .arena = &a };
    const struct schema *s = schema_from_openapi(&a, openapi, NULL, &errors);
    cel_check_definition(openapi, NULL, &errors);
    field_summary(&a, &errors);
    if (!s)
        return 0;
    struct schema_unknown unknown = { .arena = &a };
    schema_prune(s, value, true, NULL);
    schema_prune(s, value, true, &unknown);
    if (unknown.n)
        abort();
    schema_default(s, &a, value);
    struct json *once = json_copy(&a, value);
    schema_default(s, &a, value);
    if (!json_eq(once, value))
        abort();
    schema_validate(s, value, NULL, NULL, &errors);
    size_t before = errors.n;
    schema_validate(s, value, once, NULL, &errors); /* nothing changed: no errors */
    if (errors.n != before)
        abort();
    return 0;
}
