/* See resource.h. Paths: /api/VERSION for the core group, /apis/GROUP/VERSION for all others. */
#include "resource.h"

#include "../net/http.h"

const struct resource resource_pods = { "", "v1", "pods", "Pod", true };
const struct resource resource_nodes = { "", "v1", "nodes", "Node", false };
const struct resource resource_namespaces = { "", "v1", "namespaces", "Namespace", false };
const struct resource resource_configmaps = { "", "v1", "configmaps", "ConfigMap", true };
const struct resource resource_secrets = { "", "v1", "secrets", "Secret", true };
const struct resource resource_service_accounts = { "", "v1", "serviceaccounts", "ServiceAccount",
                                                    true };
const struct resource resource_services = { "", "v1", "services", "Service", true };
const struct resource resource_events = { "", "v1", "events", "Event", true };
const struct resource resource_leases = { "coordination.k8s.io", "v1", "leases", "Lease", true };
const struct resource resource_deployments = { "apps", "v1", "deployments", "Deployment", true };
const struct resource resource_statefulsets = { "apps", "v1", "statefulsets", "StatefulSet", true };
const struct resource resource_replicasets = { "apps", "v1", "replicasets", "ReplicaSet", true };
const struct resource resource_hpas = { "autoscaling", "v2", "horizontalpodautoscalers",
                                        "HorizontalPodAutoscaler", true };
const struct resource resource_crds = { "apiextensions.k8s.io", "v1", "customresourcedefinitions",
                                        "CustomResourceDefinition", false };

void resource_api_version(const struct resource *r, struct buf *out)
{
    if (*r->group)
        buf_printf(out, "%s/", r->group);
    buf_put(out, str_c(r->version));
}

static void put_part(struct buf *out, str part)
{
    buf_putc(out, '/');
    uri_encode(out, part);
}

void resource_path(const struct resource *r, str ns, str name, str subresource, struct buf *out)
{
    buf_put(out, *r->group ? S("/apis/") : S("/api/"));
    resource_api_version(r, out);
    if (r->namespaced && ns.n) {
        buf_put(out, S("/namespaces"));
        put_part(out, ns);
    }
    put_part(out, str_c(r->plural));
    if (name.n)
        put_part(out, name);
    if (subresource.n)
        put_part(out, subresource);
}
