/* Metrics of each model, fetched in the background from Prometheus or from the /metrics endpoints
 * of the pods. A decision reads what the feed of the model holds and never waits for it. Feeds are
 * independent: one that fails or is slow delays no other. */
#ifndef FLYBALL_SATURATION_COLLECT_H
#define FLYBALL_SATURATION_COLLECT_H

#include "../../base/list.h"
#include "../../base/map.h"
#include "../../kube/tracer.h"
#include "../../net/loop.h"
#include "../../prom/query.h"
#include "../objects/status_core.h"
#include "../slo/traffic_core.h"

/* Counters of a server since it started, summed over its series. */
struct sat_counters {
    double requests, input_sum, input_count, output_sum, output_count;
    double ttft_sum, ttft_count, itl_sum, itl_count;
    double prompt_tokens, generation_tokens, token_itl_sum, token_itl_count;
    double prefix_hits, prefix_queries;
    double running; /* gauge */
    struct sat_traffic_histogram ttft, tpot;
};

struct sat_sample {   /* of one pod; one allocation, because decisions read many of them */
    double kv, queue; /* NaN: not reported */
    bool partial;     /* one of several engines in the pod did not report */
    int64_t at_ns;    /* mono clock of the loop */
    struct sat_counters *counters; /* owned; from a scrape; NULL: none */
    struct sat_traffic_replica traffic;
    char pod[];
};

struct sat_feed;
struct sat_fetch;

/* Calls collect_add_pod() for each pod to scrape. */
typedef void collect_pods_fn(void *context, struct sat_feed *feed);

struct sat_collector {
    struct loop *loop;
    struct prom_client *prometheus; /* NULL: scrape the pods */
    struct tracer *tracer;          /* NULL: none */
    bool grouped;                   /* ask Prometheus about many models in one query */
    bool load_matters;    /* the optimizer needs the load, even without KV cache and queue */
    bool traffic_matters; /* the slo policy needs traffic */
    collect_pods_fn *pods;
    void (*fetched)(void *context, struct sat_feed *feed, bool first); /* a fetch ended */
    /* A query was answered or failed; `kind` as in WVA's metrics. May be NULL. */
    void (*observed)(void *context, const char *kind, double seconds, const err_t *failure);
    void *context;

    struct list due;     /* feeds to fetch together: see collect_group.c */
    struct timer gather; /* then */
    int64_t epoch_ns;    /* mono: grouped fetches have the same phase; 0: none began */
    size_t group_max;    /* models in one query; 0: the default */
    int64_t grow_ns;     /* mono: when group_max, which was lowered, is raised again */
};

struct sat_feed {
    struct sat_collector *collector;
    str ns, model;        /* borrowed from the owner */
    int64_t interval_ns;  /* between fetches */
    bool sglang;          /* a variant runs SGLang, whose metrics have other names */
    int64_t retention_ns; /* period for which requests are counted; 0: do not count */

    struct map samples; /* by pod, of struct sat_sample, owned */
    int64_t fetched_ns; /* when the last good fetch began; 0: never */
    char *failure;      /* owned; error of the last fetch; NULL: it succeeded */
    bool asked;         /* at least one fetch has ended */
    char *other_model;  /* owned; a model that its pods report instead; NULL: none was seen */
    struct sat_load_view load;
    int64_t load_ns; /* when it was measured; 0: never */
    struct sat_traffic traffic;
    int64_t traffic_ns; /* likewise */
    bool rates_follow;  /* servers that count tokens were scraped once: no difference yet */
    bool requests_known;
    double requests;
    int64_t since_ns, busy_ns; /* scrapes, mono: first scrape; last time requests were seen */

    unsigned hung; /* Prometheus: one bit per query that timed out last time */
    bool alone;    /* its own queries failed after those of its group: not grouped again before
                      they succeed */
    struct timer timer;
    struct list_item due;    /* in collector->due */
    struct sat_fetch *fetch; /* in progress; NULL: none */
};

/* Fetches at once; later fetches of many feeds are spread over the interval. */
void collect_start(struct sat_feed *feed, struct sat_collector *collector);
void collect_stop(struct sat_feed *feed); /* frees all samples */
void collect_set_interval(struct sat_feed *feed,
                          int64_t interval_ns); /* a shorter one takes effect at once */

/* Adds a pod to scrape; called by collect_pods_fn. */
void collect_add_pod(struct sat_feed *feed, str pod, str ip, int64_t port);

const struct sat_sample *collect_get_sample(const struct sat_feed *feed, str pod); /* NULL: none */

/* ---- shared by the files collect_*.c */

enum { COLLECT_NAME_MAX = 96 };
/* The name that a metric of vLLM ("vllm:...") has in SGLang, or the other way round; NULL: it is of neither. */
const char *collect_translate(str metric, bool to_sglang, char out[static COLLECT_NAME_MAX]);

struct sat_fetch {
    struct sat_feed *feed;
    struct sat_group *group; /* NULL: none */
    bool apart;              /* a query of the group failed: it was sent for this model alone, */
    bool answered_apart;     /* and answered */
    int64_t begun_ns;        /* loop's mono clock */
    struct tracer_span span;
    size_t left;        /* answers still to come, plus one while queries are being sent */
    struct map samples; /* being collected */
    struct sat_load_view load;
    struct sat_traffic traffic;
    bool requests_known;
    double requests;
    char *failure;                  /* owned; the first error that matters */
    struct collect_query *queries;  /* Prometheus */
    struct collect_scrape *scrapes; /* pods */
    size_t reached;                 /* pods that answered */
};

struct sat_sample *collect_add_sample(struct map *samples, str pod, int64_t at_ns);
void collect_fail(struct sat_fetch *q, const char *failure); /* copied; the first one is kept */
void collect_finish_answer(struct sat_fetch *q); /* one less to come; the last one ends the fetch */

/* A fetch that is open until collect_finish_answer() is called once more than `left` was raised. */
struct sat_fetch *collect_open_fetch(struct sat_feed *feed);
void collect_start_fetch(struct sat_feed *feed); /* of this feed alone */

void collect_join_group(struct sat_feed *feed, int64_t delay_ns); /* fetches with others after it */
void collect_leave_group(struct sat_fetch *q);

void collect_ask_prometheus(struct sat_fetch *q);
void collect_cancel_queries(struct sat_fetch *q);
void collect_ask_pods(struct sat_fetch *q);
void collect_sum_pods(struct sat_fetch *q); /* all have answered: sum up */
void collect_cancel_scrapes(struct sat_fetch *q);

#endif
