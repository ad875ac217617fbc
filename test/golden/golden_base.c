/* Families of base: wva-duration. */
#include "golden.h"

#include "base/duration.h"

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

const struct golden_family golden_base[] = {
    { "wva-duration", run_duration },
    { 0 },
};
