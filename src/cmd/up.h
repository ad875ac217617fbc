/* Shared by the files of `flyball up` only. */
#ifndef FLYBALL_CMD_UP_H
#define FLYBALL_CMD_UP_H

#include "../apiserver/apiserver.h"
#include "../base/metrics.h"
#include "../kube/manager.h"
#include "../net/loop.h"
#include "../testbed/cluster.h"
#include "manifest_apply.h"

#include <pthread.h>

enum { UP_FEATURE_N = 4 }; /* that report decisions: up_events_feature_name() */

struct up_decisions { /* of one feature, since the data directory was created */
    int64_t count, warnings;
    struct buf last;
};

struct up_decision {
    str ns, name, reason, message; /* without control characters */
    str time;                      /* RFC 3339 */
    bool warning;
};

/* The live summary, if standard output is a terminal. */
struct up_screen {
    size_t rows, columns; /* of the terminal, when it was last drawn */
    size_t lines;         /* of the summary, to be overwritten */
    struct {
        char clock[sizeof("00:00:00")];
        size_t feature;
        struct buf text;
    } news[16]; /* a ring of the last decisions */
    size_t news_count;
};

struct up_agent;

struct up {
    /* flags */
    const char *data, *listen, *scenario, *log_level, *clock;
    double speed;
    int64_t for_ns;  /* 0: until a signal */
    int64_t clock_s; /* start of the simulated clock, seconds since 1970; 0: now */
    bool help;

    /* state */
    struct loop *loop;
    struct apiserver *server;
    struct metrics *metrics;
    struct kube *kube, *testbed_kube; /* clients of the controllers and of the simulated cluster */
    struct manager *controllers, *testbed;
    struct http_server *http; /* /metrics */
    struct cache *nodes;
    VEC(struct up_agent *) agents; /* owned */
    size_t agents_stopped;
    struct manifest_apply *apply;
    struct arena arena; /* documents waiting to be applied */
    struct json *definitions, *scenario_documents;
    struct signal_watch *term, *interrupt;
    struct timer ending, summary;
    int64_t started_ns, started_s; /* monotonic real time; wall clock of the cluster */
    int64_t ready_ms;              /* duration of the start */
    char metrics_url[64], cgroup_root[4096], tick[32];
    struct up_decisions decisions[UP_FEATURE_N];
    struct up_screen screen;
    pthread_t thread; /* of the loop */
    int exit_code;
    bool ready, stopping;
};

/* Creates a client of the embedded server; `metrics` NULL: its requests are not counted. */
int up_connect(struct up *up, struct metrics *metrics, struct kube **ret, err_t *e);

/* up_agents.c: up_agents_stop() calls up_on_agents_stopped() at the end */
int up_agents_start(struct up *up, struct manager *m, err_t *e);
void up_agents_stop(struct up *up);
void up_on_agents_stopped(struct up *up);
void up_agents_done(struct up *up);

/* up_events.c */
int up_events_start(struct up *up, struct manager *m, err_t *e);
const char *up_events_feature_name(size_t feature);

/* up_serve.c */
int up_serve(struct up *up, err_t *e);

/* up_scenario.c: adds to the definitions */
int up_scenario_read(struct up *up, err_t *e);

/* up_summary.c */
void up_summary_print_urls(const struct up *up);
void up_summary_start(struct up *up);
void up_summary_add_decision(struct up *up, size_t feature, const struct up_decision *news);
void up_summary_print_totals(struct up *up);
void up_summary_done(struct up *up);

#endif
