/* The output of `flyball up`: URLs at the start, decisions while it runs, totals at the end.
 *
 * On a terminal a summary at the bottom is redrawn in place: one line per feature, with the
 * number of its decisions and the last one, and below them as many recent decisions as the
 * screen has room for:
 *
 *      57s, 2026-11-16T05:57:43Z by its clock; 186 requests, 0 errors
 *      saturation         3  <last decision>
 *      ...
 *      05:57:40  market   <decision>
 *
 * If the size of the terminal changes, everything is redrawn. Log lines replace the summary,
 * which moves down. Only the loop's thread draws. Without a terminal each decision is printed as
 * one line. */
#include "up.h"

#include "../base/clock.h"
#include "../base/duration.h"
#include "../base/log.h"
#include "../base/rfc3339.h"
#include "../base/utf8.h"

#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const int64_t redraw_ns = NS_PER_S;

enum { URL_LINES = 13, SUMMARY_LINES = 1 + UP_FEATURE_N };

static bool is_terminal(void)
{
    const char *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
}

/* Prints URL_LINES lines. */
void up_summary_print_urls(const struct up *up)
{
    printf("flyball is up: %s, ready after %lld ms\n\n", apiserver_url(up->server),
           (long long)up->ready_ms);
    printf("  export KUBECONFIG=%s\n\n", apiserver_kubeconfig(up->server));
    printf("Try, in another terminal:\n\n"
           "  kubectl get pods,deployments,hpa -A\n"
           "  kubectl get va,shpa,podallocations,aimservices,httproutes -A\n"
           "  kubectl get events -A --watch\n\n"
           "Metrics: %s/metrics\n"
           "Press Ctrl-C to stop. The same command continues from the saved state.\n\n",
           up->metrics_url);
    fflush(stdout);
}

struct tally {
    double reconciles, errors, requests;
};

static void add_to_tally(void *context, const struct metric_view *view)
{
    struct tally *t = context;
    if (!strcmp(view->spec->name, "controller_runtime_reconcile_total"))
        t->reconciles += view->value;
    else if (!strcmp(view->spec->name, "controller_runtime_reconcile_errors_total"))
        t->errors += view->value;
    else if (!strcmp(view->spec->name, "rest_client_requests_total"))
        t->requests += view->value;
}

static struct tally count_totals(const struct up *up)
{
    struct tally t = { 0 };
    metrics_read(up->metrics, &(struct metrics_reader){ .series = add_to_tally, .context = &t });
    return t;
}

/* ---- while it runs */

static const char *const colors[UP_FEATURE_N] = { "\033[32m", "\033[36m", "\033[33m", "\033[35m" };

static const char *feature_color(size_t feature)
{
    return getenv("NO_COLOR") ? "" : colors[feature];
}

static const char *reset_color(void)
{
    return getenv("NO_COLOR") ? "" : "\033[0m";
}

/* Appends as much of a text as fits, cut between code points. */
static void put_fitting(struct buf *out, str text, size_t columns)
{
    str rest = text;
    for (size_t n = 1; rest.n && n < columns; n++)
        (void)utf8_next(&rest);
    str after = rest;
    if (after.n)
        (void)utf8_next(&after);
    bool whole = after.n == 0;
    buf_put(out, whole ? text : str_upto(text, text.n - rest.n));
    buf_put(out, whole ? S("") : S("…"));
}

/* Measures the terminal; true if its size changed. */
static bool measure_terminal(struct up_screen *screen)
{
    struct winsize size = { 0 };
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    size_t columns = known && size.ws_col > 40 ? size.ws_col : 80;
    size_t rows = known && size.ws_row ? size.ws_row : 24;
    bool changed = screen->rows && (columns != screen->columns || rows != screen->rows);
    screen->columns = columns;
    screen->rows = rows;
    return changed;
}

static void draw_feature(struct buf *out, const struct up *up, size_t feature)
{
    const struct up_decisions *d = &up->decisions[feature];
    buf_printf(out, "\033[K%s%-14s%s%6lld  ", feature_color(feature),
               up_events_feature_name(feature), reset_color(), (long long)d->count);
    put_fitting(out, d->last.n ? buf_str(&d->last) : S("no decision yet"), up->screen.columns - 23);
    buf_putc(out, '\n');
}

/* Lines left below the URLs, the summary, an empty line and the line of the cursor. */
static size_t count_news_lines(const struct up_screen *screen)
{
    size_t taken = URL_LINES + SUMMARY_LINES + 2;
    size_t room = screen->rows > taken ? screen->rows - taken : 0;
    return MIN(room, MIN(screen->news_count, countof(screen->news)));
}

/* Draws the most recent decisions, oldest first; returns the number of lines. */
static size_t draw_news(struct buf *out, const struct up_screen *screen)
{
    size_t n = count_news_lines(screen);
    if (!n)
        return 0;
    buf_put(out, S("\033[K\n"));
    for (size_t i = screen->news_count - n; i < screen->news_count; i++) {
        size_t at = i % countof(screen->news);
        buf_printf(out, "\033[K%s  %s%-15s%s", screen->news[at].clock,
                   feature_color(screen->news[at].feature),
                   up_events_feature_name(screen->news[at].feature), reset_color());
        put_fitting(out, buf_str(&screen->news[at].text), screen->columns - 26);
        buf_putc(out, '\n');
    }
    return n + 1;
}

