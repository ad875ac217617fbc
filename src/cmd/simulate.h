/* flyball simulate, in parts: simulate.c has the flags and runs policies, simulate_variants.c reads --variants,
 * simulate_prometheus.c makes a trace of a cluster's series,
 * simulate_print.c prints the table and JSON, simulate_svg.c draws. */
#ifndef FLYBALL_CMD_SIMULATE_H
#define FLYBALL_CMD_SIMULATE_H

#include "../base/arena.h"
#include "../base/buf.h"
#include "../testbed/fleet.h"
#include "../testbed/trace.h"

struct simulate_result { /* of one policy */
    const char *policy;
    struct fleet_score score;
    struct fleet_points course;
};

struct simulate_report {
    const struct fleet_config *config;
    struct fleet_trace trace;
    const int *initial;
    const struct simulate_result *results;
    size_t result_n;
    double best_static_cost, oracle_cost; /* NaN: not computed */
    const char *note;                     /* about the trace; NULL: none */
};

struct simulate_source {                       /* --from-prometheus */
    const char *url, *model, *ns, *token_file; /* ns and token_file may be NULL */
    int64_t since_ns;
};
int simulate_trace_from_prometheus(const struct simulate_source *source, uint64_t seed,
                                   struct trace *ret, err_t *e);

/* Variants from YAML; texts live in the arena. */
int simulate_read_variants(struct arena *a, const char *path, struct fleet_variant **ret,
                           size_t *ret_n, err_t *e);

void simulate_print_table(struct buf *out, const struct simulate_report *report);
void simulate_print_json(struct buf *out, const struct simulate_report *report);
void simulate_print_svg(struct buf *out, const struct simulate_report *report);

/* flyball simulate market: sizes of pods instead of numbers of replicas. */
int cmd_simulate_market(int argc, char **argv);

#endif
