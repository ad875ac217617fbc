/* LimitRanges: validation, defaults for the containers of new pods, and which pods and claims are out of bounds.
 *
 * Bounds hold for a container, for the sum of a pod, or for a claim. Defaults are for containers, and an annotation of
 * the pod names those that were set. Messages are quoted: kube-apiserver. */
#include "quota.h"

#include "../../base/quantity.h"
#include "../schema/format.h"
#include "kind_hooks.h"

/* Zero if the text is absent; stored quantities are valid. */
static struct quantity parse(const struct json *text)
{
    struct quantity q = quantity_of(0, 0, QUANTITY_DECIMAL);
    quantity_parse(json_text(text), &q, NULL);
    return q;
}

/* ---- LimitRange */

/* Copies entries of one map that another lacks. */
static void copy_missing(struct arena *a, struct json *item, const char *to, const char *from)
{
    json_each(m, json_get(item, from))
        if (!json_get_str(json_get(item, to), m->key))
            json_set(a, json_make(a, item, to, NULL), m->key, json_copy(a, m->value));
}

/* A default limit is the maximum unless given; a default request is the default limit or the minimum. */
static void fill_limitrange(struct arena *a, struct json *object)
{
    const struct json *items = json_at(object, "spec", "limits", NULL);
    for (uint32_t i = 0; i < json_len(items); i++) {
        if (!str_eqc(json_text(json_get(items->items[i], "type")), "Container"))
            continue;
        copy_missing(a, items->items[i], "default", "max");
        copy_missing(a, items->items[i], "defaultRequest", "default");
        copy_missing(a, items->items[i], "defaultRequest", "min");
    }
}

/* The pairs that must be in order, and how kube-apiserver names them. */
static const struct {
    const char *low, *high, *at, *low_word, *high_word;
} orders[] = {
    { "min", "max", "min", "min value", "max value" },
    { "min", "defaultRequest", "defaultRequest", "min value", "default request value" },
    { "defaultRequest", "max", "defaultRequest", "default request value", "max value" },
    { "defaultRequest", "default", "defaultRequest", "default request value",
      "default limit value" },
    { "min", "default", "default", "min value", "default value" },
    { "default", "max", "default", "default value", "max value" },
};

/* Minimum, defaults and maximum, and ratios of at least one. */
static void check_orders(const struct json *item, const struct field_path *at,
                         struct field_errors *errors)
{
    for (size_t i = 0; i < countof(orders); i++) {
        struct field_path up = { at, .key = str_c(orders[i].at) };
        json_each(m, json_get(item, orders[i].low)) {
            const struct json *other = json_get_str(json_get(item, orders[i].high), m->key);
            struct quantity low = parse(m->value), high = parse(other);
            if (other && quantity_cmp(&low, &high) > 0)
                field_invalid(errors, AT_KEY(&up, m->key),
                              json_get_str(json_get(item, orders[i].at), m->key),
                              "%s " STR_FMT " is greater than %s " STR_FMT, orders[i].low_word,
                              STR_ARG(json_text(m->value)), orders[i].high_word,
                              STR_ARG(json_text(other)));
        }
    }
    struct field_path up = { at, .key = S("maxLimitRequestRatio") };
    struct quantity one = quantity_of(1, 0, QUANTITY_DECIMAL);
    json_each(m, json_get(item, "maxLimitRequestRatio")) {
        struct quantity ratio = parse(m->value);
        if (quantity_cmp(&ratio, &one) < 0)
            field_invalid(errors, AT_KEY(&up, m->key), m->value, "ratio " STR_FMT " is less than 1",
                          STR_ARG(json_text(m->value)));
    }
}

/* Names of resources. */
static void check_names(const struct json *item, const struct field_path *at,
                        struct field_errors *errors)
{
    static const char *const maps[] = { "max", "min", "default", "defaultRequest" };
    for (size_t i = 0; i < countof(maps); i++) {
        struct field_path up = { at, .key = str_c(maps[i]) };
        json_each(m, json_get(item, maps[i]))
            kind_check_qualified(json_new_str(errors->arena, m->key), AT_KEY(&up, m->key), errors);
    }
}

