/* The kinds of AIM and of its environment, as data. AIM exists in two API groups, by generation: aim.silogen.ai and
 * aim.eai.amd.com. The group is chosen at startup; labels and finalizers use it as their domain. */
#ifndef FLYBALL_AIM_KINDS_H
#define FLYBALL_AIM_KINDS_H

#include "../kube/resource.h"

#define AIM_GROUP "aim.silogen.ai"
#define AIM_GROUP_NEWER "aim.eai.amd.com"

enum aim_kind {
    AIM_SERVICE, /* the kinds that name a runtime configuration come first */
    AIM_MODEL,
    AIM_CLUSTER_MODEL,
    AIM_TEMPLATE,
    AIM_CLUSTER_TEMPLATE,
    AIM_TEMPLATE_CACHE,
    AIM_MODEL_CACHE, /* created by AIM_TEMPLATE_CACHE, as is AIM_ARTIFACT */
    AIM_ARTIFACT,
    AIM_MODEL_SOURCE, /* names no configuration, but is reconciled like the others */
    AIM_CONSUMER_N,
    AIM_CONFIG = AIM_CONSUMER_N,
    AIM_CLUSTER_CONFIG,
    AIM_KIND_N
};

struct aim_kinds {
    const char *group;
    struct resource at[AIM_KIND_N]; /* by enum aim_kind */
};

/* NULL: not one of the two. */
const struct aim_kinds *aim_kinds(const char *group);

extern const struct resource aim_resource_httproutes, aim_resource_gateways; /* Gateway API v1 */

#endif
