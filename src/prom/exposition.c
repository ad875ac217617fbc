/* Exposition: see exposition.h. Formatting follows metrics_read(): put_family() writes HELP and
 * TYPE, put_series() one line per series, or the buckets, sum and count of a histogram. */
#include "exposition.h"

#include "../json/json.h"

#include <math.h>

static void put_escaped(struct buf *out, str text, bool quotes)
{
    size_t plain = 0; /* start of the bytes not written yet, none of which needs escaping */
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c != '\n' && c != '\\' && (!quotes || c != '"'))
            continue;
        buf_put(out, (str){ text.p + plain, i - plain });
        buf_putc(out, '\\');
        buf_putc(out, c == '\n' ? 'n' : c);
        plain = i + 1;
    }
    buf_put(out, str_from(text, plain));
}

void exposition_write_label(struct buf *out, str value)
{
    put_escaped(out, value, true);
}

static void put_number(struct buf *out, double value)
{
    if (isnan(value))
        buf_put(out, S("NaN"));
    else if (isinf(value))
        buf_put(out, value > 0 ? S("+Inf") : S("-Inf"));
    else if (fabs(value) < 1e15 &&
             value == floor(value)) /* the common case, and ten times as fast */
        buf_printf(out, "%lld", (long long)value);
    else
        json_write_real(out, value);
}

static void put_family(void *context, const struct metric_spec *spec)
{
    static const char *const kinds[] = {
        [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"
    };
    struct buf *out = context;
    buf_printf(out, "# HELP %s ", spec->name);
    put_escaped(out, str_c(spec->help), false);
    buf_printf(out, "\n# TYPE %s %s\n", spec->name, kinds[spec->kind]);
}

/* One line; `le` is the bound of a bucket, or NULL. */
static void put_line(struct buf *out, const struct metric_view *s, const char *suffix,
                     const double *le, double value)
{
    buf_put(out, str_c(s->spec->name));
    buf_put(out, str_c(suffix));
    char before = '{';
    for (size_t i = 0; i < METRIC_LABELS_MAX && s->spec->labels[i]; i++, before = ',') {
        buf_putc(out, before);
        buf_put(out, str_c(s->spec->labels[i]));
        buf_put(out, S("=\""));
        put_escaped(out, s->values[i], true);
        buf_putc(out, '"');
    }
    if (le) {
        buf_putc(out, before);
        buf_put(out, S("le=\""));
        put_number(out, *le);
        buf_putc(out, '"');
        before = ',';
    }
    buf_put(out, before == ',' ? S("} ") : S(" "));
    put_number(out, value);
    buf_putc(out, '\n');
}

/* Buckets are cumulative in the text format and separate in the registry. */
static void put_series(void *context, const struct metric_view *s)
{
    struct buf *out = context;
    if (s->spec->kind != METRIC_HISTOGRAM) {
        put_line(out, s, "", NULL, s->value);
        return;
    }
    uint64_t up_to = 0;
    for (size_t i = 0; i <= s->spec->bound_n; i++) {
        double le = i < s->spec->bound_n ? s->spec->bounds[i] : INFINITY;
        up_to += s->counts[i];
        put_line(out, s, "_bucket", &le, (double)up_to);
    }
    put_line(out, s, "_sum", NULL, s->value);
    put_line(out, s, "_count", NULL, (double)s->count);
}

bool exposition_write_next(struct buf *out, struct metrics *m, struct metrics_place *at)
{
    return metrics_read_next(m, at, &(struct metrics_reader){ put_family, put_series, out });
}

void exposition_write(struct buf *out, struct metrics *m)
{
    for (struct metrics_place at = { 0 }; exposition_write_next(out, m, &at);)
        ;
}