/* Each type at most once; a pod has no defaults. */
static void validate_limitrange(const struct kind_change *c, struct kind_env *env UNUSED,
                                struct field_errors *errors)
{
    static const char *const types[] = { "Container", "Pod", "PersistentVolumeClaim", NULL };
    static const char *const defaults[] = { "default", "defaultRequest" };
    struct field_path spec = { NULL, .key = S("spec") }, up = { &spec, .key = S("limits") };
    const struct json *items = json_at(c->object, "spec", "limits", NULL);
    struct seen seen = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < json_len(items); i++) {
        struct field_path at = { &up, .index = i, .how = FIELD_INDEX };
        const struct json *item = items->items[i], *type = json_get(item, "type");
        str name = json_text(type);
        if (name.n && str_find_char(name, '/') == SIZE_MAX && !format_is_one_of(name, types))
            field_invalid(errors, AT(&at, "type"), type,
                          "must be a standard limit type or fully qualified");
        if (seen_value(&seen, type, i))
            field_duplicate(errors, AT(&at, "type"), type);
        check_names(item, &at, errors);
        for (size_t n = 0; n < countof(defaults) && str_eqc(name, "Pod"); n++)
            if (json_len(json_get(item, defaults[n])))
                field_forbidden(errors, &(struct field_path){ &at, .key = str_c(defaults[n]) },
                                "may not be specified when `type` is 'Pod'");
        if (str_eqc(name, "PersistentVolumeClaim") && !json_at(item, "min", "storage", NULL) &&
            !json_at(item, "max", "storage", NULL))
            field_required(errors, AT(&at, "limits"),
                           "either minimum or maximum storage value is required, but neither was "
                           "provided");
        check_orders(item, &at, errors);
    }
}

const struct kind_hooks kind_hooks_limitrange = { .fill = fill_limitrange,
                                                  .validate = validate_limitrange };

/* ---- amounts of a pod */

/* Adds a declared amount and notes that there was one. */
static void add_amount(struct quantity *sum, const struct json *amount, bool *found)
{
    struct quantity part = parse(amount);
    if (!amount)
        return;
    *found = true;
    quantity_add(sum, &part);
}

struct json *kind_limits_pod_amount(struct arena *a, const struct json *pod, const char *list,
                                    str name)
{
    const struct json *containers = json_at(pod, "spec", "containers", NULL);
    const struct json *before = json_at(pod, "spec", "initContainers", NULL);
    struct quantity sum = quantity_of(0, 0, QUANTITY_DECIMAL), most = sum, sidecars = sum;
    bool found = false;
    for (uint32_t i = 0; i < json_len(containers); i++)
        add_amount(&sum, json_get_str(json_at(containers->items[i], "resources", list, NULL), name),
                   &found);
    for (uint32_t i = 0; i < json_len(before); i++) {
        const struct json *each = before->items[i];
        const struct json *amount = json_get_str(json_at(each, "resources", list, NULL), name);
        if (str_eqc(json_text(json_get(each, "restartPolicy")), "Always")) {
            add_amount(&sidecars, amount, &found);
            continue;
        }
        struct quantity while_it_runs = sidecars;
        add_amount(&while_it_runs, amount, &found);
        if (quantity_cmp(&while_it_runs, &most) > 0)
            most = while_it_runs;
    }
    quantity_add(&sum, &sidecars);
    if (quantity_cmp(&most, &sum) > 0)
        sum = most;
    add_amount(&sum, json_get_str(json_at(pod, "spec", "overhead", NULL), name), &found);
    char text[QUANTITY_TEXT_MAX];
    return found ? json_new_str(a, arena_str(a, quantity_text(&sum, text))) : NULL;
}

/* ---- defaults */

