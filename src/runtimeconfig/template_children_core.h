/* What a template brings into being: the ServingRuntime that KServe runs, and where it is wanted a cache. Pure. */
#ifndef FLYBALL_TEMPLATE_CHILDREN_CORE_H
#define FLYBALL_TEMPLATE_CHILDREN_CORE_H

#include "runtimeconfig_spec.h"

struct aim_template_basis {
    const char *group;           /* of AIM: the domain of labels */
    const struct json *template; /* its spec */
    const struct json *profile;  /* what is known of how it runs */
    const struct json *model;    /* the one it serves */
    const struct runtimeconfig_spec *config;
};

/* (Cluster)ServingRuntime of the template's name. */
struct json *aim_template_serving_runtime(struct arena *a, const struct aim_template_basis *b);
/* AIMTemplateCache of the template's name, for one that has caching enabled; NULL: it has not. */
struct json *aim_template_cache(struct arena *a, const struct aim_template_basis *b);

#endif
