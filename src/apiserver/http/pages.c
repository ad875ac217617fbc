/* Everything that is not a resource: discovery, OpenAPI, version and health.
 *
 * pages_serve() is a switch over the path. Discovery is in discovery.c and OpenAPI in ../schema; this file
 * decides on status codes, media types and cache headers. Like kube-apiserver, it checks the method only for
 * some paths.
 *
 * Documents that clients cache carry an ETag: aggregated discovery a checksum of its bytes, OpenAPI v3 the hash
 * that its index lists. A request for an outdated hash is redirected to the current one. */
#include "../../base/clock.h"
#include "../../base/rfc3339.h"
#include "../../base/sum.h"
#include "../schema/openapi.h"
#include "../schema/openapi_v2.h"
#include "discovery.h"
#include "server.h"
#include "verbs.h"

/* The Kubernetes version that the API is compatible with; clients compare it with their own. */
#define SPOKEN_MAJOR "1"
#define SPOKEN_MINOR "34"

#define OPENAPI_V2_PROTOBUF "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"

/* Only gitVersion names flyball; clients such as kubectl parse major and minor. */
static void serve_version(struct call *c)
{
    struct arena *a = c->arena;
    struct json *v = json_new_obj(a);
    const char *const pairs[][2] = { { "major", SPOKEN_MAJOR },
                                     { "minor", SPOKEN_MINOR },
                                     { "gitVersion", "v" SPOKEN_MAJOR "." SPOKEN_MINOR
                                                     ".0+flyball-" FLYBALL_VERSION },
                                     { "gitCommit", "" },
                                     { "gitTreeState", "" },
                                     { "buildDate", "1970-01-01T00:00:00Z" },
                                     { "goVersion", "" },
                                     { "compiler", "cc" },
                                     { "platform", "linux/amd64" } };
    for (size_t i = 0; i < countof(pairs); i++)
        json_set_str(a, v, pairs[i][0], str_c(pairs[i][1]));
    /* A simulated clock, for clients that compute what applies now (flyball explain). */
    int64_t now_ns = server_now_ns(c->server), apart_ns = now_ns - clock_wall_ns();
    char text[RFC3339_TEXT_MAX];
    if (apart_ns > 2 * NS_PER_S || apart_ns < -2 * NS_PER_S)
        json_set_str(a, v, "clock", rfc3339_text(now_ns / NS_PER_S, text));
    call_json(c, 200, v);
}

/* Only the store can fail. A server that cannot write is alive (livez) but not ready (readyz). */
static void serve_health(struct call *c, str path)
{
    str rest = str_from(path, 1), name, check;
    str_cut(&rest, '/', &name);
    const err_t *failure = store_failure(c->server->store);
    bool ready = str_eq(name, S("readyz"));
    bool well = !ready || !failure;
    bool one = rest.p && str_cut(&rest, '/', &check);
    if (one && !str_eq(check, S("ping")) && !str_eq(check, S("store")) &&
        !str_eq(check, S("etcd"))) {
        call_no_page(c);
        return;
    }
    if (!call_query(c, "verbose").p && well) {
        call_text(c, 200, "text/plain; charset=utf-8", S("ok"));
        return;
    }
    const char *store = failure                           ? "[-]store failed: see the log"
                        : store_is_full(c->server->store) ? "[+]store ok, but the disk is full"
                                                          : "[+]store ok";
    str text = arena_printf(c->arena, "[+]ping ok\n%s\n" STR_FMT " check %s\n", store,
                            STR_ARG(name), well ? "passed" : "failed");
    call_text(c, well ? 200 : 500, "text/plain; charset=utf-8", text);
}

static void serve_api_versions(struct call *c)
{
    struct arena *a = c->arena;
    struct json *v = json_new_obj(a), *versions = json_new_arr(a), *addresses = json_new_arr(a);
    struct json *address = json_new_obj(a);
    json_set_str(a, v, "kind", S("APIVersions"));
    json_push(a, versions, json_new_str(a, S("v1")));
    json_set(a, v, S("versions"), versions);
    json_set_str(a, address, "clientCIDR", S("0.0.0.0/0"));
    json_set_str(a, address, "serverAddress", call_header(c, "host"));
    json_push(a, addresses, address);
    json_set(a, v, S("serverAddressByClientCIDRs"), addresses);
    call_json(c, 200, v);
}

