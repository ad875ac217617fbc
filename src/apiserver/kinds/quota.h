/* What an object uses of a ResourceQuota, and what exceeds it. Pure: usage is computed from the
 * object alone; http/admission_quota.c reads and writes the quotas, controllers/quota.c counts again. */
#ifndef FLYBALL_APISERVER_QUOTA_H
#define FLYBALL_APISERVER_QUOTA_H

#include "kinds.h"

/* Whether the scopes of the quota select the object. */
bool kind_quota_selects(const struct json *quota, const struct kind *k, const struct json *object);

/* What the object uses of the resources in `hard`, as a map of quantities; resources that its kind never uses are
 * absent. A NULL object uses nothing. */
struct json *kind_quota_usage(struct arena *a, const struct kind *k, const struct json *object,
                              const struct json *hard);

/* Adds `sign` times the quantities of `more` to `sum`, in place. Never below zero. */
void kind_quota_add(struct arena *a, struct json *sum, const struct json *more, int sign);

/* Why the quota refuses `object` in place of `old` (NULL: a create), and what it would use with it; "": it does
 * not. ret_used is NULL if nothing changes. */
str kind_quota_refusal(struct arena *a, const struct json *quota, const struct kind *k,
                       const struct json *object, const struct json *old, struct json **ret_used);

/* ---- limits.c */

/* Sets default requests and limits of the containers of a new pod. */
void kind_limits_fill(struct arena *a, const struct json *ranges, struct json *pod);
/* Why the limit ranges refuse a pod or a claim; "": they do not. */
str kind_limits_refusal(struct arena *a, const struct json *ranges, const struct kind *k,
                        const struct json *object);
/* The amount of a resource that a pod requests, or is limited to: the sum of its containers, or its largest init
 * container if that is more. NULL: none declares it. */
struct json *kind_limits_pod_amount(struct arena *a, const struct json *pod, const char *list,
                                    str name);

#endif
