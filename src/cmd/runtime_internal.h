/* What runtime.c, runtime_flags.c and runtime_serve.c share; nobody else includes this. */
#ifndef FLYBALL_CMD_RUNTIME_INTERNAL_H
#define FLYBALL_CMD_RUNTIME_INTERNAL_H

#include "../base/vec.h"
#include "../net/http_server.h"
#include "flags.h"
#include "runtime.h"

struct runtime_setting { /* of a feature, as given */
    const char *name, *value;
};

struct runtime {
    const struct runtime_spec *spec;

    /* flags */
    const char *kubeconfig, *context, *ns, *watch_namespace, *controllers, *listen, *node_name;
    const char *lease_name, *lease_namespace, *log_level, *log_format;
    bool elect, help;
    int64_t lease_duration_ns, renew_deadline_ns, retry_period_ns;
    double qps, burst;
    VEC(struct flag) flags;
    VEC(struct runtime_setting *) settings; /* owned */

    /* what runs */
    struct metrics *metrics;
    struct loop *loop;
    struct kube *kube;
    struct manager *manager;
    struct http_server *server;
    struct signal_watch *term, *interrupt;
    struct timer settle;
    int64_t started_ns;
    bool ready, stopping, lost;
};

/* runtime_flags.c */
int runtime_flags(struct runtime *rt, int argc, char **argv, err_t *e);
void runtime_flags_done(struct runtime *rt);
void runtime_help(const struct runtime *rt);
bool runtime_wants(const struct runtime *rt, const struct feature *feature);

/* runtime_serve.c */
int runtime_serve(struct runtime *rt, err_t *e);

/* runtime_settle.c */
void runtime_settle(void);

/* process_metrics.c */
void process_metrics(struct metrics *m, int64_t start_wall_ns);

#endif
