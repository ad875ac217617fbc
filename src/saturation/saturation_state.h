/* State of the running feature: every variant by name and by model, with the last decision about
 * it. Private to the feature. */
#ifndef FLYBALL_SATURATION_STATE_H
#define FLYBALL_SATURATION_STATE_H

#include "../base/labels.h"
#include "../base/list.h"
#include "../base/random.h"
#include "../kube/keep.h"
#include "../kube/manager.h"
#include "../kube/own_write.h"
#include "collect/collect.h"
#include "config/snapshot.h"
#include "objects/saturation_spec.h"
#include "saturation_metrics.h"
#include "saturation_records.h"
#include "wva/decide_core.h"
#include "wva/dispatch_core.h"
#include "wva/token_core.h"

struct sat_workload {     /* a workload that variants scale; exists while one does */
    struct list variants; /* struct variant, by `of_target`, sorted by name; also of other models */
    struct sat_kind *kind;   /* neither Deployment nor StatefulSet: see saturation_targets.c */
    struct sat_scale *scale; /* owned; of such a kind; NULL: not known yet */
    char key[];              /* "namespace/kind/name" */
};

/* What saturation_wake.c knows about a model: does it sleep, and do requests wait for it? Times are
 * of the loop's monotonic clock unless noted; 0: never. */
struct sat_sleep {
    bool asleep;           /* no variant has replicas */
    bool watched;          /* the queue of the gateway is polled */
    int64_t known_ns;      /* when this process first decided about it */
    int64_t awake_ns;      /* when it was woken */
    int64_t began_wall_ns; /* wall clock: since when it sleeps */
    int64_t idle_ns;       /* since when nothing but the gateway's queue keeps it from sleeping */
    int64_t queued_ns;     /* when requests were last seen in the queue */
    int64_t polled_ns;     /* when the queue was last read with success */
};

/* A start from zero: the variant has at least `to` replicas until one was ready for a retention
 * period, so that no other rule takes them away before a request arrived. */
struct sat_start {
    int to; /* replicas; 0: no start */
    int64_t at_ns, ready_ns;
    bool seen_up;         /* its workload has had replicas since */
    bool written;         /* flyball wrote the first replicas, */
    uint64_t written_rv;  /* based on this version of the workload (its hash) */
    bool blocked;         /* WakeBlocked was reported */
    bool has_slept;       /* also before this process started, by the status */
    const char *source;   /* of the demand: gateway, prometheus or annotation */
    int64_t asked_ns;     /* wall clock: the annotation flyball.dev/wake; 0: none */
    uint64_t refused;     /* sum of a text of it that is no time, which was reported; 0: none */
    int64_t last_took_ns; /* how long a replica took to become ready; 0: not seen */
    int64_t failed_ns;    /* when a pod could not start; 0: never */
};

struct sat_model {        /* exists while it has a variant */
    char *key;            /* owned "namespace/model" */
    str ns, id;           /* parts of `key` */
    struct list variants; /* struct variant, by `of_model`, sorted by name */
    struct sat_feed feed;
    bool fed; /* the feed is running, which it is on the leader only */
    struct decide_memory memory;
    struct sat_slo *slo; /* owned; NULL: the slo policy never decided about the model */
    int64_t looked_ns;   /* wall clock: when replicas were last gathered */
    struct sat_sleep sleep;
    size_t strays;   /* pods that report the model and belong to no variant of it */
    double priority; /* of its entry, while a limiter is on; 0: not known yet */
    struct sat_token_turn
        *turn; /* during a cycle with a limiter: see saturation_share.h; else NULL */
};

/* What the status should show, with the arena that its texts live in. */
struct variant_shown {
    struct sat_view view;
    str reason;         /* of the decision */
    struct arena texts; /* of the view and the reason */
};

/* What the last decision about a variant was based on, for saturation_gauges.c. Numbers may be NaN: unknown. */
struct variant_basis {
    bool known, up, by_tokens;
    const char *freshness; /* fresh, stale, unavailable, missing */
    double utilization, required, spare, tokens_used, tokens;
};

struct variant {
    char *key;          /* owned "namespace/name" */
    str ns, name;       /* parts of `key` */
    struct arena arena; /* of the spec */
    struct variant_spec spec;
    str accelerator, instance, uid;
    str found, missing; /* messages for the condition TargetResolved */
    bool deleting;
    struct sat_model *model; /* NULL: spec.modelID is empty */
    struct list_item of_model;
    struct sat_workload *target; /* its workload; NULL: none that can be scaled */
    struct list_item of_target;

