/* Ingresses, NetworkPolicies and EndpointSlices: defaults and the rules that span fields.
 *
 * Field-local rules (bounds, words, formats, immutable fields) are data in types/more.types. What is left here
 * compares fields with each other: a backend is a service or a resource, an excluded network lies within its
 * block, an address fits the address type of its slice. No controller acts on these kinds; they are stored and
 * validated so that manifests which contain them can be applied and read back.
 *
 * Messages and their order are those of kube-apiserver. */
#include "../schema/format.h"
#include "kind_hooks.h"

#include <arpa/inet.h>

/* ---- Ingress */

/* A service with a port by name or by number, or a reference to another resource; never both. */
static void check_backend(const struct json *backend, const struct field_path *at,
                          struct field_errors *errors)
{
    const struct json *service = json_get(backend, "service"), *port = json_get(service, "port");
    const struct json *number = json_get(port, "number"), *name = json_get(port, "name");
    struct field_path in = { at, .key = S("service") }, ports = { &in, .key = S("port") };
    if (!service || json_get(backend, "resource")) {
        if (service)
            field_invalid(errors, at, json_new_str(errors->arena, S("")),
                          "cannot set both resource and service backends");
        else if (!json_get(backend, "resource"))
            field_required(errors, at, "resource or service backend is required");
        return;
    }
    if (json_int(number, 0) && json_text(name).n)
        field_invalid(errors, at, json_new_str(errors->arena, S("")),
                      "cannot set both port name & port number");
    else if (json_text(name).n)
        kind_check_port_name(name, AT(&ports, "name"), errors);
    else if (!json_int(number, 0))
        field_required(errors, at, "port name or number is required");
    else if (number->integer < 1 || number->integer > 65535)
        field_invalid(errors, AT(&ports, "number"), number,
                      "must be between 1 and 65535, inclusive");
}

/* A DNS name, optionally with one wildcard label in front. Empty means every host. */
static void check_host(const struct json *host, const struct field_path *at,
                       struct field_errors *errors)
{
    str text = json_text(host);
    if (!text.n)
        return;
    if (format_is_ip(text))
        field_invalid(errors, at, host, "must be a DNS name, not an IP address");
    else if (str_find_char(text, '*') != SIZE_MAX) {
        if (!str_starts(text, S("*.")) || format_dns_subdomain(str_from(text, 2)))
            field_invalid(
                errors, at, host,
                "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid "
                "DNS subdomain, which must consist of lower case alphanumeric characters, "
                "'-' or '.' and end with an alphanumeric character (e.g. "
                "'*.example.com', regex used for validation is "
                "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
    } else if (format_dns_subdomain(text)) {
        field_invalid(errors, at, host, "%s", format_dns_subdomain(text));
    }
}

/* Exact and Prefix need an absolute path; ImplementationSpecific may have none. */
static void check_paths(const struct json *paths, const struct field_path *up,
                        struct field_errors *errors)
{
    for (uint32_t i = 0; i < json_len(paths); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *each = paths->items[i], *path = json_get(each, "path");
        str type = json_text(json_get(each, "pathType"));
        bool loose = str_eqc(type, "ImplementationSpecific");
        if (type.n && (!loose || json_text(path).n) && !str_starts(json_text(path), S("/")))
            field_invalid(errors, AT(&at, "path"), path, "must be an absolute path");
        check_backend(json_get(each, "backend"), AT(&at, "backend"), errors);
    }
}

static void validate_ingress(const struct kind_change *c, struct kind_env *env UNUSED,
                             struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("spec") }, up = { &at, .key = S("rules") };
    const struct json *spec = json_get(c->object, "spec"), *rules = json_get(spec, "rules");
    const struct json *backend = json_get(spec, "defaultBackend");
    const struct json *class = json_get(spec, "ingressClassName");
    if (!json_len(rules) && !backend)
        field_invalid(errors, &at, json_new_null(errors->arena),
                      "either `defaultBackend` or `rules` must be specified");
    if (backend)
        check_backend(backend, AT(&at, "defaultBackend"), errors);
    for (uint32_t i = 0; i < json_len(rules); i++) {
        struct field_path rule = { &up, .index = i, .how = FIELD_INDEX };
        check_host(json_get(rules->items[i], "host"), AT(&rule, "host"), errors);
        check_paths(json_at(rules->items[i], "http", "paths", NULL), AT(AT(&rule, "http"), "paths"),
                    errors);
    }
    if (class && format_dns_subdomain(json_text(class)))
        field_invalid(errors, AT(&at, "ingressClassName"), class, "%s",
                      format_dns_subdomain(json_text(class)));
}

