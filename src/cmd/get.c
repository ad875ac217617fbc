/* flyball get variants: the variants of models, with and without a VariantAutoscaling.
 *
 * kubectl shows VariantAutoscalings, but a variant that an annotated HPA or ScaledObject describes
 * has no object of its own to be listed. Its decision is in flyball's own ConfigMap
 * (saturation_want.c), its replicas are those of its workload. Which objects describe a variant, and
 * which of several counts, is decided by the controller's own core (annotation_core.h), so the table
 * cannot differ from what the operator does. Nothing is printed before everything was read.
 *
 *     VariantAutoscalings ─┐
 *     HPAs, ScaledObjects ─┼─► rows ─► sorted ─► table or JSON
 *     workloads, state    ─┘ */
#include "../kube/keep.h"
#include "../saturation/objects/annotation_core.h"
#include "../saturation/objects/saturation_spec.h"
#include "../saturation/objects/status_core.h"
#include "../saturation/saturation_records.h"
#include "cmd.h"
#include "explain.h"
#include "flags.h"

#include <stdio.h>

#define STATE_NAME "flyball-saturation-state"

struct row {
    str ns, name, by; /* `by`: the kind that describes it */
    str model, kind, target, accelerator;
    double cost;
    const struct json *current, *desired; /* NULL: unknown */
    str reason, message;
};

struct rows {
    struct row *at;
    size_t n;
};

struct listing {
    struct explain x;
    str ns;                               /* "": all */
    const struct json *lists[2];          /* Deployments, StatefulSets */
    const struct json *states;            /* ConfigMaps with saved decisions */
    struct annotation_variant *described; /* by HPAs and ScaledObjects */
    const struct json **objects;          /* that describe them */
    size_t described_n;
};

static str text_at(const struct json *object, const char *one, const char *two, const char *three)
{
    return json_text(json_at(object, one, two, three, NULL));
}

static str namespace_of(const struct json *object)
{
    return text_at(object, "metadata", "namespace", NULL);
}

/* ---- reading */

/* The items of a kind. A kind that the cluster does not have, or that the user may not list, has none
 * if `optional`. */
static int read_list(struct listing *l, const struct resource *resource, str ns, str fields,
                     bool optional, const struct json **ret, err_t *e)
{
    struct json *list = NULL;
    int r = explain_fetch(&l->x,
                          (struct kube_request){
                              .resource = resource, .ns = ns, .field_selector = fields },
                          &list, e);
    *ret = json_get(list, "items");
    return optional ? 0 : r;
}

/* Replicas of a Deployment or StatefulSet; NULL: of another kind, or it does not exist. */
static const struct json *find_replicas(const struct listing *l, str ns, str kind, str name)
{
    const struct json *list = l->lists[str_eqc(kind, "StatefulSet")];
    static const struct json zero = { .type = JSON_INT };
    if (!str_eqc(kind, "Deployment") && !str_eqc(kind, "StatefulSet"))
        return NULL;
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *one = json_item(list, i);
        if (!str_eq(namespace_of(one), ns) || !str_eq(text_at(one, "metadata", "name", NULL), name))
            continue;
        const struct json *n = json_at(one, "status", "replicas", NULL);
        return n ? n : &zero; /* the API server omits 0 */
    }
    return NULL;
}

/* The saved decision about a variant without a VariantAutoscaling; NULL: none. */
static const struct json *find_decision(struct listing *l, str ns, str name)
{
    str key = keep_key(&l->x.arena, "want", (const str[]){ ns, name }, 2);
    for (size_t i = 0; i < json_len(l->states); i++) {
        struct json *tree = NULL;
        str text = json_text(json_get_str(json_get(json_item(l->states, i), "data"), key));
        if (text.n && json_parse(&l->x.arena, text, &tree, NULL) == 0)
            return tree;
    }
    return NULL;
}

/* The fields that the controller projects from its watch (saturation_records.c), read from the whole
 * object. */
static struct annotation_object read_scaler(const struct json *o, enum annotation_kind kind)
{
    const struct json *notes = json_at(o, "metadata", "annotations", NULL),
                      *target = json_at(o, "spec", "scaleTargetRef", NULL),
                      *owners = json_at(o, "metadata", "ownerReferences", NULL);
    bool child = false;
    for (size_t i = 0; i < json_len(owners); i++)
        child |= str_eqc(json_text(json_get(json_item(owners, i), "kind")), "ScaledObject");
    return (struct annotation_object){
        .kind = kind,
        .ns = namespace_of(o),
        .name = text_at(o, "metadata", "name", NULL),
        .managed = json_text(json_get(notes, "llm-d.ai/managed")),
        .managed_label = text_at(o, "metadata", "labels", "llm-d.ai/managed"),
        .model = json_text(json_get(notes, "llm-d.ai/model-id")),
        .cost = json_text(json_get(notes, "llm-d.ai/variant-cost")),
        .child = child,
        .deleting = json_at(o, "metadata", "deletionTimestamp", NULL) != NULL,
        .target_api = json_text(json_get(target, "apiVersion")),
        .target_kind = json_text(json_get(target, "kind")),
        .target = json_text(json_get(target, "name")),
    };
}

