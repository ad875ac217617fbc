/* Metrics of the process, with the names that Prometheus client libraries use, so that existing
 * dashboards and alerts work: CPU time, resident memory, open descriptors, start time, and the
 * build. */
#include "../base/clock.h"
#include "../base/metrics.h"
#include "runtime_internal.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

static double count_open_fds(void)
{
    DIR *dir = opendir("/proc/self/fd");
    double n = -3; /* minus ".", ".." and this directory */
    while (dir && readdir(dir))
        n++;
    if (dir)
        closedir(dir);
    return MAX(n, 0);
}

static double read_resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    long size, resident = 0;
    if (!f || fscanf(f, "%ld %ld", &size, &resident) != 2)
        resident = 0;
    if (f)
        fclose(f);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

static struct metric *single_metric(struct metrics *m, const char *name, const char *help,
                                    enum metric_kind kind)
{
    return METRIC_ALONE(
        metrics_family(m, &(struct metric_spec){ .name = name, .help = help, .kind = kind }));
}

/* Called before each scrape. The counter gets only the difference, because counters can only be
 * added to. */
static void update_process_metrics(void *context)
{
    struct metrics *m = context;
    static double reported_cpu; /* one process, one registry */
    double cpu = (double)clock_cpu_ns() / NS_PER_S;
    metric_add(single_metric(m, "process_cpu_seconds_total", "CPU time used.", METRIC_COUNTER),
               MAX(cpu - reported_cpu, 0));
    reported_cpu = cpu;
    metric_set(single_metric(m, "process_resident_memory_bytes", "Memory in use.", METRIC_GAUGE),
               read_resident_bytes());
    metric_set(single_metric(m, "process_open_fds", "Open file descriptors.", METRIC_GAUGE),
               count_open_fds());
}

void process_metrics_register(struct metrics *m, int64_t start_wall_ns)
{
    metric_set(single_metric(m, "process_start_time_seconds", "Start, in seconds since 1970.",
                             METRIC_GAUGE),
               (double)start_wall_ns / NS_PER_S);
    metric_set(METRIC(metrics_family(m, &(struct metric_spec){ .name = "flyball_build_info",
                                                               .help = "The version that runs.",
                                                               .kind = METRIC_GAUGE,
                                                               .labels = { "version" } }),
                      S(FLYBALL_VERSION)),
               1);
    metrics_on_read(m, update_process_metrics, m);
}
