/* Shared by the explainers of AIM's kinds. */
#ifndef FLYBALL_CMD_EXPLAIN_AIM_H
#define FLYBALL_CMD_EXPLAIN_AIM_H

#include "../runtimeconfig/aim_kinds.h"
#include "../runtimeconfig/runtimeconfig_spec.h"
#include "explain.h"

/* Appends what a service is based on: model, template and why it was chosen, storage, runtime.
 * `config` is the runtime configuration in effect. */
int explain_service_basis(struct explain *x, const struct aim_kinds *kinds,
                          const struct json *service, const struct runtimeconfig_spec *config,
                          err_t *e);

void explain_title(struct explain *x, const struct json *object); /* "AIMModel ns/name" */
void explain_conditions(struct explain *x, const struct json *status);

#endif
