/* A model: what is known about its image, which templates follow from that, and its status.
 *
 * The metadata come from spec.imageMetadata, or else from an inspection of the image (model_inspection.c), and the templates
 * that they recommend are created. A model without metadata is as ready as the templates that users wrote for it. Pure. */
#ifndef FLYBALL_MODEL_CORE_H
#define FLYBALL_MODEL_CORE_H

#include "runtimeconfig_spec.h"

/* Templates of a model by state. */
struct aim_model_templates {
    size_t ready, waiting;
    size_t bad;    /* Degraded or Failed */
    size_t absent; /* NotAvailable: no node has the GPU, which is not a fault of the model */
};

void aim_model_count_template(struct aim_model_templates *counts,
                              str word); /* `word`: status.status of the template */

/* What is known of the image. */
enum aim_model_inspection {
    MODEL_NOT_INSPECTED, /* and will not be, as far as is known */
    MODEL_INSPECTING,
    MODEL_INSPECTED, /* status.imageMetadata of `object` is of its image */
    MODEL_INSPECTION_FAILED,
};

struct aim_model_facts {
    const struct json *object;
    enum aim_model_inspection inspection;
    const char *inspection_reason; /* of a failure: ImageNotFound, ImagePullAuthFailure, ... */
    str inspection_message;
    bool config_missing;
    size_t custom; /* templates of spec.custom and spec.customTemplates */
    str config_message;
    const struct runtimeconfig_spec *config;
    struct aim_model_templates made;  /* generated from recommendations */
    struct aim_model_templates other; /* written by users */
};

struct aim_model_state {
    const char *status; /* Pending, Progressing, Ready, Degraded, Failed */
    const char *reason;
    str message;
    bool extracted; /* the condition MetadataExtracted */
    const char *extracted_reason;
    str extracted_message;
    const struct json *metadata; /* metadata of the image; NULL: unknown */
};

struct aim_model_state aim_model_state(struct arena *a, const struct aim_model_facts *facts);

/* Must the image be inspected to know its metadata? */
bool aim_model_wants_inspection(const struct json *model, const struct runtimeconfig_spec *config);

/* The recommended deployments for which templates are created; NULL: none. */
const struct json *aim_model_deployments(const struct json *model,
                                         const struct runtimeconfig_spec *config);
/* The template of one of them; `group` is the domain of labels. */
struct json *aim_model_template(struct arena *a, const char *group, const struct json *model,
                                const struct json *deployment);

/* Why a service cannot use a model with this status; NULL: it can. */
const char *aim_model_unready_reason(str word); /* ModelPending, ModelProgressing, ... */

/* The same as a sentence: "AIMModel "x" is pending discovery". */
str aim_model_unready_message(struct arena *a, str kind, str name, str word);

#endif
