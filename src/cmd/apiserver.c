/* flyball apiserver: a Kubernetes API server on this machine, until told to stop. */
#include "../apiserver/apiserver.h"

#include "../base/log.h"
#include "../net/loop.h"
#include "cmd.h"
#include "flags.h"

#include <signal.h>
#include <stdio.h>

/* Most clients that ask one thing after another ask again within this. */
static const int64_t LINGER_NS = 200 * 1000;

static const char about[] =
    "Usage: flyball apiserver [FLAGS]\n\n"
    "Runs a Kubernetes API server on this machine, without a cluster. Use it with kubectl or any\n"
    "Kubernetes client; what is acknowledged is on disk.\n\n";

static const char more[] =
    "\nWhen ready it prints one line with the server's URL and the path of a kubeconfig. In the data\n"
    "directory are also admin.token and reader.token (group flyball:readers: may look, but not at\n"
    "secrets). SIGTERM or SIGINT ends it: watches are closed and requests under way are answered.\n";

struct run {
    struct loop *loop;
    struct apiserver *server;
    bool stopping;
};

static void drained(void *context)
{
    loop_stop(((struct run *)context)->loop);
}

static void on_signal(void *context)
{
    struct run *r = context;
    if (r->stopping) { /* a second signal does not wait */
        loop_stop(r->loop);
        return;
    }
    r->stopping = true;
    apiserver_drain(r->server, 10 * NS_PER_S, drained, r);
}

struct options {
    struct apiserver_options server;
    const char *listen, *level;
    bool help;
};

static int parse(int argc, char **argv, struct options *o, err_t *e)
{
    const struct flag flags[] = {
        { "data", "DIR", FLAG_TEXT, &o->server.data, "where state, keys and tokens are kept" },
        { "listen", "ADDR:PORT", FLAG_TEXT, &o->listen,
          "where to listen; port 0 picks a free one" },
        { "token-file", "FILE", FLAG_TEXT, &o->server.token_file,
          "more users: lines of TOKEN,USER[,UID[,\"GROUP,GROUP\"]]" },
        { "in-memory", NULL, FLAG_BOOL, &o->server.in_memory, "keep only keys and tokens on disk" },
        { "insecure-http", NULL, FLAG_BOOL, &o->server.insecure_http, "no TLS (loopback only)" },
        { "allow-remote", NULL, FLAG_BOOL, &o->server.allow_remote,
          "allow --listen to name an address beyond this machine" },
        { "log-requests", NULL, FLAG_BOOL, &o->server.log_requests, "log one line a request" },
        { "log-level", "LEVEL", FLAG_TEXT, &o->level, "debug, info, warn or error" },
        { 0 },
    };
    enum log_level level = LOG_INFO;
    int result = flags_parse(flags, argc, argv, &o->help, NULL, e);
    if (result == 0 && o->help) {
        auto_buf struct buf text = { 0 };
        flags_help(&text, flags);
        printf("%s%s%s", about, text.p, more);
        return 0;
    }
    if (result == 0 && log_level_parse(str_c(o->level), &level) < 0)
        result = err_set(e, EINVAL, "--log-level is debug, info, warn or error, not %s", o->level);
    log_setup(level, LOG_TEXT);
    return result;
}

static int serve(const struct apiserver_options *o)
{
    struct run r = { 0 };
    struct signal_watch *term = NULL, *interrupt = NULL;
    err_t e = { 0 };
    if (loop_new(&(struct loop_options){ .linger_ns = LINGER_NS }, &r.loop, &e) < 0 ||
        apiserver_new(r.loop, o, &r.server, &e) < 0) {
        fprintf(stderr, "flyball apiserver: %s\n", e.text);
        loop_free(r.loop);
        return EXIT_FAILURE;
    }
    signal_watch_new(r.loop, SIGTERM, on_signal, &r, &term);
    signal_watch_new(r.loop, SIGINT, on_signal, &r, &interrupt);
    printf("serving %s kubeconfig %s\n", apiserver_url(r.server), apiserver_kubeconfig(r.server));
    fflush(stdout);
    loop_run(r.loop);
    apiserver_free(r.server);
    signal_watch_free(term);
    signal_watch_free(interrupt);
    loop_free(r.loop);
    return EXIT_SUCCESS;
}

int cmd_apiserver(int argc, char **argv)
{
    struct options o = { .server.data = "flyball-data",
                         .listen = "127.0.0.1:6443",
                         .level = "info" };
    err_t e = { 0 };
    int result = parse(argc, argv, &o, &e);
    if (o.help && result == 0)
        return EXIT_SUCCESS;
    auto_free char *listen = mem_dup(o.listen, strlen(o.listen));
    if (result == 0)
        result = listen_split("listen", listen, &o.server.address, &o.server.port, &e);
    if (result == 0)
        return serve(&o.server);
    fprintf(stderr, "flyball apiserver: %s\n`flyball apiserver --help` tells what it takes.\n",
            e.text);
    return EXIT_USAGE;
}
