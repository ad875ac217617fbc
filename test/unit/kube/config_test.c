/* kubeconfig: what is taken, merged and refused, and that every refusal names the place. */
#include "kube/config.h"
#include "tap.h"

#include <unistd.h>

static const char whole[] =
    "apiVersion: v1\nkind: Config\ncurrent-context: one\n"
    "clusters:\n"
    "- name: c1\n"
    "  cluster: {server: 'https://one:6443', certificate-authority: pki/ca.crt}\n"
    "- name: c2\n"
    "  cluster: {server: 'https://two:6443', certificate-authority-data: Q0E=,\n"
    "            insecure-skip-tls-verify: true, tls-server-name: kube}\n"
    "users:\n"
    "- name: u1\n"
    "  user: {client-certificate: /abs/a.crt, client-key-data: S0VZ}\n"
    "- name: u2\n"
    "  user: {tokenFile: tok, token: secret, as: ann}\n"
    "- name: u3\n"
    "  user:\n"
    "    exec: {apiVersion: client.authentication.k8s.io/v1, command: bin/get,\n"
    "           args: [a, 'b c'], env: [{name: X, value: 'y'}],\n"
    "           provideClusterInfo: true}\n"
    "contexts:\n"
    "- name: one\n"
    "  context: {cluster: c1, user: u1, namespace: team}\n"
    "- name: two\n"
    "  context: {cluster: c2, user: u2}\n"
    "- name: three\n"
    "  context: {cluster: c2, user: u3}\n"
    "- name: nobody\n"
    "  context: {cluster: c2}\n";

static struct kube_config *parse_one(const char *text, const char *context, err_t *e)
{
    struct kube_config *c = NULL;
    str body = str_c(text), path = S("/etc/k/config");
    *e = (err_t){ 0 };
    kube_config_parse(&body, &path, 1, &(struct kube_config_options){ .context = context }, &c, e);
    return c;
}

static void reads_contexts(void)
{
    err_t e;
    struct kube_config *c = parse_one(whole, NULL, &e);
    if (!OK(c))
        return;
    EQ_STR(c->server, S("https://one:6443"));
    EQ_STR(c->ca_file, S("/etc/k/pki/ca.crt"));
    EQ_STR(c->cert_file, S("/abs/a.crt"));
    EQ_STR(c->key_pem, S("KEY"));
    EQ_STR(c->ns, S("team"));
    EQ_STR(c->where, S("/etc/k/config, context \"one\""));
    kube_config_free(c);

    c = parse_one(whole, "two", &e);
    EQ_STR(c->ca_pem, S("CA"));
    EQ_STR(c->tls_server_name, S("kube"));
    EQ_STR(c->token_file, S("/etc/k/tok"));
    EQ_STR(c->impersonate, S("ann"));
    EQ_STR(c->ns, S("default"));
    OK(c->skip_verify);
    kube_config_free(c);

    c = parse_one(whole, "nobody", &e);
    OK(c && !c->token.n && !c->cert_file.n);
    kube_config_free(c);
}

static void reads_exec_plugins(void)
{
    err_t e;
    struct kube_config *c = parse_one(whole, "three", &e);
    if (!OK(c && c->exec))
        return;
    EQ_STR(c->exec->command, S("/etc/k/bin/get"));
    EQ_INT(c->exec->arg_count, 2);
    EQ_STR(c->exec->args[1], S("b c"));
    EQ_STR(c->exec->env[0].value, S("y"));
    EQ_STR(c->exec->cluster_json,
           S("{\"server\":\"https://two:6443\",\"tls-server-name\":\"kube\","
             "\"insecure-skip-tls-verify\":true,\"certificate-authority-data\":\"Q0E=\"}"));
    kube_config_free(c);
}

static void the_first_file_wins(void)
{
    str texts[] = {
        S("current-context: two\nusers: [{name: u2, user: {token: mine}}]\n"),
        S(""),
        str_c(whole),
    };
    str paths[] = { S("/a/one"), S("/b/two"), S("/c/three") };
    struct kube_config *c = NULL;
    err_t e = { 0 };
    OK_CALL(kube_config_parse(texts, paths, 3, &(struct kube_config_options){ .ns = "other" }, &c,
                              &e),
            &e);
    if (!c)
        return;
    EQ_STR(c->server, S("https://two:6443"));
    EQ_STR(c->token, S("mine"));
    EQ_STR(c->token_file, S(""));
    EQ_STR(c->ns, S("other"));
    kube_config_free(c);
}

