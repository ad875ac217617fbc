/* What version 1 of an autoscaler has no field for, encoded as annotations in the form of the old beta
 * versions: metrics with flat targets, and a behavior with capitalized names. */
#ifndef FLYBALL_APISERVER_HPA_NOTES_H
#define FLYBALL_APISERVER_HPA_NOTES_H

#include "../../json/json.h"

enum kind_hpa_part {
    KIND_HPA_SPEC,
    KIND_HPA_STATUS
}; /* which metrics: targets, or current values */

struct json *kind_hpa_encode_metrics(struct arena *a, const struct json *metrics,
                                     enum kind_hpa_part side);
struct json *kind_hpa_decode_metrics(struct arena *a, const struct json *note,
                                     enum kind_hpa_part side);

struct json *kind_hpa_encode_behavior(struct arena *a, const struct json *behavior);
struct json *kind_hpa_decode_behavior(struct arena *a, const struct json *note);

struct json *kind_hpa_encode_conditions(struct arena *a, const struct json *conditions);

#endif
