/* TLS contexts and sessions: see tls.h.
 *
 * A `struct tls` keeps copies of the options it was made from and the OpenSSL context built from
 * them. A reload builds a second context and swaps it in; sessions that began with the old one keep
 * it (OpenSSL counts references). A reload that fails leaves the old context in place.
 *
 *      options -> pem (bytes or file) -> build_context() -> SSL_CTX -> tls_session_new() -> SSL
 *                   ^                                                        |
 *                   '--- files changed? at most every reload_ns -------------'
 *
 * Settings chosen by measurement: no session cache, no tickets, buffers released when empty. An
 * idle connection costs about 14 KB instead of 50.
 *
 * Invariant: `pem` holds what the current context was built from, or a newer set that was unusable;
 * file stamps are taken before the file is read, so that a change during the read is noticed later.
 *
 * Only functions that both OpenSSL 3.0 and 3.5 have are used. */
#include "tls_internal.h"

#include "../base/buf.h"
#include "../base/clock.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#define TLS_MAGIC 0x715c0de5u

enum { PEM_MAX_BYTES = 1024 * 1024, READ_AHEAD_BYTES = 64 * 1024 };

/* PEM text from memory, or from a file that may change. */
struct pem {
    struct buf bytes;        /* as given, or the last content of the file */
    char *path;              /* NULL: given as bytes */
    struct timespec changed; /* mtime, inode and size when the file was read */
    ino_t inode;
    off_t size;
};

struct tls {
    unsigned magic;
    unsigned references;
    unsigned generation; /* grows with every new context */
    bool server, http1_only, skip_verify;
    char *server_name; /* client: overrides the host; or NULL */
    struct pem ca, cert, key;
    int64_t reload_ns, next_look_ns; /* machine's mono clock */
    SSL_CTX *context;
};

static int set_openssl_error(err_t *e, const char *what)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return err_set(e, EINVAL, "%s: %s", what, reason ? reason : "not usable");
}

/* --- PEM --- */

/* Appends the content of a file of at most PEM_MAX_BYTES. */
static int file_read(const char *path, struct buf *out, err_t *e)
{
    auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return err_set(e, errno, "%s: %s", path, strerror(errno));
    for (;;) {
        char *room = buf_reserve(out, 4096);
        ssize_t n = read(fd, room, 4096);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(e, errno, "%s: %s", path, strerror(errno));
        if (n == 0)
            return 0;
        out->n += (size_t)n;
        if (out->n > PEM_MAX_BYTES)
            return err_set(e, EFBIG, "%s is larger than %d bytes", path, PEM_MAX_BYTES);
    }
}

/* Reads the file, if there is one, and replaces the old bytes only on success. */
static int pem_load(struct pem *pem, err_t *e)
{
    if (!pem->path)
        return 0;
    struct stat st;
    if (stat(pem->path, &st) < 0)
        return err_set(e, errno, "%s: %s", pem->path, strerror(errno));
    auto_buf struct buf bytes = { 0 };
    int r = file_read(pem->path, &bytes, e);
    if (r < 0)
        return r;
    pem->changed = st.st_mtim;
    pem->inode = st.st_ino;
    pem->size = st.st_size;
    struct buf old = pem->bytes;
    pem->bytes = bytes;
    bytes = old;
    return 0;
}

static int pem_init(struct pem *pem, str bytes, const char *path, err_t *e)
{
    if (bytes.n > PEM_MAX_BYTES)
        return err_set(e, EFBIG, "PEM text is larger than %d bytes", PEM_MAX_BYTES);
    if (bytes.n)
        buf_put(&pem->bytes, bytes);
    else if (path && *path)
        pem->path = mem_dup(path, strlen(path));
    return pem_load(pem, e);
}

static void pem_done(struct pem *pem)
{
    if (pem->bytes.p)
        OPENSSL_cleanse(pem->bytes.p, pem->bytes.n);
    buf_done(&pem->bytes);
    free(pem->path);
}

