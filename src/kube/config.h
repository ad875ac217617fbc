/* The address of the API server and the credentials for it.
 *
 * Search order: the file named by --kubeconfig; the files in $KUBECONFIG
 * (merged: the first to name a cluster, user, context or current-context wins); in a pod, the
 * service account's files; ~/.kube/config. Relative paths in a file are relative to its folder.
 *
 * A config is static; credentials.h keeps what changes at run time (token files, exec plugins). Secrets
 * never appear in logs or errors. */
#ifndef FLYBALL_KUBE_CONFIG_H
#define FLYBALL_KUBE_CONFIG_H

#include "../base/arena.h"

struct exec_plugin; /* see credentials.h */

struct kube_config {
    struct arena arena; /* owns every text here */
    str where;          /* for errors: `/home/ann/.kube/config, context "test"` */
    str server;         /* https://host:port */
    str ns;             /* default namespace: of the context, the pod, or "default" */

    str ca_pem, ca_file; /* neither: the system's CAs */
    str tls_server_name;
    bool skip_verify;

    str cert_pem, cert_file, key_pem, key_file;
    str token, token_file; /* the file wins and is reread as it changes */
    str username, password;
    str impersonate; /* "as" in the kubeconfig; empty: no impersonation */
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
    str cluster_json; /* spec.cluster of the ExecCredential, if provide_cluster_info */
};

struct kube_config_options {
    const char *kubeconfig; /* NULL: search */
    const char *context;    /* NULL: current-context */
    const char *ns;         /* NULL: of the context */
};

int kube_config_load(const struct kube_config_options *options, struct kube_config **ret, err_t *e);
void kube_config_free(struct kube_config *c);

/* The parts of kube_config_load(), for tests and the fuzzer. */

/* Merges one or more kubeconfig documents. `texts[i]` was read from `paths[i]`. */
int kube_config_parse(const str *texts, const str *paths, size_t n,
                      const struct kube_config_options *options, struct kube_config **ret,
                      err_t *e);
/* The service account's files in `dir`, host and port as in the environment. */
int kube_config_in_cluster(const char *dir, const char *host, const char *port,
                           struct kube_config **ret, err_t *e);

#endif
