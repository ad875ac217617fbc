/* See zero_core.h. */
#include "zero_core.h"

#include "../../base/clock.h"
#include "../../base/duration.h"
#include "../../json/yaml.h"

static const int64_t retention_default_ns = 600 * NS_PER_S;

static int by_model(const void *a, const void *b)
{
    const struct zero_entry *x = a, *y = b;
    return str_cmp(x->model, y->model);
}

static int by_name(const void *a, const void *b)
{
    const struct json_member *const *x = a, *const *y = b;
    return str_cmp((*x)->key, (*y)->key);
}

static str read_text(struct arena *a, const struct json *tree, const char *field)
{
    const struct json *v = json_get(tree, field);
    if (!v || v->type == JSON_NULL)
        return S("");
    return v->type == JSON_STR ? arena_str(a, json_text(v)) : json_to_str(a, v);
}

/* Parses one entry; false if it is no map of these fields or names no model. */
static bool read_entry(struct arena *a, str key, str yaml, struct zero_entry *ret)
{
    auto_arena struct arena scratch = { 0 };
    struct json *documents = NULL;
    if (yaml_parse_all(&scratch, yaml, NULL, &documents, NULL) < 0)
        return false;
    const struct json *tree = json_item(documents, 0), *enabled;
    enabled = json_get(tree, "enable_scale_to_zero");
    if ((tree && tree->type != JSON_OBJ) ||
        (enabled && enabled->type != JSON_BOOL && enabled->type != JSON_NULL))
        return false;
    *ret = (struct zero_entry){
        .key = arena_str(a, key),
        .model_id = read_text(a, tree, "model_id"),
        .ns = read_text(a, tree, "namespace"),
        .retention = read_text(a, tree, "retention_period"),
        .has_enabled = json_is(enabled, JSON_BOOL),
        .enabled = json_bool(enabled, false),
    };
    ret->model = str_eqc(key, "default") ? S("default") : ret->model_id;
    return ret->model.n > 0;
}

/* Copies the previous value of an entry that cannot be read now. */
static bool find_last_good(struct arena *a, const struct zero_table *before, str key,
                           struct zero_entry *ret)
{
    for (size_t i = 0; before && i < before->n; i++)
        if (str_eq(before->at[i].key, key)) {
            const struct zero_entry *x = &before->at[i];
            *ret = *x;
            ret->key = arena_str(a, x->key);
            ret->model = arena_str(a, x->model);
            ret->model_id = arena_str(a, x->model_id);
            ret->ns = arena_str(a, x->ns);
            ret->retention = arena_str(a, x->retention);
            return true;
        }
    return false;
}

static bool has_model(const struct zero_entry *entries, size_t n, str model)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(entries[i].model, model))
            return true;
    return false;
}

struct zero_load zero_table_load(struct arena *a, const struct json *data,
                                 const struct zero_table *before)
{
    size_t n = json_is(data, JSON_OBJ) ? data->n : 0, at = 0;
    struct zero_load result = { .problems = S("") };
    struct zero_entry *entries = arena_array(a, n, sizeof(*entries)), entry;
    struct json_member **members = arena_array(a, n, sizeof(*members));
    auto_buf struct buf problems = { 0 };
    json_each(m, data)
        members[at++] = m;
    qsort(members, n, sizeof(*members), by_name);
    for (size_t i = 0; i < n; i++) {
        str key = members[i]->key;
        bool good = read_entry(a, key, json_text(members[i]->value), &entry);
        bool kept = !good && find_last_good(a, before, key, &entry);
        bool known = (good || kept) && has_model(entries, result.table.n, entry.model);
        if ((good || kept) && !known)
            entries[result.table.n++] = entry;
        if (!good || known)
            buf_printf(&problems, "%s" STR_FMT ": %s", problems.n ? "; " : "", STR_ARG(key),
                       known  ? "its model has an earlier entry"
                       : kept ? "it cannot be read, the last good value stays"
                              : "it cannot be read or names no model_id");
    }
    qsort(entries, result.table.n, sizeof(*entries), by_model);
    result.table.at = entries;
    result.problems = arena_str(a, buf_str(&problems));
    return result;
}

static const struct zero_entry *zero_table_find(const struct zero_table *table, str model)
{
    struct zero_entry key = { .model = model };
    return table->n ? bsearch(&key, table->at, table->n, sizeof(*table->at), by_model) : NULL;
}

bool zero_enabled(const struct zero_table *table, str model, bool otherwise)
{
    const struct zero_entry *own = zero_table_find(table, model);
    const struct zero_entry *base = zero_table_find(table, S("default"));
    return own && own->has_enabled     ? own->enabled
           : base && base->has_enabled ? base->enabled
                                       : otherwise;
}

static bool read_retention(const struct zero_entry *entry, int64_t *ret_ns)
{
    return entry && duration_parse(entry->retention, ret_ns, NULL) == 0 && *ret_ns > 0;
}

int64_t zero_retention_ns(const struct zero_table *table, str model)
{
    int64_t ns;
    if (read_retention(zero_table_find(table, model), &ns) ||
        read_retention(zero_table_find(table, S("default")), &ns))
        return ns;
    return retention_default_ns;
}
