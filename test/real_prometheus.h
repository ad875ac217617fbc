/* A real Prometheus (the package) for tests in virtual time. It scrapes one page of samples that carry their own
 * time, and answers queries as of a time that the test chooses: an hour of series takes as long as it takes to
 * scrape them.
 *
 *     struct prometheus p;
 *     prometheus_start(&p);                        false: there is none on this machine
 *     prometheus_publish(&p, text, at_ms);         returns when Prometheus has it
 *     prometheus_post(&p, "query", S("query=up&time=1.5"), &answer);
 *     prometheus_stop(&p);
 *
 * The page is served by a thread with blocking calls: Prometheus is a process of its own, for which a virtual loop
 * would not wait. */
#ifndef FLYBALL_REAL_PROMETHEUS_H
#define FLYBALL_REAL_PROMETHEUS_H

#include "base/buf.h"

#include <pthread.h>

struct prometheus {
    pid_t process;
    pthread_t server;
    pthread_mutex_t lock;
    struct buf page;
    int listener;
    uint16_t port;
    uint64_t published;
    char dir[64];
};

/* Sends a form to /api/v1/`path` and appends the body of the answer. Returns the status code; 0: no answer. */
int prometheus_post(const struct prometheus *p, const char *path, str form, struct buf *out);
bool prometheus_start(struct prometheus *p);
/* Replaces the page. Each line ends with its time in ms; `at_ms` is that of the latest. */
bool prometheus_publish(struct prometheus *p, str text, int64_t at_ms);
void prometheus_stop(struct prometheus *p);
/* The value of a field of a form, "&name=". NaN: absent. */
double prometheus_form_number(str form, const char *name);
/* The samples of an answer are [time,"value"]. */
void prometheus_move_times(struct buf *out, str answer, double by_s);

#endif