static bool pem_changed(const struct pem *pem)
{
    struct stat st;
    if (!pem->path || stat(pem->path, &st) < 0)
        return false;
    return st.st_ino != pem->inode || st.st_size != pem->size ||
           st.st_mtim.tv_sec != pem->changed.tv_sec || st.st_mtim.tv_nsec != pem->changed.tv_nsec;
}

static const char *pem_name(const struct pem *pem, const char *what)
{
    return pem->path ? pem->path : what;
}

static BIO *pem_bio(const struct pem *pem)
{
    return BIO_new_mem_buf(buf_str(&pem->bytes).p, (int)pem->bytes.n);
}

/* Otherwise OpenSSL would prompt on the terminal for the password of an encrypted key. */
static int no_password(char *text UNUSED, int size UNUSED, int writing UNUSED, void *data UNUSED)
{
    return -1;
}

/* --- contexts --- */

/* Trusts every certificate in the CA text; a server also names them to clients. */
static int use_authorities(struct tls *tls, SSL_CTX *context, err_t *e)
{
    X509_STORE *store = SSL_CTX_get_cert_store(context);
    BIO *bio = pem_bio(&tls->ca);
    X509 *cert;
    int found = 0;
    while ((cert = PEM_read_bio_X509(bio, NULL, no_password, NULL))) {
        X509_STORE_add_cert(store, cert);
        if (tls->server)
            SSL_CTX_add_client_CA(context, cert);
        X509_free(cert);
        found++;
    }
    BIO_free(bio);
    if (!found)
        return set_openssl_error(e, pem_name(&tls->ca, "CA certificate"));
    ERR_clear_error(); /* OpenSSL reports the end of the text as an error */
    /* Trust what the user configured, even if it is not a root certificate. */
    X509_STORE_set_flags(store, X509_V_FLAG_PARTIAL_CHAIN);
    return 0;
}

/* The first certificate is the leaf, the others its chain. */
static int use_chain(const struct pem *pem, SSL_CTX *context, err_t *e)
{
    BIO *bio = pem_bio(pem);
    X509 *cert = PEM_read_bio_X509_AUX(bio, NULL, no_password, NULL);
    bool ok = cert && SSL_CTX_use_certificate(context, cert) == 1;
    X509_free(cert);
    while (ok && (cert = PEM_read_bio_X509(bio, NULL, no_password, NULL)))
        ok = SSL_CTX_add0_chain_cert(context, cert) == 1;
    BIO_free(bio);
    if (!ok)
        return set_openssl_error(e, pem_name(pem, "certificate"));
    ERR_clear_error();
    return 0;
}

static int use_key(const struct pem *pem, SSL_CTX *context, err_t *e)
{
    BIO *bio = pem_bio(pem);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL);
    BIO_free(bio);
    if (!key)
        return set_openssl_error(e, pem_name(pem, "private key"));
    bool ok = SSL_CTX_use_PrivateKey(context, key) == 1 && SSL_CTX_check_private_key(context) == 1;
    EVP_PKEY_free(key);
    return ok ? 0 : set_openssl_error(e, pem_name(pem, "private key"));
}

/* An unverifiable client certificate does not end the handshake: tls_session_peer() reports it as
 * rejected, and the client may still authenticate with a token. */
static int accept_any_cert(int ok UNUSED, X509_STORE_CTX *store UNUSED)
{
    return 1;
}

static const unsigned char both_protocols[] = "\x02h2\x08http/1.1";

