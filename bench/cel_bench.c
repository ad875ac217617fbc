/* Five CEL rules of a definition on an object of 2 KB, as one write of a custom resource runs them. */
#include "apiserver/schema/cel/cel_rules.h"
#include "base/clock.h"
#include "budget.h"

#include <stdlib.h>

static const char schema_text[] =
    "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"x-kubernetes-validations\":["
    "{\"rule\":\"self.min <= self.max\"},"
    "{\"rule\":\"self.ports.all(p, p.port > 0 && p.port < 65536)\"},"
    "{\"rule\":\"!has(self.host) || self.host.endsWith('.example.com')\"},"
    "{\"rule\":\"self.mode in ['a', 'b', 'c']\"},"
    "{\"rule\":\"size(self.labels) < 100\"}],"
    "\"properties\":{\"min\":{\"type\":\"integer\"},\"max\":{\"type\":\"integer\"},\"host\":{\"type\":\"string\"},"
    "\"mode\":{\"type\":\"string\"},\"ports\":{\"type\":\"array\",\"maxItems\":16,\"items\":{\"type\":\"object\","
    "\"properties\":{\"port\":{\"type\":\"integer\"}}}},"
    "\"labels\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}}}}}";

static struct json *make_object(struct arena *a)
{
    struct json *object = json_new_obj(a), *spec = json_make(a, object, "spec", NULL);
    struct json *ports = json_new_arr(a), *labels = json_make(a, spec, "labels", NULL);
    json_set_int(a, spec, "min", 1);
    json_set_int(a, spec, "max", 9);
    json_set_str(a, spec, "host", S("api.example.com"));
    json_set_str(a, spec, "mode", S("b"));
    for (int i = 0; i < 3; i++) {
        struct json *port = json_new_obj(a);
        json_set_int(a, port, "port", 8080 + i);
        json_push(a, ports, port);
    }
    json_set(a, spec, S("ports"), ports);
    for (int i = 0; i < 40; i++)
        json_set(a, labels, arena_printf(a, "label-%02d.example.com/name", i),
                 json_new_str(a, S("a value of some length")));
    return object;
}

int main(void)
{
    enum { ROUNDS = 200000 };
    auto_arena struct arena a = { 0 };
    struct json *schema = NULL, *object = make_object(&a);
    err_t e;
    if (json_parse(&a, str_c(schema_text), &schema, &e) < 0)
        return 1;
    const struct cel_validator *v = cel_validator_new(&a, schema, true);
    int64_t start = clock_cpu_ns();
    for (int i = 0; i < ROUNDS; i++) {
        struct field_errors errors = { .arena = &a };
        struct cel_validation run = { .errors = &errors, .budget = CEL_COST_OBJECT };
        cel_validate(v, object, NULL, NULL, &run);
        if (errors.n)
            return 1;
    }
    double us = (double)(clock_cpu_ns() - start) / 1e3 / ROUNDS;
    printf("%zu bytes, five rules: %.2f us\n", json_to_str(&a, object).n, us);
    budget("CEL: five rules on a 2 KB object", us, 2, "us");
    return 0;
}
