/* Who may read our metrics, as controller-runtime has it: the bearer token of a request is shown to the API
 * server (TokenReview), and who it belongs to must be allowed to get /metrics (SubjectAccessReview).
 *
 * Answers are remembered for a minute, refusals for ten seconds. Of new tokens only a few a second are looked
 * at, so that a stranger who guesses costs the API server little; beyond that the answer is 429. */
#ifndef FLYBALL_CMD_GUARD_H
#define FLYBALL_CMD_GUARD_H

#include "../kube/client.h"
#include "../net/http_server.h"

struct guard;

struct guard *guard_new(struct kube *kube);
/* `serve` is called with the exchange when it is allowed, at once or later; else it is answered here: 401 without
 * a token that is known, 403 where that is not enough, 500 when the API server cannot be asked. */
void guard_pass(struct guard *g, struct exchange *x,
                void (*serve)(void *context, struct exchange *x), void *context);
void guard_free(struct guard *g); /* who waits is not answered any more */

#endif
