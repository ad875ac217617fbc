/* The objects that an AIMService creates: its InferenceService and, if needed, a model for its image, a template
 * derived by overrides, a template cache, and a volume of its own.
 *
 * Each function returns one desired object for server-side apply; the caller sets the owner. Pure: texts and trees live
 * in the arena. */
#ifndef FLYBALL_SERVICE_CHILDREN_CORE_H
#define FLYBALL_SERVICE_CHILDREN_CORE_H

#include "runtimeconfig_spec.h"

#define SERVICE_CACHE_ROOT "/workspace/model-cache"

/* The input: whole objects, borrowed. */
struct aim_service_basis {
    const char *group;                       /* API group of AIM: the domain of labels */
    const struct json *service;              /* AIMService */
    const struct json *template;             /* the template in use; NULL: none yet */
    const struct json *model;                /* the model of the template; NULL: none */
    const struct runtimeconfig_spec *config; /* settings that apply */
    const struct runtimeconfig_spec *own;    /* settings of the service itself */
};

/* ---- fields of the service */

str aim_service_model_ref(const struct json *service);     /* spec.model.ref, or its newer name */
str aim_service_model_image(const struct json *service);   /* spec.model.image */
str aim_service_template_ref(const struct json *service);  /* spec.templateRef, or its newer name */
bool aim_service_wants_cache(const struct json *service);  /* cacheModel, or caching.mode */
bool aim_service_is_dedicated(const struct json *service); /* its cache is its own */
str aim_service_cache_template(const struct json *cache);  /* that an AIMTemplateCache is for */
const struct json *aim_service_overrides(const struct json *service); /* NULL: none */

/* ---- storage settings: of the service, else of the configuration, else unset or 10 % */

str aim_service_storage_class(const struct aim_service_basis *b);
int64_t aim_service_headroom(const struct aim_service_basis *b);

/* ---- children */

struct aim_service_mount {
    str claim; /* a PersistentVolumeClaim */
    str path;
};

struct aim_service_storage {
    const char *mode; /* "template" or "volume"; NULL: none */
    const struct aim_service_mount *mounts;
    size_t n;
};

struct json *aim_service_inference_service(struct arena *a, const struct aim_service_basis *b,
                                           const struct aim_service_storage *storage);
/* The storage of a live InferenceService that was created in this mode: a cache that is unavailable for a moment must
 * not remove the volumes of a running service. */
bool aim_service_read_storage(struct arena *a, const char *group,
                              const struct json *inference_service, const char *mode,
                              struct aim_service_storage *ret);

/* AIMModel for an image without a model. */
struct json *aim_service_model(struct arena *a, const struct aim_service_basis *b);
/* The AIMModel for spec.model.custom. */
struct json *aim_service_custom_model(struct arena *a, const struct aim_service_basis *b);
/* Does a model have the image and the sources that spec.model.custom describes? */
bool aim_service_is_custom_model(const struct json *custom, const struct json *model);
/* The template `base` with the service's overrides. */
struct json *aim_service_derived_template(struct arena *a, const struct aim_service_basis *b,
                                          const struct json *base);
struct json *aim_service_template_cache(struct arena *a, const struct aim_service_basis *b);
/* The volume of a service without a cache; NULL if the size of a source is unknown. */
struct json *aim_service_volume(struct arena *a, const struct aim_service_basis *b);

/* ---- shared with the other children */

/* Model sources of a template: from its status, else from its spec. */
const struct json *aim_service_sources(const struct json *template);
/* The model of a source: its modelId, or its older name. */
str aim_service_source_id(const struct json *source);
/* Sum of their sizes in bytes; -1 if one is unknown. */
int64_t aim_service_sources_bytes(const struct json *sources);
/* A ReadWriteMany claim; an empty class selects the cluster's default. */
struct json *aim_service_claim_spec(struct arena *a, str storage_class, int64_t bytes);
/* Copies labels that match the configuration's labelPropagation; existing labels stay. */
void aim_service_copy_labels(struct arena *a, const struct runtimeconfig_spec *config,
                             const struct json *parent, struct json *child);
/* Merges two lists of objects by `name`: items of `over` win; the order of `under` comes first. */
struct json *aim_service_merge_named(struct arena *a, const struct json *under,
                                     const struct json *over);

#endif
