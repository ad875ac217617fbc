/* One container's memory: what it needs, what it should be given, and what may be changed.
 *
 * Requests follow the working set in both directions; limits only grow, before the container is
 * killed. A limit reserves nothing, so lowering it frees nothing and a later step of the working
 * set kills the container: limits shrink only where the owner asks for it. All amounts are bytes. */
#ifndef FLYBALL_MEMORY_CORE_H
#define FLYBALL_MEMORY_CORE_H

#include "../base/base.h"

enum { MEMORY_HOURS = 24, MEMORY_DAYS = 7 };
#define MEMORY_NEVER INT64_MAX /* for the since_* fields */

/* The highest working set that is known, older days counting less. daily[0] is today. */
int64_t memory_need(int64_t working_set, const int64_t *hourly, size_t hours, const int64_t *daily,
                    size_t days);

/* What a need should be given: the need and a margin for what is not known. */
int64_t memory_want(int64_t need);

/* What a working set must have at least to survive the next moment. */
int64_t memory_guarded(int64_t working_set);

struct memory_signals {
    int64_t working_set; /* memory.current without inactive page cache */
    int64_t limit, need;
    double psi;          /* share of the last 10 s in which a task waited for memory */
    double slope;        /* bytes per second over the last minute */
    int64_t since_oom_s; /* MEMORY_NEVER */
    int64_t limit_at_oom;
};

struct memory_bid {
    int64_t safe; /* must have: never below what is in use */
    int64_t want;
    bool urgent; /* the limit is about to be hit: memory goes before CPU */
};

struct memory_bid memory_bid(const struct memory_signals *s);

enum memory_action { MEMORY_KEEP, MEMORY_GROW, MEMORY_SHRINK, MEMORY_REQUEST, MEMORY_ACTION_N };
const char *memory_action_name(enum memory_action action);

enum memory_qos { MEMORY_BURSTABLE, MEMORY_GUARANTEED, MEMORY_BEST_EFFORT };

struct memory_state {
    int64_t working_set, limit, request, need, want;
    int64_t room;                           /* of the node, until all known peaks would not fit */
    bool restarts_on_resize, allow_restart; /* resizePolicy RestartContainer, and its consent */
    bool swap;
    enum memory_qos qos;
    bool shrink; /* the owner or the settings allow lower limits */
    int kubernetes_minor;
    int64_t known_s, since_change_s, since_oom_s, since_psi_s; /* MEMORY_NEVER */
    bool hpa_memory; /* an HPA divides by the memory request: hold it */
};

struct memory_change {
    int64_t limit, request;
    enum memory_action action;
    const char *reason; /* CamelCase */
};

struct memory_change memory_settle(const struct memory_state *s);

#endif
