/* The model-based optimizer for one model: see optimize_core.h.
 *
 *     ConfigMaps ─► optimize_catalog_read ─► struct optimize_catalog (in the snapshot)
 *     catalog, profiles, load ─► prepare_servers ─► alloc_solve (one variant at a time) ─► targets
 *
 * Each variant is one server of alloc_core.h with its current accelerator and its share of the
 * load. Variants are solved separately because two of them may run on the same hardware with
 * different profiles. */
#include "optimize_core.h"

#include "../../json/yaml.h"

#include <math.h>

/* ---- the catalog */

static int by_key(const void *a, const void *b)
{
    const struct json_member *const *x = a, *const *y = b;
    return str_cmp((*x)->key, (*y)->key);
}

/* Members sorted by key; `*ret_n` is 0 if `obj` is not an object. */
static struct json_member **sort_members(struct arena *a, const struct json *obj, size_t *ret_n)
{
    size_t at = 0;
    struct json_member **members = arena_array(a, json_len(obj) + 1, sizeof(*members));
    json_each(m, obj)
        members[at++] = m;
    qsort(members, at, sizeof(*members), by_key);
    *ret_n = at;
    return members;
}

static void read_costs(struct arena *a, const struct json *costs, struct optimize_catalog *c)
{
    size_t n;
    struct json_member **members = sort_members(a, costs, &n);
    c->accelerators = arena_array(a, n, sizeof(*c->accelerators));
    for (size_t i = 0; i < n; i++) {
        str key = arena_str(a, members[i]->key);
        struct json *entry = NULL;
        double cost;
        err_t e;
        if (json_parse(a, json_text(members[i]->value), &entry, &e) < 0) {
            c->problem =
                arena_printf(a, "accelerator costs: entry " STR_FMT ": %s", STR_ARG(key), e.text);
            return;
        }
        if (str_to_f64(json_text(json_get(entry, "cost")), &cost) < 0 || !isfinite(cost)) {
            c->skipped++;
            continue;
        }
        c->accelerators[c->accelerator_n++] =
            (struct alloc_accelerator){ key, json_text(json_get(entry, "device")), 1, (float)cost };
    }
}

static void read_class(struct arena *a, const struct json *tree, struct alloc_class *to)
{
    const struct json *list = json_get(tree, "data");
    struct alloc_target *targets = arena_array(a, json_len(list), sizeof(*targets));
    *to = (struct alloc_class){ .name = json_text(json_get(tree, "name")),
                                .priority = (int)json_int(json_get(tree, "priority"), 0),
                                .targets = targets,
                                .target_n = json_len(list) };
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *t = json_item(list, i);
        targets[i] =
            (struct alloc_target){ json_text(json_get(t, "model")),
                                   { .ttft_ms = (float)json_real(json_get(t, "slo-ttft"), 0),
                                     .itl_ms = (float)json_real(json_get(t, "slo-tpot"), 0) } };
    }
}

static void read_classes(struct arena *a, const struct json *classes, struct optimize_catalog *c)
{
    size_t n;
    struct json_member **members = sort_members(a, classes, &n);
    c->classes = arena_array(a, n, sizeof(*c->classes));
    for (size_t i = 0; i < n && !c->problem.n; i++) {
        struct json *tree = NULL;
        err_t e;
        if (yaml_parse(a, json_text(members[i]->value), &tree, &e) < 0)
            c->problem = arena_printf(a, "service classes: entry " STR_FMT ": %s",
                                      STR_ARG(members[i]->key), e.text);
        else
            read_class(a, tree, &c->classes[c->class_n++]);
    }
}

struct optimize_catalog optimize_catalog_read(struct arena *a, const struct json *costs,
                                              const struct json *classes)
{
    struct optimize_catalog c = { .problem = S("") };
    read_costs(a, costs, &c);
    read_classes(a, classes, &c);
    return c;
}

/* ---- one model */

static const struct alloc_class *find_class(const struct optimize_catalog *c, str model)
{
    for (size_t i = 0; i < c->class_n; i++)
        for (size_t k = 0; k < c->classes[i].target_n; k++)
            if (str_eq(c->classes[i].targets[k].model, model))
                return &c->classes[i];
    return NULL;
}

static const struct variant_profile *find_profile(const struct optimize_variant *v)
{
    for (size_t i = 0; i < v->spec->profile_n; i++)
        if (str_eq(v->spec->profiles[i].accelerator, v->accelerator))
            return &v->spec->profiles[i];
    return NULL;
}

/* Zero load counts only if it was measured. */
static int check_load(const struct optimize_input *in, err_t *e)
{
    const struct sat_load_view *load = &in->load;
    if (!isfinite(load->arrival_per_min) || load->arrival_per_min < 0)
        return err_set(e, ENODATA, "request rate of model " STR_FMT " is unknown",
                       STR_ARG(in->model));
    if (load->arrival_per_min == 0 && in->at_work)
        return err_set(e, ENODATA,
                       "request rate of model " STR_FMT
                       " is 0, but its replicas are busy or do not report",
                       STR_ARG(in->model));
    if (load->arrival_per_min > 0 && (!isfinite(load->input_tokens) ||
                                      !isfinite(load->output_tokens) || load->output_tokens <= 0))
        return err_set(e, ENODATA, "request lengths of model " STR_FMT " are unknown",
                       STR_ARG(in->model));
    return 0;
}

