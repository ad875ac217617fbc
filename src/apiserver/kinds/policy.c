/* Compiles the expressions of an admission policy.
 *
 * Expressions see the object as it is, without types (`dyn`), and a typed request. `params` exists only with a
 * paramKind, `variables` only if some are declared, and each variable sees those before it. Messages cannot ask the
 * authorizer. */
#include "policy.h"

#include "../../json/seen.h"
#include "../schema/format.h"
#include "kind_hooks.h"

#define TEXT "{\"type\":\"string\"}"
#define GVK                                                                                        \
    "{\"type\":\"object\",\"properties\":{\"group\":" TEXT ",\"version\":" TEXT ",\"kind\":" TEXT  \
    "}}"
#define GVR                                                                                        \
    "{\"type\":\"object\",\"properties\":{\"group\":" TEXT ",\"version\":" TEXT                    \
    ",\"resource\":" TEXT "}}"
#define TEXTS "{\"type\":\"array\",\"items\":" TEXT "}"
#define TEXT_MAP "{\"type\":\"object\",\"additionalProperties\":" TEXT "}"
#define TIME "{\"type\":\"string\",\"format\":\"date-time\"}"

static const char request_schema[] =
    "{\"type\":\"object\",\"properties\":{\"kind\":" GVK ",\"resource\":" GVR
    ",\"subResource\":" TEXT ",\"requestKind\":" GVK ",\"requestResource\":" GVR
    ",\"requestSubResource\":" TEXT ",\"name\":" TEXT ",\"namespace\":" TEXT ",\"operation\":" TEXT
    ",\"dryRun\":{\"type\":\"boolean\"},\"options\":{\"x-kubernetes-int-or-string\":true},"
    "\"userInfo\":{\"type\":\"object\",\"properties\":{\"username\":" TEXT ",\"uid\":" TEXT
    ",\"groups\":" TEXTS ",\"extra\":{\"type\":\"object\",\"additionalProperties\":" TEXTS "}}}}}";

static const char namespace_schema[] =
    "{\"type\":\"object\",\"properties\":{\"metadata\":{\"type\":\"object\",\"properties\":{\"name\":" TEXT
    ",\"generateName\":" TEXT ",\"namespace\":" TEXT ",\"uid\":" TEXT ",\"resourceVersion\":" TEXT
    ",\"labels\":" TEXT_MAP ",\"annotations\":" TEXT_MAP ",\"creationTimestamp\":" TIME
    ",\"deletionTimestamp\":" TIME ",\"deletionGracePeriodSeconds\":{\"type\":\"integer\"},"
    "\"generation\":{\"type\":\"integer\"},\"finalizers\":" TEXTS
    "}},\"spec\":{\"type\":\"object\","
    "\"properties\":{\"finalizers\":" TEXTS
    "}},\"status\":{\"type\":\"object\",\"properties\":{\"phase\":" TEXT "}}}}";

struct compiler {
    struct arena *arena;
    struct field_errors *errors; /* or NULL */
    struct policy *policy;
    struct cel_variable variables[POLICY_VARIABLE_N];
    struct cel_type *declared; /* type of `variables` */
    bool patches;              /* inside a mutation */
};

/* Fields of the request keep their names, even those that are words of the language ("namespace"). The types were made
 * a moment ago and belong to the caller. */
static void use_plain_names(const struct cel_type *type)
{
    for (uint32_t i = 0; i < type->n_fields; i++) {
        struct cel_field *field = (struct cel_field *)&type->fields[i];
        field->name = field->key;
        use_plain_names(field->type);
    }
}

static const struct cel_type *type_of_text(struct arena *a, const char *schema)
{
    struct json *tree = NULL;
    if (json_parse(a, str_c(schema), &tree, NULL) < 0)
        return &cel_dyn;
    const struct cel_type *type = cel_type_of_schema(a, tree, false);
    use_plain_names(type);
    return type;
}

static void set_variable(struct compiler *c, enum policy_variable i, const char *name,
                         const struct cel_type *type)
{
    c->variables[i] = (struct cel_variable){ str_c(name), type };
}

/* All variables of a validation; a name that is "" cannot be referred to. */
static void init_variables(struct compiler *c, const struct json *spec)
{
    struct policy *p = c->policy;
    p->request_type = type_of_text(c->arena, request_schema);
    p->namespace_type = type_of_text(c->arena, namespace_schema);
    c->declared = arena_new(c->arena, struct cel_type);
    c->declared->kind = CEL_OBJECT;
    c->declared->name = "kubernetes.variables";
    set_variable(c, POLICY_OBJECT, "object", &cel_dyn);
    set_variable(c, POLICY_OLD_OBJECT, "oldObject", &cel_dyn);
    set_variable(c, POLICY_REQUEST, "request", p->request_type);
    set_variable(c, POLICY_NAMESPACE_OBJECT, "namespaceObject", p->namespace_type);
    set_variable(c, POLICY_PARAMS, json_get(spec, "paramKind") ? "params" : "", &cel_dyn);
    set_variable(c, POLICY_AUTHORIZER, "authorizer", &cel_authorizer_type);
    set_variable(c, POLICY_REQUEST_RESOURCE, "authorizer.requestResource",
                 &cel_resource_check_type);
    set_variable(c, POLICY_VARIABLES, json_len(json_get(spec, "variables")) ? "variables" : "",
                 c->declared);
}

