/* The types of the built-in kinds, read from types/ (see its README) on first use and kept for the life
 * of the program. */
#ifndef FLYBALL_APISERVER_TYPES_H
#define FLYBALL_APISERVER_TYPES_H

#include "schema.h"

/* "core.v1.Pod"; NULL when there is no such type. */
const struct schema_message *types_message(const char *name);

/* The schema of a value of that type; the type must exist. */
const struct schema *types_schema(const char *name);

/* All of them in the order written, for whoever publishes them. */
const struct schema_message *const *types_all(size_t *ret_n);

/* "io.k8s.api.core.v1.PodSpec" for "core.v1.PodSpec": the name OpenAPI knows it by. */
str types_openapi_name(struct arena *a, str name);

#endif
