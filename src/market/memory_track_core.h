/* What is remembered about the memory of one container, and one round over all containers of a
 * node.
 *
 * A track keeps the highest working set of each of the last 24 hours and 7 days, the readings of
 * the last minute, and when the container was last killed, pressed or resized. Nothing of it is
 * stored: a restarted agent grows limits at once, but moves no request for an hour. */
#ifndef FLYBALL_MEMORY_TRACK_CORE_H
#define FLYBALL_MEMORY_TRACK_CORE_H

#include "memory_core.h"

enum { MEMORY_RECENT = 7, MEMORY_READ_S = 10 };

struct memory_track {
    int64_t hourly[MEMORY_HOURS], daily[MEMORY_DAYS];       /* [0] is the present one */
    int64_t recent[MEMORY_RECENT], recent_s[MEMORY_RECENT]; /* readings, the oldest first */
    int recent_n;
    int64_t working_set; /* of the last reading */
    double psi;          /* share of the time since the reading before */
    int64_t first_s, read_s;
    int64_t changed_s, oom_s, pressed_s; /* of the last one; 0: never */
    int64_t limit_at_oom;
};

/* Adds a reading. `now_s` is any clock that does not go back and starts above 0. */
void memory_track_sample(struct memory_track *t, int64_t now_s, int64_t working_set, double psi);
void memory_track_oom(struct memory_track *t, int64_t now_s, int64_t limit);

int64_t memory_track_need(const struct memory_track *t);
struct memory_bid memory_track_bid(const struct memory_track *t, int64_t now_s, int64_t limit);

struct memory_container {
    struct memory_track *track;
    int64_t limit, request; /* in force; limit 0: none */
    bool restarts_on_resize, allow_restart, swap, shrink, hpa_memory;
    bool busy; /* a resize is under way: it keeps what it has */
    enum memory_qos qos;
    struct memory_bid bid;       /* output */
    struct memory_change change; /* output */
};

struct memory_node {
    int64_t allocatable;      /* 0: unknown, nothing grows */
    int64_t others;           /* what pods without a part hold: requests or use */
    int64_t others_requested; /* the requests alone, which the kubelet counts */
    bool requests_only;       /* memoryManagement: requests */
    int kubernetes_minor;
    int64_t now_s;
    int64_t room;    /* output: until the known peaks of all would not fit */
    bool overloaded; /* output: even what is in use does not fit safely */
    int64_t demand;  /* output: the sum of what all want */
};

/* Decides about all containers. Those whose limit is about to be hit come first. */
void memory_round(struct memory_node *node, struct memory_container *containers, size_t n);

#endif
