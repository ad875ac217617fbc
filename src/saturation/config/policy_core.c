/* The part of a saturation configuration that WVA 0.9 added: analyzers, limiters, priorities and scale-to-zero;
 * see policy_core.h.
 *
 * Types are checked as WVA's YAML decoder does: a number for text is text, text for a number is an error, and
 * null is the same as a missing field. Each field knows whether it was set (`has_*`), because an entry for one
 * model overlays the default entry field by field, and an unset field must not overwrite.
 *
 * Old and new spellings are accepted: an analyzer's `type` or `name`, and its numbers as fields or below
 * `parameters`, where the field wins. A value in `parameters` with the wrong type does not fail the entry; it
 * is kept in `invalid` and reported by the check, as in WVA. Messages are quoted: WVA. */
#include "policy_core.h"

#include <inttypes.h>
#include <math.h>

const struct sat_policy policy_none = { .invalid = { "", 0 } };

/* ---- fields */

/* null counts as absent. */
static const struct json *get_field(const struct json *tree, const char *name)
{
    const struct json *v = json_get(tree, name);
    return json_is(v, JSON_NULL) ? NULL : v;
}

static int fail_type(const char *name, const struct json *v, const char *want, err_t *e)
{
    return err_set(e, EBADMSG, "%s has type %s; use %s", name, json_type_name(v), want);
}

static int read_bool(const struct json *tree, const char *name, bool *ret, bool *ret_has, err_t *e)
{
    const struct json *v = get_field(tree, name);
    if (v && v->type != JSON_BOOL)
        return fail_type(name, v, "true or false", e);
    *ret_has = v != NULL;
    *ret = json_bool(v, *ret);
    return 0;
}

static int read_real(const struct json *tree, const char *name, double *ret, bool *ret_has,
                     err_t *e)
{
    const struct json *v = get_field(tree, name);
    if (v && v->type != JSON_INT && v->type != JSON_REAL)
        return fail_type(name, v, "a number", e);
    *ret_has = v != NULL;
    *ret = json_real(v, *ret);
    return 0;
}

static int read_text(struct arena *a, const struct json *tree, const char *name, str *ret, err_t *e)
{
    const struct json *v = get_field(tree, name);
    *ret = S("");
    if (v && (v->type == JSON_ARR || v->type == JSON_OBJ))
        return fail_type(name, v, "a string", e);
    if (v)
        *ret = v->type == JSON_STR ? arena_str(a, json_text(v)) : json_to_str(a, v);
    return 0;
}

static int read_container(const struct json *tree, const char *name, enum json_type type,
                          const struct json **ret, err_t *e)
{
    const struct json *v = get_field(tree, name);
    if (v && v->type != type)
        return fail_type(name, v, type == JSON_ARR ? "a list" : "a map", e);
    *ret = v;
    return 0;
}

/* ---- analyzers */

/* How Go names the type of a decoded value. */
static const char *go_type(const struct json *v)
{
    static const char *const names[] = {
        "<nil>", "bool", "int", "float64", "string", "[]interface {}", "map[string]interface {}"
    };
    return names[v->type];
}

/* A number in `parameters`, unless the field itself is set. */
static void fold_number(struct arena *a, const struct json *parameters, const char *name, bool *has,
                        double *value, str *invalid)
{
    const struct json *v = json_get(parameters, name);
    if (!v || *has || invalid->n)
        return;
    if (v->type != JSON_INT && v->type != JSON_REAL) {
        *invalid = arena_printf(a, "parameter \"%s\" must be a number, got %s", name, go_type(v));
        return;
    }
    *has = true;
    *value = json_real(v, 0);
}

