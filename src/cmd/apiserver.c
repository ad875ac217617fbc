/* flyball apiserver: runs the embedded Kubernetes API server until a signal arrives.
 *
 * The first SIGTERM or SIGINT drains: watches are closed, pending requests completed, for at
 * most 10 s. A second one ends the process. The line on standard output is for scripts: it is
 * printed when the server accepts connections. */
#include "../apiserver/apiserver.h"

#include "../base/log.h"
#include "../net/loop.h"
#include "cmd.h"
#include "flags.h"

#include <signal.h>
#include <stdio.h>

/* Most clients that send requests in sequence send the next one within this time. */
static const int64_t LINGER_NS = 200 * 1000;

static const char usage[] =
    "Usage: flyball apiserver [FLAGS]\n\n"
    "Runs a Kubernetes API server on this machine, without a cluster. Use it with kubectl or any\n"
    "Kubernetes client. Acknowledged writes are on disk.\n\n";

static const char usage_end[] =
    "\nWhen the server is ready, it prints one line with its URL and the path of a kubeconfig. The data\n"
    "directory also contains admin.token and reader.token (group flyball:readers: read access, except\n"
    "to secrets). On SIGTERM or SIGINT, the server closes watches and completes pending requests.\n";

struct run {
    struct loop *loop;
    struct apiserver *server;
    bool stopping;
};

static void on_drained(void *context)
{
    loop_stop(((struct run *)context)->loop);
}

/* Drains the server, which takes at most 10 s. */
static void on_signal(void *context)
{
    struct run *r = context;
    if (r->stopping) { /* the second signal: do not wait */
        loop_stop(r->loop);
        return;
    }
    r->stopping = true;
    apiserver_drain(r->server, 10 * NS_PER_S, on_drained, r);
}

struct options {
    struct apiserver_options server;
    const char *listen, *level;
    bool help;
};

/* Parses the flags and sets up logging; prints the help if requested. */
static int parse_flags(int argc, char **argv, struct options *o, err_t *e)
{
    const struct flag flags[] = {
        { "data", "DIR", FLAG_TEXT, &o->server.data, "Directory for state, keys and tokens" },
        { "listen", "ADDR:PORT", FLAG_TEXT, &o->listen,
          "Address to listen on; port 0 selects a free port" },
        { "token-file", "FILE", FLAG_TEXT, &o->server.token_file,
          "File with additional users: lines of TOKEN,USER[,UID[,\"GROUP,GROUP\"]]" },
        { "service-address", "LIST", FLAG_TEXT, &o->server.service_addresses,
          "Where the services of webhooks are: NAME.NS=ADDR[:PORT],..." },
        { "in-memory", NULL, FLAG_BOOL, &o->server.in_memory,
          "Store only keys and tokens on disk" },
        { "insecure-http", NULL, FLAG_BOOL, &o->server.insecure_http,
          "Disable TLS; loopback addresses only" },
        { "allow-remote", NULL, FLAG_BOOL, &o->server.allow_remote,
          "Allow --listen on an address that other machines can reach" },
        { "log-requests", NULL, FLAG_BOOL, &o->server.log_requests, "Log one line per request" },
        { "log-level", "LEVEL", FLAG_TEXT, &o->level, "Log level: debug, info, warn or error" },
        { 0 },
    };
    enum log_level level = LOG_INFO;
    int result = flags_parse(flags, argc, argv, &o->help, NULL, e);
    if (result == 0 && o->help) {
        auto_buf struct buf text = { 0 };
        flags_help(&text, flags);
        printf("%s%s%s", usage, text.p, usage_end);
        return 0;
    }
    if (result == 0 && log_level_parse(str_c(o->level), &level) < 0)
        result = err_set(e, EINVAL, "--log-level is \"%s\", but must be debug, info, warn or error",
                         o->level);
    log_setup(level, LOG_TEXT);
    return result;
}

int cmd_apiserver_run(const struct apiserver_options *o)
{
    struct run r = { 0 };
    struct signal_watch *term = NULL, *interrupt = NULL;
    err_t e = { 0 };
    if (loop_new(&(struct loop_options){ .busy_poll_ns = LINGER_NS }, &r.loop, &e) < 0 ||
        apiserver_new(r.loop, o, &r.server, &e) < 0) {
        bool is_remote = e.code == EPERM && !o->allow_remote && !o->insecure_http;
        fprintf(stderr, "flyball apiserver: %s%s\n", e.text,
                is_remote ? "; set --allow-remote to allow it" : "");
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
    int result = parse_flags(argc, argv, &o, &e);
    if (o.help && result == 0)
        return EXIT_SUCCESS;
    auto_free char *listen = mem_dup(o.listen, strlen(o.listen));
    if (result == 0)
        result = flags_split_listen("listen", listen, &o.server.address, &o.server.port, &e);
    if (result == 0)
        return cmd_apiserver_run(&o.server);
    fprintf(stderr, "flyball apiserver: %s\nRun \"flyball apiserver --help\" for usage.\n", e.text);
    return EXIT_USAGE;
}
