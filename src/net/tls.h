/* TLS contexts for clients and servers, and client identities.
 *
 * A context is created once and shared; every connection takes a reference. Certificates and keys
 * come as PEM bytes or as files. Files are checked at most every `reload_ns`, when a connection or
 * call begins: if one changed, the new set is read and used from then on; if the new set is
 * unusable (half-written, key does not match), the old one stays in use until a file changes again.
 * PEM bytes take precedence over a file of the same kind. */
#ifndef FLYBALL_TLS_H
#define FLYBALL_TLS_H

#include "../base/str.h"

struct tls;

struct tls_client_options {
    str ca_pem;            /* CAs that may sign the server's certificate; */
    const char *ca_file;   /* neither: the system's CAs */
    str cert_pem, key_pem; /* client certificate and chain; empty: none is sent */
    const char *cert_file, *key_file;
    str server_name;   /* for SNI and verification, instead of the URL's host */
    bool skip_verify;  /* accept any certificate */
    bool http1_only;   /* do not offer HTTP/2 */
    int64_t reload_ns; /* 0: 10 s */
};

struct tls_server_options {
    str cert_pem, key_pem;
    const char *cert_file, *key_file;
    str client_ca_pem;          /* clients may send a certificate; if it is not signed by */
    const char *client_ca_file; /* these, it is `rejected`. Neither: none is requested */
    bool http1_only;            /* do not offer HTTP/2 */
    int64_t reload_ns;          /* 0: 10 s */
};

int tls_client_new(const struct tls_client_options *options, struct tls **ret_tls, err_t *e);
int tls_server_new(const struct tls_server_options *options, struct tls **ret_tls, err_t *e);
struct tls *tls_ref(struct tls *tls);
void tls_unref(struct tls *tls);

/* The identity in a client certificate: the common name is the user, each organization a group (the
 * Kubernetes convention). A certificate that could not be verified is `rejected` and names no user.
 */
struct tls_peer {
    str user;
    const str *groups;
    size_t group_count;
    bool rejected;
    char fingerprint[65]; /* SHA-256 of the certificate, lower-case hexadecimal */
};

/* Random bytes for keys and tokens; aborts if the system cannot supply them. */
void tls_random(void *bytes, size_t n);
/* Compares secrets in a time that depends only on their lengths. */
bool tls_secrets_equal(str a, str b);
/* HMAC-SHA256. */
enum { TLS_MAC_BYTES = 32 };
void tls_mac(str key, str text, unsigned char ret[TLS_MAC_BYTES]);

#endif
