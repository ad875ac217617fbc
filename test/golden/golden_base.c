/* Families of base: wva-duration, mbcas-quantity. */
#include "golden.h"

#include "base/duration.h"
#include "base/quantity.h"

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

const struct golden_family golden_base[] = {
    { "mbcas-quantity", run_quantity },
    { "wva-duration", run_duration },
    { 0 },
};
