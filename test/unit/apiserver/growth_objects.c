/* See growth_objects.h. */
#include "growth_objects.h"

#include <stdio.h>

enum { DEPTH_MAX = 11, NESTED_MAX = 2 };

/* ---- places */

static bool on_the_way(const struct growth_place *place, const struct schema *s)
{
    for (size_t i = 0; i + 1 < place->n; i++)
        if (s->message && place->steps[i]->message == s->message)
            return true; /* a type inside itself */
    return false;
}

static void walk(struct growth_place *place, str name, const struct schema *s, growth_visit *visit,
                 void *context)
{
    if (place->n == DEPTH_MAX)
        return;
    place->names[place->n] = name;
    place->steps[place->n++] = s;
    bool map = s->type == SCHEMA_OBJECT && !s->message && s->element;
    bool list = s->type == SCHEMA_ARRAY && s->element;
    if (place->n > 1 && (map || list))
        visit(context, place);
    if (!on_the_way(place, s)) {
        for (uint32_t i = 0; s->message && i < s->message->n_fields; i++)
            if (s->message->fields[i].name.n)
                walk(place, s->message->fields[i].name, &s->message->fields[i].schema, visit,
                     context);
        if (map || list)
            walk(place, map ? S("k") : S(""), s->element, visit, context);
    }
    place->n--;
}

void growth_places(const struct schema *s, growth_visit *visit, void *context)
{
    struct growth_place place = { 0 };
    walk(&place, S(""), s, visit, context);
}

str growth_place_text(struct arena *a, const struct growth_place *place)
{
    str text = S("");
    for (size_t i = 1; i < place->n; i++)
        text = place->names[i].n
                   ? arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(text), STR_ARG(place->names[i]))
                   : arena_printf(a, STR_FMT "[]", STR_ARG(text));
    return text;
}

/* ---- values */

static struct json *make(struct arena *a, const struct schema *s, size_t i, int depth);

static struct json *make_text(struct arena *a, const struct schema *s, size_t i)
{
    const struct schema_limits *l = s->limits;
    if (l && l->one_of_values && l->one_of_values->n)
        return json_copy(a, l->one_of_values->items[i % l->one_of_values->n]);
    if (s->format == SCHEMA_QUANTITY)
        return json_new_str(a, arena_printf(a, "%zu", i + 1));
    if (s->format == SCHEMA_TIME || s->format == SCHEMA_MICRO_TIME)
        return json_new_str(a, S("2024-01-01T00:00:00Z"));
    if (s->format == SCHEMA_BYTES)
        return json_new_str(a, S("YWJj"));
    return json_new_str(a, arena_printf(a, "n%zu", i));
}

static bool is_scalar(const struct schema *s)
{
    return s->type != SCHEMA_OBJECT && s->type != SCHEMA_ARRAY && s->type != SCHEMA_ANY;
}

/* Keys, names and a few other scalars: what checks compare. */
static struct json *make_object(struct arena *a, const struct schema *s, size_t i, int depth)
{
    struct json *object = json_new_obj(a);
    size_t scalars = 0;
    for (uint32_t j = 0; s->message && j < s->message->n_fields; j++) {
        const struct schema_field *f = &s->message->fields[j];
        bool scalar = is_scalar(&f->schema);
        if (!f->name.n || (scalar && scalars >= 6) || (!scalar && (!f->needed || depth == 0)))
            continue;
        scalars += scalar;
        bool mode = str_eqc(f->name, "mode"); /* of a file: all would be wrong from some entry on */
        json_append(a, object, f->name, make(a, &f->schema, mode ? 0 : i, depth - 1));
    }
    return object;
}

static struct json *make(struct arena *a, const struct schema *s, size_t i, int depth)
{
    switch (s->type) {
    case SCHEMA_OBJECT:
        return make_object(a, s, i, depth);
    case SCHEMA_ARRAY: {
        struct json *list = json_new_arr(a);
        if (s->element && depth > 0)
            json_push(a, list, make(a, s->element, i, depth - 1));
        return list;
    }
    case SCHEMA_INTEGER:
    case SCHEMA_NUMBER:
    case SCHEMA_INT_OR_STRING:
        return json_new_int(a, (int64_t)i + 1);
    case SCHEMA_BOOLEAN:
        return json_new_bool(a, false);
    case SCHEMA_STRING:
        return make_text(a, s, i);
    default:
        return json_new_obj(a);
    }
}

