/* kube: the controller runtime. A feature declares what it wants to know and what to do about it; this
 * folder lists, watches, caches, queues, retries, elects a leader and writes.
 *
 *   config        kubeconfig files, in-cluster files, credentials that rotate
 *   resource      which API: group, version, plural
 *   client        one request, one callback: verbs, errors, retries, rate limit, write gate
 *   cache         what a watch keeps: packed records by name and by declared indexes
 *   listwatch     fills a cache and keeps it true, through everything a network can do
 *   workqueue     keys to reconcile: once each, with backoff (pure: time is an argument)
 *   controller    caches -> keys -> reconcile() -> writes
 *   complaints    what went wrong, told without flooding the log
 *   grant         may an object name another in another namespace? grants: the same, watched
 *   events        what users see in `kubectl describe`
 *   election      one leader, by a Lease
 *   keep          what must survive a restart: named texts in ConfigMaps of ours
 *   manager       all of it together, for `flyball operator` and `flyball agent`; struct feature
 *
 * One thread: everything runs on the loop, so a feature needs no lock. Callbacks come from the loop,
 * never from inside the call that asked for them.
 *
 * Memory: a cache owns its records, counted by reference; a record, a reply or a reconcile handed to
 * a callback is valid until the callback returns (a reconcile: until its turn is over). Keep a
 * record longer with record_ref(). What is passed in is copied.
 *
 * Read first: struct feature (manager.h), struct reconcile (controller.h), struct field
 * (json/project.h). docs of a whole small controller: controller.h. */
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
#include "resource.h"
#include "workqueue.h"

#endif
