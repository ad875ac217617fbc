/* The controllers, in the order in which they run. Definitions come first, because the others depend on the kinds
 * that are served. */
#include "controllers.h"

const struct controller *const controllers_all[] = { &definition_controller, &gc_controller,
                                                     &claim_controller,      &namespace_controller,
                                                     &roles_controller,      NULL };
