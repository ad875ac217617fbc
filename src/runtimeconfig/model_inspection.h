/* Inspection of the image of a model: which credentials apply, the question to the registry, and when it is asked again.
 * The answer becomes status.imageMetadata. */
#ifndef FLYBALL_MODEL_INSPECTION_H
#define FLYBALL_MODEL_INSPECTION_H

#include "consumer.h"
#include "model_core.h"

struct aim_inspection; /* of one model */

/* Flags of the inspector; NULL at the end. */
#define AIM_INSPECTION_SETTINGS                                                                    \
    { "inspect-images", "true", "Read the labels of model images from their registries" },         \
        { "registry-plain-http", "",                                                               \
          "Registries (host:port, separated by commas, * matches) to reach without TLS" },         \
        { "registry-mirror", "",                                                                   \
          "Mirrors of registries: host=URL, separated by commas; asked without credentials" },     \
        { "registry-allow-private", "",                                                            \
          "Registries (as above) whose addresses may be private or loopback (default: none)" },    \
        { "registry-ca-file", "",                                                                  \
          "Certificate authorities of registries (default: those of the system)" }

/* Starts the inspector, unless inspection is disabled. */
int aim_inspection_start(struct aim *aim, err_t *e);
void aim_inspection_stop(struct aim *aim);

/* The model with the metadata that count now as status.imageMetadata, and what is known of its image in `f`. Starts an
 * inspection if one is due; its end enqueues the model. Lives in the turn's arena. */
const struct json *aim_inspection_turn(struct aim_turn *t, struct aim_model_facts *f);

void aim_inspection_free(struct aim_inspection *i); /* NULL is fine */

#endif
