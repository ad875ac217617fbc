/* What `flyball up` says: where things are, what happens meanwhile, and what was done in the end.
 *
 * In a terminal a few lines at the bottom are drawn over again: one a feature, with how often it decided and
 * what it decided last. Elsewhere each decision is a line, when it is made. */
#include "up.h"

#include "../base/clock.h"
#include "../base/duration.h"
#include "../base/rfc3339.h"
#include "../base/utf8.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const int64_t redraw_ns = NS_PER_S;

static bool on_screen(void)
{
    return isatty(STDOUT_FILENO);
}

void up_print_where(const struct up *up)
{
    printf("flyball is up: %s, ready after %lld ms\n\n", apiserver_url(up->server),
           (long long)((clock_mono_ns() - up->started_ns) / NS_PER_MS));
    printf("  export KUBECONFIG=%s\n\n", apiserver_kubeconfig(up->server));
    printf("Try, in another terminal:\n\n"
           "  kubectl get pods,deployments,hpa -A\n"
           "  kubectl get va,shpa,podallocations,aimservices,httproutes -A\n"
           "  kubectl get events -A --watch\n\n"
           "Metrics: %s/metrics\n"
           "Ctrl-C stops; the same command goes on from where it was.\n\n",
           up->metrics_url);
    fflush(stdout);
}

struct tally {
    double reconciles, errors, requests;
};

static void add(void *context, const struct metric_view *view)
{
    struct tally *t = context;
    if (!strcmp(view->spec->name, "controller_runtime_reconcile_total"))
        t->reconciles += view->value;
    else if (!strcmp(view->spec->name, "controller_runtime_reconcile_errors_total"))
        t->errors += view->value;
    else if (!strcmp(view->spec->name, "rest_client_requests_total"))
        t->requests += view->value;
}

static struct tally count(const struct up *up)
{
    struct tally t = { 0 };
    metrics_read(up->metrics, &(struct metrics_reader){ .series = add, .context = &t });
    return t;
}

/* ---- meanwhile */

/* As much of a line as has room, cut between code points. */
static int fitting(str text, size_t columns)
{
    str rest = text;
    for (size_t n = 0; rest.n && n < columns; n++)
        (void)utf8_next(&rest);
    return (int)(text.n - rest.n);
}

static size_t screen_columns(void)
{
    struct winsize size = { 0 };
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 40 ? size.ws_col : 80;
}

static void draw_feature(const struct up *up, size_t feature, size_t columns)
{
    const struct up_decisions *d = &up->decisions[feature];
    str last = d->last.n ? buf_str(&d->last) : S("nothing to do yet");
    printf("\033[K%-14s%6lld  %.*s\n", up_feature_name(feature), (long long)d->count,
           fitting(last, columns - 24), last.p);
}

static void draw(struct up *up)
{
    struct tally t = count(up);
    char text[DURATION_TEXT_MAX], now[RFC3339_TEXT_MAX];
    str since = duration_text((clock_mono_ns() - up->started_ns) / NS_PER_S * NS_PER_S, text);
    if (up->screen_lines)
        printf("\033[%zuA", up->screen_lines);
    printf("\033[K" STR_FMT ", " STR_FMT " by its clock; %.0f requests, %.0f errors\n",
           STR_ARG(since), STR_ARG(rfc3339_text(loop_wall_ns(up->loop) / NS_PER_S, now)),
           t.requests, t.errors);
    for (size_t i = 0; i < UP_FEATURE_N; i++)
        draw_feature(up, i, screen_columns());
    up->screen_lines = UP_FEATURE_N + 1;
    fflush(stdout);
}

static void redraw(struct timer *timer)
{
    struct up *up = container_of(timer, struct up, summary);
    draw(up);
    timer_set(up->loop, &up->summary,
              loop_mono_ns(up->loop) + (int64_t)((double)redraw_ns * MAX(up->speed, 1)), redraw);
}

void up_summary_start(struct up *up)
{
    if (on_screen())
        timer_set(up->loop, &up->summary, loop_mono_ns(up->loop), redraw);
}

void up_print_decision(struct up *up, size_t feature, const struct up_news *news)
{
    char now[RFC3339_TEXT_MAX];
    if (on_screen())
        return;
    printf(STR_FMT " %s %s" STR_FMT "/" STR_FMT " " STR_FMT ": " STR_FMT "\n",
           STR_ARG(rfc3339_text(loop_wall_ns(up->loop) / NS_PER_S, now)), up_feature_name(feature),
           news->warning ? "warns of " : "", STR_ARG(news->ns), STR_ARG(news->name),
           STR_ARG(news->reason), STR_ARG(news->message));
    fflush(stdout);
}

/* ---- in the end */

void up_print_end(const struct up *up)
{
    struct tally t = count(up);
    if (up->ready)
        printf("\nDecisions that were applied, as the events in the API tell:\n");
    for (size_t i = 0; up->ready && i < UP_FEATURE_N; i++) {
        const struct up_decisions *d = &up->decisions[i];
        printf("  %-14s%6lld%s" STR_FMT "\n", up_feature_name(i), (long long)d->count,
               d->last.n ? "  last: " : "", STR_ARG(buf_str(&d->last)));
    }
    printf("stopped: %.0f reconciles, %.0f requests, %.0f errors; everything is kept in %s\n",
           t.reconciles, t.requests, t.errors, up->data);
}
