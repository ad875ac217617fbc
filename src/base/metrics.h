/* What the program counts about itself: families of counters, gauges and histograms with labelled
 * series that come and go. Any folder counts; prom/exposition.h writes them for a scrape.
 *
 *     struct metric_family *total = metrics_family(m, &(struct metric_spec){
 *         .name = "workqueue_adds_total", .help = "Keys added", .kind = METRIC_COUNTER, .labels = { "name" } });
 *     metric_add(METRIC(total, queue->name), 1);
 *
 * A registry owns its families and series, and belongs to one thread. A series stays valid until it is
 * dropped: keep the pointer where counting is hot. */
#ifndef FLYBALL_METRICS_H
#define FLYBALL_METRICS_H

#include "str.h"

enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

enum { METRIC_LABELS_MAX = 8 };

/* Texts and bounds are borrowed for ever: let them be literals. */
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

/* Registers, or finds the family of that name, which must be of the same kind and labels. */
struct metric_family *metrics_family(struct metrics *m, const struct metric_spec *spec);

/* The series with these label values (as many as the family has labels), made at 0 when new. */
struct metric *metric_at(struct metric_family *f, const str *values);
#define METRIC(family, ...) metric_at((family), (const str[]){ __VA_ARGS__ })
#define METRIC_ALONE(family) metric_at((family), NULL) /* of a family without labels */

void metric_add(struct metric *s, double more);      /* counter (more >= 0) or gauge */
void metric_set(struct metric *s, double value);     /* gauge */
void metric_observe(struct metric *s, double value); /* histogram */

bool metric_drop(struct metric_family *f, const str *values); /* true when it was there */
/* Drops every series whose label has that value; answers how many. */
size_t metric_drop_where(struct metric_family *f, const char *label, str value);

/* `collect` is called before the registry is read: to set gauges that are only worth a look. */
void metrics_on_read(struct metrics *m, void (*collect)(void *context), void *context);
void metrics_off_read(struct metrics *m, const void *context); /* no longer for this context */

/* ---- reading: families by name, series by label values */

struct metric_view {
    const struct metric_spec *spec;
    const str *values; /* of the labels, in their order */
    double value;      /* counter, gauge; the sum of a histogram */
    const uint64_t
        *counts;    /* histogram: observations a bucket, bound_n + 1 of them, not summed up */
    uint64_t count; /* histogram: all observations */
};

/* `family` comes before the series of each, also of one without any. */
struct metrics_reader {
    void (*family)(void *context, const struct metric_spec *spec); /* may be NULL */
    void (*series)(void *context, const struct metric_view *series);
    void *context;
};

void metrics_read(struct metrics *m, const struct metrics_reader *reader);

/* In parts, for who has no room for all: a family a call, or some of the series that are told. False: there
 * is nothing left. */
struct metrics_place { /* `{0}` is the beginning */
    const char *family;
    size_t told;
};
bool metrics_read_next(struct metrics *m, struct metrics_place *at,
                       const struct metrics_reader *reader);

/* ---- series that are not kept: where there is one for each of many things that hold their numbers
 * themselves, `tell` is asked when the registry is read, and calls reader->series for some, from number `from`
 * on. It returns the number to go on with, maybe after a while; 0: those were the last. */
typedef size_t metric_teller(void *context, const struct metric_spec *spec, size_t from,
                             const struct metrics_reader *reader);
void metric_tell(struct metric_family *f, metric_teller *tell, void *context); /* NULL: no longer */

#endif
