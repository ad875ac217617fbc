/* Creates and loads the credentials in the data directory; see credentials.h.
 *
 * Files are written under a temporary name and renamed, so a reader never sees half a file, and have mode 0600
 * regardless of the umask. Secrets are synced to disk before they are used: a token that a client has seen must
 * still be valid after a power failure. The kubeconfig is not synced, because it can be written again.
 *
 * The certificate authority is valid for ten years and is kept; the server's own certificate is created at each
 * start and never stored. */
#include "credentials.h"

#include "../../base/base64.h"
#include "../../base/file.h"
#include "../../base/log.h"
#include "../../net/tls.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MAX = 1 << 20, CA_DAYS = 3650, SERVER_DAYS = 365, TOKEN_BYTES = 24, TOKEN_MIN = 8 };

static char *join_path(const char *directory, const char *name)
{
    auto_buf struct buf path = { 0 };
    buf_printf(&path, "%s/%s", directory, name);
    return buf_take(&path);
}

static bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Reads a file that exists. Reading a pipe would wait for ever. */
static int read_file(const char *path, struct buf *ret, err_t *e)
{
    struct stat st;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        return err_set(e, EINVAL,
                       "cannot read %s: not a regular file; remove it to create a new one", path);
    return file_read(path, FILE_MAX, ret, e);
}

/* Reads a token, or creates a random one if the file does not exist. A file without a usable token is an error:
 * silently replacing it would lock out clients, and a short key could be guessed. */
static int load_token(const char *directory, const char *name, char **ret, err_t *e)
{
    auto_free char *path = join_path(directory, name);
    auto_buf struct buf text = { 0 };
    if (file_exists(path)) {
        int result = read_file(path, &text, e);
        if (result < 0)
            return result;
        str token = str_trim(buf_str(&text));
        if (!token.n)
            return err_set(e, EINVAL, "token file %s is empty; remove it to create a new token",
                           path);
        if (token.n < TOKEN_MIN || strcspn(token.p, " \t\r\n") < token.n)
            return err_set(
                e, EINVAL,
                "token file %s must contain one word of at least %d characters; remove it "
                "to create a new token",
                path, TOKEN_MIN);
        *ret = mem_dup(token.p, token.n);
        return 0;
    }
    unsigned char random[TOKEN_BYTES];
    tls_random(random, sizeof(random));
    for (size_t i = 0; i < sizeof(random); i++)
        buf_printf(&text, "%02x", random[i]);
    int result = file_write_private(path, buf_str(&text), true, e);
    if (result == 0)
        *ret = buf_take(&text);
    return result;
}

static int load_pair(const char *cert_path, const char *key_path, struct cert_pair *ret, err_t *e)
{
    int result = read_file(cert_path, &ret->cert, e);
    return result < 0 ? result : read_file(key_path, &ret->key, e);
}

/* Loads the certificate authority, or creates one if the certificate or its key is missing. */
static int load_ca(struct server_credentials *c, const char *directory, int64_t now_ns, err_t *e)
{
    auto_free char *key = join_path(directory, "ca.key");
    if (file_exists(c->ca_path) && file_exists(key))
        return load_pair(c->ca_path, key, &c->ca, e);
    struct cert_request request = {
        .use = CERT_CA, .common_name = S("flyball-ca"), .now_ns = now_ns, .days = CA_DAYS
    };
    cert_pair_done(&c->ca);
    int result = cert_make(&request, &c->ca, e);
    if (result == 0)
        result = file_write_private(key, buf_str(&c->ca.key), true, e);
    return result < 0 ? result : file_write_private(c->ca_path, buf_str(&c->ca.cert), true, e);
}

/* A certificate is cheap to create, so a new one for each start avoids checks of its expiry and of changed
 * host names. */
static int make_server_cert(struct server_credentials *c, const char *address, int64_t now_ns,
                            err_t *e)
{
    char host[256] = "";
    (void)gethostname(host, sizeof(host) - 1);
    const str names[] = { S("localhost"),
                          S("127.0.0.1"),
                          S("::1"),
                          S("kubernetes"),
                          S("kubernetes.default"),
                          S("kubernetes.default.svc"),
                          str_c(address),
                          host[0] ? str_c(host) : S("localhost") };
    struct cert_request request = { .use = CERT_SERVER,
                                    .common_name = S("flyball-apiserver"),
                                    .names = names,
                                    .name_count = countof(names),
                                    .now_ns = now_ns,
                                    .days = SERVER_DAYS,
                                    .issuer = &c->ca };
    return cert_make(&request, &c->server, e);
}

int server_credentials_load(struct server_credentials *c, const char *directory,
                            const char *address, bool tls, int64_t now_ns, err_t *e)
{
    *c = (struct server_credentials){ 0 };
    c->kubeconfig_path = join_path(directory, "kubeconfig");
    c->ca_path = join_path(directory, "ca.crt");
    int result = load_token(directory, "admin.token", &c->admin_token, e);
    if (result == 0)
        result = load_token(directory, "reader.token", &c->reader_token, e);
    if (result == 0)
        result = load_token(directory, "accounts.key", &c->account_key, e);
    if (result == 0 && tls)
        result = load_ca(c, directory, now_ns, e);
    if (result == 0 && tls)
        result = make_server_cert(c, address, now_ns, e);
    return result;
}

/* An unchanged file is not written, so that a full disk does not matter in the common case. */
int server_credentials_write_kubeconfig(const struct server_credentials *c, const char *url,
                                        err_t *e)
{
    auto_buf struct buf text = { 0 }, ca = { 0 };
    base64_encode(&ca, buf_str(&c->ca.cert));
    buf_put(&text, S("apiVersion: v1\nkind: Config\nclusters:\n- name: flyball\n  cluster:\n"));
    buf_printf(&text, "    server: %s\n", url);
    if (ca.n)
        buf_printf(&text, "    certificate-authority-data: %s\n", ca.p);
    buf_printf(&text,
               "users:\n- name: admin\n  user:\n    token: %s\n"
               "contexts:\n- name: flyball\n  context:\n    cluster: flyball\n    user: admin\n"
               "    namespace: default\ncurrent-context: flyball\n",
               c->admin_token);
    auto_buf struct buf there = { 0 };
    if (read_file(c->kubeconfig_path, &there, NULL) == 0 && str_eq(buf_str(&there), buf_str(&text)))
        return 0;
    int result = file_write_private(c->kubeconfig_path, buf_str(&text), false, e);
    if (result != -ENOSPC)
        return result;
    log_error("kubeconfig not updated: disk is full", KV_C("file", c->kubeconfig_path),
              KV_C("server", url));
    return 0;
}

void server_credentials_done(struct server_credentials *c)
{
    cert_pair_done(&c->ca);
    cert_pair_done(&c->server);
    free(c->admin_token);
    free(c->reader_token);
    free(c->account_key);
    free(c->kubeconfig_path);
    free(c->ca_path);
    *c = (struct server_credentials){ 0 };
}
