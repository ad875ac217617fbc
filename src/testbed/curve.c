/* Load curves: see curve.h. Points are kept in ascending time, which parsing enforces; evaluation takes the
 * time modulo the last point and interpolates. A curve with one point is a constant, one without is 0. */
#include "curve.h"

#include "../base/duration.h"
#include "../base/quantity.h"

static int parse_value(str text, double *ret, err_t *e)
{
    int64_t milli;
    int r = quantity_parse_milli(text, &milli, e);
    if (r < 0)
        return r;
    if (milli < 0)
        return err_set(e, EINVAL, "\"" STR_FMT "\" is below 0", STR_ARG(text));
    *ret = (double)milli / 1000;
    return 0;
}

/* Appends "TIME=VALUE", or a bare value at time 0, if it is later than the point before. */
static int parse_point(str word, struct curve *curve, err_t *e)
{
    size_t equals = str_find_char(word, '=');
    struct curve_point point = { 0 };
    int r = 0;
    if (equals != SIZE_MAX)
        r = duration_parse(str_upto(word, equals), &point.at_ns, e);
    r = r < 0
            ? r
            : parse_value(equals == SIZE_MAX ? word : str_from(word, equals + 1), &point.value, e);
    if (r < 0)
        return r;
    if (curve->points.n && point.at_ns <= curve->points.at[curve->points.n - 1].at_ns)
        return err_set(e, EINVAL, "\"" STR_FMT "\" is not later than the point before it",
                       STR_ARG(word));
    vec_push(&curve->points, point);
    return 0;
}

int curve_parse(str text, struct curve *ret, err_t *e)
{
    struct curve curve = { 0 };
    str rest = str_trim(text), word;
    while (str_cut(&rest, ' ', &word)) {
        word = str_trim(word);
        int r = word.n ? parse_point(word, &curve, e) : 0;
        if (r < 0) {
            curve_done(&curve);
            return err_wrap(e, "curve \"" STR_FMT "\" must be a value or TIME=VALUE points",
                            STR_ARG(text));
        }
    }
    if (!curve.points.n)
        return err_set(e, EINVAL, "curve is empty, but must be a value or TIME=VALUE points");
    *ret = curve;
    return 0;
}

void curve_done(struct curve *curve)
{
    vec_done(&curve->points);
}

double curve_at(const struct curve *curve, int64_t since_ns)
{
    size_t n = curve->points.n;
    const struct curve_point *p = curve->points.at;
    if (n < 2)
        return n ? p[0].value : 0;
    int64_t length = p[n - 1].at_ns, at = length > 0 ? since_ns % length : 0;
    at += at < 0 ? length : 0;
    if (at <= p[0].at_ns)
        return p[0].value;
    size_t i = 1;
    while (p[i].at_ns < at)
        i++;
    double share = (double)(at - p[i - 1].at_ns) / (double)(p[i].at_ns - p[i - 1].at_ns);
    return p[i - 1].value + share * (p[i].value - p[i - 1].value);
}
