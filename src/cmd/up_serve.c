/* Serves /metrics and /healthz of `flyball up` on a separate loopback port. The simulated
 * autoscalers read their external metrics from it, so it also takes the place of a metrics
 * adapter. There is neither TLS nor authorization. */
#include "up.h"

#include "../net/http_server.h"
#include "../prom/exposition.h"

#include <stdio.h>

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
    } else {
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
    return r;
}