/* One analyzer; enabled unless it states otherwise. A score of 0 counts as unset. */
static int read_analyzer(struct arena *a, const struct json *tree, struct policy_analyzer *ret,
                         str *invalid, err_t *e)
{
    struct policy_analyzer x = { .enabled = true };
    str name;
    bool has_enabled, has_score;
    const struct json *parameters;
    if (tree && tree->type != JSON_OBJ && tree->type != JSON_NULL)
        return fail_type("analyzers[]", tree, "a map", e);
    if (read_text(a, tree, "type", &x.type, e) < 0 || read_text(a, tree, "name", &name, e) < 0 ||
        read_bool(tree, "enabled", &x.enabled, &has_enabled, e) < 0 ||
        read_real(tree, "score", &x.score, &has_score, e) < 0 ||
        read_real(tree, "scaleUpThreshold", &x.up, &x.has_up, e) < 0 ||
        read_real(tree, "scaleDownBoundary", &x.down, &x.has_down, e) < 0 ||
        read_container(tree, "parameters", JSON_OBJ, &parameters, e) < 0)
        return -EBADMSG;
    x.type = x.type.n ? x.type : name;
    has_score = x.score != 0;
    fold_number(a, parameters, "scaleUpThreshold", &x.has_up, &x.up, invalid);
    fold_number(a, parameters, "scaleDownBoundary", &x.has_down, &x.down, invalid);
    fold_number(a, parameters, "score", &has_score, &x.score, invalid);
    const struct json *enabled = json_get(parameters, "enabled");
    if (enabled && !has_enabled && !invalid->n && enabled->type != JSON_BOOL)
        *invalid = arena_printf(a,
                                "analyzer \"" STR_FMT
                                "\": parameter \"enabled\" must be a boolean, got %s",
                                STR_ARG(x.type), go_type(enabled));
    if (!has_enabled)
        x.enabled = json_bool(enabled, true);
    *ret = x;
    return 0;
}

static int read_analyzers(struct arena *a, const struct json *tree, struct sat_policy *p, err_t *e)
{
    const struct json *list;
    if (read_container(tree, "analyzers", JSON_ARR, &list, e) < 0)
        return -EBADMSG;
    p->has_analyzers = json_len(list) > 0;
    struct policy_analyzer *analyzers = arena_array(a, json_len(list), sizeof(*analyzers));
    for (size_t i = 0; i < json_len(list); i++)
        if (read_analyzer(a, json_item(list, i), &analyzers[i], &p->invalid, e) < 0)
            return -EBADMSG;
    p->analyzers = analyzers;
    p->analyzer_n = json_len(list);
    return 0;
}

/* ---- limiters */

static int by_type(const void *a, const void *b)
{
    const struct quota_type *x = a, *y = b;
    return str_cmp(x->type, y->type);
}

/* Limits by accelerator type, sorted, so that decisions do not depend on the order of a map. */
static int read_types(struct arena *a, const struct json *map, struct quota_types *ret, err_t *e)
{
    struct quota_type *types = arena_array(a, json_len(map), sizeof(*types));
    size_t n = 0;
    json_each(m, map) {
        double value = json_real(m->value, 0);
        if (m->value->type != JSON_INT && m->value->type != JSON_REAL &&
            m->value->type != JSON_NULL)
            return fail_type("a quota", m->value, "an integer", e);
        if (!(fabs(value) < 0x1p53))
            return err_set(e, EBADMSG, "a quota is out of range; use an integer");
        types[n++] = (struct quota_type){ arena_str(a, m->key), (int64_t)value };
    }
    qsort(types, n, sizeof(*types), by_type);
    *ret = (struct quota_types){ types, n };
    return 0;
}

static int read_namespaces(struct arena *a, const struct json *map, struct quota *q, err_t *e)
{
    struct quota_namespace *list = arena_array(a, json_len(map), sizeof(*list));
    size_t n = 0;
    json_each(m, map) {
        if (m->value->type != JSON_OBJ && m->value->type != JSON_NULL)
            return fail_type("namespaceQuotas", m->value, "a map", e);
        list[n].ns = arena_str(a, m->key);
        if (read_types(a, m->value, &list[n].types, e) < 0)
            return -EBADMSG;
        n++;
    }
    q->namespaces = list;
    q->namespace_n = n;
    return 0;
}

