/* x-kubernetes-validations: the rules of a CustomResourceDefinition, checked when it is written and run on every write
 * of an object. */
#ifndef FLYBALL_APISERVER_CEL_RULES_H
#define FLYBALL_APISERVER_CEL_RULES_H

#include "cel.h"

/* Checks every rule in an OpenAPI schema: form, types, estimated cost, use of oldSelf, and defaults that break a
 * rule. Errors get the path of the rule below `at`. */
void cel_check_definition(const struct json *openapi, const struct field_path *at,
                          struct field_errors *errors);

/* The compiled rules of a schema and of everything below it; NULL if there are none. Lives in the arena. */
struct cel_validator;
const struct cel_validator *cel_validator_new(struct arena *a, const struct json *openapi,
                                              bool root);

struct cel_validation {
    struct field_errors *errors;
    /* Rules that fail on values that have not changed only warn (ratcheting). May be NULL. */
    void (*warn)(void *context, str text);
    void *context;
    int64_t budget; /* cost that is left for the object; negative: nothing more is run */
};

/* Runs all rules; `old` is NULL on create. */
void cel_validate(const struct cel_validator *v, const struct json *value, const struct json *old,
                  const struct field_path *at, struct cel_validation *run);

#endif
