/* Routes and gateways of others: see gateway_core.h. Fields that are absent have the defaults of the Gateway API.
 *
 * A route occupies a path only if every request under it would go there: a prefix match without conditions on headers,
 * query or method, for all host names or for those that it lists. It occupies the value of a header if it matches that header
 * exactly, on every path. Anything more specific can coexist with a route of ours, because gateways prefer the more
 * specific match. */
#include "gateway_core.h"

static str text_or(const struct json *o, const char *key, str otherwise)
{
    str text = json_text(json_get(o, key));
    return text.n ? text : otherwise;
}

/* ---- paths of a route */

/* Header names do not depend on case, values do. */
str aim_route_header_key(struct arena *a, str name, str value)
{
    return arena_printf(a, STR_FMT ": " STR_FMT, STR_ARG(arena_lower(a, name)), STR_ARG(value));
}

/* What a match occupies entirely: a path, or the value of one header on every path. False if it has other conditions. */
static bool match_whole_path(struct arena *a, const struct json *match, str *ret, str *ret_header)
{
    const struct json *headers = json_get(match, "headers"), *one = json_item(headers, 0);
    *ret_header = S("");
    if (json_len(headers) > 1 || json_len(json_get(match, "queryParams")) ||
        json_get(match, "method"))
        return false;
    if (one && !str_eqc(text_or(one, "type", S("Exact")), "Exact"))
        return false;
    if (one)
        *ret_header = aim_route_header_key(a, json_text(json_get(one, "name")),
                                           json_text(json_get(one, "value")));
    const struct json *path = json_get(match, "path");
    *ret = text_or(path, "value", S("/"));
    while (ret->n > 1 && ret->p[ret->n - 1] == '/')
        ret->n--;
    if (one && !str_eqc(*ret, "/"))
        return false;
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

/* The answer to an older generation of the route is valid until there is a newer one; otherwise every edit of a
 * refused route would claim its path for a moment. */
bool aim_route_is_refused(const struct json *route, const struct aim_claim_place *place)
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
            return false; /* one of several controllers of the gateway accepted it */
        refused |= str_eqc(status, "False");
    }
    return refused;
}

/* One claim per parent that is a Gateway and did not refuse the route. */
static void add_places(struct aim_route_paths *places, const struct json *route,
                       const struct json *parent, str path, str header, str host)
{
    if (!str_eqc(text_or(parent, "kind", S("Gateway")), "Gateway"))
        return;
    struct aim_claim_place place = {
        .gateway_ns = text_or(parent, "namespace", own_namespace(route)),
        .gateway = json_text(json_get(parent, "name")),
        .section = json_text(json_get(parent, "sectionName")),
        .path = path,
        .host = host,
        .header = header,
    };
    if (!aim_route_is_refused(route, &place))
        places->at[places->n++] = place;
}

static size_t count_matches(const struct json *rules)
{
    size_t n = 0;
    for (size_t i = 0; i < json_len(rules); i++)
        n += MAX(json_len(json_get(json_item(rules, i), "matches")), (size_t)1);
    return n;
}

/* The product of rules, matches, parents and host names. */
struct aim_route_paths aim_route_paths(struct arena *a, const struct json *route)
{
    static const struct json any = { .type =
                                         JSON_OBJ }; /* a rule without matches matches everything */
    const struct json *parents = json_at(route, "spec", "parentRefs", NULL);
    const struct json *rules = json_at(route, "spec", "rules", NULL);
    struct aim_route_paths places = { 0 };
    const struct json *hosts = json_at(route, "spec", "hostnames", NULL);
    size_t host_n = MAX(json_len(hosts), (size_t)1);
    places.at =
        arena_array(a, count_matches(rules) * json_len(parents) * host_n, sizeof(*places.at));
    for (size_t i = 0; i < json_len(rules); i++) {
        const struct json *matches = json_get(json_item(rules, i), "matches");
        size_t n = MAX(json_len(matches), (size_t)1);
        for (size_t k = 0; k < n; k++) {
            const struct json *match = json_item(matches, k);
            str path, header;
            if (!match_whole_path(a, match ? match : &any, &path, &header))
                continue;
            for (size_t p = 0; p < json_len(parents) * host_n; p++)
                add_places(&places, route, json_item(parents, p / host_n), path, header,
                           json_text(json_item(hosts, p % host_n)));
        }
    }
    return places;
}

/* ---- address of a gateway */

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

/* Omits the default port of the scheme and puts an IPv6 address in brackets. */
str aim_route_url(struct arena *a, str listeners, str addresses, const struct aim_route_plan *plan)
{
    struct json *all = NULL, *where = NULL;
    if ((listeners.n && json_parse(a, listeners, &all, NULL) < 0) ||
        (addresses.n && json_parse(a, addresses, &where, NULL) < 0))
        return S("");
    const struct json *listener = find_listener(all, plan->section);
    str wanted = json_text(json_item(plan->hostnames, 0));
    str host = wanted.n && !str_starts(wanted, S("*")) ? wanted : host_of(listener, where);
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
