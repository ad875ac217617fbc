/* Running the rules of a definition on an object.
 *
 * A validator is a tree beside the schema that has a node wherever there are rules below. Rules of a node run first, then
 * those of its members. `old` is followed along: members by name, items of map lists by their keys; items of other lists
 * have no old value, and rules that use oldSelf do not run there.
 *
 * A rule that fails on a value that has not changed is a warning, not an error, unless it looks at oldSelf itself: so an
 * object that a new rule made invalid can still be updated elsewhere. */
#include "../schema.h"
#include "cel_node.h"
#include "cel_validator.h"

enum { MESSAGE_MAX = 5 * 1024 };

struct member {
    str key;
    const struct cel_validator *validator;
};

struct cel_validator {
    const struct cel_type *type;
    const char *schema_type; /* "object", "integer", ...; "" for int-or-string */
    struct cel_rule *rules;
    struct member *members;
    uint32_t n_rules, n_members;
    const struct cel_validator *element; /* of a list or map */
};

/* ---- building */

static const struct cel_validator *build(struct arena *a, const struct json *schema,
                                         const struct cel_type *type);

static const struct cel_validator *build_element(struct arena *a, const struct json *schema,
                                                 const struct cel_type *type)
{
    const struct json *items = json_get(schema, "items");
    const struct json *others = json_get(schema, "additionalProperties");
    if (type->kind == CEL_LIST && json_is(items, JSON_OBJ))
        return build(a, items, type->of[0]);
    if (type->kind == CEL_MAP && json_is(others, JSON_OBJ))
        return build(a, others, type->of[1]);
    return NULL;
}

static void build_members(struct arena *a, const struct json *schema, const struct cel_type *type,
                          struct cel_validator *v)
{
    const struct json *properties = json_get(schema, "properties");
    if (type->kind != CEL_OBJECT || !json_len(properties))
        return;
    struct member *members = arena_array(a, json_len(properties), sizeof(*members));
    json_each(m, properties) {
        const struct cel_field *f = cel_find_field(type, m->key);
        const struct cel_validator *below = f ? build(a, m->value, f->type) : NULL;
        if (below)
            members[v->n_members++] = (struct member){ arena_str(a, m->key), below };
    }
    v->members = members;
}

static const struct cel_validator *build(struct arena *a, const struct json *schema,
                                         const struct cel_type *type)
{
    const struct json *rules = json_get(schema, "x-kubernetes-validations");
    if (!schema_has_cel_rules(schema))
        return NULL;
    struct cel_validator *v = arena_new(a, struct cel_validator);
    v->type = type;
    v->schema_type = arena_str(a, json_text(json_get(schema, "type"))).p;
    v->rules = arena_array(a, json_len(rules), sizeof(*v->rules));
    for (; v->n_rules < json_len(rules); v->n_rules++)
        cel_compile_rule(a, schema, rules->items[v->n_rules], type, &v->rules[v->n_rules]);
    build_members(a, schema, type, v);
    v->element = build_element(a, schema, type);
    return v->n_rules || v->n_members || v->element ? v : NULL;
}

const struct cel_validator *cel_validator_new(struct arena *a, const struct json *openapi,
                                              bool root)
{
    if (!schema_has_cel_rules(openapi))
        return NULL;
    const struct cel_type *type = cel_type_of_schema(a, openapi, root);
    return type ? build(a, openapi, type) : NULL;
}

/* ---- reporting */

/* What is being validated, and whether it changed: found out only when a rule fails. */
struct place {
    const struct cel_validator *v;
    const struct json *value, *old;
    const struct field_path *at;
    const struct place *up; /* the nearest value with an old one, if this has none */
    struct cel_validation *run;
    struct arena *scratch;
};

static bool is_unchanged(const struct place *p)
{
    while (p && !p->old)
        p = p->up;
    if (!p)
        return false;
    struct cel_machine m = { .arena = p->scratch };
    bool same = cel_equal(&m, cel_of_json(p->scratch, p->value, p->v->type),
                          cel_of_json(p->scratch, p->old, p->v->type));
    return same && !m.exceeded;
}

static str path_text(struct arena *a, const struct field_path *at, str field)
{
    if (!at)
        return field.n ? field : S("<nil>");
    str path = field_path_text(a, at);
    if (!field.n)
        return path;
    return arena_join(a, (str[]){ path, field.p[0] == '[' ? S("") : S("."), field }, 3);
}

static str rule_name(const struct cel_rule *rule)
{
    return rule->plain_message.n ? rule->plain_message : rule->text;
}

