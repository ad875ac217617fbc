/* Samples that are parsed, written in our own format and parsed again have the same names, labels and
 * numbers. Labels with unusual names are written as quoted names. */
#include "fuzz.h"
#include "prom/exposition.h"
#include "prom/result.h"
#include "prom/scrape.h"
#include "json/json.h"

#include <math.h>

static int write_sample(void *context, const struct scrape_sample *s, err_t *e)
{
    (void)e;
    struct buf *out = context;
    buf_put(out, S("{\""));
    exposition_write_label(out, s->name);
    buf_putc(out, '"');
    for (size_t i = 0; i < s->label_n; i++) {
        buf_put(out, S(",\""));
        exposition_write_label(out, s->labels[i].name);
        buf_put(out, S("\"=\""));
        exposition_write_label(out, s->labels[i].value);
        buf_putc(out, '"');
    }
    buf_put(out, S("} "));
    if (isnan(s->value))
        buf_put(out, S("NaN"));
    else if (isinf(s->value))
        buf_put(out, s->value > 0 ? S("+Inf") : S("-Inf"));
    else
        json_write_real(out, s->value);
    if (s->has_time)
        buf_printf(out, " %lld", (long long)s->time_ms);
    buf_putc(out, '\n');
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_buf struct buf once = { 0 }, twice = { 0 };
    err_t e;
    str text = { (const char *)data, size };
    auto_arena struct arena a = { 0 };
    struct prom_result result;
    prom_result_read(&a, text, &result, &e);
    if (size > SCRAPE_LINE_MAX / 8 || scrape_read(text, write_sample, &once, &e) < 0)
        return 0;
    if (scrape_read(buf_str(&once), write_sample, &twice, &e) < 0 ||
        !str_eq(buf_str(&once), buf_str(&twice)))
        abort();
    return 0;
}
