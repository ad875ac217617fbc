/* Reads the labels of images from their registries, several at a time, without blocking the loop.
 *
 *     struct registry_inspection *i = registry_inspect(inspector, &(struct registry_inspect){
 *         .image = reference, .credentials = credentials, .tenant = ns, .done = inspected, .context = me });
 *     ...
 *     static void inspected(void *context, const struct registry_result *result)
 *
 * Bounds: REGISTRY_AT_ONCE dialogues, one per registry and half of them per tenant; 10 s per request and 30 s per dialogue;
 * sizes and redirects as in dialogue_core.h. Questions alike share one dialogue, and its labels are kept: under the
 * digest as long as there is room, under a tag for 10 minutes. Credentials are part of the question, so that labels of a
 * private image are never given to those who could not have read them. */
#ifndef FLYBALL_INSPECTOR_H
#define FLYBALL_INSPECTOR_H

#include "../net/loop.h"
#include "dialogue_core.h"

enum { REGISTRY_AT_ONCE = 4 };

struct registry_inspector;
struct registry_inspection;

struct registry_inspector_options {
    struct loop *loop;
    str plain_http;      /* registries without TLS: "host:port,..."; "*" and "?" as in file names */
    str allow_private;   /* registries whose addresses may be private or loopback: the same */
    str mirrors;         /* "host=http://host:port,...": asked instead of that registry */
    const char *ca_file; /* certificate authorities of registries; NULL or "": the system's */
    str api_server;      /* "host:port" that no token server or redirect may be; empty: none */
};

struct registry_inspector *registry_inspector_new(const struct registry_inspector_options *options);
void registry_inspector_free(struct registry_inspector *r); /* no `done` runs any more */

struct registry_inspect {
    struct registry_reference image;
    enum registry_list list; /* LABELS: of the image; otherwise names, which are not kept */
    struct registry_credentials credentials;
    const char *architecture; /* of the nodes; NULL: amd64. Static */
    str tenant;               /* shares the bounds with other questions of its own */
    /* Exactly once unless canceled, never from inside registry_inspect(). The result is borrowed. */
    void (*done)(void *context, const struct registry_result *result);
    void *context;
};

/* Everything is copied. Valid until `done` returns or it is canceled. */
struct registry_inspection *registry_inspect(struct registry_inspector *r,
                                             const struct registry_inspect *question);
void registry_inspection_cancel(struct registry_inspection *i); /* NULL is fine */

#endif
