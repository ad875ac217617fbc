/* How the children of an AIM object are: pods, jobs, volumes and routes as components of the status engine, and what the
 * log of a failed pod shows about the cause. Pure. */
#ifndef FLYBALL_ENGINE_CHILDREN_CORE_H
#define FLYBALL_ENGINE_CHILDREN_CORE_H

#include "engine_core.h"

/* The cause that a log shows. */
enum aim_engine_log_class {
    ENGINE_LOG_UNKNOWN,
    ENGINE_LOG_INFRASTRUCTURE,
    ENGINE_LOG_NOT_FOUND,
    ENGINE_LOG_AUTH,
    ENGINE_LOG_FULL,
    ENGINE_LOG_N
};

const char *aim_engine_log_class_name(enum aim_engine_log_class class); /* "storage-full", ... */
/* The class of the log and the line that shows it, trimmed. */
enum aim_engine_log_class aim_engine_classify_log(str log, str *ret_line);

/* Without a name: the caller sets it. `pods` is a list with `items`; NULL: none. `log` is the end of the log of a failed
 * pod, `events` are those of pending pods (a list); NULL and empty: unknown. */
struct aim_engine_component aim_engine_pods(struct arena *a, const struct json *pods,
                                            const struct json *events, str log);
struct aim_engine_component aim_engine_job(const struct json *job); /* NULL: none */
struct aim_engine_component aim_engine_claim(struct arena *a, const struct json *claim);
struct aim_engine_component aim_engine_route(struct arena *a, const struct json *route);

#endif
