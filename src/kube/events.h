/* Events, as shown by `kubectl describe`.
 *
 *     events_emit(manager_events(m), &(struct kube_event){
 *         .resource = &resource_hpas, .ns = ns, .name = name, .uid = hpa->meta.uid,
 *         .reason = "ReplicaBoundsChanged", .message = S("minReplicas 1 -> 5 by trigger morning") });
 *
 * Never blocks and never fails a turn: an event that cannot be written is retried every 10 s, up to 12
 * times, then dropped. A repetition increments the count of the first event. An object may emit 25 events
 * at once and then one per 300 s; more than 10 within 600 s that differ only in their message are combined.
 * Messages are truncated to 1 KB. */
#ifndef FLYBALL_KUBE_EVENTS_H
#define FLYBALL_KUBE_EVENTS_H

#include "client.h"

struct events;

struct kube_event {
    const struct resource *resource; /* of the object it is about */
    str ns, name, uid, rv;           /* uid and rv may be empty */
    bool warning;                    /* false: Normal */
    const char *reason;              /* CamelCase, for machines */
    str message;                     /* one sentence, for people */
};

/* `component` is the reporting component ("flyball"). Events pass the write gate: only the leader emits them. */
struct events *events_new(struct kube *k, const char *component);
void events_free(struct events *ev);
void events_emit(struct events *ev, const struct kube_event *event);
/* Calls `fn` for every event that is emitted, including repetitions and those that are dropped later. One observer;
 * NULL: none. */
void events_observe(struct events *ev, void (*fn)(void *context, const struct kube_event *event),
                    void *context);

#endif
