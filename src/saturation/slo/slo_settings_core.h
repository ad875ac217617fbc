/* Latency settings of a user: the field `slo` of an entry in the saturation ConfigMap,
 *
 *     slo: { ttft: 2s, itl: 60ms, goal: 99, reserve: 2, caution: 1 }
 *
 * Every field is optional: an entry for a model inherits it from the entry `default`, and a target
 * that is set nowhere comes from a service class or is derived from what was learned. */
#ifndef FLYBALL_SLO_SETTINGS_CORE_H
#define FLYBALL_SLO_SETTINGS_CORE_H

#include "../../json/json.h"

struct slo_settings {        /* NaN: unset */
    double ttft, itl;        /* s */
    double goal;             /* share of requests, in [0.5, 0.9999] */
    double reserve;          /* additional free capacity, as a share of the need */
    double reserve_replicas; /* additional free replicas */
    double caution;          /* 1..3: how strongly missed targets raise the headroom */
};

extern const struct slo_settings slo_settings_none;

/* `tree` may be NULL or null: all unset. -EBADMSG: not a map of these fields; -EINVAL: a value is
 * out of range. */
int slo_settings_read(const struct json *tree, struct slo_settings *ret, err_t *e);
void slo_settings_merge(struct slo_settings *to, const struct slo_settings *over);

#endif
