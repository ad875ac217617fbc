/* market: how much CPU does each pod get? (drop-in for MBCAS)
 *
 * Every pod of a node has a small learning agent that bids for CPU. The market is cleared
 * exactly, and the result becomes the pod's CPU request and limit, resized in place. Two
 * processes share the work and communicate only through PodAllocation objects (market_records.h
 * lists who writes which field):
 *
 *      kernel counters -> flyball agent -> PodAllocation.spec -> flyball operator -> pods/resize
 *                         (per node)       PodAllocation.status <- (controller)   <- kubelet
 *
 * Pure decisions:
 *
 *   clear_core       the market itself: capacity and bids in, allocations and prices out
 *   agent_core       one pod's agent: state, action, reward, Q-learning, bid
 *   market_pod_core  one pod: what it needs according to its counters, and when its limit follows
 *   round_core       a round of the whole node: windows close, agents bid, the market clears
 *   limit_core       rounding, boosts, and the smallest change worth a resize
 *   forecast_core    a pod's demand in the near future
 *   demand_core      usage and throttling between two readings of the kernel's counters
 *   latency_core     a latency objective as bargaining power
 *   memory_core      one container's memory; memory_track_core: its past, and a round of the node
 *   resize_core      what may be patched into a running pod: QoS class, steps, exact splits
 *   actuate_core     the controller's step: desired and observed CPU in, patch and status out
 *                    (actuate_memory_core: the memory of the same patch)
 *   compat_core      the same steps exactly as MBCAS computes them, for side-by-side runs
 *   market_spec      configuration: every key of ConfigMap and environment, validated
 *
 * The node agent, around these:
 *
 *   cgroup_*         the kernel's counters and quotas: where they are, how to read and set them
 *   sampler          reads them once a second and runs the fast and the slow round
 *   market_agent*    the feature of `flyball agent`: pods in, PodAllocations out
 *   qtable*          what the agents learned, kept in ConfigMaps
 *   latency          latencies from Prometheus
 *   local*           the same loops on plain cgroups of a machine, without Kubernetes
 *
 * The controller: market_controller wires caches to turns; market_gather, _turn, _track and
 * _status carry out actuate_decide().
 *
 * All CPU amounts are int64 millicores (int32 where they are kept per pod: milli.h). Everything
 * named *_core is pure: no clock, no I/O, no allocation that outlives the call; random numbers
 * are part of the agent.
 *
 * Read first: market_clear, agent_learn, market_pod_bid, actuate_decide. */
#ifndef FLYBALL_MARKET_H
#define FLYBALL_MARKET_H

#include "actuate_core.h"
#include "agent_core.h"
#include "clear_core.h"
#include "compat_core.h"
#include "demand_core.h"
#include "limit_core.h"
#include "market_pod_core.h"
#include "market_spec.h"
#include "resize_core.h"
#include "round_core.h"

#endif
