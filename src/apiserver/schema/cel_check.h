/* The rules of x-kubernetes-validations (CEL). This server keeps them and does not run them; but
 * a rule that could never run is refused when its definition is written: it must parse, name fields
 * that the schema has and functions that there are, and be true or false in the end. */
#ifndef FLYBALL_APISERVER_CEL_CHECK_H
#define FLYBALL_APISERVER_CEL_CHECK_H

#include "field.h"

/* Every rule in an OpenAPI schema, with errors at its place under `at`. */
void cel_check_schema(const struct json *openapi, const struct field_path *at,
                      struct field_errors *errors);

/* What `self` is. */
struct cel_place {
    const struct json *openapi;
    bool root;         /* the whole object: has kind and metadata */
    bool optional_old; /* oldSelf may be absent */
};

/* One rule, or what tells of its failure: -EINVAL and a sentence when it is none. */
int cel_check(const struct cel_place *place, str rule, err_t *e);
int cel_check_message(const struct cel_place *place, str expression, err_t *e);

#endif
