/* flyball apiserver: a Kubernetes API server on this machine, until told to stop. */
#include "../apiserver/apiserver.h"

#include "../base/log.h"
#include "../net/loop.h"
#include "cmd.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>

static const char help[] =
    "Usage: flyball apiserver [FLAGS]\n\n"
    "Runs a Kubernetes API server on this machine, without a cluster. Use it with kubectl or any\n"
    "Kubernetes client; what is acknowledged is on disk.\n\n"
    "  --data DIR          where state, keys and tokens are kept (default: ./flyball-data)\n"
    "  --listen ADDR:PORT  where to listen (default: 127.0.0.1:6443; port 0 picks a free one)\n"
    "  --token-file FILE   more users: lines of TOKEN,USER[,UID[,\"GROUP,GROUP\"]]\n"
    "  --in-memory         keep nothing but keys and tokens on disk\n"
    "  --insecure-http     no TLS (loopback only)\n"
    "  --allow-remote      allow --listen to name an address beyond this machine\n"
    "  --log-requests      one line on standard error for each request\n"
    "  --log-level LEVEL   debug, info, warn or error (default: info)\n\n"
    "When ready it prints one line with the server's URL and the path of a kubeconfig. In the data\n"
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

/* "127.0.0.1:6443", "[::1]:0" or ":6443" in place. */
static bool split_listen(char *text, struct apiserver_options *o)
{
    char *colon = strrchr(text, ':');
    int64_t port;
    if (!colon || str_to_i64(str_c(colon + 1), &port) < 0 || port < 0 || port > UINT16_MAX)
        return false;
    *colon = '\0';
    size_t n = strlen(text);
    if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
        text[n - 1] = '\0';
        text++;
    }
    o->address = *text ? text : NULL;
    o->port = (uint16_t)port;
    return true;
}

static int parse(int argc, char **argv, struct apiserver_options *o)
{
    static const struct option flags[] = {
        { "data", required_argument, NULL, 'd' },      { "listen", required_argument, NULL, 'l' },
        { "token-file", required_argument, NULL, 't' }, { "in-memory", no_argument, NULL, 'm' },
        { "insecure-http", no_argument, NULL, 'i' },   { "allow-remote", no_argument, NULL, 'r' },
        { "log-requests", no_argument, NULL, 'q' },    { "log-level", required_argument, NULL, 'v' },
        { "help", no_argument, NULL, 'h' },            { 0 },
    };
    enum log_level level = LOG_INFO;
    for (int c; (c = getopt_long(argc, argv, "h", flags, NULL)) != -1;) {
        switch (c) {
        case 'd':
            o->data = optarg;
            break;
        case 'l':
            if (!split_listen(optarg, o)) {
                fprintf(stderr, "flyball apiserver: --listen wants ADDR:PORT, not %s\n", optarg);
                return EXIT_USAGE;
            }
            break;
        case 't':
            o->token_file = optarg;
            break;
        case 'm':
            o->in_memory = true;
            break;
        case 'i':
            o->insecure_http = true;
            break;
        case 'r':
            o->allow_remote = true;
            break;
        case 'q':
            o->log_requests = true;
            break;
        case 'v':
            if (log_level_parse(str_c(optarg), &level) < 0) {
                fprintf(stderr, "flyball apiserver: --log-level is debug, info, warn or error\n");
                return EXIT_USAGE;
            }
            break;
        case 'h':
            fputs(help, stdout);
            return EXIT_SUCCESS;
        default:
            fputs("`flyball apiserver --help` tells what it takes.\n", stderr);
            return EXIT_USAGE;
        }
    }
    log_setup(level, LOG_TEXT);
    if (optind == argc)
        return -1;
    fprintf(stderr, "flyball apiserver: takes flags only, not %s\n", argv[optind]);
    return EXIT_USAGE;
}

static int serve(const struct apiserver_options *o)
{
    struct run r = { 0 };
    struct signal_watch *term = NULL, *interrupt = NULL;
    err_t e = { 0 };
    if (loop_new(&(struct loop_options){ 0 }, &r.loop, &e) < 0 ||
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
    struct apiserver_options o = { .data = "flyball-data", .port = 6443 };
    int result = parse(argc, argv, &o);
    return result >= 0 ? result : serve(&o);
}
