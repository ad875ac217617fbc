/* Query results: see result.h.
 *
 *     bytes -> frame.c --one series--> JSON tree in `scratch` --> packed series in `arena`
 *                 \--at the end, everything else (status, warnings, errors)--> read_envelope()
 *
 * The framer cuts the series out of the stream; each becomes a small JSON tree in memory that is
 * reused for the next one. Parsing the whole response into one tree (4.7 MB, 32,000 series) takes a
 * third more time and, while it exists, 35 MB. */
#include "result.h"

#include "../json/json.h"

#include <math.h>

/* [1435781451.781, "1.5"] */
static bool read_pair(const struct json *pair, struct prom_sample *ret)
{
    const struct json *time = json_item(pair, 0), *value = json_item(pair, 1);
    double seconds = json_real(time, NAN);
    if (json_len(pair) != 2 || !(fabs(seconds) < 1e15) || !json_is(value, JSON_STR) ||
        prom_number(json_text(value), &ret->value))
        return false;
    ret->time_ms = llround(seconds * 1000);
    return true;
}

/* Adjacent series mostly have the same label names: a name equal to that of the previous series at
 * the same position is shared instead of copied. */
static str shared_name(struct arena *a, str name, const struct prom_series *previous, size_t at)
{
    if (previous && at < previous->label_n && str_eq(previous->labels[at].name, name))
        return previous->labels[at].name;
    return arena_str(a, name);
}

static bool read_labels(struct arena *a, const struct json *metric,
                        const struct prom_series *previous, struct prom_series *s)
{
    size_t n = json_len(metric);
    struct prom_label *labels = arena_array(a, n, sizeof(*labels));
    if (!json_is(metric, JSON_OBJ))
        return false;
    s->labels = labels;
    json_each(m, metric) {
        if (!json_is(m->value, JSON_STR))
            return false;
        labels[s->label_n] = (struct prom_label){ shared_name(a, m->key, previous, s->label_n),
                                                  arena_str(a, json_text(m->value)) };
        s->label_n++;
    }
    return true;
}

/* An array of [time, value] pairs. */
static bool read_samples(struct arena *a, const struct json *pairs, struct prom_series *s)
{
    size_t n = json_len(pairs);
    struct prom_sample *samples = arena_array(a, n, sizeof(*samples));
    for (size_t i = 0; i < n; i++)
        if (!read_pair(json_item(pairs, i), &samples[i]))
            return false;
    s->samples = samples;
    s->sample_n = (uint32_t)n;
    return true;
}

/* 1: a series; 0: a series without plain samples; -1: not the format of Prometheus. */
static int read_series(struct arena *a, const struct json *item, const struct prom_series *previous,
                       struct prom_series *ret)
{
    struct prom_series s = { 0 };
    const struct json *value = json_get(item, "value"), *values = json_get(item, "values");
    if (!value && !values)
        return json_get(item, "histogram") || json_get(item, "histograms") ? 0 : -1;
    struct prom_sample *one = arena_array(a, 1, sizeof(*one));
    if (!read_labels(a, json_get(item, "metric"), previous, &s))
        return -1;
    if (value) {
        if (!read_pair(value, one))
            return -1;
        s.samples = one;
        s.sample_n = 1;
    } else if (!read_samples(a, values, &s)) {
        return -1;
    }
    *ret = s;
    return s.sample_n > 0;
}

/* Called by the framer with the text of one series, which it does not keep. */
static int on_series(void *context, str document, err_t *e)
{
    struct prom_reader *r = context;
    struct json *item;
    arena_reset(&r->scratch, (struct arena_mark){ 0 });
    if (json_parse(&r->scratch, document, &item, e))
        return err_wrap(e, "invalid response from Prometheus, series %zu", r->seen);
    struct prom_series series;
    const struct prom_series *previous = r->series.n ? &r->series.at[r->series.n - 1] : NULL;
    int got = read_series(r->arena, item, previous, &series);
    if (got < 0)
        return err_set(e, EPROTO,
                       "invalid response from Prometheus: series %zu has an unknown format",
                       r->seen);
    if (got)
        vec_push(&r->series, series);
    r->seen++;
    return 0;
}

