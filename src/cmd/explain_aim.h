/* What the explainers of AIM's kinds share. */
#ifndef FLYBALL_CMD_EXPLAIN_AIM_H
#define FLYBALL_CMD_EXPLAIN_AIM_H

#include "../runtimeconfig/aim_kinds.h"
#include "../runtimeconfig/runtimeconfig_spec.h"
#include "explain.h"

/* What stands behind a service: model, template and why this one, storage, runtime. `config` governs it. */
int explain_service_basis(struct explain *x, const struct aim_kinds *kinds,
                          const struct json *service, const struct runtimeconfig_spec *config,
                          err_t *e);

void explain_title(struct explain *x, const struct json *object); /* "AIMModel ns/name" */
void explain_conditions(struct explain *x, const struct json *status);

#endif
