/* Certificates and TLS: creating, verifying, rejecting, reloading. */
#include "harness.h"

#include <fcntl.h>
#include <unistd.h>

static void answer_user(void *context UNUSED, struct exchange *x)
{
    const struct tls_peer *peer = exchange_peer(x);
    exchange_answer(x, 200, (struct http_headers){ 0 },
                    !peer            ? S("anonymous")
                    : peer->rejected ? S("rejected")
                                     : peer->user);
}

/* One GET over a fresh client; the answer's body, or the failure's text. */
static int ask(struct loop *loop, uint16_t port, struct tls_client_options o, struct outcome *ret)
{
    struct net n = { .loop = loop };
    err_t e;
    struct tls *tls;
    int r = tls_client_new(&o, &tls, &e);
    if (r < 0) {
        snprintf(ret->text, sizeof(ret->text), "%s", e.text);
        return r;
    }
    snprintf(n.url, sizeof(n.url), "https://127.0.0.1:%d", port);
    struct http_client_options c = { .url = str_c(n.url), .tls = tls };
    OK_CALL(http_client_new(loop, &c, &n.client, &e), &e);
    tls_unref(tls);
    buf_done(&ret->body);
    *ret = (struct outcome){ 0 };
    outcome_send(ret, &n, (struct http_request){ .target = S("/") });
    outcome_wait(ret);
    http_client_free(n.client);
    return -ret->code;
}

struct place {
    struct loop *loop;
    struct http_server *server;
    uint16_t port;
};

static void open_place(struct place *p, struct tls *tls)
{
    err_t e;
    OK_CALL(loop_new(&(struct loop_options){ 0 }, &p->loop, &e), &e);
    struct http_server_options o = { .on_request = answer_user, .tls = tls };
    OK_CALL(http_server_new(p->loop, &o, &p->server, &e), &e);
    tls_unref(tls);
    p->port = http_server_port(p->server);
}

static void close_place(struct place *p)
{
    http_server_free(p->server);
    loop_free(p->loop);
}

