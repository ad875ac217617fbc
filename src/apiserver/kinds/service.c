/* Services: defaults and validation. service_allocate.c assigns cluster IPs and node ports.
 *
 * Most rules depend on the type of the service:
 *
 *                  cluster IP   node ports   load balancer fields   externalName
 *   ClusterIP      yes or None  no           no                     ignored
 *   NodePort       yes          yes          no                     ignored
 *   LoadBalancer   yes          yes          yes                    ignored
 *   ExternalName   no           no           no                     required
 *
 * There is one address family, IPv4. Bounds, enums and formats of single fields are declared in
 * types/core.types. */
#include "service.h"

#include "../schema/format.h"

/* Defaults that depend on the type or on other fields. */
static void fill_service(struct arena *a, struct json *object)
{
    struct json *spec = json_make(a, object, "spec", NULL);
    const struct json *ports = json_get(spec, "ports");
    for (uint32_t i = 0; i < json_len(ports); i++) {
        struct json *port = ports->items[i], *target = json_get(port, "targetPort");
        bool unset = !target || (json_is(target, JSON_INT) && !target->integer) ||
                     (json_is(target, JSON_STR) && !target->n);
        if (json_is(port, JSON_OBJ) && unset)
            json_set_int(a, port, "targetPort", json_int(json_get(port, "port"), 0));
    }
    if (str_eqc(json_text(json_get(spec, "sessionAffinity")), "None"))
        json_del(spec, S("sessionAffinityConfig"));
    else if (str_eqc(json_text(json_get(spec, "sessionAffinity")), "ClientIP")) {
        struct json *client = json_make(a, spec, "sessionAffinityConfig", "clientIP", NULL);
        if (!json_get(client, "timeoutSeconds"))
            json_set_int(a, client, "timeoutSeconds", 10800);
    }
    if (kind_service_is_external(object) && !json_get(spec, "externalTrafficPolicy"))
        json_set_str(a, spec, "externalTrafficPolicy", S("Cluster"));
    if (!kind_service_is_external_name(object) && !json_get(spec, "internalTrafficPolicy"))
        json_set_str(a, spec, "internalTrafficPolicy", S("Cluster"));
    if (!str_eqc(kind_service_type(object), "LoadBalancer"))
        return;
    if (!json_get(spec, "allocateLoadBalancerNodePorts"))
        json_set_bool(a, spec, "allocateLoadBalancerNodePorts", true);
    const struct json *ingress = json_at(object, "status", "loadBalancer", "ingress", NULL);
    for (uint32_t i = 0; i < json_len(ingress); i++)
        if (json_get(ingress->items[i], "ip") && !json_get(ingress->items[i], "ipMode"))
            json_set_str(a, ingress->items[i], "ipMode", S("VIP"));
}

/* ---- rules */

/* Only externally reachable services have node ports, and those are in one range. */
static void check_node_ports(const struct json *object, const struct json *ports,
                             const struct field_path *up, struct field_errors *errors)
{
    bool valid_so_far = errors->n == 0; /* the range is checked on valid services only */
    for (uint32_t i = 0; i < json_len(ports); i++) {
        struct field_path at = { AT_INDEX(up, i), .key = S("nodePort") };
        const struct json *port = json_get(ports->items[i], "nodePort");
        int64_t number = json_int(port, 0);
        if (number && !kind_service_has_node_ports(object))
            field_forbidden(errors, &at, "may not be used when `type` is 'ClusterIP'");
        else if (number && valid_so_far &&
                 (number < NODE_PORT_FIRST || number >= NODE_PORT_FIRST + NODE_PORTS))
            field_invalid(errors, &at, port, "must be between %d and %d", NODE_PORT_FIRST,
                          NODE_PORT_FIRST + NODE_PORTS - 1);
    }
}

/* Names and numbers are unique; the earlier of two duplicates decides which error comes first. */
static void check_ports(const struct json *ports, const struct field_path *up,
                        struct field_errors *errors)
{
    struct seen names = seen_new(errors->arena, 1), numbers = seen_new(errors->arena, 2);
    for (uint32_t i = 0; i < json_len(ports); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *name = json_get(ports->items[i], "name");
        if (!json_text(name).n && json_len(ports) > 1)
            field_required(errors, AT(&at, "name"), NULL);
        else if (json_text(name).n && format_dns_label(json_text(name)))
            field_invalid(errors, AT(&at, "name"), name, "%s", format_dns_label(json_text(name)));
        const struct seen_key *named = json_text(name).n ? seen_value(&names, name, i) : NULL;
        const struct seen_key *numbered =
            seen_put(&numbers,
                     (const struct json *const[]){ json_get(ports->items[i], "port"),
                                                   json_get(ports->items[i], "protocol") },
                     i);
        bool number_first = named && numbered && numbered->place < named->place;
        if (number_first)
            field_duplicate(errors, &at, ports->items[i]);
        if (named)
            field_duplicate(errors, AT(&at, "name"), name);
        if (numbered && !number_first)
            field_duplicate(errors, &at, ports->items[i]);
    }
}

