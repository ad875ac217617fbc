/* A model: what is known about its image, which templates follow from that, and its status.
 *
 * The image is not inspected; what an inspection would find can be given in spec.imageMetadata, and the templates that it
 * recommends are created. A model without it is as ready as the templates that users wrote for it. Pure. */
#ifndef FLYBALL_MODEL_CORE_H
#define FLYBALL_MODEL_CORE_H

#include "runtimeconfig_spec.h"

/* Templates of a model by state. */
struct aim_model_templates {
    size_t ready, waiting, bad; /* bad: Degraded, Failed or NotAvailable */
};

void aim_model_count_template(struct aim_model_templates *counts,
                              str word); /* `word`: status.status of the template */

struct aim_model_facts {
    const struct json *object;
    bool config_missing;
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

/* The recommended deployments for which templates are created; NULL: none. */
const struct json *aim_model_deployments(const struct json *model,
                                         const struct runtimeconfig_spec *config);
/* The template of one of them; `group` is the domain of labels. */
struct json *aim_model_template(struct arena *a, const char *group, const struct json *model,
                                const struct json *deployment);

/* Why a service cannot use a model with this status; NULL: it can. */
const char *aim_model_unready_reason(str word); /* ModelPending, ModelProgressing, ... */

#endif
