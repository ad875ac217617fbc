/* Who may read an aggregated API: authentication and authorization of its requests.
 *
 *   1. The API server's front proxy, by a client certificate that the CA in ConfigMap
 *      kube-system/extension-apiserver-authentication signed and a common name that it allows. The
 *      user is then in headers. Such headers on any other connection are ignored.
 *   2. A bearer token, by TokenReview.
 *
 * The user must be allowed to do what the request does, by SubjectAccessReview. Verdicts are cached
 * for ten seconds. What cannot be reviewed is refused. */
#ifndef FLYBALL_DOOR_ACCESS_H
#define FLYBALL_DOOR_ACCESS_H

#include "../kube/manager.h"
#include "../net/http_server.h"

struct door_access;

/* `on_ca` is called when the CA of the front proxy is known or changed. */
int door_access_new(struct manager *m, void (*on_ca)(void *context), void *context,
                    struct door_access **ret, err_t *e);
void door_access_free(struct door_access *a);                /* aborts pending exchanges */
str door_access_front_proxy_ca(const struct door_access *a); /* PEM; "": unknown */

struct door_access_action {
    str verb;
    str group, resource, ns; /* of a resource */
    str path;                /* otherwise */
};

/* Calls `serve` if the request is allowed, at once or later. Otherwise calls `refuse` with 401, 403,
 * 429 or 503. */
struct door_access_handler {
    void (*serve)(void *context, struct exchange *x);
    void (*refuse)(void *context, struct exchange *x, int status);
    void *context;
};
void door_access_check(struct door_access *a, struct exchange *x,
                       const struct door_access_action *action,
                       const struct door_access_handler *handler);

#endif