/* ALPN on the server: HTTP/2 before HTTP/1.1, unless http1_only. */
static int select_protocol(SSL *session UNUSED, const unsigned char **ret, unsigned char *ret_n,
                           const unsigned char *offered, unsigned offered_n, void *data)
{
    const struct tls *tls = data;
    const unsigned char *ours = both_protocols + (tls->http1_only ? 3 : 0);
    unsigned ours_n = (unsigned)sizeof(both_protocols) - 1 - (tls->http1_only ? 3 : 0);
    unsigned char *chosen;
    if (SSL_select_next_proto(&chosen, ret_n, ours, ours_n, offered, offered_n) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_NOACK;
    *ret = chosen;
    return SSL_TLSEXT_ERR_OK;
}

/* What clients and servers share: versions, ciphers, memory, ALPN. */
static int set_common_options(struct tls *tls, SSL_CTX *context, err_t *e)
{
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_options(context,
                        SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                                  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    /* AES-128 first, as Go's servers choose: no weaker in practice and a fifth cheaper. */
    SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                                      "TLS_CHACHA20_POLY1305_SHA256");
    /* TLS 1.2: only forward secrecy and authenticated encryption; no CBC. */
    if (SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20:!aNULL:!eNULL:!PSK") != 1)
        return set_openssl_error(e, "TLS ciphers");
    if (tls->server) {
        SSL_CTX_set_read_ahead(context, 1);
        SSL_CTX_set_num_tickets(context, 0);
        SSL_CTX_set_alpn_select_cb(context, select_protocol, tls);
    } else {
        unsigned skip = tls->http1_only ? 3 : 0;
        SSL_CTX_set_alpn_protos(context, both_protocols + skip,
                                (unsigned)sizeof(both_protocols) - 1 - skip);
    }
    return 0;
}

static void set_verification(struct tls *tls, SSL_CTX *context)
{
    if (tls->server && tls->ca.bytes.n)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, accept_any_cert);
    else if (!tls->server && !tls->skip_verify)
        SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    if (!tls->server && !tls->skip_verify && !tls->ca.bytes.n)
        SSL_CTX_set_default_verify_paths(context);
}

/* Builds a context from the current PEM texts and replaces the old one. On failure nothing changes.
 */
static int build_context(struct tls *tls, err_t *e)
{
    SSL_CTX *context = SSL_CTX_new(tls->server ? TLS_server_method() : TLS_client_method());
    if (!context)
        return set_openssl_error(e, "TLS");
    int r = set_common_options(tls, context, e);
    set_verification(tls, context);
    if (r == 0 && tls->ca.bytes.n)
        r = use_authorities(tls, context, e);
    if (r == 0 && (tls->server || tls->cert.bytes.n)) {
        r = use_chain(&tls->cert, context, e);
        if (r == 0)
            r = use_key(&tls->key, context, e);
    }
    if (r < 0) {
        SSL_CTX_free(context);
        return r;
    }
    SSL_CTX_free(tls->context);
    tls->context = context;
    tls->generation++;
    return 0;
}

/* The common part of the client's and the server's options. */
struct pem_sources {
    str ca_pem, cert_pem, key_pem;
    const char *ca_file, *cert_file, *key_file;
    int64_t reload_ns;
};

/* Loads the PEM texts and builds the first context. Owns `tls`; frees it on failure. */
static int tls_init(struct tls *tls, const struct pem_sources *sources, struct tls **ret, err_t *e)
{
    tls->magic = TLS_MAGIC;
    tls->references = 1;
    tls->reload_ns = sources->reload_ns ? sources->reload_ns : 10 * NS_PER_S;
    tls->next_look_ns = clock_mono_ns() + tls->reload_ns;
    int r = pem_init(&tls->ca, sources->ca_pem, sources->ca_file, e);
    if (r == 0)
        r = pem_init(&tls->cert, sources->cert_pem, sources->cert_file, e);
    if (r == 0)
        r = pem_init(&tls->key, sources->key_pem, sources->key_file, e);
    if (r == 0)
        r = build_context(tls, e);
    if (r < 0)
        tls_unref(tls);
    else
        *ret = tls;
    return r;
}

int tls_client_new(const struct tls_client_options *o, struct tls **ret_tls, err_t *e)
{
    struct tls *tls = mem_zero(1, sizeof(*tls));
    tls->http1_only = o->http1_only;
    tls->skip_verify = o->skip_verify;
    if (o->server_name.n)
        tls->server_name = mem_dup(o->server_name.p, o->server_name.n);
    struct pem_sources sources = { o->ca_pem,    o->cert_pem, o->key_pem,  o->ca_file,
                                   o->cert_file, o->key_file, o->reload_ns };
    return tls_init(tls, &sources, ret_tls, e);
}

int tls_server_new(const struct tls_server_options *o, struct tls **ret_tls, err_t *e)
{
    struct tls *tls = mem_zero(1, sizeof(*tls));
    tls->server = true;
    tls->http1_only = o->http1_only;
    struct pem_sources sources = { o->client_ca_pem, o->cert_pem, o->key_pem,  o->client_ca_file,
                                   o->cert_file,     o->key_file, o->reload_ns };
    return tls_init(tls, &sources, ret_tls, e);
}

struct tls *tls_ref(struct tls *tls)
{
    CHECK(tls, TLS_MAGIC);
    tls->references++;
    return tls;
}

void tls_unref(struct tls *tls)
{
    if (!tls)
        return;
    CHECK(tls, TLS_MAGIC);
    if (--tls->references)
        return;
    SSL_CTX_free(tls->context);
    pem_done(&tls->ca);
    pem_done(&tls->cert);
    pem_done(&tls->key);
    free(tls->server_name);
    tls->magic = 0;
    free(tls);
}

/* A set that cannot be read or does not match changes nothing; it is tried again when a file
 * changes. */
static void reload_files(struct tls *tls)
{
    bool changed = pem_changed(&tls->ca) || pem_changed(&tls->cert) || pem_changed(&tls->key);
    if (!changed)
        return;
    if (pem_load(&tls->ca, NULL) < 0 || pem_load(&tls->cert, NULL) < 0 ||
        pem_load(&tls->key, NULL) < 0)
        return;
    build_context(tls, NULL);
}

unsigned tls_reload_if_changed(struct tls *tls)
{
    CHECK(tls, TLS_MAGIC);
    int64_t now = clock_mono_ns();
    if (now >= tls->next_look_ns) {
        tls->next_look_ns = now + tls->reload_ns;
        reload_files(tls);
    }
    return tls->generation;
}

/* --- sessions --- */

/* The name to verify, and SNI unless it is an IP address. */
static int set_server_name(struct tls *tls, SSL *session, str host, err_t *e)
{
    char name[256];
    str wanted = tls->server_name ? str_c(tls->server_name) : host;
    if (wanted.n >= sizeof(name))
        return err_set(e, EINVAL, "TLS server name " STR_FMT " is too long", STR_ARG(wanted));
    memcpy(name, wanted.p, wanted.n);
    name[wanted.n] = '\0';
    X509_VERIFY_PARAM *param = SSL_get0_param(session);
    if (X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1)
        return 0;
    ERR_clear_error();
    X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    if (SSL_set_tlsext_host_name(session, name) != 1 || SSL_set1_host(session, name) != 1)
        return set_openssl_error(e, name);
    return 0;
}

int tls_session_new(struct tls *tls, str host, SSL **ret_session, err_t *e)
{
    tls_reload_if_changed(tls);
    SSL *session = SSL_new(tls->context);
    if (!session)
        return set_openssl_error(e, "TLS");
    if (tls->server) {
        SSL_set_accept_state(session);
    } else {
        SSL_set_connect_state(session);
        int r = set_server_name(tls, session, host, e);
        if (r < 0) {
            SSL_free(session);
            return r;
        }
    }
    *ret_session = session;
    return 0;
}

/* Reads several TLS records per system call, which halves the calls of a busy watch. OpenSSL's own
 * read-ahead would do that too, but moves all buffered bytes to the front of its buffer for every
 * record. */
static int set_read_ahead(SSL *session)
{
    BIO *ahead = BIO_new(BIO_f_buffer()), *socket = SSL_get_rbio(session);
    if (!ahead || BIO_set_read_buffer_size(ahead, READ_AHEAD_BYTES) != 1 || !BIO_up_ref(socket)) {
        BIO_free(ahead);
        return -ENOMEM;
    }
    BIO_push(ahead, socket);
    SSL_set0_rbio(session, ahead);
    return 0;
}

int tls_session_attach(SSL *session, int fd)
{
    if (SSL_set_fd(session, fd) != 1)
        return -ENOMEM;
    return SSL_is_server(session) ? 0 : set_read_ahead(session);
}

bool tls_session_has_buffered(SSL *session)
{
    return SSL_has_pending(session) || BIO_ctrl_pending(SSL_get_rbio(session)) > 0;
}

/* Copies all entries with that NID to `*at` and returns how many; with `at` NULL, returns the bytes
 * needed. */
static size_t copy_entries(const X509_NAME *name, int nid, str *ret, char **at)
{
    size_t bytes = 0, n = 0;
    for (int i = -1; (i = X509_NAME_get_index_by_NID(name, nid, i)) >= 0;) {
        unsigned char *text;
        int length =
            ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, i)));
        if (length < 0)
            continue;
        bytes += (size_t)length;
        if (at) {
            memcpy(*at, text, (size_t)length);
            ret[n++] = (str){ *at, (size_t)length };
            *at += length;
        }
        OPENSSL_free(text);
    }
    return at ? n : bytes;
}

