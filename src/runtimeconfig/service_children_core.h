/* What an AIMService brings into being: its InferenceService, and where they are wanted a model for its image, a
 * template derived by overrides, a template cache, and a volume of its own.
 *
 * Each function gives one object as it should be, for server-side apply; owners are set by who applies. Pure: texts and
 * trees live in the arena. */
#ifndef FLYBALL_SERVICE_CHILDREN_CORE_H
#define FLYBALL_SERVICE_CHILDREN_CORE_H

#include "runtimeconfig_spec.h"

#define SERVICE_CACHE_ROOT "/workspace/model-cache"

/* What it is made from: whole objects, borrowed. */
struct aim_service_basis {
    const char *group;                       /* of AIM: the domain of labels */
    const struct json *service;              /* AIMService */
    const struct json *template;             /* the one that is used; NULL: none yet */
    const struct json *model;                /* the template's; NULL: none */
    const struct runtimeconfig_spec *config; /* that governs */
    const struct runtimeconfig_spec *own;    /* of the service */
};

/* ---- what the service asks for */

str aim_service_model_ref(const struct json *service);    /* spec.model.ref, or its newer name */
str aim_service_model_image(const struct json *service);  /* spec.model.image */
str aim_service_template_ref(const struct json *service); /* spec.templateRef, or its newer name */
bool aim_service_wants_cache(const struct json *service); /* cacheModel, or caching.mode */
const struct json *aim_service_overrides(const struct json *service); /* NULL: none */

/* ---- precedence of storage settings: the service's own, then the configuration's, then nothing or 10 % */

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
/* The storage that a live InferenceService has, if it was made in that mode: a cache that is away for a moment must
 * not take the volumes from under a running service. */
bool aim_service_read_storage(struct arena *a, const char *group,
                              const struct json *inference_service, const char *mode,
                              struct aim_service_storage *ret);

/* AIMModel for an image that nobody described. */
struct json *aim_service_model(struct arena *a, const struct aim_service_basis *b);
/* The template `base` with the service's overrides. */
struct json *aim_service_derived_template(struct arena *a, const struct aim_service_basis *b,
                                          const struct json *base);
struct json *aim_service_template_cache(struct arena *a, const struct aim_service_basis *b);
/* The volume of a service without a cache; NULL when the size of a source is not known. */
struct json *aim_service_volume(struct arena *a, const struct aim_service_basis *b);

/* ---- shared with the other children */

/* Sources of a template: what it found out, else what its spec says. */
const struct json *aim_service_sources(const struct json *template);
/* Sum of their sizes in bytes; -1 when one is not known. */
int64_t aim_service_sources_bytes(const struct json *sources);
/* A PersistentVolumeClaim for many pods; an empty class leaves it to the cluster. */
struct json *aim_service_claim_spec(struct arena *a, str storage_class, int64_t bytes);
/* Copies labels whose keys match a pattern of the configuration's labelPropagation; those that are there stay. */
void aim_service_copy_labels(struct arena *a, const struct runtimeconfig_spec *config,
                             const struct json *parent, struct json *child);
/* Two lists of objects by the member `name`: those of `over` win, the order is `under` first. */
struct json *aim_service_merge_named(struct arena *a, const struct json *under,
                                     const struct json *over);

#endif
