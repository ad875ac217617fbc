/* Cached fields, and records as objects: see aim_records.h.
 *
 * Cores work on whole objects (a path template may use any field), while the cache keeps parts of them as JSON text.
 * A turn therefore rebuilds the object in its arena. The fields of a record that controllers compare or look up
 * (names, owners, status words) are kept separately, so that most events need no parsing. */
#include "aim_records.h"

#include "../kube/controller.h"

static const struct field aim_fields[] = {
    { "metadata.labels", F_RAW, offsetof(struct aim_record, labels) },
    { "metadata.annotations", F_RAW, offsetof(struct aim_record, annotations) },
    { "metadata.finalizers", F_RAW, offsetof(struct aim_record, finalizers) },
    { "metadata.ownerReferences", F_RAW, offsetof(struct aim_record, owners) },
    { "metadata.generation", F_INT, offsetof(struct aim_record, generation) },
    { "metadata.creationTimestamp", F_STR, offsetof(struct aim_record, created) },
    { "metadata.deletionTimestamp", F_HAS, offsetof(struct aim_record, deleting) },
    { "spec", F_RAW, offsetof(struct aim_record, spec) },
    { "status", F_RAW, offsetof(struct aim_record, status) },
    { "spec.runtimeConfigName", F_WORD, offsetof(struct aim_record, config_name) },
    { "spec.modelName", F_WORD, offsetof(struct aim_record, model_name) },
    { "spec.image", F_STR, offsetof(struct aim_record, image) },
    { "spec.routing.group", F_WORD, offsetof(struct aim_record, route_group) },
    { "status.status", F_WORD, offsetof(struct aim_record, word) },
    { "metadata.creationTimestamp", F_TIME, offsetof(struct aim_record, created_ns) },
};

static const struct field route_fields[] = {
    { "metadata.labels", F_RAW, offsetof(struct aim_route_record, labels) },
    { "metadata.annotations", F_RAW, offsetof(struct aim_route_record, annotations) },
    { "metadata.ownerReferences", F_RAW, offsetof(struct aim_route_record, owners) },
    { "metadata.labels[\"app.kubernetes.io/managed-by\"]", F_WORD,
      offsetof(struct aim_route_record, managed_by) },
    { OWNER_KIND, F_WORD, offsetof(struct aim_route_record, owner_kind) },
    { OWNER_UID, F_STR, offsetof(struct aim_route_record, owner_uid) },
    { OWNER_NAME, F_STR, offsetof(struct aim_route_record, owner_name) },
    { "metadata.generation", F_INT, offsetof(struct aim_route_record, generation) },
    { "metadata.creationTimestamp", F_TIME, offsetof(struct aim_route_record, created_ns) },
    { "spec", F_RAW, offsetof(struct aim_route_record, spec) },
    { "status.parents", F_RAW, offsetof(struct aim_route_record, parents) },
};

static const struct field gateway_fields[] = {
    { "spec.listeners", F_RAW, offsetof(struct aim_gateway_record, listeners) },
    { "status.addresses", F_RAW, offsetof(struct aim_gateway_record, addresses) },
};

static const struct fields aim_kept = { sizeof(struct aim_record), aim_fields,
                                        countof(aim_fields) },
                           route_kept = { sizeof(struct aim_route_record), route_fields,
                                          countof(route_fields) },
                           gateway_kept = { sizeof(struct aim_gateway_record), gateway_fields,
                                            countof(gateway_fields) };

/* CACHE_IF_KNOWN: a kind that is not installed is not an error; its cache stays empty. */
struct cache_spec aim_cache_spec(const struct resource *resource)
{
    return (struct cache_spec){ .resource = resource,
                                .need = CACHE_IF_KNOWN,
                                .keep = &aim_kept,
                                .indexes = {
                                    [AIM_INDEX_CONFIG] = offsetof(struct aim_record, config_name),
                                    [AIM_INDEX_MODEL] = offsetof(struct aim_record, model_name),
                                    [AIM_INDEX_IMAGE] = offsetof(struct aim_record, image) } };
}

const struct cache_spec aim_route_cache = {
    .resource = &aim_resource_httproutes,
    .need = CACHE_IF_ALLOWED,
    .keep = &route_kept,
    .indexes = { [AIM_ROUTE_INDEX_OWNER] = offsetof(struct aim_route_record, owner_uid) }
};
const struct cache_spec aim_gateway_cache = { .resource = &aim_resource_gateways,
                                              .need = CACHE_IF_ALLOWED,
                                              .keep = &gateway_kept };

static void put_raw(struct arena *a, struct json *o, const char *key, str text)
{
    struct json *tree = NULL;
    if (text.n && json_parse(a, text, &tree, NULL) == 0)
        json_append(a, o, str_c(key), tree);
}

static void put_text(struct arena *a, struct json *o, const char *key, str text)
{
    if (text.n)
        json_append(a, o, str_c(key), json_new_str(a, text));
}

/* Objects are built by appending, without a search for duplicates: every key is added once. */
static struct json *begin_object(struct arena *a, const struct resource *resource,
                                 const struct record *meta, struct json **ret_metadata)
{
    struct json *o = json_new_obj(a), *metadata = json_new_obj(a);
    json_append(a, o, S("apiVersion"),
                json_new_str(a, arena_printf(a, "%s/%s", resource->group, resource->version)));
    put_text(a, o, "kind", str_c(resource->kind));
    json_append(a, o, S("metadata"), metadata);
    put_text(a, metadata, "name", meta->name);
    put_text(a, metadata, "namespace", meta->ns);
    put_text(a, metadata, "uid", meta->uid);
    put_text(a, metadata, "resourceVersion", meta->rv);
    *ret_metadata = metadata;
    return o;
}

struct json *aim_record_object(struct arena *a, const struct resource *resource,
                               const struct aim_record *r)
{
    struct json *metadata, *o = begin_object(a, resource, &r->meta, &metadata);
    json_append(a, metadata, S("generation"), json_new_int(a, r->generation));
    put_text(a, metadata, "creationTimestamp", r->created);
    put_raw(a, metadata, "labels", r->labels);
    put_raw(a, metadata, "annotations", r->annotations);
    put_raw(a, metadata, "finalizers", r->finalizers);
    put_raw(a, metadata, "ownerReferences", r->owners);
    put_raw(a, o, "spec", r->spec);
    put_raw(a, o, "status", r->status);
    return o;
}

struct json *aim_route_record_object(struct arena *a, const struct aim_route_record *r)
{
    struct json *metadata, *o = begin_object(a, &aim_resource_httproutes, &r->meta, &metadata);
    json_append(a, metadata, S("generation"), json_new_int(a, r->generation));
    put_raw(a, metadata, "labels", r->labels);
    put_raw(a, metadata, "annotations", r->annotations);
    put_raw(a, metadata, "ownerReferences", r->owners);
    put_raw(a, o, "spec", r->spec);
    put_raw(a, json_make(a, o, "status", NULL), "parents", r->parents);
    return o;
}

/* Annotations count, because they pause reconciliation and are used in path templates. */
bool aim_record_has_changed(const struct aim_record *old, const struct aim_record *now)
{
    return !old || !now || old->generation != now->generation || old->deleting != now->deleting ||
           !str_eq(old->spec, now->spec) || !str_eq(old->labels, now->labels) ||
           !str_eq(old->annotations, now->annotations) ||
           !str_eq(old->finalizers, now->finalizers) || !str_eq(old->meta.uid, now->meta.uid);
}
