/* What the files of `flyball up` share; nobody else includes this. */
#ifndef FLYBALL_CMD_UP_H
#define FLYBALL_CMD_UP_H

#include "../apiserver/apiserver.h"
#include "../base/metrics.h"
#include "../kube/manager.h"
#include "../net/loop.h"
#include "../testbed/cluster.h"
#include "apply.h"

#include <pthread.h>

enum { UP_FEATURE_N = 4 }; /* that tell of decisions: up_feature_name() */

struct up_decisions { /* of one feature, since the data directory was new */
    int64_t count, warnings;
    struct buf last;
};

struct up_news {
    str ns, name, reason, message; /* plain text: nothing in it steers a terminal */
    str time;                      /* RFC 3339 */
    bool warning;
};

/* The live summary, where standard output is a terminal. */
struct up_screen {
    size_t rows, columns; /* of the terminal, when it was drawn last */
    size_t lines;         /* of the summary, to be drawn over */
    struct {
        char clock[sizeof("00:00:00")];
        size_t feature;
        struct buf text;
    } news[16]; /* the last ones: a ring */
    size_t news_count;
};

struct up_agent;

struct up {
    /* flags */
    const char *data, *listen, *scenario, *log_level, *clock;
    double speed;
    int64_t for_ns;  /* 0: until told to stop */
    int64_t clock_s; /* when the simulated clock starts; 0: now */
    bool help;

    /* what runs */
    struct loop *loop;
    struct apiserver *server;
    struct metrics *metrics;
    struct kube *kube, *testbed_kube; /* the controllers' client, and the simulated cluster's */
    struct manager *controllers, *testbed;
    struct http_server *http; /* /metrics */
    struct cache *nodes;
    VEC(struct up_agent *) agents; /* owned */
    size_t agents_stopped;
    struct apply *apply;
    struct arena arena; /* documents waiting to be applied */
    struct json *definitions, *scenario_documents;
    struct signal_watch *term, *interrupt;
    struct timer ending, summary;
    int64_t started_ns, started_s; /* by the real clock and by that of the cluster */
    int64_t ready_ms;              /* what the start took */
    char metrics_url[64], cgroup_root[4096], tick[32];
    struct up_decisions decisions[UP_FEATURE_N];
    struct up_screen screen;
    pthread_t thread; /* the loop's */
    int exit_code;
    bool ready, stopping;
};

/* A client of the embedded server; `metrics` NULL: counted apart. */
int up_connect(struct up *up, struct metrics *metrics, struct kube **ret, err_t *e);

/* up_agents.c: agents_stop() ends in up_agents_ended() */
int up_agents_start(struct up *up, struct manager *m, err_t *e);
void up_agents_stop(struct up *up);
void up_agents_ended(struct up *up);
void up_agents_done(struct up *up);

/* up_events.c */
int up_events_start(struct up *up, struct manager *m, err_t *e);
const char *up_feature_name(size_t feature);

/* up_serve.c */
int up_serve(struct up *up, err_t *e);

/* up_scenario.c: adds to the definitions */
int up_read_scenario(struct up *up, err_t *e);

/* up_summary.c */
void up_print_where(const struct up *up);
void up_summary_start(struct up *up);
void up_print_decision(struct up *up, size_t feature, const struct up_news *news);
void up_print_end(struct up *up);
void up_summary_done(struct up *up);

#endif