/* ---- expressions */

/* Each variable is declared for all that follow, which takes time in the square of their number. */
enum { VARIABLES_MAX = 100 };

enum { WANT_ANY, WANT_BOOL, WANT_STRING, WANT_STRING_OR_NULL, WANT_OBJECT, WANT_PATCHES };

static bool has_wanted_type(const struct cel_type *type, int want)
{
    if (want == WANT_PATCHES) {
        const struct cel_type *item = type->kind == CEL_LIST ? type->of[0] : type;
        return item != type && item->kind == CEL_OBJECT && str_eqc(S("JSONPatch"), item->name);
    }
    if (want == WANT_OBJECT)
        return type->kind == CEL_OBJECT && type->open && str_eqc(S("Object"), type->name);
    return want == WANT_ANY || (want == WANT_BOOL && type->kind == CEL_BOOL) ||
           (want >= WANT_STRING && type->kind == CEL_STRING) ||
           (want == WANT_STRING_OR_NULL && type->kind == CEL_NULL);
}

/* Reports an error of an expression; nothing if a stored policy is compiled again. */
static void report_error(struct compiler *c, const struct field_path *at, str text, str what)
{
    if (!c->errors)
        return;
    struct arena *a = c->errors->arena;
    auto_buf struct buf message = { 0 };
    buf_put(&message, S("Invalid value: "));
    json_write_text(&message, text);
    buf_put(&message, S(": "));
    buf_put(&message, what);
    field_add(c->errors, (struct field_error){ .path = field_path_text(a, at),
                                               .reason = FIELD_INVALID,
                                               .message = arena_str(a, buf_str(&message)) });
}

/* The expression with its program, NULL if it does not compile or has a type that its place does not accept. */
static struct policy_expression compile(struct compiler *c, const struct json *text, int want,
                                        const struct field_path *at)
{
    static const char *const wanted[] = { "",       "bool",
                                          "string", "one of [string null_type]",
                                          "Object", "list(JSONPatch)" };
    struct policy_expression e = { .text = json_text(text) };
    str issues;
    struct cel_env env = { c->variables, POLICY_VARIABLE_N, .policy = true, .patches = c->patches };
    if (!str_trim(e.text).n) {
        if (c->errors)
            field_required(c->errors, at, c->patches ? NULL : "expression is not specified");
        return e;
    }
    if (cel_compile(c->arena, &env, e.text, &e.program, &issues) < 0) {
        e.program = NULL;
        report_error(c, at, e.text,
                     arena_printf(c->arena, "compilation failed: " STR_FMT, STR_ARG(issues)));
    } else if (!has_wanted_type(e.program->result, want)) {
        report_error(c, at, e.text,
                     arena_printf(c->arena, "must evaluate to %s but got " STR_FMT, wanted[want],
                                  STR_ARG(cel_type_text(c->arena, e.program->result))));
        e.program = NULL;
    }
    return e;
}

/* ---- the parts of a policy */

/* matchConditions see everything except variables. */
static void compile_conditions(struct compiler *c, const struct json *list,
                               const struct field_path *owner)
{
    struct field_path up = { owner, .key = S("matchConditions") };
    struct policy *p = c->policy;
    struct cel_variable variables = c->variables[POLICY_VARIABLES];
    c->variables[POLICY_VARIABLES].name = S("");
    struct seen names = seen_new(c->arena, 1);
    p->conditions = arena_array(c->arena, json_len(list), sizeof(*p->conditions));
    for (; p->n_conditions < json_len(list); p->n_conditions++) {
        struct field_path at = { &up, .index = p->n_conditions, .how = FIELD_INDEX };
        const struct json *each = list->items[p->n_conditions], *name = json_get(each, "name");
        p->conditions[p->n_conditions] =
            compile(c, json_get(each, "expression"), WANT_BOOL, AT(&at, "expression"));
        if (!c->errors)
            continue;
        if (!json_text(name).n)
            field_required(c->errors, AT(&at, "name"), NULL);
        else
            kind_check_qualified(name, AT(&at, "name"), c->errors);
        if (seen_value(&names, name, p->n_conditions))
            field_duplicate(c->errors, AT(&at, "name"), name);
    }
    if (c->errors && json_len(list) > 64)
        field_too_many(c->errors, &up, (int64_t)json_len(list), 64);
    c->variables[POLICY_VARIABLES] = variables;
}

