/* Writes schemas in the form of OpenAPI v3, for the documents of openapi.c. */
#ifndef FLYBALL_APISERVER_OPENAPI_SCHEMA_H
#define FLYBALL_APISERVER_OPENAPI_SCHEMA_H

#include "kind.h"

/* Adds a built-in type and every type it refers to, under their OpenAPI names. */
void openapi_add_type(struct arena *a, struct json *schemas, const struct schema_message *m);

/* The schema of a custom resource as its definition states it, with the fields of every object. */
struct json *openapi_of_custom(struct arena *a, const struct kind *k);

struct json *openapi_ref(struct arena *a, str name); /* {"$ref": "#/components/schemas/name"} */

#endif
