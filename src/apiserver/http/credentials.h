/* What lies in the data directory beside the state: the authority, the server's certificate, tokens and the
 * kubeconfig. Made when missing, kept otherwise, so that clients survive a restart. All are readable
 * by their owner only. */
#ifndef FLYBALL_CREDENTIALS_H
#define FLYBALL_CREDENTIALS_H

#include "../../base/buf.h"
#include "../../net/cert.h"

struct credentials {
    struct cert_pair ca, server; /* empty without TLS */
    char *admin_token, *reader_token, *account_key;
    char *kubeconfig_path, *ca_path;
};

/* `directory` is there and locked (data_dir.h); `address` is what the server listens on. */
int credentials_load(struct credentials *c, const char *directory, const char *address, bool tls,
                     int64_t now_ns, err_t *e);
/* Once the port is known. A full disk is only logged: reads can be served, by the old kubeconfig if the URL is
 * the same. */
int credentials_write_kubeconfig(const struct credentials *c, const char *url, err_t *e);
void credentials_done(struct credentials *c);

#endif
