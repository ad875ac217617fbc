/* flyball agent --local: the market on this machine's cgroups, with a live table.
 *
 * market/local.c does the work; this file parses flags, runs the loop until a signal or --for,
 * and prints the table. On a terminal the table is redrawn every second, and the last log line
 * is shown below it instead of scrolling; otherwise the table is printed after each slow round.
 * Settings come from the same environment variables as those of the node agent. */
#include "agent_local.h"

#include "../base/log.h"
#include "../base/quantity.h"
#include "../base/random.h"
#include "../market/local.h"
#include "cmd.h"
#include "flags.h"

#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { ROWS_WITHOUT_TERMINAL = 1000, ROWS_OF_HEAD = 6 };

struct agent_local {
    const char *cgroup, *root, *capacity, *log_level;
    bool dry_run, keep, help;
    int64_t for_ns;

    struct loop *loop;
    struct local *local;
    struct signal_watch *term, *interrupt;
    struct timer end;
    struct arena arena; /* strings of the configuration */
    bool terminal;      /* standard output is one: redraw instead of append */
    char message[200];  /* the last line of the log, shown below the table */
};

/* ---- the screen */

static size_t screen_rows(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0 || size.ws_row <= ROWS_OF_HEAD)
        return ROWS_WITHOUT_TERMINAL;
    return (size_t)size.ws_row - ROWS_OF_HEAD;
}

/* Prints the table, or redraws it in place on a terminal. */
static void show_table(void *context, bool after_round)
{
    struct agent_local *al = context;
    auto_buf struct buf table = { 0 }, out = { 0 };
    if (!al->terminal && !after_round)
        return;
    local_print(al->local, &table, al->terminal ? screen_rows() : ROWS_WITHOUT_TERMINAL);
    if (!al->terminal) {
        printf(STR_FMT "\n", STR_ARG(buf_str(&table)));
        fflush(stdout);
        return;
    }
    buf_put(&out, S("\033[H"));
    str rest = buf_str(&table);
    for (str line; str_cut(&rest, '\n', &line);)
        buf_printf(&out, STR_FMT "\033[K\n", STR_ARG(line));
    buf_printf(&out, "%s\033[J", al->message);
    fputs(out.p, stdout);
    fflush(stdout);
}

/* Log lines are shown below the table instead of through it. */
static void store_log_line(void *context, str line)
{
    struct agent_local *al = context;
    snprintf(al->message, sizeof(al->message), STR_FMT, STR_ARG(str_trim(line)));
}

/* ---- flags */

/* Parses the flags and prepares the help, which needs the same table. */
static int parse_flags(struct agent_local *al, int argc, char **argv, struct buf *help, err_t *e)
{
    const struct flag flags[] = {
        { "local", "CGROUP", FLAG_TEXT, &al->cgroup,
          "Divide CPU among the children of this cgroup, without Kubernetes" },
        { "dry-run", NULL, FLAG_BOOL, &al->dry_run, "Show decisions without writing quotas" },
        { "capacity", "AMOUNT", FLAG_TEXT, &al->capacity,
          "CPU to divide, such as 1500m or 2 (default: the quota of CGROUP, or the machine minus "
          "systemReservePercent)" },
        { "keep", NULL, FLAG_BOOL, &al->keep,
          "Keep the new quotas at exit instead of restoring the original ones" },
        { "for", "TIME", FLAG_DURATION, &al->for_ns, "Stop after this time; 0: never" },
        { "cgroup-root", "DIRECTORY", FLAG_TEXT, &al->root, "Mount point of the cgroups" },
        { "log-level", "LEVEL", FLAG_TEXT, &al->log_level,
          "Log level: debug, info, warn or error" },
        { 0 },
    };
    int r = flags_parse(flags, argc, argv, &al->help, NULL, e);
    buf_put(help,
            S("Usage: flyball agent --local CGROUP [FLAGS]\n\nRuns the market on plain cgroups "
              "of this machine.\n\nFlags:\n"));
    flags_help(help, flags);
    buf_put(help, S("\nThe settings of the node agent are read from the environment "
                    "(MBCAS_SLOW_LOOP_INTERVAL, ...).\n"));
    return r;
}