    char *workload_uid; /* owned; of the workload that everything below refers to; NULL: none yet */
    bool decided;       /* by this process, as the leader */
    int desired;        /* the last target; 0: none yet, or zero */
    int64_t decided_ns;
    int seen_current;  /* at the last gathering */
    int64_t steady_ns; /* mono: since when replicas have not changed; 0: not known */
    int seen_ready;
    int seen_reporting;           /* replicas with a fresh sample; 0: the next two are unknown */
    double seen_kv, seen_waiting; /* mean use of the KV cache (0..1), sum of the queues */
    int64_t waiting_ns; /* mono: since when no further replica became ready; 0: all are ready */
    bool growing;       /* a scale-up was decided and has not arrived */
    int64_t grown_ns;   /* mono: when the last scale-up arrived; 0: never */
    struct variant_shown shown;
    struct own_write status;        /* JSON */
    struct scale_history history;   /* actuation Scale */
    struct variant_series series;   /* shown as metrics */
    int seen_wanted;                /* spec.replicas when its scale was written */
    bool warned_rival;              /* the ActuationConflict event was emitted */
    int limited_wants, limited_has; /* the last cut by a limiter; 0: none */
    int64_t limited_ns;             /* mono: when */
    bool was_limited;               /* also before this process started, by the status */
    struct variant_basis basis;
    struct sat_start start; /* from zero */
    int64_t claimed;        /* devices that the claims of a pod ask for */
    bool sglang;            /* the pods run SGLang, by the template */
    char *selects; /* owned; accelerator that the template selects, "": none; NULL: not read yet */
    bool unresolved;       /* AcceleratorNotResolved was reported */
    char *selects_rv;      /* owned; version of the workload that it was read from */
    uint64_t template_sum; /* of the pod template, for the token analyzer; 0: not read yet */
    char *template_rv;     /* owned; version of the workload that it was read from */
    int64_t capacity_saved, capacity_saved_ns; /* tokens per replica, and mono when saved */
    int64_t warned_grace;          /* the grace period that ShortGracePeriod reported; 0: none */
    int64_t shrinks_ns, marked_ns; /* mono: since when its target is lower; last marks of pods */
    const struct resource
        *scaler; /* that describes it by annotations; NULL: a VariantAutoscaling */
};

enum sat_metric_names { METRICS_AUTO, METRICS_SEED, METRICS_NINE };
enum sat_analyzer { ANALYZER_AUTO, ANALYZER_PERCENTAGE, ANALYZER_TOKEN };

struct saturation_options {
    str ns; /* of the controller, with the global ConfigMaps */
    str optimization_map, saturation_map, zero_map, monitor, instance;
    enum decide_rules rules;
    bool slo_by_default; /* instead of need, where the servers count tokens */
    enum decide_mode mode;
    enum sat_analyzer analyzer;    /* AUTO: as the entry of the model selects */
    enum sat_metric_names metrics; /* AUTO: those of 0.9 too, if it is in use */
    bool zero_by_default;          /* WVA_SCALE_TO_ZERO */
    bool limited;                  /* WVA_LIMITED_MODE */
    bool quota_alone;              /* a quota switches the inventory off, as in WVA */
    bool ignores_resource_quota;
    bool dra;                           /* devices of ResourceSlices are accelerators too */
    struct labels_selector node_labels; /* WVA_NODE_SELECTOR: of nodes that count */
    str defaults; /* keys of the optimization ConfigMap in the environment, JSON */
    int64_t transition_ns;
    bool deletion_cost;       /* pods are marked before a scale-down */
    double drain_max;         /* requests of those pods; negative: any number */
    int64_t drain_timeout_ns; /* then they are removed in any case */
    int64_t wake_ns; /* between two looks at the gateway's queue; 0: models are not woken */
};

/* The startup check of Prometheus: see saturation_probe.c. */
struct sat_probe {
    bool due; /* the feature does not start before it succeeded */
    int attempts_left;
    int64_t pause_ns; /* the next pause, before jitter */
    struct random random;
    struct timer pause;
    struct prom_call *call; /* NULL: no query is running */
};

