/* See saturation_capacity.h.
 *
 *     pod template ─► flags of vLLM or SGLang ─► record of the variant: capacity before its first replica runs
 *     analysis ─► record and histories ─► "cap.HEX" of namespace, model and variant in flyball's ConfigMap
 *
 *     {"ns", "model", "variant", "template": sum of the template, "effective": tokens, "short": [...], "medium", "long"}
 *
 * Without the histories a restart would compute another capacity, and another number of replicas, from the
 * same load. A capacity belongs to a template: when flags, image or GPUs change, what was measured is
 * dropped, also if that happened while flyball was down. It is saved when the capacity moved by 2 %, and at most every
 * ten minutes if only histories grew. Texts from the ConfigMap are checked: others may edit it. */
#include "saturation_capacity.h"

#include "../base/sum.h"
#include "saturation_limits.h"
#include "wva/token_store.h"

#include <inttypes.h>
#include <math.h>

static const int64_t save_every_ns = 600 * NS_PER_S;
static const double drift = 0.02;
static const int64_t tokens_max = 1LL << 53;
enum { KEPT_MAX = 4000 };

static const struct {
    const char *name;
    double output_tokens;
} lengths[] = { { "short", 0 }, { "medium", 100 }, { "long", 500 } };

static struct sat_token_variant key_of(const struct variant *v)
{
    return (struct sat_token_variant){ v->ns, v->spec.model, v->name };
}

static struct sat_token_hardware hardware_of(const struct saturation *s, const struct variant *v)
{
    return (struct sat_token_hardware){ v->accelerator, saturation_limits_gpus(s, v) };
}

static str keep_name(struct arena *a, const struct variant *v)
{
    return keep_key(a, "cap", (const str[]){ v->ns, v->spec.model, v->name }, 3);
}

/* ---- the template */

static const struct container_list *containers_of(const struct workload_record *w)
{
    return w->has_leader ? &w->leader_containers : &w->containers;
}

static struct json *read_list(struct arena *a, str text)
{
    struct json *list = NULL;
    return text.n && json_parse(a, text, &list, NULL) == 0 ? list : json_new_arr(a);
}

/* The containers as in a pod template, with what the flags are read from. */
static struct json *write_containers(struct arena *a, const struct container_list *list)
{
    struct json *all = json_new_arr(a);
    for (size_t i = 0; i < list->n; i++) {
        const struct container_record *from = &list->at[i];
        struct json *c = json_new_obj(a), *env = json_new_arr(a), *engine = json_new_obj(a);
        json_set_str(a, c, "image", from->image);
        json_set(a, c, S("command"), read_list(a, from->command));
        json_set(a, c, S("args"), read_list(a, from->args));
        if (from->engine.n) {
            json_set_str(a, engine, "name", S("VLLM_USE_V1"));
            json_set_str(a, engine, "value", from->engine);
            json_push(a, env, engine);
        }
        json_set(a, c, S("env"), env);
        json_push(a, all, c);
    }
    return all;
}

bool saturation_capacity_is_sglang(const struct workload_record *w)
{
    auto_arena struct arena a = { 0 };
    return sat_is_sglang(&a, write_containers(&a, containers_of(w)));
}

/* Never 0. */
static uint64_t sum_template(struct arena *a, const struct json *containers, int64_t gpus)
{
    str text = arena_printf(a, STR_FMT "|%" PRId64, STR_ARG(json_to_str(a, containers)), gpus);
    uint64_t sum = sum64(text, 0);
    return sum ? sum : 1;
}

/* ---- across restarts */

static void restore_history(struct sat_token_history *h, const struct json *values)
{
    for (size_t i = 0; i < json_len(values) && i < TOKEN_HISTORY_MAX && h->n < TOKEN_HISTORY_MAX;
         i++) {
        int64_t tokens = json_int(json_item(values, i), 0);
        if (tokens > 0 && tokens <= tokens_max)
            sat_token_history_add(h, tokens);
    }
}

static str template_text(struct arena *a, uint64_t sum)
{
    return arena_printf(a, "%016" PRIx64, sum);
}

