/* What the two files about services share. One address family, IPv4, from one range: enough to name a
 * service; nothing routes to it here. */
#ifndef FLYBALL_SERVICE_H
#define FLYBALL_SERVICE_H

#include "kind_hooks.h"

enum { NODE_PORT_FIRST = 30000, NODE_PORTS = 2768 };

static inline str service_type(const struct json *object)
{
    return json_text(json_at(object, "spec", "type", NULL));
}

static inline bool service_is_external_name(const struct json *object)
{
    return str_eqc(service_type(object), "ExternalName");
}

static inline bool service_has_node_ports(const struct json *object)
{
    return str_eqc(service_type(object), "NodePort") ||
           str_eqc(service_type(object), "LoadBalancer");
}

/* Comes traffic from beyond the cluster to it? */
static inline bool service_is_outside(const struct json *object)
{
    return service_has_node_ports(object) ||
           (str_eqc(service_type(object), "ClusterIP") &&
            json_len(json_at(object, "spec", "externalIPs", NULL)));
}

static inline bool service_is_headless(const struct json *object)
{
    return str_eqc(json_text(json_at(object, "spec", "clusterIP", NULL)), "None");
}

/* Addresses and ports: kept, given, or refused as not free. */
void service_prepare(const struct kind_change *c, struct kind_env *env, struct kind_fault *fault);

#endif
