/* The server of the client's tests: one page per kind of answer, and what it has seen.
 *
 *   /hello /echo /query /header /identity /none   answered at once
 *   /hold                                         kept in `held` until the test answers it
 *   /watch                                        a stream that sends `event` when it is woken
 *   /big?n=N[&zip]                                N bytes, as fast as they are taken
 *   /abort /cut /short                            broken answers */
#ifndef FLYBALL_TEST_PAGES_H
#define FLYBALL_TEST_PAGES_H

#include "net/net.h"

extern struct pages {
    int requests, open, closed, complete; /* streams: open now; closed so far; of these complete */
    struct exchange *held;                /* by /hold */
    struct exchange *watching;            /* by /watch */
    char event[64];                       /* for /watch to send, one per pull */
    bool watch_ends;
    size_t pulled; /* bytes of /big */
} pages;

void pages_serve(void *context, struct exchange *x);
enum stream_more pages_pull_event(void *context, struct buf *out, size_t room);
void pages_open_stream(struct exchange *x, struct stream_source source);

/* Runs a case in every mode of harness.h, each with a new server and client. The read delay of the client is one
 * hour, so that whatever arrives during a test was not delayed. */
#define PAGES_IN_EVERY_MODE(run)                                                                   \
    for (size_t mode_ = 0; mode_ < countof(modes); mode_++) {                                      \
        int before_ = tap_failures;                                                                \
        struct net net_;                                                                           \
        pages = (struct pages){ 0 };                                                               \
        net_open(&net_, modes[mode_], (struct http_server_options){ .on_request = pages_serve },   \
                 (struct http_client_options){ .read_delay_ns = 3600 * NS_PER_S });                \
        run(&net_);                                                                                \
        net_close(&net_);                                                                          \
        if (tap_failures > before_)                                                                \
            printf("# in mode %s\n", modes[mode_].name);                                           \
    }

#define PAGES_CASE(name)                                                                           \
    static void test_##name(void)                                                                  \
    {                                                                                              \
        PAGES_IN_EVERY_MODE(name)                                                                  \
    }

#endif