static const struct {
    const char *context, *text, *says;
} refused[] = {
    { NULL, "", "current-context is not set; pass --context; available: none" },
    { "x", "contexts: [{name: a, context: {}}, {name: b, context: {}}]",
      "/etc/k/config: context \"x\" not found; available: a, b" },
    { "a", "contexts: [{name: a, context: {cluster: c}}]",
      "/etc/k/config: cluster \"c\" not found; available: none" },
    { "a", "contexts: [{name: a}]", "/etc/k/config: contexts[a] has no context" },
    { "a", "contexts: {a: b}", "/etc/k/config: contexts must be a list" },
    { NULL, "- just a list", "is not a kubeconfig" },
    { NULL, "a: [unclosed", "/etc/k/config: " },
    { "a", "contexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, cluster: {}}]",
      "clusters[c].cluster.server is missing" },
    { "a",
      "contexts: [{name: a, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: 7}}]",
      "clusters[c].cluster.server is an integer, but must be a string" },
    { "a",
      "contexts: [{name: a, context: {cluster: c}}]\n"
      "clusters: [{name: c, cluster: {server: x, certificate-authority-data: '*'}}]",
      "clusters[c].cluster.certificate-authority-data is not valid base64" },
    { "a",
      "contexts: [{name: a, context: {cluster: c}}]\n"
      "clusters: [{name: c, cluster: {server: x, proxy-url: y}}]",
      "proxy-url is set, but proxies are not supported" },
    { "a",
      "contexts: [{name: a, context: {cluster: c, user: u}}]\n"
      "clusters: [{name: c, cluster: {server: x}}]\nusers: [{name: u, user: {client-key: k}}]",
      "users[u].user has a client key but no client certificate" },
    { "a",
      "contexts: [{name: a, context: {cluster: c, user: u}}]\n"
      "clusters: [{name: c, cluster: {server: x}}]\n"
      "users: [{name: u, user: {exec: {command: x, apiVersion: v0}}}]",
      "users[u].user.exec.apiVersion is \"v0\", but must be client.authentication.k8s.io/v1" },
};

static void refusals_say_where(void)
{
    for (size_t i = 0; i < countof(refused); i++) {
        err_t e;
        struct kube_config *c = parse_one(refused[i].text, refused[i].context, &e);
        if (!OK(!c) || !OK(strstr(e.text, refused[i].says)))
            printf("# case %zu: %s\n", i, e.text);
        kube_config_free(c);
    }
}

static void secrets_stay_out_of_errors(void)
{
    err_t e;
    OK(!parse_one("contexts: [{name: a, context: {cluster: c, user: u}}]\n"
                  "clusters: [{name: c, cluster: {server: x}}]\n"
                  "users: [{name: u, user: {token: hunter2, client-key-data: '!hunter2'}}]",
                  "a", &e));
    OK(!strstr(e.text, "hunter2"));
}

static void put(const char *dir, const char *name, const char *text)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    fputs(text, f);
    fclose(f);
}

static void pods_have_files(void)
{
    char dir[] = "/tmp/flyball-pod-XXXXXX";
    OK(mkdtemp(dir));
    struct kube_config *c = NULL;
    err_t e = { 0 };
    EQ_INT(kube_config_in_cluster(dir, "10.0.0.1", "443", &c, &e), -ENOENT);
    OK(strstr(e.text, "/token"));
    put(dir, "token", "t");
    put(dir, "namespace", "mine\n");
    OK_CALL(kube_config_in_cluster(dir, "fd00::1", "6443", &c, &e), &e);
    EQ_STR(c->server, S("https://[fd00::1]:6443"));
    EQ_STR(c->ns, S("mine"));
    kube_config_free(c);
    char command[220];
    snprintf(command, sizeof(command), "rm -r %s", dir);
    EQ_INT(system(command), 0);
}

static void the_environment_names_files(void)
{
    char dir[] = "/tmp/flyball-env-XXXXXX", list[200];
    OK(mkdtemp(dir));
    put(dir, "a", whole);
    put(dir, "b", "contexts: [{name: extra, context: {cluster: c1}}]");
    snprintf(list, sizeof(list), "%s/none:%s/a:%s/b", dir, dir, dir);
    setenv("KUBECONFIG", list, 1);
    struct kube_config *c = NULL;
    err_t e = { 0 };
    OK_CALL(kube_config_load(&(struct kube_config_options){ .context = "extra" }, &c, &e), &e);
    EQ_STR(c->server, S("https://one:6443"));
    kube_config_free(c);
    snprintf(list, sizeof(list), "%s/none", dir);
    EQ_INT(kube_config_load(&(struct kube_config_options){ .kubeconfig = list }, &c, &e), -ENOENT);
    OK(strstr(e.text, list));
    setenv("KUBECONFIG", list, 1);
    EQ_INT(kube_config_load(&(struct kube_config_options){ 0 }, &c, &e), -ENOENT);
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    setenv("HOME", dir, 1);
    EQ_INT(kube_config_load(&(struct kube_config_options){ 0 }, &c, &e), -ENOENT);
    OK(strstr(e.text, "--kubeconfig"));
    char command[220];
    snprintf(command, sizeof(command), "rm -r %s", dir);
    EQ_INT(system(command), 0);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(reads_contexts),
                                        TAP(reads_exec_plugins),
                                        TAP(the_first_file_wins),
                                        TAP(refusals_say_where),
                                        TAP(secrets_stay_out_of_errors),
                                        TAP(pods_have_files),
                                        TAP(the_environment_names_files),
                                        { 0 } });
}
