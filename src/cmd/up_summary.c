/* What `flyball up` says: where things are, what happens meanwhile, and what was done in the end. */
#include "up.h"

#include "../base/clock.h"
#include "../base/duration.h"

#include <stdio.h>
#include <unistd.h>

static const int64_t summary_every_ns = 5 * NS_PER_S;

void up_print_where(const struct up *up)
{
    printf("flyball is up: %s, ready after %lld ms\n\n", apiserver_url(up->server),
           (long long)((clock_mono_ns() - up->started_ns) / NS_PER_MS));
    printf("  export KUBECONFIG=%s\n\n", apiserver_kubeconfig(up->server));
    printf("Try, in another terminal:\n\n"
           "  kubectl get deployments,hpa,shpa -A\n"
           "  kubectl get hpa -A --watch\n"
           "  kubectl get events -A --watch\n\n"
           "Ctrl-C stops; the same command goes on from where it was.\n\n");
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

static void print_summary(struct timer *timer)
{
    struct up *up = container_of(timer, struct up, summary);
    struct tally t = count(up);
    char text[DURATION_TEXT_MAX];
    int64_t ran = (clock_mono_ns() - up->started_ns) / NS_PER_S * NS_PER_S;
    str since = duration_text(ran, text);
    bool screen = isatty(STDOUT_FILENO);
    printf("%s" STR_FMT ": %.0f decisions looked at, %.0f requests, %.0f errors%s",
           screen ? "\r\033[K" : "", STR_ARG(since), t.reconciles, t.requests, t.errors,
           screen ? "" : "\n");
    fflush(stdout);
    timer_set(up->loop, &up->summary,
              loop_mono_ns(up->loop) + (int64_t)((double)summary_every_ns * up->speed),
              print_summary);
}

void up_summary_start(struct up *up)
{
    timer_set(up->loop, &up->summary, loop_mono_ns(up->loop) + summary_every_ns, print_summary);
}

void up_print_end(const struct up *up)
{
    struct tally t = count(up);
    printf(
        "%sstopped: %.0f decisions looked at, %.0f requests, %.0f errors; everything is kept in %s\n",
        isatty(STDOUT_FILENO) ? "\n" : "", t.reconciles, t.requests, t.errors, up->data);
}
