/* saturation: how many replicas of which variant? (drop-in for the Workload-Variant-Autoscaler)
 *
 * A model runs as several variants (one Deployment each, on its own accelerator and at its own cost).
 * From the KV-cache use and queue of every replica follows whether the model needs more or could do
 * with less, and which variant should change.
 *
 *   analysis_core   replicas in, spare capacity out
 *   target_core     spare capacity and bounds in, replicas of each variant out, with reasons
 *   hybrid_core     capacity and model-based targets brought together; scale to zero
 *   queue_core      a queueing model of one server: rates and latencies
 *   alloc_core      the model-based optimizer: which accelerator, how many replicas
 *   token_core      the token analyser: capacity in tokens, learnt; vllm_args_core reads command lines
 *   slo_core        replicas by latency targets: learned capacity, forecast, headroom
 *   limiter_core    growth within the accelerators there are
 *   text_core       accelerator names, cache keys, ages, words of a command line
 *
 *   decide_core     all of a decision about one model, in order
 *   config_core, zero_core, snapshot    what ConfigMaps say, as one immutable value
 *   dispatch_core   what a watch event leads to
 *   scale_core      how fast replicas may change; status_core: what a status says, and when it is written
 *   optimize_core   alloc_core for one model, from ConfigMaps and profiles
 *
 * All of these are pure: no clock, no I/O; results live in the caller's arena. The order of replicas
 * and variants in the input changes nothing in the answer. Around them:
 *
 *   collect*              metrics in, for each model in the background
 *   saturation_records    what the watch caches keep; saturation_state: variants, models, the last decision
 *   saturation_gather     what a decision is made of; saturation_engine: decides on its own clock
 *   saturation_turn       writes what was decided
 *   saturation_config     settings and snapshots; saturation_metrics: metrics out
 *   saturation_controller the feature
 *
 * Read first: sat_analyze, sat_decide, decide_model, saturation_decide_model. */
#ifndef FLYBALL_SATURATION_H
#define FLYBALL_SATURATION_H

#include "alloc_core.h"
#include "analysis_core.h"
#include "hybrid_core.h"
#include "limiter_core.h"
#include "queue_core.h"
#include "target_core.h"
#include "text_core.h"
#include "token_core.h"

#endif
