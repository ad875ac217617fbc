/* The output of `flyball up` as lines: URLs at the start, one line per decision if there is no terminal (see
 * up_screen.c), totals at the end. */
#include "up.h"

#include "../base/rfc3339.h"
#include "../base/utf8.h"

#include <stdio.h>
#include <stdlib.h>

/* Quoted for a shell where the path needs it. */
static void put_quoted(struct buf *out, const char *path)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+";
    if (strspn(path, plain) == strlen(path)) {
        buf_put(out, str_c(path));
        return;
    }
    buf_put(out, S("'"));
    for (; *path; path++)
        buf_put(out, *path == '\'' ? S("'\\''") : (str){ path, 1 });
    buf_put(out, S("'"));
}

void up_summary_put_export(struct buf *out, const struct up *up)
{
    const char *path = apiserver_kubeconfig(up->server);
    auto_free char *whole = realpath(path, NULL);
    buf_put(out, S("export KUBECONFIG="));
    put_quoted(out, whole ? whole : path);
}

void up_summary_print_urls(const struct up *up)
{
    auto_buf struct buf export = { 0 };
    up_summary_put_export(&export, up);
    printf("flyball is up: %s, ready after %lld ms\n\n", apiserver_url(up->server),
           (long long)up->ready_ms);
    printf("  %s\n\n", export.p);
    printf("Try, in another terminal:\n\n"
           "  kubectl get pods,deployments,hpa -A\n"
           "  kubectl get va,shpa,podallocations,aimservices,httproutes -A\n"
           "  kubectl get events -A --watch\n\n"
           "Page:    %s\n"
           "Metrics: %s/metrics\n"
           "Press Ctrl-C to stop. The same command continues from the saved state.\n\n",
           up->web ? web_login_url(up->web) : "none", up->metrics_url);
    fflush(stdout);
}

static void add_to_tally(void *context, const struct metric_view *view)
{
    struct up_tally *t = context;
    if (!strcmp(view->spec->name, "controller_runtime_reconcile_total"))
        t->reconciles += view->value;
    else if (!strcmp(view->spec->name, "controller_runtime_reconcile_errors_total"))
        t->errors += view->value;
    else if (!strcmp(view->spec->name, "rest_client_requests_total"))
        t->requests += view->value;
}

struct up_tally up_summary_count(const struct up *up)
{
    struct up_tally t = { 0 };
    metrics_read(up->metrics, &(struct metrics_reader){ .series = add_to_tally, .context = &t });
    return t;
}

void up_summary_add_decision(struct up *up, size_t feature, const struct up_decision *news)
{
    char text[RFC3339_TEXT_MAX];
    if (str_cmp(news->time, rfc3339_text(up->started_s, text)) < 0)
        return; /* from an earlier run */
    if (up_screen_is_terminal()) {
        up_screen_add(up, feature, news);
    } else if (up->ready) {
        printf(STR_FMT " %s %s" STR_FMT "/" STR_FMT " " STR_FMT ": " STR_FMT "\n",
               STR_ARG(news->time), up_events_feature_name(feature),
               news->warning ? "warning " : "", STR_ARG(news->ns), STR_ARG(news->name),
               STR_ARG(news->reason), STR_ARG(news->message));
        fflush(stdout);
    }
}

/* ---- totals */

/* A terminal gets one line per feature, however long the last decision is. */
static void print_last(const struct up *up, size_t feature)
{
    const struct up_decisions *d = &up->decisions[feature];
    size_t columns = up_screen_is_terminal() ? MAX(up->screen.columns, (size_t)40) - 31 : SIZE_MAX;
    str last = buf_str(&d->last), rest = last;
    for (size_t n = 0; rest.n && n < columns; n++)
        (void)utf8_next(&rest);
    printf("  %-14s%6lld%s" STR_FMT "%s\n", up_events_feature_name(feature), (long long)d->count,
           last.n ? "  last: " : "", STR_ARG(str_upto(last, last.n - rest.n)), rest.n ? "…" : "");
}

void up_summary_print_totals(struct up *up)
{
    struct up_tally t = up_summary_count(up);
    if (up->ready)
        printf("\nDecisions that were applied, from the events in the API:\n");
    for (size_t i = 0; up->ready && i < UP_FEATURE_N; i++)
        print_last(up, i);
    printf("stopped: %.0f reconciles, %.0f requests, %.0f errors\n", t.reconciles, t.requests,
           t.errors);
    printf("All state is kept in %s\n", up->data);
}