struct json *growth_entries(struct arena *a, const struct growth_place *place, size_t n,
                            enum growth_entries entries)
{
    const struct schema *s = place->steps[place->n - 1];
    bool list = s->type == SCHEMA_ARRAY;
    struct json *value = list ? json_new_arr(a) : json_new_obj(a);
    for (size_t i = 0; i < n; i++) {
        struct json *entry = make(a, s->element, entries == GROWTH_SAME ? 0 : i, NESTED_MAX);
        if (list)
            json_push(a, value, entry);
        else
            json_append(a, value, arena_printf(a, "k%zu", i), entry);
    }
    return value;
}

void growth_put(struct arena *a, struct json *object, const struct growth_place *place,
                struct json *value)
{
    struct json *at = object;
    for (size_t i = 1; i < place->n; i++) {
        bool last = i == place->n - 1;
        struct json *next =
            json_is(at, JSON_ARR) ? json_item(at, 0) : json_get_str(at, place->names[i]);
        if (last || !next || (next->type != JSON_OBJ && next->type != JSON_ARR)) {
            next = last ? value : make(a, place->steps[i], 0, NESTED_MAX);
            if (json_is(at, JSON_OBJ))
                json_set(a, at, place->names[i], next);
            else if (json_len(at))
                at->items[0] = next;
            else
                json_push(a, at, next);
        }
        at = next;
    }
}

/* ---- what is accepted */

#define POD "{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}"
#define TEMPLATE                                                                                          \
    "\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}}," \
    "\"spec\":" POD "}"

struct json *growth_base(struct arena *a, const struct kind *k)
{
    static const struct {
        const char *kind, *members;
    } bases[] = {
        { "Grow", "\"spec\":{}" },
        { "Pod", "\"spec\":" POD },
        { "Deployment", "\"spec\":{" TEMPLATE "}" },
        { "ReplicaSet", "\"spec\":{" TEMPLATE "}" },
        { "StatefulSet", "\"spec\":{\"serviceName\":\"s\"," TEMPLATE "}" },
        { "DaemonSet", "\"spec\":{" TEMPLATE "}" },
        { "Job", "\"spec\":{\"template\":{\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{"
                 "\"name\":\"c\",\"image\":\"i\"}]}}}" },
        { "Service", "\"spec\":{\"ports\":[{\"port\":80}]}" },
        { "HorizontalPodAutoscaler", "\"spec\":{\"maxReplicas\":3,\"scaleTargetRef\":{\"kind\":"
                                     "\"Deployment\",\"name\":\"d\",\"apiVersion\":\"apps/v1\"}}" },
        { "Role",
          "\"rules\":[{\"verbs\":[\"get\"],\"apiGroups\":[\"\"],\"resources\":[\"pods\"]}]" },
        { "ClusterRole",
          "\"rules\":[{\"verbs\":[\"get\"],\"apiGroups\":[\"\"],\"resources\":[\"pods\"]}]" },
        { "CustomResourceDefinition",
          "\"spec\":{\"group\":\"g.io\",\"scope\":\"Namespaced\",\"names\":{\"plural\":\"grows\","
          "\"kind\":\"Grow\"},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":true,"
          "\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\"}}}]}" },
    };
    const char *members = "\"x\":0";
    for (size_t i = 0; i < countof(bases); i++)
        if (str_eqc(k->kind, bases[i].kind))
            members = bases[i].members;
    str api = kind_api_version(a, k);
    bool crd = str_eqc(k->kind, "CustomResourceDefinition");
    str text = arena_printf(a,
                            "{\"apiVersion\":\"" STR_FMT "\",\"kind\":\"" STR_FMT
                            "\",\"metadata\":{\"name\":\"%s\"},%s}",
                            STR_ARG(api), STR_ARG(k->kind), crd ? "grows.g.io" : "base", members);
    struct json *object = NULL;
    err_t e;
    if (json_parse(a, text, &object, &e) < 0)
        return NULL;
    json_del(object, S("x"));
    return object;
}
