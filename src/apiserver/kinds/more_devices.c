/* Dynamic resource allocation: ResourceClaims, their templates, and ResourceSlices.
 *
 * Bounds, words and immutable fields are declared in types/more.types; here are only the defaults and the rules
 * that span fields. A template wraps the spec of a claim, so claim_spec() finds the part that both have in
 * common, and one set of hooks serves both kinds. Nothing here allocates devices: that is the scheduler's work,
 * which a simulated cluster does not have.
 *
 * The order of checks is the order of kube-apiserver's messages, which the recordings in test/conformance pin. */
#include "../schema/cel/cel.h"
#include "../schema/format.h"
#include "kind_hooks.h"

/* attributes and capacity: by driver, then by name */
#define NESTED                                                                                     \
    "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"object\",\"additionalProperties\":" \
    "{\"x-kubernetes-int-or-string\":true}}}"

static struct json *claim_spec(const struct json *object)
{
    struct json *spec = json_get(object, "spec"), *inner = json_get(spec, "spec");
    return inner ? inner : spec; /* a template wraps the spec of a claim */
}

/* One device, unless all are requested. */
static void fill_count(struct arena *a, struct json *request)
{
    if (request && str_eqc(json_text(json_get(request, "allocationMode")), "ExactCount") &&
        !json_int(json_get(request, "count"), 0))
        json_set_int(a, request, "count", 1);
}

/* A request names one kind of device (`exactly`) or a list of alternatives (`firstAvailable`). */
static void fill_resourceclaim(struct arena *a, struct json *object)
{
    struct json *requests = json_at(claim_spec(object), "devices", "requests", NULL);
    for (uint32_t i = 0; i < json_len(requests); i++) {
        struct json *more = json_get(requests->items[i], "firstAvailable");
        fill_count(a, json_get(requests->items[i], "exactly"));
        for (uint32_t n = 0; n < json_len(more); n++)
            fill_count(a, more->items[n]);
    }
}

static void check_count(const struct json *request, const struct field_path *at,
                        struct field_errors *errors)
{
    const struct json *count = json_get(request, "count");
    bool all = str_eqc(json_text(json_get(request, "allocationMode")), "All");
    if (all && json_int(count, 0))
        field_invalid(errors, AT(at, "count"), count,
                      "must not be specified when allocationMode is 'All'");
    else if (!all && json_int(count, 1) <= 0)
        field_invalid(errors, AT(at, "count"), count, "must be greater than zero");
}

/* Selectors are CEL expressions on one device. */
static void check_selectors(const struct json *selectors, const struct field_path *up,
                            struct field_errors *errors)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"driver\":{\"type\":\"string\"},"
        "\"allowMultipleAllocations\":{\"type\":\"boolean\"},\"attributes\":" NESTED
        ",\"capacity\":" NESTED "}}";
    auto_arena struct arena scratch = { 0 };
    struct json *tree = NULL;
    if (!json_len(selectors) || json_parse(&scratch, str_c(schema), &tree, NULL) < 0)
        return;
    const struct cel_variable device = { S("device"), cel_type_of_schema(&scratch, tree, false) };
    for (uint32_t i = 0; i < json_len(selectors); i++) {
        const struct json *text = json_at(selectors->items[i], "cel", "expression", NULL);
        struct field_path cel = { AT_INDEX(up, i), .key = S("cel") };
        const struct cel_program *p = NULL;
        str issues;
        if (cel_compile(&scratch, &(struct cel_env){ &device, 1 }, json_text(text), &p, &issues) <
            0)
            field_invalid(errors, AT(&cel, "expression"), text, "compilation failed: " STR_FMT,
                          STR_ARG(issues));
        else if (p->result->kind != CEL_BOOL && p->result->kind != CEL_DYN)
            field_invalid(errors, AT(&cel, "expression"), text,
                          "must evaluate to bool or the unknown type, not " STR_FMT,
                          STR_ARG(cel_type_text(&scratch, p->result)));
    }
}

/* Names are unique, and each request is of exactly one form. */
static void check_requests(const struct json *requests, const struct field_path *up,
                           struct field_errors *errors)
{
    struct seen names = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < json_len(requests); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *each = requests->items[i], *name = json_get(each, "name");
        const struct json *exactly = json_get(each, "exactly");
        bool several = json_len(json_get(each, "firstAvailable")) > 0;
        if (name && seen_value(&names, name, i))
            field_duplicate(errors, &at, name);
        if (!exactly && !several)
            field_required(errors, &at, "exactly one of `exactly` or `firstAvailable` is required");
        else if (exactly && several)
            field_invalid(errors, &at, json_new_null(errors->arena),
                          "exactly one of `exactly` or `firstAvailable` is required, but multiple "
                          "fields are set");
        if (exactly) {
            check_count(exactly, AT(&at, "exactly"), errors);
            check_selectors(json_get(exactly, "selectors"), AT(AT(&at, "exactly"), "selectors"),
                            errors);
        }
    }
}

