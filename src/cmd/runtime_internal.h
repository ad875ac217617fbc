/* Shared by runtime*.c and operator_flags.c only. */
#ifndef FLYBALL_CMD_RUNTIME_INTERNAL_H
#define FLYBALL_CMD_RUNTIME_INTERNAL_H

#include "../base/vec.h"
#include "../net/http_server.h"
#include "flags.h"
#include "guard.h"
#include "runtime.h"
#include "start_trim.h"

#define OPERATOR_LISTEN "0.0.0.0:8080"
#define OPERATOR_PROBES ":8081"

struct runtime_setting { /* of a feature; value borrowed from argv or the feature */
    const char *name, *value;
};

/* Flags of the Workload-Variant-Autoscaler; the agent has those of metrics and TLS too. */
struct wva_flags {
    bool enabled;                                             /* --wva: use its defaults too */
    const char *config_file, *metrics_listen, *health_listen; /* addresses; NULL: use --listen */
    const char *cert_path, *cert_name, *cert_key;
    const char *zap_level, *zap_encoder;
    bool secure, http2, zap_devel;
    int64_t verbosity;
    const char *ignored[5]; /* accepted without effect */
};

struct runtime_place { /* an address to serve on */
    struct runtime *rt;
    struct http_server *server; /* NULL: not listening */
    struct guard *guard;        /* NULL: no authorization */
    bool health, metrics;       /* what is served there */
    bool closed;                /* /metrics is refused because the address is not loopback */
};

struct runtime {
    const struct runtime_spec *spec;

    /* flags */
    const char *kubeconfig, *context, *ns, *watch_namespace, *controllers, *listen, *node_name;
    const char *lease_name, *lease_namespace, *log_level, *log_format;
    const char *web_listen; /* NULL: no page */
    bool elect, help, insecure_token, open_metrics;
    int64_t lease_duration_ns, renew_deadline_ns, retry_period_ns;
    double qps, burst;
    int64_t timeout_ns; /* of a request to the API server; 0: the client's default */
    struct wva_flags wva;
    VEC(struct flag) flags;
    VEC(struct runtime_setting *) settings; /* owned */

    /* state */
    struct metrics *metrics;
    struct tracer *tracer; /* NULL: no traces */
    struct loop *loop;
    struct kube *kube;
    struct manager *manager;
    struct runtime_place places[3];
    struct web *web;         /* NULL: no page */
    struct guard *web_guard; /* of the page */
    size_t draining;
    struct signal_watch *term, *interrupt;
    struct start_trim start_trim;
    struct timer trim; /* after a large scrape */
    bool stopping, lost;
};

/* runtime_flags.c */
int runtime_flags(struct runtime *rt, int argc, char **argv, err_t *e);
void runtime_flags_done(struct runtime *rt);
void runtime_help(const struct runtime *rt);
bool runtime_is_enabled(const struct runtime *rt, const struct feature *feature);

/* runtime_serve.c */
int runtime_serve(struct runtime *rt, err_t *e);
void runtime_serve_stop(struct runtime *rt, int64_t limit_ns); /* then stops the loop */
void runtime_serve_done(struct runtime *rt);

bool runtime_is_none(const char *address); /* the flag disables it */
int runtime_make_tls(const struct runtime *rt, struct tls **ret,
                     err_t *e);         /* of --metrics-cert-path */
void runtime_on_drained(void *context); /* a server */

/* runtime_web.c */
int runtime_web(struct runtime *rt, err_t *e);
void runtime_web_stop(struct runtime *rt, int64_t limit_ns); /* adds to `draining` */
void runtime_web_done(struct runtime *rt);

/* operator_flags.c */
void operator_flags_add(struct runtime *rt);
int operator_flags_apply_wva(struct runtime *rt, err_t *e); /* --wva */
int operator_flags_apply_log(struct runtime *rt, err_t *e);
void operator_flags_log_ignored(const struct runtime *rt);

/* process_metrics.c */
void process_metrics_register(struct metrics *m, int64_t start_wall_ns);

#endif
