/* The compiled form of rules. Private to cel/. */
#ifndef FLYBALL_APISERVER_CEL_VALIDATOR_H
#define FLYBALL_APISERVER_CEL_VALIDATOR_H

#include "cel_rules.h"

struct cel_rule {
    const struct cel_program *rule;    /* NULL: does not compile; never run */
    const struct cel_program *message; /* messageExpression; or NULL */
    str text, plain_message;           /* trimmed; the message may be empty */
    str field;                         /* fieldPath as it is printed; or empty */
    enum field_reason reason;
    bool uses_old, optional_old;
    str issues, message_issues; /* why one does not compile */
};

/* Compiles one rule on values of a type. */
void cel_compile_rule(struct arena *a, const struct json *schema, const struct json *rule,
                      const struct cel_type *type, struct cel_rule *ret);

/* The field path of a rule as it is printed; false: it does not lead to a declared field. */
bool cel_normalize_path(struct arena *a, const struct json *schema, str path, str *ret);

#endif
