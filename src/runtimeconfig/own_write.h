/* Which changes of an object's status are our own. Most are, and need no turn: the turn that wrote them knew all of
 * it. The others do, and one of them may be our own too: a write that was carried out and whose answer was lost, of
 * which a later turn did not know. Nobody else would ever put right what it says.
 *
 * A change may be seen before its write is answered: judging it waits until then. */
#ifndef FLYBALL_OWN_WRITE_H
#define FLYBALL_OWN_WRITE_H

#include "../json/project.h"
#include "../kube/client.h"

struct aim_own_write { /* `{0}`: nothing was written yet */
    uint64_t version;  /* hash of the one that the last write led to */
    uint64_t seen;     /* of the last one that came to light while a write is under way */
    unsigned seen_n;   /* so many did */
    bool under_way;
};

void aim_own_write_begin(struct aim_own_write *w);
/* The status is another: is it by us? While a write is under way, all are taken for ours. */
bool aim_own_write_is_ours(struct aim_own_write *w, const struct record *now);
/* True: not all of them were, look again. */
bool aim_own_write_end(struct aim_own_write *w, const struct kube_reply *reply);

#endif
