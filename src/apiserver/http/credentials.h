/* The credentials in the data directory: the certificate authority, the tokens and the kubeconfig. Missing
 * ones are created, existing ones are kept, so that clients still work after a restart. Only the owner of the
 * directory can read them. */
#ifndef FLYBALL_CREDENTIALS_H
#define FLYBALL_CREDENTIALS_H

#include "../../base/buf.h"
#include "../../net/cert.h"

struct server_credentials {
    struct cert_pair ca, server; /* empty without TLS */
    char *admin_token, *reader_token;
    char *account_key; /* signs the tokens of service accounts */
    char *kubeconfig_path, *ca_path;
};

/* `directory` exists and is locked (data_dir.h); `address` is the one the server listens on. */
int server_credentials_load(struct server_credentials *c, const char *directory,
                            const char *address, bool tls, int64_t now_ns, err_t *e);
/* Call it once the port is known. A full disk is logged and is not an error: the server can still serve reads,
 * and an existing kubeconfig stays valid if the URL has not changed. */
int server_credentials_write_kubeconfig(const struct server_credentials *c, const char *url,
                                        err_t *e);
void server_credentials_done(struct server_credentials *c);

#endif
