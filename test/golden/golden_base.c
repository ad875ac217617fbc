/* Families of small values: wva-duration, wva-strings, mbcas-quantity. */
#include "golden.h"

#include "base/duration.h"
#include "base/quantity.h"
#include "prom/query.h"
#include "saturation/objects/text_core.h"

static void run_duration(struct golden *g, const struct json *c)
{
    const struct json *want = json_get(c, "expected");
    int64_t ns;
    bool ok = duration_parse(json_text(json_at(c, "input", "duration", NULL)), &ns, NULL) == 0;
    if (!golden_eq_bool(g, "ok", ok, json_get(want, "ok")) || !ok)
        return;
    char text[DURATION_TEXT_MAX];
    golden_eq_int(g, "ns", ns, json_get(want, "ns"));
    golden_eq_str(g, "string", duration_text(ns, text), json_get(want, "string"));
    golden_eq_str(g, "promDuration", duration_prom_text(ns, text), json_get(want, "promDuration"));
}

/* The numbers are Go's, overflow included; where ours has an answer for a positive quantity, it is the
 * same one. */
static void run_quantity(struct golden *g, const struct json *c)
{
    const struct json *want = json_get(c, "expected");
    str text = json_text(json_at(c, "input", "text", NULL)), canonical;
    struct quantity q;
    err_t e = { 0 };
    bool ok = quantity_parse(text, &q, &e) == 0;
    if (!golden_eq_bool(g, "ok", ok, json_get(want, "ok")))
        return;
    if (!ok) {
        str error = json_text(json_get(want, "error"));
        golden_ok(g, error.n && str_find(str_c(e.text), error) != SIZE_MAX,
                  "error: want \"" STR_FMT "\" in \"%s\"", STR_ARG(error), e.text);
        return;
    }
    char out[QUANTITY_TEXT_MAX];
    int64_t milli, value;
    if (golden_ok(g, quantity_canonical(text, out, &canonical, &e) == 0, "canonical: %s", e.text))
        golden_eq_str(g, "canonical", canonical, json_get(want, "canonical"));
    golden_eq_int(g, "milli", quantity_go_scaled(&q, -3), json_get(want, "milli"));
    golden_eq_int(g, "value", quantity_go_scaled(&q, 0), json_get(want, "value"));
    golden_eq_bool(g, "zero", quantity_is_zero(&q), json_get(want, "zero"));
    if (!q.negative && quantity_scaled(&q, -3, &milli) == 0)
        golden_eq_int(g, "our milli", milli, json_get(want, "milli"));
    if (!q.negative && quantity_scaled(&q, 0, &value) == 0)
        golden_eq_int(g, "our value", value, json_get(want, "value"));
}

static void run_escape(struct golden *g, const struct json *in, const struct json *want)
{
    auto_buf struct buf out = { 0 };
    prom_query_escape(&out, json_text(json_get(in, "value")));
    golden_eq_str(g, "escaped", buf_str(&out), want);
}

static void run_accelerator(struct golden *g, const struct json *in, const struct json *want)
{
    golden_eq_str(g, "name", sat_accelerator_name(json_text(json_get(in, "value"))), want);
}

static void run_cache_key(struct golden *g, const struct json *in, const struct json *want)
{
    auto_buf struct buf out = { 0 };
    const struct json *params = json_get(in, "params");
    struct text_pair *pairs = arena_array(g->arena, json_len(params), sizeof(*pairs));
    size_t n = 0;
    json_each(m, params) {
        pairs[n++] = (struct text_pair){ m->key, json_text(m->value) };
    }
    sat_cache_key(&out, json_text(json_get(in, "query")), pairs, n);
    golden_eq_str(g, "key", buf_str(&out), want);
}

static void run_freshness(struct golden *g, const struct json *in, const struct json *want)
{
    enum sat_freshness f = sat_freshness_of(json_int(json_get(in, "ageNs"), 0));
    golden_eq_str(g, "freshness", str_c(sat_freshness_name(f)), want);
}

static void run_split(struct golden *g, const struct json *in, const struct json *want)
{
    struct sat_words words = sat_split_command(g->arena, json_text(json_get(in, "value")));
    struct json *got = json_new_arr(g->arena);
    for (size_t i = 0; i < words.n; i++)
        json_push(g->arena, got, json_new_str(g->arena, words.at[i]));
    golden_eq_json(g, "words", got, want);
}

/* The name of a case selects the function. */
static void run_strings(struct golden *g, const struct json *c)
{
    static const struct {
        const char *name;
        void (*run)(struct golden *g, const struct json *in, const struct json *want);
    } functions[] = {
        { "escape", run_escape },      { "normalizeAccelerator", run_accelerator },
        { "cacheKey", run_cache_key }, { "freshness", run_freshness },
        { "splitShell", run_split },
    };
    str name = json_text(json_get(c, "name"));
    for (size_t i = 0; i < countof(functions); i++)
        if (str_starts(name, str_c(functions[i].name))) {
            functions[i].run(g, json_get(c, "input"), json_get(c, "expected"));
            return;
        }
    golden_ok(g, false, "there is no function \"" STR_FMT "\"", STR_ARG(name));
}

const struct golden_family golden_base[] = {
    { "mbcas-quantity", run_quantity },
    { "wva-duration", run_duration },
    { "wva-strings", run_strings },
    { 0 },
};
