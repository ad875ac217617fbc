/* The simulated registry of model images. */
#ifndef FLYBALL_TESTBED_REGISTRY_H
#define FLYBALL_TESTBED_REGISTRY_H

#include "../net/http_server.h"

#define TESTBED_REGISTRY "registry.testbed.flyball.dev" /* the host in the names of its images */

/* Answers a request of a registry's client; false: it is none. */
bool testbed_registry_answer(struct exchange *x);

#endif
