/* The program's own metrics: families of counters, gauges and histograms with labeled series that
 * come and go. Any folder may register some; prom/exposition.h writes them for a scrape.
 *
 *     struct metric_family *total = metrics_family(m, &(struct metric_spec){
 *         .name = "workqueue_adds_total", .help = "Keys added", .kind = METRIC_COUNTER, .labels = { "name" } });
 *     metric_add(METRIC(total, queue->name), 1);
 *
 * A registry owns its families and series, and belongs to one thread. A series stays valid until it
 * is dropped: keep the pointer on hot paths. */
#ifndef FLYBALL_METRICS_H
#define FLYBALL_METRICS_H

#include "str.h"

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

enum { METRIC_LABELS_MAX = 8 };

/* Texts and bounds are borrowed for the lifetime of the registry: use literals. */
struct metric_spec {
    const char *name, *help;
    enum metric_kind kind;
    const char *labels[METRIC_LABELS_MAX]; /* names; NULL ends */
    const double *bounds;                  /* histogram: upper bounds, ascending, without +Inf */
    size_t bound_n;
};

struct metrics;
struct metric_family;
struct metric; /* one series */

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);

/* Registers a family, or returns the registered one of that name, which must have the same kind and
 * labels. */
struct metric_family *metrics_family(struct metrics *m, const struct metric_spec *spec);

/* The series with these label values (as many as the family has labels); a new one starts at 0. */
struct metric *metric_at(struct metric_family *f, const str *values);
#define METRIC(family, ...) metric_at((family), (const str[]){ __VA_ARGS__ })
#define METRIC_ALONE(family)                                                                       \
    metric_at((family), NULL) /* the one series of a family without labels */

void metric_add(struct metric *s, double more);      /* counter (more >= 0) or gauge */
void metric_set(struct metric *s, double value);     /* gauge */
void metric_observe(struct metric *s, double value); /* histogram */

bool metric_drop(struct metric_family *f, const str *values); /* false: there was no such series */
/* Drops every series whose first `n` labels have these values; returns how many. Looks at all series. */
size_t metric_drop_all(struct metric_family *f, const str *values, size_t n);

/* Calls `collect` before each read of the registry, to set gauges that are not worth updating all
 * the time. */
void metrics_on_read(struct metrics *m, void (*collect)(void *context), void *context);
void metrics_off_read(struct metrics *m,
                      const void *context); /* removes this context's callbacks */

/* ---- reading: families by name, series by label values */

struct metric_view {
    const struct metric_spec *spec;
    const str *values; /* of the labels, in their order */
    double value;      /* counter, gauge; the sum of a histogram */
    const uint64_t
        *counts;    /* histogram: observations per bucket, not cumulative; bound_n + 1 of them */
    uint64_t count; /* histogram: all observations */
};

/* `family` is called before the series of each family, even if there are none. */
struct metrics_reader {
    void (*family)(void *context, const struct metric_spec *spec); /* may be NULL */
    void (*series)(void *context, const struct metric_view *series);
    void *context;
};

void metrics_read(struct metrics *m, const struct metrics_reader *reader);

/* Reads one part per call, for callers that cannot buffer everything: one family, or some of the
 * series that a source provides. False: nothing is left. */
struct metrics_place {  /* `{0}` is the beginning */
    const char *family; /* the family read last */
    size_t source_next; /* where its source continues; 0: the family is complete */
};
bool metrics_read_next(struct metrics *m, struct metrics_place *at,
                       const struct metrics_reader *reader);

/* ---- series that the registry does not store: if many objects hold their own numbers, a source
 * provides their series when the registry is read. It calls reader->series for some of them,
 * starting at position `from`, and returns the position to continue at in the next call, or 0 after
 * the last one. */
typedef size_t metric_source(void *context, const struct metric_spec *spec, size_t from,
                             const struct metrics_reader *reader);
void metric_set_source(struct metric_family *f, metric_source *source,
                       void *context); /* NULL: no source */

#endif
