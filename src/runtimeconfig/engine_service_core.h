/* The components of an AIMService in the newer generation of AIM, from the objects that it depends on, and the replica
 * counts of its status. Pure. */
#ifndef FLYBALL_ENGINE_SERVICE_CORE_H
#define FLYBALL_ENGINE_SERVICE_CORE_H

#include "engine_core.h"

/* A model, template or cache that was found; name empty: none. */
struct aim_engine_ref {
    bool cluster;
    str name, status;
};

struct aim_engine_service_facts {
    const struct json *service;
    struct aim_engine_ref model, template, cache;
    struct aim_engine_error model_error, template_error, selection_error; /* class OK: none */
    bool selection_not_ready;  /* templates exist, none is ready */
    const struct json *config; /* effective runtime configuration; NULL: none */
    str config_missing;        /* the name of the one that does not exist; empty: none */
    const struct json *inference_service, *pods, *route, *hpa; /* NULL: do not exist */
    struct aim_engine_error inference_service_error, route_error;
    str inference_service_failure; /* text of that error */
    const struct json *events;     /* of the InferenceService: a list */
    bool as_original;              /* events count although the InferenceService is ready */
};

enum { ENGINE_SERVICE_COMPONENTS = 8 };

/* Fills `ret`, returns how many. */
size_t aim_engine_service_components(struct arena *a, const struct aim_engine_service_facts *f,
                                     struct aim_engine_component ret[ENGINE_SERVICE_COMPONENTS]);

struct aim_engine_replicas {
    int64_t min, max, current, desired;
};

struct aim_engine_replicas aim_engine_service_replicas(const struct json *service,
                                                       const struct json *hpa);
/* "2", or "2/3 (1-4)". */
str aim_engine_replicas_text(struct arena *a, const struct aim_engine_replicas *r);

/* The status word of a service: it starts and runs, where others progress and are ready. */
const char *aim_engine_service_word(enum aim_engine_state state);
/* Is a model to be created for the image or the sources in the service? */
bool aim_engine_service_creates_model(const struct aim_engine_service_facts *f);

#endif
