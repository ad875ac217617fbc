/* Logs failures without flooding the log. When the API server is unreachable, every key fails again and again.
 * Of similar failures the first ten are logged; then, every ten seconds, a summary with the number suppressed
 * and the last error. After ten seconds without one, counting starts over. Every failure is either logged or
 * counted.
 *
 * Failures are similar if their texts are equal except for the words that name an object. */
#ifndef FLYBALL_KUBE_COMPLAINTS_H
#define FLYBALL_KUBE_COMPLAINTS_H

#include "../base/buf.h"
#include "../net/loop.h"

enum { COMPLAINT_KINDS = 8 }; /* distinct at a time; the last one takes all further kinds */

struct complaint {
    const char *message; /* of the log line */
    str ns, name;        /* the key */
    const char *error;
    int64_t retry_ms; /* -1: not known */
};

struct complaint_kind {
    uint64_t sum;        /* hash of the text; 0: unused */
    int logged;          /* lines logged in full */
    uint64_t suppressed; /* failures since the last summary */
    bool seen;           /* at least one failure since the last summary */
    struct buf last;     /* last suppressed error */
};

struct complaints {
    struct loop *loop;
    const char *controller;
    struct timer timer; /* of the next summary */
    struct complaint_kind kinds[COMPLAINT_KINDS];
};

void complaints_init(struct complaints *c, struct loop *loop, const char *controller);
void complaints_log(struct complaints *c, const struct complaint *complaint);
void complaints_done(struct complaints *c); /* logs the pending summaries */

#endif
