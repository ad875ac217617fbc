/* saturation: one fetch of 300 models with 4 replicas each: one query per model and metric, as WVA asks and
 * `--wva-queries model` does, beside one query per metric for all models.
 *
 * Prometheus is a server in this process with answers that were made before, as many series as the real one would
 * send: what is measured is the client with its connections and parsers, and the copying of the server. What
 * Prometheus itself saves is not in these numbers. */
#include "base/log.h"
#include "base/vec.h"
#include "budget.h"
#include "net/http_server.h"
#include "saturation/collect/collect.h"

#include <stdio.h>

enum { MODELS = 300, PODS = 4, EXPRESSIONS = 12, BUCKETS = 20, ROUNDS = 5 };
enum answer { BY_POD, OF_MODEL, TRAFFIC_BY_POD, TRAFFIC, HISTOGRAMS, ANSWER_N };

struct bench {
    struct loop *loop;
    struct http_server *server;
    struct prom_client *client;
    struct buf answers[2][ANSWER_N]; /* for one model, for all */
    size_t queries, fetched, bytes;
};

static char names[MODELS][2][24];

static void check(int r, const err_t *e)
{
    if (r < 0) {
        fprintf(stderr, "collect_bench: %s\n", e->text);
        exit(EXIT_FAILURE);
    }
}

/* ---- answers */

static void put_series(struct buf *out, int model, bool grouped, const char *more, int value)
{
    buf_printf(out, "%s{\"metric\":{", out->p[out->n - 1] == '[' ? "" : ",");
    if (grouped)
        buf_printf(out, "\"model_name\":\"%s\",\"namespace\":\"%s\",", names[model][1],
                   names[model][0]);
    buf_printf(out, "%s},\"value\":[1789000000.123,\"%d\"]}", more, value);
}

static void put_model(struct buf *out, int model, bool grouped, enum answer kind)
{
    bool by_pod = kind == BY_POD || kind == TRAFFIC_BY_POD;
    int expressions = kind == HISTOGRAMS ? 3 : kind >= TRAFFIC_BY_POD ? EXPRESSIONS : 1;
    int rows = by_pod ? PODS : kind == HISTOGRAMS ? BUCKETS : 1;
    for (int q = 0; q < expressions; q++)
        for (int row = 0; row < rows; row++) {
            char more[96], label[48] = "";
            if (by_pod)
                snprintf(label, sizeof(label), "\"pod\":\"p-%d-%d\",", model, row);
            else if (kind == HISTOGRAMS)
                snprintf(label, sizeof(label), "\"le\":\"%d\",", row + 1);
            snprintf(more, sizeof(more), "%s\"q\":\"%s%d\"", label, q ? "x" : "running", q);
            put_series(out, model, grouped, more, row);
        }
}

static void make_answers(struct bench *b)
{
    for (int grouped = 0; grouped < 2; grouped++)
        for (int kind = 0; kind < ANSWER_N; kind++) {
            struct buf *out = &b->answers[grouped][kind];
            buf_put(out,
                    S("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["));
            for (int m = 0; m < (grouped ? MODELS : 1); m++)
                put_model(out, m, grouped, (enum answer)kind);
            buf_put(out, S("]}}"));
        }
}

static void serve(void *context, struct exchange *x)
{
    struct bench *b = context;
    str body = exchange_body(x);
    bool grouped = str_find(body, S("model_name%3D~")) != SIZE_MAX;
    bool traffic = str_find(body, S("label_replace")) != SIZE_MAX;
    enum answer kind = str_find(body, S("max_over_time")) != SIZE_MAX && !traffic ? BY_POD
                       : !traffic                                                 ? OF_MODEL
                       : str_find(body, S("%22ttft%22")) != SIZE_MAX              ? HISTOGRAMS
                       : str_find(body, S("%22gateway%22")) != SIZE_MAX           ? TRAFFIC
                                                                                  : TRAFFIC_BY_POD;
    b->queries++;
    b->bytes += b->answers[grouped][kind].n;
    exchange_answer(x, 200, HTTP_HEADERS({ S("content-type"), S("application/json") }),
                    buf_str(&b->answers[grouped][kind]));
}

/* ---- fetches */

static void on_fetched(void *context, struct sat_feed *feed, bool first)
{
    struct bench *b = context;
    (void)first;
    b->fetched++;
    if (feed->failure || feed->samples.n != PODS) {
        fprintf(stderr, "collect_bench: %zu pods of %d: %s\n", feed->samples.n, PODS,
                feed->failure ? feed->failure : "no error");
        exit(EXIT_FAILURE);
    }
}

static void no_pods(void *context, struct sat_feed *feed)
{
    (void)context, (void)feed;
}

/* CPU of one fetch of all models, in ms. */
static double fetch_all(struct bench *b, bool grouped)
{
    struct sat_feed *feeds = mem_zero(MODELS, sizeof(*feeds));
    struct sat_collector collector = { .loop = b->loop,
                                       .prometheus = b->client,
                                       .grouped = grouped,
                                       .traffic_matters = true,
                                       .pods = no_pods,
                                       .fetched = on_fetched,
                                       .context = b };
    b->fetched = b->queries = b->bytes = 0;
    int64_t cpu = clock_cpu_ns();
    for (int m = 0; m < MODELS; m++) {
        feeds[m] = (struct sat_feed){ .ns = str_c(names[m][0]),
                                      .model = str_c(names[m][1]),
                                      .interval_ns = 3600 * NS_PER_S };
        collect_start(&feeds[m], &collector);
    }
    while (b->fetched < MODELS)
        loop_turn(b->loop);
    double ms = (double)(clock_cpu_ns() - cpu) / 1e6;
    for (int m = 0; m < MODELS; m++)
        collect_stop(&feeds[m]);
    free(feeds);
    return ms;
}

int main(void)
{
    static struct bench b;
    char url[64];
    err_t e;
    double least[2] = { 1e9, 1e9 };
    log_setup(LOG_WARN, LOG_TEXT);
    for (int m = 0; m < MODELS; m++) {
        snprintf(names[m][0], sizeof(names[m][0]), "team-%d", m / 10);
        snprintf(names[m][1], sizeof(names[m][1]), "org/model-%d", m);
    }
    make_answers(&b);
    check(loop_new(&(struct loop_options){ .time = LOOP_VIRTUAL }, &b.loop, &e), &e);
    check(http_server_new(b.loop,
                          &(struct http_server_options){ .on_request = serve, .context = &b },
                          &b.server, &e),
          &e);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", http_server_port(b.server));
    check(prom_client_new(b.loop, &(struct prom_client_options){ .url = str_c(url) }, &b.client,
                          &e),
          &e);
    for (int grouped = 0; grouped < 2; grouped++) {
        for (int i = 0; i < ROUNDS; i++)
            least[grouped] = MIN(least[grouped], fetch_all(&b, grouped));
        printf("%d models, %s: %zu queries, %.1f MB of answers, %.1f ms of CPU\n", MODELS,
               grouped ? "grouped" : "one by one", b.queries, (double)b.bytes / 1e6,
               least[grouped]);
    }
    budget("fetch of 300 models in grouped queries", least[1], least[0], "ms");
    return 0; /* the system takes back what is left */
}