static void add_error(const struct place *p, enum field_reason reason, str field, str message)
{
    struct field_errors *errors = p->run->errors;
    field_add(errors, (struct field_error){ .path = path_text(errors->arena, p->at, field),
                                            .reason = reason,
                                            .message = message });
}

/* A rule that could not be evaluated. */
static void add_run_error(const struct place *p, str text)
{
    struct field_errors *errors = p->run->errors;
    add_error(p, FIELD_INVALID, S(""),
              arena_printf(errors->arena, "Invalid value: \"%s\": " STR_FMT, p->v->schema_type,
                           STR_ARG(text)));
}

/* The text of an error by its reason; objects and lists are not repeated in it. */
static str format_failure(const struct place *p, const struct cel_rule *rule, str detail)
{
    struct arena *a = p->run->errors->arena;
    auto_buf struct buf value = { 0 };
    bool whole = p->value->type == JSON_OBJ || p->value->type == JSON_ARR;
    if (!whole) {
        buf_put(&value, S(": "));
        json_write_start(&value, p->value, 1024);
    }
    switch (rule->reason) {
    case FIELD_FORBIDDEN:
        return arena_printf(a, "Forbidden: " STR_FMT, STR_ARG(detail));
    case FIELD_REQUIRED:
        return arena_printf(a, "Required value: " STR_FMT, STR_ARG(detail));
    case FIELD_DUPLICATE:
        return arena_printf(a, "Duplicate value" STR_FMT, STR_ARG(buf_str(&value)));
    default:
        return arena_printf(a, "Invalid value" STR_FMT ": " STR_FMT, STR_ARG(buf_str(&value)),
                            STR_ARG(detail));
    }
}

static void add_failure(const struct place *p, const struct cel_rule *rule, str detail)
{
    struct arena *a = p->run->errors->arena;
    str message = format_failure(p, rule, detail);
    if (rule->uses_old || !is_unchanged(p)) {
        add_error(p, rule->reason, rule->field, message);
        return;
    }
    if (p->run->warn)
        p->run->warn(p->run->context,
                     arena_printf(a, STR_FMT ": " STR_FMT,
                                  STR_ARG(path_text(a, p->at, rule->field)), STR_ARG(message)));
}

/* ---- evaluating */

/* Charges an evaluation to the object; false: its budget is used up. */
static bool spend_budget(struct cel_validation *run, uint64_t cost)
{
    if ((int64_t)cost > run->budget) {
        run->budget = -1;
        return false;
    }
    run->budget -= (int64_t)cost;
    return true;
}

/* The result of messageExpression; empty if it cannot be used. False: out of budget, reported. */
static bool eval_message(const struct place *p, const struct cel_rule *rule,
                         const struct cel_value *variables, str *ret)
{
    struct cel_run run = { .arena = p->scratch, .variables = variables };
    struct cel_value v = cel_run(rule->message, &run);
    *ret = S("");
    if (run.exceeded || !spend_budget(p->run, run.cost)) {
        p->run->budget = -1;
        add_run_error(p, run.exceeded
                             ? S("no further validation rules will be run due to call cost exceeds "
                                 "limit for messageExpression")
                             : S("messageExpression evaluation failed due to running out of cost "
                                 "budget, no further validation rules will be run"));
        return false;
    }
    str text = v.kind == CEL_STRING ? str_trim(cel_text(v)) : S("");
    if (text.n <= MESSAGE_MAX && str_find_char(text, '\n') == SIZE_MAX)
        *ret = text;
    return true;
}

/* Reports why an evaluation failed. False: nothing more is run. */
static bool report_run_error(const struct place *p, const struct cel_rule *rule,
                             struct cel_value error, bool exceeded)
{
    struct arena *a = p->run->errors->arena;
    str text = cel_text(error), name = rule_name(rule);
    if (exceeded) {
        p->run->budget = -1;
        add_run_error(p,
                      arena_printf(a,
                                   "'" STR_FMT "': no further validation rules will be run due to "
                                   "call cost exceeds limit for rule: " STR_FMT,
                                   STR_ARG(text), STR_ARG(name)));
        return false;
    }
    if (str_starts(text, S("no such overload")))
        add_run_error(p, arena_printf(a,
                                      "'" STR_FMT "': call arguments did not match a supported "
                                      "operator, function or macro signature for rule: " STR_FMT,
                                      STR_ARG(text), STR_ARG(name)));
    else
        add_run_error(p, arena_printf(a, STR_FMT " evaluating rule: " STR_FMT, STR_ARG(text),
                                      STR_ARG(name)));
    return true;
}

