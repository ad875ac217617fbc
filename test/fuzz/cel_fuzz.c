/* An expression and an object: the first line is an expression on `self` (typed by a fixed schema) or, if it begins with
 * '?', on `object` of unknown type; the rest is JSON. Compiling and running always end, and the result can be printed. */
#include "fuzz.h"

#include "apiserver/schema/cel/cel.h"

static const char schema_text[] =
    "{\"type\":\"object\",\"properties\":{\"i\":{\"type\":\"integer\"},\"d\":{\"type\":\"number\"},"
    "\"s\":{\"type\":\"string\"},\"b\":{\"type\":\"boolean\"},\"x\":{\"x-kubernetes-int-or-string\":true},"
    "\"l\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},\"t\":{\"type\":\"string\",\"format\":"
    "\"date-time\"},\"r\":{\"type\":\"string\",\"format\":\"duration\"},\"y\":{\"type\":\"string\",\"format\":"
    "\"byte\"},\"m\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}},\"k\":{\"type\":"
    "\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[\"n\"],\"items\":{\"type\":"
    "\"object\",\"properties\":{\"n\":{\"type\":\"string\"}}}}}}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    str text = { (const char *)data, size };
    size_t line = str_find_char(text, '\n');
    str expression = line == SIZE_MAX ? text : str_upto(text, line);
    struct json *schema, *object = NULL;
    if (json_parse(&a, str_c(schema_text), &schema, NULL) < 0)
        return 0;
    if (line == SIZE_MAX || json_parse(&a, str_from(text, line + 1), &object, NULL) < 0)
        object = json_new_obj(&a);
    bool dyn = str_starts(expression, S("?"));
    const struct cel_type *type = dyn ? &cel_dyn : cel_type_of_schema(&a, schema, true);
    struct cel_variable variable = { dyn ? S("object") : S("self"), type };
    struct cel_env env = { &variable, 1, .root = dyn ? NULL : type, .policy = dyn };
    const struct cel_program *p;
    str issues;
    if (cel_compile(&a, &env, str_from(expression, dyn), &p, &issues) < 0)
        return 0;
    struct cel_value value = cel_of_json(&a, object, type);
    struct cel_run run = { .arena = &a, .variables = &value, .limit = 100000 };
    struct cel_value result = cel_run(p, &run);
    struct json *json = cel_to_json(&a, result);
    if (json)
        json_to_str(&a, json);
    return 0;
}
