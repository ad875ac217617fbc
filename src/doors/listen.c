/* Opens the server of a door; see listen.h. Errors name the flag, since each door has its own. */
#include "listen.h"

#include "../base/buf.h"
#include "../base/log.h"
#include "../net/cert.h"

/* Cuts "ADDRESS:PORT" in place. Without an address, all of them. */
static int split_address(const struct listen_options *o, char *text, const char **ret_address,
                         uint16_t *ret_port, err_t *e)
{
    char *colon = strrchr(text, ':');
    int64_t port;
    if (!colon || str_to_i64(str_c(colon + 1), &port) < 0 || port < 0 || port > UINT16_MAX)
        return err_set(e, EINVAL, "--%s is \"%s\"; use ADDRESS:PORT or :PORT", o->flag, o->listen);
    *colon = '\0';
    size_t n = strlen(text);
    if (n > 1 && text[0] == '[' && text[n - 1] == ']') { /* [::1]:9443 */
        text[n - 1] = '\0';
        text++;
    }
    *ret_address = *text ? text : "0.0.0.0";
    *ret_port = (uint16_t)port;
    return 0;
}

/* Files are reloaded when they change (net/tls.c). A self-signed certificate is enough for the aggregation
 * layer with insecureSkipTLSVerify; `*ret` stays NULL for a server without TLS. */
static int make_tls(struct loop *loop, const struct listen_options *o, struct tls **ret, err_t *e)
{
    static const str names[] = { STR_INIT("localhost"), STR_INIT("127.0.0.1") };
    auto_cert_pair struct cert_pair pair = { 0 };
    auto_buf struct buf cert = { 0 }, key = { 0 };
    struct tls_server_options t = { .client_ca_pem = o->client_ca_pem,
                                    .client_ca_file = o->client_ca_file };
    if (o->cert_dir) {
        buf_printf(&cert, "%s/tls.crt", o->cert_dir);
        buf_printf(&key, "%s/tls.key", o->cert_dir);
        t.cert_file = cert.p;
        t.key_file = key.p;
    } else if (!o->self_signed) {
        *ret = NULL;
        return 0;
    } else if (cert_make(&(struct cert_request){ .use = CERT_SERVER,
                                                 .common_name = S("flyball"),
                                                 .names = names,
                                                 .name_count = countof(names),
                                                 .now_ns = loop_wall_ns(loop),
                                                 .days = 3650 },
                         &pair, e) < 0) {
        return -e->code;
    } else {
        t.cert_pem = buf_str(&pair.cert);
        t.key_pem = buf_str(&pair.key);
    }
    return tls_server_new(&t, ret, e);
}

int listen_open(struct loop *loop, const struct listen_options *o,
                struct http_server_options *server, struct http_server **ret, err_t *e)
{
    auto_free char *text = mem_dup(o->listen, strlen(o->listen));
    struct tls *tls = NULL;
    if (split_address(o, text, &server->address, &server->port, e) < 0)
        return -e->code;
    if (make_tls(loop, o, &tls, e) < 0)
        return err_wrap(e, "--%s %s", o->flag, o->listen);
    if (o->client_ca_file && !tls)
        return err_set(e, EINVAL, "--%s: client certificates need TLS; set --serving-cert-dir",
                       o->flag);
    server->tls = tls;
    int r = http_server_new(loop, server, ret, e);
    tls_unref(tls);
    if (r < 0)
        return err_wrap(e, "--%s %s", o->flag, o->listen);
    log_info("serving decisions", KV_C("flag", o->flag), KV_C("address", server->address),
             KV_INT("port", http_server_port(*ret)), KV_C("tls", tls ? "yes" : "no"));
    return 0;
}
