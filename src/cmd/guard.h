/* Authorization of /metrics and of the page, as in controller-runtime: the API server authenticates
 * the bearer token of a request (TokenReview), and its user must be allowed to get the path
 * (SubjectAccessReview).
 *
 * Results are cached, for a minute if allowed and for ten seconds if not. Only a few new tokens
 * per second are reviewed, so a client that guesses tokens cannot load the API server; the
 * others get 429. */
#ifndef FLYBALL_CMD_GUARD_H
#define FLYBALL_CMD_GUARD_H

#include "../kube/client.h"
#include "../net/http_server.h"

struct guard;

struct guard *guard_new(struct kube *kube, const char *path); /* borrowed: a literal */
/* Calls `serve` with the exchange if it is allowed, at once or later. Otherwise answers it: 401
 * without a valid token, 403 if the user is not allowed, 500 if the API server cannot be
 * reached. */
void guard_pass(struct guard *g, struct exchange *x,
                void (*serve)(void *context, struct exchange *x), void *context);
/* The same with a token that is not in the request. */
void guard_pass_token(struct guard *g, str token, struct exchange *x,
                      void (*serve)(void *context, struct exchange *x), void *context);
void guard_free(struct guard *g); /* aborts pending exchanges */

#endif
