/* Discovery: maps "kind X of group/version" to a resource. One request per kind; results are cached in the
 * client. A lookup is owned by the client's list until its callback is made. */
#include "client_internal.h"

struct kube_lookup {
    struct kube *k;
    struct list_item item; /* in the client's list of pending lookups */
    struct buf api_version, kind;
    kube_discover_fn *done;
    void *context;
    struct deferred later; /* cached results are delivered from the loop, too */
    const struct resource *known;
};

static void lookup_free(struct kube_lookup *q)
{
    loop_cancel_deferred(&q->later);
    list_remove(&q->item);
    buf_done(&q->api_version);
    buf_done(&q->kind);
    free(q);
}

void kube_lookups_free(struct kube *k)
{
    for (struct kube_lookup *q; (q = list_first(&k->lookups, struct kube_lookup, item));)
        lookup_free(q);
}

static void finish_lookup(struct kube_lookup *q, const struct resource *resource,
                          const char *failure)
{
    kube_discover_fn *done = q->done;
    void *context = q->context;
    lookup_free(q);
    done(context, resource, failure); /* may free the client */
}

static void on_known_deferred(struct deferred *deferred)
{
    struct kube_lookup *q = container_of(deferred, struct kube_lookup, later);
    finish_lookup(q, q->known, NULL);
}

static const char *copy_text(struct kube *k, str text)
{
    return arena_str(&k->config->arena, text).p;
}

/* Adds the resource to the client's cache; it lives in the config's arena, as long as the client. */
static const struct resource *add_discovered(struct kube *k, struct kube_lookup *q,
                                             const struct json *found)
{
    struct resource *r = arena_new(&k->config->arena, struct resource);
    str version = buf_str(&q->api_version), group = { 0 };
    size_t slash = str_find_char(version, '/');
    if (slash != SIZE_MAX) {
        group = str_upto(version, slash);
        version = str_from(version, slash + 1);
    }
    *r = (struct resource){ copy_text(k, group), copy_text(k, version),
                            copy_text(k, json_text(json_get(found, "name"))),
                            copy_text(k, buf_str(&q->kind)),
                            json_bool(json_get(found, "namespaced"), false) };
    str key = arena_printf(&k->config->arena, STR_FMT " " STR_FMT,
                           STR_ARG(buf_str(&q->api_version)), STR_ARG(buf_str(&q->kind)));
    map_put(&k->discovered, key, r);
    return r;
}

/* Searches the APIResourceList for the kind, skipping subresources. A 404 means that the group or version does
 * not exist, which is the same failure as an unknown kind. */
static void on_resource_list(void *context, const struct kube_reply *reply)
{
    struct kube_lookup *q = context;
    const struct json *resources = json_get(reply->object, "resources");
    if (reply->failure && reply->reason != KUBE_NOT_FOUND) {
        finish_lookup(q, NULL, reply->failure);
        return;
    }
    for (size_t i = 0; i < json_len(resources); i++) {
        const struct json *r = json_item(resources, i);
        bool is_sub = str_find_char(json_text(json_get(r, "name")), '/') != SIZE_MAX;
        if (!is_sub && str_eq(json_text(json_get(r, "kind")), buf_str(&q->kind))) {
            finish_lookup(q, add_discovered(q->k, q, r), NULL);
            return;
        }
    }
    str failure = arena_printf(reply->arena, "the server has no kind " STR_FMT " in " STR_FMT,
                               STR_ARG(buf_str(&q->kind)), STR_ARG(buf_str(&q->api_version)));
    finish_lookup(q, NULL, failure.p);
}

/* Replaces the callback of a lookup whose owner is gone; the request itself still fills the cache. */
static void ignore_result(void *context, const struct resource *resource, const char *failure)
{
    (void)context, (void)resource, (void)failure;
}

void kube_discover_forget(struct kube *k, const void *context)
{
    list_each(struct kube_lookup, q, &k->lookups, item)
        if (q->context == context)
            q->done = ignore_result;
}

void kube_discover(struct kube *k, str api_version, str kind, kube_discover_fn *done, void *context)
{
    struct kube_lookup *q = mem_zero(1, sizeof(*q));
    *q = (struct kube_lookup){ .k = k, .done = done, .context = context };
    list_prepend(&k->lookups, &q->item);
    buf_put(&q->api_version, api_version);
    buf_put(&q->kind, kind);
    auto_buf struct buf key = { 0 };
    buf_printf(&key, STR_FMT " " STR_FMT, STR_ARG(api_version), STR_ARG(kind));
    if ((q->known = map_get(&k->discovered, buf_str(&key)))) {
        loop_defer(k->loop, LOOP_SOON, &q->later, on_known_deferred);
        return;
    }
    auto_buf struct buf path = { 0 };
    buf_put(&path, str_find_char(api_version, '/') == SIZE_MAX ? S("/api/") : S("/apis/"));
    str part, rest = api_version;
    for (bool first = true; str_cut(&rest, '/', &part); first = false) {
        if (!first)
            buf_putc(&path, '/');
        uri_encode(&path, part);
    }
    kube_send(k, &(struct kube_request){ .verb = KUBE_GET,
                                         .path = buf_str(&path),
                                         .done = on_resource_list,
                                         .context = q });
}