/* Adds what the HPAs or ScaledObjects of a list describe. */
static void add_described(struct listing *l, const struct json *list, enum annotation_kind kind)
{
    for (size_t i = 0; i < json_len(list); i++) {
        struct annotation_object o = read_scaler(json_item(list, i), kind);
        err_t ignored; /* the operator reports invalid annotations as an event */
        if (annotation_read(&o, ANNOTATION_OURS, &l->described[l->described_n], &ignored) == 0)
            l->objects[l->described_n++] = json_item(list, i);
    }
}

/* ---- rows */

static struct row make_variant_row(struct listing *l, const struct json *object)
{
    struct variant_spec spec = saturation_spec_read(&l->x.arena, json_get(object, "spec"));
    const struct json *status = json_get(object, "status"),
                      *ready = sat_status_condition(status, SAT_OPTIMIZATION_READY);
    return (struct row){
        .ns = namespace_of(object),
        .name = text_at(object, "metadata", "name", NULL),
        .by = S("VariantAutoscaling"),
        .model = spec.model,
        .kind = spec.target_kind.n ? spec.target_kind : S("Deployment"),
        .target = spec.target_name,
        .accelerator = text_at(object, "metadata", "labels", SAT_ACCELERATOR_LABEL),
        .cost = spec.cost,
        .current = json_at(status, "currentAlloc", "numReplicas", NULL),
        .desired = json_at(status, "desiredOptimizedAlloc", "numReplicas", NULL),
        .reason = json_text(json_get(ready, "reason")),
        .message = json_text(json_get(ready, "message")),
    };
}

/* The VariantAutoscaling that has the name or the workload of what a scaler describes, "" if none. */
static str find_winner(const struct rows *rows, const struct annotation_variant *v)
{
    for (size_t i = 0; i < rows->n; i++) {
        const struct row *r = &rows->at[i];
        if (str_eq(r->ns, v->ns) && str_eqc(r->by, "VariantAutoscaling") &&
            (str_eq(r->name, v->name) ||
             (str_eq(r->target, v->target) && str_eq(r->kind, v->target_kind))))
            return r->name;
    }
    return v->duplicate_of;
}

/* A scaler that does not count is listed too, with the reason: it is what a user looks for. */
static struct row make_scaler_row(struct listing *l, const struct rows *rows, size_t i)
{
    const struct annotation_variant *v = &l->described[i];
    str winner = find_winner(rows, v);
    const struct json *decision = winner.n ? NULL : find_decision(l, v->ns, v->name);
    return (struct row){
        .ns = v->ns,
        .name = v->name,
        .by = v->kind == ANNOTATION_HPA ? S("HorizontalPodAutoscaler") : S("ScaledObject"),
        .model = v->model,
        .kind = v->target_kind,
        .target = v->target,
        .accelerator = text_at(l->objects[i], "metadata", "labels", SAT_ACCELERATOR_LABEL),
        .cost = v->cost,
        .current = find_replicas(l, v->ns, v->target_kind, v->target),
        .desired = json_get(decision, "target"),
        .reason = winner.n   ? S("DuplicateVariant")
                  : decision ? S("Decided")
                             : S(""),
        .message = winner.n ? arena_printf(&l->x.arena,
                                           STR_FMT " describes the same workload; this one is "
                                                   "ignored",
                                           STR_ARG(winner))
                            : json_text(json_get(decision, "reason")),
    };
}

/* By name, then by who describes it: two objects may describe one variant, and one of them wins. */
static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int by_ns = str_cmp(x->ns, y->ns), by_name = str_cmp(x->name, y->name);
    return by_ns ? by_ns : by_name ? by_name : str_cmp(x->by, y->by);
}

