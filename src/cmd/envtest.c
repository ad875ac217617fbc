/* flyball envtest: the embedded API server in the place of envtest's binaries.
 *
 * envtest, the test environment of controller-runtime, looks for programs called kube-apiserver and etcd in
 * $KUBEBUILDER_ASSETS, starts both with the flags of the real ones, and waits for /healthz and /health. So the folder has
 * two links to this program, and main() selects a face by the name it was called by:
 *
 *      kube-apiserver   the API server, with the certificates that envtest made. Its objects are in memory, unless --data
 *                       names a directory; its own keys go to a folder in --cert-dir, which envtest deletes.
 *      etcd             answers /health and waits for a signal: the API server stores its objects itself
 *
 * Suites pass flags of all versions of kube-apiserver. Those that select what this server always does, or that have no
 * meaning here, are accepted; unknown ones are reported on standard error and ignored, since a suite that sets one should
 * run, and its author should know. */
#include "../apiserver/apiserver.h"
#include "../base/buf.h"
#include "../base/log.h"
#include "../net/http_server.h"
#include "cmd.h"
#include "flags.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- flags of other programs */

struct face_flag {
    const char *name;
    const char **target; /* NULL: accepted without effect */
};

/* Reads "--name=value" and "--name"; a word without dashes is the value of the flag before it. False: one is not. */
static bool read_face_flags(const char *face, int argc, char **argv, const struct face_flag *flags)
{
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] != '-') { /* quoted: kube-apiserver */
            fprintf(stderr, "Error: \"%s\" does not take any arguments, got [\"%s\"]\n", face,
                    argv[i]);
            return false;
        }
        const char *word = argv[i] + strspn(argv[i], "-");
        size_t n = strcspn(word, "=");
        const struct face_flag *f = flags;
        while (f->name && (strlen(f->name) != n || strncmp(f->name, word, n) != 0))
            f++;
        if (!f->name)
            fprintf(stderr, "%s: flyball ignores the unknown flag --%.*s\n", face, (int)n, word);
        bool next = !word[n] && i + 1 < argc && argv[i + 1][0] != '-';
        if (f->name && f->target)
            *f->target = word[n] ? word + n + 1 : next ? argv[i + 1] : "true";
        i += next;
    }
    return true;
}

/* Must list flags as the real programs do: envtest searches the text for the flags of certain versions. */
static int print_face_help(const char *face, const struct face_flag *flags)
{
    printf(
        "Usage: %s [FLAGS]\n\nflyball in the place of %s, for envtest; see \"flyball envtest --help\".\n\nFlags:\n",
        face, face);
    for (; flags->name; flags++)
        printf("  --%s%s\n", flags->name, flags->target ? "" : " (no effect)");
    return EXIT_SUCCESS;
}

static bool asks_for(int argc, char **argv, const char *flag)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], flag))
            return true;
    return false;
}

/* ---- kube-apiserver */

/* The values of flags that have an effect; NULL: not given. */
struct apiserver_face {
    const char *bind_address, *secure_port, *cert_dir, *cert_file, *key_file, *client_ca, *tokens,
        *modes, *disabled, *data, *services, *anonymous;
};

/* The word in a list such as "RBAC,Node". */
static bool list_has(const char *list, const char *word)
{
    str rest = str_c(list ? list : ""), part;
    while (str_cut(&rest, ',', &part))
        if (str_eqc(part, word))
            return true;
    return false;
}

static char *join_file(const char *directory, const char *name)
{
    auto_buf struct buf path = { 0 };
    buf_printf(&path, "%s/%s", directory, name);
    return buf_take(&path);
}

/* The last of several values counts, as with the real program: a suite overrides what envtest passes. */
static int read_port(const char *text, uint16_t *ret, err_t *e)
{
    int64_t port = 0;
    if (str_to_i64(str_c(text), &port) < 0 || port < 0 || port > UINT16_MAX)
        return err_set(e, EINVAL, "--secure-port is \"%s\", but must be a port", text);
    *ret = (uint16_t)port;
    return 0;
}

/* A mode that is not there would leave a suite with other rights than its author expects. */
static int check_modes(const char *modes, err_t *e)
{
    str rest = str_c(modes ? modes : "RBAC"), mode;
    while (str_cut(&rest, ',', &mode))
        if (!str_eqc(mode, "RBAC") && !str_eqc(mode, "Node") && !str_eqc(mode, "AlwaysAllow"))
            return err_set(e, EINVAL,
                           "--authorization-mode \"" STR_FMT
                           "\" is not supported; use RBAC, Node or AlwaysAllow",
                           STR_ARG(mode));
    return 0;
}