/* Whether "request" or "request/subrequest" refers to a request of the claim. */
static bool has_request(const struct json *requests, str name)
{
    str first = name;
    size_t slash = str_find_char(name, '/');
    if (slash != SIZE_MAX)
        first = str_upto(name, slash);
    for (uint32_t i = 0; i < json_len(requests); i++)
        if (str_eq(json_text(json_get(requests->items[i], "name")), first))
            return true;
    return false;
}

/* Constraints and configurations name the requests that they apply to. */
static void check_references(const struct json *list, const struct json *requests,
                             const struct field_path *up, struct field_errors *errors)
{
    for (uint32_t i = 0; i < json_len(list); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *names = json_get(list->items[i], "requests");
        for (uint32_t n = 0; n < json_len(names); n++)
            if (!has_request(requests, json_text(names->items[n])))
                field_invalid(errors, AT_INDEX(AT(&at, "requests"), n), names->items[n],
                              "must be the name of a request in the claim or the name of a request "
                              "and a subrequest separated by '/'");
    }
}

static void validate_resourceclaim(const struct kind_change *c, struct kind_env *env UNUSED,
                                   struct field_errors *errors)
{
    bool template = json_at(c->object, "spec", "spec", NULL) != NULL;
    struct field_path outer = { NULL, .key = S("spec") }, inner = { &outer, .key = S("spec") };
    struct field_path devices = { template ? &inner : &outer, .key = S("devices") };
    const struct json *claim = json_get(claim_spec(c->object), "devices");
    const struct json *requests = json_get(claim, "requests");
    if (template)
        kind_check_labels(json_at(c->object, "spec", "metadata", "labels", NULL),
                          AT(AT(&outer, "metadata"), "labels"), errors);
    check_requests(requests, AT(&devices, "requests"), errors);
    check_references(json_get(claim, "constraints"), requests, AT(&devices, "constraints"), errors);
    check_references(json_get(claim, "config"), requests, AT(&devices, "config"), errors);
}

const struct kind_hooks kind_hooks_resourceclaim = { .fill = fill_resourceclaim,
                                                     .validate = validate_resourceclaim };

/* ---- ResourceSlice */

/* A slice belongs to one node, to selected nodes, to all, or leaves that to its devices. */
static void check_nodes(const struct json *spec, const struct field_path *at,
                        struct field_errors *errors)
{
    static const char *const keys[] = { "nodeName", "nodeSelector", "allNodes",
                                        "perDeviceNodeSelection" };
    static const char why[] = "exactly one of `nodeName`, `nodeSelector`, `allNodes`, "
                              "`perDeviceNodeSelection` is required";
    auto_buf struct buf set = { 0 };
    size_t n = 0;
    for (size_t i = 0; i < countof(keys); i++)
        if (json_get(spec, keys[i]))
            buf_printf(&set, "%s`%s`", n++ ? ", " : "{", keys[i]);
    buf_putc(&set, '}');
    if (!n)
        field_required(errors, at, why);
    else if (n > 1)
        field_invalid(errors, at, json_new_str(errors->arena, buf_str(&set)),
                      "%s, but multiple fields are set", why);
}

/* Schedulers compare versions, so a text that has no order is refused. */
static void check_version(const struct json *version, const struct field_path *at,
                          struct field_errors *errors)
{
    if (version && !cel_is_version(json_text(version)))
        field_invalid(errors, at, version,
                      "must be a string compatible with semver.org spec 2.0.0");
}

/* A device attribute is a union: exactly one of its typed values is set. */
static void check_attributes(const struct json *attributes, const struct field_path *up,
                             struct field_errors *errors)
{
    json_each(m, attributes) {
        struct field_path at = { up, .key = m->key, .how = FIELD_KEY };
        const struct json *versions = json_get(m->value, "versions");
        check_version(json_get(m->value, "version"), AT(&at, "version"), errors);
        for (uint32_t i = 0; i < json_len(versions); i++)
            check_version(versions->items[i], AT_INDEX(AT(&at, "versions"), i), errors);
        if (!json_len(m->value))
            field_invalid(errors, &at, json_new_str(errors->arena, S("")),
                          "exactly one value must be specified");
        else if (json_len(m->value) > 1)
            field_invalid(errors, &at, m->value, "exactly one value must be specified");
    }
}

static void validate_resourceslice(const struct kind_change *c, struct kind_env *env UNUSED,
                                   struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("spec") }, up = { &at, .key = S("devices") };
    const struct json *spec = json_get(c->object, "spec"), *devices = json_get(spec, "devices");
    struct seen names = seen_new(errors->arena, 1);
    check_nodes(spec, &at, errors);
    if (c->old)
        kind_check_immutable(json_get(spec, "nodeName"), json_at(c->old, "spec", "nodeName", NULL),
                             AT(&at, "nodeName"), errors);
    for (uint32_t i = 0; i < json_len(devices); i++) {
        struct field_path device = { &up, .index = i, .how = FIELD_INDEX };
        const struct json *name = json_get(devices->items[i], "name");
        if (name && seen_value(&names, name, i))
            field_duplicate(errors, &device, name);
        check_attributes(json_get(devices->items[i], "attributes"), AT(&device, "attributes"),
                         errors);
    }
}

const struct kind_hooks kind_hooks_resourceslice = { .validate = validate_resourceslice };
