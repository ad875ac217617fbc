/* Creates, reads and checks certificates, on OpenSSL: see cert.h.
 *
 * Serial numbers are random (127 bits). A certificate is valid from one hour before `now_ns`, so
 * that clocks may differ a little. OpenSSL objects are freed by the function that created them; its
 * error queue is empty when a function here returns, because a stale entry would be reported for a
 * later failure. */
#include "cert.h"

#include "../base/clock.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

void cert_pair_done(struct cert_pair *pair)
{
    if (pair->key.p)
        OPENSSL_cleanse(pair->key.p, pair->key.n);
    buf_done(&pair->cert);
    buf_done(&pair->key);
}

static int set_openssl_error(err_t *e, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return err_set(e, EINVAL, "%s: %s", what, reason ? reason : "not usable");
}

/* Otherwise OpenSSL would prompt on the terminal. */
static int no_password(char *text UNUSED, int size UNUSED, int writing UNUSED, void *data UNUSED)
{
    return -1;
}

static X509 *read_cert(str pem)
{
    BIO *bio = BIO_new_mem_buf(pem.p, (int)MIN(pem.n, (size_t)INT32_MAX));
    X509 *cert = bio ? PEM_read_bio_X509(bio, NULL, no_password, NULL) : NULL;
    BIO_free(bio);
    ERR_clear_error();
    return cert;
}

static EVP_PKEY *read_key(str pem)
{
    BIO *bio = BIO_new_mem_buf(pem.p, (int)MIN(pem.n, (size_t)INT32_MAX));
    EVP_PKEY *key = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
    BIO_free(bio);
    ERR_clear_error();
    return key;
}

static void take_bio_text(BIO *bio, struct buf *out)
{
    char *text;
    long n = BIO_get_mem_data(bio, &text);
    buf_put(out, (str){ text, (size_t)n });
    BIO_free(bio);
}

static bool set_subject(X509 *cert, const struct cert_request *r)
{
    X509_NAME *name = X509_get_subject_name(cert);
    bool ok = true;
    for (size_t i = 0; i < r->organization_count; i++)
        ok = ok && X509_NAME_add_entry_by_NID(name, NID_organizationName, MBSTRING_UTF8,
                                              (const unsigned char *)r->organizations[i].p,
                                              (int)r->organizations[i].n, -1, 0) == 1;
    return ok && X509_NAME_add_entry_by_NID(name, NID_commonName, MBSTRING_UTF8,
                                            (const unsigned char *)r->common_name.p,
                                            (int)r->common_name.n, -1, 0) == 1;
}

/* An IP address or a DNS name as a subject alternative name; NULL if it is empty or too long. */
static GENERAL_NAME *general_name(str text)
{
    unsigned char address[16];
    char copy[256];
    if (text.n == 0 || text.n >= sizeof(copy))
        return NULL;
    memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    int n = inet_pton(AF_INET, copy, address) == 1    ? 4
            : inet_pton(AF_INET6, copy, address) == 1 ? 16
                                                      : 0;
    GENERAL_NAME *name = GENERAL_NAME_new();
    ASN1_STRING *value = n ? ASN1_OCTET_STRING_new() : ASN1_IA5STRING_new();
    ASN1_STRING_set(value, n ? (const void *)address : copy, n ? n : (int)text.n);
    GENERAL_NAME_set0_value(name, n ? GEN_IPADD : GEN_DNS, value);
    return name;
}

static bool add_names(X509 *cert, const struct cert_request *r)
{
    if (!r->name_count)
        return true;
    GENERAL_NAMES *names = GENERAL_NAMES_new();
    bool ok = true;
    for (size_t i = 0; ok && i < r->name_count; i++) {
        GENERAL_NAME *name = general_name(r->names[i]);
        ok = name && sk_GENERAL_NAME_push(names, name) > 0;
        if (!ok)
            GENERAL_NAME_free(name);
    }
    ok = ok && X509_add1_ext_i2d(cert, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) == 1;
    GENERAL_NAMES_free(names);
    return ok;
}