static void put_fingerprint(const X509 *cert, char *ret, size_t size)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    if (X509_digest(cert, EVP_sha256(), digest, &n) != 1)
        n = 0;
    for (unsigned i = 0; i < n && 2 * i + 2 < size; i++)
        snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

/* One block: the struct, the list of texts, the texts. */
struct tls_peer *tls_session_peer(SSL *session)
{
    X509 *cert = SSL_get0_peer_certificate(session);
    if (!cert)
        return NULL;
    if (SSL_get_verify_result(session) != X509_V_OK) {
        struct tls_peer *unverified = mem_zero(1, sizeof(*unverified));
        unverified->rejected = true;
        return unverified;
    }
    const X509_NAME *name = X509_get_subject_name(cert);
    size_t entries = (size_t)X509_NAME_entry_count(name);
    size_t bytes = copy_entries(name, NID_commonName, NULL, NULL) +
                   copy_entries(name, NID_organizationName, NULL, NULL);
    struct tls_peer *peer = mem_zero(1, sizeof(*peer) + entries * sizeof(str) + bytes + 1);
    str *list = (str *)(peer + 1);
    char *text = (char *)(list + entries);
    size_t users = copy_entries(name, NID_commonName, list, &text);
    if (users)
        peer->user = list[users - 1];
    peer->groups = list + users;
    peer->group_count = copy_entries(name, NID_organizationName, list + users, &text);
    put_fingerprint(cert, peer->fingerprint, sizeof(peer->fingerprint));
    return peer;
}

