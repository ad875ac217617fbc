/* Leader election with a Lease (coordination.k8s.io/v1), compatible with client-go.
 *
 * A leader can write only through the client's write gate, which each renewal opens until `renew_deadline`
 * after the renewal was *sent*, by our own monotonic clock. Candidates wait `lease_duration` after they
 * *saw* the renewal. The first is shorter than the second, so a leader that loses the Lease has stopped
 * writing (requests in flight are cancelled) before another starts, even if it was frozen in between. */
#ifndef FLYBALL_KUBE_ELECTION_H
#define FLYBALL_KUBE_ELECTION_H

#include "client.h"

struct election;

struct election_options {
    struct kube *kube;
    str ns, name; /* of the Lease */
    str identity; /* unique per process */
    /* The pod that this process runs in, if identities are "POD_..."; "": not in a pod. A Lease held by an earlier
     * process of the same pod is free at once: a container starts only after the one before it has ended. */
    str pod;
    uint64_t seed;             /* for the jitter */
    int64_t lease_duration_ns; /* 0: 15 s */
    int64_t renew_deadline_ns; /* 0: 10 s; must be shorter */
    int64_t retry_period_ns;   /* 0: 2 s; must be shorter still */

    void (*on_lead)(void *context);
    void (*on_lost)(void *context); /* final: start a new election to try again */
    void (*on_trouble)(void *context, const char *sentence); /* worth a log line; may be NULL */
    void *context;
};

int election_start(const struct election_options *options, struct election **ret, err_t *e);
bool election_leads(const struct election *el);
str election_holder(const struct election *el); /* as last seen; "": none */
/* Releases the Lease if we hold it, so that the next leader need not wait for it to expire. `done` is called
 * when the server responded or after 3 s; the election is freed before that. */
void election_stop(struct election *el, void (*done)(void *context), void *context);
void election_free(struct election *el); /* immediately, without releasing the Lease */

#endif
