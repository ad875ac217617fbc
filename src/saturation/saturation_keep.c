/* The last good configuration across restarts: neither an invalid entry nor a restart changes a
 * decision.
 *
 * Every valid entry of a ConfigMap is stored in flyball's own ConfigMap `flyball-saturation-state`
 * (kube/keep.h), one text each: {"ns","map","key","text","sha256","at"} under "good.HEX". It is
 * read before the first cycle. Then
 *
 *   an entry that is invalid                      is replaced by its kept text
 *   a global ConfigMap that is missing or empty   is replaced by all its kept entries, until it has entries again
 *   a key that a ConfigMap no longer has          is removed
 *   the ConfigMap of a namespace that is deleted  is removed: the global values apply again
 *
 * which is also what happens without a restart. Only the leader writes, in its cycle, and only what
 * changed. Keys that look like secrets are never copied.
 *
 * The checksum protects against a text that was edited by hand: such an entry is ignored. */
#include "../base/duration.h"
#include "../base/log.h"
#include "../base/rfc3339.h"
#include "../base/sha256.h"
#include "saturation_state.h"

#define STATE_NAME "flyball-saturation-state"

static const struct metric_spec fallback_spec = {
    "flyball_config_fallback",
    "1 while the last good value of a configuration entry is in force; the key is empty if a whole ConfigMap is missing.",
    METRIC_GAUGE,
    { "map", "key" },
};

struct kept_entry { /* one kept entry; texts in the arena */
    str ns, map, key, text;
};

struct kept_entries {
    struct arena *arena;
    struct kept_entry *at;
    size_t n, most;
};

/* ---- reading */

static void add_kept(void *context, str key, str text)
{
    struct kept_entries *all = context;
    struct json *tree = NULL;
    char sum[SHA256_HEX + 1];
    if (!str_starts(key, S("good.")) || json_parse(all->arena, text, &tree, NULL) < 0)
        return;
    struct kept_entry g = { json_text(json_get(tree, "ns")), json_text(json_get(tree, "map")),
                            json_text(json_get(tree, "key")), json_text(json_get(tree, "text")) };
    sha256_hex(g.text, sum);
    if (g.map.n && g.key.n && str_eqc(json_text(json_get(tree, "sha256")), sum))
        all->at[all->n++] = g;
}

static int by_place(const void *a, const void *b)
{
    const struct kept_entry *x = a, *y = b;
    int order = str_cmp(x->ns, y->ns);
    order = order ? order : str_cmp(x->map, y->map);
    return order ? order : str_cmp(x->key, y->key);
}

static struct kept_entries read_kept(struct arena *a, const struct saturation *s)
{
    struct kept_entries all = { .arena = a, .most = keep_count(s->keep) };
    all.at = arena_array(a, all.most, sizeof(*all.at));
    keep_each(s->keep, add_kept, &all);
    if (all.n)
        qsort(all.at, all.n, sizeof(*all.at), by_place);
    return all;
}

/* The kept entries of a ConfigMap as its data, JSON; "": none. */
static str kept_data(const struct kept_entries *all, str ns, str map)
{
    struct json *data = json_new_obj(all->arena);
    for (size_t i = 0; i < all->n; i++)
        if (str_eq(all->at[i].ns, ns) && str_eq(all->at[i].map, map))
            json_append(all->arena, data, all->at[i].key,
                        json_new_str(all->arena, all->at[i].text));
    return data->n ? json_to_str(all->arena, data) : S("");
}

str saturation_keep_read(const struct saturation *s, struct arena *a, str map)
{
    struct kept_entries all = read_kept(a, s);
    return kept_data(&all, s->o.ns, map);
}

void saturation_keep_read_locals(const struct saturation *s, struct arena *a,
                                 struct sat_sources *out)
{
    struct kept_entries all = read_kept(a, s);
    struct sat_local_source *at = arena_array(a, all.n, sizeof(*at));
    for (size_t i = 0; i < all.n; i++) {
        str ns = all.at[i].ns;
        if (str_eq(ns, s->o.ns) || (out->local_n && str_eq(at[out->local_n - 1].ns, ns)))
            continue;
        at[out->local_n++] =
            (struct sat_local_source){ ns, kept_data(&all, ns, s->o.saturation_map),
                                       kept_data(&all, ns, s->o.zero_map) };
    }
    out->locals = at;
}