static int read_scalar(struct arena *a, const struct json *pair, struct prom_result *r, err_t *e)
{
    struct prom_series *series = arena_array(a, 1, sizeof(*series));
    struct prom_sample *sample = arena_array(a, 1, sizeof(*sample));
    if (!read_pair(pair, sample))
        return err_set(e, EPROTO,
                       "invalid response from Prometheus: the scalar has an unknown format");
    *series = (struct prom_series){ .samples = sample, .sample_n = 1 };
    r->series = series;
    r->n = 1;
    return 0;
}

static void read_warnings(struct arena *a, const struct json *list, struct prom_result *r)
{
    str *warnings = arena_array(a, json_len(list), sizeof(*warnings));
    r->warnings = warnings;
    for (size_t i = 0; i < json_len(list); i++)
        warnings[r->warning_n++] = arena_str(a, json_text(json_item(list, i)));
}

/* Everything in a response except the series, which the framer has removed: the status decides
 * whether there is a result at all, so it is known only at the end. */
static int read_envelope(struct arena *a, const struct json *answer, struct prom_result *r,
                         err_t *e)
{
    str status = json_text(json_get(answer, "status"));
    if (str_eq(status, S("error"))) {
        str type = json_text(json_get(answer, "errorType"));
        str text = json_text(json_get(answer, "error"));
        return err_set(e, EREMOTEIO, "Prometheus rejected the query (" STR_FMT "): " STR_FMT,
                       STR_ARG(type), STR_ARG(text));
    }
    const struct json *data = json_get(answer, "data"), *list = json_get(data, "result");
    str type = json_text(json_get(data, "resultType"));
    if (!str_eq(status, S("success")) || !json_is(list, JSON_ARR))
        return err_set(e, EPROTO, "the response is not a Prometheus query result");
    read_warnings(a, json_get(answer, "warnings"), r);
    if (str_eq(type, S("scalar")))
        return read_scalar(a, list, r, e);
    if (!str_eq(type, S("vector")) && !str_eq(type, S("matrix")))
        return err_set(e, EPROTO,
                       "the query returned a \"" STR_FMT "\"; expected a vector, matrix or scalar",
                       STR_ARG(type));
    if (json_len(list))
        return err_set(e, EPROTO, "invalid response from Prometheus: a series is not an object");
    return 0;
}

void prom_reader_init(struct prom_reader *r, struct arena *a)
{
    *r = (struct prom_reader){ .arena = a };
    frame_init(&r->frame, FRAME_RESULT, on_series, r);
}

void prom_reader_done(struct prom_reader *r)
{
    frame_done(&r->frame);
    arena_done(&r->scratch);
    vec_done(&r->series);
}

int prom_reader_feed(struct prom_reader *r, str bytes, err_t *e)
{
    int result = frame_feed(&r->frame, bytes, e);
    if (result == -EBADMSG || result == -EMSGSIZE)
        return err_set(e, EPROTO, "the response is not a Prometheus query result");
    return result;
}

/* The series are copied from the growing array to the arena once their number is known. */
int prom_reader_end(struct prom_reader *r, struct prom_result *ret, err_t *e)
{
    str envelope;
    struct json *answer;
    arena_reset(&r->scratch, (struct arena_mark){ 0 });
    if (frame_end(&r->frame, &envelope, NULL))
        return err_set(e, EPROTO, "the response from Prometheus is incomplete");
    if (json_parse(&r->scratch, envelope, &answer, e))
        return err_wrap(e, "invalid response from Prometheus");
    struct prom_result result = { 0 };
    int code = read_envelope(r->arena, answer, &result, e);
    if (code)
        return code;
    if (r->series.n) {
        struct prom_series *series = arena_array(r->arena, r->series.n, sizeof(*series));
        memcpy(series, r->series.at, r->series.n * sizeof(*series));
        result.series = series;
        result.n = r->series.n;
    }
    *ret = result;
    return 0;
}

int prom_result_read(struct arena *a, str body, struct prom_result *ret, err_t *e)
{
    struct prom_reader r;
    prom_reader_init(&r, a);
    int result = prom_reader_feed(&r, body, e);
    if (result == 0)
        result = prom_reader_end(&r, ret, e);
    prom_reader_done(&r);
    return result;
}
