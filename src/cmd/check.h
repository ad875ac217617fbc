/* flyball check: is this cluster ready for flyball, and is its installation healthy? Each probe asks the cluster one
 * question and adds one line or several; a line that is not good has a remedy. */
#ifndef FLYBALL_CMD_CHECK_H
#define FLYBALL_CMD_CHECK_H

#include "../base/vec.h"
#include "explain.h"

enum check_state {
    CHECK_UNKNOWN, /* could not be found out: the user may not read it, or no flag names it */
    CHECK_OK,
    CHECK_WARNING, /* works, but a feature is missing or at risk */
    CHECK_FAILED,  /* flyball, or one of its features, cannot work */
};

struct check_line {
    enum check_state state;
    str subject, finding, remedy; /* in the arena; the remedy is empty for CHECK_OK */
};

struct check {
    struct explain x;
    const char *ns, *agent_ns; /* where flyball is installed */
    const char *prometheus, *prometheus_token_file;
    bool installed; /* found by check_installation() */
    VEC(struct check_line) lines;
};

/* Adds a line; `finding` and `remedy` are copied. */
void check_add(struct check *c, enum check_state state, const char *subject, str finding,
               str remedy);

bool check_version(struct check *c);      /* false: there is no API server to ask */
void check_installation(struct check *c); /* operator, agents and lease */
void check_cluster(struct check *c);      /* definitions, neighbors */
void check_rights(struct check *c);       /* what the operator is allowed to do */
void check_prometheus(struct check *c);

#endif
