/* market: how much CPU does each pod get? (drop-in for MBCAS)
 *
 * Every pod of a node has a small learning agent that bids; the market is cleared exactly; the
 * answer becomes the pod's CPU request and limit, resized in place.
 *
 *   clear_core     the market itself: capacity and bids in, allocations and prices out
 *   agent_core     one pod's agent: state, action, reward, Q-learning, bid
 *   pod_core       one pod: what its counters say it needs, and when its limit follows
 *   round_core     a round of the whole node: windows close, agents bid, the market clears
 *   limit_core     rounding, boosts, and when a change is too small to be worth it
 *   forecast_core  where a pod's demand is going
 *   demand_core    what the kernel's counters say of usage, throttling and unmet demand
 *   compat_core    the same steps exactly as the original computes them, for side-by-side runs
 *   slo_core       a latency objective as bargaining power
 *   market_spec    configuration: every key, from ConfigMap and environment, validated
 *   resize_core    what may be patched into a running pod: QoS, steps, exact splits
 *   actuate_core   the controller's step: what a pod should have and has in, patch and verdict out
 *
 * Around them: cgroup_*, sampler, market_agent* and local* are the node's side; market_controller,
 * _turn, _track, _gather and _status carry out actuate_decide(). Both sides meet in PodAllocations
 * (market_records.h says who writes what).
 *
 * The node's half, around these:
 *
 *   cgroup_*       the kernel's counters and quotas: where they are, what they say
 *   sampler        reads them once a second, and runs the fast and the slow round
 *   market_agent*  the feature of `flyball agent`: pods in, PodAllocations out
 *   qtable*, slo   what was learnt, kept in ConfigMaps; latencies from Prometheus
 *   local*         the same on plain cgroups of a machine, without Kubernetes
 *
 * All CPU amounts are int64 millicores. Everything named *_core is pure: no clock, no I/O, no
 * allocation that outlives the call; randomness is part of the agent.
 *
 * Read first: market_clear, agent_learn, market_pod_bid, actuate. */
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
