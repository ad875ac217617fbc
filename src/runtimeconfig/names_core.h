/* The names of what an AIMService brings with it, and the few other texts and sizes that must come out as
 * users of the original know them: children found by name are found after the change of operator too.
 *
 * Results live in the caller's arena. */
#ifndef FLYBALL_NAMES_CORE_H
#define FLYBALL_NAMES_CORE_H

#include "../base/arena.h"

enum { NAMES_LABEL_MAX = 63 };

/* The InferenceService of a service. KServe makes the host "<name>-predictor-<namespace>" of it, which
 * must stay within 63 bytes: a name too long for that ends in a hash. */
str aim_names_inference_service(struct arena *a, str service, str ns);

/* Text as the value of a label; "unknown" when nothing of it can be one. */
str aim_names_label_value(struct arena *a, str text);

/* "<group>/<name>": a key of labels, annotations and finalizers. */
str aim_names_label_key(struct arena *a, const char *group, const char *name);

/* Text as an object's name: lower case, runs of all else become "-". Dots stay. May be empty. */
str aim_names_rfc1123(struct arena *a, str text);
/* The same without dots, character by character: what the newer operator does. */
str aim_names_rfc1123_strict(struct arena *a, str text);

/* The AIMModel made for an image that nobody described: "<image>-<tag>-<hash>". */
str aim_names_model_of_image(struct arena *a, str image);

/* One way to run a model that its image recommends. */
struct aim_names_deployment {
    str gpu_model, metric, precision; /* empty: not said */
    int64_t gpu_count;                /* 0: not said */
};

str aim_names_template_of_deployment(struct arena *a, str model,
                                     const struct aim_names_deployment *d);

/* The template derived from `base` by overrides, whose JSON is the second text. */
str aim_names_derived_template(struct arena *a, str base, str overrides_json);

/* The name with a hash of the second text behind it, within 63 bytes. */
str aim_names_append_hash(struct arena *a, str name, str of);

/* "<isvc>-temp-cache": the volume of a service without a cache. */
str aim_names_service_volume(struct arena *a, str inference_service);
/* The AIMModelCache of a model: dots too become "-". */
str aim_names_model_cache(struct arena *a, str model);
/* "<cache>-cache": the volume of an AIMModelCache. */
str aim_names_model_cache_volume(struct arena *a, str cache);

/* Bytes of a volume for so much data with so much to spare, in whole GiB. 0 stays 0. */
int64_t aim_names_volume_bytes(int64_t bytes, int64_t headroom_percent);

/* Does a label's key match a pattern of labelPropagation? "*" and "?" do not match "/". `*ret_bad`
 * (may be NULL) says that the pattern cannot be read; it then matches nothing. */
bool aim_names_match_key(str pattern, str key, bool *ret_bad);

#endif
