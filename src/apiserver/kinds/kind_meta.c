/* The rules of metadata, which hold for every object, and of the names and labels in it.
 *
 * kube-apiserver validates the metadata of an update in several places, and a client sees each error once
 * per place. The number of repetitions is part of the recorded behavior, see kind_check_metadata(). For the
 * same reason labels and annotations are reported at the map and finalizers sometimes at the list: the paths
 * are those that clients have always seen. */
#include "../schema/format.h"
#include "kind_hooks.h"

enum { ANNOTATIONS_BYTES_MAX = 256 * 1024 };

/* The rule of the kind, or the default: a DNS subdomain. */
static const char *check_name(const struct kind *k, str name)
{
    return k->hooks && k->hooks->name ? k->hooks->name(name) : format_dns_subdomain(name);
}

/* name, and the prefix of a generated one. */
static void check_names(const struct kind_change *c, const struct json *metadata,
                        const struct field_path *at, struct field_errors *errors)
{
    const struct json *name = json_get(metadata, "name");
    const struct json *prefix = json_get(metadata, "generateName");
    str text = json_text(prefix);
    if (text.n) {
        if (text.n > 1 && text.p[text.n - 1] == '-') /* the generated suffix follows */
            text = arena_printf(errors->arena, "%.*sa", (int)text.n - 2, text.p);
        const char *fault = check_name(c->kind, text);
        if (fault)
            field_invalid(errors, AT(at, "generateName"), prefix, "%s", fault);
    }
    if (!json_text(name).n) {
        field_required(errors, AT(at, "name"), "name or generateName is required");
        return;
    }
    const char *fault = check_name(c->kind, json_text(name));
    if (fault)
        field_invalid(errors, AT(at, "name"), name, "%s", fault);
}

static struct json text_node(str text)
{
    return (struct json){ .type = JSON_STR, .n = (uint32_t)text.n, .text = text.p };
}

/* An empty name violates two rules: it is empty, and it does not match the pattern. */
static void check_qualified(str text, const struct json *shown, const struct field_path *at,
                            struct field_errors *errors)
{
    const char *fault = format_qualified_name(text);
    if (fault)
        field_invalid(errors, at, shown, "%s", fault);
    if (!text.n || text.p[text.n - 1] == '/')
        field_invalid(
            errors, at, shown,
            "name part must consist of alphanumeric characters, '-', '_' or '.', and must start "
            "and end with an alphanumeric character");
}

void kind_check_qualified(const struct json *name, const struct field_path *at,
                          struct field_errors *errors)
{
    check_qualified(json_text(name), name, at, errors);
}

