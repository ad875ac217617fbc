/* flyball schedule: what its files share. schedule.c shows manifests one by one, schedule_all.c many on one page,
 * schedule_from.c converts those of other tools. */
#ifndef FLYBALL_SCHEDULE_CMD_H
#define FLYBALL_SCHEDULE_CMD_H

#include "../schedule/schedule_timeline_core.h"

struct schedule_options {
    const char *file, *output;
    const char *at, *from, *to, *zone_name;
    const char *kubeconfig, *context;
    const char *operator_ns; /* NULL: flyball-system */
    bool from_keda, all;
};

/* What is drawn. Times are seconds since 1970. */
struct schedule_picture {
    const struct schedule_spec *spec;
    const struct tz *zone;
    int64_t created, at, from, to;
    str title;
};

/* Sets zone, time and range of the timeline from the flags and the first trigger. */
int cmd_schedule_set_times(const struct schedule_options *o, struct schedule_picture *p, err_t *e);

/* Draws all schedules of a file or of the cluster. */
int cmd_schedule_show_all(const struct schedule_options *o, err_t *e);

/* The timeline as JSON: one object per stretch, with from, to, source, config and bounds. */
struct json *cmd_schedule_timeline_json(struct arena *a, const struct schedule_timeline *line);

/* Prints the problems of a manifest, also unknown fields, to standard error. Fails if one of them is an error. */
int cmd_schedule_check_manifest(struct arena *a, const char *file, const struct json *object,
                                const struct schedule_spec *spec, err_t *e);

/* Converts the objects of a file ("-": standard input) and prints the manifests. `*ret_skipped` counts the parts that have no
 * counterpart in them. */
int cmd_schedule_from_keda(const char *file, size_t *ret_skipped, err_t *e);

#endif