/* Answers with 304 if the client has this document already. */
static void serve_aggregated(struct call *c, bool core, const char *version_word)
{
    call_json(c, 200, discovery_aggregated(c->server, c->arena, core, version_word));
    c->answer.content_type =
        arena_printf(c->arena,
                     "application/json;g=apidiscovery.k8s.io;v=%s;as=APIGroupDiscoveryList",
                     version_word)
            .p;
    str tag = arena_printf(c->arena, "\"%016llX\"",
                           (unsigned long long)sum64(buf_str(&c->answer.body), 0));
    call_add_header(c, "ETag", tag);
    call_add_header(c, "Vary", S("Accept"));
    if (str_eq(call_header(c, "if-none-match"), tag)) {
        buf_clear(&c->answer.body);
        c->answer.status = 304;
    }
}

/* /apis, /apis/GROUP and /apis/GROUP/VERSION. Below built-in groups a missing version is a Status,
 * elsewhere plain text. */
static void serve_apis(struct call *c, str rest)
{
    str group = S(""), version_word = S("");
    str_cut(&rest, '/', &group);
    if (rest.p)
        str_cut(&rest, '/', &version_word);
    struct json *found = version_word.n
                             ? discovery_resources(c->server, c->arena, group, version_word)
                         : group.n ? discovery_group(c->server, c->arena, group)
                                   : discovery_groups(c->server, c->arena);
    if (found)
        call_json(c, 200, found);
    else if (catalog_is_builtin_group(group))
        call_no_resource(c);
    else
        call_no_page(c);
}

/* ---- OpenAPI */

static void serve_openapi_v3(struct call *c)
{
    struct catalog *r = &c->server->catalog;
    call_json(c, 200, openapi_index(c->arena, r->all.at, r->all.n));
    c->answer.content_type = "text/plain; charset=utf-8"; /* as kube-apiserver answers */
}

/* Version 2 has its own media types, JSON and protobuf. */
static void serve_openapi_v2(struct call *c)
{
    struct catalog *r = &c->server->catalog;
    str accept = call_header(c, "accept"), part, type;
    bool any = !str_trim(accept).n, text = any;
    while (!any && str_cut(&accept, ',', &part)) {
        str_cut(&part, ';', &type);
        type = str_trim(type);
        text = str_eq(type, S("application/json")) || str_eq(type, S("*/*")) ||
               str_eq(type, S("application/*"));
        any = text ||
              str_eq(type, S("application/com.github.proto-openapi.spec.v2@v1.0+protobuf")) ||
              str_eq(type, S(OPENAPI_V2_PROTOBUF));
    }
    call_text(c, any ? 200 : 406, OPENAPI_V2_PROTOBUF, S(""));
    if (!any)
        return;
    struct json *document =
        openapi_v2_document(c->arena, r->all.at, r->all.n, S("v" SPOKEN_MAJOR "." SPOKEN_MINOR));
    if (text)
        call_json(c, 200, document);
    else
        openapi_v2_protobuf(&c->answer.body, document);
}

/* The document of "api/v1" or "apis/GROUP/VERSION", the rest of the path after /openapi/v3/. */
static void serve_openapi_v3_group(struct call *c, str rest)
{
    str root = S(""), group = S(""), version_word = S("");
    str_cut(&rest, '/', &root);
    if (str_eq(root, S("apis")))
        str_cut(&rest, '/', &group);
    if (rest.p)
        str_cut(&rest, '/', &version_word);
    struct catalog *r = &c->server->catalog;
    bool known = false;
    for (size_t i = 0; i < r->all.n && !known; i++)
        known = str_eq(r->all.at[i]->group, group) && str_eq(r->all.at[i]->version, version_word);
    if (!known) {
        call_no_page(c);
        return;
    }
    call_json(c, 200, openapi_document(c->arena, r->all.at, r->all.n, group, version_word));
    str hash = openapi_hash(c->arena, buf_str(&c->answer.body)), asked = call_query(c, "hash");
    if (asked.n && !str_eq(asked, hash)) { /* outdated: redirect to the current document */
        buf_clear(&c->answer.body);
        c->answer.status = 301;
        call_add_header(c, "Location",
                        arena_printf(c->arena, STR_FMT "?hash=" STR_FMT, STR_ARG(c->request->path),
                                     STR_ARG(hash)));
        return;
    }
    call_add_header(c, "ETag", arena_printf(c->arena, "\"" STR_FMT "\"", STR_ARG(hash)));
    if (asked.n)
        call_add_header(c, "Cache-Control", S("public, immutable"));
}

