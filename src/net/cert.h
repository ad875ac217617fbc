/* Creates certificates for the embedded server and for tests: EC P-256 keys, SHA-256, PEM. */
#ifndef FLYBALL_CERT_H
#define FLYBALL_CERT_H

#include "../base/buf.h"

/* A certificate and its private key, both PEM. `{0}` is empty. */
struct cert_pair {
    struct buf cert, key;
};

void cert_pair_done(struct cert_pair *pair); /* wipes the key */
#define auto_cert_pair __attribute__((cleanup(cert_pair_done)))

enum cert_use { CERT_CA, CERT_SERVER, CERT_CLIENT };

struct cert_request {
    enum cert_use use;
    str common_name;          /* a client's user name */
    const str *organizations; /* a client's groups */
    size_t organization_count;
    const str *names; /* server: DNS names and IP addresses */
    size_t name_count;
    int64_t now_ns;                 /* wall clock; the certificate is valid from one hour before */
    int days;                       /* of validity */
    const struct cert_pair *issuer; /* NULL: self-signed */
};

int cert_make(const struct cert_request *request, struct cert_pair *ret_pair, err_t *e);

/* Checks a certificate request in PEM and its signature; ret (may be NULL) gets its subject, for cert_subject_done(). */
struct cert_subject {
    char *common_name; /* "" if there is none */
    char **organizations;
    size_t n_organizations;
};
int cert_check_request(str pem, struct cert_subject *ret, err_t *e);
void cert_subject_done(struct cert_subject *s);

/* Signs a certificate request. `usages` are those of a CertificateSigningRequest ("client auth"); names of hosts are taken
 * from the request only for servers. */
struct cert_signing {
    str request; /* PEM */
    const str *usages;
    size_t n_usages;
    int64_t now_ns, seconds; /* wall clock; validity */
    const struct cert_pair *issuer;
};
int cert_sign(const struct cert_signing *signing, struct buf *ret_pem, err_t *e);

/* The validity of the first certificate in a PEM text. */
struct cert_info {
    int64_t not_before_ns, not_after_ns;
};

int cert_read(str pem, struct cert_info *ret, err_t *e);
/* Whether a stored certificate can still be used: valid at `now`, matching its key, signed by `ca`.
 */
bool cert_is_usable(const struct cert_pair *pair, str ca_pem, int64_t now_ns);

#endif
