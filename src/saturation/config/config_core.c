/* Entries, tables and layers of the saturation ConfigMap: see config_core.h.
 *
 *     data of a ConfigMap ─► sat_table_load ─► struct sat_table (sorted by key, in the snapshot's arena)
 *     model, namespace, variants ─► sat_config_resolve ─► built-in + default + namespace's default + entry of the model
 *
 * The invariant: what sat_config_resolve() returns always passes sat_config_check(). Each entry is
 * checked on top of `default` when it is loaded; an invalid one is replaced by its last good value,
 * or skipped. Layers can still be invalid together (the namespace's default under an override), so
 * merge_layers() drops layers from the top until the result is valid.
 *
 * The range messages are WVA's, compared by test/golden/vectors/wva-config-entry.json. */
#include "config_core.h"

#include "../../json/yaml.h"

#include <math.h>
#include <stdio.h>

const struct sat_config sat_config_builtin = { 0.80, 5, 0.10, 3 };
static const double up_default = 0.85, down_default = 0.70;

/* ---- one entry */

static const struct {
    const char *name;
    enum sat_era since;
} numbers[SAT_NUMBER_N] = {
    [SAT_KV_THRESHOLD] = { "kvCacheThreshold", SAT_ERA_SEED },
    [SAT_QUEUE_THRESHOLD] = { "queueLengthThreshold", SAT_ERA_SEED },
    [SAT_KV_SPARE_TRIGGER] = { "kvSpareTrigger", SAT_ERA_SEED },
    [SAT_QUEUE_SPARE_TRIGGER] = { "queueSpareTrigger", SAT_ERA_SEED },
    [SAT_UP_THRESHOLD] = { "scaleUpThreshold", SAT_ERA_2026 },
    [SAT_DOWN_BOUNDARY] = { "scaleDownBoundary", SAT_ERA_2026 },
};

static void note_duplicate(void *context, str path)
{
    str *first = context;
    if (!first->n)
        *first = path;
}

static int fail_type(const char *field, const struct json *value, const char *want, err_t *e)
{
    return err_set(e, EBADMSG, "%s has type %s; use %s", field, json_type_name(value), want);
}

static int read_number(const struct json *tree, enum sat_number i, struct sat_entry *entry,
                       err_t *e)
{
    const struct json *v = json_get(tree, numbers[i].name);
    if (!v || v->type == JSON_NULL)
        return 0;
    if (v->type != JSON_INT && v->type != JSON_REAL)
        return fail_type(numbers[i].name, v, "a number", e);
    entry->number[i] = json_real(v, 0);
    entry->has[i] = true;
    return 0;
}

/* Accepts any scalar as text, as YAML decoders do. */
static int read_text(struct arena *a, const struct json *tree, const char *field, str *ret,
                     err_t *e)
{
    const struct json *v = json_get(tree, field);
    *ret = S("");
    if (!v || v->type == JSON_NULL)
        return 0;
    if (v->type == JSON_ARR || v->type == JSON_OBJ)
        return fail_type(field, v, "a string", e);
    *ret = v->type == JSON_STR ? arena_str(a, json_text(v)) : json_to_str(a, v);
    return 0;
}

static int read_2026_fields(struct arena *a, const struct json *tree, struct sat_entry *entry,
                            err_t *e)
{
    const struct json *limiter = json_get(tree, "enableLimiter");
    if (limiter && limiter->type != JSON_NULL && limiter->type != JSON_BOOL)
        return fail_type("enableLimiter", limiter, "true or false", e);
    entry->limiter = json_bool(limiter, false);
    if (slo_settings_read(json_get(tree, "slo"), &entry->slo, e) < 0)
        return -e->code;
    return read_text(a, tree, "analyzerName", &entry->analyzer, e);
}

