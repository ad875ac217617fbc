/* See zero_core.h. */
#include "zero_core.h"

#include "../base/clock.h"
#include "../base/duration.h"
#include "../json/yaml.h"

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

static str text_of(struct arena *a, const struct json *tree, const char *field)
{
    const struct json *v = json_get(tree, field);
    if (!v || v->type == JSON_NULL)
        return S("");
    return v->type == JSON_STR ? arena_str(a, json_text(v)) : json_to_str(a, v);
}

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
        .model_id = text_of(a, tree, "model_id"),
        .ns = text_of(a, tree, "namespace"),
        .retention = text_of(a, tree, "retention_period"),
        .has_enabled = json_is(enabled, JSON_BOOL),
        .enabled = json_bool(enabled, false),
    };
    ret->model = str_eqc(key, "default") ? S("default") : ret->model_id;
    return ret->model.n > 0;
}

struct zero_table zero_table_load(struct arena *a, const struct json *data, size_t *ret_skipped)
{
    size_t n = json_len(data), at = 0;
    struct zero_table table = { 0 };
    struct zero_entry *entries = arena_array(a, n, sizeof(*entries));
    struct json_member **members = arena_array(a, n, sizeof(*members));
    *ret_skipped = 0;
    json_each(m, data)
        members[at++] = m;
    qsort(members, n, sizeof(*members), by_name);
    for (size_t i = 0; i < n; i++) {
        struct zero_entry entry;
        bool known = false,
             good = read_entry(a, members[i]->key, json_text(members[i]->value), &entry);
        for (size_t k = 0; good && k < table.n; k++)
            known |= str_eq(entries[k].model, entry.model);
        if (good && !known)
            entries[table.n++] = entry;
        else
            ++*ret_skipped;
    }
    qsort(entries, table.n, sizeof(*entries), by_model);
    table.at = entries;
    return table;
}

const struct zero_entry *zero_table_find(const struct zero_table *table, str model)
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
