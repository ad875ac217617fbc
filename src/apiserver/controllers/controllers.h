/* What the server does without a request, as kube-controller-manager does beside a real one. Each file is one
 * controller; controllers.c lists them. They see the store through http/server.h and write through
 * http/write.h, so that a controller's write passes the same checks as a client's. Read gc.c first. */
#ifndef FLYBALL_CONTROLLERS_H
#define FLYBALL_CONTROLLERS_H

#include "../http/server.h"

extern const struct controller definition_controller, gc_controller, claim_controller,
    namespace_controller, roles_controller;

extern const struct controller *const controllers_all[]; /* NULL-ended */

#endif
