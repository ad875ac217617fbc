/* What a user says about latency targets: the part `slo` of an entry in the saturation ConfigMap,
 *
 *     slo: { ttft: 2s, itl: 60ms, goal: 99, reserve: 2, caution: 1 }
 *
 * Every field may be left out: an entry for a model then has it from the entry `default`, and what nobody says
 * is taken from a service class or derived from what was learned. */
#ifndef FLYBALL_SLO_SETTINGS_CORE_H
#define FLYBALL_SLO_SETTINGS_CORE_H

#include "../json/json.h"

struct slo_settings {        /* NaN: not said */
    double ttft, itl;        /* s */
    double goal;             /* share of requests, in [0.5, 0.9999] */
    double reserve;          /* share of the need to hold free */
    double reserve_replicas; /* replicas to hold free */
    double caution;          /* 1..3: how strongly missed targets raise the headroom */
};

extern const struct slo_settings slo_settings_none;

/* `tree` may be NULL or null: nothing is said. -EBADMSG: something else than a map of these fields;
 * -EINVAL: a value that cannot be. */
int slo_settings_read(const struct json *tree, struct slo_settings *ret, err_t *e);
void slo_settings_merge(struct slo_settings *to, const struct slo_settings *over);

#endif
