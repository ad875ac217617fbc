/* A model: what is known of its image, which templates follow from that, and how the model is.
 *
 * What an inspection of the image would find can be given by hand in spec.imageMetadata; the templates that it
 * recommends are made from it. A model without such knowledge is as good as the templates that users wrote for it. Pure. */
#ifndef FLYBALL_MODEL_CORE_H
#define FLYBALL_MODEL_CORE_H

#include "runtimeconfig_spec.h"

/* How the templates of a model are, counted. */
struct aim_model_templates {
    size_t ready, waiting, bad; /* bad: Degraded, Failed or NotAvailable */
};

void aim_model_count_template(struct aim_model_templates *counts, str word); /* its status.status */

struct aim_model_facts {
    const struct json *object;
    bool config_missing;
    str config_message;
    const struct runtimeconfig_spec *config;
    struct aim_model_templates made;  /* from recommendations */
    struct aim_model_templates other; /* by users */
};

struct aim_model_state {
    const char *status; /* Pending, Progressing, Ready, Degraded, Failed */
    const char *reason;
    str message;
    bool extracted; /* the condition MetadataExtracted */
    const char *extracted_reason;
    str extracted_message;
    const struct json *metadata; /* what is known of the image; NULL: nothing */
};

struct aim_model_state aim_model_state(struct arena *a, const struct aim_model_facts *facts);

/* The deployments that the image recommends and that templates are to be made of; NULL: none. */
const struct json *aim_model_deployments(const struct json *model,
                                         const struct runtimeconfig_spec *config);
/* The template of one of them; `group` is the domain of labels. */
struct json *aim_model_template(struct arena *a, const char *group, const struct json *model,
                                const struct json *deployment);

/* What keeps a service from using a model, by the model's status; NULL: nothing. */
const char *aim_model_unready_reason(str word); /* ModelPending, ModelProgressing, ... */

#endif
