/* State of the running feature: every variant by name and by model, with the last decision about
 * it. Private to the feature. */
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

struct sat_model {         /* exists while it has a variant */
    char *key;             /* owned "namespace/model" */
    str ns, id;            /* parts of `key` */
    struct variant *first; /* linked by `next`, sorted by name */
    struct sat_feed feed;
    bool fed; /* the feed is running, which it is on the leader only */
    struct decide_memory memory;
    struct sat_slo *slo; /* owned; NULL: the slo policy never decided about the model */
    int64_t looked_ns;   /* wall clock: when replicas were last gathered */
    bool asleep;         /* no variant has replicas */
    int64_t awake_ns;    /* mono: when it was woken; 0: never seen asleep */
};

/* The answer to our last status write, used while the cache still has the object from before it. */
struct variant_echo {
    char *before_rv, *status; /* owned; NULL: the cache is up to date */
};

/* What the status should show, with the arena that its texts live in. */
struct variant_shown {
    struct sat_view view;
    str reason;         /* of the decision */
    struct arena texts; /* of the view and the reason */
};

struct variant {
    char *key;          /* owned "namespace/name" */
    str ns, name;       /* parts of `key` */
    struct arena arena; /* of the spec */
    struct variant_spec spec;
    str accelerator, instance, uid;
    str found, missing; /* messages for the condition TargetResolved */
    bool deleting;
    struct sat_model *model;        /* NULL: spec.modelID is empty */
    struct variant *next;           /* of the model */
    char *target_key;               /* owned "namespace/kind/name" of its workload */
    struct variant *next_on_target; /* by name, also of other models */

    char *workload_uid; /* owned; of the workload that everything below refers to; NULL: none yet */
    bool decided;       /* by this process, as the leader */
    int desired;        /* the last target; 0: none yet, or zero */
    int64_t decided_ns;
    int seen_current;  /* at the last gathering */
    int64_t steady_ns; /* mono: since when replicas have not changed; 0: not known */
    int seen_ready;
    int64_t waiting_ns; /* mono: since when no further replica became ready; 0: all are ready */
    bool growing;       /* a scale-up was decided and has not arrived */
    int64_t grown_ns;   /* mono: when the last scale-up arrived; 0: never */
    struct variant_shown shown;
    struct variant_echo echo;
    struct scale_history history; /* actuation Scale */
    struct variant_series series; /* shown as metrics */
    int seen_wanted;              /* spec.replicas when its scale was written */
    bool warned_rival;            /* the ActuationConflict event was emitted */
};

struct saturation_options {
    str ns; /* of the controller, with the global ConfigMaps */
    str optimization_map, saturation_map, zero_map, monitor, instance;
    enum decide_rules rules;
    bool slo_by_default; /* instead of need, where the servers count tokens */
    enum decide_mode mode;
    bool zero_by_default; /* WVA_SCALE_TO_ZERO */
    str defaults;         /* keys of the optimization ConfigMap in the environment, JSON */
    int64_t transition_ns;
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
    struct arena arena; /* of the options */
    struct saturation_options o;
    struct controller *variants, *engine;
    struct cache *variant_records, *deployments, *statefulsets, *sets, *pods, *hpas, *namespaces;
    struct cache *scaled_objects, *monitors; /* NULL: the cluster does not have the kind */
    struct cache *optimization, *saturation, *zero, *local_saturation, *local_zero; /* ConfigMaps */
    struct cache *costs, *classes; /* ConfigMaps that only some rules need; else NULL */
    struct timer discovery;

    struct sat_snapshot *snapshot; /* owned */
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
    struct map by_key;  /* of struct variant, owned */
    struct map models;  /* of struct sat_model, owned */
    struct map targets; /* by target_key: the first of the variants that scale it */
    struct saturation_metrics metrics;
};

/* ---- saturation_state.c */

struct variant *saturation_find(const struct saturation *s, str ns, str name);
/* Adds or updates the variant of a record. */
struct variant *saturation_put(struct saturation *s, const struct variant_record *r);
void saturation_remove(struct saturation *s, str ns, str name);
void saturation_state_done(struct saturation *s);

const struct workload_record *saturation_get_workload(const struct saturation *s,
                                                      const struct variant *v);
/* Forgets the last decision if the workload is not the one it was about, even if it has the same
 * name. */
void saturation_bind_workload(struct variant *v, const struct workload_record *w);
bool saturation_is_statefulset(const struct variant *v);
/* Only a Deployment (also meant by an empty kind) or a StatefulSet can be scaled. */
bool saturation_can_scale_kind(const struct variant *v);
/* Of several models' variants that target one workload, the first by name owns it. NULL: `v` does.
 */
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
struct variant_bounds saturation_get_bounds(const struct saturation *s, const struct variant *v);

/* Calls `fn` for every pod of the variant's workload. */
typedef void saturation_pod_fn(void *context, const struct replica_record *pod);
void saturation_each_pod(const struct saturation *s, const struct variant *v, saturation_pod_fn *fn,
                         void *context);

/* The status on the server, which may be newer than the cache. NULL: none. */
const struct json *saturation_get_status(struct arena *a, struct variant *v,
                                         const struct variant_record *r);

/* ---- saturation_options.c */

extern const struct feature_setting saturation_settings[];
int saturation_options_read(struct saturation *s, err_t *e);
/* The value of a flag, else of the environment variable `env` (may be NULL). NULL: unset. */
const char *saturation_options_get(const struct saturation *s, const char *flag, const char *env);

/* ---- saturation_config.c */

/* Opens the caches of ConfigMaps and creates the first snapshot. */
int saturation_config_start(struct saturation *s, err_t *e);
/* Creates the Prometheus client that flags, environment or ConfigMap (`data`) describe, if they
 * changed. */
int saturation_config_connect(struct saturation *s, const struct json *data, err_t *e);
void saturation_config_done(struct saturation *s);

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

/* ---- saturation_probe.c */

void saturation_probe_start(struct saturation *s); /* starts the attempts over */
void saturation_probe_stop(struct saturation *s);
bool saturation_probe_is_done(const struct saturation *s, struct buf *why_not);

/* ---- saturation_engine.c */

struct reconciled saturation_run_cycle(struct reconcile *r);
void saturation_decide_model(struct saturation *s, struct sat_model *m, struct arena *a);

/* ---- saturation_turn.c */

struct reconciled saturation_reconcile(struct reconcile *r);

#endif
