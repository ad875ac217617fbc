/* What the slo policy learned, across restarts and for `flyball explain va`.
 *
 * One text per model in flyball's own ConfigMap (kube/keep.h), under "slo.HEX" of namespace and
 * model:
 *
 *     {"ns", "model", "at", "targets": {ttft, itl, goal}, "now": {demand, forecast, ...}, "decisions": [...],
 *      and the learned numbers of slo_saved_core.h}
 *
 * It is written after a change of replicas and when what a replica is thought to carry has moved by 2 %, so
 * that a restart plans with nearly the same numbers; else every ten minutes: learning moves slowly, and the
 * API server is not a database. keep.h adds that a ConfigMap is written at most once per minute. At
 * most 250 models are saved (some 600 KB of 900, the rest is for the last good configuration); others learn
 * again after a restart. */
#include "../base/log.h"
#include "../base/rfc3339.h"
#include "../base/sum.h"
#include "../kube/object_key.h"
#include "saturation_slo.h"
#include "saturation_state.h"
#include "slo/slo_saved_core.h"

#include <math.h>
#include <stdio.h>

static const int64_t save_every_ns = 600 * NS_PER_S;
static const double capacity_drift = 0.02;
enum { MODELS_MAX = 250 };

static str saved_key(struct arena *a, const struct sat_model *m)
{
    return keep_key(a, "slo", (const str[]){ m->ns, m->id }, 2);
}

/* ---- reading */

static void restore_decisions(struct sat_slo *slo, const struct json *list)
{
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *from = json_item(list, i);
        struct slo_decision *to = &slo->decisions[slo->decision_n % SLO_DECISIONS];
        if (rfc3339_parse(json_text(json_get(from, "at")), &to->at_s, NULL) < 0)
            continue;
        snprintf(to->text, sizeof(to->text), STR_FMT, STR_ARG(json_text(json_get(from, "text"))));
        slo->decision_n++;
    }
    slo->saved_n = slo->decision_n;
}

/* What was saved about the model; NULL: nothing. */
static struct json *read_saved(const struct gathering *g)
{
    struct json *tree = NULL;
    str text = g->s->keep ? keep_get(g->s->keep, saved_key(g->a, g->m)) : S("");
    if (!text.n || json_parse(g->a, text, &tree, NULL) < 0)
        return NULL;
    bool own = str_eq(json_text(json_get(tree, "ns")), g->m->ns) &&
               str_eq(json_text(json_get(tree, "model")), g->m->id);
    return own ? tree : NULL;
}

bool saturation_slo_is_saved(const struct gathering *g)
{
    struct slo_state scratch;
    const struct json *tree = read_saved(g);
    slo_state_init(&scratch);
    return tree && slo_saved_read(&scratch, tree) > 0;
}

void saturation_slo_restore(const struct gathering *g, struct sat_slo *slo)
{
    const struct json *tree = read_saved(g);
    if (!tree)
        return;
    size_t n = slo_saved_read(&slo->state, tree);
    slo->restored = n > 0;
    slo->config.itl = slo->state.itl; /* else derived again, and every speed in another unit */
    if (rfc3339_parse(json_text(json_get(tree, "at")), &slo->saved_at_s, NULL) < 0)
        slo->saved_at_s = 0;
    double ttft = json_real(json_at(tree, "targets", "ttft", NULL), 0);
    slo->config.ttft = ttft > 0 && ttft <= 600 ? ttft : 0;
    restore_decisions(slo, json_get(tree, "decisions"));
    log_info("Restored what was learned about a model", KV("namespace", g->m->ns),
             KV("model", g->m->id), KV_INT("variants", (int64_t)n));
}

/* ---- writing */

static void note_decision(const struct gathering *g, struct sat_slo *slo)
{
    struct slo_decision d = { .at_s = g->model->looked_ns / NS_PER_S };
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++)
        if (slo->out.targets[i] != g->wanted[i] && n < sizeof(d.text))
            n += (size_t)snprintf(d.text + n, sizeof(d.text) - n, STR_FMT " %d->%d; ",
                                  STR_ARG(g->states[i].variant), g->wanted[i], slo->out.targets[i]);
    const struct slo_decision *last =
        slo->decision_n ? &slo->decisions[(slo->decision_n - 1) % SLO_DECISIONS] : NULL;
    if (!n || (last && !strncmp(last->text, d.text, MIN(n, sizeof(d.text) - 1))))
        return; /* nothing changes, or an HPA is still following the last decision */
    if (n < sizeof(d.text))
        snprintf(d.text + n, sizeof(d.text) - n, "%.150s", slo->out.reason);
    slo->decisions[slo->decision_n++ % SLO_DECISIONS] = d;
}

static void set_real(struct arena *a, struct json *o, const char *key, double value)
{
    char text[40];
    if (!isfinite(value))
        return;
    snprintf(text, sizeof(text), "%.4g", value);
    json_set(a, o, str_c(key), json_new_real(a, strtod(text, NULL)));
}