/* Draws run time, simulated time, and totals of requests and errors. */
static void draw_status(struct buf *out, const struct up *up)
{
    struct tally t = count_totals(up);
    char text[DURATION_TEXT_MAX], moment[RFC3339_TEXT_MAX], line[200];
    str since = duration_text((clock_mono_ns() - up->started_ns) / NS_PER_S * NS_PER_S, text);
    str now = rfc3339_text(loop_wall_ns(up->loop) / NS_PER_S, moment);
    snprintf(line, sizeof(line), STR_FMT ", " STR_FMT " by its clock; %.0f requests, %.0f errors",
             STR_ARG(since), STR_ARG(now), t.requests, t.errors);
    buf_put(out, S("\033[K"));
    put_fitting(out, str_c(line), up->screen.columns - 1);
    buf_putc(out, '\n');
}

/* Redraws the summary in one write, which avoids flicker. */
static void draw_summary(struct up *up)
{
    struct up_screen *screen = &up->screen;
    auto_buf struct buf out = { 0 };
    if (measure_terminal(screen)) {
        printf("\033[H\033[2J");
        up_summary_print_urls(up);
        screen->lines = 0;
    }
    if (screen->lines)
        buf_printf(&out, "\033[%zuA", screen->lines);
    draw_status(&out, up);
    for (size_t i = 0; i < UP_FEATURE_N; i++)
        draw_feature(&out, up, i);
    screen->lines = SUMMARY_LINES + draw_news(&out, screen);
    fwrite(out.p, 1, out.n, stdout);
    fflush(stdout);
}

static void on_redraw_timer(struct timer *timer)
{
    struct up *up = container_of(timer, struct up, summary);
    draw_summary(up);
    timer_set(up->loop, &up->summary,
              loop_mono_ns(up->loop) + (int64_t)((double)redraw_ns * MAX(up->speed, 1)),
              on_redraw_timer);
}

/* A log line replaces the summary, which moves down. If another thread logs, the summary stays
 * empty until the loop's thread draws again. */
static void draw_log_line(void *context, str line)
{
    struct up *up = context;
    auto_buf struct buf out = { 0 };
    if (up->screen.lines)
        buf_printf(&out, "\033[%zuA\033[J", up->screen.lines);
    buf_put(&out, line);
    for (size_t i = 0; i < up->screen.lines; i++)
        buf_putc(&out, '\n');
    (void)!write(STDERR_FILENO, out.p, out.n);
    if (pthread_equal(pthread_self(), up->thread))
        draw_summary(up);
}

void up_summary_start(struct up *up)
{
    if (!is_terminal())
        return;
    up->thread = pthread_self();
    if (isatty(STDERR_FILENO))
        log_redirect(draw_log_line, up);
    timer_set(up->loop, &up->summary, loop_mono_ns(up->loop), on_redraw_timer);
}

void up_summary_done(struct up *up)
{
    for (size_t i = 0; i < countof(up->screen.news); i++)
        buf_done(&up->screen.news[i].text);
}

/* Keeps a decision in the ring, with the time of day only. */
static void store_decision(struct up_screen *screen, size_t feature, const struct up_decision *news)
{
    size_t at = screen->news_count++ % countof(screen->news);
    struct buf *text = &screen->news[at].text;
    snprintf(screen->news[at].clock, sizeof(screen->news[at].clock), "%.8s",
             str_from(news->time, strlen("2026-01-01T")).p);
    screen->news[at].feature = feature;
    buf_clear(text);
    buf_printf(text, "%s" STR_FMT " (" STR_FMT "/" STR_FMT ")", news->warning ? "warning: " : "",
               STR_ARG(news->message), STR_ARG(news->ns), STR_ARG(news->name));
}

void up_summary_add_decision(struct up *up, size_t feature, const struct up_decision *news)
{
    char text[RFC3339_TEXT_MAX];
    if (str_cmp(news->time, rfc3339_text(up->started_s, text)) < 0)
        return; /* from an earlier run */
    if (is_terminal()) {
        store_decision(&up->screen, feature, news);
    } else if (up->ready) {
        printf(STR_FMT " %s %s" STR_FMT "/" STR_FMT " " STR_FMT ": " STR_FMT "\n",
               STR_ARG(news->time), up_events_feature_name(feature),
               news->warning ? "warning " : "", STR_ARG(news->ns), STR_ARG(news->name),
               STR_ARG(news->reason), STR_ARG(news->message));
        fflush(stdout);
    }
}

/* ---- totals */

static void print_last(const struct up *up, size_t feature)
{
    const struct up_decisions *d = &up->decisions[feature];
    auto_buf struct buf last = { 0 };
    put_fitting(&last, buf_str(&d->last), is_terminal() ? up->screen.columns - 31 : SIZE_MAX);
    printf("  %-14s%6lld%s" STR_FMT "\n", up_events_feature_name(feature), (long long)d->count,
           last.n ? "  last: " : "", STR_ARG(buf_str(&last)));
}

void up_summary_print_totals(struct up *up)
{
    struct tally t = count_totals(up);
    measure_terminal(&up->screen);
    log_redirect(NULL, NULL); /* keep the summary on the screen */
    if (up->ready)
        printf("\nDecisions that were applied, from the events in the API:\n");
    for (size_t i = 0; up->ready && i < UP_FEATURE_N; i++)
        print_last(up, i);
    printf("stopped: %.0f reconciles, %.0f requests, %.0f errors\n", t.reconciles, t.requests,
           t.errors);
    printf("All state is kept in %s\n", up->data);
}
