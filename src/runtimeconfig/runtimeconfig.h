/* runtimeconfig: which settings and which route? (drop-in for AIM runtime configuration)
 *
 * A model service names a runtime configuration; it gets the one of its namespace, or the cluster's,
 * and an HTTP path rendered from its own fields, with a route in front of it.
 *
 *   resolve_core   name and namespace in, the configuration that governs and its hash out
 *   path_core      a template and an object in, an HTTP path out
 *   route_core     a service and its configuration in, the HTTPRoute and a verdict out
 *   status_core    a status that several write, as one patch with its events
 *   names_, template_, model_, cache_, service_*_core     what a service stands on: see each
 *
 * All of these are pure: no clock, no I/O; results live in the caller's arena. Around them:
 *
 *   consumer       one turn on one object that names a configuration: the order of everything
 *   configs        the configurations, each read once, and who they govern
 *   claims         who wants which path of which gateway
 *   runtimeconfig_controller    watches lead to turns
 *
 * Read first: resolve, path_render, route_plan; then consumer.h. */
#ifndef FLYBALL_RUNTIMECONFIG_H
#define FLYBALL_RUNTIMECONFIG_H

#include "path_core.h"
#include "resolve_core.h"
#include "route_core.h"

#endif
