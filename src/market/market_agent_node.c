/* The NodeMarket of the agent's node: what the last slow round found, how far limits exceed the
 * capacity and why, and which settings and annotations are invalid. Written after a slow round if
 * the mode, the published price or a problem changed, and once a minute otherwise, so that a reader
 * can distinguish an old report from a quiet node.
 *
 * Nothing depends on it: without its definition the writes fail and the market goes on. */
#include "market_agent_internal.h"

#include "../base/log.h"
#include "../base/rfc3339.h"
#include "milli.h"

#include <math.h>

enum { PROBLEMS_MAX = 32 };
static const int64_t report_ns = 60 * NS_PER_S;

const struct resource market_node_resource = { "allocation.mbcas.io", "v1alpha1", "nodemarkets",
                                               "NodeMarket", false };

/* ---- problems */

void market_agent_add_problem(struct market_agent *a, const char *sentence)
{
    log_warn("invalid setting ignored", KV_C("error", sentence));
    if (a->problems.n < PROBLEMS_MAX)
        vec_push(&a->problems, mem_dup(sentence, strlen(sentence)));
}

void market_agent_clear_problems(struct market_agent *a)
{
    for (size_t i = 0; i < a->problems.n; i++)
        free(a->problems.at[i]);
    vec_done(&a->problems);
    a->problems.n = 0;
}

/* One event for a change of the ConfigMap, not one for each key. */
void market_agent_emit_problems(struct market_agent *a)
{
    const struct record *config = cache_get(a->configs, a->config_ns, S("mbcas-agent-config"));
    metric_set(a->metrics.problems, (double)a->problems.n);
    a->reported_ns = 0; /* report at the next round */
    if (!config || !a->problems.n)
        return;
    auto_buf struct buf text = { 0 };
    for (size_t i = 0; i < a->problems.n; i++)
        buf_printf(&text, "%s%s", i ? "; " : "", a->problems.at[i]);
    events_emit(manager_events(a->manager), &(struct kube_event){ .resource = &resource_configmaps,
                                                                  .ns = config->ns,
                                                                  .name = config->name,
                                                                  .uid = config->uid,
                                                                  .warning = true,
                                                                  .reason = "InvalidSetting",
                                                                  .message = buf_str(&text) });
}

static struct json *make_problem(struct arena *arena, const char *source, str name, str message)
{
    struct json *o = json_new_obj(arena);
    json_set_str(arena, o, "source", str_c(source));
    json_set_str(arena, o, "name", name);
    json_set_str(arena, o, "message", message);
    return o;
}

/* Settings first, then the annotations of pods. */
static struct json *make_problems(struct arena *arena, const struct market_agent *a)
{
    struct json *list = json_new_arr(arena);
    for (size_t i = 0; i < a->problems.n; i++)
        json_push(arena, list,
                  make_problem(arena, "Settings", S("mbcas-agent-config"),
                               str_c(a->problems.at[i])));
    for (size_t i = 0; i < sampler_count(a->sampler); i++) {
        const struct agent_pod *pod = market_agent_at(a, i);
        const struct record *meta = &pod->record->meta;
        struct json *own = market_agent_pod_problems(arena, pod);
        for (size_t k = 0; k < json_len(own) && json_len(list) < PROBLEMS_MAX; k++)
            json_push(arena, list,
                      make_problem(arena, "Pod",
                                   arena_printf(arena, STR_FMT "/" STR_FMT, STR_ARG(meta->ns),
                                                STR_ARG(meta->name)),
                                   json_text(json_item(own, k))));
    }
    return list;
}

/* ---- conditions */

static struct json *make_condition(struct arena *arena, const char *type, bool is_true,
                                   const char *reason, str message)
{
    struct json *o = json_new_obj(arena);
    json_set_str(arena, o, "type", str_c(type));
    json_set_str(arena, o, "status", is_true ? S("True") : S("False"));
    json_set_str(arena, o, "reason", str_c(reason));
    json_set_str(arena, o, "message", message);
    return o;
}

