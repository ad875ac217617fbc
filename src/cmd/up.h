/* What the files of `flyball up` share; nobody else includes this. */
#ifndef FLYBALL_CMD_UP_H
#define FLYBALL_CMD_UP_H

#include "../apiserver/apiserver.h"
#include "../base/metrics.h"
#include "../kube/manager.h"
#include "../net/loop.h"
#include "../testbed/cluster.h"
#include "apply.h"

struct up {
    /* flags */
    const char *data, *listen, *scenario, *log_level;
    double speed;
    int64_t for_ns; /* 0: until told to stop */
    bool help;

    /* what runs */
    struct loop *loop;
    struct apiserver *server;
    struct metrics *metrics;
    struct kube *kube, *testbed_kube; /* the controllers' client, and the simulated cluster's */
    struct manager *controllers, *testbed;
    struct apply *apply;
    struct arena arena; /* documents waiting to be applied */
    struct json *scenario_documents;
    struct signal_watch *term, *interrupt;
    struct timer ending, summary;
    int64_t started_ns;
    int exit_code;
    bool ready, stopping;
};

/* up_scenario.c */
int up_read_scenario(struct up *up, err_t *e);

/* up_summary.c */
void up_print_where(const struct up *up);
void up_summary_start(struct up *up);
void up_print_end(const struct up *up);

#endif