/* All variants, or those named `only`. */
static int read_rows(struct listing *l, str only, struct rows *ret, err_t *e)
{
    static const struct resource *const workloads[] = { &resource_deployments,
                                                        &resource_statefulsets };
    const struct json *variants, *hpas, *scaled;
    int r = read_list(l, &saturation_variant_resource, l->ns, S(""), false, &variants, e);
    if (r < 0 && r != -ENOENT)
        return r;
    if ((r = read_list(l, &resource_hpas, l->ns, S(""), false, &hpas, e)) < 0)
        return r;
    read_list(l, &saturation_scaled_object_resource, l->ns, S(""), true, &scaled, e);
    for (size_t i = 0; i < countof(workloads); i++)
        read_list(l, workloads[i], l->ns, S(""), true, &l->lists[i], e);
    read_list(l, &resource_configmaps, S(""), S("metadata.name=" STATE_NAME), true, &l->states, e);
    size_t most = json_len(hpas) + json_len(scaled);
    l->described = arena_array(&l->x.arena, most, sizeof(*l->described));
    l->objects = arena_array(&l->x.arena, most, sizeof(*l->objects));
    add_described(l, scaled, ANNOTATION_SCALEDOBJECT);
    add_described(l, hpas, ANNOTATION_HPA);
    annotation_choose(l->described, l->described_n, ANNOTATION_OURS);
    ret->at = arena_array(&l->x.arena, json_len(variants) + most, sizeof(*ret->at));
    for (size_t i = 0; i < json_len(variants); i++)
        ret->at[ret->n++] = make_variant_row(l, json_item(variants, i));
    for (size_t i = 0; i < l->described_n; i++) {
        ret->at[ret->n] = make_scaler_row(l, ret, i);
        ret->n++;
    }
    size_t kept = 0;
    for (size_t i = 0; i < ret->n; i++)
        if (!only.n || str_eq(ret->at[i].name, only))
            ret->at[kept++] = ret->at[i];
    ret->n = kept;
    qsort(ret->at, ret->n, sizeof(*ret->at), compare_rows);
    return 0;
}

/* ---- printing */

static str count_text(struct arena *a, const struct json *n)
{
    return n ? arena_printf(a, "%lld", (long long)json_int(n, 0)) : S("-");
}

enum { COLUMNS = 11 };

/* One line of the table, "-" for what is not known; the widths are those of the longest cells. */
static void put_line(struct buf *out, const str *cells, size_t n, const size_t *widths)
{
    for (size_t i = 0; i < n; i++) {
        str cell = cells[i].n ? cells[i] : S("-");
        buf_put(out, cell);
        for (size_t pad = cell.n; i + 1 < n && pad < widths[i] + 3; pad++)
            buf_putc(out, ' ');
    }
    buf_putc(out, '\n');
}

/* As kubectl prints it: columns as wide as their widest cell, and no namespace if only one is shown. */
static void put_table(struct listing *l, const struct rows *rows, bool wide)
{
    static const str head[COLUMNS] = {
        STR_INIT("NAMESPACE"),   STR_INIT("NAME"),    STR_INIT("DESCRIBED-BY"), STR_INIT("MODEL"),
        STR_INIT("TARGET"),      STR_INIT("CURRENT"), STR_INIT("DESIRED"),      STR_INIT("REASON"),
        STR_INIT("ACCELERATOR"), STR_INIT("COST"),    STR_INIT("MESSAGE")
    };
    size_t from = l->ns.n ? 1 : 0, n = (wide ? COLUMNS : 8) - from, widths[COLUMNS] = { 0 };
    struct arena *a = &l->x.arena;
    str(*cells)[COLUMNS] = arena_array(a, rows->n + 1, sizeof(*cells));
    memcpy(cells[0], head, sizeof(head));
    for (size_t i = 0; i < rows->n; i++) {
        const struct row *r = &rows->at[i];
        const str line[COLUMNS] = { r->ns,
                                    r->name,
                                    r->by,
                                    r->model,
                                    arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(r->kind),
                                                 STR_ARG(r->target)),
                                    count_text(a, r->current),
                                    count_text(a, r->desired),
                                    r->reason,
                                    r->accelerator,
                                    arena_printf(a, "%g", r->cost),
                                    r->message };
        memcpy(cells[i + 1], line, sizeof(line));
    }
    for (size_t i = 0; i <= rows->n; i++)
        for (size_t c = 0; c < COLUMNS; c++)
            widths[c] = MAX(widths[c], MAX(cells[i][c].n, (size_t)1));
    for (size_t i = 0; i <= rows->n; i++)
        put_line(&l->x.out, cells[i] + from, n, widths + from);
}

