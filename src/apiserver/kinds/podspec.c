/* Defaults of a PodSpec, in a Pod or in a pod template, and the QoS class that follows from its resources.
 *
 * Defaults that do not depend on other fields are in pod.types. Some apply to pods only: a template keeps what
 * its author wrote, and its pods get the rest when they are created. */
#include "kind_hooks.h"

#include "../../base/quantity.h"

static struct json *get_list(const struct json *spec, const char *key)
{
    struct json *list = json_get(spec, key);
    return json_is(list, JSON_ARR) ? list : NULL;
}

enum { IMAGE_NAME_MAX = 255 }; /* bytes, without the tag */

static bool is_lower_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* A path segment of an image name: "app", "my-app_1.x". */
static bool is_image_part(str part)
{
    for (size_t i = 0; i < part.n; i++)
        if (!is_lower_alnum(part.p[i]) && !memchr("._-", part.p[i], 3))
            return false;
    return part.n && is_lower_alnum(part.p[0]) && is_lower_alnum(part.p[part.n - 1]);
}

/* The first segment is a host if it has a dot, a port or an upper-case letter, or is "localhost". */
static bool is_image_host(str part)
{
    bool host = str_eqc(part, "localhost");
    for (size_t i = 0; i < part.n; i++) {
        char c = part.p[i];
        bool large = c >= 'A' && c <= 'Z';
        host = host || large || c == '.' || c == ':';
        if (!is_lower_alnum(c) && !large && !memchr(".:-", c, 3))
            return false;
    }
    return host;
}

/* Always for ":latest" and for an image without tag or digest, else IfNotPresent. A malformed
 * image counts as neither. */
static const char *pull_policy(str image)
{
    str rest = image, part = S("");
    for (bool first = true; str_cut(&rest, '/', &part) && rest.p; first = false)
        if (!is_image_part(part) && !(first && is_image_host(part)))
            return "IfNotPresent";
    size_t colon = str_find_char(part, ':'), named = colon == SIZE_MAX ? 0 : part.n - colon;
    if (!is_image_part(str_upto(part, colon)) || image.n - named > IMAGE_NAME_MAX)
        return "IfNotPresent";
    bool latest = colon == SIZE_MAX || str_eqc(str_from(part, colon + 1), "latest");
    return latest ? "Always" : "IfNotPresent";
}

/* A resource that is limited but not requested is requested at its limit. */
static void fill_requests(struct arena *a, struct json *container)
{
    struct json *resources = json_get(container, "resources");
    struct json *limits = json_get(resources, "limits");
    if (!json_len(limits))
        return;
    struct json *requests = json_make(a, resources, "requests", NULL);
    json_each(m, limits)
        if (!json_get_str(requests, m->key))
            json_set(a, requests, m->key, json_copy(a, m->value));
}

/* On the host network every container port is a host port. */
static void fill_host_ports(struct arena *a, struct json *container)
{
    struct json *ports = get_list(container, "ports");
    for (uint32_t i = 0; i < json_len(ports); i++)
        if (!json_get(ports->items[i], "hostPort"))
            json_set_int(a, ports->items[i], "hostPort",
                         json_int(json_get(ports->items[i], "containerPort"), 0));
}

/* Pull policy, requests and host ports of one list of containers. */
static void fill_containers(struct arena *a, struct json *spec, const char *key, bool is_pod)
{
    struct json *list = get_list(spec, key);
    bool host_network = is_pod && json_bool(json_get(spec, "hostNetwork"), false);
    for (uint32_t i = 0; i < json_len(list); i++) {
        struct json *container = list->items[i];
        if (!json_is(container, JSON_OBJ))
            continue;
        if (!json_text(json_get(container, "imagePullPolicy")).n)
            json_set_str(a, container, "imagePullPolicy",
                         str_c(pull_policy(json_text(json_get(container, "image")))));
        if (is_pod)
            fill_requests(a, container);
        if (host_network)
            fill_host_ports(a, container);
    }
}

/* A volume without a source is an emptyDir. */
static void fill_volumes(struct arena *a, struct json *spec)
{
    struct json *volumes = get_list(spec, "volumes");
    for (uint32_t i = 0; i < json_len(volumes); i++) {
        struct json *volume = volumes->items[i];
        bool source = false;
        json_each(m, volume)
            source = source || !str_eqc(m->key, "name");
        if (json_is(volume, JSON_OBJ) && !source)
            json_make(a, volume, "emptyDir", NULL);
        struct json *image = json_get(volume, "image");
        if (image && !json_text(json_get(image, "pullPolicy")).n)
            json_set_str(a, image, "pullPolicy",
                         str_c(pull_policy(json_text(json_get(image, "reference")))));
    }
}