static bool add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    bool ok = extension && X509_add_ext(cert, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return ok;
}

/* What clients require of a CA, server or client certificate. */
static bool add_extensions(X509 *cert, X509 *issuer, const struct cert_request *r)
{
    static const char *const usage[] = {
        [CERT_CA] = "critical,digitalSignature,keyCertSign,cRLSign",
        [CERT_SERVER] = "critical,digitalSignature",
        [CERT_CLIENT] = "critical,digitalSignature",
    };
    bool ok = add_extension(cert, issuer, NID_basic_constraints,
                            r->use == CERT_CA ? "critical,CA:TRUE" : "critical,CA:FALSE") &&
              add_extension(cert, issuer, NID_key_usage, usage[r->use]) &&
              add_extension(cert, issuer, NID_subject_key_identifier, "hash") &&
              add_extension(cert, issuer, NID_authority_key_identifier, "keyid:always");
    if (r->use != CERT_CA)
        ok = ok && add_extension(cert, issuer, NID_ext_key_usage,
                                 r->use == CERT_SERVER ? "serverAuth" : "clientAuth");
    return ok && add_names(cert, r);
}

/* Serial number, version and validity. */
static bool set_numbers(X509 *cert, const struct cert_request *r)
{
    unsigned char bytes[16];
    if (RAND_bytes(bytes, sizeof(bytes)) != 1)
        return false;
    bytes[0] &= 0x7f; /* positive, as X.509 requires */
    BIGNUM *serial = BN_bin2bn(bytes, sizeof(bytes), NULL);
    bool ok = serial && BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(cert));
    BN_free(serial);
    time_t now = (time_t)(r->now_ns / NS_PER_S);
    return ok && X509_set_version(cert, X509_VERSION_3) == 1 &&
           ASN1_TIME_set(X509_getm_notBefore(cert), now - 3600) &&
           ASN1_TIME_adj(X509_getm_notAfter(cert), now, r->days, 0);
}

/* Writes both as PEM to `ret`, which is emptied first. */
static int sign_and_write(X509 *cert, EVP_PKEY *key, EVP_PKEY *issuer_key, struct cert_pair *ret,
                          err_t *e)
{
    if (!X509_sign(cert, issuer_key, EVP_sha256()))
        return set_openssl_error(e, "cannot sign the certificate");
    BIO *cert_bio = BIO_new(BIO_s_mem()), *key_bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(cert_bio, cert);
    PEM_write_bio_PKCS8PrivateKey(key_bio, key, NULL, NULL, 0, NULL, NULL);
    cert_pair_done(ret);
    take_bio_text(cert_bio, &ret->cert);
    take_bio_text(key_bio, &ret->key);
    return 0;
}

int cert_make(const struct cert_request *r, struct cert_pair *ret_pair, err_t *e)
{
    X509 *issuer = r->issuer ? read_cert(buf_str(&r->issuer->cert)) : NULL;
    EVP_PKEY *issuer_key = r->issuer ? read_key(buf_str(&r->issuer->key)) : NULL;
    X509 *cert = X509_new();
    EVP_PKEY *key = EVP_EC_gen("P-256");
    int result = 0;
    if (r->issuer && (!issuer || !issuer_key))
        result = err_set(e, EINVAL, "cannot read the issuer's certificate or key: not valid PEM");
    else if (!cert || !key || !set_numbers(cert, r) || X509_set_pubkey(cert, key) != 1 ||
             !set_subject(cert, r) ||
             X509_set_issuer_name(cert, X509_get_subject_name(issuer ? issuer : cert)) != 1 ||
             !add_extensions(cert, issuer ? issuer : cert, r))
        result = set_openssl_error(e, "cannot create a certificate");
    else
        result = sign_and_write(cert, key, issuer_key ? issuer_key : key, ret_pair, e);
    X509_free(cert);
    X509_free(issuer);
    EVP_PKEY_free(key);
    EVP_PKEY_free(issuer_key);
    return result;
}

