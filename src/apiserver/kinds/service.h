/* Shared by service.c and service_allocate.c. There is one address family, IPv4, and one range; nothing routes
 * to the addresses here. */
#ifndef FLYBALL_SERVICE_H
#define FLYBALL_SERVICE_H

#include "kind_hooks.h"

enum { NODE_PORT_FIRST = 30000, NODE_PORTS = 2768 }; /* kube-apiserver's default range */

static inline str kind_service_type(const struct json *object)
{
    return json_text(json_at(object, "spec", "type", NULL));
}

static inline bool kind_service_is_external_name(const struct json *object)
{
    return str_eqc(kind_service_type(object), "ExternalName");
}

static inline bool kind_service_has_node_ports(const struct json *object)
{
    return str_eqc(kind_service_type(object), "NodePort") ||
           str_eqc(kind_service_type(object), "LoadBalancer");
}

/* True if the service can be reached from outside the cluster. */
static inline bool kind_service_is_external(const struct json *object)
{
    return kind_service_has_node_ports(object) ||
           (str_eqc(kind_service_type(object), "ClusterIP") &&
            json_len(json_at(object, "spec", "externalIPs", NULL)));
}

static inline bool kind_service_is_headless(const struct json *object)
{
    return str_eqc(json_text(json_at(object, "spec", "clusterIP", NULL)), "None");
}

/* The prepare hook: keeps, assigns or refuses addresses and ports. */
void kind_service_prepare(const struct kind_change *c, struct kind_env *env,
                          struct kind_fault *fault);

#endif
