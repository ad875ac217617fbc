/* TLS: what both sides need to know before a connection is made.
 *
 * A context is made once and shared by reference; every connection takes a reference. Certificates
 * and keys come as PEM bytes or as files. Files are looked at again at most every `reload_ns`, when
 * a connection or call is started: when one changed, a new set is read and used from then on; when
 * the new set is unusable (half-written, key does not fit), the old one stays and is tried again.
 * PEM bytes win over a file of the same kind. */
#ifndef FLYBALL_TLS_H
#define FLYBALL_TLS_H

#include "../base/str.h"

struct tls;

struct tls_client_options {
    str ca_pem;            /* who may have signed the server's certificate; */
    const char *ca_file;   /* neither: the system's authorities */
    str cert_pem, key_pem; /* client certificate with its chain; none: none is sent */
    const char *cert_file, *key_file;
    str server_name;   /* for SNI and verification in place of the host of the URL */
    bool skip_verify;  /* any certificate is taken */
    bool http1_only;   /* do not offer HTTP/2 */
    int64_t reload_ns; /* 0: 10 s */
};

struct tls_server_options {
    str cert_pem, key_pem;
    const char *cert_file, *key_file;
    str client_ca_pem;          /* clients may show a certificate; one that is not signed by */
    const char *client_ca_file; /* these counts as none. Neither: clients are not asked */
    bool http1_only;            /* do not offer HTTP/2 */
    int64_t reload_ns;          /* 0: 10 s */
};

int tls_client_new(const struct tls_client_options *options, struct tls **ret_tls, err_t *e);
int tls_server_new(const struct tls_server_options *options, struct tls **ret_tls, err_t *e);
struct tls *tls_ref(struct tls *tls);
void tls_unref(struct tls *tls);

/* Who the client certificate says it is: the common name is the user, each organisation a group (the
 * Kubernetes convention). A certificate that could not be verified is `rejected` and names nobody. */
struct tls_peer {
    str user;
    const str *groups;
    size_t group_count;
    bool rejected;
    char fingerprint[65]; /* SHA-256 of the certificate, lower-case hexadecimal */
};

/* Random bytes fit for keys and tokens; ends the program when the system has none to give. */
void tls_random(void *bytes, size_t n);
/* Compares secrets in a time that tells nothing but their lengths. */
bool tls_secrets_equal(str a, str b);
/* HMAC-SHA256. */
enum { TLS_MAC_BYTES = 32 };
void tls_mac(str key, str text, unsigned char ret[TLS_MAC_BYTES]);

#endif
