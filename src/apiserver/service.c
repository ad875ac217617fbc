/* Services: addresses, ports and what goes with each type. One address family, IPv4, from one range:
 * enough to name a service; nothing routes to it here. */
#include "formats.h"
#include "kind_hooks.h"

#include <arpa/inet.h>
#include <inttypes.h>

/* 10.96.0.0/16, the range most clusters use. */
enum { RANGE = 0x0a600000, RANGE_SIZE = 65536, RANGE_RESERVED = 256 };
enum { NODE_PORT_FIRST = 30000, NODE_PORTS = 2768 };

static str type_of(const struct json *object)
{
    return json_text(json_at(object, "spec", "type", NULL));
}

static bool is_external_name(const struct json *object)
{
    return str_eqc(type_of(object), "ExternalName");
}

static bool has_node_ports(const struct json *object)
{
    return str_eqc(type_of(object), "NodePort") || str_eqc(type_of(object), "LoadBalancer");
}

static bool is_headless(const struct json *object)
{
    return str_eqc(json_text(json_at(object, "spec", "clusterIP", NULL)), "None");
}

static void fill(struct arena *a, struct json *object)
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
    bool outside = has_node_ports(object) || (str_eqc(type_of(object), "ClusterIP") &&
                                              json_len(json_get(spec, "externalIPs")));
    if (outside && !json_get(spec, "externalTrafficPolicy"))
        json_set_str(a, spec, "externalTrafficPolicy", S("Cluster"));
    if (!is_external_name(object) && !json_get(spec, "internalTrafficPolicy"))
        json_set_str(a, spec, "internalTrafficPolicy", S("Cluster"));
    if (!str_eqc(type_of(object), "LoadBalancer"))
        return;
    if (!json_get(spec, "allocateLoadBalancerNodePorts"))
        json_set_bool(a, spec, "allocateLoadBalancerNodePorts", true);
    const struct json *ingress = json_at(object, "status", "loadBalancer", "ingress", NULL);
    for (uint32_t i = 0; i < json_len(ingress); i++)
        if (json_get(ingress->items[i], "ip") && !json_get(ingress->items[i], "ipMode"))
            json_set_str(a, ingress->items[i], "ipMode", S("VIP"));
}

/* ---- addresses */

static uint64_t start_of(const struct json *object)
{
    uint64_t hash = 1469598103934665603u;
    str uid = json_text(json_at(object, "metadata", "uid", NULL));
    for (size_t i = 0; i < uid.n; i++)
        hash = (hash ^ (unsigned char)uid.p[i]) * 1099511628211u;
    return hash;
}

static bool is_taken(const struct kind_env *env, str text)
{
    return env->service_holds && env->service_holds(env->context, text);
}

static bool address_taken(const struct kind_env *env, str address)
{
    return is_taken(env,
                    arena_printf(env->arena, "\"clusterIP\":\"" STR_FMT "\"", STR_ARG(address)));
}

/* Of traffic or of health: both are named so, and all have five digits. */
static bool node_port_taken(const struct kind_env *env, int64_t port)
{
    return is_taken(env, arena_printf(env->arena, "odePort\":%" PRId64, port));
}

/* The first free address from a place that the service's uid picks. */
static str choose_address(const struct kind_change *c, struct kind_env *env)
{
    uint64_t start = start_of(c->object);
    for (uint32_t i = 0; i < RANGE_SIZE - RANGE_RESERVED - 1; i++) {
        uint32_t host =
            RANGE_RESERVED + (uint32_t)((start + i) % (RANGE_SIZE - RANGE_RESERVED - 1));
        struct in_addr address = { htonl(RANGE + host) };
        char text[INET_ADDRSTRLEN];
        str shown = str_c(inet_ntop(AF_INET, &address, text, sizeof(text)));
        if (!address_taken(env, shown))
            return arena_str(env->arena, shown);
    }
    return S("");
}

static void set_addresses(struct arena *a, struct json *spec, str address)
{
    struct json *list = json_new_arr(a);
    json_push(a, list, json_new_str(a, address));
    json_set_str(a, spec, "clusterIP", address);
    json_set(a, spec, S("clusterIPs"), list);
}

