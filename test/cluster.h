/* A cluster on one virtual loop, for tests: the embedded API server, a client of the test's own, and an
 * operator that can be stopped and started. Time stands where the test puts it, waiting costs none, and
 * chosen writes can be made to fail.
 *
 *     struct cluster c;
 *     cluster_start(&c, start_s);
 *     cluster_do(&c, KUBE_CREATE, &resource_hpas, "shop", "web", body);
 *     cluster_operator(&c, &schedule_feature, (const char *[]){ "some-setting", "value", NULL });
 *     cluster_until(&c, start_s + 3600);
 *     cluster_stop(&c);
 */
#ifndef FLYBALL_TEST_CLUSTER_H
#define FLYBALL_TEST_CLUSTER_H

#include "apiserver/apiserver.h"
#include "base/metrics.h"
#include "cmd/manifests.h"
#include "kube/manager.h"
#include "net/http_server.h"
#include "json/yaml.h"

#include <stdio.h>
#include <unistd.h>

struct cluster {
    struct loop *loop;
    const struct kube_config *remote; /* of another API server; NULL: the embedded one */
    struct apiserver *server;
    struct kube *kube; /* the test's own client */
    struct kube *operator_kube;
    struct manager *manager; /* NULL: the operator is down */
    struct metrics *metrics;
    const char *const *settings; /* name, value, ..., NULL */
    char dir[64];
    struct arena arena; /* of answers */

    int failures;          /* so many of the operator's writes to `fail_path` are refused */
    int fail_code;         /* with this; 0: 409, a conflict */
    bool fail_busy;        /* ... with 429 and a second's pause instead */
    const char *fail_path; /* a part of the path */
    int watch_code;        /* its watches are refused with this; 0: they are not */
    const char *hidden;    /* its reads of paths with this part are forbidden; NULL: none */
    const char *counted;   /* its reads of paths with this part, watches too, are counted in... */
    size_t counted_n;      /* ...this */
    bool deaf;             /* the server does not answer */
    bool operator_cut;     /* nor does it answer the operator's writes */
    bool operator_over;    /* the operator has requested its end */
    size_t operator_requests, operator_writes;
    struct buf log;   /* "METHOD path body\n" of the operator's writes */
    struct buf reads; /* "path\n" of its reads but watches */
};

void cluster_check(int result, const err_t *e);
void cluster_refuse(struct exchange *x, int code);
bool cluster_intercept(void *context, struct exchange *x);
struct kube *cluster_client(struct cluster *c, const char *agent);

/* ---- requests of the test */

struct cluster_answer {
    bool done;
    int code;
    struct json *object; /* in the cluster's arena; NULL: none */
    struct cluster *c;
};

void cluster_answered(void *context, const struct kube_reply *reply);
struct cluster_answer cluster_ask(struct cluster *c, struct kube_request request);
struct cluster_answer cluster_do(struct cluster *c, enum kube_verb verb,
                                 const struct resource *resource, const char *ns, const char *name,
                                 str body);
struct json *cluster_get(struct cluster *c, const struct resource *resource, const char *ns,
                         const char *name);
void cluster_create(struct cluster *c, const struct resource *resource, const char *ns,
                    const struct json *object);
/* ---- time */

void cluster_tick(struct timer *timer);
int64_t cluster_now(const struct cluster *c);
/* Runs until the wall clock shows that second. */
void cluster_until(struct cluster *c, int64_t wall_s);
/* ---- the operator */

const char *cluster_setting(void *context, const char *name);
void cluster_over(void *context);
void cluster_operator(struct cluster *c, const struct feature *feature,
                      const char *const *settings);
void cluster_operator_down(struct cluster *c);
/* ---- life */

void cluster_install(struct cluster *c, const struct manifest *m);
void cluster_start(struct cluster *c, int64_t start_s);
/* `remote`: another API server, which has flyball's kinds; NULL: the embedded one. */
void cluster_start_on(struct cluster *c, int64_t start_s, const struct kube_config *remote);
void cluster_remove_file(const char *dir, const char *name);
void cluster_stop(struct cluster *c);

#endif
