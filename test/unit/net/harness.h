/* A server and a client of src/net on one loop, in every combination of protocol, TLS and time. A test
 * iterates over `modes`, calls net_open(), sends calls, turns the loop and calls net_close(). */
#ifndef FLYBALL_TEST_HARNESS_H
#define FLYBALL_TEST_HARNESS_H

#include "net/net.h"
#include "tap.h"

struct mode {
    const char *name;
    enum loop_time time;
    bool tls, http2;
};

static const struct mode modes[] = {
    { "HTTP/1.1 plain", LOOP_REAL, false, false },
    { "HTTP/1.1 TLS", LOOP_REAL, true, false },
    { "HTTP/2 plain", LOOP_REAL, false, true },
    { "HTTP/2 TLS", LOOP_REAL, true, true },
    { "HTTP/1.1 plain, virtual time", LOOP_VIRTUAL, false, false },
    { "HTTP/2 TLS, virtual time", LOOP_VIRTUAL, true, true },
};

/* Created once: generating keys is slow under the sanitizers. */
struct certificates {
    struct cert_pair ca, server, client;
};

struct certificates *certificates(void);
void certificates_free(void);

struct net {
    struct mode mode;
    struct loop *loop;
    struct http_server *server;
    struct http_client *client;
    char url[64];
};

struct tls *server_tls(bool http1_only);
struct tls *client_tls(bool with_certificate);
/* The options set what differs from the defaults; address, TLS and URL are set here. */
void net_open(struct net *n, struct mode mode, struct http_server_options server,
              struct http_client_options client);
/* Turns the loop for a while, to check that something does NOT happen. */
void net_settle(struct net *n);
void net_close(struct net *n);

/* What a call has received so far. */
struct outcome {
    struct net *net;
    struct http_call *call;
    size_t chunks;
    size_t cancel_at; /* cancel the call at this chunk (1..), or in on_head (SIZE_MAX) */
    size_t pause_at;  /* pause at this chunk */
    struct buf body;
    int status, heads, dones, code;
    bool http2, paused;
    char text[500], type[64];
};

void outcome_send(struct outcome *o, struct net *n, struct http_request r);
void outcome_wait(struct outcome *o);

#define EQ_OUTCOME(o, want_status, want_body)                                                      \
    do {                                                                                           \
        if (!EQ_INT((o)->code, 0))                                                                 \
            tap_note(__FILE__, __LINE__, "%s: %s", (o)->net->mode.name, (o)->text);                \
        EQ_INT((o)->status, want_status);                                                          \
        EQ_STR(buf_str(&(o)->body), want_body);                                                    \
    } while (0)

#endif
