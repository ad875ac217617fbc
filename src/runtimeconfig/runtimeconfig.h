/* runtimeconfig: which settings and which route? (drop-in for AIM runtime configuration)
 *
 * A model service names a runtime configuration; it gets the one of its namespace, or the cluster's, and an
 * HTTP path rendered from its own fields.
 *
 *   resolve_core   name and namespace in, the configuration that governs and its hash out
 *   path_core      a template and an object in, an HTTP path out
 *
 * All of these are pure: no clock, no I/O; results live in the caller's arena.
 *
 * Read first: resolve, path_compile, path_render. */
#ifndef FLYBALL_RUNTIMECONFIG_H
#define FLYBALL_RUNTIMECONFIG_H

#include "path_core.h"
#include "resolve_core.h"

#endif
