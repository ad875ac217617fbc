/* The controllers that run inside the server, a part of what kube-controller-manager does for kube-apiserver.
 * Each file is one controller; controllers.c lists them. They see the store through http/server.h and write
 * through http/write.h. Read gc.c first. */
#ifndef FLYBALL_CONTROLLERS_H
#define FLYBALL_CONTROLLERS_H

#include "../http/server.h"

extern const struct controller definition_controller, gc_controller, claim_controller,
    namespace_controller, roles_controller;

extern const struct controller *const controllers_all[]; /* NULL-ended */

#endif
