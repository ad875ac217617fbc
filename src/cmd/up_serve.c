/* Serves /metrics and /healthz of `flyball up` on a separate loopback port. The simulated
 * autoscalers read their external metrics from it, so it also takes the place of a metrics
 * adapter, and model images are looked up in the simulated registry below /v2/. There is neither
 * TLS nor authorization. */
#include "up.h"

#include "../base/log.h"
#include "../net/http_server.h"
#include "../prom/exposition.h"
#include "../testbed/registry.h"
#include "flags.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <unistd.h>

static void on_request(void *context, struct exchange *x)
{
    struct up *up = context;
    str path = exchange_path(x);
    auto_buf struct buf text = { 0 };
    const struct http_headers plain = HTTP_HEADERS({ S("content-type"), S("text/plain") });
    if (str_eq(path, S("/metrics"))) {
        exposition_write(&text, up->metrics);
        exchange_answer_buf(x, 200, HTTP_HEADERS({ S("content-type"), S(EXPOSITION_CONTENT_TYPE) }),
                            &text);
    } else if (str_eq(path, S("/healthz"))) {
        exchange_answer(x, 200, plain, S("ok\n"));
    } else if (!testbed_registry_answer(x)) {
        exchange_answer(x, 404, plain, S("not found; try /metrics or /healthz\n"));
    }
}

int up_serve(struct up *up, err_t *e)
{
    int r = http_server_new(up->loop,
                            &(struct http_server_options){ .on_request = on_request,
                                                           .context = up,
                                                           .max_connections = 64,
                                                           .max_body_bytes = 4096 },
                            &up->http, e);
    if (r == 0)
        snprintf(up->metrics_url, sizeof(up->metrics_url), "http://127.0.0.1:%u",
                 http_server_port(up->http));
    if (r == 0)
        snprintf(up->registry_mirror, sizeof(up->registry_mirror), TESTBED_REGISTRY "=%s",
                 up->metrics_url);
    return r;
}

/* The page shows other users' state and has a login without TLS: it is for this machine only. */
int up_serve_page(struct up *up, err_t *e)
{
    struct web_options o = { .manager = up->controllers, .data = up->data };
    o.unserved = !strcmp(up->web_listen, "none");
    if (o.unserved) /* a terminal shows the same state */
        return up_screen_is_terminal() ? web_new(&o, &up->web, e) : 0;
    if (strlen(up->web_listen) >= sizeof(up->web_address))
        return err_set(e, EINVAL, "--web-listen is too long");
    strcpy(up->web_address, up->web_listen);
    int r = flags_split_listen("web-listen", up->web_address, &o.address, &o.port, e);
    if (r < 0)
        return r;
    if (o.address && !uri_host_is_loopback(str_c(o.address)))
        return err_set(e, EPERM,
                       "--web-listen is \"%s\", but must be a loopback address such as 127.0.0.1:0",
                       up->web_listen);
    return web_new(&o, &up->web, e);
}

/* Starts a browser and does not wait for it; its messages would disturb the terminal. */
void up_open_page(struct up *up)
{
    const char *url = web_login_url(up->web);
    posix_spawn_file_actions_t actions;
    pid_t child;
    posix_spawn_file_actions_init(&actions);
    for (int fd = 0; fd <= 2; fd++)
        posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
    int r = posix_spawnp(&child, "xdg-open", &actions, NULL,
                         (char *const[]){ (char *)"xdg-open", (char *)url, NULL }, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (r)
        log_error("cannot open a browser; open the page by hand", KV_C("xdg-open", strerror(r)),
                  KV_C("url", url));
}