int tls_session_set_error(SSL *session, const char *what, err_t *e)
{
    long verdict = SSL_get_verify_result(session);
    if (!SSL_is_server(session) && verdict != X509_V_OK &&
        SSL_get_verify_mode(session) != SSL_VERIFY_NONE) {
        ERR_clear_error();
        return err_set(e, EPROTO, "%s: TLS certificate is not accepted: %s", what,
                       X509_verify_cert_error_string(verdict));
    }
    unsigned long code = ERR_peek_error();
    const char *reason = code ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return err_set(e, EPROTO, "%s: TLS error: %s", what,
                   reason ? reason : "connection closed by peer");
}

void tls_random(void *bytes, size_t n)
{
    assert(n <= INT32_MAX);
    if (RAND_bytes(bytes, (int)n) != 1)
        abort(); /* predictable tokens would be worse */
}

void tls_mac(str key, str text, unsigned char ret[TLS_MAC_BYTES])
{
    assert(key.n <= INT32_MAX);
    if (!HMAC(EVP_sha256(), key.p, (int)key.n, (const unsigned char *)text.p, text.n, ret, NULL))
        abort(); /* unsigned tokens would be worse */
}

bool tls_secrets_equal(str a, str b)
{
    return a.n == b.n && (a.n == 0 || CRYPTO_memcmp(a.p, b.p, a.n) == 0);
}