/* All fields of all kinds of limiters; policy_check_core.c refuses those that do not belong to the kind. */
static int read_limiter(struct arena *a, const struct json *tree, struct policy_limiter *ret,
                        err_t *e)
{
    const struct json *quotas, *namespaces, *exclude;
    struct policy_limiter x = { 0 };
    if (tree && tree->type != JSON_OBJ && tree->type != JSON_NULL)
        return fail_type("limiters[]", tree, "a map", e);
    if (read_text(a, tree, "type", &x.type, e) < 0 ||
        read_text(a, tree, "scope", &x.scope, e) < 0 ||
        read_text(a, tree, "name", &x.quota.name, e) < 0 ||
        read_container(tree, "quotas", JSON_OBJ, &quotas, e) < 0 ||
        read_container(tree, "namespaceQuotas", JSON_OBJ, &namespaces, e) < 0 ||
        read_container(tree, "exclude", JSON_ARR, &exclude, e) < 0 ||
        read_types(a, quotas, &x.quota.types, e) < 0 ||
        read_namespaces(a, namespaces, &x.quota, e) < 0)
        return -EBADMSG;
    str *names = arena_array(a, json_len(exclude), sizeof(str));
    for (size_t i = 0; i < json_len(exclude); i++) {
        const struct json *v = json_item(exclude, i);
        if (v->type == JSON_ARR || v->type == JSON_OBJ)
            return fail_type("exclude[]", v, "a string", e);
        names[i] = v->type == JSON_STR    ? arena_str(a, json_text(v))
                   : v->type == JSON_NULL ? S("")
                                          : json_to_str(a, v);
    }
    x.quota.exclude = names;
    x.quota.exclude_n = json_len(exclude);
    x.quota.by_namespace = str_eqc(x.scope, "namespace");
    *ret = x;
    return 0;
}

static int read_limiters(struct arena *a, const struct json *tree, struct sat_policy *p, err_t *e)
{
    const struct json *list;
    if (read_container(tree, "limiters", JSON_ARR, &list, e) < 0)
        return -EBADMSG;
    p->has_limiters = list != NULL;
    struct policy_limiter *limiters = arena_array(a, json_len(list), sizeof(*limiters));
    for (size_t i = 0; i < json_len(list); i++)
        if (read_limiter(a, json_item(list, i), &limiters[i], e) < 0)
            return -EBADMSG;
    p->limiters = limiters;
    p->limiter_n = json_len(list);
    return 0;
}

int policy_read(struct arena *a, const struct json *tree, struct sat_policy *ret, err_t *e)
{
    struct sat_policy p = policy_none;
    const struct json *zero;
    err_t local;
    e = e ? e : &local;
    if (read_real(tree, "priority", &p.priority, &p.has_priority, e) < 0 ||
        read_bool(tree, "enableLimiter", &p.limiter, &p.has_limiter, e) < 0 ||
        read_bool(tree, "enableRescale", &p.rescale, &p.has_rescale, e) < 0 ||
        read_container(tree, "scaleToZero", JSON_OBJ, &zero, e) < 0 ||
        read_bool(zero, "enabled", &p.zero, &p.has_zero, e) < 0 ||
        read_analyzers(a, tree, &p, e) < 0 || read_limiters(a, tree, &p, e) < 0)
        return -EBADMSG;
    p.has_zero_block = zero != NULL;
    *ret = p;
    return 0;
}

/* ---- copies */

static struct quota_types copy_types(struct arena *a, struct quota_types types)
{
    struct quota_type *copy = arena_array(a, types.n, sizeof(*copy));
    for (size_t i = 0; i < types.n; i++)
        copy[i] = (struct quota_type){ arena_str(a, types.at[i].type), types.at[i].limit };
    return (struct quota_types){ copy, types.n };
}

