/* API resources. A resource is data, not code; features declare their own as constants:
 *
 *     static const struct resource scalers = { "sarabala.io", "v1alpha1", "smarthorizontalpodautoscalers",
 *                                              "SmartHorizontalPodAutoscaler", true };
 *
 * Resources that several features use are declared here. For kinds known only at run time (the scale
 * target of a user's object) see kube_discover() in client.h. */
#ifndef FLYBALL_RESOURCE_H
#define FLYBALL_RESOURCE_H

#include "../base/buf.h"

struct resource {
    const char *group; /* "" for the core group */
    const char *version;
    const char *plural; /* as in the path */
    const char *kind;
    bool namespaced;
};

extern const struct resource resource_pods;
extern const struct resource resource_nodes;
extern const struct resource resource_namespaces;
extern const struct resource resource_configmaps;
extern const struct resource resource_secrets;
extern const struct resource resource_service_accounts;
extern const struct resource resource_services;
extern const struct resource resource_events;
extern const struct resource resource_leases;
extern const struct resource resource_deployments;
extern const struct resource resource_statefulsets;
extern const struct resource resource_replicasets;
extern const struct resource resource_hpas; /* autoscaling/v2 */
extern const struct resource resource_crds;

/* "v1" or "apps/v1". */
void resource_api_version(const struct resource *r, struct buf *out);

/* "/apis/apps/v1/namespaces/web/deployments/front/scale". Empty parts are omitted: no `ns` is the
 * whole cluster, no `name` the collection. Parts are percent-encoded. */
void resource_path(const struct resource *r, str ns, str name, str subresource, struct buf *out);

#endif