/* Blind: the kernel reports no pressure, so the agent cannot see a pod that waits below its share, and
 * kappa stays at 1.5 at most. */
static const char *overcommit_state(const struct market_node *node, double most)
{
    return most <= 1                               ? "Off"
           : node->kappa.reason == OVERCOMMIT_FALL ? "Falling"
           : !node->sees_pressure                  ? "Blind"
                                                   : "Active";
}

static struct json *make_conditions(struct arena *arena, const struct market_agent *a)
{
    struct json *list = json_new_arr(arena);
    const struct market_node *node = sampler_node(a->sampler);
    double most = a->config.market.limit_overcommit;
    bool valid = a->problems.n == 0;
    json_push(arena, list,
              make_condition(arena, "ConfigValid", valid, valid ? "Valid" : "InvalidSetting",
                             valid ? S("") : str_c(a->problems.at[0])));
    str numbers = arena_printf(
        arena,
        "limits may add up to %.2f times %lldm; pods below their share waited in %.2f %% of seconds",
        (double)node->kappa.kappa_milli / 1000, (long long)node->capacity_milli,
        (double)node->pressure.victims_ppm / 1e4);
    json_push(arena, list,
              make_condition(arena, "Overcommit", node->kappa.kappa_milli > 1000,
                             overcommit_state(node, most), numbers));
    return list;
}

/* ---- the status */

static struct json *make_overcommit(struct arena *arena, const struct market_agent *a)
{
    const struct market_node *node = sampler_node(a->sampler);
    struct json *o = json_new_obj(arena);
    market_agent_set_real(arena, o, "kappa", (double)node->kappa.kappa_milli / 1000);
    market_agent_set_real(arena, o, "max", a->config.market.limit_overcommit);
    json_set_str(arena, o, "reason", str_c(overcommit_reason_name(node->kappa.reason)));
    market_agent_set_milli(arena, o, "limitsCPU", node->limits_milli);
    market_agent_set_milli(arena, o, "limitsCapacityCPU", node->kappa.limits_capacity_milli);
    market_agent_set_milli(arena, o, "requestsCPU", node->requests_milli);
    market_agent_set_milli(arena, o, "allocatableCPU",
                           market_agent_allocatable((void *)(uintptr_t)a));
    market_agent_set_real(arena, o, "victims", (double)node->pressure.victims_ppm / 1e6);
    market_agent_set_real(arena, o, "worst", (double)node->pressure.worst_ppm / 1e6);
    return o;
}

/* Only while memoryManagement is on: otherwise nothing is known about it. */
static void set_memory(struct arena *arena, const struct market_agent *a, struct json *status)
{
    const struct memory_node *m = &a->memory;
    if (!a->memory_ns)
        return;
    json_set_str(arena, status, "capacityMemory",
                 arena_printf(arena, "%lldMi", (long long)(m->allocatable >> 20)));
    json_set_str(arena, status, "demandMemory",
                 arena_printf(arena, "%lldMi", (long long)(m->demand >> 20)));
    json_set_str(arena, status, "modeMemory", str_c(market_mode_name(a->joint.memory.mode)));
    market_agent_set_real(arena, status, "lambdaMemory", a->joint.memory.lambda);
    json_set_str(arena, status, "dominant", str_c(joint_resource_name(a->joint.dominant)));
}

/* The prices are those of the last round; `published` is what the PodAllocations show, which changes
 * at most once a minute. */
