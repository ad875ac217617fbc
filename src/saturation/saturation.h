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
 *   limiter_core    growth within the accelerators there are
 *   text_core       accelerator names, cache keys, ages, words of a command line
 *
 * All of these are pure: no clock, no I/O; results live in the caller's arena. The order of replicas
 * and variants in the input changes nothing in the answer.
 *
 * Read first: sat_analyse, sat_decide. */
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
