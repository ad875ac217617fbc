/* The objects that a template creates: the ServingRuntime that KServe runs and, if requested, a cache. Pure. */
#ifndef FLYBALL_TEMPLATE_CHILDREN_CORE_H
#define FLYBALL_TEMPLATE_CHILDREN_CORE_H

#include "runtimeconfig_spec.h"

struct aim_template_basis {
    const char *group;           /* API group of AIM: the domain of labels */
    const struct json *template; /* the template object */
    const struct json *profile;  /* its profile: GPU, metric, precision */
    const struct json *model;    /* the model that it serves */
    const struct runtimeconfig_spec *config;
};

/* (Cluster)ServingRuntime of the template's name. */
struct json *aim_template_serving_runtime(struct arena *a, const struct aim_template_basis *b);
/* AIMTemplateCache of the template's name; NULL if caching is not enabled. */
struct json *aim_template_cache(struct arena *a, const struct aim_template_basis *b);

#endif
