/* Who we are, as it changes while we run: token files that are rotated, plugins whose answers expire.
 *
 * Token files are read again at most every 50 s; a read that fails keeps the old token. A plugin is
 * run when there is no answer of it, when its answer expired or after a 401, once for all requests
 * that wait, and at most once in 10 s after it failed. Everything stays in memory. */
#ifndef FLYBALL_KUBE_CREDENTIALS_H
#define FLYBALL_KUBE_CREDENTIALS_H

#include "../net/http_client.h"
#include "config.h"

struct credentials;

/* `on_change` is called when a plugin ended: `failure` NULL, or why there is nothing to send. `cert`
 * says that the client certificate is another one than before. `c` outlives the credentials. */
typedef void credentials_fn(void *context, const char *failure, bool cert);

struct credentials *credentials_new(struct loop *loop, const struct kube_config *c,
                                    credentials_fn *on_change, void *context);
void credentials_free(struct credentials *cr);

/* May a request be sent now? If not, a plugin is running and `on_change` will be called. */
bool credentials_ready(struct credentials *cr);
void credentials_authorize(struct credentials *cr, struct http_header_list *list);
void credentials_refused(struct credentials *cr); /* the server said 401 */
/* The client certificate and key of a plugin; empty when it gave none. */
void credentials_cert(const struct credentials *cr, str *ret_cert_pem, str *ret_key_pem);

/* An ExecCredential as printed by a plugin; texts live in the arena. For the fuzzer as well. */
struct exec_answer {
    str token, cert_pem, key_pem;
    int64_t expires_ns; /* wall clock; INT64_MAX: never */
};
int exec_answer_parse(struct arena *a, str text, struct exec_answer *ret, err_t *e);

#endif
