/* The learned state of the slo policy as JSON, so that it survives a restart; see slo_saved_core.h.
 *
 * Only what takes long to learn is saved: the speed of each variant, the shape of the requests, and the error
 * budget. What the next cycle measures anyway is not. The text comes back from a ConfigMap that others can
 * edit, so every number is checked against a range before it is used, and a variant with an implausible number
 * is dropped as a whole. */
#include "slo_saved_core.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static const double fit_max = 1e12, samples_max = 1e9;

str slo_saved_id(uint64_t id, char out[static SLO_SAVED_ID])
{
    snprintf(out, SLO_SAVED_ID, "%016" PRIx64, id);
    return str_c(out);
}

/* Six digits: more than a fit is worth, and the text stays short. */
static void set_number(struct arena *a, struct json *o, const char *key, double value)
{
    char text[40];
    if (!isfinite(value))
        return;
    snprintf(text, sizeof(text), "%.6g", value);
    json_set(a, o, str_c(key), json_new_real(a, strtod(text, NULL)));
}

static void set_numbers(struct arena *a, struct json *o, const char *key, const double *at,
                        size_t n)
{
    struct json *list = json_new_arr(a);
    for (size_t i = 0; i < n; i++) {
        char text[40];
        snprintf(text, sizeof(text), "%.9g", at[i]);
        json_push(a, list, json_new_real(a, strtod(text, NULL)));
    }
    json_set(a, o, str_c(key), list);
}

/* ---- one variant */

static struct json *write_speed(struct arena *a, const struct slo_speed *x)
{
    struct json *o = json_new_obj(a);
    char id[SLO_SAVED_ID];
    json_set(a, o, S("id"), json_new_str(a, arena_str(a, slo_saved_id(x->id, id))));
    set_numbers(a, o, "th", x->th, 3);
    set_numbers(a, o, "a", x->a[0], 9);
    set_numbers(a, o, "b", x->b, 3);
    set_number(a, o, "best", x->best);
    set_number(a, o, "context", x->context);
    set_number(a, o, "seen", x->seen);
    set_number(a, o, "start", x->start);
    set_number(a, o, "samples", x->samples);
    json_set_bool(a, o, "settled", x->settled);
    return o;
}

static double read_number(const struct json *o, const char *key, double most, double otherwise)
{
    double value = json_real(json_get(o, key), NAN);
    return value >= 0 && value <= most ? value : otherwise;
}

static bool read_numbers(const struct json *list, double *to, size_t n)
{
    if (json_len(list) != n)
        return false;
    for (size_t i = 0; i < n; i++) {
        to[i] = json_real(json_item(list, i), NAN);
        if (!(fabs(to[i]) <= fit_max))
            return false;
    }
    return true;
}

/* False: not a valid variant; `x` is unchanged. */
static bool read_speed(struct slo_speed *x, const struct json *o)
{
    struct slo_speed y = *x;
    str id = json_text(json_get(o, "id"));
    char text[SLO_SAVED_ID];
    if (id.n != SLO_SAVED_ID - 1)
        return false;
    memcpy(text, id.p, id.n);
    text[id.n] = '\0';
    char *end;
    y.id = strtoull(text, &end, 16);
    if (!y.id || *end || !read_numbers(json_get(o, "th"), y.th, 3) ||
        !read_numbers(json_get(o, "a"), y.a[0], 9) || !read_numbers(json_get(o, "b"), y.b, 3))
        return false;
    for (int i = 0; i < 3; i++)
        if (!(y.th[i] > 0) || y.a[i][i] < 0)
            return false;
    y.best = read_number(o, "best", 100, 0);
    y.context = read_number(o, "context", 1e9, NAN);
    y.seen = read_number(o, "seen", 1, 0);
    y.start = read_number(o, "start", 1800, x->start);
    y.samples = (uint32_t)read_number(o, "samples", samples_max, 0);
    y.settled = json_bool(json_get(o, "settled"), false);
    *x = y;
    return true;
}

/* ---- the model */

struct number {
    const char *key;
    double *at, most;
};

enum { NUMBERS = 10 };

/* One table for writing and reading, so that the two cannot differ. */
static void list_numbers(struct slo_state *s, struct number out[static NUMBERS])
{
    const struct number all[NUMBERS] = {
        { "itl", &s->itl, 600 },
        { "inTokens", &s->in_tokens, 1e7 },
        { "outTokens", &s->out_tokens, 1e7 },
        { "contextFactor", &s->context_factor, 3 },
        { "dispersion", &s->dispersion, 1e6 },
        { "caughtUp", &s->caught_up, 1 },
        { "miss", &s->miss, 1e9 },
        { "seen", &s->seen, 1e9 },
        { "allMiss", &s->all_miss, 1e9 },
        { "allSeen", &s->all_seen, 1e9 },
    };
    memcpy(out, all, sizeof(all));
}

void slo_saved_write(struct arena *a, const struct slo_state *s, struct json *to)
{
    struct slo_state copy = *s;
    struct number numbers[NUMBERS];
    struct json *variants = json_new_arr(a);
    list_numbers(&copy, numbers);
    for (size_t i = 0; i < NUMBERS; i++)
        set_number(a, to, numbers[i].key, *numbers[i].at);
    for (size_t i = 0; i < SLO_VARIANTS_MAX; i++)
        if (s->speeds[i].id && s->speeds[i].samples)
            json_push(a, variants, write_speed(a, &s->speeds[i]));
    json_set(a, to, S("variants"), variants);
}

size_t slo_saved_read(struct slo_state *s, const struct json *from)
{
    struct number numbers[NUMBERS];
    const struct json *variants = json_get(from, "variants");
    size_t n = 0;
    if (!(read_number(from, "itl", 600, 0) > 0))
        return 0; /* speeds are relative to it */
    list_numbers(s, numbers);
    for (size_t i = 0; i < NUMBERS; i++)
        *numbers[i].at = read_number(from, numbers[i].key, numbers[i].most, *numbers[i].at);
    s->overloaded =
        INFINITY; /* the histograms of the first steps are of a time that is not known */
    s->miss = MIN(s->miss, s->seen);
    s->all_miss = MIN(s->all_miss, s->all_seen);
    for (size_t i = 0; i < json_len(variants) && n < SLO_VARIANTS_MAX; i++)
        n += read_speed(&s->speeds[n], json_item(variants, i));
    return n;
}
