/* Credentials that change at run time: rotated token files, and exec plugins whose credentials expire.
 *
 * Token files are reread at most every 50 s; if that fails, the old token stays. A plugin runs if it has not
 * run yet, if its credential expired or after a 401; once for all waiting requests, and at most once per
 * 10 s after a failure. Credentials are kept in memory only. */
#ifndef FLYBALL_KUBE_CREDENTIALS_H
#define FLYBALL_KUBE_CREDENTIALS_H

#include "../net/http_client.h"
#include "config.h"

struct credentials;

/* `on_change` is called after a plugin exited. `failure` is NULL on success; `cert` is true if the client
 * certificate changed. `c` must outlive the credentials. */
typedef void credentials_fn(void *context, const char *failure, bool cert);

struct credentials *credentials_new(struct loop *loop, const struct kube_config *c,
                                    credentials_fn *on_change, void *context);
void credentials_free(struct credentials *cr);

/* Can a request be sent now? If not, a plugin runs and `on_change` will be called. */
bool credentials_ready(struct credentials *cr);
void credentials_authorize(struct credentials *cr, struct http_header_list *list);
void credentials_refused(struct credentials *cr); /* the server returned 401 */
/* The client certificate and key from the plugin; empty if it returned none. */
void credentials_cert(const struct credentials *cr, str *ret_cert_pem, str *ret_key_pem);

/* An ExecCredential as printed by a plugin; texts live in the arena. Also used by the fuzzer. */
struct exec_answer {
    str token, cert_pem, key_pem;
    int64_t expires_ns; /* wall clock; INT64_MAX: never */
};
int credentials_parse_answer(struct arena *a, str text, struct exec_answer *ret, err_t *e);

#endif