static int64_t asn1_time_ns(const ASN1_TIME *t)
{
    struct tm tm;
    if (ASN1_TIME_to_tm(t, &tm) != 1)
        return 0;
    int64_t seconds = timegm(&tm); /* the year 9999 ("no expiry") does not fit in nanoseconds */
    return MAX(MIN(seconds, INT64_MAX / NS_PER_S), INT64_MIN / NS_PER_S) * NS_PER_S;
}

int cert_read(str pem, struct cert_info *ret, err_t *e)
{
    X509 *cert = read_cert(pem);
    if (!cert)
        return err_set(e, EINVAL, "cannot read the certificate: not valid PEM");
    *ret = (struct cert_info){ .not_before_ns = asn1_time_ns(X509_get0_notBefore(cert)),
                               .not_after_ns = asn1_time_ns(X509_get0_notAfter(cert)) };
    X509_free(cert);
    return 0;
}

bool cert_is_usable(const struct cert_pair *pair, str ca_pem, int64_t now_ns)
{
    X509 *cert = read_cert(buf_str(&pair->cert)), *ca = read_cert(ca_pem);
    EVP_PKEY *key = read_key(buf_str(&pair->key));
    bool ok = cert && ca && key && X509_check_private_key(cert, key) == 1 &&
              X509_verify(cert, X509_get0_pubkey(ca)) == 1 &&
              asn1_time_ns(X509_get0_notBefore(cert)) <= now_ns &&
              now_ns < asn1_time_ns(X509_get0_notAfter(cert));
    X509_free(cert);
    X509_free(ca);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return ok;
}

/* ---- certificate requests */

/* Only a block "CERTIFICATE REQUEST" counts, as in Go. */
static X509_REQ *read_request(str pem, err_t *e)
{
    BIO *bio = BIO_new_mem_buf(pem.p, (int)MIN(pem.n, (size_t)INT32_MAX));
    char *name = NULL, *header = NULL;
    unsigned char *data = NULL;
    long n = 0;
    X509_REQ *request = NULL;
    if (!bio || PEM_read_bio(bio, &name, &header, &data, &n) != 1 ||
        strcmp(name, PEM_STRING_X509_REQ) != 0) {
        err_set(e, EINVAL, "PEM block type must be CERTIFICATE REQUEST");
    } else {
        const unsigned char *at = data;
        request = d2i_X509_REQ(NULL, &at, n);
        if (!request)
            set_openssl_error(e, "cannot parse the certificate request");
    }
    BIO_free(bio);
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_free(data);
    ERR_clear_error();
    return request;
}

static char *copy_entry(const X509_NAME *name, int nid, int *at)
{
    unsigned char *text = NULL;
    *at = X509_NAME_get_index_by_NID(name, nid, *at);
    if (*at < 0)
        return NULL;
    int n = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, *at)));
    char *copy = n >= 0 ? mem_dup((char *)text, (size_t)n) : NULL;
    OPENSSL_free(text);
    return copy;
}

static void read_subject(const X509_NAME *name, struct cert_subject *ret)
{
    int at = -1;
    ret->common_name = copy_entry(name, NID_commonName, &at);
    if (!ret->common_name)
        ret->common_name = mem_dup("", 0);
    ret->organizations =
        mem_zero((size_t)X509_NAME_entry_count(name) + 1, sizeof(*ret->organizations));
    at = -1;
    for (char *text; (text = copy_entry(name, NID_organizationName, &at));)
        ret->organizations[ret->n_organizations++] = text;
}

void cert_subject_done(struct cert_subject *s)
{
    free(s->common_name);
    for (size_t i = 0; i < s->n_organizations; i++)
        free(s->organizations[i]);
    free(s->organizations);
    *s = (struct cert_subject){ 0 };
}

