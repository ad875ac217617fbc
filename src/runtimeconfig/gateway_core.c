/* See gateway_core.h. */
#include "gateway_core.h"

static str text_or(const struct json *o, const char *key, str otherwise)
{
    str text = json_text(json_get(o, key));
    return text.n ? text : otherwise;
}

/* ---- paths of a route */

/* The path that a match takes as a whole; false: it takes less. */
static bool whole_path(const struct json *match, str *ret)
{
    if (json_len(json_get(match, "headers")) || json_len(json_get(match, "queryParams")) ||
        json_get(match, "method"))
        return false;
    const struct json *path = json_get(match, "path");
    *ret = text_or(path, "value", S("/"));
    while (ret->n > 1 && ret->p[ret->n - 1] == '/')
        ret->n--;
    return str_eqc(text_or(path, "type", S("PathPrefix")), "PathPrefix");
}

static str own_namespace(const struct json *route)
{
    return json_text(json_at(route, "metadata", "namespace", NULL));
}

static const struct json *find_accepted(const struct json *parent)
{
    const struct json *list = json_get(parent, "conditions");
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(json_item(list, i), "type")), "Accepted"))
            return json_item(list, i);
    return NULL;
}

/* An answer to an older version of the route counts until there is a newer one: otherwise an edit would be a claim. */
bool route_is_refused(const struct json *route, const struct claim_place *place)
{
    const struct json *parents = json_at(route, "status", "parents", NULL);
    bool refused = false;
    for (size_t i = 0; i < json_len(parents); i++) {
        const struct json *parent = json_item(parents, i), *ref = json_get(parent, "parentRef");
        str status = json_text(json_get(find_accepted(parent), "status"));
        if (!str_eq(json_text(json_get(ref, "name")), place->gateway) ||
            !str_eq(text_or(ref, "namespace", own_namespace(route)), place->gateway_ns) ||
            !str_eq(json_text(json_get(ref, "sectionName")), place->section))
            continue;
        if (str_eqc(status, "True"))
            return false; /* another controller may have the same gateway */
        refused |= str_eqc(status, "False");
    }
    return refused;
}

static void add_places(struct route_places *places, const struct json *route,
                       const struct json *parent, str path)
{
    if (!str_eqc(text_or(parent, "kind", S("Gateway")), "Gateway"))
        return;
    struct claim_place place = {
        .gateway_ns = text_or(parent, "namespace", own_namespace(route)),
        .gateway = json_text(json_get(parent, "name")),
        .section = json_text(json_get(parent, "sectionName")),
        .path = path,
    };
    if (!route_is_refused(route, &place))
        places->at[places->n++] = place;
}

static size_t count_matches(const struct json *rules)
{
    size_t n = 0;
    for (size_t i = 0; i < json_len(rules); i++)
        n += MAX(json_len(json_get(json_item(rules, i), "matches")), (size_t)1);
    return n;
}

struct route_places route_places(struct arena *a, const struct json *route)
{
    static const struct json any = { .type = JSON_OBJ }; /* a rule without matches takes all */
    const struct json *parents = json_at(route, "spec", "parentRefs", NULL);
    const struct json *rules = json_at(route, "spec", "rules", NULL);
    struct route_places places = { 0 };
    if (json_len(json_at(route, "spec", "hostnames", NULL)))
        return places;
    places.at = arena_array(a, count_matches(rules) * json_len(parents), sizeof(*places.at));
    for (size_t i = 0; i < json_len(rules); i++) {
        const struct json *matches = json_get(json_item(rules, i), "matches");
        size_t n = MAX(json_len(matches), (size_t)1);
        for (size_t k = 0; k < n; k++) {
            const struct json *match = json_item(matches, k);
            str path;
            if (!whole_path(match ? match : &any, &path))
                continue;
            for (size_t p = 0; p < json_len(parents); p++)
                add_places(&places, route, json_item(parents, p), path);
        }
    }
    return places;
}

/* ---- where a gateway is reached */

static const struct json *find_listener(const struct json *listeners, str section)
{
    for (size_t i = 0; i < json_len(listeners); i++)
        if (!section.n || str_eq(json_text(json_get(json_item(listeners, i), "name")), section))
            return json_item(listeners, i);
    return NULL;
}

static str host_of(const struct json *listener, const struct json *addresses)
{
    str name = json_text(json_get(listener, "hostname"));
    return name.n && !str_starts(name, S("*"))
               ? name
               : json_text(json_get(json_item(addresses, 0), "value"));
}

str route_url(struct arena *a, str listeners, str addresses, const struct route_plan *plan)
{
    struct json *all = NULL, *where = NULL;
    if ((listeners.n && json_parse(a, listeners, &all, NULL) < 0) ||
        (addresses.n && json_parse(a, addresses, &where, NULL) < 0))
        return S("");
    const struct json *listener = find_listener(all, plan->section);
    str host = host_of(listener, where);
    if (!listener || !host.n)
        return S("");
    bool secure = str_eqc(json_text(json_get(listener, "protocol")), "HTTPS");
    bool is_v6 = str_find_char(host, ':') != SIZE_MAX;
    int64_t usual = secure ? 443 : 80, port = json_int(json_get(listener, "port"), usual);
    str suffix = port == usual ? S("") : arena_printf(a, ":%lld", (long long)port);
    return arena_printf(a, "%s://%s" STR_FMT "%s" STR_FMT STR_FMT, secure ? "https" : "http",
                        is_v6 ? "[" : "", STR_ARG(host), is_v6 ? "]" : "", STR_ARG(suffix),
                        STR_ARG(plan->path));
}
