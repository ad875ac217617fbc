/* A plain TCP peer on the loop, for tests that send bytes that no real client or server would send. */
#ifndef FLYBALL_TEST_RAW_H
#define FLYBALL_TEST_RAW_H

#include "net/net.h"
#include "tap.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

struct raw {
    struct loop *loop;
    int fd;
    struct fd_watch *watch;
    struct buf in;
    bool closed; /* by the other side */
};

void raw_adopt(struct raw *r, struct loop *loop, int fd);
void raw_connect(struct raw *r, struct loop *loop, uint16_t port);
void raw_send(struct raw *r, str bytes);
bool raw_has(const struct raw *r, str text);
/* Turns until `text` has arrived or the other side has closed. */
bool raw_wait(struct raw *r, str text);
void raw_wait_closed(struct raw *r);
void raw_close(struct raw *r);

#endif
