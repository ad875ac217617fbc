/* What is filled in for a PodSpec, alone in a Pod or in the template of a workload, and the class of
 * service its resources make. */
#include "kind_hooks.h"

#include "../../base/quantity.h"

static struct json *list_of(const struct json *spec, const char *key)
{
    struct json *list = json_get(spec, key);
    return json_is(list, JSON_ARR) ? list : NULL;
}

enum { IMAGE_NAME_MAX = 255 };

static bool is_small(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* "app", "my-app_1.x": letters and digits, with dots, bars and dashes between them. */
static bool is_image_part(str part)
{
    for (size_t i = 0; i < part.n; i++)
        if (!is_small(part.p[i]) && !memchr("._-", part.p[i], 3))
            return false;
    return part.n && is_small(part.p[0]) && is_small(part.p[part.n - 1]);
}

/* What stands before the first slash names a host if it cannot be part of a name. */
static bool is_image_host(str part)
{
    bool host = str_eqc(part, "localhost");
    for (size_t i = 0; i < part.n; i++) {
        char c = part.p[i];
        bool large = c >= 'A' && c <= 'Z';
        host = host || large || c == '.' || c == ':';
        if (!is_small(c) && !large && !memchr(".:-", c, 3))
            return false;
    }
    return host;
}

/* Pulled always is what means "latest": an image that names neither a tag nor a digest. What is no
 * image at all is none of these. */
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

static void fill_host_ports(struct arena *a, struct json *container)
{
    struct json *ports = list_of(container, "ports");
    for (uint32_t i = 0; i < json_len(ports); i++)
        if (!json_get(ports->items[i], "hostPort"))
            json_set_int(a, ports->items[i], "hostPort",
                         json_int(json_get(ports->items[i], "containerPort"), 0));
}

static void fill_containers(struct arena *a, struct json *spec, const char *key, bool is_pod)
{
    struct json *list = list_of(spec, key);
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

/* A volume that names no source is an empty directory. */
static void fill_volumes(struct arena *a, struct json *spec)
{
    struct json *volumes = list_of(spec, "volumes");
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

/* Limits of the whole pod are its requests, unless its containers say what they request. */
static void fill_pod_requests(struct arena *a, struct json *spec)
{
    struct json *list = list_of(spec, "containers");
    bool said = false;
    for (uint32_t i = 0; i < json_len(list); i++)
        said = said || json_len(json_at(list->items[i], "resources", "requests", NULL));
    if (!said)
        fill_requests(a, spec);
}

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
    if (is_pod && json_int(grace, 0) < 0) /* old clients may still say so; they meant "at once" */
        json_set_int(a, spec, "terminationGracePeriodSeconds", 1);
    /* one name under two keys, the older kept for old clients */
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

enum { CPU, MEMORY, COUNTED };

struct totals {
    bool all_limited; /* every container limits both */
    bool requested[COUNTED], limited[COUNTED];
    struct quantity requests[COUNTED], limits[COUNTED]; /* sums */
};

static bool positive(const struct json *list, const char *name, struct quantity *ret)
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

static void count_container(const struct json *resources, struct totals *t)
{
    static const char *const names[COUNTED] = { "cpu", "memory" };
    for (size_t i = 0; i < COUNTED; i++) {
        struct quantity amount;
        if (positive(json_get(resources, "requests"), names[i], &amount))
            add_amount(&t->requested[i], &t->requests[i], &amount);
        if (positive(json_get(resources, "limits"), names[i], &amount))
            add_amount(&t->limited[i], &t->limits[i], &amount);
        else
            t->all_limited = false;
    }
}

static const char *class_of(const struct totals *t)
{
    bool any = false, equal = t->all_limited;
    for (size_t i = 0; i < COUNTED; i++) {
        any = any || t->requested[i] || t->limited[i];
        equal = equal && t->requested[i] && quantity_cmp(&t->requests[i], &t->limits[i]) == 0;
    }
    return !any ? "BestEffort" : equal ? "Guaranteed" : "Burstable";
}

const char *podspec_qos(const struct json *spec)
{
    struct totals totals = { .all_limited = true };
    const struct json *whole = json_get(spec, "resources");
    static const char *const lists[] = { "initContainers", "containers" };
    if (json_len(json_get(whole, "requests")) || json_len(json_get(whole, "limits"))) {
        count_container(whole, &totals);
    } else {
        for (size_t i = 0; i < countof(lists); i++) {
            const struct json *list = list_of(spec, lists[i]);
            for (uint32_t j = 0; j < json_len(list); j++)
                count_container(json_get(list->items[j], "resources"), &totals);
        }
    }
    return class_of(&totals);
}
