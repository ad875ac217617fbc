/* One turn of the schedule's controller: plan, write, note what came of it, plan again. Used by
 * schedule_controller.c only. */
#ifndef FLYBALL_SCHEDULE_TURN_H
#define FLYBALL_SCHEDULE_TURN_H

#include "../kube/grants.h"
#include "schedule_metrics.h"
#include "schedule_targets.h"
#include "schedule_template.h"

struct prom_client;
struct schedule_inquiry;
struct schedule_question;

struct scheduler {
    struct manager *manager;
    struct controller *controller;
    struct cache *schedules, *hpas;
    struct schedule_targets targets;
    struct schedule_metrics metrics;
    struct schedule_defaults defaults;
    struct grants grants;                /* consents to references from other namespaces */
    bool stay_home;                      /* --restrict-cross-namespace: no consent counts */
    bool free_queries;                   /* --smarthpa-allow-free-queries */
    struct timer probe;                  /* asks whether the server is back */
    struct kube_call *probe_call;        /* under way */
    struct schedule_question *questions; /* owned; about kinds that can be scaled */
    struct wall_watch *wallclock;
    struct prom_client *prometheus;     /* NULL: none was named */
    struct schedule_inquiry *inquiries; /* owned; histories being asked for */
};

struct schedule_turn {
    struct scheduler *state;
    struct schedule_tracked *tracked;
    struct schedule_pass pass;
    struct schedule_plan plan;
    struct schedule_target target;
    str query;      /* for Prometheus, as it may be sent; "": none */
    str rv, hpa_rv; /* of the cached objects; hpa_rv "": there is none */
    str workload_api_version, workload_kind, workload_name;
    int64_t boundary; /* that we were waiting for, from the old status; 0: none */
    bool finalizer_sent;
};

struct reconciled schedule_reconcile(struct reconcile *r);

/* May this schedule govern its target? Asks the caches only, and grants only when they changed. */
bool schedule_has_consent(const struct scheduler *s, struct schedule_tracked *tracked);
/* May any schedule of this namespace govern this HPA? */
bool schedule_may_govern(const struct scheduler *s, str from_ns, str hpa_ns, str hpa_name);
struct grant_reference schedule_reference(str from_ns, str hpa_ns, str hpa_name);

/* The next step of a turn, after the pass was told what came of the last one. */
void schedule_turn_step(struct reconcile *r, struct schedule_turn *turn);
/* The turn of this reconcile; NULL when its schedule went away meanwhile. */
struct schedule_turn *schedule_turn_of(struct reconcile *r);
/* The server did not answer: the turn ends, and the key comes again as soon as it does. */
void schedule_turn_await_server(struct reconcile *r, struct schedule_turn *turn,
                                const char *failure);

/* schedule_scale.c: carries out plan.scale, then steps on. */
void schedule_turn_scale(struct reconcile *r, struct schedule_turn *turn);
void schedule_questions_free(struct scheduler *s);

/* schedule_inquiry.c: asks for history when it is time to, and applies what was learned. */
void schedule_turn_advise(struct reconcile *r, struct schedule_turn *turn);
void schedule_inquiries_free(struct scheduler *s);

/* An event about the turn's schedule. */
void schedule_turn_event(struct schedule_turn *turn, const struct schedule_event *event);

#endif
