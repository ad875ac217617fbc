/* The status of a pod, as the kubelet writes it: addresses, terminated containers, conditions. Field-local rules
 * are in pod.types. */
#include "../schema/format.h"
#include "kind_hooks.h"

/* At most one address per family; the first repeats the field that older clients read. */
static void check_addresses(const struct json *status, const char *key, const struct json *first,
                            const struct field_path *up, struct field_errors *errors)
{
    const struct json *list = json_get(status, key);
    struct field_path at = { up, .key = str_c(key) };
    size_t old = 0, new = 0;
    for (uint32_t i = 0; i < json_len(list); i++) {
        const struct json *ip = json_get(list->items[i], "ip");
        old += format_is_ipv4(json_text(ip));
        new += format_is_ipv6(json_text(ip));
        if (!format_is_ip(json_text(ip)))
            field_invalid(errors, AT_INDEX(&at, i), ip,
                          "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
        else if (!i && !json_eq(ip, first))
            field_invalid(errors, AT(AT_INDEX(&at, i), "ip"), ip,
                          "must be equal to the singular field");
    }
    if (old > 1 || new > 1)
        field_invalid(errors, &at, list, "may specify no more than one IP for each IP family");
}

/* The item with that name, or NULL; `names` indexes the list. */
static const struct json *find_by_name(const struct seen *names, const struct json *list,
                                       const struct json *name)
{
    const struct seen_key *key = seen_lookup(names, name);
    return key ? list->items[key->place] : NULL;
}

/* A terminated container stays terminated, unless its restart policy starts it again. */
static void check_terminated_containers(const struct kind_change *c, const char *containers,
                                        const char *key, struct field_errors *errors)
{
    str policy = json_text(json_at(c->object, "spec", "restartPolicy", NULL));
    struct field_path status = { NULL, .key = S("status") }, list = { &status, .key = str_c(key) };
    const struct json *old = json_at(c->old, "status", key, NULL);
    const struct json *specs = json_at(c->object, "spec", containers, NULL);
    const struct json *now = json_at(c->object, "status", key, NULL);
    struct seen in_specs = seen_list(errors->arena, specs, "name");
    struct seen in_now = seen_list(errors->arena, now, "name");
    for (uint32_t i = 0; i < json_len(old) && !str_eqc(policy, "Always"); i++) {
        const struct json *name = json_get(old->items[i], "name");
        const struct json *container = find_by_name(&in_specs, specs, name);
        const struct json *new = find_by_name(&in_now, now, name);
        const struct json *ended = json_at(old->items[i], "state", "terminated", NULL);
        bool again = json_get(container, "restartPolicy") ||
                     (str_eqc(policy, "OnFailure") && json_int(json_get(ended, "exitCode"), 0));
        if (new && ended && !again && !json_at(new, "state", "terminated", NULL))
            field_forbidden(errors, AT(AT_INDEX(&list, i), "state"),
                            "may not be transitioned to non-terminated state");
    }
}

/* A pod that is bound cannot be nominated for another node. */
static void check_nominated(const struct kind_change *c, const struct field_path *up,
                            struct field_errors *errors)
{
    const struct json *node = json_at(c->object, "status", "nominatedNodeName", NULL);
    struct field_path at = { up, .key = S("nominatedNodeName") };
    if (json_text(node).n && json_text(json_at(c->object, "spec", "nodeName", NULL)).n &&
        !json_eq(node, json_at(c->old, "status", "nominatedNodeName", NULL)))
        field_forbidden(errors, &at, "may not be set on pods that are already bound to a node");
}

/* The QoS class never changes. Condition types are reported as "Type", a Go field name. */
void kind_check_pod_status(const struct kind_change *c, struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("status") };
    const struct json *status = json_get(c->object, "status");
    const struct json *was = json_at(c->old, "status", "qosClass", NULL);
    const struct json *conditions = json_get(status, "conditions");
    if (was)
        kind_check_immutable(json_get(status, "qosClass"), was, AT(&at, "qosClass"), errors);
    check_nominated(c, &at, errors);
    check_addresses(status, "podIPs", json_get(status, "podIP"), &at, errors);
    check_addresses(status, "hostIPs", json_get(status, "hostIP"), &at, errors);
    check_terminated_containers(c, "containers", "containerStatuses", errors);
    check_terminated_containers(c, "initContainers", "initContainerStatuses", errors);
    for (uint32_t i = 0; i < json_len(conditions); i++)
        kind_check_qualified(json_get(conditions->items[i], "type"),
                             AT(AT_INDEX(AT(&at, "conditions"), i), "Type"), errors);
}
