/* The rules of x-kubernetes-validations (CEL). This server keeps them and does not run them; but
 * a rule that could never run is refused when its definition is written: it must parse, name fields
 * that the schema has and functions that there are, and be true or false in the end. */
#ifndef FLYBALL_APISERVER_CEL_CHECK_H
#define FLYBALL_APISERVER_CEL_CHECK_H

#include "field.h"

/* Every rule in an OpenAPI schema, with errors at its place under `at`. */
void cel_check_schema(const struct json *openapi, const struct field_path *at,
                      struct field_errors *errors);

/* One rule, `self` being described by `openapi`: -EINVAL and a sentence when it is no rule. */
int cel_check(const struct json *openapi, bool root, str rule, err_t *e);

#endif