static bool run_rule(const struct place *p, const struct cel_rule *rule)
{
    if (!rule->rule || (rule->uses_old && !p->old && !rule->optional_old))
        return true;
    struct arena *a = p->scratch;
    struct cel_value variables[2] = { cel_of_json(a, p->value, p->v->type) };
    struct cel_value old =
        p->old ? cel_of_json(a, p->old, p->v->type) : cel_fail(a, "no such attribute(s): oldSelf");
    variables[1] = !rule->optional_old ? old
                   : p->old            ? cel_optional_of(a, old)
                                       : (struct cel_value){ .kind = CEL_OPTIONAL };
    struct cel_run run = { .arena = a, .variables = variables };
    struct cel_value result = cel_run(rule->rule, &run);
    if (!run.exceeded && !spend_budget(p->run, run.cost)) {
        add_run_error(p, S("validation failed due to running out of cost budget, no further "
                           "validation rules will be run"));
        return false;
    }
    if (cel_is_error(result) || run.exceeded)
        return report_run_error(p, rule, result, run.exceeded);
    if (result.kind == CEL_BOOL && result.boolean)
        return true;
    str detail = S("");
    variables[1] = old; /* messages see oldSelf as it is, even beside optionalOldSelf */
    if (rule->message && !eval_message(p, rule, variables, &detail))
        return false;
    if (!detail.n && rule->plain_message.n)
        detail = rule->plain_message;
    if (!detail.n)
        detail = arena_printf(a, "failed rule: " STR_FMT, STR_ARG(rule->text));
    add_failure(p, rule, detail);
    return true;
}

/* Memory of one evaluation is free again for the next. */
static bool run_rules(const struct place *p)
{
    for (uint32_t i = 0; i < p->v->n_rules; i++) {
        if (p->run->budget <= 0) {
            p->run->budget = -1;
            add_run_error(p, S("validation failed due to running out of cost budget, no further "
                               "validation rules will be run"));
            return false;
        }
        struct arena_mark mark = arena_mark(p->scratch);
        bool more = run_rule(p, &p->v->rules[i]);
        arena_reset(p->scratch, mark);
        if (!more)
            return false;
    }
    return true;
}

/* ---- walking */

static bool validate_place(const struct place *p);

static const struct json *find_old_item(const struct cel_type *list, const struct json *item,
                                        const struct json *old, uint32_t guess)
{
    if (list->list != SHAPE_MAP_LIST || !json_is(old, JSON_ARR))
        return NULL;
    for (uint32_t n = 0; n < old->n; n++) {
        const struct json *candidate = old->items[(guess + n) % old->n];
        uint32_t i = 0;
        while (i < list->n_list_keys && json_eq(json_get_str(item, list->list_keys[i]),
                                                json_get_str(candidate, list->list_keys[i])))
            i++;
        if (i == list->n_list_keys)
            return candidate;
    }
    return NULL;
}

static bool validate_child(const struct place *p, const struct cel_validator *v,
                           const struct json *value, const struct json *old,
                           const struct field_path *at)
{
    struct place child = { v, value, old, at, p, p->run, p->scratch };
    return validate_place(&child);
}

static bool validate_elements(const struct place *p)
{
    const struct cel_validator *v = p->v;
    bool list = p->value->type == JSON_ARR;
    for (uint32_t i = 0; v->element && i < p->value->n; i++) {
        struct field_path at = { p->at, .index = i, .how = FIELD_INDEX };
        const struct json *item, *old;
        if (list) {
            item = p->value->items[i];
            old = find_old_item(v->type, item, p->old, i);
        } else {
            const struct json_member *m = &p->value->members[i];
            at = (struct field_path){ p->at, .key = m->key, .how = FIELD_KEY };
            item = m->value;
            old = json_get_str(p->old, m->key);
        }
        if (!validate_child(p, v->element, item, old, &at))
            return false;
    }
    return true;
}

static bool validate_place(const struct place *p)
{
    if (p->value->type == JSON_NULL)
        return true;
    if (p->v->n_rules && !run_rules(p))
        return false;
    if (p->value->type != JSON_OBJ && p->value->type != JSON_ARR)
        return true;
    if (!validate_elements(p))
        return false;
    for (uint32_t i = 0; i < p->v->n_members; i++) {
        const struct member *m = &p->v->members[i];
        const struct json *value = json_get_str(p->value, m->key);
        struct field_path at = { p->at, .key = m->key };
        if (value && !validate_child(p, m->validator, value, json_get_str(p->old, m->key), &at))
            return false;
    }
    return true;
}

void cel_validate(const struct cel_validator *v, const struct json *value, const struct json *old,
                  const struct field_path *at, struct cel_validation *run)
{
    auto_arena struct arena scratch = { 0 };
    struct place place = { v, value, old, at, NULL, run, &scratch };
    validate_place(&place);
}
