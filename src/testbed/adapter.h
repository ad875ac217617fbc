/* External metrics: what a Prometheus and its adapter are to autoscalers. One page of /metrics is read every
 * few seconds, and a metric's value is the sum of its series that carry the labels asked for. */
#ifndef FLYBALL_ADAPTER_H
#define FLYBALL_ADAPTER_H

#include "../base/buf.h"
#include "../json/json.h"
#include "../net/http_client.h"

struct adapter {
    struct loop *loop;
    struct http_client *client; /* NULL: there is no page */
    struct http_call *call;     /* under way */
    struct timer again;
    struct buf page; /* the last one that came */
    int64_t read_ns; /* when, by the loop's clock */
};

/* `url` of the page; "": no metric will ever be there. */
int adapter_start(struct adapter *a, struct loop *loop, const char *url, err_t *e);
void adapter_done(struct adapter *a);

/* NaN where no series matches, or the page is older than a minute. */
double adapter_value(const struct adapter *a, str name, const struct json *labels);

#endif
