/* Unknown fields: see manifest_fields.h.
 *
 * The walk follows the structural schema of the CRD: `properties` by name, `items` for each entry of a list,
 * `additionalProperties` for each value of a map. It stops at x-kubernetes-preserve-unknown-fields. The API server
 * checks metadata as well, for which a CRD has no schema; its fields are listed here.
 *
 *     error: unknown field "spec.triggers[0].startHpaConfig"; did you mean "startHPAConfig"? */
#include "manifest_fields.h"

#include "manifests.h"

enum { NAME_MAX_BYTES = 64, DEPTH_MAX = 64 };

struct walk {
    struct arena arena;
    struct buf *out;
    size_t found;
};

/* ---- the nearest name */

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* Insertions, deletions and replacements (Levenshtein) that turn one name into the other, in any case. */
static size_t edit_distance(str x, str y)
{
    size_t row[NAME_MAX_BYTES + 1];
    for (size_t j = 0; j <= y.n; j++)
        row[j] = j;
    for (size_t i = 1; i <= x.n; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= y.n; j++) {
            size_t replaced = diagonal + (lower(x.p[i - 1]) != lower(y.p[j - 1]));
            diagonal = row[j];
            row[j] = MIN(replaced, MIN(row[j], row[j - 1]) + 1);
        }
    }
    return row[y.n];
}

str manifest_nearest(str word, const str *candidates, size_t n)
{
    str best = S("");
    if (word.n > NAME_MAX_BYTES)
        return best;
    size_t least = MAX(word.n / 3, (size_t)2) + 1; /* further away is another word, not a typo */
    for (size_t i = 0; i < n; i++) {
        if (candidates[i].n > NAME_MAX_BYTES)
            continue;
        size_t distance = edit_distance(word, candidates[i]);
        if (distance < least) {
            least = distance;
            best = candidates[i];
        }
    }
    return best;
}

/* ---- the walk */

static void report_field(struct walk *w, str path, str name, const struct json *properties)
{
    str *known = arena_array(&w->arena, MAX(json_len(properties), (size_t)1), sizeof(*known));
    size_t n = 0;
    json_each(p, properties)
        known[n++] = p->key;
    str nearest = manifest_nearest(name, known, n);
    buf_printf(w->out, "error: unknown field \"" STR_FMT "\"", STR_ARG(path));
    if (nearest.n)
        buf_printf(w->out, "; did you mean \"" STR_FMT "\"?", STR_ARG(nearest));
    buf_putc(w->out, '\n');
    w->found++;
}

/* Compares one value with its schema. Objects that preserve unknown fields and maps accept any key. */
static void walk_value(struct walk *w, const struct json *schema, const struct json *value,
                       str path, int depth)
{
    const struct json *properties = json_get(schema, "properties"),
                      *others = json_get(schema, "additionalProperties");
    if (!schema || !value || depth > DEPTH_MAX)
        return;
    bool is_open = json_bool(json_get(schema, "x-kubernetes-preserve-unknown-fields"), false);
    for (size_t i = 0; value->type == JSON_ARR && i < value->n; i++)
        walk_value(w, json_get(schema, "items"), value->items[i],
                   arena_printf(&w->arena, STR_FMT "[%zu]", STR_ARG(path), i), depth + 1);
    if (value->type != JSON_OBJ)
        return;
    json_each(m, value) {
        const struct json *of_field = json_get_str(properties, m->key);
        str at = arena_printf(&w->arena, STR_FMT "%s" STR_FMT, STR_ARG(path), path.n ? "." : "",
                              STR_ARG(m->key));
        of_field = of_field ? of_field : others;
        if (of_field)
            walk_value(w, of_field, m->value, at, depth + 1);
        else if (!is_open && (properties || !others))
            report_field(w, at, m->key, properties);
    }
}

/* metadata has the same fields in every kind. */
static void walk_metadata(struct walk *w, const struct json *metadata)
{
    static const char *const fields[] = {
        "name",
        "generateName",
        "namespace",
        "labels",
        "annotations",
        "uid",
        "finalizers",
        "resourceVersion",
        "generation",
        "selfLink",
        "creationTimestamp",
        "deletionTimestamp",
        "ownerReferences",
        "managedFields",
        "deletionGracePeriodSeconds",
    };
    struct json *properties = json_new_obj(&w->arena);
    for (size_t i = 0; i < countof(fields); i++)
        json_set(&w->arena, properties, str_c(fields[i]), json_new_null(&w->arena));
    if (!json_is(metadata, JSON_OBJ))
        return;
    json_each(m, metadata)
        if (!json_get_str(properties, m->key))
            report_field(w, arena_printf(&w->arena, "metadata." STR_FMT, STR_ARG(m->key)), m->key,
                         properties);
}

size_t manifest_unknown_fields(struct buf *out, const struct json *schema,
                               const struct json *object)
{
    if (!schema || !json_is(object, JSON_OBJ))
        return 0;
    struct walk w = { .out = out };
    const struct json *properties = json_get(schema, "properties");
    json_each(m, object) {
        const struct json *of_field = json_get_str(properties, m->key);
        if (str_eqc(m->key, "metadata"))
            walk_metadata(&w, m->value);
        else if (of_field)
            walk_value(&w, of_field, m->value, m->key, 0);
        else if (!str_eqc(m->key, "apiVersion") && !str_eqc(m->key, "kind"))
            report_field(&w, m->key, m->key, properties);
    }
    arena_done(&w.arena);
    return w.found;
}

/* ---- the embedded CRDs */

const struct json *manifest_schema(struct arena *a, str api_version, str kind)
{
    size_t slash = str_find_char(api_version, '/');
    str group = str_upto(api_version, slash),
        version = slash == SIZE_MAX ? S("") : str_from(api_version, slash + 1);
    for (const struct manifest *m = manifests_crds; m->name; m++) {
        struct json *documents = NULL;
        if (!str_starts(str_c(m->name), group) || manifest_read(m, a, &documents, NULL) < 0)
            continue;
        const struct json *crd = json_item(documents, 0);
        const struct json *versions = json_at(crd, "spec", "versions", NULL);
        if (!str_eq(json_text(json_at(crd, "spec", "names", "kind", NULL)), kind) ||
            !str_eq(json_text(json_at(crd, "spec", "group", NULL)), group))
            continue;
        for (size_t i = 0; i < json_len(versions); i++)
            if (str_eq(json_text(json_get(json_item(versions, i), "name")), version))
                return json_at(json_item(versions, i), "schema", "openAPIV3Schema", NULL);
    }
    return NULL;
}
