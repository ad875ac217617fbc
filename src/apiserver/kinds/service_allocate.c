/* Assigns cluster IPs and node ports: the ones that are requested, those the service already has, or the next
 * free ones.
 *
 * The search for a free address starts at a place derived from the uid of the service, so that services
 * created at the same time rarely compete and a free one is found at once. Whether an address is in use is
 * decided by the stored services themselves (kind_env), not by a bitmap: there is no second state to repair.
 * Node ports are looked up once per request (struct port_usage), however many ports the service has. */
#include "service.h"

#include "../schema/format.h"

#include <arpa/inet.h>
#include <inttypes.h>

/* 10.96.0.0/16, kubeadm's default; the first addresses are reserved for requested ones. */
enum { RANGE = 0x0a600000, RANGE_SIZE = 65536, RANGE_RESERVED = 256 };

/* ---- addresses */

/* FNV-1a of the uid: where the search for a free address or port starts. */
static uint64_t hash_uid(const struct json *object)
{
    uint64_t hash = 1469598103934665603u;
    str uid = json_text(json_at(object, "metadata", "uid", NULL));
    for (size_t i = 0; i < uid.n; i++)
        hash = (hash ^ (unsigned char)uid.p[i]) * 1099511628211u;
    return hash;
}

static bool is_value_taken(const struct kind_env *env, str text)
{
    return env->service_holds && env->service_holds(env->context, text);
}

static bool is_address_taken(const struct kind_env *env, str address)
{
    return is_value_taken(env, arena_printf(env->arena, "\"clusterIP\":\"" STR_FMT "\"",
                                            STR_ARG(address)));
}

/* Matches nodePort and healthCheckNodePort; all ports have five digits, so no prefix matches. */
static bool is_node_port_taken(const struct kind_env *env, int64_t port)
{
    return is_value_taken(env, arena_printf(env->arena, "odePort\":%" PRId64, port));
}

/* The first free address from there on; empty if the range is full. */
static str choose_address(const struct kind_change *c, struct kind_env *env)
{
    uint64_t start = hash_uid(c->object);
    for (uint32_t i = 0; i < RANGE_SIZE - RANGE_RESERVED - 1; i++) {
        uint32_t host =
            RANGE_RESERVED + (uint32_t)((start + i) % (RANGE_SIZE - RANGE_RESERVED - 1));
        struct in_addr address = { htonl(RANGE + host) };
        char text[INET_ADDRSTRLEN];
        str shown = str_c(inet_ntop(AF_INET, &address, text, sizeof(text)));
        if (!is_address_taken(env, shown))
            return arena_str(env->arena, shown);
    }
    return S("");
}

/* clusterIP and clusterIPs[0] are the same address. */
static void set_addresses(struct arena *a, struct json *spec, str address)
{
    struct json *list = json_new_arr(a);
    json_push(a, list, json_new_str(a, address));
    json_set_str(a, spec, "clusterIP", address);
    json_set(a, spec, S("clusterIPs"), list);
}

/* A headless service without a selector supports both families. */
static void set_both_families(struct arena *a, struct json *spec)
{
    struct json *families = json_new_arr(a);
    json_push(a, families, json_new_str(a, S("IPv4")));
    json_push(a, families, json_new_str(a, S("IPv6")));
    json_set(a, spec, S("ipFamilies"), families);
    json_set_str(a, spec, "ipFamilyPolicy", S("RequireDualStack"));
}

/* Keeps the stored families, else derives them from the address. */
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

static void set_fault(struct kind_fault *fault)
{
    if (fault->errors.n)
        kind_fault_set(fault, 422, "Invalid", field_summary(fault->errors.arena, &fault->errors));
}

/* clusterIPs[0] must equal clusterIP if both are set. */
static void check_first_address(const struct kind_change *c, const struct json *spec,
                                struct kind_fault *fault)
{
    const struct json *all = json_get(spec, "clusterIPs"), *address = json_get(spec, "clusterIP");
    struct field_path at = { NULL, .key = S("spec") };
    if (c->old || !json_len(all) || str_eq(json_text(json_item(all, 0)), json_text(address)))
        return;
    field_invalid(&fault->errors, AT(&at, "clusterIPs"), all, "first value must match `clusterIP`");
    set_fault(fault);
}