const struct kind_hooks kind_hooks_ingress = { .validate = validate_ingress };

/* ---- NetworkPolicy */

/* The directions that the policy has rules for; always Ingress. */
static void fill_networkpolicy(struct arena *a, struct json *object)
{
    struct json *spec = json_get(object, "spec"), *types = json_new_arr(a);
    if (!spec || json_len(json_get(spec, "policyTypes")))
        return;
    json_push(a, types, json_new_str(a, S("Ingress")));
    if (json_get(spec, "egress"))
        json_push(a, types, json_new_str(a, S("Egress")));
    json_set(a, spec, S("policyTypes"), types);
}

struct network {
    uint8_t bytes[16];
    int family;
    int64_t bits;
};

/* "10.0.0.0/8" as bytes and prefix length. */
static bool parse_network(str text, struct network *ret)
{
    char room[INET6_ADDRSTRLEN];
    size_t slash = str_find_char(text, '/');
    if (slash == SIZE_MAX || slash >= sizeof(room) ||
        str_to_i64(str_from(text, slash + 1), &ret->bits) < 0)
        return false;
    memcpy(room, text.p, slash);
    room[slash] = '\0';
    ret->family = strchr(room, ':') ? AF_INET6 : AF_INET;
    return inet_pton(ret->family, room, ret->bytes) == 1 && ret->bits >= 0 &&
           ret->bits <= (ret->family == AF_INET ? 32 : 128);
}

static bool is_strict_subset(const struct network *outer, const struct network *inner)
{
    if (outer->family != inner->family || inner->bits <= outer->bits)
        return false;
    for (int64_t i = 0; i < outer->bits; i++)
        if ((outer->bytes[i / 8] ^ inner->bytes[i / 8]) & (0x80 >> i % 8))
            return false;
    return true;
}

/* A peer selects pods or namespaces, or is a block of addresses with exceptions inside it. */
static void check_peers(const struct json *peers, const struct field_path *up,
                        struct field_errors *errors)
{
    for (uint32_t i = 0; i < json_len(peers); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *peer = peers->items[i], *block = json_get(peer, "ipBlock");
        struct field_path in = { &at, .key = S("ipBlock") }, except = { &in, .key = S("except") };
        struct network outer, inner;
        if (!json_len(peer))
            field_required(errors, &at, "must specify a peer");
        if (!block)
            continue;
        if (json_len(peer) > 1)
            field_forbidden(errors, &at, "may not specify both ipBlock and another peer");
        const struct json *list = json_get(block, "except");
        bool known = parse_network(json_text(json_get(block, "cidr")), &outer);
        for (uint32_t n = 0; known && n < json_len(list); n++)
            if (!parse_network(json_text(list->items[n]), &inner) ||
                !is_strict_subset(&outer, &inner))
                field_invalid(errors, AT_INDEX(&except, n), list->items[n],
                              "must be a strict subset of `cidr`");
    }
}

static void check_ports(const struct json *ports, const struct field_path *up,
                        struct field_errors *errors)
{
    for (uint32_t i = 0; i < json_len(ports); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *port = json_get(ports->items[i], "port");
        const struct json *end = json_get(ports->items[i], "endPort");
        if (json_is(port, JSON_INT) && (port->integer < 1 || port->integer > 65535))
            field_invalid(errors, AT(&at, "port"), port, "must be between 1 and 65535, inclusive");
        else if (json_is(port, JSON_STR))
            kind_check_port_name(port, AT(&at, "port"), errors);
        if (end && !port)
            field_required(errors, AT(&at, "endPort"),
                           "must not be specified if `port` is not specified");
        else if (end && json_is(port, JSON_INT) && end->integer < port->integer)
            field_invalid(errors, AT(&at, "endPort"), port,
                          "must be greater than or equal to `port`");
    }
}