/* Without an address and without pods to choose, nothing speaks against either family. */
static void set_both_families(struct arena *a, struct json *spec)
{
    struct json *families = json_new_arr(a);
    json_push(a, families, json_new_str(a, S("IPv4")));
    json_push(a, families, json_new_str(a, S("IPv6")));
    json_set(a, spec, S("ipFamilies"), families);
    json_set_str(a, spec, "ipFamilyPolicy", S("RequireDualStack"));
}

static void set_families(struct arena *a, struct json *spec, const struct json *old)
{
    static const char *const kept[] = { "ipFamilies", "ipFamilyPolicy" };
    for (size_t i = 0; i < countof(kept); i++) {
        const struct json *was = json_get(old, kept[i]);
        if (was && !json_get(spec, kept[i]))
            json_set(a, spec, str_c(kept[i]), json_copy(a, was));
    }
    if (str_eqc(json_text(json_get(spec, "clusterIP")), "None") &&
        !json_len(json_get(spec, "selector")) && !json_len(json_get(spec, "ipFamilies")) &&
        !json_get(spec, "ipFamilyPolicy")) {
        set_both_families(a, spec);
        return;
    }
    if (!json_len(json_get(spec, "ipFamilies"))) {
        struct json *families = json_new_arr(a);
        bool six = format_is_ipv6(json_text(json_get(spec, "clusterIP")));
        json_push(a, families, json_new_str(a, six ? S("IPv6") : S("IPv4")));
        json_set(a, spec, S("ipFamilies"), families);
    }
    if (!json_get(spec, "ipFamilyPolicy"))
        json_set_str(a, spec, "ipFamilyPolicy", S("SingleStack"));
}

static void refuse(struct kind_fault *fault)
{
    if (fault->errors.n)
        kind_fault_set(fault, 422, "Invalid", field_summary(fault->errors.arena, &fault->errors));
}

/* The first of the addresses is the address, if both are said. */
static void check_asked(const struct kind_change *c, const struct json *spec,
                        struct kind_fault *fault)
{
    const struct json *all = json_get(spec, "clusterIPs"), *address = json_get(spec, "clusterIP");
    struct field_path at = { NULL, .key = S("spec") };
    if (c->old || !json_len(all) || str_eq(json_text(json_item(all, 0)), json_text(address)))
        return;
    field_invalid(&fault->errors, AT(&at, "clusterIPs"), all, "first value must match `clusterIP`");
    refuse(fault);
}

/* An address that is asked for lies in the range and belongs to nobody. */
static void check_free(struct kind_env *env, const struct json *spec, str asked,
                       struct kind_fault *fault)
{
    struct in_addr address;
    struct json *all = json_get(spec, "clusterIPs"), *shown = json_new_arr(env->arena);
    if (inet_pton(AF_INET, arena_str(env->arena, asked).p, &address) != 1)
        return;
    uint32_t host = ntohl(address.s_addr) - RANGE;
    json_push(env->arena, shown, json_new_str(env->arena, asked));
    const struct field_path *at = AT(AT(NULL, "spec"), "clusterIPs");
    if (json_len(all) > 1 && format_is_ip(json_text(json_item(all, 1))) &&
        !format_is_ipv6(json_text(json_item(all, 1))))
        field_invalid(&fault->errors, at, all,
                      "may specify no more than one IP for each IP family");
    else if (host < 1 || host >= RANGE_SIZE - 1)
        field_invalid(&fault->errors, at, shown,
                      "failed to allocate IP " STR_FMT
                      ": the provided network does not match the current range",
                      STR_ARG(asked));
    else if (address_taken(env, asked))
        field_invalid(&fault->errors, at, shown,
                      "failed to allocate IP " STR_FMT ": provided IP is already allocated",
                      STR_ARG(asked));
    refuse(fault);
}

static void allocate_address(const struct kind_change *c, struct kind_env *env,
                             struct kind_fault *fault)
{
    struct json *spec = json_make(env->arena, c->object, "spec", NULL);
    str asked = json_text(json_get(spec, "clusterIP"));
    if (!asked.n)
        asked = json_text(json_item(json_get(spec, "clusterIPs"), 0));
    str was = json_text(json_at(c->old, "spec", "clusterIP", NULL));
    if (!asked.n && was.n)
        asked = was;
    if (!asked.n) {
        asked = choose_address(c, env);
        if (!asked.n)
            kind_fault_set(fault, 500, "InternalError", S("all service addresses are in use"));
    } else if (!str_eq(asked, was)) {
        check_free(env, spec, asked, fault);
    }
    check_asked(c, spec, fault);
    set_addresses(env->arena, spec, asked);
    set_families(env->arena, spec, is_external_name(c->old) ? NULL : json_get(c->old, "spec"));
}

