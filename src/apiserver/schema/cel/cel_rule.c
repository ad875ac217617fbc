/* One rule of x-kubernetes-validations: its expression, its messageExpression and its fieldPath, compiled when
 * a definition is created and again when it is loaded. Problems are kept as text in the rule, so that the
 * caller decides whether they are reported (a new definition) or the rule is skipped (a stored one). */
#include "cel_validator.h"

/* Compiles an expression on self and oldSelf that must have a certain type. */
static const struct cel_program *compile(struct arena *a, str text, const struct cel_type *self,
                                         bool optional_old, enum cel_kind want, const char *intro,
                                         str *ret_issues)
{
    struct cel_type *optional = arena_new(a, struct cel_type);
    *optional = (struct cel_type){ .kind = CEL_OPTIONAL, .of = { self } };
    const struct cel_variable variables[] = { { S("self"), self },
                                              { S("oldSelf"), optional_old ? optional : self } };
    const struct cel_program *p = NULL;
    str issues;
    if (cel_compile(a, &(struct cel_env){ variables, countof(variables), .root = self }, text, &p,
                    &issues) < 0) {
        *ret_issues = arena_printf(a, "%s failed: " STR_FMT, intro, STR_ARG(issues));
        return NULL;
    }
    if (p->result->kind == want)
        return p;
    *ret_issues = want == CEL_BOOL ? S("cel expression must evaluate to a bool")
                                   : S("messageExpression must evaluate to a string");
    return NULL;
}

static enum field_reason get_reason(str word)
{
    return str_eqc(word, "FieldValueForbidden")   ? FIELD_FORBIDDEN
           : str_eqc(word, "FieldValueRequired")  ? FIELD_REQUIRED
           : str_eqc(word, "FieldValueDuplicate") ? FIELD_DUPLICATE
                                                  : FIELD_INVALID;
}

/* Consumes ".name" or "['name']" from the front of the path; false if it is malformed. */
static bool take_step(struct arena *a, str *path, str *ret_name)
{
    size_t n = 1;
    if (!str_starts(*path, S("['"))) {
        while (n < path->n && !strchr(".[]", path->p[n]))
            n++;
        *ret_name = str_from(str_upto(*path, n), 1);
        bool named = path->p[0] == '.' && ret_name->n;
        *path = str_from(*path, n);
        return named;
    }
    auto_buf struct buf name = { 0 };
    static const char from[] = "abfnrtv'\\", to[] = "\a\b\f\n\r\t\v'\\";
    for (n = 2; n < path->n && path->p[n] != '\''; n++) {
        char c = path->p[n];
        if (c == '\\') {
            const char *found = ++n < path->n ? strchr(from, path->p[n]) : NULL;
            if (!found || !*found)
                return false;
            c = to[found - from];
        }
        buf_putc(&name, c);
    }
    if (n + 1 >= path->n || path->p[n + 1] != ']')
        return false;
    *ret_name = arena_str(a, buf_str(&name));
    *path = str_from(*path, n + 2);
    return true;
}

/* Follows a fieldPath through the schema and rewrites it as errors print it: ".a.b" for fields, "[key]" for
 * maps. False: it is malformed or leads nowhere. */
bool cel_normalize_path(struct arena *a, const struct json *schema, str path, str *ret)
{
    auto_buf struct buf out = { 0 };
    while (path.n) {
        str name;
        if (!take_step(a, &path, &name))
            return false;
        const struct json *fields = json_get(schema, "properties");
        const struct json *others = json_get(schema, "additionalProperties");
        if (json_len(fields)) {
            schema = json_get_str(fields, name);
            buf_put(&out, out.n ? S(".") : S(""));
            buf_put(&out, name);
        } else {
            schema = json_is(others, JSON_OBJ) ? others : NULL;
            buf_printf(&out, "[" STR_FMT "]", STR_ARG(name));
        }
        if (!schema)
            return false;
    }
    *ret = arena_str(a, buf_str(&out));
    return true;
}

void cel_compile_rule(struct arena *a, const struct json *schema, const struct json *rule,
                      const struct cel_type *type, struct cel_rule *ret)
{
    str message = json_text(json_get(rule, "messageExpression"));
    *ret = (struct cel_rule){
        .text = arena_str(a, str_trim(json_text(json_get(rule, "rule")))),
        .plain_message = arena_str(a, str_trim(json_text(json_get(rule, "message")))),
        .reason = get_reason(json_text(json_get(rule, "reason"))),
        .optional_old = json_bool(json_get(rule, "optionalOldSelf"), false),
    };
    ret->rule = compile(a, json_text(json_get(rule, "rule")), type, ret->optional_old, CEL_BOOL,
                        "compilation", &ret->issues);
    if (!ret->rule)
        return;
    ret->uses_old = ret->rule->uses & 2;
    if (message.n)
        ret->message = compile(a, message, type, ret->optional_old, CEL_STRING,
                               "messageExpression compilation", &ret->message_issues);
    cel_normalize_path(a, schema, json_text(json_get(rule, "fieldPath")), &ret->field);
}