static int read_entry(struct arena *a, const struct json *tree, enum sat_era era,
                      struct sat_entry *entry, err_t *e)
{
    for (int i = 0; i < SAT_NUMBER_N; i++)
        if (numbers[i].since <= era && read_number(tree, (enum sat_number)i, entry, e) < 0)
            return -e->code;
    if (read_text(a, tree, "model_id", &entry->model, e) < 0 ||
        read_text(a, tree, "namespace", &entry->ns, e) < 0)
        return -e->code;
    int r = era == SAT_ERA_SEED ? 0 : read_2026_fields(a, tree, entry, e);
    return r < 0 || era < SAT_ERA_09 ? r : policy_read(a, tree, &entry->policy, e);
}

int sat_entry_parse(struct arena *a, str yaml, enum sat_era era, struct sat_entry *ret, err_t *e)
{
    auto_arena struct arena scratch = { 0 };
    struct json *documents = NULL;
    str duplicate = S("");
    err_t local;
    e = e ? e : &local;
    struct json_limits limits = {
        .depth = 32, .duplicate = note_duplicate, .context = &duplicate, .non_finite = true
    };
    if (yaml_parse_all(&scratch, yaml, &limits, &documents, e) < 0) {
        e->code = EBADMSG;
        return -EBADMSG;
    }
    if (duplicate.n)
        return err_set(e, EBADMSG, "duplicate key");
    const struct json *tree = json_item(documents, 0);
    if (tree && tree->type != JSON_NULL && tree->type != JSON_OBJ)
        return fail_type("the entry", tree, "a map of thresholds", e);
    struct sat_entry entry = {
        .model = S(""),
        .ns = S(""),
        .analyzer = S(""),
        .slo = slo_settings_none,
        .policy = policy_none,
    };
    int r = read_entry(a, tree, era, &entry, e);
    if (r == 0)
        *ret = entry;
    return r;
}

/* ---- validation */

struct number_text {
    char text[40];
};

/* Formats a number as Go does, with its spelling of +Inf and NaN. */
static struct number_text format_number(double value, int decimals)
{
    struct number_text t;
    if (isfinite(value))
        snprintf(t.text, sizeof(t.text), "%.*f", decimals, value);
    else
        snprintf(t.text, sizeof(t.text), "%s", isnan(value) ? "NaN" : value > 0 ? "+Inf" : "-Inf");
    return t;
}

/* quoted: WVA */
static int check_analyzer(const struct sat_entry *x, err_t *e)
{
    double up = x->number[SAT_UP_THRESHOLD], down = x->number[SAT_DOWN_BOUNDARY];
    if (up <= 0 || up > 1)
        return err_set(e, EINVAL, "scaleUpThreshold must be in (0, 1], got %s",
                       format_number(up, 2).text);
    if (down <= 0 || down > 1)
        return err_set(e, EINVAL, "scaleDownBoundary must be in (0, 1], got %s",
                       format_number(down, 2).text);
    if (up <= down)
        return err_set(e, EINVAL, "scaleUpThreshold (%s) must be > scaleDownBoundary (%s)",
                       format_number(up, 2).text, format_number(down, 2).text);
    return 0;
}

/* quoted: WVA. The first violation is reported. */
int sat_config_check_ranges(const struct sat_config *c, err_t *e)
{
    if (c->kv_threshold < 0 || c->kv_threshold > 1)
        return err_set(e, EINVAL, "kvCacheThreshold must be between 0 and 1, got %s",
                       format_number(c->kv_threshold, 2).text);
    if (c->queue_threshold < 0)
        return err_set(e, EINVAL, "queueLengthThreshold must be >= 0, got %s",
                       format_number(c->queue_threshold, 1).text);
    if (c->kv_spare_trigger < 0 || c->kv_spare_trigger > 1)
        return err_set(e, EINVAL, "kvSpareTrigger must be between 0 and 1, got %s",
                       format_number(c->kv_spare_trigger, 2).text);
    if (c->queue_spare_trigger < 0)
        return err_set(e, EINVAL, "queueSpareTrigger must be >= 0, got %s",
                       format_number(c->queue_spare_trigger, 1).text);
    return 0;
}