static int64_t old_node_port(const struct json *old, uint32_t i)
{
    return json_int(json_get(json_item(json_at(old, "spec", "ports", NULL), i), "nodePort"), 0);
}

static bool has_node_port(const struct json *object, int64_t port)
{
    const struct json *ports = json_at(object, "spec", "ports", NULL);
    for (uint32_t i = 0; i < json_len(ports); i++)
        if (json_int(json_get(ports->items[i], "nodePort"), 0) == port)
            return true;
    return false;
}

/* A port that is asked for belongs to nobody else, and once a protocol to this service. */
static void check_node_port(const struct kind_change *c, struct kind_env *env, uint32_t i,
                            struct kind_fault *fault)
{
    const struct json *ports = json_at(c->object, "spec", "ports", NULL), *port = ports->items[i];
    const struct json *asked = json_get(port, "nodePort");
    bool taken =
        !has_node_port(c->old, json_int(asked, 0)) && node_port_taken(env, json_int(asked, 0));
    for (uint32_t j = 0; j < i; j++)
        taken |= json_eq(json_get(ports->items[j], "nodePort"), asked) &&
                 json_eq(json_get(ports->items[j], "protocol"), json_get(port, "protocol"));
    if (taken)
        field_invalid(&fault->errors, AT(AT_INDEX(AT(AT(NULL, "spec"), "ports"), i), "nodePort"),
                      asked, "provided port is already allocated");
    refuse(fault);
}

static int64_t choose_node_port(const struct kind_change *c, struct kind_env *env, size_t i)
{
    uint64_t start = start_of(c->object) + i;
    for (uint64_t j = 0; j < NODE_PORTS; j++) {
        int64_t candidate = NODE_PORT_FIRST + (int64_t)((start + j) % NODE_PORTS);
        if (!has_node_port(c->object, candidate) && !node_port_taken(env, candidate))
            return candidate;
    }
    return 0;
}

static void allocate_node_ports(const struct kind_change *c, struct kind_env *env,
                                struct kind_fault *fault)
{
    const struct json *ports = json_at(c->object, "spec", "ports", NULL);
    for (uint32_t i = 0; i < json_len(ports); i++) {
        if (json_int(json_get(ports->items[i], "nodePort"), 0)) {
            check_node_port(c, env, i, fault);
            continue;
        }
        int64_t port = old_node_port(c->old, i);
        if (!port && !(port = choose_node_port(c, env, i)))
            kind_fault_set(fault, 500, "InternalError", S("all node ports are in use"));
        json_set_int(env->arena, ports->items[i], "nodePort", port);
    }
}

/* What asks whether a balanced service is alive on a node comes to a port of its own. */
static void allocate_health_port(const struct kind_change *c, struct kind_env *env,
                                 struct kind_fault *fault)
{
    struct json *spec = json_make(env->arena, c->object, "spec", NULL);
    const struct json *was = json_at(c->old, "spec", "healthCheckNodePort", NULL);
    int64_t port = json_int(json_get(spec, "healthCheckNodePort"), 0), kept = json_int(was, 0);
    bool local = str_eqc(json_text(json_get(spec, "externalTrafficPolicy")), "Local");
    if (!port && local)
        json_set_int(env->arena, spec, "healthCheckNodePort",
                     kept ? kept : choose_node_port(c, env, json_len(json_get(spec, "ports"))));
    bool outside = port < NODE_PORT_FIRST || port >= NODE_PORT_FIRST + NODE_PORTS;
    if (!port || port == kept || (!outside && !node_port_taken(env, port)))
        return;
    kind_fault_set(fault, 500, "InternalError",
                   arena_printf(env->arena,
                                "Internal error occurred: failed to allocate requested "
                                "HealthCheck NodePort %" PRId64 ": %s",
                                port,
                                outside ? "provided port is not in the valid range. The range of "
                                          "valid ports is 30000-32767"
                                        : "provided port is already allocated"));
}

