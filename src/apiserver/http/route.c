/* Routing: from path and method to kind, subresource and verb. Resources are below /api/v1 and
 * /apis/GROUP/VERSION:
 *
 *     [watch/][namespaces/NS/]RESOURCE[/NAME[/SUBRESOURCE]]
 *
 * "namespaces/NS" alone is the namespace itself, and "namespaces/NS/status" its subresource. All other paths
 * leave c->kind NULL and go to pages.c.
 *
 * Failures: an unknown resource of a built-in group is a Status with 404, of another group 404 as plain text; a
 * known resource with a method or scope that does not fit is 404 or 405, as kube-apiserver answers. Segments are
 * decoded before they are compared; one that contains a slash after decoding is refused, because it could forge
 * another object's key in the store. */
#include "../../base/utf8.h"
#include "call.h"
#include "server.h"

enum { SEGMENTS_MAX = 12 };

struct path {
    str at[SEGMENTS_MAX];
    size_t n;
};

/* Decodes the segments of the path. False: too many, badly encoded, or a segment contains a slash. */
static bool split_path(struct call *c, struct path *ret)
{
    str rest = c->request->path, part;
    *ret = (struct path){ 0 };
    while (str_cut(&rest, '/', &part)) {
        if (!part.n)
            continue;
        if (ret->n == SEGMENTS_MAX || uri_decode(c->arena, part, false, &ret->at[ret->n]) < 0)
            return false;
        if (str_find_char(ret->at[ret->n], '/') != SIZE_MAX)
            return false; /* would forge the key of another object */
        ret->at[ret->n] = utf8_clean(c->arena, ret->at[ret->n]);
        ret->n++;
    }
    return true;
}

static bool find_sub(const struct kind *k, str word, enum kind_sub *ret)
{
    for (int i = 0; i < KIND_SUB_N; i++) {
        if (str_eqc(word, kind_sub_names[i]) && (i == KIND_MAIN || (k->subresources & 1u << i))) {
            *ret = (enum kind_sub)i;
            return true;
        }
    }
    return false;
}

/* The verb of the method; GET depends on whether one object is named and on ?watch. */
static enum verb find_verb(const struct call *c)
{
    str m = c->request->method;
    bool one = c->name.n > 0;
    if (str_eq(m, S("GET")))
        return c->deprecated_watch || (!one && call_query_true(c, "watch")) ? VERB_WATCH
               : one                                                        ? VERB_GET
                                                                            : VERB_LIST;
    if (str_eq(m, S("POST")))
        return VERB_CREATE;
    if (str_eq(m, S("PUT")))
        return VERB_UPDATE;
    if (str_eq(m, S("PATCH")))
        return VERB_PATCH;
    if (str_eq(m, S("DELETE")))
        return one ? VERB_DELETE : VERB_DELETECOLLECTION;
    return VERB_NONE;
}

/* Takes resource, namespace, name and subresource from the segments after the version. False: there are
 * more. */
static bool take_resource(struct call *c, const struct path *p, size_t i)
{
    if (i < p->n && str_eq(p->at[i], S("watch"))) {
        c->deprecated_watch = true;
        i++;
    }
    size_t left = p->n - i;
    bool of_namespace = left >= 2 && str_eq(p->at[i], S("namespaces"));
    if (of_namespace && left >= 3 && !str_eq(p->at[i + 2], S("status")) &&
        !str_eq(p->at[i + 2], S("finalize"))) {
        c->ns = p->at[i + 1];
        i += 2;
    }
    c->resource = p->at[i++];
    c->name = i < p->n ? p->at[i++] : S("");
    c->subresource = i < p->n ? p->at[i++] : S("");
    return i == p->n;
}

/* 404, as a Status or as plain text. Always false. */
static bool refuse_path(struct call *c)
{
    str service =
        store_key_make(c->arena, (struct store_key_parts){
                                     S("apiregistration.k8s.io"), S("apiservices"), S(""),
                                     arena_printf(c->arena, STR_FMT "." STR_FMT,
                                                  STR_ARG(c->version), STR_ARG(c->group)) });
    if (catalog_is_builtin_group(c->group))
        call_no_resource(c);
    else if (store_get(c->server->store, service)) /* another server has it; none is connected */
        call_text(c, 503, "text/plain; charset=utf-8", S("service unavailable\n"));
    else
        call_no_page(c);
    return false;
}

/* Whether the kind supports the verb on this subresource. */
static bool is_served(const struct kind *k, enum kind_sub sub, enum verb verb)
{
    static const unsigned bits[VERB_N] = {
        [VERB_GET] = KIND_GET,       [VERB_LIST] = KIND_LIST,
        [VERB_WATCH] = KIND_WATCH,   [VERB_CREATE] = KIND_CREATE,
        [VERB_UPDATE] = KIND_UPDATE, [VERB_PATCH] = KIND_PATCH,
        [VERB_DELETE] = KIND_DELETE, [VERB_DELETECOLLECTION] = KIND_DELETECOLLECTION,
    };
    if (sub >= KIND_FINALIZE)
        return verb == (sub == KIND_FINALIZE ? VERB_UPDATE : VERB_CREATE);
    if (sub == KIND_LOG)
        return verb == VERB_GET;
    if (sub != KIND_MAIN)
        return verb == VERB_GET || verb == VERB_UPDATE || verb == VERB_PATCH;
    return (k->verbs & bits[verb]) != 0;
}

/* Whether scope, name and method fit the kind. False: answered. */
static bool check_target(struct call *c)
{
    const struct kind *k = c->kind;
    bool across = k->namespaced && !c->ns.n;
    if ((c->ns.n && !k->namespaced) || (k->answer_only && c->name.n))
        return refuse_path(c);
    if (across && (c->name.n || k->answer_only ||
                   (k->custom && c->verb != VERB_LIST && c->verb != VERB_WATCH)))
        return refuse_path(c);
    bool changes = c->verb == VERB_UPDATE || c->verb == VERB_PATCH;
    if (k->custom && changes && !c->name.n) {
        call_bad_request(c, "name must be provided");
        return false;
    }
    bool wrong_shape = (c->verb == VERB_CREATE && c->name.n && !kind_of_posted_sub(c->sub) &&
                        (!k->custom || c->sub != KIND_MAIN)) ||
                       (changes && !c->name.n);
    if (!is_served(k, c->sub, c->verb) || wrong_shape ||
        (across && c->verb != VERB_LIST && c->verb != VERB_WATCH)) {
        call_method_not_allowed(c);
        return false;
    }
    return true;
}

/* False: answered. Sets group, version, resource and verb also on failure, because authorization needs
 * them. */
bool call_route(struct call *c)
{
    struct path p;
    if (!split_path(c, &p)) {
        call_no_page(c);
        return false;
    }
    bool core = p.n > 2 && str_eq(p.at[0], S("api"));
    if (!core && !(p.n > 3 && str_eq(p.at[0], S("apis"))))
        return true; /* not a resource: pages.c */
    c->group = core ? S("") : p.at[1];
    c->version = core ? p.at[1] : p.at[2];
    bool whole = take_resource(c, &p, core ? 2 : 3);
    c->verb = find_verb(c);
    if (!whole)
        return refuse_path(c);
    c->kind = catalog_find(&c->server->catalog, c->group, c->version, c->resource, &c->set);
    if (!c->kind)
        return refuse_path(c);
    if (!find_sub(c->kind, c->subresource, &c->sub)) {
        if (c->kind->custom)
            call_not_found(c, c->kind, c->name);
        else
            call_no_resource(c);
        return false;
    }
    return check_target(c);
}
