/* Watches: streams of events, read from the shared history when the client has room. watch.c explains how
 * they work and what a slow client costs. */
#ifndef FLYBALL_WATCH_H
#define FLYBALL_WATCH_H

#include "server.h"

/* Wakes the watches that a committed event may concern. */
void watch_on_event(struct server *s, const struct event *e, uint64_t sequence);
/* Ends all watches under a prefix ("group/resource/"); "" ends all. */
void watch_end_all(struct server *s, str prefix);

/* A conversion that a watch waits for ended; the failure, a Status, is "" if it succeeded. */
void watch_on_converted(struct server *s, const struct kind *k, const struct object *o,
                        str failure);

#endif