/* ---- writing */

static bool is_secret(str key)
{
    static const char *const words[] = { "TOKEN", "PASSWORD", "SECRET" };
    for (size_t i = 0; i < countof(words); i++)
        if (str_find(key, str_c(words[i])) != SIZE_MAX)
            return true;
    return false;
}

static str kept_key(struct arena *a, const struct kept_entry *g)
{
    return keep_key(a, "good", (const str[]){ g->ns, g->map, g->key }, 3);
}

/* Stores an entry; the time `at` changes only if the text does. */
static void put_kept(struct saturation *s, struct arena *a, const struct kept_entry *g)
{
    str key = kept_key(a, g), before = keep_get(s->keep, key);
    struct json *tree = NULL;
    char sum[SHA256_HEX + 1], at[RFC3339_TEXT_MAX];
    if (is_secret(g->key))
        return;
    if (before.n && json_parse(a, before, &tree, NULL) == 0 &&
        str_eq(json_text(json_get(tree, "text")), g->text)) {
        keep_put(s->keep, key, before);
        return;
    }
    struct json *value = json_new_obj(a);
    sha256_hex(g->text, sum);
    json_set_str(a, value, "ns", g->ns);
    json_set_str(a, value, "map", g->map);
    json_set_str(a, value, "key", g->key);
    json_set_str(a, value, "text", g->text);
    json_set_str(a, value, "sha256", str_c(sum));
    json_set_str(a, value, "at",
                 rfc3339_text(loop_wall_ns(manager_loop(s->manager)) / NS_PER_S, at));
    keep_put(s->keep, key, json_to_str(a, value));
}

static void show_fallback(struct saturation *s, str map, str key, bool in_force)
{
    metric_set(METRIC(s->fallbacks, map, key), in_force ? 1 : 0);
}

struct map_keeping {
    struct saturation *s;
    struct arena *arena;
    str ns, map;
    const struct sat_table *table; /* of the saturation ConfigMap; NULL for others */
    bool zero, optimization;
};

/* Whether an entry is invalid, by the same checks as the snapshot. */
static bool is_broken(const struct map_keeping *m, const struct sat_load *load, str key, str text)
{
    for (size_t i = 0; m->table && i < load->problem_n; i++)
        if (str_eq(load->problems[i].key, key))
            return true;
    if (m->zero) {
        struct json *alone = json_new_obj(m->arena);
        json_append(m->arena, alone, key, json_new_str(m->arena, text));
        return zero_table_load(m->arena, alone, NULL).problems.n > 0;
    }
    int64_t ns;
    return m->optimization && str_eqc(key, "GLOBAL_OPT_INTERVAL") &&
           (duration_parse(text, &ns, NULL) < 0 || ns < 100 * NS_PER_MS);
}

/* Stores the valid entries of `data` and removes those that it no longer has. */
static void keep_map(const struct map_keeping *m, const struct kept_entries *kept,
                     const struct json *data)
{
    struct saturation *s = m->s;
    struct sat_load load =
        m->table ? sat_table_load(m->arena, data, m->table) : (struct sat_load){ 0 };
    json_each(x, data) {
        struct kept_entry g = { m->ns, m->map, x->key, json_text(x->value) };
        bool broken = is_broken(m, &load, x->key, g.text);
        bool in_force = broken && keep_get(s->keep, kept_key(m->arena, &g)).n;
        if (!broken)
            put_kept(s, m->arena, &g);
        if (str_eq(m->ns, s->o.ns))
            show_fallback(s, m->map, x->key, in_force);
    }
    for (size_t i = 0; i < kept->n; i++) {
        const struct kept_entry *g = &kept->at[i];
        if (str_eq(g->ns, m->ns) && str_eq(g->map, m->map) && !json_get_str(data, g->key))
            keep_del(s->keep, kept_key(m->arena, g));
    }
}