struct saturation {
    struct manager *manager;
    const struct reconcile *cycle; /* the turn of the engine that is deciding; NULL: none */
    struct arena arena;            /* of the options */
    struct saturation_options o;
    struct controller *variants, *engine;
    struct cache *variant_records, *deployments, *statefulsets, *sets, *pods, *hpas, *namespaces;
    struct cache *scaled_objects, *monitors; /* NULL: the cluster does not have the kind */
    struct cache *optimization, *saturation, *zero, *local_saturation, *local_zero; /* ConfigMaps */
    struct cache *local_later;     /* the 0.9 name of local_saturation; NULL: not watched */
    struct cache *costs, *classes; /* ConfigMaps that only some rules need; else NULL */
    struct timer discovery;
    struct list kinds; /* struct sat_kind, owned: other kinds of workloads */

    struct sat_snapshot *snapshot; /* owned */
    struct map changed_locals;     /* namespaces whose ConfigMaps changed: owned text to itself */
    struct timer locals_timer;     /* puts them into the snapshot */
    int64_t locals_after_ns;       /* not before; mono */
    /* owned; the last good data, JSON */
    char *optimization_text, *saturation_text, *zero_text, *costs_text, *classes_text;
    struct keep *keep;        /* owned; last good entries of all ConfigMaps, across restarts */
    uint64_t kept_generation; /* generation of the snapshot that `keep` reflects */
    unsigned
        fallbacks_in_force; /* bits: ConfigMaps that are missing and replaced by kept entries */
    struct metric_family *fallbacks;
    char *connection; /* owned; settings that the Prometheus client was created with */
    char *no_metrics; /* owned; why metrics cannot be fetched; NULL: they can */
    struct sat_collector collector;
    struct sat_probe probe;
    size_t replaying;      /* models whose history is being fetched */
    struct map by_key;     /* of struct variant, owned */
    bool ignores_variants; /* some records have no variant: there were too many */
    uint64_t problems;     /* of specs since the last cycle; few of them are logged */
    struct map models;     /* of struct sat_model, owned */
    struct map targets;    /* of struct sat_workload, owned */
    struct saturation_metrics metrics;
    struct sat_token_store tokens;          /* what the token analyzer learned */
    struct cache *nodes, *quotas;           /* NULL: no limiter needed them yet */
    char *only_type;                        /* owned; the type of all accelerators; NULL: several */
    struct sat_dra *dra;                    /* owned: see saturation_dra.c; NULL: not used yet */
    bool inventory_warned;                  /* InventoryUnknown was reported */
    struct waker *waker;                    /* owned: see saturation_wake.c */
    struct doors *doors;                    /* owned; NULL: closed */
    struct config_warning *config_warnings; /* owned; of ConfigMaps, until a leader emits them */
    size_t config_warning_n;
    struct map advised; /* scalers that were checked: see saturation_advice.c */
    bool nine;          /* names of WVA 0.9 are in use */
    bool gauges;        /* its metrics are registered */
    bool serving;       /* the pod has the label that Services select */
};

/* ---- saturation_state.c */

/* More are ignored, and the first of them is logged: a variant takes about 3 KB beside its record, and the operator
 * must stay within its 128 MiB whatever an API server sends. */
enum { SAT_VARIANTS_MAX = 10000 };

struct variant *saturation_find(const struct saturation *s, str ns, str name);
/* Adds or updates the variant of a record. NULL: there are SAT_VARIANTS_MAX others, and it is ignored. */
struct variant *saturation_put(struct saturation *s, const struct variant_record *r);
/* Once per cycle: logs how many invalid values were not logged one by one. */
void saturation_report_problems(struct saturation *s);
void saturation_remove(struct saturation *s, str ns, str name);
/* After a removal: adds one of the variants that were ignored. NULL: none is left, or there is no room. */
struct variant *saturation_take_ignored(struct saturation *s);
void saturation_state_done(struct saturation *s);

const struct workload_record *saturation_get_workload(const struct saturation *s,
                                                      const struct variant *v);
/* The kind of its workload. */
const struct resource *saturation_get_resource(const struct saturation *s, const struct variant *v);
/* Forgets the last decision if the workload is not the one it was about, even if it has the same
 * name. */
void saturation_bind_workload(struct variant *v, const struct workload_record *w);
bool saturation_is_statefulset(const struct variant *v);
/* A Deployment (also meant by an empty kind) or a StatefulSet. */
bool saturation_is_built_in(const struct variant *v);
str saturation_kind_name(const struct variant *v);
int64_t saturation_count_ready(const struct saturation *s, const struct variant *v,
                               const struct workload_record *w);
