/* The rules of a definition: what is refused when it is written, and what they report on objects. */
#include "tap.h"
#include "test_json.h"

#include "apiserver/schema/cel/cel_rules.h"

static struct json *parse(struct arena *a, const char *text)
{
    return test_json_quoted_by(a, text, '`');
}

static struct field_errors check(struct arena *a, const char *schema)
{
    struct field_errors errors = { .arena = a };
    cel_check_definition(parse(a, schema), NULL, &errors);
    return errors;
}

/* Runs the rules and returns all errors as one text. */
static str validate(struct arena *a, const char *schema, const char *value, const char *old)
{
    struct field_errors errors = { .arena = a };
    struct cel_validation run = { .errors = &errors, .budget = CEL_COST_OBJECT };
    const struct cel_validator *v = cel_validator_new(a, parse(a, schema), true);
    if (OK(v != NULL))
        cel_validate(v, parse(a, value), old ? parse(a, old) : NULL, NULL, &run);
    return errors.n ? field_summary(a, &errors) : S("");
}

static void definitions_are_checked(void)
{
    static const struct {
        const char *schema, *path, *end;
    } rows[] = {
        { "{`type`:`object`,`x-kubernetes-validations`:[{`rule`:` `}]}",
          "x-kubernetes-validations[0].rule", "rule is not specified" },
        { "{`type`:`object`,`x-kubernetes-validations`:[{`rule`:`self.nope`}]}",
          "x-kubernetes-validations[0].rule", "| ....^" },
        { "{`type`:`object`,`x-kubernetes-validations`:[{`rule`:`1`}]}",
          "x-kubernetes-validations[0].rule", "cel expression must evaluate to a bool" },
        { "{`type`:`object`,`x-kubernetes-validations`:[{`rule`:`true`,`messageExpression`:`1`}]}",
          "x-kubernetes-validations[0].messageExpression",
          "messageExpression must evaluate to a string" },
        { "{`type`:`object`,`x-kubernetes-validations`:[{`rule`:`true`,`fieldPath`:`.x`}]}",
          "x-kubernetes-validations[0].fieldPath", "must be a valid path" },
        { "{`type`:`object`,`x-kubernetes-validations`:[{`rule`:`true`,`optionalOldSelf`:true}]}",
          "x-kubernetes-validations[0].optionalOldSelf",
          "may not be set if oldSelf is not used in rule" },
        { "{`type`:`object`,`properties`:{`l`:{`type`:`array`,`items`:{`type`:`integer`,"
          "`x-kubernetes-validations`:[{`rule`:`self > oldSelf`}]}}}}",
          "properties[l].items.x-kubernetes-validations[0].rule",
          "uncorrelatable portion of the schema within properties[l]" },
        { "{`type`:`object`,`properties`:{`n`:{`type`:`integer`,`default`:1,"
          "`x-kubernetes-validations`:[{`rule`:`self > 1`,`message`:`too small`}]}}}",
          "properties[n].default", "too small" },
        { "{`type`:`object`,`properties`:{`u`:{`x-kubernetes-preserve-unknown-fields`:true,"
          "`x-kubernetes-validations`:[{`rule`:`true`}]}}}",
          "properties[u].x-kubernetes-validations",
          "unable to convert structural schema to CEL declarations" },
    };
    for (size_t i = 0; i < countof(rows); i++) {
        auto_arena struct arena a = { 0 };
        struct field_errors errors = check(&a, rows[i].schema);
        if (!EQ_INT(errors.n, 1))
            continue;
        EQ_STR(errors.at[0].path, str_c(rows[i].path));
        if (!str_ends(errors.at[0].message, str_c(rows[i].end)))
            tap_note(__FILE__, __LINE__, STR_FMT, STR_ARG(errors.at[0].message));
    }
}

/* The recorded factors of the original. */
static void costs_are_limited(void)
{
    static const struct {
        const char *limits, *factor;
    } rows[] = { { "`maxItems`:100", NULL },
                 { "`maxItems`:180", "5.3x" },
                 { "`maxItems`:300", "24.3x" } };
    for (size_t i = 0; i < countof(rows); i++) {
        auto_arena struct arena a = { 0 };
        str schema = arena_printf(&a,
                                  "{`type`:`object`,`properties`:{`l`:{`type`:`array`,%s,`items`:{"
                                  "`type`:`integer`},`x-kubernetes-validations`:[{`rule`:"
                                  "`self.all(x, self.all(y, self.all(z, x + y + z > 0)))`}]}}}",
                                  rows[i].limits);
        struct field_errors errors = check(&a, schema.p);
        if (!rows[i].factor)
            EQ_INT(errors.n, 0);
        else if (OK(errors.n > 0))
            OK(str_find(errors.at[0].message, str_c(rows[i].factor)) != SIZE_MAX);
    }
}

