/* The slo policy in the engine: which latency targets apply to a model, what its replicas report,
 * and one step of slo_core.h per cycle. Private to the engine. */
#ifndef FLYBALL_SATURATION_SLO_H
#define FLYBALL_SATURATION_SLO_H

#include "saturation_gather.h"
#include "slo/slo_core.h"

enum slo_source { SLO_FROM_ENTRY, SLO_FROM_CLASS, SLO_DERIVED };

enum { SLO_DECISIONS = 10 };
struct slo_decision { /* a change of replicas */
    int64_t at_s;     /* wall clock */
    char text[320];   /* "chat-l40s 2->4; up: ..." */
};

struct sat_slo { /* of one model; owned by it */
    struct slo_state state;
    struct slo_config config; /* in force */
    enum slo_source source;   /* of the targets */
    struct slo_output out;    /* of the last step */
    int64_t stepped_ns;       /* mono; 0: never */
    int64_t traffic_ns;       /* of the traffic that the last step used */
    int64_t looked_ns;        /* wall clock of the last step; 0: none */
    int64_t since_ns;         /* mono; when this process began to decide about the model */
    bool restored;            /* a former process had learned about it */
    double ok; /* share of requests within the targets at the last step; NaN: unknown */
    struct slo_decision decisions[SLO_DECISIONS]; /* ring */
    size_t decision_n;                            /* so far */
    struct slo_history *history;                  /* owned; being fetched; NULL: none */
    bool wants_history;                           /* and it has not been asked for yet */
    bool is_due;                                  /* a step is due, whatever the time */
    int64_t saved_at_s;                           /* wall clock of the restored state */
    size_t saved_n;                               /* decisions at the last save */
    int64_t saved_ns;                             /* mono; 0: not by this process */
    double saved_capacity[SLO_VARIANTS_MAX];      /* of a replica, at the last save */
};

/* Whether this policy decides about the model: where it is configured, and by default where the
 * servers count tokens and requests. Once it has decided it stays in charge while metrics are
 * missing. */
bool saturation_slo_applies(const struct gathering *g);

/* Whether the targets of the model's variants are this policy's. */
bool saturation_slo_decides(const struct sat_model *m);

/* Whether the model's traffic is known, so that the short cycle of the policy is useful. */
bool saturation_slo_has_traffic(const struct saturation *s, const struct sat_model *m);

/* Targets of the variants, sorted by name. There is one step per cycle; in between the last answer
 * is repeated. */
struct sat_targets saturation_slo_decide(struct gathering *g);

/* The latency targets in force, for conditions: "TTFT 2.00 s, ITL 0.060 s, goal 99%, from the
 * ConfigMap". */
str saturation_slo_describe(struct arena *a, const struct sat_slo *slo);
/* Mean latencies of the last minute and their targets, for the rule `need`. */
struct decide_latency saturation_slo_latency(const struct gathering *g);

/* NULL is allowed. */
void saturation_slo_free(struct sat_slo *slo);

/* ---- saturation_history.c */
/* Asks Prometheus once for what it knows about the model from before this process, and adds it to the
 * state when it comes. Nothing happens while too many models do the same: call it again. */
void saturation_slo_replay(const struct gathering *g);

/* ---- saturation_saved.c */
/* Whether a former process learned about the model. */
bool saturation_slo_is_saved(const struct gathering *g);
/* Takes over what it learned, and the targets that it derived from that. */
void saturation_slo_restore(const struct gathering *g, struct sat_slo *slo);
/* Notes a change of replicas, and saves what was learned: after a change, or when a capacity has moved by
 * 2 %, else every ten minutes. */
void saturation_slo_save(const struct gathering *g, struct sat_slo *slo);

/* Time between two steps, and between two fetches of the metrics they use. */
int64_t saturation_slo_cycle_ns(const struct saturation *s);

#endif