/* All paths that have a page, in order: groups and versions come first. */
static void serve_root(struct call *c)
{
    struct arena *a = c->arena;
    static const char *const paths[] = { "/healthz",     "/healthz/etcd", "/healthz/ping",
                                         "/livez",       "/livez/etcd",   "/livez/ping",
                                         "/metrics",     "/openapi/v2",   "/openapi/v3",
                                         "/openapi/v3/", "/readyz",       "/readyz/etcd",
                                         "/readyz/ping", "/version" };
    struct json *v = json_new_obj(a), *list = json_new_arr(a);
    auto_buf struct buf all = { 0 };
    buf_put(&all, S("/api /api/v1 /apis /apis/"));
    const struct json *groups = json_get(discovery_groups(c->server, a), "groups");
    for (size_t i = 0; i < json_len(groups); i++) {
        const struct json *versions = json_get(groups->items[i], "versions");
        buf_printf(&all, " /apis/" STR_FMT, STR_ARG(json_text(json_get(groups->items[i], "name"))));
        for (size_t n = 0; n < json_len(versions); n++)
            buf_printf(&all, " /apis/" STR_FMT,
                       STR_ARG(json_text(json_get(versions->items[n], "groupVersion"))));
    }
    str rest = buf_str(&all), path;
    while (str_cut(&rest, ' ', &path))
        json_push(a, list, json_new_str(a, path));
    for (size_t i = 0; i < countof(paths); i++)
        json_push(a, list, json_new_str(a, str_c(paths[i])));
    json_set(a, v, S("paths"), list);
    call_json(c, 200, v);
}

/* The number of stored objects of each resource, under the name that kube-apiserver has for it. */
static void serve_metrics(struct call *c)
{
    struct buf *out = &c->answer.body;
    buf_clear(out);
    buf_put(out, S("# HELP apiserver_resource_objects Number of stored objects, by resource.\n"
                   "# TYPE apiserver_resource_objects gauge\n"));
    struct tree_cursor cursor = tree_seek(store_tree(c->server->store), S(""));
    struct store_key_parts last = { 0 };
    size_t n = 0;
    for (bool more = true; more;) {
        const struct object *o = tree_next_in(&cursor, S(""));
        struct store_key_parts parts = { 0 };
        if (o)
            parts = store_key_split(object_key(o));
        if (n &&
            (!o || !str_eq(parts.resource, last.resource) || !str_eq(parts.group, last.group))) {
            buf_printf(out,
                       "apiserver_resource_objects{group=\"" STR_FMT "\",resource=\"" STR_FMT
                       "\"} %zu\n",
                       STR_ARG(last.group), STR_ARG(last.resource), n);
            n = 0;
        }
        more = o != NULL;
        last = parts;
        n++;
    }
    c->answer.status = 200;
    c->answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
}

/* The paths for which kube-apiserver checks the method. */
static bool wants_get(str path)
{
    return str_eq(path, S("/version")) || str_eq(path, S("/api")) || str_starts(path, S("/api/")) ||
           (str_starts(path, S("/apis/")) && str_find_char(str_from(path, 6), '/') != SIZE_MAX);
}

void pages_serve(struct call *c)
{
    str path = c->request->path;
    while (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    const char *wants = call_aggregated_version(c);
    if (!str_eq(c->request->method, S("GET")) && wants_get(path))
        call_method_not_allowed(c);
    else if (str_eq(path, S("/")))
        serve_root(c);
    else if (str_eq(path, S("/version")))
        serve_version(c);
    else if (str_eq(path, S("/metrics")))
        serve_metrics(c);
    else if (str_starts(path, S("/healthz")) || str_starts(path, S("/livez")) ||
             str_starts(path, S("/readyz")))
        serve_health(c, path);
    else if (str_eq(path, S("/api")))
        wants ? serve_aggregated(c, true, wants) : serve_api_versions(c);
    else if (str_eq(path, S("/apis")) && wants)
        serve_aggregated(c, false, wants);
    else if (str_eq(path, S("/apis")) || str_starts(path, S("/apis/")))
        serve_apis(c, str_from(path, 6));
    else if (str_eq(path, S("/api/v1")))
        call_json(c, 200, discovery_resources(c->server, c->arena, S(""), S("v1")));
    else if (str_starts(path, S("/api/")))
        call_no_resource(c);
    else if (str_eq(path, S("/openapi/v2")))
        serve_openapi_v2(c);
    else if (str_eq(path, S("/openapi/v3")))
        serve_openapi_v3(c);
    else if (str_starts(path, S("/openapi/v3/")))
        serve_openapi_v3_group(c, str_from(path, 12));
    else
        call_no_page(c);
}
