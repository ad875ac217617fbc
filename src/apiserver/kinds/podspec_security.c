/* What a pod takes from its node: security profiles, host ports and namespaces. */
#include "../schema/format.h"
#include "kind_hooks.h"

/* seccompProfile or appArmorProfile: the file belongs to the type Localhost. */
static void check_profile(const struct json *context, const char *key, const struct field_path *up,
                          struct field_errors *errors)
{
    const struct json *profile = json_get(context, key);
    const struct json *file = json_get(profile, "localhostProfile");
    struct field_path in = { up, .key = str_c(key) };
    struct field_path at = { &in, .key = S("localhostProfile") };
    str type = json_text(json_get(profile, "type"));
    bool local = str_eqc(type, "Localhost");
    if (local && !file)
        field_required(errors, &at, "must be set when profile type is Localhost");
    else if (profile && !local && file)
        field_invalid(errors, &at, file, "can only be set when profile type is Localhost");
}

/* Profiles and privileges of a pod or container. */
void podspec_check_context(const struct json *context, const struct field_path *at,
                           struct field_errors *errors)
{
    check_profile(context, "seccompProfile", at, errors);
    check_profile(context, "appArmorProfile", at, errors);
    if (json_bool(json_get(context, "privileged"), false) &&
        !json_bool(json_get(context, "allowPrivilegeEscalation"), true))
        field_invalid(errors, at, context,
                      "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
}

/* The identity of a host port: protocol, address and number. */
static str host_port(struct arena *a, const struct json *port)
{
    return arena_printf(a, STR_FMT "/" STR_FMT "/%lld",
                        STR_ARG(json_text(json_get(port, "protocol"))),
                        STR_ARG(json_text(json_get(port, "hostIP"))),
                        (long long)json_int(json_get(port, "hostPort"), 0));
}

/* A host port is used once, and on the host network it equals the container port. */
static void check_host_ports(const struct json *spec, const struct field_path *at,
                             struct field_errors *errors)
{
    const struct json *containers = json_get(spec, "containers");
    bool shared = json_bool(json_get(spec, "hostNetwork"), false);
    struct json *seen = json_new_obj(errors->arena);
    for (uint32_t i = 0; i < json_len(containers); i++) {
        struct field_path in = { AT_INDEX(AT(at, "containers"), i), .key = S("ports") };
        const struct json *ports = json_get(containers->items[i], "ports");
        for (uint32_t j = 0; j < json_len(ports); j++) {
            struct field_path place = { AT_INDEX(&in, j), .key = S("hostPort") };
            const struct json *port = ports->items[j], *host = json_get(port, "hostPort");
            if (!json_int(host, 0))
                continue;
            str key = host_port(errors->arena, port);
            if (shared && !json_eq(host, json_get(port, "containerPort")))
                field_invalid(errors, &place, host,
                              "must match `containerPort` when `hostNetwork` is true");
            if (json_get_str(seen, key))
                field_duplicate(errors, &place, json_new_str(errors->arena, key));
            json_set(errors->arena, seen, key, json_new_str(errors->arena, key));
        }
    }
}

/* The pod-level security context and everything that involves the host. */
void podspec_check_host(const struct json *spec, const struct field_path *up,
                        struct field_errors *errors)
{
    struct field_path at = { up, .key = S("securityContext") };
    const struct json *shares = json_get(spec, "shareProcessNamespace");
    podspec_check_context(json_get(spec, "securityContext"), &at, errors);
    check_host_ports(spec, up, errors);
    if (json_bool(shares, false) && json_bool(json_get(spec, "hostPID"), false))
        field_invalid(errors, AT(&at, "shareProcessNamespace"), shares,
                      "ShareProcessNamespace and HostPID cannot both be enabled");
    const struct json *os = json_at(spec, "os", "name", NULL);
    if (json_get(spec, "os") && !json_text(os).n)
        field_required(errors, AT(AT(up, "os"), "name"), NULL);
    else if (os && !str_eqc(json_text(os), "linux") && !str_eqc(json_text(os), "windows"))
        field_not_supported(errors, AT(up, "os"), os,
                            (const char *const[]){ "linux", "windows", NULL });
}
