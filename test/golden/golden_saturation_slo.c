/* Family saturation-slo: sequences of steps of the slo policy. A case is {config, steps[]} and one output per
 * step; the state starts empty and is carried through the steps. A field that is absent in a step is not
 * known; "inf" and "-inf" are infinities. Every output has targets and reason, the last one all numbers. */
#include "golden.h"

#include "saturation/slo/slo_core.h"

#include <math.h>
#include <stdio.h>

static const struct tolerance close = { 1e-9, 1e-6 };

static double number(const struct json *o, const char *key, double otherwise)
{
    const struct json *v = json_get(o, key);
    str text = json_text(v);
    if (str_eq(text, S("inf")))
        return INFINITY;
    if (str_eq(text, S("-inf")))
        return -INFINITY;
    return json_real(v, otherwise);
}

static int count(const struct json *o, const char *key)
{
    return (int)json_int(json_get(o, key), 0);
}

static struct slo_config read_config(const struct json *c)
{
    return (struct slo_config){
        .ttft = number(c, "ttft", NAN),
        .itl = number(c, "itl", NAN),
        .goal = number(c, "goal", NAN),
        .cycle = number(c, "cycle", NAN),
        .reserve = number(c, "reserve", 0),
        .reserve_replicas = number(c, "reserveReplicas", 0),
    };
}

static struct slo_variant read_variant(const struct json *v)
{
    return (struct slo_variant){
        .current = count(v, "current"),
        .ready = count(v, "ready"),
        .reporting = count(v, "reporting"),
        .min = count(v, "min"),
        .max = count(v, "max"),
        .stuck = count(v, "stuck"),
        .hinted = json_bool(json_get(v, "hinted"), false),
        .cost = number(v, "cost", NAN),
        .itl = number(v, "itl", NAN),
        .prompt_rate = number(v, "promptRate", NAN),
        .gen_rate = number(v, "genRate", NAN),
        .running = number(v, "running", NAN),
        .running_low = number(v, "runningLo", NAN),
        .running_high = number(v, "runningHi", NAN),
        .kv = number(v, "kv", NAN),
        .kv_tokens = number(v, "kvTokens", NAN),
        .max_seqs = number(v, "maxSeqs", NAN),
        .start_delay = number(v, "startDelay", NAN),
    };
}

static struct slo_input read_step(const struct json *s)
{
    struct slo_input in = {
        .now = number(s, "now", NAN),
        .arrival = number(s, "arrival", NAN),
        .arrival_now = number(s, "arrivalNow", NAN),
        .in_tokens = number(s, "inTokens", NAN),
        .out_tokens = number(s, "outTokens", NAN),
        .in_tail = number(s, "inTail", NAN),
        .waiting = number(s, "waiting", NAN),
        .queued = number(s, "queued", NAN),
        .ok = number(s, "ok", NAN),
        .finished = number(s, "finished", NAN),
        .season = number(s, "season", NAN),
    };
    const struct json *variants = json_get(s, "variants");
    in.variant_n = MIN(json_len(variants), (size_t)SLO_VARIANTS_MAX);
    for (size_t i = 0; i < in.variant_n; i++)
        in.variants[i] = read_variant(json_item(variants, i));
    return in;
}

static void check_decision(struct golden *g, size_t step, const struct slo_input *in,
                           const struct slo_output *out, const struct json *want)
{
    const struct json *targets = json_get(want, "targets");
    str at = arena_printf(g->arena, "step %zu: targets", step);
    golden_ok(g, json_len(targets) == in->variant_n, STR_FMT ": %zu, want %zu", STR_ARG(at),
              in->variant_n, json_len(targets));
    for (size_t i = 0; i < in->variant_n; i++)
        golden_eq_int(g, at.p, out->targets[i], json_item(targets, i));
    golden_eq_str(g, arena_printf(g->arena, "step %zu: reason", step).p, str_c(out->reason),
                  json_get(want, "reason"));
}

