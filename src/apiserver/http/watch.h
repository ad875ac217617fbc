/* Watches: streams of events that are read from the shared history when the peer has room.
 *
 * A watch that has seen everything holds no place in the history at all, so an idle one cannot fall
 * behind; the event that wakes it gives it its place. One that is behind keeps the number of its next event;
 * when the history moves on past that, the watch ends with 410 and its client lists again. So a slow or
 * dead client costs one small block and what the kernel buffers. */
#ifndef FLYBALL_WATCH_H
#define FLYBALL_WATCH_H

#include "server.h"

/* A committed event: wakes those it may concern. */
void watch_on_event(struct server *s, const struct event *e, uint64_t sequence);
/* Ends all watches under a prefix ("group/resource/"), or all there are with "". */
void watch_end_all(struct server *s, str prefix);
/* The edge gives a watch the exchange it writes to, so that it can be woken. */
void watch_attach(const struct stream_source *source, struct exchange *x);
bool watch_is(const struct stream_source *source);

#endif