/* Pod-level limits become pod-level requests, unless a container has requests. */
static void fill_pod_requests(struct arena *a, struct json *spec)
{
    struct json *list = get_list(spec, "containers");
    bool has_requests = false;
    for (uint32_t i = 0; i < json_len(list); i++)
        has_requests =
            has_requests || json_len(json_at(list->items[i], "resources", "requests", NULL));
    if (!has_requests)
        fill_requests(a, spec);
}

/* `is_pod`: some defaults apply to pods but not to templates. */
void podspec_fill(struct arena *a, struct json *spec, bool is_pod)
{
    if (!json_is(spec, JSON_OBJ))
        return;
    fill_containers(a, spec, "initContainers", is_pod);
    fill_containers(a, spec, "containers", is_pod);
    if (is_pod)
        fill_pod_requests(a, spec);
    fill_volumes(a, spec);
    const struct json *grace = json_get(spec, "terminationGracePeriodSeconds");
    if (is_pod && json_int(grace, 0) < 0) /* accepted for compatibility: as soon as possible */
        json_set_int(a, spec, "terminationGracePeriodSeconds", 1);
    /* serviceAccount is the deprecated name of serviceAccountName; both are written */
    str account = json_text(json_get(spec, "serviceAccountName"));
    if (!account.n)
        account = json_text(json_get(spec, "serviceAccount"));
    if (account.n) {
        json_set_str(a, spec, "serviceAccountName", account);
        json_set_str(a, spec, "serviceAccount", account);
    }
    if (is_pod && !json_get(spec, "enableServiceLinks"))
        json_set_bool(a, spec, "enableServiceLinks", true);
}

/* ---- quality of service */

enum { CPU, MEMORY, QOS_RESOURCES };

struct totals {
    bool all_limited; /* every container limits both */
    bool requested[QOS_RESOURCES], limited[QOS_RESOURCES];
    struct quantity requests[QOS_RESOURCES], limits[QOS_RESOURCES]; /* sums */
};

static bool parse_positive(const struct json *list, const char *name, struct quantity *ret)
{
    const struct json *value = json_get(list, name);
    return value && quantity_parse(json_text(value), ret, NULL) == 0 && !quantity_is_zero(ret) &&
           !ret->negative;
}

static void add_amount(bool *there, struct quantity *sum, const struct quantity *amount)
{
    if (*there)
        quantity_add(sum, amount);
    else
        *sum = *amount;
    *there = true;
}

/* Adds the requests and limits of one container to the totals. */
static void add_container(const struct json *resources, struct totals *t)
{
    static const char *const names[QOS_RESOURCES] = { "cpu", "memory" };
    for (size_t i = 0; i < QOS_RESOURCES; i++) {
        struct quantity amount;
        if (parse_positive(json_get(resources, "requests"), names[i], &amount))
            add_amount(&t->requested[i], &t->requests[i], &amount);
        if (parse_positive(json_get(resources, "limits"), names[i], &amount))
            add_amount(&t->limited[i], &t->limits[i], &amount);
        else
            t->all_limited = false;
    }
}

/* Guaranteed: limits for both resources everywhere, equal to the requests. BestEffort: no request
 * or limit at all. */
static const char *qos_class_of(const struct totals *t)
{
    bool any = false, equal = t->all_limited;
    for (size_t i = 0; i < QOS_RESOURCES; i++) {
        any = any || t->requested[i] || t->limited[i];
        equal = equal && t->requested[i] && quantity_cmp(&t->requests[i], &t->limits[i]) == 0;
    }
    return !any ? "BestEffort" : equal ? "Guaranteed" : "Burstable";
}

/* Pod-level resources, if set, decide alone. */
const char *podspec_qos_class(const struct json *spec)
{
    struct totals totals = { .all_limited = true };
    const struct json *whole = json_get(spec, "resources");
    static const char *const lists[] = { "initContainers", "containers" };
    if (json_len(json_get(whole, "requests")) || json_len(json_get(whole, "limits"))) {
        add_container(whole, &totals);
    } else {
        for (size_t i = 0; i < countof(lists); i++) {
            const struct json *list = get_list(spec, lists[i]);
            for (uint32_t j = 0; j < json_len(list); j++)
                add_container(json_get(list->items[j], "resources"), &totals);
        }
    }
    return qos_class_of(&totals);
}
