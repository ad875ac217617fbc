/* What reconcile() functions have in common: failures as text, status patches, children. All of it is built on
 * reconcile_call() of controller.c. */
#include "controller.h"

#include <stdarg.h>
#include <stdio.h>

struct reconciled reconciled_failed(struct reconcile *r, const char *format, ...)
{
    char text[500];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return (struct reconciled){ .failure = arena_str(r->arena, str_c(text)).p };
}

void reconcile_send(struct reconcile *r, const struct kube_request *request)
{
    reconcile_call(r, request, NULL);
}

void reconcile_status_then(struct reconcile *r, const struct resource *resource,
                           struct json *status,
                           void (*then)(struct reconcile *r, const struct kube_reply *reply))
{
    reconcile_call(r,
                   &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                           .resource = resource,
                                           .ns = r->ns,
                                           .name = r->name,
                                           .subresource = "status",
                                           .body = kube_status_body(r->arena, status) },
                   then);
}

void reconcile_status(struct reconcile *r, const struct resource *resource, struct json *status)
{
    reconcile_status_then(r, resource, status, NULL);
}

void reconcile_apply(struct reconcile *r, const struct resource *resource, struct json *object)
{
    auto_buf struct buf version = { 0 };
    resource_api_version(resource, &version);
    json_set_str(r->arena, object, "apiVersion", buf_str(&version));
    json_set_str(r->arena, object, "kind", str_c(resource->kind));
    struct json *meta = json_make(r->arena, object, "metadata", NULL);
    if (resource->namespaced && !json_get(meta, "namespace"))
        json_set_str(r->arena, meta, "namespace", r->ns);
    reconcile_send(r, &(struct kube_request){ .verb = KUBE_APPLY,
                                              .resource = resource,
                                              .ns = json_text(json_get(meta, "namespace")),
                                              .name = json_text(json_get(meta, "name")),
                                              .body = json_to_str(r->arena, object) });
}
