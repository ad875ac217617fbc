/* The controllers, in the order in which they run: definitions first, because the others ask which kinds are
 * served. */
#include "controllers.h"

const struct controller *const controllers_all[] = { &definition_controller, &gc_controller,
                                                     &claim_controller,      &namespace_controller,
                                                     &roles_controller,      NULL };
