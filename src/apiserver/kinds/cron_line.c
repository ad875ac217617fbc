/* The schedule of a CronJob, checked as robfig/cron does for kube-apiserver, with its texts: clients compare them.
 *
 *     minute hour day month weekday     each a list of "*", "5", "1-5" and "mon", with steps: a slash and a number
 *     @daily, @every 1h30m              in place of the five fields */
#include "cron_line.h"

#include "../schema/format.h"

struct cron_bounds {
    int64_t least, most;
    const char *const *names; /* of the values from `least` on; NULL: none */
};

/* strconv.Atoi, or the name of a value. */
static int read_value(str text, const struct cron_bounds *bounds, int64_t *ret, err_t *e)
{
    for (int i = 0; bounds->names && bounds->names[i]; i++)
        if (str_eq_nocase(text, str_c(bounds->names[i]))) {
            *ret = bounds->least + i;
            return 0;
        }
    str digits = str_starts(text, S("+")) ? str_from(text, 1) : text;
    if (!digits.n || digits.p[0] == '+' || str_to_i64(digits, ret) < 0)
        return err_set(e, EINVAL,
                       "failed to parse int from " STR_FMT ": strconv.Atoi: parsing \"" STR_FMT
                       "\": invalid syntax",
                       STR_ARG(text), STR_ARG(text));
    return *ret < 0 ? err_set(e, EINVAL, "negative number (%lld) not allowed: " STR_FMT,
                              (long long)*ret, STR_ARG(text))
                    : 0;
}

static size_t count_parts(str text, char separator)
{
    size_t n = 1;
    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == separator;
    return n;
}

/* "*", "5" or "1-5": its ends. */
static int read_span(str span, const struct cron_bounds *bounds, str whole, int64_t *start,
                     int64_t *end, err_t *e)
{
    size_t dash = str_find_char(span, '-'), parts = count_parts(span, '-');
    str low = str_upto(span, dash);
    *start = bounds->least;
    *end = bounds->most;
    if (str_eqc(low, "*") || str_eqc(low, "?"))
        return 0;
    int r = read_value(low, bounds, start, e);
    *end = *start;
    if (r < 0 || parts == 1)
        return r;
    return parts > 2 ? err_set(e, EINVAL, "too many hyphens: " STR_FMT, STR_ARG(whole))
                     : read_value(str_from(span, dash + 1), bounds, end, e);
}

static int check_range(str whole, const struct cron_bounds *bounds, err_t *e)
{
    size_t slash = str_find_char(whole, '/'), parts = count_parts(whole, '/');
    str span = str_upto(whole, slash);
    int64_t start, end, step = 1;
    int r = read_span(span, bounds, whole, &start, &end, e);
    if (r < 0)
        return r;
    if (parts > 2)
        return err_set(e, EINVAL, "too many slashes: " STR_FMT, STR_ARG(whole));
    if (parts == 2) {
        static const struct cron_bounds numbers = { 0 };
        r = read_value(str_from(whole, slash + 1), &numbers, &step, e);
        end = str_find_char(span, '-') == SIZE_MAX ? bounds->most : end;
    }
    if (r < 0)
        return r;
    if (start < bounds->least)
        return err_set(e, EINVAL, "beginning of range (%lld) below minimum (%lld): " STR_FMT,
                       (long long)start, (long long)bounds->least, STR_ARG(whole));
    if (end > bounds->most)
        return err_set(e, EINVAL, "end of range (%lld) above maximum (%lld): " STR_FMT,
                       (long long)end, (long long)bounds->most, STR_ARG(whole));
    if (start > end)
        return err_set(e, EINVAL, "beginning of range (%lld) beyond end of range (%lld): " STR_FMT,
                       (long long)start, (long long)end, STR_ARG(whole));
    return step ? 0
                : err_set(e, EINVAL, "step of range should be a positive number: " STR_FMT,
                          STR_ARG(whole));
}

int cron_line_check(str text, err_t *e)
{
    static const char *const words[] = { "@yearly", "@annually", "@monthly", "@weekly",
                                         "@daily",  "@midnight", "@hourly",  NULL };
    static const char *const months[] = { "jan", "feb", "mar", "apr", "may", "jun", "jul",
                                          "aug", "sep", "oct", "nov", "dec", NULL };
    static const char *const weekdays[] = { "sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL };
    static const struct cron_bounds bounds[] = {
        { 0, 59, NULL }, { 0, 23, NULL }, { 1, 31, NULL }, { 1, 12, months }, { 0, 6, weekdays }
    };
    str rest = text, word, part;
    size_t n = 0;
    if (str_starts(text, S("@")))
        return format_is_one_of(text, words) || str_starts(text, S("@every "))
                   ? 0
                   : err_set(e, EINVAL, "unrecognized descriptor: " STR_FMT, STR_ARG(text));
    while (str_cut(&rest, ' ', &word))
        n += word.n > 0;
    if (n != countof(bounds))
        return err_set(e, EINVAL, "expected exactly 5 fields, found %zu: [" STR_FMT "]", n,
                       STR_ARG(text));
    rest = text;
    for (size_t i = 0; str_cut(&rest, ' ', &word);) {
        if (!word.n)
            continue;
        while (str_cut(&word, ',', &part))
            if (part.n && check_range(part, &bounds[i], e) < 0)
                return -e->code;
        i++;
    }
    return 0;
}
