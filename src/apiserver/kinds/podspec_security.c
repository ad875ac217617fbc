/* What a pod takes from its node: user and group IDs, security profiles, sysctls, host ports and
 * namespaces. */
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

static void check_id(const struct json *id, const struct field_path *at,
                     struct field_errors *errors)
{
    if (json_int(id, 0) < 0 || json_int(id, 0) > INT32_MAX)
        field_invalid(errors, at, id, "must be between 0 and 2147483647");
}

/* IDs, profiles and privileges of a pod or container. */
void podspec_check_context(const struct json *context, const struct field_path *at,
                           struct field_errors *errors)
{
    static const char *const ids[] = { "runAsUser", "runAsGroup", "fsGroup" };
    const struct json *groups = json_get(context, "supplementalGroups");
    for (size_t i = 0; i < countof(ids); i++)
        check_id(json_get(context, ids[i]), &(struct field_path){ at, .key = str_c(ids[i]) },
                 errors);
    for (uint32_t i = 0; i < json_len(groups); i++)
        check_id(groups->items[i], AT_INDEX(AT(at, "supplementalGroups"), i), errors);
    check_profile(context, "seccompProfile", at, errors);
    check_profile(context, "appArmorProfile", at, errors);
    if (json_bool(json_get(context, "privileged"), false) &&
        !json_bool(json_get(context, "allowPrivilegeEscalation"), true))
        field_invalid(errors, at, context,
                      "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
}

/* "net.ipv4.tcp_syncookies": segments of lower case letters, digits, "-" and "_", separated by "." or
 * "/". */
static bool is_sysctl(str name)
{
    bool inside = false;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!word && (!inside || !strchr("-_./", c)))
            return false;
        inside = word || c == '-' || c == '_';
    }
    return inside && name.n <= 253 && name.p[name.n - 1] != '-' && name.p[name.n - 1] != '_';
}

/* Sysctls are well-formed and distinct. */
static void check_sysctls(const struct json *list, const struct field_path *up,
                          struct field_errors *errors)
{
    struct seen names = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < json_len(list); i++) {
        const struct json *name = json_get(list->items[i], "name");
        struct field_path at = { AT_INDEX(up, i), .key = S("name") };
        if (!json_text(name).n)
            field_required(errors, &at, NULL);
        else if (!is_sysctl(json_text(name)))
            field_invalid(
                errors, &at, name,
                "must have at most 253 characters and match regex "
                "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$");
        if (seen_value(&names, name, i))
            field_duplicate(errors, &at, name);
    }
}

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
    check_sysctls(json_at(spec, "securityContext", "sysctls", NULL), AT(&at, "sysctls"), errors);
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