static void check_numbers(struct golden *g, const struct slo_input *in,
                          const struct slo_output *out, const struct json *want)
{
    const struct {
        const char *name;
        double got;
    } numbers[] = {
        { "demand", out->demand },     { "forecast", out->forecast }, { "horizon", out->horizon },
        { "need", out->need },         { "have", out->have },         { "hold", out->hold },
        { "margin", out->margin },     { "used", out->used },         { "spent", out->spent },
        { "headroom", out->headroom }, { "level", out->level },
    };
    for (size_t i = 0; i < countof(numbers); i++)
        golden_eq_real(g, numbers[i].name, numbers[i].got, json_get(want, numbers[i].name), close);
    for (size_t i = 0; i < in->variant_n; i++) {
        golden_eq_int(g, "fit", out->fit[i], json_item(json_get(want, "fit"), i));
        golden_eq_real(g, "capacity", out->capacity[i], json_item(json_get(want, "capacity"), i),
                       close);
    }
}

static void run_slo(struct golden *g, const struct json *c)
{
    const struct json *steps = json_at(c, "input", "steps", NULL), *want = json_get(c, "expected");
    struct slo_config config = read_config(json_at(c, "input", "config", NULL));
    struct slo_state state;
    slo_state_init(&state);
    golden_ok(g, json_len(steps) == json_len(want), "%zu steps, %zu outputs", json_len(steps),
              json_len(want));
    for (size_t i = 0; i < json_len(steps); i++) {
        struct slo_input in = read_step(json_item(steps, i));
        struct slo_output out;
        slo_step(&state, &config, &in, &out);
        check_decision(g, i, &in, &out, json_item(want, i));
        if (i + 1 == json_len(steps))
            check_numbers(g, &in, &out, json_item(want, i));
    }
}

static void put_number(struct golden *g, struct json *o, const char *key, double value)
{
    char text[40];
    snprintf(text, sizeof(text), "%.10g", value); /* ten digits, as the file has always had */
    json_set(g->arena, o, str_c(key), json_new_real(g->arena, strtod(text, NULL)));
}

static struct json *make_output(struct golden *g, const struct slo_input *in,
                                const struct slo_output *out, bool all)
{
    struct arena *a = g->arena;
    struct json *o = json_new_obj(a), *targets = json_new_arr(a), *fit = json_new_arr(a),
                *capacity = json_new_arr(a);
    for (size_t i = 0; i < in->variant_n; i++) {
        json_push(a, targets, json_new_int(a, out->targets[i]));
        json_push(a, fit, json_new_int(a, out->fit[i]));
        json_push(a, capacity, json_new_real(a, out->capacity[i]));
    }
    json_set(a, o, S("targets"), targets);
    if (all) {
        json_set(a, o, S("fit"), fit);
        json_set(a, o, S("capacity"), capacity);
        put_number(g, o, "demand", out->demand);
        put_number(g, o, "forecast", out->forecast);
        put_number(g, o, "horizon", out->horizon);
        put_number(g, o, "need", out->need);
        put_number(g, o, "have", out->have);
        put_number(g, o, "hold", out->hold);
        put_number(g, o, "margin", out->margin);
        put_number(g, o, "headroom", out->headroom);
        put_number(g, o, "level", out->level);
        put_number(g, o, "used", out->used);
        put_number(g, o, "spent", out->spent);
    }
    json_set_str(a, o, "reason", str_c(out->reason));
    return o;
}

static struct json *make_slo(struct golden *g, const struct json *c)
{
    const struct json *steps = json_at(c, "input", "steps", NULL);
    struct slo_config config = read_config(json_at(c, "input", "config", NULL));
    struct slo_state state;
    struct json *made = json_new_arr(g->arena);
    slo_state_init(&state);
    for (size_t i = 0; i < json_len(steps); i++) {
        struct slo_input in = read_step(json_item(steps, i));
        struct slo_output out;
        slo_step(&state, &config, &in, &out);
        json_push(g->arena, made, make_output(g, &in, &out, i + 1 == json_len(steps)));
    }
    return made;
}

const struct golden_family golden_saturation_slo[] = { { "saturation-slo", run_slo, make_slo },
                                                       { 0 } };
