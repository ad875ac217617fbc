/* What went wrong, told without flooding the log. When the API server is away every key fails again and again: of
 * failures that are alike the first ten are told, then how many more there were, every ten seconds, with the last of
 * them. After ten seconds without one it is told from the beginning. None is lost: each is told or counted.
 *
 * Alike are failures with the same text apart from the words that name an object. */
#ifndef FLYBALL_KUBE_COMPLAINTS_H
#define FLYBALL_KUBE_COMPLAINTS_H

#include "../base/buf.h"
#include "../net/loop.h"

enum { COMPLAINT_KINDS = 8 }; /* told apart at a time; the last is for all further ones */

struct complaint {
    const char *message; /* of the log line */
    str ns, name;        /* the key */
    const char *error;
    int64_t retry_ms; /* -1: not known */
};

struct complaint_kind {
    uint64_t sum;        /* of the text; 0: not in use */
    int logged;          /* lines */
    uint64_t suppressed; /* since the last summary */
    bool seen;           /* likewise */
    struct buf last;     /* error that was left out */
};

struct complaints {
    struct loop *loop;
    const char *controller;
    struct timer timer; /* of the next summary */
    struct complaint_kind kinds[COMPLAINT_KINDS];
};

void complaints_init(struct complaints *c, struct loop *loop, const char *controller);
void complaints_log(struct complaints *c, const struct complaint *complaint);
void complaints_done(struct complaints *c); /* tells what was left out so far */

#endif
