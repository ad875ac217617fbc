/* The market's configuration: every key of the ConfigMap and the environment, with its default
 * and bounds. The environment overrides the ConfigMap, which overrides the defaults, as in
 * MBCAS. */
#ifndef FLYBALL_MARKET_SPEC_H
#define FLYBALL_MARKET_SPEC_H

#include "../json/json.h"

struct market_config {
    int64_t sampling_ns, write_ns, fast_ns, slow_ns, grace_ns;
    double min_change_percent, system_reserve_percent;
    str baseline_cpu; /* a quantity */
    double slo_target_ms, p99_multiplier;
    str prometheus_url;
    double throttling_threshold, fast_step_min, fast_step_max;
    str mechanism; /* "nash" or "primal-dual" */
    bool kalman, batch, price_response, agents, cost_efficiency;
    str coalition_annotation;
    double learning_rate, exploration_rate, discount;
    int64_t memory_size, coalition_max, history_max, min_usage_usec, absolute_min_milli;
    double need_headroom, want_headroom, max_demand_multiplier;
    double alpha_down, alpha_up, idle_decay, target_throttling;
    double max_min_share; /* of the node, that one annotation or boost may claim */
    double limit_overcommit, limit_ceiling, request_headroom_percent;
    bool lend_baseline, memory_shrink;
    str bids;      /* "need" or "seed" */
    str hpa_peace; /* "hold" or "move" */
    str memory;    /* memoryManagement: "off", "requests" or "full" */
    str boost_type, boost_quantity;
    int64_t boost_factor, boost_duration_s, boost_max_s;
    int64_t report_ns;      /* clusterReportInterval */
    int64_t capacity_milli; /* of the node */
    bool capacity_set;      /* the key is set: it overrides the node's allocatable CPU */
};

enum market_defaults { MARKET_DEFAULTS, MARKET_DEFAULTS_COMPAT };
struct market_config market_config_default(enum market_defaults which);

/* Reads the `data` of the ConfigMap (an object of strings). Calls `complain` with one sentence
 * for every invalid value, whose field stays unchanged; the others apply. Returns the number of
 * invalid values. Strings are copied into the arena. */
typedef void market_complain(void *context, const char *sentence);
int market_config_read(struct market_config *config, struct arena *a, const struct json *data,
                       market_complain *complain, void *context);

/* The same from the environment; `lookup` is getenv() or a test's replacement. */
int market_config_read_env(struct market_config *config, struct arena *a,
                           const char *(*lookup)(void *context, const char *name),
                           void *lookup_context, market_complain *complain, void *context);

/* The same as MBCAS reads it: the first invalid value of the ConfigMap is an error, invalid ones
 * of the environment are ignored, and each source has only some of the keys. */
int market_config_read_compat(struct market_config *config, struct arena *a,
                              const struct json *data, err_t *e);
void market_config_read_env_compat(struct market_config *config, struct arena *a,
                                   const char *(*lookup)(void *context, const char *name),
                                   void *lookup_context);

/* Checks one value of the ConfigMap by itself: its type, its bounds, and whether the key exists.
 * Values that MBCAS accepts and that make no sense are refused too. */
int market_config_check_value(struct arena *a, str key, str value, err_t *e);

bool market_config_is_duration(str key);

/* Checks the whole. The error names the key, its value and what is valid. */
int market_config_check(const struct market_config *config, err_t *e);

/* All fields by key, durations in nanoseconds: for `explain` and tests. */
struct json *market_config_print(const struct market_config *config, struct arena *a);

#endif