/* An accelerator's name is at least so long; a variant with a shorter one takes no part in decisions. */
enum { SAT_ACCELERATOR_MIN = 2 };
/* A variant of another model that targets the same workload and could scale it: then neither is scaled.
 * NULL: none. */
const struct variant *saturation_find_rival(const struct saturation *s, const struct variant *v);
/* Whether the namespace is excluded by annotation. Only the status is then written, to report it. */
bool saturation_is_excluded(const struct saturation *s, const struct variant *v);
/* Whether this controller manages the variant; `ret_why` is the reason if not. */
bool saturation_is_managed(const struct saturation *s, const struct variant *v, str *ret_why);

struct variant_bounds {
    int min, max; /* max 0: none */
    bool hpa;     /* an HPA or ScaledObject targets the workload */
    double tolerance_up, tolerance_down;
    bool
        keeps_min; /* also against scale to zero: it is explicit, or the HPA would not go to zero */
};
/* Whether an HPA or ScaledObject scales the workload of the variant. */
bool saturation_is_bound(const struct bounds_record *r, const struct variant *v);
struct variant_bounds saturation_get_bounds(const struct saturation *s, const struct variant *v);

/* Calls `fn` for every pod of the variant's workload. */
typedef void saturation_pod_fn(void *context, const struct replica_record *pod);
void saturation_each_pod(const struct saturation *s, const struct variant *v, saturation_pod_fn *fn,
                         void *context);

/* The status on the server, which may be newer than the cache. NULL: none. */
const struct json *saturation_get_status(struct arena *a, struct variant *v,
                                         const struct variant_record *r);

/* Emits an event on the object that describes the variant. */
void saturation_emit(const struct saturation *s, const struct variant *v, bool warning,
                     const char *reason, str message);

/* ---- saturation_options.c */

extern const struct feature_setting saturation_settings[];
int saturation_options_read(struct saturation *s, err_t *e);
/* The value of a flag, else of the environment variable `env` (may be NULL). NULL: unset. */
const char *saturation_options_get(const struct saturation *s, const char *flag, const char *env);

/* ---- saturation_prometheus.c */

/* Creates the Prometheus client that flags, environment or ConfigMap (`data`) describe, if they
 * changed. */
int saturation_prometheus_connect(struct saturation *s, const struct json *data, err_t *e);

/* ---- saturation_config.c */

/* Opens the caches of ConfigMaps and creates the first snapshot. */
int saturation_config_start(struct saturation *s, err_t *e);
void saturation_config_done(struct saturation *s);

/* A Warning event on the ConfigMap with the thresholds, when a leader emits it. */
void saturation_config_warn(struct saturation *s, const char *reason, str message);
/* Emits the events about ConfigMaps that are waiting; on the leader. */
void saturation_config_emit(struct saturation *s);
/* Called when the kept entries were read; what the ConfigMaps have overrides them. */
void saturation_config_restore(struct saturation *s);
#define SAT_COSTS_MAP "accelerator-unit-costs"
#define SAT_CLASSES_MAP "service-classes-config"

/* ---- saturation_keep.c */

int saturation_keep_start(struct saturation *s, err_t *e);
/* The last good entries of a global ConfigMap, as its data in JSON; "": none. */
str saturation_keep_read(const struct saturation *s, struct arena *a, str map);
void saturation_keep_read_locals(const struct saturation *s, struct arena *a,
                                 struct sat_sources *out);
void saturation_keep_update(struct saturation *s); /* stores what is good now; leader only */

/* ---- saturation_want.c: targets of variants without a VariantAutoscaling, across restarts */

void saturation_want_restore(const struct saturation *s, struct variant *v);
void saturation_want_save(const struct saturation *s, const struct variant *v, str reason);
void saturation_want_forget(const struct saturation *s, str ns, str name);

/* ---- saturation_probe.c */

void saturation_probe_start(struct saturation *s); /* starts the attempts over */
void saturation_probe_stop(struct saturation *s);
bool saturation_probe_is_done(const struct saturation *s, struct buf *why_not);

/* ---- saturation_engine.c */

struct reconciled saturation_run_cycle(struct reconcile *r);

/* ---- saturation_turn.c */

struct reconciled saturation_reconcile(struct reconcile *r);
/* A write to the scale subresource failed: emits an event and fails the turn, unless the workload is gone. */
void saturation_fail_scale(struct reconcile *r, struct variant *v, const struct kube_reply *reply);

#endif
