/* A server and a client on one virtual loop, for tests: what the server answers is the test's function,
 * and waiting costs no time. */
#ifndef FLYBALL_TEST_FAKE_H
#define FLYBALL_TEST_FAKE_H

#include "kube/client.h"
#include "net/http_server.h"
#include "tap.h"

struct fake {
    struct loop *loop;
    struct http_server *server;
    struct kube *kube;
    void (*serve)(struct fake *f, struct exchange *x);
    int requests;
    struct buf log; /* "METHOD target [body]\n" of every request */
};

/* With a client that has these limits; `options.loop` and `options.config` are set here. */
void fake_start_limited(struct fake *f, void (*serve)(struct fake *f, struct exchange *x),
                        struct kube_options options);
void fake_start(struct fake *f, void (*serve)(struct fake *f, struct exchange *x));
void fake_stop(struct fake *f);
void fake_answer(struct exchange *x, int status, const char *body);
/* Turns until `*done`, for at most an hour of virtual time. */
bool fake_until(struct fake *f, const bool *done);
void fake_for(struct fake *f, int64_t ns);

#endif
