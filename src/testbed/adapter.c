/* The metrics page that autoscalers read external metrics from: see adapter.h.
 *
 * One GET is in flight at a time; its answer sets the timer of the next, so a slow server is never asked
 * twice. A failed read keeps the last page, which becomes stale after a minute: missing metrics are then
 * reported as missing (NaN), never as 0, because 0 would scale down. */
#include "adapter.h"

#include "../base/clock.h"
#include "../base/log.h"
#include "../prom/scrape.h"

#include <math.h>

static const int64_t fetch_period_ns = 5 * NS_PER_S, stale_ns = 60 * NS_PER_S;

static void fetch_page(struct timer *timer);

static void receive_page(void *context, const struct http_response *response, const err_t *failure)
{
    struct adapter *a = context;
    a->call = NULL;
    if (failure) {
        log_debug("cannot read the metrics page; retrying", KV_C("error", failure->text));
    } else if (response->status == 200) {
        buf_clear(&a->page);
        buf_put(&a->page, response->body);
        a->read_ns = loop_mono_ns(a->loop);
    }
    timer_set(a->loop, &a->again, loop_mono_ns(a->loop) + fetch_period_ns, fetch_page);
}

static void fetch_page(struct timer *timer)
{
    struct adapter *a = container_of(timer, struct adapter, again);
    a->call = http_client_fetch(a->client, &(struct http_fetch){ .method = S("GET"),
                                                                 .target = S("/metrics"),
                                                                 .max_body_bytes = 16 << 20,
                                                                 .on_done = receive_page,
                                                                 .context = a });
}

int adapter_start(struct adapter *a, struct loop *loop, const char *url, err_t *e)
{
    a->loop = loop;
    if (!url || !*url)
        return 0;
    int r =
        http_client_new(loop, &(struct http_client_options){ .url = str_c(url) }, &a->client, e);
    if (r < 0)
        return err_wrap(e, "--testbed-metrics-url");
    timer_set(loop, &a->again, loop_mono_ns(loop), fetch_page);
    return 0;
}

void adapter_done(struct adapter *a)
{
    timer_stop(&a->again);
    if (a->call)
        http_call_cancel(a->call);
    http_client_free(a->client);
    buf_done(&a->page);
}

struct search { /* the sum of the series with this name and these labels */
    str name;
    const struct json *labels; /* an object of strings; borrowed */
    double sum;
    bool found;
};

static int add_sample(void *context, const struct scrape_sample *sample, err_t *e)
{
    struct search *search = context;
    (void)e;
    if (!str_eq(sample->name, search->name))
        return 0;
    json_each(label, search->labels)
        if (!str_eq(scrape_label(sample, label->key), json_text(label->value)))
            return 0;
    search->sum += sample->value;
    search->found = true;
    return 0;
}

double adapter_value(const struct adapter *a, str name, const struct json *labels)
{
    struct search search = { .name = name, .labels = labels };
    if (!a->page.n || loop_mono_ns(a->loop) - a->read_ns > stale_ns ||
        scrape_read(buf_str(&a->page), add_sample, &search, NULL) < 0)
        return NAN;
    return search.found ? search.sum : NAN;
}