static struct json *write_now(const struct gathering *g, const struct sat_slo *slo)
{
    struct json *now = json_new_obj(g->a);
    const struct slo_output *out = &slo->out;
    set_real(g->a, now, "demand", out->demand);
    set_real(g->a, now, "forecast", out->forecast);
    set_real(g->a, now, "horizonSeconds", out->horizon);
    set_real(g->a, now, "headroom", out->headroom);
    set_real(g->a, now, "level", out->level);
    set_real(g->a, now, "need", out->need);
    set_real(g->a, now, "have", out->have);
    set_real(g->a, now, "attained", slo->ok);
    set_real(g->a, now, "budgetSpent", out->spent);
    json_set_str(g->a, now, "reason", arena_str(g->a, str_c(out->reason)));
    return now;
}

static struct json *write_decisions(struct arena *a, const struct sat_slo *slo)
{
    struct json *list = json_new_arr(a);
    size_t first = slo->decision_n > SLO_DECISIONS ? slo->decision_n - SLO_DECISIONS : 0;
    for (size_t i = first; i < slo->decision_n; i++) {
        const struct slo_decision *d = &slo->decisions[i % SLO_DECISIONS];
        struct json *o = json_new_obj(a);
        char at[RFC3339_TEXT_MAX];
        json_set_str(a, o, "at", arena_str(a, rfc3339_text(d->at_s, at)));
        json_set_str(a, o, "text", arena_str(a, str_c(d->text)));
        json_push(a, list, o);
    }
    return list;
}

/* Adds the name and the capacity of each variant, which the core does not know by name. */
static void name_variants(const struct gathering *g, const struct sat_slo *slo, struct json *tree)
{
    const struct json *list = json_get(tree, "variants");
    for (size_t i = 0; i < g->n; i++)
        for (size_t k = 0; k < json_len(list); k++) {
            char id[SLO_SAVED_ID];
            struct json *o = json_item(list, k);
            str own = slo_saved_id(sum64(g->states[i].variant, 1) | 1, id);
            if (!str_eq(json_text(json_get(o, "id")), own))
                continue;
            json_set_str(g->a, o, "name", g->states[i].variant);
            set_real(g->a, o, "capacity", slo->out.capacity[i]);
        }
}

static str write_text(const struct gathering *g, const struct sat_slo *slo)
{
    struct json *tree = json_new_obj(g->a), *targets = json_new_obj(g->a);
    char at[RFC3339_TEXT_MAX];
    json_set_str(g->a, tree, "ns", g->m->ns);
    json_set_str(g->a, tree, "model", g->m->id);
    json_set_str(g->a, tree, "at",
                 arena_str(g->a, rfc3339_text(g->model->looked_ns / NS_PER_S, at)));
    set_real(g->a, targets, "ttft", slo->config.ttft);
    set_real(g->a, targets, "itl", slo->config.itl);
    set_real(g->a, targets, "goal", slo->config.goal);
    json_set(g->a, tree, S("targets"), targets);
    json_set(g->a, tree, S("now"), write_now(g, slo));
    json_set(g->a, tree, S("decisions"), write_decisions(g->a, slo));
    slo_saved_write(g->a, &slo->state, tree);
    name_variants(g, slo, tree);
    return json_to_str(g->a, tree);
}

/* ---- bounds */

struct saved_models {
    const struct saturation *s;
    struct arena *a;
    str gone[MODELS_MAX]; /* keys of models that no longer exist */
    size_t n, gone_n;
};

static void count_saved(void *context, str key, str text)
{
    struct saved_models *all = context;
    struct json *tree = NULL;
    if (!str_starts(key, S("slo.")))
        return;
    all->n++;
    bool read = json_parse(all->a, text, &tree, NULL) == 0;
    if (all->gone_n < MODELS_MAX &&
        (!read || !object_key_find(&all->s->models, json_text(json_get(tree, "ns")),
                                   json_text(json_get(tree, "model")))))
        all->gone[all->gone_n++] = arena_str(all->a, key);
}

/* Whether one more model may be saved; those that are gone make room. */
static bool make_room(const struct gathering *g)
{
    struct saved_models all = { .s = g->s, .a = g->a };
    keep_each(g->s->keep, count_saved, &all);
    if (all.n < MODELS_MAX)
        return true;
    for (size_t i = 0; i < all.gone_n; i++)
        keep_del(g->s->keep, all.gone[i]);
    return all.gone_n > 0;
}

static bool has_moved(const struct sat_slo *slo)
{
    for (size_t i = 0; i < slo->out.variant_n; i++) {
        double saved = slo->saved_capacity[i];
        if (fabs(slo->out.capacity[i] - saved) > capacity_drift * saved)
            return true;
    }
    return false;
}

void saturation_slo_save(const struct gathering *g, struct sat_slo *slo)
{
    struct keep *keep = g->s->keep;
    note_decision(g, slo);
    bool due = slo->decision_n != slo->saved_n || g->now_ns - slo->saved_ns >= save_every_ns ||
               has_moved(slo);
    if (!keep || !due || !slo->state.n)
        return;
    str key = saved_key(g->a, g->m);
    slo->saved_n = slo->decision_n;
    slo->saved_ns = g->now_ns;
    memcpy(slo->saved_capacity, slo->out.capacity, sizeof(slo->saved_capacity));
    if (keep_get(keep, key).n || make_room(g))
        keep_put(keep, key, write_text(g, slo));
}