/* kube-apiserver uses apiserver.crt and apiserver.key of its certificate directory, if they exist. */
static int run_apiserver_face(const struct apiserver_face *f, err_t *e)
{
    auto_free char *own = join_file(f->cert_dir, "flyball"),
                   *cert = join_file(f->cert_dir, "apiserver.crt"),
                   *key = join_file(f->cert_dir, "apiserver.key");
    bool given = f->cert_file && f->key_file,
         found = access(cert, R_OK) == 0 && access(key, R_OK) == 0;
    struct apiserver_options o = { .data = f->data ? f->data : own,
                                   .address = f->bind_address,
                                   .in_memory = !f->data,
                                   .allow_remote = true,
                                   .token_file = f->tokens,
                                   .cert_file = given   ? f->cert_file
                                                : found ? cert
                                                        : NULL,
                                   .key_file = given   ? f->key_file
                                               : found ? key
                                                       : NULL,
                                   .client_ca_file = f->client_ca,
                                   .no_accounts = list_has(f->disabled, "ServiceAccount"),
                                   .service_addresses = f->services,
                                   .allow_all = list_has(f->modes, "AlwaysAllow"),
                                   .no_anonymous = f->anonymous && !strcmp(f->anonymous, "false") };
    if (check_modes(f->modes, e) < 0 || read_port(f->secure_port, &o.port, e) < 0)
        return -e->code;
    if (mkdir(f->cert_dir, 0700) < 0 && errno != EEXIST)
        return err_set(e, errno, "--cert-dir %s: %s", f->cert_dir, strerror(errno));
    log_setup(LOG_WARN, LOG_TEXT);
    return cmd_apiserver_run(&o);
}

int cmd_envtest_apiserver(int argc, char **argv)
{
    struct apiserver_face f = { .bind_address = "127.0.0.1",
                                .secure_port = "6443",
                                .cert_dir = "/var/run/kubernetes" };
    const struct face_flag flags[] = {
        { "bind-address", &f.bind_address },
        { "secure-port", &f.secure_port },
        { "cert-dir", &f.cert_dir },
        { "tls-cert-file", &f.cert_file },
        { "tls-private-key-file", &f.key_file },
        { "client-ca-file", &f.client_ca },
        { "token-auth-file", &f.tokens },
        { "anonymous-auth", &f.anonymous },
        { "authorization-mode", &f.modes },
        { "disable-admission-plugins", &f.disabled },
        { "data", &f.data },
        { "service-address", &f.services },
        { "advertise-address", NULL },
        { "allow-privileged", NULL },
        { "api-audiences", NULL },
        { "audit-log-path", NULL },
        { "audit-policy-file", NULL },
        { "enable-admission-plugins", NULL },
        { "enable-aggregator-routing", NULL },
        { "etcd-cafile", NULL },
        { "etcd-certfile", NULL },
        { "etcd-keyfile", NULL },
        { "etcd-servers", NULL },
        { "event-ttl", NULL },
        { "feature-gates", NULL },
        { "max-mutating-requests-inflight", NULL },
        { "max-requests-inflight", NULL },
        { "runtime-config", NULL },
        { "service-account-issuer", NULL },
        { "service-account-key-file", NULL },
        { "service-account-lookup", NULL },
        { "service-account-signing-key-file", NULL },
        { "service-cluster-ip-range", NULL },
        { "storage-backend", NULL },
        { "v", NULL },
        { "vmodule", NULL },
        { "watch-cache", NULL },
        { 0 },
    };
    err_t e;
    if (asks_for(argc, argv, "--help"))
        return print_face_help("kube-apiserver", flags);
    if (asks_for(argc, argv, "--version"))
        return cmd_version(1, argv);
    if (!read_face_flags("kube-apiserver", argc, argv, flags))
        return EXIT_USAGE;
    int code = run_apiserver_face(&f, &e);
    if (code >= 0)
        return code;
    fprintf(stderr, "kube-apiserver: %s\n", e.text);
    return EXIT_USAGE;
}

/* ---- etcd */

struct etcd_face {
    struct loop *loop;
    struct http_server *http;
};

/* envtest asks for /health; clients of a real etcd would use gRPC, and there are none. */
static void on_etcd_request(void *context UNUSED, struct exchange *x)
{
    static const struct http_header json[] = { { { "content-type", 12 },
                                                 { "application/json", 16 } } };
    bool health = str_eqc(exchange_path(x), "/health") || str_eqc(exchange_path(x), "/readyz") ||
                  str_eqc(exchange_path(x), "/livez");
    exchange_answer(x, health ? 200 : 404, (struct http_headers){ json, 1 },
                    health ? S("{\"health\":\"true\",\"reason\":\"\"}") : S("{}"));
}

static void on_etcd_signal(void *context)
{
    loop_stop(((struct etcd_face *)context)->loop);
}

