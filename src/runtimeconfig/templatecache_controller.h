/* AIMTemplateCache of the newer generation: its sources are AIMArtifacts. It names its template with spec.templateName; one with
 * spec.templateRef is of the older generation and has AIMModelCaches (cache_controller.c). */
#ifndef FLYBALL_TEMPLATECACHE_CONTROLLER_H
#define FLYBALL_TEMPLATECACHE_CONTROLLER_H

#include "consumer.h"

/* The finalizer that the operator of that generation sets on template caches. */
#define AIM_TEMPLATECACHE_FINALIZER "artifactcleanup"

bool aim_templatecache_is_newer(const struct aim_turn *t);
/* The hooks of such an object; deletion is in cache_controller.c. */
void aim_templatecache_observe(struct aim_turn *t);
void aim_templatecache_reconcile(struct aim_turn *t);
void aim_templatecache_set_status(struct aim_turn *t);

#endif