static const char rules[] =
    "{`type`:`object`,`x-kubernetes-validations`:[{`rule`:`self.metadata.name != 'bad'`}],"
    "`properties`:{`spec`:{`type`:`object`,`x-kubernetes-validations`:["
    "{`rule`:`!has(self.a) || self.a < 10`,`message`:`small`,`fieldPath`:`.a`},"
    "{`rule`:`!has(self.b) || self.b != 0`,`reason`:`FieldValueForbidden`,`message`:`zero`},"
    "{`rule`:`!has(self.z) || 1 / self.z > 0`}],`properties`:{"
    "`a`:{`type`:`integer`},`b`:{`type`:`integer`},`z`:{`type`:`integer`},"
    "`up`:{`type`:`integer`,`x-kubernetes-validations`:[{`rule`:`self >= oldSelf`,"
    "`messageExpression`:`'from %d'.format([oldSelf])`}]},"
    "`m`:{`type`:`object`,`additionalProperties`:{`type`:`string`,"
    "`x-kubernetes-validations`:[{`rule`:`self != 'x'`}]}},"
    "`l`:{`type`:`array`,`x-kubernetes-list-type`:`map`,`x-kubernetes-list-map-keys`:[`k`],"
    "`items`:{`type`:`object`,`properties`:{`k`:{`type`:`string`},`v`:{`type`:`integer`,"
    "`x-kubernetes-validations`:[{`rule`:`self > 0`,`message`:`positive`}]}}}}}}}}";

static void objects_are_validated(void)
{
    static const struct {
        const char *value, *old, *want;
    } rows[] = {
        { "{`metadata`:{`name`:`ok`},`spec`:{`a`:1,`b`:1,`z`:1}}", NULL, "" },
        { "{`metadata`:{`name`:`bad`}}", NULL,
          "<nil>: Invalid value: failed rule: self.metadata.name != 'bad'" },
        { "{`metadata`:{`name`:`n`},`spec`:{`a`:10}}", NULL, "spec.a: Invalid value: small" },
        { "{`metadata`:{`name`:`n`},`spec`:{`b`:0}}", NULL, "spec: Forbidden: zero" },
        { "{`metadata`:{`name`:`n`},`spec`:{`z`:0}}", NULL,
          "spec: Invalid value: \"object\": division by zero evaluating rule: !has(self.z) || 1 / "
          "self.z > 0" },
        { "{`metadata`:{`name`:`n`},`spec`:{`m`:{`k`:`x`}}}", NULL,
          "spec.m[k]: Invalid value: \"x\": failed rule: self != 'x'" },
        { "{`metadata`:{`name`:`n`},`spec`:{`up`:1}}", NULL, "" },
        { "{`metadata`:{`name`:`n`},`spec`:{`up`:1}}", "{`spec`:{`up`:2}}",
          "spec.up: Invalid value: 1: from 2" },
        { "{`metadata`:{`name`:`n`},`spec`:{`l`:[{`k`:`a`,`v`:0}]}}", NULL,
          "spec.l[0].v: Invalid value: 0: positive" },
        /* unchanged values are not reported, wherever the item is now */
        { "{`metadata`:{`name`:`n`},`spec`:{`l`:[{`k`:`b`,`v`:1},{`k`:`a`,`v`:0}]}}",
          "{`spec`:{`l`:[{`k`:`a`,`v`:0}]}}", "" },
        { "{`metadata`:{`name`:`n`},`spec`:{`a`:10,`b`:2}}", "{`spec`:{`a`:10,`b`:1}}",
          "spec.a: Invalid value: small" },
        { "{`metadata`:{`name`:`n`},`spec`:{`a`:10}}", "{`spec`:{`a`:10}}", "" },
    };
    for (size_t i = 0; i < countof(rows); i++) {
        auto_arena struct arena a = { 0 };
        EQ_STR(validate(&a, rules, rows[i].value, rows[i].old), str_c(rows[i].want));
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(definitions_are_checked),
        TAP(costs_are_limited),
        TAP(objects_are_validated),
        { 0 },
    });
}
