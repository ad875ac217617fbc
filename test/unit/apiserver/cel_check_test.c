#include "tap.h"

#include "apiserver/schema/cel_check.h"

static const char schema_text[] =
    "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{"
    "\"min\":{\"type\":\"integer\"},\"max\":{\"type\":\"integer\"},\"name\":{\"type\":\"string\"},"
    "\"on\":{\"type\":\"boolean\"},\"hosts\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"
    "\"pods\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"port\":{\"type\":"
    "\"integer\"}}}},\"labels\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}},"
    "\"a-b\":{\"type\":\"integer\"},\"namespace\":{\"type\":\"string\"},\"any\":{"
    "\"x-kubernetes-int-or-string\":true},\"when\":{\"type\":\"string\",\"format\":\"date-time\"}}}}}";

static struct json *schema(struct arena *a)
{
    struct json *v = NULL;
    err_t e;
    OK_CALL(json_parse(a, str_c(schema_text), &v, &e), &e);
    return v;
}

static void valid_rules_are_accepted(void)
{
    static const char *const rules[] = {
        "true",
        "self.spec.min <= self.spec.max",
        "!has(self.spec.min) || self.spec.min > 0",
        "self.spec.hosts.all(h, h.endsWith('.com'))",
        "self.spec.pods.exists_one(p, p.port == 80 && p.port != 81)",
        "self.spec.name in ['a', 'b']",
        "self.spec.labels['x'] == \"y\" ? self.spec.on : !self.spec.on",
        "size(self.spec.hosts) < 5",
        "self.spec.name == oldSelf.spec.name",
        "self.spec.hosts.map(h, size(h)).sum() > 3",
        "self.spec.hosts.filter(h, h.startsWith('a')).size() >= 1",
        "self.metadata.name.size() < 10 && self.kind == 'X'",
        "self.spec.a__dash__b + 1 > 2",
        "self.spec.__namespace__ != ''",
        "duration(self.spec.name) > duration('5s')",
        "self.spec.when < timestamp('2030-01-01T00:00:00Z')",
        "self.spec.any == 5 || self.spec.any == '5%'",
        "self.spec.labels.all(k, k.matches(r'^[a-z]+$'))",
        "[1, 2, 3].exists(i, i == self.spec.min)",
        "{'a': 1}['a'] == 1",
        "type(self.spec.min) == int",
        "quantity('1Gi').isGreaterThan(quantity(self.spec.name))",
        "self.spec.min * 2 - 1 <= 10 // a comment",
        "has(self.spec.name) && self.spec.name != null",
        "self.spec.hosts.all(i, h, h != '')",
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(rules); i++) {
        err_t e;
        if (cel_check(&(struct cel_place){ schema(&a), .root = true }, str_c(rules[i]), &e) != 0)
            tap_note(__FILE__, __LINE__, "%s: %s", rules[i], e.text);
    }
}

static void invalid_rules_are_refused(void)
{
    static const char *const rules[] = {
        "",
        "self.nosuch > 1",
        "self.spec.name",
        "self.spec.min",
        "self.spec.min +",
        "self.spec.name.nosuch == 1",
        "other.spec == 1",
        "frobnicate(self)",
        "self.spec.hosts.all(h, size(h))",
        "self.spec.min == 'x'",
        "self.spec.name < 3",
        "self.spec.min && true",
        "(true",
        "'abc",
        "self.spec.pods.all(p, p.nosuch > 1)",
        "h == 1 && self.spec.hosts.all(h, true)",
        "true true",
        "!self.spec.min",
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(rules); i++) {
        err_t e;
        if (cel_check(&(struct cel_place){ schema(&a), .root = true }, str_c(rules[i]), &e) !=
            -EINVAL)
            tap_note(__FILE__, __LINE__, "accepted: %s", rules[i]);
    }
}

static void deep_rules_are_refused(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf rule = { 0 };
    err_t e;
    for (int i = 0; i < 5000; i++)
        buf_putc(&rule, '(');
    EQ_INT(cel_check(&(struct cel_place){ schema(&a), .root = true }, buf_str(&rule), &e), -EINVAL);
}

static void errors_have_the_right_path(void)
{
    auto_arena struct arena a = { 0 };
    struct json *v = schema(&a), *rule = json_new_obj(&a), *rules = json_new_arr(&a);
    json_set_str(&a, rule, "rule", S("self.nosuch"));
    json_push(&a, rules, rule);
    json_set(&a, json_at(v, "properties", "spec", NULL), S("x-kubernetes-validations"), rules);
    struct field_errors errors = { .arena = &a };
    cel_check_schema(v, NULL, &errors);
    if (EQ_INT(errors.n, 1))
        EQ_STR(errors.at[0].path, S("properties[spec].x-kubernetes-validations[0].rule"));
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(valid_rules_are_accepted),
        TAP(invalid_rules_are_refused),
        TAP(deep_rules_are_refused),
        TAP(errors_have_the_right_path),
        { 0 },
    });
}
