/* Opens the server of a door. */
#ifndef FLYBALL_LISTEN_H
#define FLYBALL_LISTEN_H

#include "../net/http_server.h"

struct listen_options {
    const char *flag;     /* for errors */
    const char *listen;   /* ADDRESS:PORT or :PORT */
    const char *cert_dir; /* tls.crt and tls.key; NULL: none */
    const char *client_ca_file;
    str client_ca_pem;
    bool self_signed; /* make a certificate if there is no cert_dir; otherwise without TLS */
};

/* `server` has everything but address and TLS. */
int listen_open(struct loop *loop, const struct listen_options *options,
                struct http_server_options *server, struct http_server **ret, err_t *e);

#endif