static void drop_unchanged(const struct kind_change *c, const char *const *keys)
{
    struct json *spec = json_get(c->object, "spec");
    for (; *keys; keys++)
        if (json_eq(json_get(spec, *keys), json_at(c->old, "spec", *keys, NULL)))
            json_del(spec, str_c(*keys));
}

/* What belonged to the old type of a service, and was not written anew, goes with it. */
static void drop_of_old_type(const struct kind_change *c)
{
    static const char *const of_cluster[] = {
        "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy", NULL
    };
    static const char *const of_outside[] = { "externalTrafficPolicy", "healthCheckNodePort",
                                              NULL };
    static const char *const of_balancer[] = { "allocateLoadBalancerNodePorts", "loadBalancerClass",
                                               NULL };
    const struct json *ports = json_at(c->object, "spec", "ports", NULL);
    if (is_external_name(c->object) && !is_external_name(c->old))
        drop_unchanged(c, of_cluster);
    if (str_eqc(type_of(c->old), "LoadBalancer") && !str_eqc(type_of(c->object), "LoadBalancer")) {
        drop_unchanged(c, of_balancer);
        json_del(json_at(c->object, "status", "loadBalancer", NULL), S("ingress"));
    }
    if (!has_node_ports(c->old) || has_node_ports(c->object))
        return;
    drop_unchanged(c, of_outside);
    for (uint32_t i = 0; i < json_len(ports); i++)
        if (json_int(json_get(ports->items[i], "nodePort"), 0) == old_node_port(c->old, i))
            json_del(ports->items[i], S("nodePort"));
}

static void prepare(const struct kind_change *c, struct kind_env *env, struct kind_fault *fault)
{
    if (c->sub == KIND_STATUS)
        return;
    if (c->old)
        drop_of_old_type(c);
    if (is_external_name(c->object))
        return;
    allocate_address(c, env, fault);
    bool balanced = str_eqc(type_of(c->object), "LoadBalancer");
    if (has_node_ports(c->object) &&
        !(balanced &&
          !json_bool(json_at(c->object, "spec", "allocateLoadBalancerNodePorts", NULL), true)))
        allocate_node_ports(c, env, fault);
    if (balanced)
        allocate_health_port(c, env, fault);
}

/* ---- rules */

static void check_port_number(const struct json *port, const struct field_path *at,
                              struct field_errors *errors)
{
    if (json_int(port, 0) < 1 || json_int(port, 0) > 65535)
        field_invalid(errors, at, port, "must be between 1 and 65535");
}

static void check_target(const struct json *target, const struct field_path *at,
                         struct field_errors *errors)
{
    if (json_is(target, JSON_INT)) {
        check_port_number(target, at, errors);
    } else if (target) {
        kind_check_port_name(target, at, errors);
    }
}

static bool same_port(const struct json *a, const struct json *b)
{
    return json_eq(json_get(a, "port"), json_get(b, "port")) &&
           json_eq(json_get(a, "protocol"), json_get(b, "protocol"));
}

/* Ports of the nodes belong to services that are reached from outside, and to one range. */
static void check_node_ports(const struct json *object, const struct json *ports,
                             const struct field_path *up, struct field_errors *errors)
{
    bool alright = errors->n == 0; /* the range is looked at last */
    for (uint32_t i = 0; i < json_len(ports); i++) {
        struct field_path at = { AT_INDEX(up, i), .key = S("nodePort") };
        const struct json *port = json_get(ports->items[i], "nodePort");
        int64_t number = json_int(port, 0);
        if (number && !has_node_ports(object))
            field_forbidden(errors, &at, "may not be used with this type of service");
        else if (number && alright &&
                 (number < NODE_PORT_FIRST || number >= NODE_PORT_FIRST + NODE_PORTS))
            field_invalid(errors, &at, port, "must be between %d and %d", NODE_PORT_FIRST,
                          NODE_PORT_FIRST + NODE_PORTS - 1);
    }
}