static bool is_identifier(str name)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool letter = ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '_';
        if (!letter && !(i && c >= '0' && c <= '9'))
            return false;
    }
    return name.n > 0;
}

static int compare_fields(const void *a, const void *b)
{
    return str_cmp(((const struct cel_field *)a)->key, ((const struct cel_field *)b)->key);
}

/* Declares a variable for the expressions that follow. */
static void declare(struct compiler *c, str name, const struct cel_type *type)
{
    uint32_t n = c->declared->n_fields;
    struct cel_field *fields = arena_array(c->arena, n + 1u, sizeof(*fields));
    struct cel_type *grown = arena_new(c->arena, struct cel_type);
    *grown = *c->declared;
    if (n)
        memcpy(fields, grown->fields, n * sizeof(*fields));
    fields[n] = (struct cel_field){ name, name, type };
    qsort(fields, n + 1, sizeof(*fields), compare_fields);
    grown->fields = fields;
    grown->n_fields = n + 1;
    c->declared = grown;
    c->variables[POLICY_VARIABLES].type = grown;
}

/* Variables in order: each may refer to those before it, whose types are known by then. */
static void compile_variables(struct compiler *c, const struct json *list)
{
    struct field_path spec = { NULL, .key = S("spec") }, up = { &spec, .key = S("variables") };
    struct policy *p = c->policy;
    if (json_len(list) > VARIABLES_MAX) {
        if (c->errors)
            field_too_many(c->errors, &up, (int64_t)json_len(list), VARIABLES_MAX);
        return;
    }
    p->variables = arena_array(c->arena, json_len(list), sizeof(*p->variables));
    p->variable_names = arena_array(c->arena, json_len(list), sizeof(*p->variable_names));
    for (; p->n_variables < json_len(list); p->n_variables++) {
        struct field_path at = { &up, .index = p->n_variables, .how = FIELD_INDEX };
        const struct json *each = list->items[p->n_variables], *name = json_get(each, "name");
        p->variable_names[p->n_variables] = json_text(name);
        if (c->errors && !json_text(name).n)
            field_required(c->errors, AT(&at, "name"), "name is not specified");
        else if (c->errors && !is_identifier(json_text(name)))
            field_invalid(c->errors, AT(&at, "name"), name, "must be a valid CEL identifier");
        struct policy_expression e =
            compile(c, json_get(each, "expression"), WANT_ANY, AT(&at, "expression"));
        p->variables[p->n_variables] = e;
        declare(c, json_text(name), e.program ? e.program->result : &cel_dyn);
    }
}

static void check_texts(struct compiler *c, const struct json *each, const struct field_path *at)
{
    static const char *const reasons[] = { "Forbidden", "Invalid", "RequestEntityTooLarge", NULL };
    const struct json *message = json_get(each, "message"), *reason = json_get(each, "reason");
    if (!c->errors)
        return;
    if (json_text(message).n && !str_trim(json_text(message)).n)
        field_invalid(c->errors, AT(at, "message"), message,
                      "message must be non-empty if specified");
    else if (str_find_char(str_trim(json_text(message)), '\n') != SIZE_MAX)
        field_invalid(c->errors, AT(at, "message"), message, "must not contain line breaks");
    if (reason && !format_is_one_of(json_text(reason), reasons))
        field_not_supported(c->errors, AT(at, "reason"), reason, reasons);
}

/* Validations may use everything. For the message, the authorizer is hidden by an empty name. */
static void compile_validations(struct compiler *c, const struct json *list)
{
    struct field_path spec = { NULL, .key = S("spec") }, up = { &spec, .key = S("validations") };
    struct policy *p = c->policy;
    p->validations = arena_array(c->arena, json_len(list), sizeof(*p->validations));
    for (; p->n_validations < json_len(list); p->n_validations++) {
        struct field_path at = { &up, .index = p->n_validations, .how = FIELD_INDEX };
        const struct json *each = list->items[p->n_validations];
        const struct json *message = json_get(each, "messageExpression");
        struct policy_validation *v = &p->validations[p->n_validations];
        v->plain_message = str_trim(json_text(json_get(each, "message")));
        v->reason = json_text(json_get(each, "reason"));
        v->expression = compile(c, json_get(each, "expression"), WANT_BOOL, AT(&at, "expression"));
        if (str_trim(json_text(message)).n) {
            struct cel_variable authorizer = c->variables[POLICY_AUTHORIZER];
            struct cel_variable resource = c->variables[POLICY_REQUEST_RESOURCE];
            c->variables[POLICY_AUTHORIZER].name = c->variables[POLICY_REQUEST_RESOURCE].name =
                S("");
            v->message = compile(c, message, WANT_STRING, AT(&at, "messageExpression"));
            c->variables[POLICY_AUTHORIZER] = authorizer;
            c->variables[POLICY_REQUEST_RESOURCE] = resource;
        }
        check_texts(c, each, &at);
    }
}

