/* The names of the objects that belong to an AIMService, and the few other texts and sizes that must be the same as in
 * the original operator: children are found by name after the operator is replaced.
 *
 * Results live in the caller's arena. */
#ifndef FLYBALL_NAMES_CORE_H
#define FLYBALL_NAMES_CORE_H

#include "../base/arena.h"

enum { NAMES_LABEL_MAX = 63 };

/* The InferenceService of a service. KServe derives the host "<name>-predictor-<namespace>" from it, which is
 * limited to 63 bytes: a name that is too long is cut and ends in a hash. */
str aim_names_inference_service(struct arena *a, str service, str ns);

/* A text as a label value; "unknown" if no character of it is valid. */
str aim_names_label_value(struct arena *a, str text);

/* "<group>/<name>": the key of a label, annotation or finalizer. */
str aim_names_label_key(struct arena *a, const char *group, const char *name);

/* A text as an object name: lower case, runs of other characters become "-", dots stay. May be empty. */
str aim_names_rfc1123(struct arena *a, str text);
/* The same without dots, character by character, as in the newer generation of AIM. */
str aim_names_rfc1123_strict(struct arena *a, str text);

/* The AIMModel created for an image that no model describes: "<image>-<tag>-<hash>". */
str aim_names_model_of_image(struct arena *a, str image);

/* One way to run a model that its image recommends. */
struct aim_names_deployment {
    str gpu_model, metric, precision; /* empty: unset */
    int64_t gpu_count;                /* 0: unset */
};

str aim_names_template_of_deployment(struct arena *a, str model,
                                     const struct aim_names_deployment *d);

/* The template derived from `base` with these overrides. */
str aim_names_derived_template(struct arena *a, str base, str overrides_json);

/* The name followed by a hash of the second text, at most 63 bytes. */
str aim_names_append_hash(struct arena *a, str name, str of);

/* "<isvc>-temp-cache": the volume of a service without a cache. */
str aim_names_service_volume(struct arena *a, str inference_service);
/* The AIMModelCache of a model; dots become "-" as well. */
str aim_names_model_cache(struct arena *a, str model);
/* "<cache>-cache": the volume of an AIMModelCache. */
str aim_names_model_cache_volume(struct arena *a, str cache);

/* The size of a volume for `bytes` plus headroom, rounded up to whole GiB; 0 for 0. */
int64_t aim_names_volume_bytes(int64_t bytes, int64_t headroom_percent);

/* Does a label key match a pattern of labelPropagation? "*" and "?" do not match "/". `*ret_bad` (may be NULL) is
 * set if the pattern is invalid; it then matches nothing. */
bool aim_names_match_key(str pattern, str key, bool *ret_bad);

/* The text in double quotes, with `"` and `\\` escaped: how messages print names. */
str aim_names_quote(struct arena *a, str text);

#endif
