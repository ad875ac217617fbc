/* runtimeconfig: which settings and which route a model service gets (drop-in for AIM runtime configuration).
 *
 * A model service names a runtime configuration. It gets the one of its namespace, or else the cluster's, and an
 * HTTP path rendered from its own fields, with an HTTPRoute for it.
 *
 *   resolve_core   name and namespace in; the configuration that applies and its hash out
 *   path_core      a template and an object in; an HTTP path out
 *   route_core     a service and its configuration in; the HTTPRoute and a verdict out
 *   claims_core    which service or route owns which path of which gateway
 *   status_core    a status with several writers, as one patch with its events
 *   names_, template_, model_, cache_, service_*_core     the objects that a service depends on: see each
 *
 * All of these are pure: no clock, no I/O; results live in the caller's arena. Around them:
 *
 *   consumer       one turn on one object that names a configuration: the order of all steps
 *   configs        the configurations, each parsed once, and the objects that use them
 *   runtimeconfig_controller    watches and what they enqueue
 *
 * Exported names start with aim_ or runtimeconfig_. Read first: aim_resolve_objects, aim_path_render,
 * aim_route_plan; then consumer.h. */
#ifndef FLYBALL_RUNTIMECONFIG_H
#define FLYBALL_RUNTIMECONFIG_H

#include "path_core.h"
#include "resolve_core.h"
#include "route_core.h"

#endif