int sat_config_check_order(const struct sat_config *c, err_t *e)
{
    if (c->kv_threshold < c->kv_spare_trigger)
        return err_set(e, EINVAL, "kvCacheThreshold (%s) should be >= kvSpareTrigger (%s)",
                       format_number(c->kv_threshold, 2).text,
                       format_number(c->kv_spare_trigger, 2).text);
    return 0;
}

static int check_ranges(const struct sat_config *c, err_t *e)
{
    int r = sat_config_check_ranges(c, e);
    return r < 0 ? r : sat_config_check_order(c, e);
}

static struct sat_config numbers_of(const struct sat_entry *x)
{
    return (struct sat_config){ x->number[SAT_KV_THRESHOLD], x->number[SAT_QUEUE_THRESHOLD],
                                x->number[SAT_KV_SPARE_TRIGGER],
                                x->number[SAT_QUEUE_SPARE_TRIGGER] };
}

int sat_entry_check_compat(const struct sat_entry *entry, enum sat_era era, err_t *e)
{
    struct sat_config c = numbers_of(entry);
    int r = check_ranges(&c, e);
    if (r == 0 && era == SAT_ERA_2026 && str_eqc(entry->analyzer, "saturation"))
        r = check_analyzer(entry, e);
    return r;
}

int sat_config_check(const struct sat_config *c, err_t *e)
{
    const double all[] = { c->kv_threshold, c->queue_threshold, c->kv_spare_trigger,
                           c->queue_spare_trigger };
    for (size_t i = 0; i < countof(all); i++)
        if (!isfinite(all[i]))
            return err_set(e, EINVAL, "%s must be a number, got %s", numbers[i].name,
                           format_number(all[i], 1).text);
    return check_ranges(c, e);
}

/* ---- layers */

/* Overwrites the fields that the entry has; NULL changes nothing. In WVA's rules a field of 0 is
 * absent. */
static void overlay_entry(struct sat_config *c, const struct sat_entry *over, bool zero_is_absent)
{
    double *fields[] = { &c->kv_threshold, &c->queue_threshold, &c->kv_spare_trigger,
                         &c->queue_spare_trigger };
    for (size_t i = 0; over && i < countof(fields); i++)
        if (zero_is_absent ? over->number[i] != 0 : over->has[i])
            *fields[i] = over->number[i];
}

/* Merges the layers, without those at the top that make the result invalid. */
static struct sat_config merge_layers(const struct sat_entry *const *layers, size_t n,
                                      bool *ret_whole)
{
    for (size_t depth = n;; depth--) {
        struct sat_config c = sat_config_builtin;
        for (size_t i = 0; i < depth; i++)
            overlay_entry(&c, layers[i], false);
        if (depth == 0 || sat_config_check(&c, NULL) == 0) {
            *ret_whole = depth == n;
            return c;
        }
    }
}

/* ---- tables */