/* A requested address must be in the range and not in use. */
static void check_address_free(struct kind_env *env, const struct json *spec, str asked,
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
    else if (is_address_taken(env, asked))
        field_invalid(&fault->errors, at, shown,
                      "failed to allocate IP " STR_FMT ": provided IP is already allocated",
                      STR_ARG(asked));
    set_fault(fault);
}

/* Keeps, checks or chooses the cluster IP. */
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
        check_address_free(env, spec, asked, fault);
    }
    check_first_address(c, spec, fault);
    set_addresses(env->arena, spec, asked);
    set_families(env->arena, spec,
                 kind_service_is_external_name(c->old) ? NULL : json_get(c->old, "spec"));
}

static int64_t old_node_port(const struct json *old, uint32_t i)
{
    return json_int(json_get(json_item(json_at(old, "spec", "ports", NULL), i), "nodePort"), 0);
}

/* Node ports in use, by offset from NODE_PORT_FIRST. */
struct port_usage {
    bool others[NODE_PORTS]; /* by any stored service, including this one */
    bool own[NODE_PORTS];    /* by the new state of this service */
    bool old[NODE_PORTS];    /* by its stored state */
};

static bool in_range(int64_t port)
{
    return port >= NODE_PORT_FIRST && port < NODE_PORT_FIRST + NODE_PORTS;
}

static void mark_ports(const struct json *object, bool *used)
{
    const struct json *ports = json_at(object, "spec", "ports", NULL);
    for (uint32_t i = 0; i < json_len(ports); i++) {
        int64_t port = json_int(json_get(ports->items[i], "nodePort"), 0);
        if (in_range(port))
            used[port - NODE_PORT_FIRST] = true;
    }
}

/* Collects the ports in use; lives in the arena of the request. */
static struct port_usage *load_port_usage(const struct kind_change *c, struct kind_env *env)
{
    struct port_usage *usage = arena_new(env->arena, struct port_usage);
    mark_ports(c->object, usage->own);
    mark_ports(c->old, usage->old);
    if (env->service_ports)
        env->service_ports(env->context, usage->others, NODE_PORT_FIRST, NODE_PORTS);
    for (int64_t i = 0; !env->service_ports && i < NODE_PORTS; i++)
        usage->others[i] = is_node_port_taken(env, NODE_PORT_FIRST + i);
    return usage;
}

/* A requested port must not be used by another service, nor twice per protocol by this one. */
static void check_node_port(const struct json *port, uint32_t i, bool repeated,
                            const struct port_usage *usage, struct kind_fault *fault)
{
    const struct json *asked = json_get(port, "nodePort");
    int64_t at = json_int(asked, 0) - NODE_PORT_FIRST;
    bool taken = repeated || (in_range(json_int(asked, 0)) && usage->others[at] && !usage->old[at]);
    if (taken)
        field_invalid(&fault->errors, AT(AT_INDEX(AT(AT(NULL, "spec"), "ports"), i), "nodePort"),
                      asked, "provided port is already allocated");
    set_fault(fault);
}

/* The first free port; 0 if all are in use. */
static int64_t choose_node_port(const struct kind_change *c, struct port_usage *usage, size_t i)
{
    uint64_t start = hash_uid(c->object) + i;
    for (uint64_t j = 0; j < NODE_PORTS; j++) {
        int64_t at = (int64_t)((start + j) % NODE_PORTS);
        if (usage->own[at] || usage->others[at])
            continue;
        usage->own[at] = true;
        return NODE_PORT_FIRST + at;
    }
    return 0;
}

/* Keeps, checks or chooses the node port of every port. */
static void allocate_node_ports(const struct kind_change *c, struct kind_env *env,
                                struct port_usage *usage, struct kind_fault *fault)
{
    const struct json *ports = json_at(c->object, "spec", "ports", NULL);
    struct seen asked = seen_new(env->arena, 2);
    for (uint32_t i = 0; i < json_len(ports); i++) {
        int64_t port = json_int(json_get(ports->items[i], "nodePort"), 0), old;
        if (!port) {
            old = old_node_port(c->old, i);
            if (!(port = old ? old : choose_node_port(c, usage, i)))
                kind_fault_set(fault, 500, "InternalError", S("all node ports are in use"));
            json_set_int(env->arena, ports->items[i], "nodePort", port);
            if (in_range(port))
                usage->own[port - NODE_PORT_FIRST] = true;
            port = 0;
        }
        const struct json *parts[] = { json_get(ports->items[i], "nodePort"),
                                       json_get(ports->items[i], "protocol") };
        bool repeated = seen_put(&asked, parts, i);
        if (port)
            check_node_port(ports->items[i], i, repeated, usage, fault);
    }
}

