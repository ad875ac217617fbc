/* Checks the CEL rules of x-kubernetes-validations. This server stores them and does not evaluate them, but
 * a rule that could never run is refused when its definition is written: it must parse, refer to fields and
 * functions that exist, and evaluate to a bool. */
#ifndef FLYBALL_APISERVER_CEL_CHECK_H
#define FLYBALL_APISERVER_CEL_CHECK_H

#include "field.h"

/* Checks every rule in an OpenAPI schema; errors get the path of the rule below `at`. */
void cel_check_schema(const struct json *openapi, const struct field_path *at,
                      struct field_errors *errors);

/* Where a rule is declared, which decides what `self` is. */
struct cel_place {
    const struct json *openapi;
    bool root;         /* the whole object, which has kind and metadata */
    bool optional_old; /* oldSelf may be absent */
};

/* One rule, or the messageExpression of a rule. Returns -EINVAL with a sentence if it is invalid. */
int cel_check(const struct cel_place *place, str rule, err_t *e);
int cel_check_message(const struct cel_place *place, str expression, err_t *e);

#endif
