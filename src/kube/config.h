/* Where the API server is and who we are.
 *
 * Searched in this order: the file named by --kubeconfig; the files in $KUBECONFIG
 * (merged: the first to name a cluster, user, context or current-context wins); in a pod, the
 * service account's files; ~/.kube/config. Relative paths in a file count from that file's folder.
 *
 * A config holds what was written; what changes while we run (token files, exec plugins) is kept by
 * credentials.h. Secrets never reach a log or an error sentence. */
#ifndef FLYBALL_KUBE_CONFIG_H
#define FLYBALL_KUBE_CONFIG_H

#include "../base/arena.h"

struct exec_plugin; /* see credentials.h */

struct kube_config {
    struct arena arena; /* owns every text here */
    str where;          /* for sentences: `/home/ann/.kube/config, context "test"` */
    str server;         /* https://host:port */
    str ns;             /* where to work unless told: of the context, the pod, or "default" */

    str ca_pem, ca_file; /* neither: the system's authorities */
    str tls_server_name;
    bool skip_verify;

    str cert_pem, cert_file, key_pem, key_file;
    str token, token_file; /* the file wins and is read again as it changes */
    str username, password;
    str impersonate; /* "as"; "" for nobody */
    const struct exec_plugin *exec;
};

struct exec_plugin {
    str command, api_version; /* client.authentication.k8s.io/v1 or v1beta1 */
    const str *args;
    size_t arg_count;
    const struct exec_env {
        str name, value;
    } *env;
    size_t env_count;
    bool provide_cluster_info;
    str install_hint;
    str cluster_json; /* spec.cluster of the question, when asked for */
};

struct kube_config_options {
    const char *kubeconfig; /* NULL: search */
    const char *context;    /* NULL: current-context */
    const char *ns;         /* NULL: of the context */
};

int kube_config_load(const struct kube_config_options *options, struct kube_config **ret, err_t *e);
void kube_config_free(struct kube_config *c);

/* The parts of it, for tests and the fuzzer. */

/* One or more kubeconfig documents to a config. `texts[i]` was read from `paths[i]`. */
int kube_config_parse(const str *texts, const str *paths, size_t n,
                      const struct kube_config_options *options, struct kube_config **ret,
                      err_t *e);
/* The service account's files in `dir`, host and port as in the environment. */
int kube_config_in_cluster(const char *dir, const char *host, const char *port,
                           struct kube_config **ret, err_t *e);

#endif