const struct sat_entry *sat_table_find(const struct sat_table *table, str key)
{
    size_t low = 0, high = table ? table->n : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = str_cmp(table->at[middle].key, key);
        if (order == 0)
            return &table->at[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static int by_key(const void *a, const void *b)
{
    const struct sat_entry *x = a, *y = b;
    return str_cmp(x->key, y->key);
}

struct loading {
    struct arena *arena;
    struct sat_load result;
    struct sat_entry *entries;
    const struct sat_table *before;
    const struct sat_entry *base; /* the entry `default`, once it is loaded */
};

static void add_entry(struct loading *l, const struct sat_entry *entry)
{
    struct sat_entry *to = &l->entries[l->result.table.n++];
    *to = *entry;
    to->key = arena_str(l->arena, entry->key);
    to->model = arena_str(l->arena, entry->model);
    to->ns = arena_str(l->arena, entry->ns);
    to->analyzer = arena_str(l->arena, entry->analyzer);
    to->policy = policy_copy(l->arena, &entry->policy);
}

/* The thresholds of the token analyzer with those of an entry, which are percentages of 1. */
static void overlay_thresholds(struct sat_resolved *r, const struct sat_entry *over)
{
    if (over && over->has[SAT_UP_THRESHOLD] && over->number[SAT_UP_THRESHOLD] != 0)
        r->scale_up_at = over->number[SAT_UP_THRESHOLD];
    if (over && over->has[SAT_DOWN_BOUNDARY] && over->number[SAT_DOWN_BOUNDARY] != 0)
        r->scale_down_at = over->number[SAT_DOWN_BOUNDARY];
    if (over && over->analyzer.n)
        r->analyzer = over->analyzer;
}

/* Checks what the token analyzer and the limiters need; NaN is invalid too. */
static int check_policy(const struct loading *l, const struct sat_entry *entry, err_t *e)
{
    struct sat_resolved r = { .scale_up_at = up_default, .scale_down_at = down_default };
    const struct sat_policy *p = &entry->policy;
    overlay_thresholds(&r, l->base);
    overlay_thresholds(&r, entry);
    if (p->invalid.n)
        return err_set(e, EINVAL, STR_FMT, STR_ARG(p->invalid));
    if (!(p->priority >= 0))
        return err_set(e, EINVAL, "priority must be >= 0, got %s",
                       format_number(p->priority, 2).text);
    bool in_range = r.scale_up_at > 0 && r.scale_up_at <= 1 && r.scale_down_at > 0 &&
                    r.scale_down_at <= 1 && r.scale_up_at > r.scale_down_at;
    if (!in_range)
        return err_set(e, EINVAL,
                       "scaleUpThreshold (%s) and scaleDownBoundary (%s) must be in (0, 1], and "
                       "the first must be the larger one",
                       format_number(r.scale_up_at, 2).text,
                       format_number(r.scale_down_at, 2).text);
    int bad = policy_check_analyzers(p, r.scale_up_at, r.scale_down_at, e);
    return bad < 0 ? bad : policy_check_limiters(p, e);
}

static int check_entry(const struct loading *l, const struct sat_entry *entry, err_t *e)
{
    struct sat_config c = sat_config_builtin;
    overlay_entry(&c, l->base, false);
    overlay_entry(&c, entry, false);
    int r = sat_config_check(&c, e);
    return r < 0 ? r : check_policy(l, entry, e);
}

/* Adds the entry, or its last good value if it is invalid now, and records the problem. */
static void load_entry(struct loading *l, str key, const struct json *value)
{
    struct sat_entry entry = { 0 };
    err_t e;
    int r = sat_entry_parse(l->arena, json_text(value), SAT_ERA_09, &entry, &e);
    bool unreadable = r < 0;
    if (r == 0) {
        entry.key = key;
        r = check_entry(l, &entry, &e);
    }
    if (r == 0) {
        add_entry(l, &entry);
        l->result.loaded++;
        return;
    }
    const struct sat_entry *old = sat_table_find(l->before, key);
    bool kept = old && check_entry(l, old, NULL) == 0;
    if (kept)
        add_entry(l, old);
    l->result.problems[l->result.problem_n++] =
        (struct sat_load_problem){ arena_str(l->arena, key), unreadable, kept,
                                   arena_str(l->arena, str_c(e.text)) };
}

struct sat_load sat_table_load(struct arena *a, const struct json *data,
                               const struct sat_table *before)
{
    struct loading l = { .arena = a, .before = before };
    l.entries = arena_array(a, json_len(data), sizeof(*l.entries));
    l.result.problems = arena_array(a, json_len(data), sizeof(*l.result.problems));
    const struct json *base = json_get(data, "default");
    if (base) {
        load_entry(&l, S("default"), base);
        l.base = l.result.table.n ? &l.entries[0] : NULL;
    }
    struct sat_entry copy = { 0 }; /* a copy, because sorting moves the entries */
    if (l.base) {
        copy = *l.base;
        l.base = &copy;
    }
    json_each(m, data)
        if (!str_eqc(m->key, "default"))
            load_entry(&l, m->key, m->value);
    qsort(l.entries, l.result.table.n, sizeof(*l.entries), by_key);
    l.result.table.at = l.entries;
    return l.result;
}

/* ---- which entry is for a model */

static bool key_names_model(const struct sat_entry *x, const struct sat_lookup *q)
{
    if (str_eq(x->key, q->model))
        return true;
    for (size_t i = 0; i < q->variant_n; i++)
        if (str_eq(x->key, q->variants[i][0]) || str_eq(x->key, q->variants[i][1]))
            return true;
    return false;
}

/* `<model>#<namespace>`, the key of an override in WVA 0.9. */
static bool key_is_pair(str key, const struct sat_lookup *q)
{
    return key.n == q->model.n + 1 + q->ns.n && str_starts(key, q->model) &&
           key.p[q->model.n] == '#' && str_ends(key, q->ns);
}

/* How specifically an entry matches: 0 not at all, 1 by key, 2 by model, 3 by model and namespace.
 */
static int match_entry(const struct sat_entry *x, const struct sat_lookup *q)
{
    if (str_eqc(x->key, "default") || (x->ns.n && !str_eq(x->ns, q->ns)))
        return 0;
    if (!x->model.n && key_is_pair(x->key, q))
        return 3;
    if (!x->model.n)
        return key_names_model(x, q) ? 1 : 0;
    return !str_eq(x->model, q->model) ? 0 : x->ns.n ? 3 : 2;
}

/* Several entries can match by key: the one that names the first variant wins. */
static size_t key_rank(const struct sat_entry *x, const struct sat_lookup *q)
{
    for (size_t i = 0; i < q->variant_n; i++)
        if (str_eq(x->key, q->variants[i][0]) || str_eq(x->key, q->variants[i][1]))
            return i;
    return q->variant_n;
}

/* The most specific entry for the model, and how many are equally specific. NULL: none matches. */
static const struct sat_entry *best_entry(const struct sat_table *table, const struct sat_lookup *q,
                                          size_t *ret_matching)
{
    const struct sat_entry *best = NULL;
    int best_fit = 0;
    *ret_matching = 0;
    for (size_t i = 0; i < table->n; i++) {
        const struct sat_entry *x = &table->at[i];
        int now = match_entry(x, q);
        if (now == 0 || now < best_fit)
            continue;
        *ret_matching = now > best_fit ? 1 : *ret_matching + 1;
        if (now > best_fit || (now == 1 && key_rank(x, q) < key_rank(best, q)))
            best = x;
        best_fit = now;
    }
    return best;
}

struct sat_resolved sat_config_resolve(const struct sat_table *global,
                                       const struct sat_table *local, const struct sat_lookup *q)
{
    struct sat_resolved r = { .analyzer = S("") };
    bool whole, at_home = local && local->n;
    r.override = best_entry(at_home ? local : global, q, &r.matching);
    const struct sat_entry *layers[] = { sat_table_find(global, S("default")),
                                         at_home ? sat_table_find(local, S("default")) : NULL,
                                         r.override };
    r.config = merge_layers(layers, countof(layers), &whole);
    r.slo = slo_settings_none;
    r.policy = policy_none;
    r.scale_up_at = up_default;
    r.scale_down_at = down_default;
    for (size_t i = 0; i < countof(layers); i++)
        if (layers[i]) {
            slo_settings_merge(&r.slo, &layers[i]->slo);
            policy_overlay(&r.policy, &layers[i]->policy, i == 0);
            overlay_thresholds(&r, layers[i]);
        }
    if (r.scale_up_at <= r.scale_down_at) { /* each layer is consistent, but not together */
        r.scale_up_at = up_default;
        r.scale_down_at = down_default;
    }
    if (!whole)
        r.override = NULL;
    return r;
}

struct sat_resolved sat_config_resolve_compat(const struct sat_table *table, str model, str ns)
{
    struct sat_resolved r = { .config = sat_config_builtin };
    overlay_entry(&r.config, sat_table_find(table, S("default")), true);
    for (size_t i = 0; i < table->n; i++) {
        const struct sat_entry *x = &table->at[i];
        if (str_eqc(x->key, "default") || !str_eq(x->model, model) || !str_eq(x->ns, ns))
            continue;
        r.override = r.override ? r.override : x;
        r.matching++;
    }
    overlay_entry(&r.config, r.override, true);
    return r;
}