/* healthCheckNodePort of a LoadBalancer with the traffic policy Local. */
static void allocate_health_port(const struct kind_change *c, struct kind_env *env,
                                 struct port_usage *usage, struct kind_fault *fault)
{
    struct json *spec = json_make(env->arena, c->object, "spec", NULL);
    const struct json *was = json_at(c->old, "spec", "healthCheckNodePort", NULL);
    int64_t port = json_int(json_get(spec, "healthCheckNodePort"), 0), kept = json_int(was, 0);
    bool local = str_eqc(json_text(json_get(spec, "externalTrafficPolicy")), "Local");
    if (!port && local)
        json_set_int(env->arena, spec, "healthCheckNodePort",
                     kept ? kept : choose_node_port(c, usage, json_len(json_get(spec, "ports"))));
    bool out_of_range = !in_range(port);
    if (!port || port == kept || (!out_of_range && !usage->others[port - NODE_PORT_FIRST]))
        return;
    kind_fault_set(fault, 500, "InternalError",
                   arena_printf(env->arena,
                                "Internal error occurred: failed to allocate requested "
                                "HealthCheck NodePort %" PRId64 ": %s",
                                port,
                                out_of_range
                                    ? "provided port is not in the valid range. The range of "
                                      "valid ports is 30000-32767"
                                    : "provided port is already allocated"));
}

/* A field that the client changed stays, and is validated. */
static void drop_unchanged_fields(const struct kind_change *c, const char *const *keys)
{
    struct json *spec = json_get(c->object, "spec");
    for (; *keys; keys++)
        if (json_eq(json_get(spec, *keys), json_at(c->old, "spec", *keys, NULL)))
            json_del(spec, str_c(*keys));
}

/* Drops fields that belong to the old type of the service and were not changed by the client. */
static void drop_fields_of_old_type(const struct kind_change *c)
{
    static const char *const of_cluster[] = {
        "clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy", NULL
    };
    static const char *const of_outside[] = { "externalTrafficPolicy", "healthCheckNodePort",
                                              NULL };
    static const char *const of_balancer[] = { "allocateLoadBalancerNodePorts", "loadBalancerClass",
                                               NULL };
    const struct json *ports = json_at(c->object, "spec", "ports", NULL);
    if (kind_service_is_external_name(c->object) && !kind_service_is_external_name(c->old))
        drop_unchanged_fields(c, of_cluster);
    if (str_eqc(kind_service_type(c->old), "LoadBalancer") &&
        !str_eqc(kind_service_type(c->object), "LoadBalancer")) {
        drop_unchanged_fields(c, of_balancer);
        json_del(json_at(c->object, "status", "loadBalancer", NULL), S("ingress"));
    }
    if (kind_service_is_external(c->old) && !kind_service_is_external(c->object))
        drop_unchanged_fields(c, of_outside);
    if (!kind_service_has_node_ports(c->old) || kind_service_has_node_ports(c->object))
        return;
    for (uint32_t i = 0; i < json_len(ports); i++)
        if (json_int(json_get(ports->items[i], "nodePort"), 0) == old_node_port(c->old, i))
            json_del(ports->items[i], S("nodePort"));
}

/* Runs on every write except status. */
void kind_service_prepare(const struct kind_change *c, struct kind_env *env,
                          struct kind_fault *fault)
{
    if (c->sub == KIND_STATUS)
        return;
    if (c->old)
        drop_fields_of_old_type(c);
    if (kind_service_is_external_name(c->object))
        return;
    allocate_address(c, env, fault);
    bool balanced = str_eqc(kind_service_type(c->object), "LoadBalancer");
    if (!kind_service_has_node_ports(c->object))
        return;
    struct port_usage *usage = load_port_usage(c, env);
    if (!(balanced &&
          !json_bool(json_at(c->object, "spec", "allocateLoadBalancerNodePorts", NULL), true)))
        allocate_node_ports(c, env, usage, fault);
    if (balanced)
        allocate_health_port(c, env, usage, fault);
}
