/* RBAC: evaluates the roles that are bound to a user (rbac.authorization.k8s.io). Roles and bindings are read
 * from the store for every check, so a binding takes effect as soon as it is committed. Of a binding that does
 * not name the user only the subjects are parsed; a cluster has dozens of bindings, not thousands.
 *
 * Two groups need no role: AUTH_ADMINS may do everything, AUTH_READERS may read everything except secrets. A
 * user cannot grant permissions that the user does not have (access_check_grant), unless a role allows the
 * verb `escalate` or `bind`. */
#ifndef FLYBALL_ACCESS_H
#define FLYBALL_ACCESS_H

#include "server.h"

struct access {
    str verb;
    str group, resource, subresource, ns, name;
    str path; /* non-resource URL; "": a resource */
};

/* `ret_why` (may be NULL) receives the reason, which names the binding; "" if no binding was needed. */
bool access_is_allowed(struct server *s, struct arena *a, const struct user *u,
                       const struct access *want, str *ret_why);
/* All rules that apply to the user in a namespace, as written in the roles. */
struct json *access_rules(struct server *s, struct arena *a, const struct user *u, str ns);
/* Checks a role or binding before it is written (old NULL: created). False: answered with 403 or 404. */
bool access_check_grant(struct call *c, const struct json *old, const struct json *object);

struct access access_needed(const struct call *c); /* the access that the call needs */
/* Answers with 403 and the access that was denied. */
void access_deny(struct call *c, const struct access *want);

/* ---- impersonate.c: replaces the call's user as the Impersonate-* headers ask. False: answered. */
bool access_impersonate(struct call *c);

#endif
