/* The settings that WVA 0.9 added to an entry of the saturation ConfigMap: which analyzers vote,
 * the priority of the model, limits on accelerators, and whether the model may scale to zero.
 *
 *     analyzers: [{type: saturation, score: 2, parameters: {scaleUpThreshold: 0.9}}]
 *     priority: 2.5
 *     limiters: [{type: quota, name: team, scope: namespace, namespaceQuotas: {chat: {H100: 4}}}]
 *     scaleToZero: {enabled: true}
 *     enableRescale: true
 *
 * `limiters`, `enableLimiter` and `enableRescale` count in the entry `default` only. */
#ifndef FLYBALL_POLICY_CORE_H
#define FLYBALL_POLICY_CORE_H

#include "../../json/json.h"
#include "../limits/quota_core.h"

struct policy_analyzer {
    str type; /* `type`, else `name` */
    bool enabled;
    double score; /* as written; 0: unset */
    bool has_up, has_down;
    double up, down; /* thresholds of this analyzer */
};

struct policy_limiter {
    str type, scope;
    struct quota quota; /* of type quota */
};

struct sat_policy {
    bool has_priority, has_limiter, has_rescale, has_zero, has_limiters, has_analyzers;
    bool has_zero_block; /* `scaleToZero` is there, with or without `enabled` */
    double priority;
    bool limiter; /* enableLimiter */
    bool rescale;
    bool zero; /* scaleToZero.enabled */
    const struct policy_analyzer *analyzers;
    size_t analyzer_n;
    const struct policy_limiter *limiters;
    size_t limiter_n;
    str invalid; /* why a parameter of an analyzer is invalid; "": none is */
};

extern const struct sat_policy policy_none;

/* -EBADMSG: a field has the wrong type. The policy lives in the arena. */
int policy_read(struct arena *a, const struct json *tree, struct sat_policy *ret, err_t *e);
struct sat_policy policy_copy(struct arena *a, const struct sat_policy *p);

/* -EINVAL with WVA's messages. `up` and `down` are the thresholds of the entry. */
int policy_check_analyzers(const struct sat_policy *p, double up, double down, err_t *e);
int policy_check_limiters(const struct sat_policy *p, err_t *e);

/* Overwrites what `over` has; `limiters` and `rescale` only if `is_default`. */
void policy_overlay(struct sat_policy *p, const struct sat_policy *over, bool is_default);

/* ---- who votes */

const struct policy_analyzer *policy_find_analyzer(const struct sat_policy *p, str name);
/* An empty list: only the analyzer `saturation` votes. */
bool policy_votes(const struct sat_policy *p, str name);
double policy_score(const struct sat_policy *p, str name); /* 1 unless set */

/* The quotas of all limiters, in the arena. */
size_t policy_quotas(struct arena *a, const struct sat_policy *p, const struct quota **ret);
/* Whether the stock of the nodes limits: listed, or no limiter is. */
bool policy_uses_stock(const struct sat_policy *p);

#endif