/* "http://127.0.0.1:2379" and, of a list, the first. The text is modified. */
static int split_url(char *url, const char **ret_address, uint16_t *ret_port, err_t *e)
{
    char *host = strstr(url, "://");
    host = host ? host + 3 : url;
    host[strcspn(host, ",/")] = '\0';
    return flags_split_listen("listen-client-urls", host, ret_address, ret_port, e);
}

static int run_etcd_face(struct etcd_face *f, char *url, err_t *e)
{
    struct signal_watch *term = NULL, *interrupt = NULL;
    struct http_server_options o = { .on_request = on_etcd_request };
    int r = split_url(url, &o.address, &o.port, e);
    if (r == 0)
        r = loop_new(&(struct loop_options){ 0 }, &f->loop, e);
    if (r == 0)
        r = http_server_new(f->loop, &o, &f->http, e);
    if (r < 0)
        return r;
    signal_watch_new(f->loop, SIGTERM, on_etcd_signal, f, &term);
    signal_watch_new(f->loop, SIGINT, on_etcd_signal, f, &interrupt);
    loop_run(f->loop);
    signal_watch_free(term);
    signal_watch_free(interrupt);
    return 0;
}

int cmd_envtest_etcd(int argc, char **argv)
{
    const char *client = "http://127.0.0.1:2379";
    const struct face_flag flags[] = {
        { "listen-client-urls", &client },
        { "advertise-client-urls", NULL },
        { "listen-peer-urls", NULL },
        { "data-dir", NULL },
        { "unsafe-no-fsync", NULL },
        { "name", NULL },
        { "log-level", NULL },
        { "logger", NULL },
        { "quota-backend-bytes", NULL },
        { 0 },
    };
    struct etcd_face f = { 0 };
    err_t e;
    if (asks_for(argc, argv, "--help"))
        return print_face_help("etcd", flags);
    if (asks_for(argc, argv, "--version"))
        return cmd_version(1, argv);
    if (!read_face_flags("etcd", argc, argv, flags))
        return EXIT_USAGE;
    auto_free char *url = mem_dup(client, strlen(client));
    int r = run_etcd_face(&f, url, &e);
    if (r < 0)
        fprintf(stderr, "etcd: %s\n", e.text);
    http_server_free(f.http);
    loop_free(f.loop);
    return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}

/* ---- the folder */

/* Replaces a link, but never a file: someone may have put the real binaries there. */
static int link_face(const char *self, const char *directory, const char *name, err_t *e)
{
    auto_free char *path = join_file(directory, name);
    struct stat st;
    if (lstat(path, &st) == 0 && !S_ISLNK(st.st_mode))
        return err_set(e, EEXIST, "%s exists and is not a link; remove it, or use another folder",
                       path);
    if ((unlink(path) < 0 && errno != ENOENT) || symlink(self, path) < 0)
        return err_set(e, errno, "cannot link %s: %s", path, strerror(errno));
    return 0;
}

/* Links to the file itself, not to the name that called it, which may be a link too. */
static int make_folder(const char *directory, char *ret_path, err_t *e)
{
    char self[PATH_MAX] = "";
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return err_set(e, errno, "cannot find this program: %s", strerror(errno));
    if (mkdir(directory, 0777) < 0 && errno != EEXIST)
        return err_set(e, errno, "cannot create %s: %s", directory, strerror(errno));
    if (!realpath(directory, ret_path))
        return err_set(e, errno, "%s: %s", directory, strerror(errno));
    int r = link_face(self, directory, "kube-apiserver", e);
    return r < 0 ? r : link_face(self, directory, "etcd", e);
}

static const char usage[] =
    "Usage: flyball envtest DIR\n\n"
    "Makes a folder with links called kube-apiserver and etcd, which envtest starts in place of the real\n"
    "ones, and prints its path. To run the suites of a kubebuilder project:\n\n"
    "  export KUBEBUILDER_ASSETS=$(flyball envtest ./assets)\n"
    "  go test ./...\n\n"
    "Objects are kept in memory. An existing kubectl in the folder is left alone.\n";

int cmd_envtest(int argc, char **argv)
{
    char path[PATH_MAX];
    err_t e;
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")))
        return fputs(usage, stdout), EXIT_SUCCESS;
    if (argc != 2 || argv[1][0] == '-')
        return fprintf(stderr, "flyball envtest: needs one argument, the folder\n\n%s", usage),
               EXIT_USAGE;
    if (make_folder(argv[1], path, &e) < 0)
        return fprintf(stderr, "flyball envtest: %s\n", e.text), EXIT_FAILURE;
    if (puts(path) < 0 || fflush(stdout) != 0)
        return fprintf(stderr, "flyball envtest: standard output: %s\n", strerror(errno)),
               EXIT_FAILURE;
    return EXIT_SUCCESS;
}