static void restore_capacity(struct gathering *g, const struct variant *v)
{
    struct json *tree = NULL;
    str text = g->s->keep ? keep_get(g->s->keep, keep_name(g->a, v)) : S("");
    if (!text.n || json_parse(g->a, text, &tree, NULL) < 0 ||
        !str_eq(json_text(json_get(tree, "template")), template_text(g->a, v->template_sum)))
        return;
    int64_t effective = json_int(json_get(tree, "effective"), 0);
    struct sat_token_hardware hardware = hardware_of(g->s, v);
    if (effective > 0 && effective <= tokens_max)
        sat_token_store_measured(&g->s->tokens, key_of(v), hardware, effective);
    for (size_t i = 0; i < countof(lengths); i++)
        restore_history(sat_token_get_history(&g->s->tokens, v->spec.model, hardware,
                                              lengths[i].output_tokens),
                        json_get(tree, lengths[i].name));
}

static struct json *write_history(struct gathering *g, const struct variant *v, double output)
{
    const struct sat_token_history *h =
        sat_token_get_history(&g->s->tokens, v->spec.model, hardware_of(g->s, v), output);
    struct json *values = json_new_arr(g->a);
    for (size_t i = 0; i < h->n; i++)
        json_push(
            g->a, values,
            json_new_int(g->a,
                         h->values[(h->next + TOKEN_HISTORY_MAX - h->n + i) % TOKEN_HISTORY_MAX]));
    return values;
}

static void save_capacity(struct gathering *g, struct variant *v, int64_t effective)
{
    struct json *tree = json_new_obj(g->a);
    json_set_str(g->a, tree, "ns", v->ns);
    json_set_str(g->a, tree, "model", v->spec.model);
    json_set_str(g->a, tree, "variant", v->name);
    json_set_str(g->a, tree, "template", template_text(g->a, v->template_sum));
    json_set_int(g->a, tree, "effective", effective);
    for (size_t i = 0; i < countof(lengths); i++)
        json_set(g->a, tree, str_c(lengths[i].name), write_history(g, v, lengths[i].output_tokens));
    keep_put(g->s->keep, keep_name(g->a, v), json_to_str(g->a, tree));
    v->capacity_saved = effective;
    v->capacity_saved_ns = g->now_ns;
}

void saturation_capacity_learn(struct gathering *g)
{
    for (size_t i = 0; i < g->n; i++) {
        struct variant *v = g->variants[i];
        const struct workload_record *w = saturation_get_workload(g->s, v);
        if (!w || (v->template_sum && str_eq(w->meta.rv, str_c(v->template_rv))))
            continue;
        struct json *containers = write_containers(g->a, containers_of(w));
        uint64_t sum = sum_template(g->a, containers, saturation_limits_gpus(g->s, v)),
                 old = v->template_sum;
        free(v->template_rv);
        v->template_rv = mem_dup(w->meta.rv.p, w->meta.rv.n);
        v->template_sum = sum;
        if (sum == old)
            continue;
        if (old)
            sat_token_store_forget(&g->s->tokens, key_of(v));
        struct sat_vllm_args args = sat_is_sglang(g->a, containers)
                                        ? sat_sglang_args_parse(g->a, containers)
                                        : sat_vllm_args_parse(g->a, containers);
        if (json_len(containers))
            sat_token_store_template(&g->s->tokens, key_of(v), hardware_of(g->s, v), &args);
        if (!old)
            restore_capacity(g, v);
    }
}

void saturation_capacity_save(struct gathering *g)
{
    for (size_t i = 0; i < g->n; i++) {
        struct variant *v = g->variants[i];
        const struct sat_token_record *r = sat_token_find(&g->s->tokens, key_of(v));
        if (!r || !r->live || !g->s->keep || !v->template_sum || !manager_leads(g->s->manager))
            continue;
        double moved = fabs((double)(r->effective - v->capacity_saved));
        bool due = g->now_ns - v->capacity_saved_ns >= save_every_ns;
        if (moved > drift * (double)v->capacity_saved || due)
            if (v->capacity_saved || keep_count(g->s->keep) < KEPT_MAX)
                save_capacity(g, v, r->effective);
    }
}

void saturation_capacity_forget(struct saturation *s, const struct variant *v)
{
    auto_arena struct arena a = { 0 };
    if (!v->template_sum)
        return;
    sat_token_store_forget(&s->tokens, key_of(v));
    str name = keep_name(&a, v);
    if (s->keep && manager_leads(s->manager) && keep_get(s->keep, name).n)
        keep_del(s->keep, name);
}
