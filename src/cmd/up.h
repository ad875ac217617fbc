/* Shared by the files of `flyball up` only. */
#ifndef FLYBALL_CMD_UP_H
#define FLYBALL_CMD_UP_H

#include "../apiserver/apiserver.h"
#include "../base/metrics.h"
#include "../kube/manager.h"
#include "../net/loop.h"
#include "../testbed/cluster.h"
#include "../web/web.h"
#include "manifest_apply.h"
#include "screen_core.h"
#include "start_trim.h"

#include <pthread.h>
#include <termios.h>

enum { UP_FEATURE_N = 4 }; /* that report decisions: up_events_feature_name() */

struct up_decisions { /* of one feature, since the data directory was created */
    int64_t count, warnings;
    struct buf last;
};

struct up_decision {
    str kind, ns, name, reason, message; /* without control characters */
    str time;                            /* RFC 3339 */
    bool warning;
};

struct up_news { /* a decision, as the screen shows it */
    uint64_t number;
    size_t feature;
    bool warning;
    char clock[sizeof("00:00:00")];
    struct buf kind, ns, name, text;
};

/* The live view, if standard output is a terminal: up_screen.c. */
struct up_screen {
    int tty;      /* the terminal, opened for us alone, because it is non-blocking; -1: none */
    bool entered; /* it shows our screen */
    struct fd_watch *keys;
    struct signal_watch *resized, *suspended;
    struct termios *modes; /* as they were; owned */
    size_t rows, columns;
    struct up_news news[64]; /* a ring of the last decisions */
    size_t news_count;
    struct buf note; /* the last log line */
    /* the selected row */
    bool chosen, opened;
    int kind; /* enum screen_kind */
    struct buf key;
    size_t index, scroll, detail_lines;
};

struct up_agent;

struct up {
    /* flags */
    const char *data, *listen, *web_listen, *scenario, *log_level, *clock, *speed_text;
    double speed;    /* 0: not chosen yet */
    int64_t for_ns;  /* 0: until a signal */
    int64_t clock_s; /* start of the simulated clock, seconds since 1970; 0: now */
    bool help, open; /* open: show the page in a browser */

    /* state */
    struct loop *loop;
    struct apiserver *server;
    struct metrics *metrics;
    struct tracer *tracer;            /* NULL: no traces */
    struct kube *kube, *testbed_kube; /* clients of the controllers and of the simulated cluster */
    struct manager *controllers, *testbed;
    struct http_server *http; /* /metrics */
    struct web *web;          /* the page, and the state that the screen shows; NULL: neither */
    char web_address[200];    /* of it; --web-listen, cut after the host */
    struct cache *nodes;
    VEC(struct up_agent *) agents; /* owned */
    size_t agents_stopped;
    struct manifest_apply *apply;
    struct arena arena; /* documents waiting to be applied */
    struct json *definitions, *scenario_documents;
    struct signal_watch *term, *interrupt;
    struct timer ending, redraw;
    struct start_trim start_trim;
    int64_t started_ns, started_s; /* monotonic real time; wall clock of the cluster */
    struct timer clock_timer; /* stores the clock, to notice at the next start that it went back */
    int64_t ready_ms;         /* duration of the start */
    char metrics_url[64], registry_mirror[128], cgroup_root[4096], tick[32];
    struct up_decisions decisions[UP_FEATURE_N];
    struct up_screen screen;
    pthread_t thread; /* of the loop */
    int exit_code;
    bool ready, stopping;
};

/* Creates a client of the embedded server; `metrics` NULL: its requests are not counted. */
int up_connect(struct up *up, struct metrics *metrics, struct kube **ret, err_t *e);

/* up_clock.c: warns if the clock is earlier than that of the data, and stores it from then on */
void up_clock_start(struct up *up);
/* The time at which the data was last used; 0: unknown. */
int64_t up_clock_stored(const struct up *up);
void up_clock_stop(struct up *up);

/* up_agents.c: up_agents_stop() calls up_on_agents_stopped() at the end */
int up_agents_start(struct up *up, struct manager *m, err_t *e);
void up_agents_stop(struct up *up);
void up_on_agents_stopped(struct up *up);
void up_agents_done(struct up *up);

/* up_events.c */
int up_events_start(struct up *up, struct manager *m, err_t *e);
const char *up_events_feature_name(size_t feature);

/* up_serve.c */
int up_serve(struct up *up, err_t *e);
int up_serve_page(struct up *up, err_t *e); /* once the controllers exist */
void up_open_page(struct up *up);

/* up_scenario.c: adds to the definitions */
int up_scenario_read(struct up *up, err_t *e);

/* up_screen.c: the live view on a terminal */
bool up_screen_is_terminal(void);
void up_screen_start(struct up *up);
void up_screen_stop(struct up *up); /* restores the terminal; may be called again */
void up_screen_add(struct up *up, size_t feature, const struct up_decision *news);
void up_screen_done(struct up *up);
void up_stop(struct up *up); /* as Ctrl-C */

/* up_view.c: what the screen shows; everything lives in the arena */
struct up_view {
    struct screen_row *rows;
    size_t n;
    size_t totals[SCREEN_SECTION_N];
};
struct up_view up_view_gather(struct up *up, struct arena *a);
str up_view_detail(struct up *up, struct arena *a, const struct screen_row *row);

struct up_tally {
    double reconciles, errors, requests;
};

/* up_summary.c */
/* The command that points kubectl at this server, from any directory. */
void up_summary_put_export(struct buf *out, const struct up *up);
struct up_tally up_summary_count(const struct up *up);
void up_summary_print_urls(const struct up *up);
void up_summary_add_decision(struct up *up, size_t feature, const struct up_decision *news);
void up_summary_print_totals(struct up *up);

#endif
