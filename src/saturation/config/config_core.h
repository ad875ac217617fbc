/* The saturation ConfigMap: one entry per key, thresholds in YAML.
 *
 * The configuration of a model is built in layers, each field from the last layer that has it:
 * built-in values, the entry `default`, and at most one entry for the model. A namespace may have a
 * ConfigMap of its own; its entries then replace the global ones, on top of the global `default`.
 *
 * An entry with `model_id` applies to that model (in `namespace`, if given); one without applies to
 * the model whose variant, scale target or ID is the key of the entry, or to the model and namespace
 * of the key `<model>#<namespace>`.
 *
 * WVA has other rules: a field of 0 is unset, every entry is validated alone with zeros for what it
 * omits, and only entries with both selectors match. They are here for comparison, in functions
 * whose names end in `compat`. */
#ifndef FLYBALL_CONFIG_CORE_H
#define FLYBALL_CONFIG_CORE_H

#include "../../json/json.h"
#include "../slo/slo_settings_core.h"
#include "../wva/analysis_core.h"
#include "../wva/target_core.h"
#include "policy_core.h"

enum sat_number {
    SAT_KV_THRESHOLD,
    SAT_QUEUE_THRESHOLD,
    SAT_KV_SPARE_TRIGGER,
    SAT_QUEUE_SPARE_TRIGGER,
    SAT_UP_THRESHOLD, /* this and the next: for the token analyzer */
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
    struct sat_policy policy; /* SAT_ERA_09 */
};

struct sat_table {
    const struct sat_entry *at; /* sorted by key */
    size_t n;
};

extern const struct sat_config sat_config_builtin; /* 0.80, 5, 0.10, 3 */

/* -EBADMSG: not YAML of this shape. SAT_ERA_SEED ignores the fields that WVA added later. */
int sat_entry_parse(struct arena *a, str yaml, enum sat_era era, struct sat_entry *ret, err_t *e);
/* WVA's validation with its messages; absent fields are 0. */
int sat_entry_check_compat(const struct sat_entry *entry, enum sat_era era, err_t *e);
/* Its parts: the ranges of each threshold, and that they are consistent. */
int sat_config_check_ranges(const struct sat_config *config, err_t *e);
int sat_config_check_order(const struct sat_config *config, err_t *e);
/* Our validation, of a complete configuration; NaN is invalid too. */
int sat_config_check(const struct sat_config *config, err_t *e);

/* ---- the data of a ConfigMap as a table */

struct sat_load_problem {
    str key;
    bool unreadable; /* it cannot be parsed; else its values are invalid */
    bool kept;       /* the last good entry of that name stays in force */
    str text;
};

struct sat_load {
    struct sat_table table;
    size_t loaded; /* entries that came from this data */
    struct sat_load_problem *problems;
    size_t problem_n;
};

/* The result lives in the arena. `before` is the table in force, which replaces entries that are
 * invalid now. */
struct sat_load sat_table_load(struct arena *a, const struct json *data,
                               const struct sat_table *before);

/* ---- the configuration of a model */

struct sat_lookup {
    str model, ns;
    const str (*variants)[2]; /* name and scale target of each, sorted by name */
    size_t variant_n;
};

struct sat_resolved {
    struct sat_config config;
    struct slo_settings slo;
    struct sat_policy policy;
    str analyzer;                      /* analyzerName; "": none is set */
    double scale_up_at, scale_down_at; /* utilization, for the token analyzer */
    const struct sat_entry *override;  /* the entry of the model that was applied; NULL: none */
    size_t matching;                   /* entries that match equally well */
};

/* `local` may be empty or NULL. */
struct sat_resolved sat_config_resolve(const struct sat_table *global,
                                       const struct sat_table *local, const struct sat_lookup *q);
struct sat_resolved sat_config_resolve_compat(const struct sat_table *table, str model, str ns);

const struct sat_entry *sat_table_find(const struct sat_table *table, str key);

#endif
