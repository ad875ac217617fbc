/* kube: the controller runtime. A feature declares which objects it needs and how to reconcile them; this
 * folder lists, watches, caches, queues, retries, elects a leader and writes.
 *
 *   config        kubeconfig files, in-cluster files, credentials that rotate
 *   resource      which API: group, version, plural
 *   client        one request, one callback: verbs, errors, retries, rate limit, write gate
 *   cache         packed records of a watched resource, by name and by declared indexes
 *   listwatch     fills a cache and keeps it current, whatever the network does
 *   object_key    objects of a feature by namespace and name
 *   own_write     our last write to an object, until the watch has delivered it
 *   workqueue     keys to reconcile: each at most once, with backoff (pure: time is an argument)
 *   controller    caches -> keys -> reconcile() -> writes
 *   complaints    logs failures without flooding the log
 *   grant         permission for references across namespaces; grants: the watches behind it
 *   events        Events for `kubectl describe`
 *   election      leader election with a Lease
 *   keep          state that survives a restart: named texts in ConfigMaps
 *   manager       runs the features of `flyball operator` and `flyball agent`; struct feature
 *
 * One thread: everything runs on the loop, so a feature needs no locks. Callbacks are made by the loop,
 * never from inside the function that requested them.
 *
 * Memory: a cache owns its records, counted by reference; a record, a reply or a reconcile handed to
 * a callback is valid until the callback returns (a reconcile: until its turn ends). Keep a
 * record longer with record_ref(). Arguments are copied.
 *
 * Read first: struct feature (manager.h), struct reconcile (controller.h), struct field
 * (json/project.h). A complete small controller is in the comment of controller.h. */
#ifndef FLYBALL_KUBE_H
#define FLYBALL_KUBE_H

#include "cache.h"
#include "client.h"
#include "config.h"
#include "controller.h"
#include "election.h"
#include "events.h"
#include "keep.h"
#include "listwatch.h"
#include "manager.h"
#include "own_write.h"
#include "resource.h"
#include "workqueue.h"

#endif
