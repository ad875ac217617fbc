/* The part of admission policies that validating and mutating ones share. */
#ifndef FLYBALL_APISERVER_ADMISSION_RUN_H
#define FLYBALL_APISERVER_ADMISSION_RUN_H

#include "admission.h"

#define POLICY_GROUP S("admissionregistration.k8s.io")

struct admission_run;

/* Validating policies refuse at the first failure, mutating ones collect errors: hence two functions.
 *
 * What a type of policies does. Both functions return false if the request was refused. */
struct admission_way {
    const char *policies, *bindings; /* resources */
    bool (*evaluate)(struct admission_run *e);
    bool (*fail_configuration)(struct admission_run *e, str why);
};

/* One policy on one request. */
struct admission_run {
    struct cel_host host; /* first: CEL calls back with it */
    const struct admission_way *way;
    void *context;                           /* of the caller of admission_run_all() */
    const struct admission_request *request; /* in the version that the policy names */
    struct admission_request *original;
    const struct policy *policy;
    str policy_name, binding_name;
    const struct json *actions; /* NULL: a refusal denies */
    const struct json *params;
    struct cel_value values[POLICY_VARIABLE_N];
    struct cel_value *variables; /* results; kind CEL_PARAM: not evaluated yet */
    int64_t budget;
};

/* Runs all policies that apply. False: refused, or the call waits for a conversion. */
bool admission_run_all(struct admission_request *r, const struct admission_way *way, void *context);
bool admission_any_policy(struct call *c,
                          const struct admission_way *way); /* is there any binding? */

/* Sets all variables that are the same for every set of parameters. */
void admission_run_init(struct admission_run *e, const struct admission_request *r,
                        const struct policy *p);
struct cel_value admission_evaluate(struct admission_run *e, const struct policy_expression *x);
/* Whether all hold. A condition that is false wins over errors of others, of which the first is in `failed`. */
bool admission_run_conditions(struct admission_run *e, str *failed);
str admission_error_text(const struct admission_run *e, str expression, struct cel_value error);
struct cel_value admission_value_or_null(struct arena *a, const struct json *json,
                                         const struct cel_type *type);

#endif
