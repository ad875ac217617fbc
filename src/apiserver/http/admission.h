/* Admission: policies and webhooks that see a write and may change or refuse it.
 *
 *     MutatingAdmissionPolicy, mutating webhooks -> the kind's own validation -> ValidatingAdmissionPolicy -> validating webhooks
 *
 * Bindings are read from the store for every write, so that a policy takes effect as soon as it is committed. A
 * server without bindings pays one search in the tree. Compiled policies are cached by the version of their object. */
#ifndef FLYBALL_ADMISSION_H
#define FLYBALL_ADMISSION_H

#include "../kinds/policy.h"
#include "server.h"

/* What a request is about to do. */
struct admission_request {
    struct call *call;
    const char *operation;     /* CREATE, UPDATE or DELETE */
    const struct kind *kind;   /* of the object: a Scale for /scale */
    const struct json *object; /* NULL: a delete */
    const struct json *old;    /* NULL: a create */
    const struct json
        *options; /* as the client gave them; NULL: those of a write, from the query */
    str name;
    bool dry_run;
    const struct kind *as; /* whose version is matched; NULL: that of the call */
};

/* Before validation: mutating policies and webhooks may change the object, or its Scale, of the call. False: answered, or the call
 * waits for a webhook and runs again; the verb returns in both cases. */
bool admission_mutate(struct call *c, struct json **object, const struct json *old, bool dry_run);
/* After validation: asks all policies and validating webhooks. False: as above. */
bool admission_check_write(struct call *c, struct json *object, const struct json *old,
                           bool dry_run);
bool admission_exists(
    struct call *c); /* any policy or webhook; for code that asks about many objects */
/* Both for a delete. The name is "" for each object of a collection. */
bool admission_check_delete(struct call *c, const struct json *old, str name,
                            const struct json *options, bool dry_run);

/* Whether all matchConditions of a webhook hold. An error counts as false and, unless failurePolicy is Ignore, is
 * in `ret_why`. */
bool admission_conditions_hold(const struct admission_request *r, const struct policy *p,
                               str *ret_why);

/* ---- admission_mutate.c */

/* What is known of mutating policies between the two rounds of a write. */
struct mutation {
    int round;
    bool changed;        /* result: a policy made a new object */
    const char *reason;  /* of the first error */
    struct json *errors; /* causes */
    struct json *again;  /* keys: what the second round runs again */
};

bool admission_can_mutate(struct call *c); /* is there any mutating policy? */
/* Runs the mutating policies; r->object is replaced. False: answered, or the call waits. */
bool admission_run_mutations(struct admission_request *r, struct mutation *m);

struct admission;
void admission_free(struct admission *a); /* the cache; NULL is fine */

/* ---- admission_request.c */

/* The AdmissionRequest of the Kubernetes API without uid, object and oldObject; `as` is the version that is matched. */
struct json *admission_make_request(const struct admission_request *r, const struct kind *as);

struct json *admission_user(struct arena *a, const struct user *u); /* the UserInfo of a request */

/* ---- admission_match.c */

/* Whether namespaceSelector and objectSelector select the request. */
bool admission_selects(const struct admission_request *r, const struct json *match);
/* Whether one of the rules matches the request, as if it were for this version of the resource. */
bool admission_matches_rules(const struct admission_request *r, const struct json *rules,
                             const struct kind *as);
/* The kind in whose version `rules` match: that of the request, else, unless `exact`, another version of the resource.
 * NULL: no rule matches. */
const struct kind *admission_find_version(const struct admission_request *r,
                                          const struct json *rules, bool exact);
/* Whether matchConstraints or matchResources select the request (NULL selects everything), and in which version. */
const struct kind *admission_matches(const struct admission_request *r, const struct json *match);
/* The request in another version. False: the call waits for a conversion, or was answered. */
bool admission_view(const struct admission_request *r, const struct kind *as,
                    struct admission_request *ret);
/* The namespace of the request, or the namespace itself that is written; NULL: cluster-scoped. */
const struct json *admission_namespace(const struct admission_request *r);

#endif