int cert_check_request(str pem, struct cert_subject *ret, err_t *e)
{
    X509_REQ *request = read_request(pem, e);
    int result = request ? 0 : -EINVAL;
    if (request && X509_REQ_verify(request, X509_REQ_get0_pubkey(request)) != 1)
        result = err_set(e, EINVAL, "signature of the certificate request is not valid");
    else if (request && ret)
        read_subject(X509_REQ_get_subject_name(request), ret);
    X509_REQ_free(request);
    ERR_clear_error();
    return result;
}

/* The names of usages in OpenSSL, as a list for key usages or for extended ones. */
static void list_usages(const struct cert_signing *s, bool extended, struct buf *out)
{
    static const struct {
        const char *usage, *name;
        bool extended;
    } names[] = {
        { "digital signature", "digitalSignature", false },
        { "signing", "digitalSignature", false },
        { "key encipherment", "keyEncipherment", false },
        { "key agreement", "keyAgreement", false },
        { "client auth", "clientAuth", true },
        { "server auth", "serverAuth", true },
    };
    for (size_t i = 0; i < s->n_usages; i++)
        for (size_t n = 0; n < countof(names); n++)
            if (names[n].extended == extended && str_eqc(s->usages[i], names[n].usage))
                buf_printf(out, "%s%s", out->n ? "," : "", names[n].name);
}

static bool copy_names(X509 *cert, X509_REQ *request)
{
    STACK_OF(X509_EXTENSION) *all = X509_REQ_get_extensions(request);
    int at = X509v3_get_ext_by_NID(all, NID_subject_alt_name, -1);
    bool ok = at < 0 || X509_add_ext(cert, X509v3_get_ext(all, at), -1) == 1;
    sk_X509_EXTENSION_pop_free(all, X509_EXTENSION_free);
    return ok;
}

/* Everything of the new certificate but its signature. */
static bool fill_from_request(X509 *cert, X509 *issuer, X509_REQ *request,
                              const struct cert_signing *s)
{
    auto_buf struct buf usage = { 0 }, extended = { 0 };
    struct cert_request numbers = { .now_ns = s->now_ns, .days = 1 };
    time_t now = (time_t)(s->now_ns / NS_PER_S);
    list_usages(s, false, &usage);
    list_usages(s, true, &extended);
    return set_numbers(cert, &numbers) && ASN1_TIME_adj(X509_getm_notBefore(cert), now, 0, -300) &&
           ASN1_TIME_adj(X509_getm_notAfter(cert), now, (int)(s->seconds / 86400),
                         (long)(s->seconds % 86400)) &&
           X509_set_pubkey(cert, X509_REQ_get0_pubkey(request)) == 1 &&
           X509_set_subject_name(cert, X509_REQ_get_subject_name(request)) == 1 &&
           X509_set_issuer_name(cert, X509_get_subject_name(issuer)) == 1 &&
           add_extension(cert, issuer, NID_basic_constraints, "critical,CA:FALSE") &&
           add_extension(cert, issuer, NID_authority_key_identifier, "keyid:always") &&
           (!usage.n || add_extension(cert, issuer, NID_key_usage, usage.p)) &&
           (!extended.n || add_extension(cert, issuer, NID_ext_key_usage, extended.p)) &&
           (!extended.n || !strstr(extended.p, "serverAuth") || copy_names(cert, request));
}

int cert_sign(const struct cert_signing *s, struct buf *ret_pem, err_t *e)
{
    X509_REQ *request = read_request(s->request, e);
    X509 *issuer = read_cert(buf_str(&s->issuer->cert)), *cert = X509_new();
    EVP_PKEY *key = read_key(buf_str(&s->issuer->key));
    int result = request ? 0 : -EINVAL;
    if (request && (!issuer || !key || !cert || !fill_from_request(cert, issuer, request, s) ||
                    !X509_sign(cert, key, EVP_sha256())))
        result = set_openssl_error(e, "cannot sign the certificate");
    if (result == 0) {
        BIO *bio = BIO_new(BIO_s_mem());
        PEM_write_bio_X509(bio, cert);
        take_bio_text(bio, ret_pem);
    }
    X509_REQ_free(request);
    X509_free(issuer);
    X509_free(cert);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return result;
}
