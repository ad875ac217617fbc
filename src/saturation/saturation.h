/* saturation: how many replicas should each variant of a model have? A drop-in replacement for the
 * Workload-Variant-Autoscaler (WVA).
 *
 * A model runs as several variants: one Deployment or StatefulSet each, on its own accelerator and
 * at its own cost. The feature decides from the load and latency of all replicas whether the model
 * needs more or fewer of them, and which variant should change.
 *
 * Pure cores (no clock, no I/O; results live in the caller's arena; the order of replicas and
 * variants in the input does not matter), by folder:
 *
 *   wva/      decide_core     one decision about one model, in order; start reading here
 *             analysis_core   spare capacity from samples of KV cache and queue
 *             target_core     replicas of each variant from spare capacity and bounds, with reasons
 *             hybrid_core     arbitration between capacity and optimizer; scale to zero
 *             optimize_core   the model-based optimizer for one model: alloc_core on top of queue_core
 *             token_core      WVA's token analyzer (token_role_core: with roles); vote_core: targets from analyzers
 *             dispatch_core   what a watch event triggers
 *   slo/      slo_core        replicas by latency targets: learned capacity, forecast, headroom
 *             traffic_core    rates and latency histograms; slo_settings_core: what users set
 *   limits/   limiter_core    scale-up within the accelerators of the cluster; quota_core: within quotas
 *             fair_core       shares of limited accelerators; rescale_core: taking from others by priority
 *   zero/     wake_core, zero_core, zero_policy_core    from and to zero
 *   objects/  saturation_spec what users write; annotation_core: the same on an HPA or ScaledObject
 *             stock_core      free accelerators of the nodes; workload_core, vllm_args_core: what a replica needs
 *             scale_core      how fast replicas may change; status_core: the status and when to write it
 *             follow_core     mistakes in HPAs and ScaledObjects; text_core: names, cache keys, command lines
 *   config/   config_core, policy_core, snapshot    ConfigMaps as one immutable value
 *             compat_core     the saturation ConfigMap exactly as WVA 0.9 reads it, for comparison
 *
 * Around them:
 *
 *   collect/              fetch metrics for each model in the background; collect_group: many models in one query
 *   saturation_records    fields that the watch caches keep; saturation_state: variants, models, last decisions
 *   saturation_targets    workloads of any kind with a scale subresource
 *   saturation_gather     input of a decision; saturation_engine: the cycle; saturation_slo: the slo policy in it
 *   saturation_tokens     the token analyzer in it; saturation_limits: limits on accelerators; saturation_share: shares
 *   saturation_capacity   pod templates and measured capacity for it, across restarts
 *   saturation_wake       to and from zero; saturation_wake_signal: do requests wait at the gateway?
 *   saturation_victims    which pods a scale-down removes
 *   saturation_turn       write statuses and scales; saturation_doors: serve decisions (doors/doors.h)
 *   saturation_options    flags and environment; saturation_config: snapshots and the Prometheus client
 *   saturation_want       targets of variants without a VariantAutoscaling, across restarts
 *   saturation_keep       last good entries across restarts; saturation_probe: startup check
 *   saturation_advice     warnings about HPAs and ScaledObjects (follow_core) that do not follow as expected
 *   saturation_gauges     the metrics that WVA 0.9 added
 *   saturation_metrics    exported metrics; saturation_controller: the feature */
#ifndef FLYBALL_SATURATION_H
#define FLYBALL_SATURATION_H

#include "limits/limiter_core.h"
#include "objects/text_core.h"
#include "wva/alloc_core.h"
#include "wva/analysis_core.h"
#include "wva/hybrid_core.h"
#include "wva/queue_core.h"
#include "wva/target_core.h"
#include "wva/token_core.h"

#endif
