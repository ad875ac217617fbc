/* Which changes of an object's status are our own. Most are, and need no turn, because the turn that wrote them already
 * knew the result. All others do. One of them may be ours as well: a write that was carried out but whose answer was lost,
 * so that a later turn did not know about it; no other client would correct it.
 *
 * A change may arrive before the answer to its write: it is evaluated when the answer arrives. */
#ifndef FLYBALL_OWN_WRITE_H
#define FLYBALL_OWN_WRITE_H

#include "../json/project.h"
#include "../kube/client.h"

struct aim_own_write { /* `{0}`: nothing was written yet */
    uint64_t version;  /* hash of the resourceVersion that the last write produced */
    uint64_t seen;     /* the last one that the watch delivered during a write */
    unsigned seen_n;   /* number of those */
    bool under_way;
};

void aim_own_write_begin(struct aim_own_write *w);
/* Is this change of the status our own? During a write, all are assumed to be. */
bool aim_own_write_is_ours(struct aim_own_write *w, const struct record *now);
/* True: not all of them were; another turn is needed. */
bool aim_own_write_end(struct aim_own_write *w, const struct kube_reply *reply);

#endif
