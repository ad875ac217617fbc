/* What the feature keeps while it runs: every variant under its name and under its model, with the last
 * decision about it. Used inside the feature only. */
#ifndef FLYBALL_SATURATION_STATE_H
#define FLYBALL_SATURATION_STATE_H

#include "../base/random.h"
#include "../kube/keep.h"
#include "../kube/manager.h"
#include "collect.h"
#include "decide_core.h"
#include "dispatch_core.h"
#include "saturation_metrics.h"
#include "saturation_records.h"
#include "saturation_spec.h"
#include "snapshot.h"

struct variant;

struct sat_model {         /* lives while it has a variant */
    char *key;             /* owned "namespace/model" */
    str ns, id;            /* parts of `key` */
    struct variant *first; /* by name */
    struct sat_feed feed;
    bool fed; /* the feed was started: we lead */
    struct decide_memory memory;
    struct sat_slo *slo; /* owned; NULL: the policy has not decided about it */
    int64_t looked_ns;   /* wall clock: when replicas were last gathered */
    bool asleep;         /* no variant has replicas */
    int64_t awake_ns;    /* mono: since it was woken; 0: it was not seen asleep */
};

/* What came back from our last write of the status, while the cache still shows the state before it. */
struct variant_echo {
    char *before_rv, *status; /* owned; NULL: nothing */
};

/* What the status should say, with the words that belong to it. */
struct variant_shown {
    struct sat_view view;
    str reason;         /* of the decision */
    struct arena texts; /* of these texts */
};

struct variant {
    char *key;          /* owned "namespace/name" */
    str ns, name;       /* parts of `key` */
    struct arena arena; /* of the spec */
    struct variant_spec spec;
    str accelerator, instance, uid;
    str found, missing; /* what to say of its workload */
    bool deleting;
    struct sat_model *model;        /* NULL: it names none */
    struct variant *next;           /* of the model */
    char *target_key;               /* owned "namespace/kind/name" of its workload */
    struct variant *next_on_target; /* by name, also of other models */

    char *workload_uid; /* owned; of the workload that all below is about; NULL: none yet */
    bool decided;       /* since we lead */
    int desired;        /* the last target; 0: none yet, or zero */
    int64_t decided_ns;
    int seen_current;  /* at the last look */
    int64_t steady_ns; /* mono: since when nothing moves; 0: it moves */
    int seen_ready;
    int64_t waiting_ns; /* mono: since when no replica has become ready that should; 0: all are */
    bool growing;       /* a growth was decided on and has not arrived */
    int64_t grown_ns;   /* mono: when the last one had; 0: never */
    struct variant_shown shown;
    struct variant_echo echo;
    struct scale_history history; /* actuation Scale */
    struct variant_series series; /* shown as metrics */
    int seen_wanted;              /* spec.replicas when its scale was written */
    bool warned_rival;            /* told that an HPA has the workload too */
};

struct saturation_options {
    str ns; /* ours: where the global ConfigMaps are */
    str optimization_map, saturation_map, zero_map, monitor, instance;
    enum decide_rules rules;
    bool slo_by_default; /* in place of `need`, where the servers count what it wants to know */
    enum decide_mode mode;
    bool zero_by_default; /* WVA_SCALE_TO_ZERO */
    str defaults;         /* keys of the optimization ConfigMap in the environment, JSON */
    int64_t transition_ns;
};

/* The start's question to Prometheus: see saturation_probe.c. */
struct sat_probe {
    bool due; /* nothing begins before it was answered */
    int attempts_left;
    int64_t pause_ns; /* the next one, before jitter */
    struct random random;
    struct timer pause;
    struct prom_call *call; /* NULL: none under way */
};

struct saturation {
    struct manager *manager;
    struct arena arena; /* of the options */
    struct saturation_options o;
    struct controller *variants, *engine;
    struct cache *variant_records, *deployments, *statefulsets, *sets, *pods, *hpas, *namespaces;
    struct cache *scaled_objects, *monitors; /* NULL: there is no such kind */
    struct cache *optimization, *saturation, *zero, *local_saturation, *local_zero; /* ConfigMaps */
    struct cache *costs, *classes; /* likewise, with an optimizer; else NULL */
    struct timer discovery;