static void validate_networkpolicy(const struct kind_change *c, struct kind_env *env UNUSED,
                                   struct field_errors *errors)
{
    static const char *const ways[] = { "ingress", "egress" }, *const peers[] = { "from", "to" };
    struct field_path at = { NULL, .key = S("spec") };
    const struct json *spec = json_get(c->object, "spec"), *types = json_get(spec, "policyTypes");
    kind_check_selector(json_get(spec, "podSelector"), AT(&at, "podSelector"), errors);
    for (size_t way = 0; way < countof(ways); way++) {
        struct field_path up = { &at, .key = str_c(ways[way]) };
        const struct json *rules = json_get(spec, ways[way]);
        for (uint32_t i = 0; i < json_len(rules); i++) {
            struct field_path rule = { &up, .index = i, .how = FIELD_INDEX };
            check_ports(json_get(rules->items[i], "ports"), AT(&rule, "ports"), errors);
            check_peers(json_get(rules->items[i], peers[way]),
                        &(struct field_path){ &rule, .key = str_c(peers[way]) }, errors);
        }
    }
    if (json_len(types) > 2)
        field_invalid(errors, AT(&at, "policyTypes"), types,
                      "may not specify more than two policyTypes");
}

const struct kind_hooks kind_hooks_networkpolicy = { .fill = fill_networkpolicy,
                                                     .validate = validate_networkpolicy };

/* ---- EndpointSlice */

/* An address must have the form that the slice declares for all of its addresses. */
static void check_address(const struct json *address, str type, const struct field_path *up,
                          uint32_t i, struct field_errors *errors)
{
    str text = json_text(address);
    bool v4 = str_eqc(type, "IPv4"), v6 = str_eqc(type, "IPv6");
    if ((v4 || v6) && !format_is_ip(text))
        field_invalid(errors, AT_INDEX(up, i), address, "must be a valid IP address");
    else if (v4 && !format_is_ipv4(text))
        field_invalid(errors, up, address, "must be an IPv4 address");
    else if (v6 && !format_is_ipv6(text))
        field_invalid(errors, up, address, "must be an IPv6 address");
    if (str_eqc(type, "FQDN") && format_dns_subdomain(text))
        field_invalid(errors, AT_INDEX(up, i), address, "%s", format_dns_subdomain(text));
    if ((v4 || v6) && (str_starts(text, S("127.")) || str_eqc(text, "::1")))
        field_invalid(errors, AT_INDEX(up, i), address,
                      "may not be in the loopback range (127.0.0.0/8, ::1/128)");
}

static void validate_endpointslice(const struct kind_change *c, struct kind_env *env UNUSED,
                                   struct field_errors *errors)
{
    struct field_path up = { NULL, .key = S("endpoints") }, ports = { NULL, .key = S("ports") };
    const struct json *list = json_get(c->object, "endpoints"), *all = json_get(c->object, "ports");
    str type = json_text(json_get(c->object, "addressType"));
    if (c->old) /* a change of it is refused; the addresses still have the old one */
        type = json_text(json_get(c->old, "addressType"));
    for (uint32_t i = 0; i < json_len(list); i++) {
        struct field_path at = { &up, .index = i, .how = FIELD_INDEX };
        const struct json *addresses = json_get(list->items[i], "addresses");
        const struct json *name = json_get(list->items[i], "hostname");
        if (!json_len(addresses))
            field_required(errors, AT(&at, "addresses"), "must contain at least 1 address");
        for (uint32_t n = 0; n < json_len(addresses); n++)
            check_address(addresses->items[n], type, AT(&at, "addresses"), n, errors);
        if (name && format_dns_label(json_text(name)))
            field_invalid(errors, AT(&at, "hostname"), name, "%s",
                          format_dns_label(json_text(name)));
    }
    struct seen names = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < json_len(all); i++) {
        const struct json *name = json_get(all->items[i], "name");
        if (name && seen_value(&names, name, i))
            field_duplicate(errors, AT(AT_INDEX(&ports, i), "name"), name);
    }
}

/* Any change but that of the version counts as a generation. */
static void prepare_endpointslice(const struct kind_change *c, struct kind_env *env,
                                  struct kind_fault *fault UNUSED)
{
    struct arena *a = env->arena;
    if (!c->old)
        return;
    struct json *now = json_copy(a, c->object), *was = json_copy(a, c->old);
    for (int i = 0; i < 2; i++) {
        struct json *metadata = json_make(a, i ? now : was, "metadata", NULL);
        json_del(metadata, S("resourceVersion"));
        json_del(metadata, S("managedFields"));
        json_del(metadata, S("generation"));
    }
    if (!json_eq(now, was))
        json_set_int(a, json_make(a, c->object, "metadata", NULL), "generation",
                     json_int(json_at(c->old, "metadata", "generation", NULL), 0) + 1);
}

const struct kind_hooks kind_hooks_endpointslice = { .prepare = prepare_endpointslice,
                                                     .validate = validate_endpointslice };
