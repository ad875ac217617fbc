/* One turn of the schedule's controller: plan, write, record the result, plan again. Used only by the files of the
 * controller. */
#ifndef FLYBALL_SCHEDULE_TURN_H
#define FLYBALL_SCHEDULE_TURN_H

#include "../kube/grants.h"
#include "schedule_metrics.h"
#include "schedule_targets.h"
#include "schedule_template_core.h"

struct prom_client;
struct schedule_query;
struct schedule_discovery;

struct scheduler {
    struct manager *manager;
    struct controller *controller;
    struct cache *schedules, *hpas;
    struct schedule_targets targets;
    struct schedule_metrics metrics;
    struct schedule_defaults defaults;
    struct grants grants;                   /* consent to references across namespaces */
    bool own_namespace_only;                /* --restrict-cross-namespace: consent is ignored */
    bool free_queries;                      /* --smarthpa-allow-free-queries */
    struct timer probe;                     /* next probe of an unreachable API server */
    struct kube_call *probe_call;           /* the probe in progress; NULL: none */
    struct schedule_discovery *discoveries; /* owned; pending, of workload kinds */
    struct wall_watch *wallclock;
    struct prom_client *prometheus; /* NULL: not configured */
    struct schedule_query *queries; /* owned; history queries in progress */
};

struct schedule_turn {
    struct scheduler *state;
    struct schedule_tracked *tracked;
    struct schedule_pass pass;
    struct schedule_plan plan;
    struct schedule_target target;
    str query;      /* PromQL that may be sent; "": none */
    str rv, hpa_rv; /* versions of the cached objects; hpa_rv "": no HPA */
    str workload_api_version, workload_kind, workload_name;
    int64_t boundary; /* nextTransitionTime of the old status, in seconds; 0: none */
    bool finalizer_sent;
};

struct reconciled schedule_reconcile(struct reconcile *r);

/* May this schedule manage its target? Reads caches; evaluates grants only if they changed. */
bool schedule_has_consent(const struct scheduler *s, struct schedule_tracked *tracked);
/* May schedules of this namespace manage this HPA? */
bool schedule_can_govern(const struct scheduler *s, str from_ns, str hpa_ns, str hpa_name);
struct grant_reference schedule_grant_reference(str from_ns, str hpa_ns, str hpa_name);

/* The next step of a turn, after the result of the last one was recorded in the pass. */
void schedule_turn_step(struct reconcile *r, struct schedule_turn *turn);
/* The turn of this reconcile; NULL if its schedule was deleted in the meantime. */
struct schedule_turn *schedule_turn_of(struct reconcile *r);
/* Ends the turn because the API server is unreachable; the key is enqueued when a probe succeeds. */
void schedule_turn_wait_for_server(struct reconcile *r, struct schedule_turn *turn,
                                   const char *failure);

/* schedule_scale.c: carries out plan.scale, then continues the turn. */
void schedule_turn_scale(struct reconcile *r, struct schedule_turn *turn);
void schedule_discoveries_free(struct scheduler *s);

/* schedule_query.c: queries the history when due, and applies what was learned. */
void schedule_turn_recommend(struct reconcile *r, struct schedule_turn *turn);
void schedule_queries_free(struct scheduler *s);

/* Emits an event for the turn's schedule. */
void schedule_turn_event(struct schedule_turn *turn, const struct schedule_event *event);

#endif
