/* (Cluster)ServingRuntimes of templates: whose they are, and when they are deleted. */
#ifndef FLYBALL_RUNTIME_CONTROLLER_H
#define FLYBALL_RUNTIME_CONTROLLER_H

#include "consumer.h"
#include "service_world.h"

/* Kind and cache of the serving runtimes of AIM_TEMPLATE or AIM_CLUSTER_TEMPLATE. */
const struct resource *aim_runtime_resource(enum aim_kind template);
struct cache *aim_runtime_cache(const struct aim_world *w, enum aim_kind template);

/* Does this runtime belong to another owner? It is then neither changed nor deleted. NULL does not. */
bool aim_runtime_is_foreign(const struct aim_child_record *r);

/* Removes the owner references that earlier versions and the original set, so that deleting the template does not
 * delete the runtime under a running InferenceService. */
void aim_runtime_release(struct aim_turn *t);

/* Starts the controller that deletes runtimes without a template, for one kind of template. */
void aim_runtime_start(struct aim_consumers *of);

#endif