/* A port name has 1 to 15 lower-case letters, digits and hyphens; each broken rule is an error of its own. */
void kind_check_port_name(const struct json *name, const struct field_path *at,
                          struct field_errors *errors)
{
    str text = json_text(name);
    bool letter = false, bad_character = false, doubled = false;
    for (size_t i = 0; i < text.n; i++) {
        bool small = text.p[i] >= 'a' && text.p[i] <= 'z';
        letter = letter || small;
        bad_character =
            bad_character || (!small && text.p[i] != '-' && (text.p[i] < '0' || text.p[i] > '9'));
        doubled = doubled || (i && text.p[i] == '-' && text.p[i - 1] == '-');
    }
    if (text.n > 15)
        field_invalid(errors, at, name, "must be no more than 15 bytes");
    if (bad_character || !text.n)
        field_invalid(errors, at, name,
                      "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    if (!letter)
        field_invalid(errors, at, name, "must contain at least one letter (a-z)");
    if (doubled)
        field_invalid(errors, at, name, "must not contain consecutive hyphens");
    if (text.n && (text.p[0] == '-' || text.p[text.n - 1] == '-'))
        field_invalid(errors, at, name, "must not begin or end with a hyphen");
}

/* Errors are reported for the map, not for the key. */
void kind_check_labels(const struct json *labels, const struct field_path *at,
                       struct field_errors *errors)
{
    json_each(m, labels) {
        struct json key = text_node(m->key);
        check_qualified(m->key, &key, at, errors);
        const char *fault = format_label_value(json_text(m->value));
        if (fault)
            field_invalid(errors, at, m->value, "%s", fault);
    }
}

/* Keys are qualified names in lower case; the total size is limited. */
void kind_check_annotations(const struct json *annotations, const struct field_path *at,
                            struct field_errors *errors)
{
    size_t bytes = 0;
    json_each(m, annotations) {
        auto_buf struct buf key = { 0 };
        buf_put(&key, m->key);
        for (size_t i = 0; i < key.n; i++) /* annotation keys may have upper-case prefixes */
            if (key.p[i] >= 'A' && key.p[i] <= 'Z')
                key.p[i] = (char)(key.p[i] | 32);
        struct json shown = text_node(m->key);
        check_qualified(buf_str(&key), &shown, at, errors);
        bytes += m->key.n + json_text(m->value).n;
    }
    if (bytes > ANNOTATIONS_BYTES_MAX)
        field_too_long(errors, at, ANNOTATIONS_BYTES_MAX);
}

static bool is_standard_finalizer(str name)
{
    return str_eqc(name, "kubernetes") || str_eqc(name, "orphan") ||
           str_eqc(name, "foregroundDeletion");
}

void kind_check_finalizer(const struct json *name, const struct field_path *at,
                          struct field_errors *errors)
{
    kind_check_qualified(name, at, errors);
    if (str_find_char(json_text(name), '/') == SIZE_MAX && !is_standard_finalizer(json_text(name)))
        field_invalid(errors, at, name,
                      "name is neither a standard finalizer name nor is it fully qualified");
}

/* Qualified names; only custom resources may have names without a domain. */
static void check_finalizers(const struct kind_change *c, const struct json *finalizers,
                             const struct field_path *at, struct field_errors *errors)
{
    bool orphan = false, foreground = false;
    for (uint32_t i = 0; i < json_len(finalizers); i++) {
        const struct json *name = finalizers->items[i];
        kind_check_qualified(name, at, errors);
        if (!c->kind->custom && str_find_char(json_text(name), '/') == SIZE_MAX &&
            !is_standard_finalizer(json_text(name)))
            field_invalid(errors, AT_INDEX(at, i), name,
                          "name is neither a standard finalizer name nor is it fully qualified");
        orphan = orphan || str_eqc(json_text(name), "orphan");
        foreground = foreground || str_eqc(json_text(name), "foregroundDeletion");
    }
    if (orphan && foreground)
        field_invalid(errors, at, finalizers,
                      "finalizer orphan and foregroundDeletion cannot be both set");
}

/* ownerReferences are complete, and at most one is the controller. */
static void check_owners(const struct json *owners, const struct field_path *at,
                         struct field_errors *errors)
{
    bool controlled = false;
    for (uint32_t i = 0; i < json_len(owners); i++) {
        const struct json *owner = owners->items[i];
        struct field_path item = { at, .index = i, .how = FIELD_INDEX };
        static const char *const needed[] = { "apiVersion", "kind", "name", "uid" };
        for (size_t j = 0; j < countof(needed); j++)
            if (!json_text(json_get(owner, needed[j])).n)
                field_required(errors, &(struct field_path){ &item, .key = str_c(needed[j]) },
                               "must not be empty");
        str version = json_text(json_get(owner, "apiVersion"));
        size_t slash = str_find_char(version, '/');
        str tail = slash == SIZE_MAX ? version : str_from(version, slash + 1);
        if (version.n && (!tail.n || str_find_char(tail, '/') != SIZE_MAX))
            field_invalid(errors, AT(&item, "apiVersion"), json_get(owner, "apiVersion"),
                          "must be VERSION or GROUP/VERSION");
        if (str_eqc(version, "v1") && str_eqc(json_text(json_get(owner, "kind")), "Event"))
            field_invalid(errors, at, owner, "/v1, Kind=Event is disallowed from being an owner");
        bool controls = json_bool(json_get(owner, "controller"), false);
        if (controls && controlled)
            field_invalid(errors, at, owners, "Only one reference can have Controller set to true");
        controlled = controlled || controls;
    }
}

/* ---- changes */

void kind_check_immutable(const struct json *object, const struct json *old,
                          const struct field_path *at, struct field_errors *errors)
{
    if (!json_eq(object, old))
        field_invalid(errors, at, object, "field is immutable");
}

/* An object that is being deleted gets no new finalizers. Reported once. */
static void check_finalizer_changes(const struct json *metadata, const struct json *old,
                                    const struct field_path *at, struct field_errors *errors)
{
    const struct json *before = json_get(old, "finalizers"),
                      *now = json_get(metadata, "finalizers");
    if (!json_get(old, "deletionTimestamp"))
        return;
    struct seen known = seen_list(errors->arena, before, NULL);
    for (uint32_t i = 0; i < json_len(now); i++) {
        if (!seen_lookup(&known, now->items[i])) {
            field_forbidden(errors, AT(at, "finalizers"),
                            "no new finalizers can be added if the object is being deleted");
            return;
        }
    }
}

/* System metadata never changes. */
static void check_metadata_change(const struct kind_change *c, const struct field_path *at,
                                  struct field_errors *errors)
{
    static const char *const fixed[] = { "name",
                                         "namespace",
                                         "uid",
                                         "creationTimestamp",
                                         "deletionTimestamp",
                                         "deletionGracePeriodSeconds" };
    const struct json *metadata = json_get(c->object, "metadata");
    const struct json *old = json_get(c->old, "metadata");
    for (size_t i = 0; i < countof(fixed); i++)
        kind_check_immutable(json_get(metadata, fixed[i]), json_get(old, fixed[i]),
                             &(struct field_path){ at, .key = str_c(fixed[i]) }, errors);
    check_finalizer_changes(metadata, old, at, errors);
}

/* The part of metadata that kube-apiserver validates again on updates. */
static void check_labels_and_owners(const struct json *metadata, const struct field_path *at,
                                    struct field_errors *errors)
{
    kind_check_labels(json_get(metadata, "labels"), AT(at, "labels"), errors);
    kind_check_annotations(json_get(metadata, "annotations"), AT(at, "annotations"), errors);
    check_owners(json_get(metadata, "ownerReferences"), AT(at, "ownerReferences"), errors);
}

/* kube-apiserver validates the metadata of an update in several places, and clients see every
 * error once per place: changes twice, labels and owners three times, and once more for kinds
 * that validate an update like a new object. */
void kind_check_metadata(const struct kind_change *c, struct field_errors *errors)
{
    const struct json *metadata = json_get(c->object, "metadata");
    const struct json *finalizers = json_get(metadata, "finalizers");
    struct field_path at = { NULL, .key = S("metadata") };
    bool again = c->kind->hooks && c->kind->hooks->metadata_twice;
    check_labels_and_owners(metadata, &at, errors);
    check_finalizers(c, finalizers, AT(&at, "finalizers"), errors);
    if (!c->old) {
        const struct json *generation = json_get(metadata, "generation");
        check_names(c, metadata, &at, errors);
        if (json_int(generation, 0) < 0)
            field_invalid(errors, AT(&at, "generation"), generation,
                          "must be greater than or equal to 0");
        return;
    }
    for (int i = 0; i < 2 + again; i++)
        check_labels_and_owners(metadata, &at, errors);
    if (again)
        check_finalizers(c, finalizers, AT(&at, "finalizers"), errors);
    check_metadata_change(c, &at, errors);
    check_metadata_change(c, &at, errors);
}
