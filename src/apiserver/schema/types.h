/* The types of the built-in kinds, parsed from the .types tables on first use and kept for the life of
 * the process. kinds/types/README.md has the grammar. */
#ifndef FLYBALL_APISERVER_TYPES_H
#define FLYBALL_APISERVER_TYPES_H

#include "schema.h"

/* By full name, such as "core.v1.Pod"; NULL if there is no such type. */
const struct schema_message *types_message(const char *name);

/* The schema of a value of that type; the type must exist. */
const struct schema *types_schema(const char *name);

/* All messages in the order of the tables. */
const struct schema_message *const *types_all(size_t *ret_n);

/* The name of a type in OpenAPI: "io.k8s.api.core.v1.PodSpec" for "core.v1.PodSpec". */
str types_openapi_name(struct arena *a, str name);

#endif
