/* The table of the local mode: see local_print() in local.h. */
#include "local_internal.h"

#include <stdio.h>

enum { NAME_WIDTH = 28 };

static void print_head(const struct local *l, struct buf *out)
{
    int64_t limits = 0;
    for (size_t i = 0; i < l->groups.n; i++)
        limits += l->groups.at[i]->sampled.market.limit_milli;
    buf_printf(out, "/%s: %zu cgroups, capacity %lldm, limits %lldm, price %.2f, %s%s\n\n", l->path,
               l->groups.n, (long long)local_capacity(l), (long long)limits,
               l->report.clearing.price, market_mode_name(l->report.clearing.mode),
               l->o.dry_run ? ", dry run" : "");
    buf_printf(out, "%-*s %8s %10s %9s %8s %8s %8s\n", NAME_WIDTH, "CGROUP", "USAGE", "THROTTLED",
               "PRESSURE", "NEED", "LIMIT", "WANTED");
}

static void print_amount(struct buf *out, int64_t milli)
{
    char text[24] = "-";
    if (milli > 0)
        snprintf(text, sizeof(text), "%lldm", (long long)milli);
    buf_printf(out, " %8s", text);
}

static void print_group(const struct local_group *group, struct buf *out)
{
    const struct sampled *s = &group->sampled;
    char pressure[16] = "-";
    if (s->pressure >= 0)
        snprintf(pressure, sizeof(pressure), "%.1f%%", (double)s->pressure * 100);
    buf_printf(out, "%-*.*s %7.0fm %9.1f%% %9s", NAME_WIDTH, NAME_WIDTH, group->name,
               (double)s->usage_milli, (double)s->throttled * 100, pressure);
    print_amount(out, market_pod_need(&s->market));
    print_amount(out, s->market.limit_milli);
    print_amount(out, s->wanted_milli != s->market.limit_milli ? s->wanted_milli : 0);
    buf_putc(out, '\n');
}

void local_print(const struct local *l, struct buf *out, size_t rows)
{
    print_head(l, out);
    size_t shown = MIN(rows, l->groups.n);
    for (size_t i = 0; i < shown; i++)
        print_group(l->groups.at[i], out);
    if (shown < l->groups.n)
        buf_printf(out, "and %zu more\n", l->groups.n - shown);
}
