/* One leader, by a Lease (coordination.k8s.io/v1): compatible with client-go's leader election.
 *
 * A leader may write only through the client's gate, which this opens at each renewal until
 * `renew_deadline` after the renewal was *sent*, by our own monotonic clock. Others wait
 * `lease_duration` after they *saw* the renewal. The first is shorter than the second, so whoever
 * loses the Lease has stopped writing (requests under way are cancelled) before anyone else starts, even
 * when it was frozen in between. */
#ifndef FLYBALL_KUBE_ELECTION_H
#define FLYBALL_KUBE_ELECTION_H

#include "client.h"

struct election;

struct election_options {
    struct kube *kube;
    str ns, name;              /* of the Lease */
    str identity;              /* who we are: unique */
    uint64_t seed;             /* of the jitter */
    int64_t lease_duration_ns; /* 0: 15 s */
    int64_t renew_deadline_ns; /* 0: 10 s; must be shorter */
    int64_t retry_period_ns;   /* 0: 2 s; must be shorter still */

    void (*on_lead)(void *context);
    void (*on_lost)(void *context); /* after it the election tries again only if started anew */
    void (*on_trouble)(void *context, const char *sentence); /* worth a log line; may be NULL */
    void *context;
};

int election_start(const struct election_options *options, struct election **ret, err_t *e);
bool election_leads(const struct election *el);
str election_holder(const struct election *el); /* last seen; "" when nobody */
/* Gives the Lease back if we hold it, so that the next one need not wait; `done` is called when the
 * server answered or after 3 s, and the election is freed before it. */
void election_stop(struct election *el, void (*done)(void *context), void *context);
void election_free(struct election *el); /* at once, without giving back */

#endif
