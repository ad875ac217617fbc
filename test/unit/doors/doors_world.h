/* Doors in front of made-up decisions, on a virtual cluster, and clients for them. */
#ifndef FLYBALL_DOORS_WORLD_H
#define FLYBALL_DOORS_WORLD_H

#include "cluster.h"
#include "doors/doors.h"
#include "net/http_client.h"
#include "tap.h"

extern struct door_value doors_world_values[4]; /* what the doors serve; a test may change it */
extern bool doors_world_leads;
extern struct doors_options doors_world_options; /* set by the test before doors_world_start() */
extern struct doors *doors_world_doors;

void doors_world_set(size_t at, const char *variant, int64_t desired);
void doors_world_start(struct cluster *c);

/* ---- a client */

struct doors_answer {
    bool done;
    int status, grpc; /* grpc -1: no such header */
    struct buf body;
};

void doors_world_head(void *context, const struct http_head *head);
void doors_world_data(void *context, str bytes);
void doors_world_done(void *context, const err_t *failure);
struct http_client *doors_world_client(struct cluster *c, uint16_t port, struct tls *tls);

#endif