/* Numbers that are not known are absent, so that a script cannot take them for 0. */
static void put_json(struct listing *l, const struct rows *rows)
{
    struct arena *a = &l->x.arena;
    struct json *list = json_new_obj(a), *items = json_new_arr(a);
    for (size_t i = 0; i < rows->n; i++) {
        const struct row *r = &rows->at[i];
        const struct {
            const char *key;
            str value;
        } texts[] = { { "namespace", r->ns },
                      { "name", r->name },
                      { "describedBy", r->by },
                      { "modelID", r->model },
                      { "targetKind", r->kind },
                      { "targetName", r->target },
                      { "accelerator", r->accelerator },
                      { "reason", r->reason },
                      { "message", r->message } };
        struct json *item = json_new_obj(a);
        for (size_t k = 0; k < countof(texts); k++)
            json_set_str(a, item, texts[k].key, texts[k].value);
        json_set(a, item, S("cost"), json_new_real(a, r->cost));
        if (r->current)
            json_set_int(a, item, "currentReplicas", json_int(r->current, 0));
        if (r->desired)
            json_set_int(a, item, "desiredReplicas", json_int(r->desired, 0));
        json_push(a, items, item);
    }
    json_set_str(a, list, "kind", S("VariantList"));
    json_set(a, list, S("items"), items);
    buf_put(&l->x.out, json_to_str(a, list));
    buf_putc(&l->x.out, '\n');
}

/* ---- the command */

struct options {
    struct explain_cluster cluster;
    bool all;
    const char *output;
};

/* Connects, reads and formats; the text is in l->x.out. A name that no variant has is an error, an
 * empty list is not, as in kubectl. */
static int list_variants(const struct options *o, str only, struct listing *l, err_t *e)
{
    struct rows rows = { 0 };
    int r = explain_open(&l->x, &o->cluster, e);
    if (r < 0)
        return r;
    l->ns = o->all ? S("") : l->x.ns;
    if ((r = read_rows(l, only, &rows, e)) < 0)
        return r;
    if (only.n && !rows.n)
        return err_set(e, ENOENT,
                       "variant \"" STR_FMT "\" not found; run \"flyball get variants -A\"",
                       STR_ARG(only));
    if (o->output && !strcmp(o->output, "json"))
        put_json(l, &rows);
    else if (rows.n)
        put_table(l, &rows, o->output != NULL);
    return 0;
}

/* The kinds are indented by two spaces, which completion.c depends on. */
static void print_help(const struct flag *flags)
{
    auto_buf struct buf text = { 0 };
    buf_put(
        &text,
        S("Usage: flyball get variants [NAME] [FLAGS]\n\nLists what flyball manages.\n\nKinds:\n"
          "  variants     variants of models, also those that an HPA or ScaledObject describes\n\n"
          "Flags:\n"));
    flags_help(&text, flags);
    fputs(text.p, stdout);
}

/* The kind is required, so that other kinds may follow. */
static int check_words(const struct flag_words *given, const struct options *o, err_t *e)
{
    if (!given->n)
        return err_set(e, EINVAL, "needs a kind: variants; see --help");
    const char *kind = given->at[0];
    if (strcmp(kind, "variants") != 0 && strcmp(kind, "variant") != 0)
        return err_set(e, EINVAL, "unknown kind \"%s\"; must be variants", kind);
    if (given->n > 2)
        return err_set(e, EINVAL, "got %zu arguments, but needs variants and at most one NAME",
                       given->n);
    if (o->output && strcmp(o->output, "json") != 0 && strcmp(o->output, "wide") != 0)
        return err_set(e, EINVAL, "invalid --output \"%s\"; use wide or json", o->output);
    return 0;
}

int cmd_get(int argc, char **argv)
{
    struct options o = { 0 };
    const struct flag flags[] = {
        { "namespace", "NAME", FLAG_TEXT, &o.cluster.ns,
          "Namespace to list (default: that of the context)", .letter = 'n' },
        { "all-namespaces", NULL, FLAG_BOOL, &o.all, "List all namespaces", .letter = 'A' },
        { "output", "FORMAT", FLAG_TEXT, &o.output,
          "Output format: wide or json (default: a table)", .letter = 'o' },
        EXPLAIN_CLUSTER_FLAGS(o.cluster),
        { 0 },
    };
    auto_free const char **words = mem_zero((size_t)argc, sizeof(*words));
    struct flag_words given = { words, 0 };
    struct listing l = { 0 };
    bool help = false;
    err_t e;
    if (flags_parse(flags, argc, argv, &help, &given, &e) < 0 ||
        (!help && check_words(&given, &o, &e) < 0))
        return fprintf(stderr, "flyball get: %s\n", e.text), EXIT_USAGE;
    if (help)
        return print_help(flags), EXIT_SUCCESS;
    int r = list_variants(&o, given.n > 1 ? str_c(words[1]) : S(""), &l, &e);
    if (r < 0)
        fprintf(stderr, "flyball get: %s\n", e.text);
    else if (l.x.out.n)
        explain_print(&l.x);
    else
        fputs("No variants found.\n", stderr);
    explain_close(&l.x);
    return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