static void log_complaint(void *context, const char *sentence)
{
    (void)context;
    log_warn("invalid setting ignored", KV_C("error", sentence));
}

static const char *lookup_environment(void *context, const char *name)
{
    (void)context;
    return getenv(name);
}

/* Validates the flags and fills the options. Invalid environment variables are logged and
 * ignored, as in the node agent; an invalid combination is a usage error. */
static int read_config(struct agent_local *al, struct local_options *o, err_t *e)
{
    enum log_level level;
    if (log_level_parse(str_c(al->log_level), &level) < 0)
        return err_set(e, EINVAL, "--log-level is \"%s\", but must be debug, info, warn or error",
                       al->log_level);
    log_setup(level, LOG_TEXT);
    if (!al->cgroup || !*al->cgroup)
        return err_set(e, EINVAL, "--local needs a cgroup, such as /machine.slice");
    if (al->capacity && (quantity_parse_milli(str_c(al->capacity), &o->capacity_milli, e) < 0 ||
                         o->capacity_milli <= 0))
        return err_set(e, EINVAL,
                       "--capacity is \"%s\", but must be an amount of CPU such as 1500m",
                       al->capacity);
    o->config = market_config_default(MARKET_DEFAULTS);
    market_config_read_env(&o->config, &al->arena, lookup_environment, NULL, log_complaint, NULL);
    return market_config_check(&o->config, e);
}

/* ---- the loop */

static void on_signal(void *context)
{
    loop_stop(((struct agent_local *)context)->loop);
}

static void on_deadline(struct timer *timer)
{
    loop_stop(container_of(timer, struct agent_local, end)->loop);
}

/* Creates loop, market and signal handlers, and takes over the terminal. */
static int start_loop(struct agent_local *al, struct local_options *o, err_t *e)
{
    int r = loop_new(&(struct loop_options){ 0 }, &al->loop, e);
    if (r < 0)
        return r;
    o->loop = al->loop;
    o->root = al->root;
    o->cgroup = al->cgroup;
    o->dry_run = al->dry_run;
    o->keep = al->keep;
    o->seed = random_seed();
    o->on_tick = show_table;
    o->context = al;
    if ((r = local_new(o, &al->local, e)) < 0)
        return r;
    signal_watch_new(al->loop, SIGTERM, on_signal, al, &al->term);
    signal_watch_new(al->loop, SIGINT, on_signal, al, &al->interrupt);
    if (al->for_ns > 0)
        timer_set(al->loop, &al->end, loop_mono_ns(al->loop) + al->for_ns, on_deadline);
    al->terminal = isatty(STDOUT_FILENO);
    if (al->terminal) {
        log_redirect(store_log_line, al);
        fputs("\033[2J", stdout);
    }
    return 0;
}

/* Restores the original quotas, unless --keep is set, and the terminal. Accepts what was started
 * only in part. */
static void free_all(struct agent_local *al)
{
    log_redirect(NULL, NULL);
    timer_stop(&al->end);
    signal_watch_free(al->term);
    signal_watch_free(al->interrupt);
    local_free(al->local);
    loop_free(al->loop);
    arena_done(&al->arena);
    if (al->terminal)
        putchar('\n');
}

bool cmd_agent_local_is_requested(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--local") || str_starts(str_c(argv[i]), S("--local=")))
            return true;
    return false;
}

int cmd_agent_local_run(int argc, char **argv)
{
    struct agent_local al = { .root = "/sys/fs/cgroup", .log_level = "info" };
    struct local_options o = { 0 };
    auto_buf struct buf help = { 0 };
    err_t e;
    int code = EXIT_SUCCESS;
    int r = parse_flags(&al, argc, argv, &help, &e);
    if (r == 0 && !al.help)
        r = read_config(&al, &o, &e);
    if (r < 0) {
        fprintf(stderr, "flyball agent: %s\n", e.text);
        code = EXIT_USAGE;
    } else if (al.help) {
        fputs(help.p, stdout);
    } else if (start_loop(&al, &o, &e) < 0) {
        fprintf(stderr, "flyball agent: %s\n", e.text);
        code = EXIT_FAILURE;
    } else {
        loop_run(al.loop);
    }
    free_all(&al);
    return code;
}