static int to_tokens(double value)
{
    return value > 0 ? (int)fmin(value, INT32_MAX) : 0;
}

/* The share of the load that a variant carries, in proportion to its replicas. */
static double load_share(const struct optimize_input *in, size_t i)
{
    double all = 0;
    for (size_t k = 0; k < in->n; k++)
        all += in->variants[k].current;
    return in->compat || all <= 0 ? 1 : in->variants[i].current / all;
}

static struct alloc_profile to_profile(const struct optimize_input *in,
                                       const struct variant_profile *p)
{
    return (struct alloc_profile){ .model = in->model,
                                   .accelerator = p->accelerator,
                                   .accelerators = p->accelerators,
                                   .batch_max = p->batch_max,
                                   .alpha = p->alpha,
                                   .beta = p->beta,
                                   .gamma = p->gamma,
                                   .delta = p->delta };
}

static struct alloc_server to_server(const struct optimize_input *in, size_t i,
                                     const struct variant_profile *p,
                                     const struct alloc_class *class)
{
    const struct optimize_variant *v = &in->variants[i];
    return (struct alloc_server){
        .name = v->name,
        .service_class = class->name,
        .model = in->model,
        .keep_accelerator = true,
        .min_replicas = in->may_be_zero ? 0 : 1,
        .batch_max = p->batch_max,
        .current = { .accelerator = v->accelerator,
                     .replicas = v->current,
                     .cost = (float)(v->current * v->spec->cost) },
        .arrival_per_min = (float)(in->load.arrival_per_min * load_share(in, i)),
        .input_tokens = to_tokens(in->load.input_tokens),
        .output_tokens = to_tokens(in->load.output_tokens),
    };
}

/* Fills profiles and servers of all variants; fails at the first one that lacks something. */
static int prepare_servers(const struct optimize_input *in, struct alloc_profile *profiles,
                           struct alloc_server *servers, err_t *e)
{
    const struct alloc_class *class = find_class(in->catalog, in->model);
    if (in->catalog->problem.n)
        return err_set(e, EINVAL, STR_FMT, STR_ARG(in->catalog->problem));
    if (!class)
        return err_set(e, ENOENT, "no service class lists model " STR_FMT, STR_ARG(in->model));
    if (check_load(in, e) < 0)
        return -e->code;
    for (size_t i = 0; i < in->n; i++) {
        const struct optimize_variant *v = &in->variants[i];
        const struct variant_profile *p = find_profile(v);
        if (!p)
            return err_set(e, ENOENT,
                           "variant " STR_FMT " has no complete modelProfile for " STR_FMT,
                           STR_ARG(v->name), STR_ARG(v->accelerator));
        profiles[i] = to_profile(in, p);
        servers[i] = to_server(in, i, p, class);
    }
    return 0;
}

/* The accelerators that a variant may have, of the type that the catalog states for them. */
static struct alloc_capacity capacity_of(const struct optimize_input *in, size_t i,
                                         const struct alloc_profile *p)
{
    struct alloc_capacity c = { .type = S("") };
    for (size_t k = 0; k < in->catalog->accelerator_n; k++) {
        const struct alloc_accelerator *x = &in->catalog->accelerators[k];
        if (!str_eq(x->name, p->accelerator))
            continue;
        int64_t devices = (int64_t)in->variants[i].most * MAX(p->accelerators, 1) * x->multiplicity;
        c = (struct alloc_capacity){ x->type, (int)MIN(devices, (int64_t)INT32_MAX) };
    }
    return c;
}

int optimize_model(struct arena *a, const struct optimize_input *in, int *ret_targets, err_t *e)
{
    struct alloc_profile *profiles = arena_array(a, in->n, sizeof(*profiles));
    struct alloc_server *servers = arena_array(a, in->n, sizeof(*servers));
    int r = prepare_servers(in, profiles, servers, e);
    if (r < 0)
        return r;
    struct alloc_system system = { .accelerators = in->catalog->accelerators,
                                   .accelerator_n = in->catalog->accelerator_n,
                                   .classes = in->catalog->classes,
                                   .class_n = in->catalog->class_n,
                                   .compat = in->compat };
    int *targets = arena_array(a, in->n, sizeof(*targets));
    for (size_t i = 0; i < in->n; i++) { /* one at a time: see above */
        system.profiles = &profiles[i];
        system.profile_n = 1;
        system.servers = &servers[i];
        system.server_n = 1;
        struct alloc_capacity capacity = capacity_of(in, i, &profiles[i]);
        system.unlimited = !in->variants[i].limited;
        system.capacities = &capacity;
        system.capacity_n = 1;
        system.policy = ALLOC_PRIORITY_EXHAUSTIVE; /* a part, if not all of it */
        struct alloc_answer answer = alloc_solve(a, &system);
        if (!answer.solved[0] && !system.unlimited && answer.candidates[0].n) {
            targets[i] = in->variants[i].current; /* there is no accelerator for it */
            continue;
        }
        if (!answer.solved[0])
            return err_set(e, ERANGE,
                           "variant " STR_FMT " cannot attain its latency targets on " STR_FMT
                           ", or the accelerator has no cost",
                           STR_ARG(servers[i].name), STR_ARG(in->variants[i].accelerator));
        targets[i] = MAX(answer.solution[0].replicas, in->incomplete ? in->variants[i].current : 0);
    }
    memcpy(ret_targets, targets, in->n * sizeof(*targets));
    return 0;
}
