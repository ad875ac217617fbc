/* What version 1 of an autoscaler has no field for travels in annotations, in the words of the old
 * betas: metrics with flat targets, and a behaviour with capital letters. */
#ifndef FLYBALL_APISERVER_HPA_NOTES_H
#define FLYBALL_APISERVER_HPA_NOTES_H

#include "../../json/json.h"

enum hpa_note_side { HPA_SPEC, HPA_STATUS }; /* targets, or current values */

struct json *hpa_note_metrics(struct arena *a, const struct json *metrics, enum hpa_note_side side);
struct json *hpa_read_metrics(struct arena *a, const struct json *note, enum hpa_note_side side);

struct json *hpa_note_behavior(struct arena *a, const struct json *behavior);
struct json *hpa_read_behavior(struct arena *a, const struct json *note);

struct json *hpa_note_conditions(struct arena *a, const struct json *conditions);

#endif
