/* Metadata from the labels of an image, the templates that follow from a model, and their states taken
 * together. Pure. */
#ifndef FLYBALL_INSPECTION_CORE_H
#define FLYBALL_INSPECTION_CORE_H

#include "../json/json.h"
#include "engine_core.h"

enum { INSPECTION_LABEL_BYTES = 32 << 10 }; /* of all labels that are kept in the status */

/* status.imageMetadata: {model, oci}. -EINVAL: recommendedDeployments cannot be read. */
int aim_inspection_metadata(struct arena *a, const struct json *labels, struct json **ret,
                            err_t *e);
/* All labels, for status.imageMetadata.originalLabels: at most INSPECTION_LABEL_BYTES, larger values are cut. */
struct json *aim_inspection_labels(struct arena *a, const struct json *labels);

/* "auth", "not-found" or "generic", by HTTP status, else (0) by the words of the message. */
const char *aim_inspection_error_class(int status, str message);

/* Will the model get templates? Unknown until the image is inspected. */
enum aim_inspection_expects {
    INSPECTION_UNKNOWN,
    INSPECTION_EXPECTS_NONE,
    INSPECTION_EXPECTS_SOME
};
enum aim_inspection_expects aim_inspection_expects(const struct json *model);

/* The templates that the model gets: a list of objects without apiVersion and kind; NULL: none. `group` is the domain of
 * labels. */
struct json *aim_inspection_templates(struct arena *a, const char *group, const struct json *model);

/* Only those of spec.custom and spec.customTemplates. */
struct json *aim_inspection_custom_templates(struct arena *a, const char *group,
                                             const struct json *model);

/* The states of the model's templates as one component; `words` are their status words. */
struct aim_engine_component aim_inspection_aggregate(const str *words, size_t n,
                                                     enum aim_inspection_expects expects);

#endif
