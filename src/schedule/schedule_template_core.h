/* The HPA that an object's HPASpecTemplate describes. */
#ifndef FLYBALL_SCHEDULE_TEMPLATE_CORE_H
#define FLYBALL_SCHEDULE_TEMPLATE_CORE_H

#include "schedule_plan_core.h"

/* Why a template cannot be used: a reason for the condition TemplateValid and a sentence. */
struct schedule_template_problem {
    const char *reason; /* NULL: the template is valid */
    str message;
};

struct schedule_template_problem schedule_template_check(struct arena *a,
                                                         const struct schedule_object *o);

/* Name and namespace of the HPA. */
struct schedule_target schedule_template_target(struct arena *a, const struct schedule_spec *spec,
                                                str ns, str name);

/* The HPA to create: only what an HPA must have, and an owner, so that garbage collection deletes it with the
 * schedule. The rest is applied afterwards, so that server-side apply owns it and can remove it again. */
struct json *schedule_template_hpa(struct arena *a, const struct schedule_object *o);

/* The configuration to apply to that HPA: all of the template, but the bounds that it has, which windows set. */
struct json *schedule_template_apply(struct arena *a, const struct schedule_object *o,
                                     struct schedule_bounds live);

/* Changes whenever that configuration does; kept as an annotation. */
str schedule_template_hash(struct arena *a, const struct schedule_spec *spec);

#endif
