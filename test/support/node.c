/* The simulated cluster of src/testbed as a process of its own, on any API server: nodes whose kubelets start
 * pods, carry out, defer or refuse resizes, and whose kernels are files.
 *
 *     node KUBECONFIG CGROUPS    the files of node N are in CGROUPS/N; ends at SIGTERM
 */
#include "base/log.h"
#include "base/random.h"
#include "kube/kube.h"
#include "testbed/testbed.h"

#include <signal.h>
#include <stdio.h>

static struct loop *loop;
static struct kube *kube;
static struct manager *manager;

static const char *setting(void *context, const char *name)
{
    if (!strcmp(name, "testbed-cgroup-root"))
        return context;
    return strcmp(name, "testbed-start-delay") == 0 ? "0s" : NULL;
}

static void stopped(void *context)
{
    (void)context;
    loop_stop(loop);
}

static void on_term(void *context)
{
    (void)context;
    manager_stop(manager, stopped, NULL);
}

static int begin(const char *kubeconfig, char *cgroups, err_t *e)
{
    struct kube_config *config;
    int r = loop_new(&(struct loop_options){ 0 }, &loop, e);
    r = r < 0 ? r
              : kube_config_load(&(struct kube_config_options){ .kubeconfig = kubeconfig }, &config,
                                 e);
    if (r < 0)
        return r;
    r = kube_new(&(struct kube_options){ .loop = loop, .config = config, .rate = -1 }, &kube, e);
    kube_config_free(config);
    r = r < 0 ? r
              : manager_new(&(struct manager_options){ .kube = kube,
                                                       .identity = S("node"),
                                                       .seed = random_seed(),
                                                       .setting = setting,
                                                       .context = cgroups },
                            &manager, e);
    r = r < 0 ? r : manager_add(manager, &testbed_feature, e);
    return r < 0 ? r : manager_run(manager, e);
}

int main(int argc, char **argv)
{
    err_t e;
    struct signal_watch *term = NULL;
    log_setup(LOG_WARN, LOG_TEXT);
    if (argc != 3) {
        fprintf(stderr, "Usage: node KUBECONFIG CGROUPS\n");
        return 2;
    }
    if (begin(argv[1], argv[2], &e) < 0) {
        fprintf(stderr, "node: %s\n", e.text);
        return 1;
    }
    signal_watch_new(loop, SIGTERM, on_term, NULL, &term);
    loop_run(loop);
    signal_watch_free(term);
    manager_free(manager);
    kube_free(kube);
    loop_free(loop);
    return 0;
}