static void check_ports(const struct json *ports, const struct field_path *up,
                        struct field_errors *errors)
{
    for (uint32_t i = 0; i < json_len(ports); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *name = json_get(ports->items[i], "name");
        if (!json_text(name).n && json_len(ports) > 1)
            field_required(errors, AT(&at, "name"), NULL);
        else if (json_text(name).n && format_dns_label(json_text(name)))
            field_invalid(errors, AT(&at, "name"), name, "%s", format_dns_label(json_text(name)));
        check_port_number(json_get(ports->items[i], "port"), AT(&at, "port"), errors);
        check_target(json_get(ports->items[i], "targetPort"), AT(&at, "targetPort"), errors);
        if (json_get(ports->items[i], "appProtocol"))
            kind_check_qualified(json_get(ports->items[i], "appProtocol"), AT(&at, "appProtocol"),
                                 errors);
        for (uint32_t j = 0; j < i; j++) {
            if (json_text(name).n && json_eq(name, json_get(ports->items[j], "name")))
                field_duplicate(errors, AT(&at, "name"), name);
            if (same_port(ports->items[i], ports->items[j]))
                field_duplicate(errors, &at, ports->items[i]);
        }
    }
}

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
        field_forbidden(errors, AT(at, "clusterIPs"), "an ExternalName has no address");
}

static void check_outside(const struct json *object, const struct json *spec,
                          const struct field_path *at, struct field_errors *errors)
{
    const struct json *addresses = json_get(spec, "externalIPs");
    const struct json *policy = json_get(spec, "externalTrafficPolicy");
    for (uint32_t i = 0; i < json_len(addresses); i++)
        if (!format_is_ip(json_text(addresses->items[i])))
            field_invalid(errors, AT_INDEX(AT(at, "externalIPs"), i), addresses->items[i],
                          "must be an IP address");
    if (policy && !has_node_ports(object) && !json_len(addresses))
        field_invalid(errors, AT(at, "externalTrafficPolicy"), policy,
                      "belongs to services that are reached from outside");
}

/* What only a balancer has. */
static void check_balancer(const struct json *object, const struct json *spec,
                           const struct field_path *at, struct field_errors *errors)
{
    const struct json *ranges = json_get(spec, "loadBalancerSourceRanges");
    const struct json *class = json_get(spec, "loadBalancerClass");
    struct field_path in = { at, .key = S("LoadBalancerSourceRanges") };
    if (str_eqc(type_of(object), "LoadBalancer")) {
        for (uint32_t i = 0; i < json_len(ranges); i++)
            if (!format_fits(S("cidr"), str_trim(json_text(ranges->items[i]))))
                field_invalid(errors, AT_INDEX(&in, i), ranges->items[i],
                              "must be a range of addresses, such as 10.9.8.0/24");
        if (class)
            kind_check_qualified(class, AT(at, "loadBalancerClass"), errors);
        return;
    }
    if (json_len(ranges))
        field_forbidden(errors, &in, "belongs to the type LoadBalancer");
    if (json_get(spec, "allocateLoadBalancerNodePorts"))
        field_forbidden(errors, AT(at, "allocateLoadBalancerNodePorts"),
                        "belongs to the type LoadBalancer");
    if (class)
        field_forbidden(errors, AT(at, "loadBalancerClass"), "belongs to the type LoadBalancer");
}

static void check_affinity(const struct json *spec, const struct field_path *at,
                           struct field_errors *errors)
{
    enum { DAY_S = 86400 };
    const struct json *seconds =
        json_at(spec, "sessionAffinityConfig", "clientIP", "timeoutSeconds", NULL);
    struct field_path client = { AT(at, "sessionAffinityConfig"), .key = S("clientIP") };
    if (seconds && (json_int(seconds, 1) <= 0 || json_int(seconds, 1) > DAY_S))
        field_invalid(errors, AT(&client, "timeoutSeconds"), seconds, "must be between 1 and %d",
                      DAY_S);
}

static void check_families(const struct json *spec, const struct field_path *at,
                           struct field_errors *errors)
{
    static const char *const policies[] = { "PreferDualStack", "RequireDualStack", "SingleStack",
                                            NULL };
    static const char *const known[] = { "IPv4", "IPv6", NULL };
    const struct json *policy = json_get(spec, "ipFamilyPolicy");
    const struct json *families = json_get(spec, "ipFamilies");
    for (uint32_t i = 0; i < json_len(families); i++)
        if (!str_eqc(json_text(families->items[i]), known[0]) &&
            !str_eqc(json_text(families->items[i]), known[1]))
            field_not_supported(errors, AT_INDEX(AT(at, "ipFamilies"), i), families->items[i],
                                known);
    if (policy && !json_text(policy).n) /* another word is told by the schema */
        field_not_supported(errors, AT(at, "ipFamilyPolicy"), policy, policies);
    static const char *const ways[] = { "Cluster", "Local", NULL };
    const struct json *inside = json_get(spec, "internalTrafficPolicy");
    if (inside && !json_text(inside).n)
        field_not_supported(errors, AT(at, "internalTrafficPolicy"), inside, ways);
}