    struct sat_snapshot *snapshot; /* owned */
    /* owned; the last good data, JSON */
    char *optimization_text, *saturation_text, *zero_text, *costs_text, *classes_text;
    struct keep *keep;           /* owned; the last good entries of all ConfigMaps */
    uint64_t kept_generation;    /* generation of the snapshot that it knows */
    unsigned fallbacks_in_force; /* bits: ConfigMaps that are gone */
    struct metric_family *fallbacks;
    char *connection; /* owned; what the client of Prometheus was made of */
    char *no_metrics; /* owned; why there can be none; NULL: there can */
    struct sat_collector collector;
    struct sat_probe probe;
    struct map by_key;  /* of struct variant, owned */
    struct map models;  /* of struct sat_model, owned */
    struct map targets; /* by target_key: the first of the variants that scale it */
    struct saturation_metrics metrics;
};

/* ---- saturation_state.c */

struct variant *saturation_find(const struct saturation *s, str ns, str name);
/* Takes a record's present state over. */
struct variant *saturation_put(struct saturation *s, const struct variant_record *r);
void saturation_remove(struct saturation *s, str ns, str name);
void saturation_state_done(struct saturation *s);

const struct workload_record *saturation_get_workload(const struct saturation *s,
                                                      const struct variant *v);
/* Another workload than before, be it of the same name: what was decided was about the other one. */
void saturation_bind_workload(struct variant *v, const struct workload_record *w);
bool saturation_is_statefulset(const struct variant *v);
/* Deployment, which an empty kind means too, or StatefulSet; nothing is scaled of any other kind. */
bool saturation_can_scale_kind(const struct variant *v);
/* Of variants of several models with one workload, the first by name has it. NULL: `v` has it. */
const struct variant *saturation_find_rival(const struct saturation *s, const struct variant *v);
/* Is its namespace left out by annotation? The variant says so, and nothing else is done. */
bool saturation_is_excluded(const struct saturation *s, const struct variant *v);
/* Is it ours to manage? `ret_why` says why not. */
bool saturation_is_managed(const struct saturation *s, const struct variant *v, str *ret_why);

struct variant_bounds {
    int min, max; /* max 0: none */
    bool hpa;     /* an HPA or ScaledObject has the workload */
    double tolerance_up, tolerance_down;
    bool keeps_min; /* against zero too: it was asked for, or who follows would not go there */
};
struct variant_bounds saturation_get_bounds(const struct saturation *s, const struct variant *v);

/* The variant's pods, as sat_replica with its samples; those that are not ready are left out. */
typedef void saturation_pod_fn(void *context, const struct replica_record *pod);
void saturation_each_pod(const struct saturation *s, const struct variant *v, saturation_pod_fn *fn,
                         void *context);

/* The status as the server has it, ahead of the cache if need be. NULL: none. */
const struct json *saturation_get_status(struct arena *a, struct variant *v,
                                         const struct variant_record *r);

/* ---- saturation_config.c */

/* Keeps the caches of ConfigMaps and makes snapshots of them. */
int saturation_config_start(struct saturation *s, err_t *e);
/* A client for Prometheus, if there is to be one: from flags, environment or ConfigMap. */
int saturation_config_connect(struct saturation *s, const struct json *data, err_t *e);
int saturation_read_options(struct saturation *s, err_t *e);
const char *saturation_get_setting(const struct saturation *s, const char *flag, const char *env);
void saturation_config_done(struct saturation *s);
extern const struct feature_setting saturation_settings[];

/* The last good entries were read: they count below what the ConfigMaps say. */
void saturation_config_restore(struct saturation *s);
#define SAT_COSTS_MAP "accelerator-unit-costs"
#define SAT_CLASSES_MAP "service-classes-config"

/* ---- saturation_keep.c */

int saturation_keep_start(struct saturation *s, err_t *e);
/* A global ConfigMap's last good entries as its data, JSON; "": none. */
str saturation_keep_read(const struct saturation *s, struct arena *a, str map);
void saturation_keep_read_locals(const struct saturation *s, struct arena *a,
                                 struct sat_sources *out);
void saturation_keep_update(struct saturation *s); /* what is good now; of the leader */

/* ---- saturation_probe.c */

void saturation_probe_start(
    struct saturation *s); /* of the client that there is, from the beginning */
void saturation_probe_stop(struct saturation *s);
bool saturation_probe_is_done(const struct saturation *s, struct buf *why_not);

/* ---- saturation_engine.c */

struct reconciled saturation_run_cycle(struct reconcile *r);
void saturation_decide_model(struct saturation *s, struct sat_model *m, struct arena *a);

/* ---- saturation_turn.c */

struct reconciled saturation_reconcile(struct reconcile *r);

#endif
