/* flyball schedule --all: every schedule of a cluster, or of a file, on one page.
 *
 * All rows share one time axis: the first schedule sets the range and the zone, unless flags do. Calendars come from
 * the same file, or from the ConfigMaps of the cluster (schedule_calendar.c). */
#include "../base/file.h"
#include "../base/rfc3339.h"
#include "../json/yaml.h"
#include "../schedule/schedule_fleet.h"
#include "../schedule/schedule_records.h"
#include "explain.h"
#include "schedule_calendar.h"
#include "schedule_cmd.h"

#include <stdio.h>

enum { ALL_BYTES_MAX = 64 << 20 };

/* All SmartHorizontalPodAutoscalers that the user can list. */
static int list_cluster(struct explain *x, const struct schedule_options *o, struct json **ret,
                        err_t *e)
{
    struct kube_config *config;
    struct json *list;
    int r = loop_new(&(struct loop_options){ 0 }, &x->loop, e);
    if (r < 0)
        return r;
    r = kube_config_load(&(struct kube_config_options){ .kubeconfig = o->kubeconfig,
                                                        .context = o->context },
                         &config, e);
    if (r < 0)
        return r;
    r = kube_new(&(struct kube_options){ .loop = x->loop, .config = config }, &x->kube, e);
    kube_config_free(config);
    if (r < 0 || (r = explain_get(x, &schedule_resource, S(""), S(""), &list, e)) < 0)
        return r;
    *ret = json_get(list, "items");
    return 0;
}

static int read_documents(struct arena *a, const char *file, struct json **ret, err_t *e)
{
    auto_buf struct buf text = { 0 };
    const char *path = strcmp(file, "-") ? file : "/dev/stdin";
    if (file_read(path, ALL_BYTES_MAX, &text, e) < 0)
        return -e->code;
    if (yaml_parse_all(a, buf_str(&text), NULL, ret, e) < 0)
        return err_wrap(e, "%s", file);
    return 0;
}

/* What the rows share. The first one sets the range and the zone. */
struct page {
    const struct schedule_options *options;
    struct explain x;
    struct command_calendars calendars;
    struct schedule_picture picture;
    struct schedule_fleet_row *rows;
    size_t n;
};

/* Adds the row of one object, unless it is none of ours. Problems of manifests in a file fail, as without --all; what a
 * cluster has was admitted, and its problems are in its conditions. */
static int add_row(struct page *g, const struct json *object, err_t *e)
{
    struct arena *a = &g->x.arena;
    struct schedule_picture *p = &g->picture;
    const struct json *metadata = json_get(object, "metadata");
    str kind = json_text(json_get(object, "kind")), ns = json_text(json_get(metadata, "namespace")),
        name = json_text(json_get(metadata, "name"));
    int64_t created = 0;
    if (kind.n && !str_eqc(kind, "SmartHorizontalPodAutoscaler")) /* items of a list have no kind */
        return 0;
    struct schedule_spec *spec =
        schedule_spec_read(a, json_get(object, "spec"), command_calendars_use(&g->calendars, ns));
    schedule_spec_set_name(spec, ns, name);
    rfc3339_parse(json_text(json_get(metadata, "creationTimestamp")), &created, NULL);
    if (!p->to) {
        p->spec = spec;
        if (cmd_schedule_set_times(g->options, p, e) < 0)
            return -e->code;
    }
    g->rows[g->n++] = (struct schedule_fleet_row){
        ns.n ? arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(ns), STR_ARG(name)) : name,
        schedule_timeline(a, spec, created, p->from, p->to)
    };
    return g->options->file ? cmd_schedule_check_manifest(a, g->options->file, object, spec, e) : 0;
}

/* One object per schedule: name and timeline. */
static void put_json(struct page *g)
{
    struct arena *a = &g->x.arena;
    struct json *list = json_new_arr(a);
    for (size_t i = 0; i < g->n; i++) {
        struct json *one = json_new_obj(a);
        json_set_str(a, one, "name", g->rows[i].name);
        json_set(a, one, S("timeline"), cmd_schedule_timeline_json(a, &g->rows[i].line));
        json_push(a, list, one);
    }
    json_write_pretty(&g->x.out, list);
    buf_putc(&g->x.out, '\n');
}

static void put_page(struct page *g)
{
    const char *output = g->options->output;
    if (!strcmp(output, "svg"))
        schedule_fleet_svg(&g->x.out, &g->x.arena, g->rows, g->n, g->picture.zone);
    else if (!strcmp(output, "json"))
        put_json(g);
    else
        schedule_fleet_text(&g->x.out, &g->x.arena, g->rows, g->n, g->picture.zone);
    fputs(g->x.out.p, stdout);
}

/* Draws every row, also those with errors; returns the first failure. */
static int show_page(struct page *g, err_t *e)
{
    struct json *objects = NULL;
    int r = g->options->file ? read_documents(&g->x.arena, g->options->file, &objects, e)
                             : list_cluster(&g->x, g->options, &objects, e);
    if (r < 0)
        return r;
    if (g->options->file)
        command_calendars_add(&g->calendars, objects);
    else
        command_calendars_fetch(&g->calendars, &g->x);
    g->rows = arena_array(&g->x.arena, MAX(json_len(objects), (size_t)1), sizeof(*g->rows));
    for (size_t i = 0; i < json_len(objects); i++) {
        err_t later;
        int one = add_row(g, json_item(objects, i), r < 0 ? &later : e);
        r = r < 0 ? r : one;
    }
    if (r == 0 && !g->n)
        return err_set(e, ENOENT, "there is no SmartHorizontalPodAutoscaler");
    if (g->n && g->picture.to)
        put_page(g);
    return r;
}

/* Rows and texts live in the arena of `x` until the page is printed. */
int cmd_schedule_show_all(const struct schedule_options *o, err_t *e)
{
    struct page g = { .options = o, .calendars = { .operator_ns = o->operator_ns } };
    int r = show_page(&g, e);
    command_calendars_done(&g.calendars);
    kube_free(g.x.kube);
    loop_free(g.x.loop);
    buf_done(&g.x.out);
    arena_done(&g.x.arena);
    return r;
}