static struct quota copy_quota(struct arena *a, const struct quota *q)
{
    struct quota copy = *q;
    struct quota_namespace *namespaces = arena_array(a, q->namespace_n, sizeof(*namespaces));
    str *exclude = arena_array(a, q->exclude_n, sizeof(str));
    for (size_t i = 0; i < q->namespace_n; i++)
        namespaces[i] = (struct quota_namespace){ arena_str(a, q->namespaces[i].ns),
                                                  copy_types(a, q->namespaces[i].types) };
    for (size_t i = 0; i < q->exclude_n; i++)
        exclude[i] = arena_str(a, q->exclude[i]);
    copy.name = arena_str(a, q->name);
    copy.types = copy_types(a, q->types);
    copy.namespaces = namespaces;
    copy.exclude = exclude;
    return copy;
}

struct sat_policy policy_copy(struct arena *a, const struct sat_policy *p)
{
    struct sat_policy copy = *p;
    struct policy_analyzer *analyzers = arena_array(a, p->analyzer_n, sizeof(*analyzers));
    struct policy_limiter *limiters = arena_array(a, p->limiter_n, sizeof(*limiters));
    for (size_t i = 0; i < p->analyzer_n; i++) {
        analyzers[i] = p->analyzers[i];
        analyzers[i].type = arena_str(a, p->analyzers[i].type);
    }
    for (size_t i = 0; i < p->limiter_n; i++)
        limiters[i] = (struct policy_limiter){ arena_str(a, p->limiters[i].type),
                                               arena_str(a, p->limiters[i].scope),
                                               copy_quota(a, &p->limiters[i].quota) };
    copy.analyzers = analyzers;
    copy.limiters = limiters;
    copy.invalid = arena_str(a, p->invalid);
    return copy;
}

/* ---- who votes */

const struct policy_analyzer *policy_find_analyzer(const struct sat_policy *p, str name)
{
    for (size_t i = 0; i < p->analyzer_n; i++)
        if (str_eq(p->analyzers[i].type, name))
            return &p->analyzers[i];
    return NULL;
}

bool policy_votes(const struct sat_policy *p, str name)
{
    const struct policy_analyzer *x = policy_find_analyzer(p, name);
    return p->analyzer_n ? x && x->enabled : str_eqc(name, "saturation");
}

double policy_score(const struct sat_policy *p, str name)
{
    const struct policy_analyzer *x = policy_find_analyzer(p, name);
    return x && x->score > 0 ? x->score : 1;
}

/* Sets what `over` has. Limiters and rescaling are global, so only the default entry can set them. */
void policy_overlay(struct sat_policy *p, const struct sat_policy *over, bool is_default)
{
    if (over->has_priority && over->priority != 0) {
        p->has_priority = true;
        p->priority = over->priority;
    }
    if (over->has_zero) {
        p->has_zero = true;
        p->zero = over->zero;
    }
    if (over->has_analyzers) {
        p->has_analyzers = true;
        p->analyzers = over->analyzers;
        p->analyzer_n = over->analyzer_n;
    }
    if (!is_default)
        return;
    if (over->has_limiter) {
        p->has_limiter = true;
        p->limiter = over->limiter;
    }
    if (over->has_rescale) {
        p->has_rescale = true;
        p->rescale = over->rescale;
    }
    if (over->has_limiters) {
        p->has_limiters = true;
        p->limiters = over->limiters;
        p->limiter_n = over->limiter_n;
    }
}

/* The quotas among the limiters; returns their number. */
size_t policy_quotas(struct arena *a, const struct sat_policy *p, const struct quota **ret)
{
    struct quota *quotas = arena_array(a, p->limiter_n, sizeof(*quotas));
    size_t n = 0;
    for (size_t i = 0; i < p->limiter_n; i++)
        if (str_eqc(p->limiters[i].type, "quota"))
            quotas[n++] = p->limiters[i].quota;
    *ret = quotas;
    return n;
}

bool policy_uses_stock(const struct sat_policy *p)
{
    for (size_t i = 0; i < p->limiter_n; i++)
        if (!str_eqc(p->limiters[i].type, "quota"))
            return true;
    return p->limiter_n == 0;
}
