/* What somebody may do: the rules of the roles that are bound to them (rbac.authorization.k8s.io), read
 * from the store at every question, so that a binding holds from the moment it is committed. Bindings
 * are found by their subjects without parsing the rest of them; there are dozens, not thousands.
 *
 * Two rights come before any role: AUTH_ADMINS may do everything and AUTH_READERS may read everything but
 * secrets. Nobody may hand out by a role or a binding what they do not have (access_may_grant), unless a
 * role lets them `escalate` or `bind`. */
#ifndef FLYBALL_ACCESS_H
#define FLYBALL_ACCESS_H

#include "server.h"

struct access {
    str verb;
    str group, resource, subresource, ns, name;
    str path; /* of a page, instead of a resource */
};

/* `ret_why` (may be NULL) names the binding, "" where none was needed. */
bool access_allowed(struct server *s, struct arena *a, const struct user *u,
                    const struct access *want, str *ret_why);
/* All rules that hold for the user in a namespace, as they are written in roles. */
struct json *access_rules(struct server *s, struct arena *a, const struct user *u, str ns);
/* Before a role or a binding is written (old NULL: a new one); false: answered with 403. */
bool access_may_grant(struct call *c, const struct json *old, const struct json *object);

struct access call_wanted(const struct call *c); /* what the call wants to do */
/* 403 that names what was wanted. */
void call_refuse(struct call *c, const struct access *want);

/* ---- impersonate.c: false: answered */
bool call_impersonate(struct call *c);

#endif
