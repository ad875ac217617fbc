/* External metrics for simulated autoscalers, in place of Prometheus and its adapter. One /metrics page is read
 * every 5 seconds; the value of a metric is the sum of its series with the labels in the metric's selector. */
#ifndef FLYBALL_ADAPTER_H
#define FLYBALL_ADAPTER_H

#include "../base/buf.h"
#include "../json/json.h"
#include "../net/http_client.h"

struct adapter {
    struct loop *loop;
    struct http_client *client; /* owned; NULL: no URL is configured */
    struct http_call *call;     /* in flight; NULL: none */
    struct timer again;
    struct buf page; /* the last one read */
    int64_t read_ns; /* when, on the loop's monotonic clock */
};

/* `url` of the server with the page; "": every metric is missing. */
int adapter_start(struct adapter *a, struct loop *loop, const char *url, err_t *e);
void adapter_done(struct adapter *a);

/* NaN if no series matches or the page is older than a minute. */
double adapter_value(const struct adapter *a, str name, const struct json *labels);

#endif
