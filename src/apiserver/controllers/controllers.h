/* The controllers that run inside the server, a part of what kube-controller-manager does for kube-apiserver.
 * Each file is one controller; controllers.c lists them. They see the store through http/server.h and write
 * through http/write.h. Read gc.c first. */
#ifndef FLYBALL_CONTROLLERS_H
#define FLYBALL_CONTROLLERS_H

#include "../http/server.h"

extern const struct server_controller definition_controller, gc_controller, claim_controller,
    namespace_controller, roles_controller, quota_controller, signer_controller, cluster_controller;

extern const struct server_controller *const controllers_all[]; /* NULL-ended */

/* All objects below a prefix, with a reference each: going through them stays valid while they are deleted. */
struct controllers_objects {
    VEC(struct object *) all;
};
struct controllers_objects controllers_collect(const struct server *s, str prefix);
void controllers_release(struct controllers_objects *objects);

#endif