/* The expression that belongs to the type of a mutation; the other one must be absent. */
static void compile_mutation(struct compiler *c, const struct json *each,
                             const struct field_path *at, struct policy_mutation *ret)
{
    static const char *const types[] = { "JSONPatch", "ApplyConfiguration" };
    static const char *const keys[] = { "jsonPatch", "applyConfiguration" };
    ret->apply = str_eqc(json_text(json_get(each, "patchType")), types[1]);
    bool known = ret->apply || str_eqc(json_text(json_get(each, "patchType")), types[0]);
    struct field_path mine_at = { at, .key = str_c(keys[ret->apply]) };
    struct field_path other_at = { at, .key = str_c(keys[!ret->apply]) };
    const struct json *mine = json_get_str(each, mine_at.key);
    if (mine && known)
        ret->expression =
            compile(c, json_get(mine, "expression"), ret->apply ? WANT_OBJECT : WANT_PATCHES,
                    AT(&mine_at, "expression"));
    if (!c->errors || !known)
        return;
    str when = arena_printf(c->arena, "be specified when patchType is %s", types[ret->apply]);
    if (!mine)
        field_required(c->errors, &mine_at, arena_printf(c->arena, "must %s", when.p).p);
    if (json_get_str(each, other_at.key))
        field_invalid(c->errors, &other_at,
                      json_new_str(c->arena,
                                   arena_printf(c->arena, "{" STR_FMT "}", STR_ARG(other_at.key))),
                      "must not %s", when.p);
}

/* Mutations may construct objects and see all variables, as validations do. */
static void compile_mutations(struct compiler *c, const struct json *list)
{
    struct field_path spec = { NULL, .key = S("spec") }, up = { &spec, .key = S("mutations") };
    struct policy *p = c->policy;
    p->mutations = arena_array(c->arena, json_len(list), sizeof(*p->mutations));
    c->patches = true;
    for (; p->n_mutations < json_len(list); p->n_mutations++)
        compile_mutation(c, list->items[p->n_mutations], AT_INDEX(&up, p->n_mutations),
                         &p->mutations[p->n_mutations]);
    c->patches = false;
}

/* Audit annotations are checked; there is no audit log to write them to. */
static void check_annotations(struct compiler *c, const struct json *list, str policy_name)
{
    struct field_path spec = { NULL, .key = S("spec") },
                      up = { &spec, .key = S("auditAnnotations") };
    for (uint32_t i = 0; c->errors && i < json_len(list); i++) {
        struct field_path at = { &up, .index = i, .how = FIELD_INDEX };
        const struct json *each = list->items[i], *key = json_get(each, "key");
        str full = arena_printf(c->arena, STR_FMT "/" STR_FMT, STR_ARG(policy_name),
                                STR_ARG(json_text(key)));
        if (!json_text(key).n)
            field_required(c->errors, AT(&at, "key"), NULL);
        else
            kind_check_qualified(json_new_str(c->arena, full), AT(&at, "key"), c->errors);
        compile(c, json_get(each, "valueExpression"), WANT_STRING_OR_NULL,
                AT(&at, "valueExpression"));
    }
}

struct policy *kind_policy_compile(struct arena *a, const struct json *spec, str policy_name,
                                   struct field_errors *errors)
{
    struct policy *p = arena_new(a, struct policy);
    struct compiler c = { .arena = a, .errors = errors, .policy = p };
    p->spec = spec;
    p->ignores_errors = str_eqc(json_text(json_get(spec, "failurePolicy")), "Ignore");
    init_variables(&c, spec);
    compile_conditions(&c, json_get(spec, "matchConditions"),
                       &(struct field_path){ .key = S("spec") });
    compile_variables(&c, json_get(spec, "variables"));
    compile_validations(&c, json_get(spec, "validations"));
    compile_mutations(&c, json_get(spec, "mutations"));
    check_annotations(&c, json_get(spec, "auditAnnotations"), policy_name);
    return p;
}

struct policy *kind_policy_compile_conditions(struct arena *a, const struct json *webhook,
                                              const struct field_path *up,
                                              struct field_errors *errors)
{
    struct policy *p = arena_new(a, struct policy);
    struct compiler c = { .arena = a, .errors = errors, .policy = p };
    p->spec = webhook;
    p->ignores_errors = str_eqc(json_text(json_get(webhook, "failurePolicy")), "Ignore");
    init_variables(&c, NULL);
    compile_conditions(&c, json_get(webhook, "matchConditions"), up);
    return p;
}
