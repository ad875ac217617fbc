/* One turn of the schedule's controller: plan, write, record the result, plan again. Used only by the files of the
 * controller. */
#ifndef FLYBALL_SCHEDULE_TURN_H
#define FLYBALL_SCHEDULE_TURN_H

#include "../kube/grants.h"
#include "schedule_calendars.h"
#include "schedule_metrics.h"
#include "schedule_targets.h"
#include "schedule_template_core.h"

struct prom_client;

struct scheduler {
    struct manager *manager;
    struct controller *controller;
    struct cache *schedules, *hpas, *scaled; /* scaled: ScaledObjects of KEDA */
    struct schedule_targets targets;
    struct schedule_metrics metrics;
    struct schedule_defaults defaults;
    struct schedule_calendars calendars;
    struct grants grants;    /* consent to references across namespaces */
    bool own_namespace_only; /* --restrict-cross-namespace: consent is ignored */
    bool free_queries;       /* --smarthpa-allow-free-queries */
    struct list discoveries; /* struct schedule_discovery, owned; pending, of workload kinds */
    struct wall_watch *wallclock;
    struct prom_client *prometheus; /* NULL: not configured, or not usable */
    char *prometheus_failure;       /* owned; why it is not usable; NULL: it is */
    struct list queries;            /* struct schedule_query, owned; history queries in progress */
};

struct schedule_turn { /* in the arena of the reconcile; its `turn` */
    struct scheduler *state;
    struct schedule_tracked *tracked;
    struct schedule_pass pass;
    struct schedule_plan plan;
    struct schedule_target target;
    str query;                             /* PromQL that may be sent; "": none */
    str rv, hpa_rv;                        /* versions of the cached objects; hpa_rv "": no HPA */
    const struct resource *patch_resource; /* what is patched: an HPA or a ScaledObject... */
    str patch_name;                        /* ...of this name */
    str workload_api_version, workload_kind, workload_name;
    int64_t boundary; /* nextTransitionTime of the old status, in seconds; 0: none */
    bool finalizer_sent, renamed_sent;
    bool has_written;  /* bounds, in this turn */
    int32_t scaled_to; /* replicas of the scale request in progress */
};

struct reconciled schedule_reconcile(struct reconcile *r);

/* May this schedule manage its target? Reads caches; evaluates grants only if they changed. */
bool schedule_has_consent(const struct scheduler *s, struct schedule_tracked *tracked);
struct grant_reference schedule_grant_reference(str from_ns, str hpa_ns, str hpa_name);

/* The same for the target that this turn writes to, and for schedules of another namespace with that target. */
bool schedule_turn_has_consent(const struct schedule_turn *turn);
bool schedule_turn_can_govern(void *turn, str from_ns);
/* Hides the target from a schedule that may not manage it. */
void schedule_turn_check_consent(struct arena *a, struct schedule_turn *turn);

/* The next step of a turn, after the result of the last one was recorded in the pass. */
void schedule_turn_step(struct reconcile *r, struct schedule_turn *turn);

/* schedule_rivals.c: a ScaledObject and the HPA that it owns are one target under two names. */
bool schedule_is_of_keda(const struct schedule_hpa_record *hpa, str schedule_uid);
const struct schedule_scaled_record *schedule_owner_of(const struct scheduler *s,
                                                       const struct schedule_hpa_record *hpa);
const struct schedule_hpa_record *schedule_hpa_of(const struct scheduler *s,
                                                  const struct record *scaled);
/* The schedules whose target has the other name, of any kind; NULL: there is no other name. */
const struct list *schedule_counterparts(const struct scheduler *s,
                                         const struct schedule_tracked *one);
/* The oldest of them that may manage the target and is older than this one; NULL: none. */
const struct schedule_tracked *schedule_find_counterpart(struct scheduler *s,
                                                         const struct schedule_tracked *one);

/* schedule_scale.c: carries out plan.scale, then continues the turn. */
void schedule_turn_scale(struct reconcile *r, struct schedule_turn *turn);
void schedule_discoveries_free(struct scheduler *s);

/* schedule_renamed.c: deletes an HPA that the template left behind under its old name, then continues the turn. False:
 * there is none. */
bool schedule_turn_delete_renamed(struct reconcile *r, struct schedule_turn *turn);

/* schedule_query.c: queries the history when due, and applies what was learned. */
void schedule_turn_recommend(struct reconcile *r, struct schedule_turn *turn);
void schedule_queries_free(struct scheduler *s);
str schedule_prometheus_problem(const struct scheduler *s, struct arena *a); /* why there is none */

/* Emits an event for the turn's schedule. */
void schedule_turn_event(struct schedule_turn *turn, const struct schedule_event *event);

#endif