static void certificates_are_usable(void)
{
    struct certificates *c = certificates();
    struct cert_info info;
    err_t e;
    int64_t now = clock_wall_ns();
    OK_CALL(cert_read(buf_str(&c->server.cert), &info, &e), &e);
    OK(info.not_before_ns < now && now < info.not_after_ns);
    OK(info.not_after_ns < now + 3 * 24 * 3600 * NS_PER_S);
    OK(cert_is_usable(&c->server, buf_str(&c->ca.cert), now));
    OK(!cert_is_usable(&c->server, buf_str(&c->ca.cert), now + 3 * 24 * 3600 * NS_PER_S));
    OK(!cert_is_usable(&c->server, buf_str(&c->client.cert), now));
    struct cert_pair mixed = { c->server.cert, c->client.key };
    OK(!cert_is_usable(&mixed, buf_str(&c->ca.cert), now));
    EQ_INT(cert_read(S("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), &info,
                     &e),
           -EINVAL);
    struct cert_pair broken = { 0 }, made = { 0 };
    EQ_INT(cert_make(&(struct cert_request){ .use = CERT_CLIENT,
                                             .common_name = S("x"),
                                             .now_ns = now,
                                             .days = 1,
                                             .issuer = &broken },
                     &made, &e),
           -EINVAL);
}

static void the_right_peers_agree(void)
{
    struct certificates *c = certificates();
    struct outcome o = { 0 };
    struct place p;
    open_place(&p, server_tls(false));
    str ca = buf_str(&c->ca.cert);
    EQ_INT(ask(p.loop, p.port, (struct tls_client_options){ .ca_pem = ca }, &o), 0);
    EQ_STR(buf_str(&o.body), S("anonymous"));
    EQ_INT(ask(p.loop, p.port,
               (struct tls_client_options){ .ca_pem = ca,
                                            .cert_pem = buf_str(&c->client.cert),
                                            .key_pem = buf_str(&c->client.key) },
               &o),
           0);
    EQ_STR(buf_str(&o.body), S("alice"));
    EQ_INT(ask(p.loop, p.port, (struct tls_client_options){ .skip_verify = true }, &o), 0);
    EQ_INT(ask(p.loop, p.port,
               (struct tls_client_options){ .ca_pem = ca, .server_name = S("localhost") }, &o),
           0);
    /* The server's own certificate can be the trusted one. */
    EQ_INT(ask(p.loop, p.port, (struct tls_client_options){ .ca_pem = buf_str(&c->server.cert) },
               &o),
           0);
    buf_done(&o.body);
    close_place(&p);
}

static void the_wrong_peers_do_not(void)
{
    struct certificates *c = certificates();
    struct outcome o = { 0 };
    struct place p;
    err_t e;
    auto_cert_pair struct cert_pair other_ca = { 0 }, impostor = { 0 };
    OK_CALL(cert_make(&(struct cert_request){ .use = CERT_CA,
                                              .common_name = S("test-ca"),
                                              .now_ns = clock_wall_ns(),
                                              .days = 2 },
                      &other_ca, &e),
            &e);
    OK_CALL(cert_make(&(struct cert_request){ .use = CERT_CLIENT,
                                              .common_name = S("alice"),
                                              .now_ns = clock_wall_ns(),
                                              .days = 2,
                                              .issuer = &other_ca },
                      &impostor, &e),
            &e);
    open_place(&p, server_tls(false));
    EQ_INT(ask(p.loop, p.port, (struct tls_client_options){ .ca_pem = buf_str(&other_ca.cert) },
               &o),
           -EPROTO);
    OK(strstr(o.text, "certificate is not accepted"));
    EQ_INT(ask(p.loop, p.port, (struct tls_client_options){ 0 }, &o), -EPROTO); /* system's */
    EQ_INT(ask(p.loop, p.port,
               (struct tls_client_options){ .ca_pem = buf_str(&c->ca.cert),
                                            .server_name = S("elsewhere") },
               &o),
           -EPROTO);
    OK(strstr(o.text, "name"));
    /* A client certificate from another CA is accepted but marked as rejected: there may be a token. */
    EQ_INT(ask(p.loop, p.port,
               (struct tls_client_options){ .ca_pem = buf_str(&c->ca.cert),
                                            .cert_pem = buf_str(&impostor.cert),
                                            .key_pem = buf_str(&impostor.key) },
               &o),
           0);
    EQ_STR(buf_str(&o.body), S("rejected"));
    buf_done(&o.body);
    close_place(&p);
}

static void bad_material_is_named(void)
{
    struct certificates *c = certificates();
    struct outcome o = { 0 };
    str ca = buf_str(&c->ca.cert);
    EQ_INT(ask(NULL, 0, (struct tls_client_options){ .ca_pem = S("nonsense") }, &o), -EINVAL);
    OK(strstr(o.text, "CA certificate"));
    EQ_INT(ask(NULL, 0, (struct tls_client_options){ .ca_file = "/no/such/ca.pem" }, &o), -ENOENT);
    OK(strstr(o.text, "/no/such/ca.pem"));
    EQ_INT(ask(NULL, 0,
               (struct tls_client_options){ .ca_pem = ca, .cert_pem = buf_str(&c->client.cert) },
               &o),
           -EINVAL);
    OK(strstr(o.text, "private key"));
    EQ_INT(ask(NULL, 0,
               (struct tls_client_options){ .ca_pem = ca,
                                            .cert_pem = buf_str(&c->client.cert),
                                            .key_pem = buf_str(&c->server.key) },
               &o),
           -EINVAL);
    struct tls *tls;
    err_t e;
    EQ_INT(tls_server_new(&(struct tls_server_options){ 0 }, &tls, &e), -EINVAL);
}

static void write_file(const char *path, str text)
{
    char temporary[300];
    snprintf(temporary, sizeof(temporary), "%s.new", path);
    auto_close int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    OK(fd >= 0 && write(fd, text.p, text.n) == (ssize_t)text.n);
    OK(rename(temporary, path) == 0);
}

/* A server's certificate changes under it: connections made later see the new one; a set that does
 * not fit together is not taken. */
static void files_are_read_again(void)
{
    struct certificates *c = certificates();
    char dir[] = "/tmp/flyball-tls-XXXXXX", cert[100], key[100];
    OK(mkdtemp(dir) != NULL);
    snprintf(cert, sizeof(cert), "%s/tls.crt", dir);
    snprintf(key, sizeof(key), "%s/tls.key", dir);
    write_file(cert, buf_str(&c->server.cert));
    write_file(key, buf_str(&c->server.key));
    struct tls *tls = NULL;
    err_t e;
    OK_CALL(tls_server_new(
                &(struct tls_server_options){ .cert_file = cert, .key_file = key, .reload_ns = 1 },
                &tls, &e),
            &e);
    struct place p;
    struct outcome o = { 0 };
    open_place(&p, tls);
    struct tls_client_options old = { .ca_pem = buf_str(&c->ca.cert) };
    EQ_INT(ask(p.loop, p.port, old, &o), 0);

    auto_cert_pair struct cert_pair next = { 0 };
    OK_CALL(cert_make(&(struct cert_request){ .use = CERT_SERVER,
                                              .common_name = S("next"),
                                              .names = (str[]){ S("127.0.0.1") },
                                              .name_count = 1,
                                              .now_ns = clock_wall_ns(),
                                              .days = 2 },
                      &next, &e),
            &e);
    write_file(cert, buf_str(&next.cert)); /* half of the change */
    EQ_INT(ask(p.loop, p.port, old, &o), 0);
    write_file(key, buf_str(&next.key));
    EQ_INT(ask(p.loop, p.port, old, &o), -EPROTO);
    EQ_INT(ask(p.loop, p.port, (struct tls_client_options){ .ca_pem = buf_str(&next.cert) }, &o),
           0);
    buf_done(&o.body);
    close_place(&p);
    unlink(cert);
    unlink(key);
    rmdir(dir);
}

/* When a client's certificate changes, calls use the new one at once, not when connections end. */
static void clients_rotate_too(void)
{
    struct certificates *c = certificates();
    char dir[] = "/tmp/flyball-tls-XXXXXX", cert[100], key[100];
    OK(mkdtemp(dir) != NULL);
    snprintf(cert, sizeof(cert), "%s/tls.crt", dir);
    snprintf(key, sizeof(key), "%s/tls.key", dir);
    write_file(cert, buf_str(&c->client.cert));
    write_file(key, buf_str(&c->client.key));
    struct place p;
    open_place(&p, server_tls(false));
    struct net n = { .loop = p.loop };
    struct tls *tls = NULL;
    err_t e;
    OK_CALL(tls_client_new(&(struct tls_client_options){ .ca_pem = buf_str(&c->ca.cert),
                                                         .cert_file = cert,
                                                         .key_file = key,
                                                         .reload_ns = 1 },
                           &tls, &e),
            &e);
    snprintf(n.url, sizeof(n.url), "https://127.0.0.1:%d", p.port);
    struct http_client_options o = { .url = str_c(n.url), .tls = tls };
    OK_CALL(http_client_new(p.loop, &o, &n.client, &e), &e);
    tls_unref(tls);
    struct outcome first = { 0 }, second = { 0 };
    outcome_send(&first, &n, (struct http_request){ .target = S("/") });
    outcome_wait(&first);
    EQ_STR(buf_str(&first.body), S("alice"));
    auto_cert_pair struct cert_pair bob = { 0 };
    OK_CALL(cert_make(&(struct cert_request){ .use = CERT_CLIENT,
                                              .common_name = S("bob"),
                                              .now_ns = clock_wall_ns(),
                                              .days = 2,
                                              .issuer = &c->ca },
                      &bob, &e),
            &e);
    write_file(cert, buf_str(&bob.cert));
    write_file(key, buf_str(&bob.key));
    outcome_send(&second, &n, (struct http_request){ .target = S("/") });
    outcome_wait(&second);
    EQ_STR(buf_str(&second.body), S("bob"));
    buf_done(&first.body), buf_done(&second.body);
    http_client_free(n.client);
    close_place(&p);
    unlink(cert);
    unlink(key);
    rmdir(dir);
}

static void secrets(void)
{
    char a[32] = { 0 }, b[32] = { 0 };
    tls_random(a, sizeof(a));
    tls_random(b, sizeof(b));
    OK(memcmp(a, b, sizeof(a)) != 0);
    OK(tls_secrets_equal(S("token"), S("token")));
    OK(!tls_secrets_equal(S("token"), S("tokem")));
    OK(!tls_secrets_equal(S("token"), S("tok")));
    OK(tls_secrets_equal(S(""), S("")));
}

int main(void)
{
    int result = tap_run((struct tap_case[]){ TAP(certificates_are_usable),
                                              TAP(the_right_peers_agree),
                                              TAP(the_wrong_peers_do_not),
                                              TAP(bad_material_is_named),
                                              TAP(files_are_read_again),
                                              TAP(clients_rotate_too),
                                              TAP(secrets),
                                              { 0 } });
    certificates_free();
    return result;
}
