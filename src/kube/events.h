/* Events: what users see in `kubectl describe`.
 *
 *     events_emit(manager_events(m), &(struct event){
 *         .resource = &resource_hpas, .ns = ns, .name = name, .uid = hpa->meta.uid,
 *         .reason = "ReplicaBoundsChanged", .message = S("minReplicas 1 -> 5 by trigger morning") });
 *
 * Never blocks and never fails a turn: an event that cannot be written is tried again 10 s later, up
 * to 12 times, then dropped. The same event again raises the count of the first one. An object gets
 * 25 events at once and then one in 300 s; more than 10 that differ only in their message within
 * 600 s are combined. Messages are cut at 1 KB. */
#ifndef FLYBALL_KUBE_EVENTS_H
#define FLYBALL_KUBE_EVENTS_H

#include "client.h"

struct events;

struct event {
    const struct resource *resource; /* of the object it is about */
    str ns, name, uid, rv;           /* uid and rv may be empty */
    bool warning;                    /* Normal otherwise */
    const char *reason;              /* CamelCase, for machines */
    str message;                     /* one sentence, for people */
};

/* `component` names who speaks ("flyball"). Events pass the write gate: who does not lead is silent. */
struct events *events_new(struct kube *k, const char *component);
void events_free(struct events *ev);
void events_emit(struct events *ev, const struct event *event);

#endif