/* Addresses are given in one family only; without one both can be named. */
static void check_one_family(const struct kind_change *c, const struct json *spec,
                             const struct field_path *at, struct field_errors *errors)
{
    const struct json *family = json_item(json_get(spec, "ipFamilies"), 0);
    const struct json *policy = json_get(spec, "ipFamilyPolicy");
    const struct json *address = json_get(spec, "clusterIP");
    if (is_external_name(c->object) ||
        (is_headless(c->object) && !json_len(json_get(spec, "selector"))))
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
                      "its family is not configured on this cluster");
    else if (!c->old)
        field_invalid(errors, AT_INDEX(AT(at, "ipFamilies"), 0), family,
                      "not configured on this cluster");
    else if (!format_is_ipv6(json_text(address)))
        field_invalid(errors, AT_INDEX(AT(at, "clusterIPs"), 0), address,
                      "expected an IPv6 value as indicated by `ipFamilies[0]`");
}

static void check_ingress(const struct json *ingress, const struct field_path *up,
                          struct field_errors *errors)
{
    for (uint32_t i = 0; i < json_len(ingress); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *ip = json_get(ingress->items[i], "ip");
        const struct json *name = json_get(ingress->items[i], "hostname");
        if (json_text(ip).n && !format_is_ip(json_text(ip)))
            field_invalid(errors, AT(&at, "ip"), ip, "must be a valid IP address");
        if (json_text(name).n && format_dns_subdomain(json_text(name)))
            field_invalid(errors, AT(&at, "hostname"), name, "%s",
                          format_dns_subdomain(json_text(name)));
    }
}

static void validate(const struct kind_change *c, struct kind_env *env UNUSED,
                     struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("spec") };
    const struct json *spec = json_get(c->object, "spec");
    const struct json *address = json_get(spec, "clusterIP");
    const struct json *ports = json_get(spec, "ports");
    if (c->sub == KIND_STATUS) {
        struct field_path balancer = { AT(NULL, "status"), .key = S("loadBalancer") };
        const struct json *ingress = json_at(c->object, "status", "loadBalancer", "ingress", NULL);
        if (!str_eqc(type_of(c->object), "LoadBalancer") && json_len(ingress))
            field_forbidden(errors, AT(&balancer, "ingress"), "belongs to the type LoadBalancer");
        check_ingress(ingress, AT(&balancer, "ingress"), errors);
        return;
    }
    check_outside(c->object, spec, &at, errors);
    kind_check_labels(json_get(spec, "selector"), AT(&at, "selector"), errors);
    if (is_external_name(c->object)) {
        check_external_name(spec, &at, errors);
    } else {
        if (!json_len(ports) && !is_headless(c->object))
            field_required(errors, AT(&at, "ports"), NULL);
        if (address && !is_headless(c->object) && !format_is_ip(json_text(address)))
            field_invalid(errors, AT_INDEX(AT(&at, "clusterIPs"), 0), address,
                          "must be an IP address or None");
        if (is_headless(c->object) && has_node_ports(c->object))
            field_invalid(errors, AT_INDEX(AT(&at, "clusterIPs"), 0), address,
                          "cannot be None for this type of service");
    }
    check_balancer(c->object, spec, &at, errors);
    check_families(spec, &at, errors);
    check_affinity(spec, &at, errors);
    check_ports(ports, AT(&at, "ports"), errors);
    check_one_family(c, spec, &at, errors);
    check_node_ports(c->object, ports, AT(&at, "ports"), errors);
    const struct json *was = json_at(c->old, "spec", "clusterIP", NULL);
    if (was && !is_external_name(c->object) && !is_external_name(c->old))
        if (!json_eq(was, address) && (is_headless(c->object) || format_is_ip(json_text(address))))
            field_invalid(errors, AT_INDEX(AT(&at, "clusterIPs"), 0), address,
                          "may not change once set");
}

const struct kind_hooks hooks_service = {
    .name = format_dns_label,
    .fill = fill,
    .prepare = prepare,
    .validate = validate,
    .metadata_twice = true,
};
