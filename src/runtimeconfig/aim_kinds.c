/* The table of kinds, once per API group: see aim_kinds.h. */
#include "aim_kinds.h"

#define KINDS(domain)                                                                              \
    {                                                                                              \
        domain,                                                                                    \
        {                                                                                          \
            [AIM_SERVICE] = { domain, "v1alpha1", "aimservices", "AIMService", true },             \
            [AIM_MODEL] = { domain, "v1alpha1", "aimmodels", "AIMModel", true },                   \
            [AIM_CLUSTER_MODEL] = { domain, "v1alpha1", "aimclustermodels", "AIMClusterModel",     \
                                    false },                                                       \
            [AIM_TEMPLATE] = { domain, "v1alpha1", "aimservicetemplates", "AIMServiceTemplate",    \
                               true },                                                             \
            [AIM_CLUSTER_TEMPLATE] = { domain, "v1alpha1", "aimclusterservicetemplates",           \
                                       "AIMClusterServiceTemplate", false },                       \
            [AIM_TEMPLATE_CACHE] = { domain, "v1alpha1", "aimtemplatecaches", "AIMTemplateCache",  \
                                     true },                                                       \
            [AIM_CONFIG] = { domain, "v1alpha1", "aimruntimeconfigs", "AIMRuntimeConfig", true },  \
            [AIM_CLUSTER_CONFIG] = { domain, "v1alpha1", "aimclusterruntimeconfigs",               \
                                     "AIMClusterRuntimeConfig", false },                           \
            [AIM_MODEL_CACHE] = { domain, "v1alpha1", "aimmodelcaches", "AIMModelCache", true },   \
            [AIM_ARTIFACT] = { domain, "v1alpha1", "aimartifacts", "AIMArtifact", true },          \
            [AIM_MODEL_SOURCE] = { domain, "v1alpha1", "aimclustermodelsources",                   \
                                   "AIMClusterModelSource", false },                               \
        },                                                                                         \
    }

static const struct aim_kinds older = KINDS(AIM_GROUP), newer = KINDS(AIM_GROUP_NEWER);

const struct resource aim_resource_httproutes = { "gateway.networking.k8s.io", "v1", "httproutes",
                                                  "HTTPRoute", true };
const struct resource aim_resource_gateways = { "gateway.networking.k8s.io", "v1", "gateways",
                                                "Gateway", true };

const struct aim_kinds *aim_kinds(const char *group)
{
    return !strcmp(group, older.group) ? &older : !strcmp(group, newer.group) ? &newer : NULL;
}