static struct json *make_report(struct arena *arena, const struct market_agent *a)
{
    const struct market_node *node = sampler_node(a->sampler);
    struct json *status = json_new_obj(arena), *published = json_new_obj(arena);
    char time[RFC3339_TEXT_MAX];
    json_set_int(arena, status, "round", node->round);
    json_set_str(arena, status, "time", rfc3339_text(loop_wall_ns(a->loop) / NS_PER_S, time));
    market_agent_set_milli(arena, status, "capacityCPU", node->capacity_milli);
    market_agent_set_milli(arena, status, "lentCPU", node->lent_milli);
    market_agent_set_milli(arena, status, "demandCPU", node->price.demand_milli);
    market_agent_set_milli(arena, status, "guaranteedCPU", node->guaranteed_milli);
    json_set_str(arena, status, "mode", str_c(market_mode_name(node->price.mode)));
    market_agent_set_real(arena, status, "lambdaCPU", node->price.lambda_per_core);
    market_agent_set_real(arena, status, "shadowPriceCPU", node->price.shadow_price);
    market_agent_set_real(arena, published, "price", node->published.price);
    json_set_str(arena, published, "mode", str_c(market_mode_name(node->published.mode)));
    json_set_int(arena, published, "round", node->published.round);
    json_set(arena, status, S("published"), published);
    json_set_int(arena, status, "bidders", (int64_t)sampler_count(a->sampler));
    json_set_int(arena, status, "excluded", a->excluded_n);
    json_set(arena, status, S("overcommit"), make_overcommit(arena, a));
    set_memory(arena, a, status);
    json_set(arena, status, S("problems"), make_problems(arena, a));
    json_set(arena, status, S("conditions"), make_conditions(arena, a));
    return status;
}

/* ---- writing */

/* A published price is reported at once, together with the PodAllocations that carry it. */
void market_agent_queue_report(struct market_agent *a)
{
    int64_t now = loop_mono_ns(a->loop);
    if (a->reported_ns && now - a->reported_ns < report_ns &&
        !sampler_node(a->sampler)->published_now)
        return;
    a->reported_ns = now;
    controller_add(a->reporter, S(""), a->node);
}

static void on_report_written(struct reconcile *r, const struct kube_reply *reply)
{
    struct market_agent *a = r->context;
    a->has_report &= reply->reason != KUBE_NOT_FOUND; /* it was deleted */
    if (reply->failure && reply->reason != KUBE_NOT_FOUND && reply->reason != KUBE_FORBIDDEN)
        reconcile_fail_call(r, reply);
}

static void write_report(struct reconcile *r)
{
    struct market_agent *a = r->context;
    reconcile_call(r,
                   &(struct kube_request){
                       .verb = KUBE_MERGE_PATCH,
                       .resource = &market_node_resource,
                       .name = a->node,
                       .subresource = "status",
                       .body = kube_status_body(r->arena, make_report(r->arena, a)) },
                   on_report_written);
}

static void on_created(struct reconcile *r, const struct kube_reply *reply)
{
    struct market_agent *a = r->context;
    a->has_report = !reply->failure;
    if (reply->failure)
        on_report_written(r, reply);
    else
        write_report(r);
}

/* The object first: a status can only be written to one that exists. */
struct reconciled market_agent_report(struct reconcile *r)
{
    struct market_agent *a = r->context;
    if (a->has_report) {
        write_report(r);
        return reconciled();
    }
    const struct record *node = cache_get(a->nodes, S(""), a->node);
    struct json *object = json_new_obj(r->arena),
                *meta = json_make(r->arena, object, "metadata", NULL);
    json_set_str(r->arena, object, "apiVersion", S("allocation.mbcas.io/v1alpha1"));
    json_set_str(r->arena, object, "kind", S("NodeMarket"));
    json_set_str(r->arena, meta, "name", a->node);
    if (node) /* deleted with it */
        json_set(r->arena, meta, S("ownerReferences"),
                 kube_owners(r->arena, &(struct kube_owner){ .resource = &resource_nodes,
                                                             .name = node->name,
                                                             .uid = node->uid }));
    reconcile_call(r,
                   &(struct kube_request){ .verb = KUBE_APPLY,
                                           .resource = &market_node_resource,
                                           .name = a->node,
                                           .body = json_to_str(r->arena, object) },
                   on_created);
    return reconciled();
}
