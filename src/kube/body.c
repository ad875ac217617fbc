/* Small parts of request bodies that every feature needs: see client.h. */
#include "client.h"

str kube_status_body(struct arena *a, struct json *status)
{
    struct json *body = json_new_obj(a);
    json_set(a, body, S("status"), status);
    return json_to_str(a, body);
}

/* Finalizers of other controllers stay, in their order. */
str kube_finalizer_body(struct arena *a, str rv, const struct json *list, str name, bool add)
{
    struct json *next = json_new_arr(a), *body = json_new_obj(a);
    struct json *metadata = json_make(a, body, "metadata", NULL);
    for (size_t i = 0; i < json_len(list); i++)
        if (!str_eq(json_text(json_item(list, i)), name))
            json_push(a, next, json_item(list, i));
    if (add)
        json_push(a, next, json_new_str(a, name));
    json_set_str(a, metadata, "resourceVersion", rv);
    json_set(a, metadata, S("finalizers"), next);
    return json_to_str(a, body);
}

struct json *kube_owners(struct arena *a, const struct kube_owner *o)
{
    struct json *owner = json_new_obj(a), *owners = json_new_arr(a);
    auto_buf struct buf version = { 0 };
    resource_api_version(o->resource, &version);
    json_set_str(a, owner, "apiVersion", buf_str(&version));
    json_set_str(a, owner, "kind", str_c(o->resource->kind));
    json_set_str(a, owner, "name", o->name);
    json_set_str(a, owner, "uid", o->uid);
    if (o->is_controller) {
        json_set_bool(a, owner, "controller", true);
        json_set_bool(a, owner, "blockOwnerDeletion", true);
    }
    json_push(a, owners, owner);
    return owners;
}
