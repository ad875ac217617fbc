/* Parsers for the kernel's files about cgroups: see cgroup_text.h. Fuzzed by
 * test/fuzz/cgroup_fuzz.c. */
#include "cgroup_text.h"

#include "../base/buf.h"

/* Removes and returns the next word of the line; empty at the end. */
static str next_word(str *line)
{
    while (line->n && (line->p[0] == ' ' || line->p[0] == '\t'))
        *line = str_from(*line, 1);
    size_t end = str_find_char(*line, ' ');
    str word = str_upto(*line, end);
    *line = str_from(*line, word.n);
    return word;
}

/* ---- numbers */

bool cgroup_text_number(str text, int64_t *ret)
{
    return str_to_i64(str_trim(text), ret) == 0;
}

static bool to_milli(int64_t quota_usec, int64_t period_usec, int64_t *ret_milli)
{
    int64_t scaled;
    if (period_usec <= 0 || quota_usec < 0 || __builtin_mul_overflow(quota_usec, 1000, &scaled))
        return false;
    *ret_milli = scaled / period_usec;
    return true;
}

bool cgroup_text_max(str text, int64_t *ret_milli)
{
    str line = str_trim(text), quota = next_word(&line), period = next_word(&line);
    int64_t quota_usec, period_usec;
    if (next_word(&line).n || str_to_i64(period, &period_usec) || period_usec <= 0)
        return false;
    if (str_eq(quota, S("max"))) {
        *ret_milli = -1;
        return true;
    }
    return str_to_i64(quota, &quota_usec) == 0 && to_milli(quota_usec, period_usec, ret_milli);
}

bool cgroup_text_quota(str quota, str period, int64_t *ret_milli)
{
    int64_t quota_usec, period_usec;
    if (!cgroup_text_number(quota, &quota_usec) || !cgroup_text_number(period, &period_usec))
        return false;
    if (quota_usec == -1) {
        *ret_milli = -1;
        return true;
    }
    return to_milli(quota_usec, period_usec, ret_milli);
}

bool cgroup_text_pressure(str text, int64_t *ret_some_usec)
{
    for (str line; str_cut(&text, '\n', &line);) {
        if (!str_eq(next_word(&line), S("some")))
            continue;
        for (str word; (word = next_word(&line)).n;)
            if (str_starts(word, S("total=")))
                return str_to_i64(str_from(word, 6), ret_some_usec) == 0 && *ret_some_usec >= 0;
    }
    return false;
}

/* ---- mounts */

/* Decodes a path of mountinfo, where blanks and backslashes are written as \ooo. */
static str unescape_path(struct arena *a, str text)
{
    auto_buf struct buf out = { 0 };
    for (size_t i = 0; i < text.n; i++) {
        const char *p = text.p + i;
        bool octal = *p == '\\' && text.n - i > 3 && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' &&
                     p[2] <= '7' && p[3] >= '0' && p[3] <= '7';
        buf_putc(&out, octal ? (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0')) : *p);
        i += octal ? 3 : 0;
    }
    return arena_str(a, buf_str(&out));
}

static bool has_option(str options, str name)
{
    for (str option; str_cut(&options, ',', &option);)
        if (str_eq(option, name))
            return true;
    return false;
}

static bool is_below(str path, str base)
{
    while (base.n && base.p[base.n - 1] == '/')
        base.n--;
    return str_starts(path, base) && (path.n == base.n || path.p[base.n] == '/');
}

/* The first mount of a kind wins. */
static void set_if_empty(str *known, str path)
{
    if (!known->n)
        *known = path;
}

struct cgroup_mounts cgroup_text_mounts(struct arena *a, str mountinfo, str base)
{
    enum { BEFORE_MOUNT_POINT = 4 };
    struct cgroup_mounts found = { 0 };
    for (str line; str_cut(&mountinfo, '\n', &line);) {
        for (int i = 0; i < BEFORE_MOUNT_POINT; i++)
            next_word(&line);
        str at = unescape_path(a, next_word(&line)), word;
        while ((word = next_word(&line)).n && !str_eq(word, S("-")))
            ; /* options, and any number of optional fields */
        str type = next_word(&line);
        next_word(&line);
        str options = next_word(&line);
        if (!is_below(at, base))
            continue;
        if (str_eq(type, S("cgroup2")))
            set_if_empty(&found.unified, at);
        else if (str_eq(type, S("cgroup")) && has_option(options, S("cpu")))
            set_if_empty(&found.cpu, at);
        if (str_eq(type, S("cgroup")) && has_option(options, S("cpuacct")))
            set_if_empty(&found.cpuacct, at);
    }
    return found;
}
