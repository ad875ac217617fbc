/* Admission policies: their expressions, compiled. Used to check a policy when it is written, and to run it
 * (http/admission.c). */
#ifndef FLYBALL_APISERVER_POLICY_H
#define FLYBALL_APISERVER_POLICY_H

#include "../schema/cel/cel.h"
#include "kinds.h"

/* What expressions refer to; the order is that of the values of a run. */
enum policy_variable {
    POLICY_OBJECT,
    POLICY_OLD_OBJECT,
    POLICY_REQUEST,
    POLICY_NAMESPACE_OBJECT,
    POLICY_PARAMS,
    POLICY_AUTHORIZER,
    POLICY_REQUEST_RESOURCE,
    POLICY_VARIABLES,
    POLICY_VARIABLE_N
};

struct policy_expression {
    str text;
    const struct cel_program *program; /* NULL: none, or it does not compile */
};

struct policy_validation {
    struct policy_expression expression, message;
    str plain_message, reason;
};

struct policy_mutation {
    struct policy_expression expression;
    bool apply; /* an Object to merge; otherwise a list of JSONPatch */
};

struct policy {
    const struct json *spec;
    bool ignores_errors; /* failurePolicy */
    struct policy_validation *validations;
    struct policy_mutation *mutations;
    struct policy_expression *conditions;
    struct policy_expression *variables;
    str *variable_names;
    uint32_t n_validations, n_mutations, n_conditions, n_variables;
    const struct cel_type *request_type, *namespace_type;
};

/* Compiles all expressions; what is wrong with them goes to `errors` (may be NULL). Lives in the arena, as does
 * `spec`. */
struct policy *kind_policy_compile(struct arena *a, const struct json *spec, str policy_name,
                                   struct field_errors *errors);

/* The same for a webhook, which has only matchConditions. They are at `up`. */
struct policy *kind_policy_compile_conditions(struct arena *a, const struct json *webhook,
                                              const struct field_path *up,
                                              struct field_errors *errors);

#endif