static const struct json *parse_json(struct arena *a, str text)
{
    struct json *tree = NULL;
    return text.n && json_parse(a, text, &tree, NULL) == 0 ? tree : NULL;
}

/* Stores the global ConfigMaps, and shows which of them are replaced by kept entries. */
static void keep_global_maps(struct saturation *s, struct arena *a, const struct kept_entries *kept)
{
    const struct {
        const char *text;
        str map;
        struct map_keeping how;
    } all[] = {
        { s->optimization_text, s->o.optimization_map, { .optimization = true } },
        { s->saturation_text, s->o.saturation_map, { .table = &s->snapshot->saturation } },
        { s->zero_text, s->o.zero_map, { .zero = true } },
        { s->costs_text, S(SAT_COSTS_MAP), { 0 } },
        { s->classes_text, S(SAT_CLASSES_MAP), { 0 } },
    };
    for (size_t i = 0; i < countof(all); i++) {
        struct map_keeping how = all[i].how;
        how.s = s, how.arena = a, how.ns = s->o.ns, how.map = all[i].map;
        bool in_force = !all[i].text && kept_data(kept, s->o.ns, all[i].map).n;
        if (all[i].text)
            keep_map(&how, kept, parse_json(a, str_c(all[i].text)));
        if (in_force && !(s->fallbacks_in_force & 1u << i))
            log_warn("ConfigMap not found or empty; its last good entries stay in force",
                     KV("namespace", s->o.ns), KV("name", all[i].map));
        if (in_force || s->fallbacks_in_force & 1u << i)
            show_fallback(s, all[i].map, S(""), in_force);
        s->fallbacks_in_force =
            in_force ? s->fallbacks_in_force | 1u << i : s->fallbacks_in_force & ~(1u << i);
    }
}

/* Stores the ConfigMaps of namespaces, and removes those that were deleted. */
static void keep_local_maps(struct saturation *s, struct arena *a, const struct kept_entries *kept)
{
    struct cache *const caches[] = { s->local_saturation, s->local_zero };
    for (size_t i = 0; i < countof(caches); i++) {
        const struct configmap_record *r;
        cache_each(r, caches[i]) {
            const struct sat_local *local = sat_snapshot_local(s->snapshot, r->meta.ns);
            struct map_keeping how = {
                s,      a,    r->meta.ns, r->meta.name, i == 0 && local ? &local->saturation : NULL,
                i == 1, false
            };
            if (!str_eq(r->meta.ns, s->o.ns))
                keep_map(&how, kept, parse_json(a, r->data));
        }
    }
    for (size_t i = 0; i < kept->n; i++) {
        const struct kept_entry *g = &kept->at[i];
        bool zero = str_eq(g->map, s->o.zero_map);
        if (!str_eq(g->ns, s->o.ns) && !cache_get(caches[zero], g->ns, g->map))
            keep_del(s->keep, kept_key(a, g)); /* its ConfigMap was deleted */
    }
}

void saturation_keep_update(struct saturation *s)
{
    if (s->kept_generation == s->snapshot->generation)
        return;
    s->kept_generation = s->snapshot->generation;
    auto_arena struct arena a = { 0 };
    struct kept_entries kept = read_kept(&a, s);
    keep_global_maps(s, &a, &kept);
    keep_local_maps(s, &a, &kept);
}

/* ---- lifecycle */

static void on_state_read(void *context)
{
    saturation_config_restore(context);
}

int saturation_keep_start(struct saturation *s, err_t *e)
{
    const char *own =
        getenv("POD_NAMESPACE"); /* the global ConfigMaps may be in another namespace */
    /* Instances may use different ConfigMaps and must not overwrite each other. */
    str name = s->o.instance.n
                   ? arena_printf(&s->arena, STATE_NAME "-" STR_FMT, STR_ARG(s->o.instance))
                   : S(STATE_NAME);
    s->fallbacks = metrics_family(manager_metrics(s->manager), &fallback_spec);
    return keep_new(s->manager,
                    &(struct keep_options){ .ns = own && *own ? str_c(own) : s->o.ns,
                                            .name = name,
                                            .on_read = on_state_read,
                                            .context = s },
                    &s->keep, e);
}