/* An ExternalName needs a host name and has no address. */
static void check_external_name(const struct json *spec, const struct field_path *at,
                                struct field_errors *errors)
{
    const struct json *name = json_get(spec, "externalName");
    str text = json_text(name);
    if (text.n && text.p[text.n - 1] == '.')
        text.n--;
    if (!text.n)
        field_required(errors, AT(at, "externalName"), NULL);
    else if (format_dns_subdomain(text))
        field_invalid(errors, AT(at, "externalName"), name, "%s", format_dns_subdomain(text));
    if (json_get(spec, "clusterIP"))
        field_forbidden(errors, AT(at, "clusterIPs"),
                        "may not be set when `type` is 'ExternalName'");
}

/* Loopback, link-local, multicast and unspecified addresses. */
static bool is_local_address(str ip)
{
    static const char *const ranges[] = { "127.", "169.254.", "224.0.0.", "fe80:" };
    static const char *const single[] = { "0.0.0.0", "::", "::1" };
    for (size_t i = 0; i < countof(ranges); i++)
        if (str_starts(ip, str_c(ranges[i])))
            return true;
    for (size_t i = 0; i < countof(single); i++)
        if (str_eqc(ip, single[i]))
            return true;
    return false;
}

/* externalIPs, and the policy that only external traffic needs. */
static void check_external_traffic(const struct json *object, const struct json *spec,
                                   const struct field_path *at, struct field_errors *errors)
{
    const struct json *addresses = json_get(spec, "externalIPs");
    const struct json *policy = json_get(spec, "externalTrafficPolicy");
    for (uint32_t i = 0; i < json_len(addresses); i++)
        if (!format_is_ip(json_text(addresses->items[i])))
            field_invalid(errors, AT_INDEX(AT(at, "externalIPs"), i), addresses->items[i],
                          "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
        else if (is_local_address(json_text(addresses->items[i])))
            field_invalid(errors, AT_INDEX(AT(at, "externalIPs"), i), addresses->items[i],
                          "may not be in the loopback, link-local or link-local multicast range");
    if (policy && !kind_service_has_node_ports(object) && !json_len(addresses))
        field_invalid(errors, AT(at, "externalTrafficPolicy"), policy,
                      "may only be set for externally-accessible services");
}

/* Fields that only a LoadBalancer may have. */
static void check_load_balancer(const struct json *object, const struct json *spec,
                                const struct field_path *at, struct field_errors *errors)
{
    const struct json *ranges = json_get(spec, "loadBalancerSourceRanges");
    const struct json *class = json_get(spec, "loadBalancerClass");
    struct field_path in = { at, .key = S("LoadBalancerSourceRanges") };
    const struct json *health = json_get(spec, "healthCheckNodePort");
    bool local = str_eqc(json_text(json_get(spec, "externalTrafficPolicy")), "Local");
    if (json_int(health, 0) && !(local && str_eqc(kind_service_type(object), "LoadBalancer")))
        field_invalid(
            errors, AT(at, "healthCheckNodePort"), health,
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is "
            "'Local'");
    for (uint32_t i = 0; i < json_len(ranges); i++)
        if (!format_matches(S("cidr"), str_trim(json_text(ranges->items[i]))))
            field_invalid(errors, AT_INDEX(&in, i), ranges->items[i],
                          "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)");
    if (str_eqc(kind_service_type(object), "LoadBalancer")) {
        if (class)
            kind_check_qualified(class, AT(at, "loadBalancerClass"), errors);
        return;
    }
    if (json_len(ranges))
        field_forbidden(errors, &in, "may only be used when `type` is 'LoadBalancer'");
    if (json_get(spec, "allocateLoadBalancerNodePorts"))
        field_forbidden(errors, AT(at, "allocateLoadBalancerNodePorts"),
                        "may only be used when `type` is 'LoadBalancer'");
    if (class)
        field_forbidden(errors, AT(at, "loadBalancerClass"),
                        "may only be used when `type` is 'LoadBalancer'");
}

/* This cluster has IPv4 only; a headless service without a selector may name both families. */
static void check_single_stack(const struct kind_change *c, const struct json *spec,
                               const struct field_path *at, struct field_errors *errors)
{
    const struct json *family = json_item(json_get(spec, "ipFamilies"), 0);
    const struct json *policy = json_get(spec, "ipFamilyPolicy");
    const struct json *address = json_get(spec, "clusterIP");
    if (kind_service_is_external_name(c->object) ||
        (kind_service_is_headless(c->object) && !json_len(json_get(spec, "selector"))))
        return;
    if (str_eqc(json_text(policy), "RequireDualStack"))
        field_invalid(errors, AT(at, "ipFamilyPolicy"), policy,
                      "this cluster is not configured for dual-stack services");
    if (str_eqc(json_text(policy), "SingleStack") && json_len(json_get(spec, "ipFamilies")) > 1)
        field_invalid(errors, AT(at, "ipFamilyPolicy"), policy,
                      "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families "
                      "are specified");
    if (!str_eqc(json_text(family), "IPv6"))
        return;
    if (!c->old && format_is_ipv6(json_text(address)))
        field_invalid(errors, AT_INDEX(AT(at, "clusterIPs"), 0), address,
                      "IPv6 is not configured on this cluster");
    else if (!c->old)
        field_invalid(errors, AT_INDEX(AT(at, "ipFamilies"), 0), family,
                      "not configured on this cluster");
    else if (!format_is_ipv6(json_text(address)))
        field_invalid(errors, AT_INDEX(AT(at, "clusterIPs"), 0), address,
                      "expected an IPv6 value as indicated by `ipFamilies[0]`");
}

/* A status write checks the status only. */
static void validate_service(const struct kind_change *c, struct kind_env *env UNUSED,
                             struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("spec") };
    const struct json *spec = json_get(c->object, "spec");
    const struct json *address = json_get(spec, "clusterIP");
    const struct json *ports = json_get(spec, "ports");
    if (c->sub == KIND_STATUS) {
        struct field_path balancer = { AT(NULL, "status"), .key = S("loadBalancer") };
        const struct json *ingress = json_at(c->object, "status", "loadBalancer", "ingress", NULL);
        if (!str_eqc(kind_service_type(c->object), "LoadBalancer") && json_len(ingress))
            field_forbidden(errors, AT(&balancer, "ingress"),
                            "may only be used when `type` is 'LoadBalancer'");
        return;
    }
    check_external_traffic(c->object, spec, &at, errors);
    kind_check_labels(json_get(spec, "selector"), AT(&at, "selector"), errors);
    if (kind_service_is_external_name(c->object)) {
        check_external_name(spec, &at, errors);
    } else {
        if (!json_len(ports) && !kind_service_is_headless(c->object))
            field_required(errors, AT(&at, "ports"), NULL);
        if (address && !kind_service_is_headless(c->object) && !format_is_ip(json_text(address)))
            field_invalid(errors, AT_INDEX(AT(&at, "clusterIPs"), 0), address,
                          "must be empty, 'None', or a valid IP address");
        if (kind_service_is_headless(c->object) && kind_service_has_node_ports(c->object))
            field_invalid(errors, AT_INDEX(AT(&at, "clusterIPs"), 0), address,
                          "may not be set to 'None' for LoadBalancer services");
    }
    check_load_balancer(c->object, spec, &at, errors);
    if (str_eqc(kind_service_type(c->old), "LoadBalancer") &&
        str_eqc(kind_service_type(c->object), "LoadBalancer") &&
        !json_eq(json_get(spec, "loadBalancerClass"),
                 json_at(c->old, "spec", "loadBalancerClass", NULL)))
        field_invalid(errors, AT(&at, "loadBalancerClass"), json_get(spec, "loadBalancerClass"),
                      "may not change once set");
    if (c->old && json_get(spec, "loadBalancerClass") &&
        !str_eqc(kind_service_type(c->object),
                 "LoadBalancer")) /* kube-apiserver reports it twice */
        field_forbidden(errors, AT(&at, "loadBalancerClass"),
                        "may only be used when `type` is 'LoadBalancer'");
    check_ports(ports, AT(&at, "ports"), errors);
    check_single_stack(c, spec, &at, errors);
    check_node_ports(c->object, ports, AT(&at, "ports"), errors);
    const struct json *was = json_at(c->old, "spec", "clusterIP", NULL);
    if (was && !kind_service_is_external_name(c->object) && !kind_service_is_external_name(c->old))
        if (!json_eq(was, address) &&
            (kind_service_is_headless(c->object) || format_is_ip(json_text(address))))
            field_invalid(errors, AT_INDEX(AT(&at, "clusterIPs"), 0), address,
                          "may not change once set");
}

const struct kind_hooks kind_hooks_service = {
    .name = format_dns_label,
    .fill = fill_service,
    .prepare = kind_service_prepare,
    .validate = validate_service,
    .metadata_twice = true,
};