/* For qsort: the annotation lists resources in alphabetical order. */
static int compare_words(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

/* Copies what the container does not declare; adds "cpu, memory request for container c" to the note. */
static void merge_defaults(struct arena *a, struct json *container, const struct json *defaults,
                           const char *list, const char *what, const char *role, struct buf *note)
{
    str *set = arena_array(a, json_len(defaults), sizeof(*set));
    size_t n = 0;
    json_each(m, defaults) {
        if (json_get_str(json_at(container, "resources", list, NULL), m->key))
            continue;
        json_set(a, json_make(a, container, "resources", list, NULL), m->key,
                 json_copy(a, m->value));
        set[n++] = m->key;
    }
    if (!n)
        return;
    qsort(set, n, sizeof(*set), compare_words);
    buf_put(note, note->n ? S("; ") : S("LimitRanger plugin set: "));
    for (size_t i = 0; i < n; i++)
        buf_printf(note, "%s" STR_FMT, i ? ", " : "", STR_ARG(set[i]));
    buf_printf(note, " %s for %s " STR_FMT, what, role,
               STR_ARG(json_text(json_get(container, "name"))));
}

void kind_limits_fill(struct arena *a, const struct json *ranges, struct json *pod)
{
    static const char *const lists[] = { "containers", "initContainers" };
    for (uint32_t r = 0; r < json_len(ranges); r++) {
        const struct json *items = json_at(ranges->items[r], "spec", "limits", NULL);
        auto_buf struct buf note = { 0 };
        for (uint32_t i = 0; i < json_len(items); i++) {
            const struct json *item = items->items[i];
            if (!str_eqc(json_text(json_get(item, "type")), "Container"))
                continue;
            for (size_t l = 0; l < countof(lists); l++) {
                const struct json *all = json_at(pod, "spec", lists[l], NULL);
                const char *role = l ? "init container" : "container";
                for (uint32_t n = 0; n < json_len(all); n++) {
                    merge_defaults(a, all->items[n], json_get(item, "defaultRequest"), "requests",
                                   "request", role, &note);
                    merge_defaults(a, all->items[n], json_get(item, "default"), "limits", "limit",
                                   role, &note);
                }
            }
        }
        if (note.n)
            json_set_str(a, json_make(a, pod, "metadata", "annotations", NULL),
                         "kubernetes.io/limit-ranger", arena_str(a, buf_str(&note)));
    }
}

/* ---- bounds */

struct bounds {
    struct arena *arena;
    struct buf text; /* of all errors */
    size_t n;
};

/* All errors become one message. */
static void add_error(struct bounds *b, str text)
{
    if (b->n++)
        buf_put(&b->text, S(", "));
    buf_put(&b->text, text);
}

/* One resource against one bound. `only_requests`: claims have no limits. */
static void check_bound(struct bounds *b, str resource, const char *type, const struct json *bound,
                        bool is_max, const struct json *request, const struct json *limit,
                        bool only_requests)
{
    const struct json *first = is_max && !only_requests ? limit : request;
    const struct json *second = is_max ? request : limit;
    const char *first_word = is_max && !only_requests ? "limit" : "request";
    const char *second_word = is_max ? "request" : "limit";
    struct quantity edge = parse(bound), one = parse(first), other = parse(second);
    str start = arena_printf(b->arena, "%s " STR_FMT " usage per %s is " STR_FMT,
                             is_max ? "maximum" : "minimum", STR_ARG(resource), type,
                             STR_ARG(json_text(bound)));
    int sign = is_max ? 1 : -1;
    if (!first)
        add_error(b, arena_printf(b->arena, STR_FMT ".  No %s is specified", STR_ARG(start),
                                  first_word));
    else if (quantity_cmp(&one, &edge) * sign > 0)
        add_error(b, arena_printf(b->arena, STR_FMT ", but %s is " STR_FMT, STR_ARG(start),
                                  first_word, STR_ARG(json_text(first))));
    else if (!only_requests && second && quantity_cmp(&other, &edge) * sign > 0)
        add_error(b, arena_printf(b->arena, STR_FMT ", but %s is " STR_FMT, STR_ARG(start),
                                  second_word, STR_ARG(json_text(second))));
}

/* How much the limit may exceed the request. */
static void check_ratio(struct bounds *b, str resource, const char *type, const struct json *bound,
                        const struct json *request, const struct json *limit)
{
    struct quantity asked = parse(request), most = parse(limit), edge = parse(bound);
    int64_t asked_milli = 0, most_milli = 0, edge_milli = 0;
    str start =
        arena_printf(b->arena, STR_FMT " max limit to request ratio per %s is " STR_FMT ", but ",
                     STR_ARG(resource), type, STR_ARG(json_text(bound)));
    quantity_scaled(&asked, -3, &asked_milli);
    quantity_scaled(&most, -3, &most_milli);
    quantity_scaled(&edge, -3, &edge_milli);
    if (!request || !asked_milli)
        add_error(b, arena_printf(b->arena, STR_FMT "no request is specified or request is 0",
                                  STR_ARG(start)));
    else if (!limit || !most_milli)
        add_error(b, arena_printf(b->arena, STR_FMT "no limit is specified or limit is 0",
                                  STR_ARG(start)));
    else if ((double)most_milli / (double)asked_milli > (double)edge_milli / 1000)
        add_error(b, arena_printf(b->arena, STR_FMT "provided ratio is %f", STR_ARG(start),
                                  (double)most_milli / (double)asked_milli));
}

/* All bounds of one item on what a container, a pod or a claim declares. */
static void check_item(struct bounds *b, const struct json *item, const char *type,
                       const struct json *requests, const struct json *limits, bool only_requests)
{
    static const char *const maps[] = { "min", "max" };
    for (size_t i = 0; i < countof(maps); i++)
        json_each(m, json_get(item, maps[i]))
            check_bound(b, m->key, type, m->value, i == 1, json_get_str(requests, m->key),
                        json_get_str(limits, m->key), only_requests);
    json_each(m, json_get(item, "maxLimitRequestRatio"))
        check_ratio(b, m->key, type, m->value, json_get_str(requests, m->key),
                    json_get_str(limits, m->key));
}

/* The sums of a pod for all resources that the item mentions. */
static struct json *pod_amounts(struct arena *a, const struct json *item, const struct json *pod,
                                const char *list)
{
    static const char *const maps[] = { "min", "max", "maxLimitRequestRatio" };
    struct json *sums = json_new_obj(a);
    for (size_t i = 0; i < countof(maps); i++)
        json_each(m, json_get(item, maps[i])) {
            struct json *amount = kind_limits_pod_amount(a, pod, list, m->key);
            if (amount)
                json_set(a, sums, m->key, amount);
        }
    return sums;
}

/* An item of type Pod or Container. */
static void check_pod(struct bounds *b, const struct json *item, const struct json *pod)
{
    static const char *const lists[] = { "containers", "initContainers" };
    str type = json_text(json_get(item, "type"));
    if (str_eqc(type, "Pod"))
        check_item(b, item, "Pod", pod_amounts(b->arena, item, pod, "requests"),
                   pod_amounts(b->arena, item, pod, "limits"), false);
    for (size_t l = 0; l < countof(lists) && str_eqc(type, "Container"); l++) {
        const struct json *all = json_at(pod, "spec", lists[l], NULL);
        for (uint32_t n = 0; n < json_len(all); n++)
            check_item(b, item, "Container", json_at(all->items[n], "resources", "requests", NULL),
                       json_at(all->items[n], "resources", "limits", NULL), false);
    }
}

str kind_limits_refusal(struct arena *a, const struct json *ranges, const struct kind *k,
                        const struct json *object)
{
    bool is_pod = str_eqc(k->plural, "pods");
    struct bounds b = { .arena = a };
    for (uint32_t r = 0; r < json_len(ranges) && !b.n; r++) {
        const struct json *items = json_at(ranges->items[r], "spec", "limits", NULL);
        for (uint32_t i = 0; i < json_len(items); i++) {
            const struct json *item = items->items[i];
            if (is_pod)
                check_pod(&b, item, object);
            else if (str_eqc(json_text(json_get(item, "type")), "PersistentVolumeClaim"))
                check_item(&b, item, "PersistentVolumeClaim",
                           json_at(object, "spec", "resources", "requests", NULL), NULL, true);
        }
    }
    str text = !b.n       ? S("")
               : b.n == 1 ? arena_str(a, buf_str(&b.text))
                          : arena_printf(a, "[" STR_FMT "]", STR_ARG(buf_str(&b.text)));
    buf_done(&b.text);
    return text;
}
