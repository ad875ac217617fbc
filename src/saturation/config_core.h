/* The saturation ConfigMap: one entry a key, thresholds in YAML.
 *
 * What holds for a model is built up in layers, each field from the last layer that has it: built-in
 * values, the entry `default`, and at most one entry for the model. A namespace may have a ConfigMap
 * of its own, whose entries then take the place of the global ones above the global `default`.
 *
 * An entry with `model_id` is for that model (in `namespace`, if it says so); one without is for the
 * model whose variant, scale target or id is the entry's key.
 *
 * The original has other rules: a field that is 0 is not set, every entry is judged alone with zeros
 * in place of what it leaves out, and the entries' own selectors are needed. They are here for
 * comparison, under names with `compat`. */
#ifndef FLYBALL_CONFIG_CORE_H
#define FLYBALL_CONFIG_CORE_H

#include "../json/json.h"
#include "analysis_core.h"
#include "slo_settings_core.h"
#include "target_core.h"

enum sat_number {
    SAT_KV_THRESHOLD,
    SAT_QUEUE_THRESHOLD,
    SAT_KV_SPARE_TRIGGER,
    SAT_QUEUE_SPARE_TRIGGER,
    SAT_UP_THRESHOLD, /* this and the next: of the token analyzer */
    SAT_DOWN_BOUNDARY,
    SAT_NUMBER_N
};

struct sat_entry {
    str key;
    str model, ns; /* selectors; "": none */
    double number[SAT_NUMBER_N];
    bool has[SAT_NUMBER_N];
    bool limiter;
    str analyzer;
    struct slo_settings slo;
};

struct sat_table {
    const struct sat_entry *at; /* sorted by key */
    size_t n;
};

extern const struct sat_config sat_config_builtin; /* 0.80, 5, 0.10, 3 */

/* -EBADMSG for what is no such YAML. The seed's era does not know the last fields. */
int sat_entry_parse(struct arena *a, str yaml, enum sat_era era, struct sat_entry *ret, err_t *e);
/* The original's judgement and words, zeros for what is absent. */
int sat_entry_check_compat(const struct sat_entry *entry, enum sat_era era, err_t *e);
/* Ours: of a configuration that is complete; NaN is refused as well. */
int sat_config_check(const struct sat_config *config, err_t *e);

/* ---- a ConfigMap's data as a table */

struct sat_load_problem {
    str key;
    bool unreadable; /* no YAML of this kind; else values that cannot be */
    bool kept;       /* the last good entry of that name stays in force */
    str text;
};

struct sat_load {
    struct sat_table table;
    size_t loaded; /* entries that came from this data */
    struct sat_load_problem *problems;
    size_t problem_n;
};

/* All of it lives in the arena. `before` is what was in force. */
struct sat_load sat_table_load(struct arena *a, const struct json *data,
                               const struct sat_table *before);

/* ---- what holds for a model */

struct sat_lookup {
    str model, ns;
    const str (*variants)[2]; /* name and scale target of each, by name */
    size_t variant_n;
};

struct sat_resolved {
    struct sat_config config;
    struct slo_settings slo;
    const struct sat_entry *override; /* that is part of it; NULL: none */
    size_t matching;                  /* overrides that would have been as good */
};

/* `local` may be empty or NULL. */
struct sat_resolved sat_config_resolve(const struct sat_table *global,
                                       const struct sat_table *local, const struct sat_lookup *q);
struct sat_resolved sat_config_resolve_compat(const struct sat_table *table, str model, str ns);

const struct sat_entry *sat_table_find(const struct sat_table *table, str key);

#endif
