/* The text format: see scrape.h.
 *
 *     name{label="value",…} value [timestamp]
 *     {"http.requests",code="200"} 3             a quoted metric name is inside the braces
 *
 * One pass over each line. Texts point into the line, except for quoted ones with escapes, which
 * are unescaped into a buffer as large as the longest line, so that it never moves while slices
 * point into it. No allocation per line or sample: pods are scraped often, and most of their series
 * are ignored.
 *
 * Functions named take_* consume a prefix of the line. Those that return a text return what was
 * expected, or NULL if all is well. */
#include "scrape.h"

#include "../base/buf.h"

struct line {
    str rest;
    struct buf *texts; /* unescaped texts of this line; reserved once, so that it never moves */
    struct prom_label labels[SCRAPE_LABELS_MAX];
    struct scrape_sample sample;
};

static void skip_blanks(str *rest)
{
    while (rest->n && (rest->p[0] == ' ' || rest->p[0] == '\t'))
        *rest = str_from(*rest, 1);
}

static bool take_char(str *rest, char c)
{
    if (!rest->n || rest->p[0] != c)
        return false;
    *rest = str_from(*rest, 1);
    return true;
}

static bool is_name_char(char c, bool first, bool colon)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (colon && c == ':') ||
           (!first && c >= '0' && c <= '9');
}

static bool take_name(str *rest, bool colon, str *ret)
{
    size_t n = 0;
    while (n < rest->n && is_name_char(rest->p[n], n == 0, colon))
        n++;
    *ret = str_upto(*rest, n);
    *rest = str_from(*rest, n);
    return n > 0;
}

/* The text after an opening quote, and the closing quote. The first loop handles texts without
 * escapes, which need no copy. */
static bool take_quoted(struct line *l, str *ret)
{
    size_t n = 0;
    while (n < l->rest.n && l->rest.p[n] != '"' && l->rest.p[n] != '\\')
        n++;
    if (n < l->rest.n && l->rest.p[n] == '"') {
        *ret = str_upto(l->rest, n);
        l->rest = str_from(l->rest, n + 1);
        return true;
    }
    char *start = l->texts->p + l->texts->n;
    for (size_t i = 0; i < l->rest.n; i++) {
        char c = l->rest.p[i];
        if (c == '"') {
            *ret = (str){ start, (size_t)(l->texts->p + l->texts->n - start) };
            l->rest = str_from(l->rest, i + 1);
            return true;
        }
        if (c == '\\') {
            c = ++i < l->rest.n ? l->rest.p[i] : '\0';
            if (c != 'n' && c != '\\' && c != '"')
                return false;
            c = c == 'n' ? '\n' : c;
        }
        l->texts->p[l->texts->n++] = c;
    }
    return false;
}

/* A label with its value, or the quoted name of the metric. */
static const char *take_label(struct line *l)
{
    str name;
    bool quoted = take_char(&l->rest, '"');
    if (quoted ? !take_quoted(l, &name) : !take_name(&l->rest, false, &name))
        return "expected a label name";
    skip_blanks(&l->rest);
    if (quoted && !l->sample.name.n && name.n && (!l->rest.n || l->rest.p[0] != '=')) {
        l->sample.name = name;
        return NULL;
    }
    if (!take_char(&l->rest, '='))
        return "expected = after a label name";
    skip_blanks(&l->rest);
    if (l->sample.label_n == SCRAPE_LABELS_MAX)
        return "too many labels";
    str value;
    if (!take_char(&l->rest, '"') || !take_quoted(l, &value))
        return "expected a label value in quotes, with no escapes except \\\\, \\\" and \\n";
    l->labels[l->sample.label_n++] = (struct prom_label){ name, value };
    skip_blanks(&l->rest);
    return NULL;
}

static const char *take_labels(struct line *l)
{
    for (;;) {
        skip_blanks(&l->rest);
        if (take_char(&l->rest, '}'))
            return NULL;
        const char *problem = take_label(l);
        if (problem)
            return problem;
        if (take_char(&l->rest, '}'))
            return NULL;
        if (!take_char(&l->rest, ','))
            return "expected a comma or a closing brace after a label";
    }
}

static str take_word(str *rest)
{
    size_t n = 0;
    while (n < rest->n && rest->p[n] != ' ' && rest->p[n] != '\t')
        n++;
    str word = str_upto(*rest, n);
    *rest = str_from(*rest, n);
    return word;
}

/* Parses one line that is neither empty nor a comment. */
static const char *read_sample(struct line *l)
{
    struct scrape_sample *s = &l->sample;
    take_name(&l->rest, true, &s->name);
    skip_blanks(&l->rest);
    if (take_char(&l->rest, '{')) {
        const char *problem = take_labels(l);
        if (problem)
            return problem;
        skip_blanks(&l->rest);
    }
    if (!s->name.n)
        return "expected a metric name";
    if (prom_number(take_word(&l->rest), &s->value))
        return "expected a number after the name and labels";
    skip_blanks(&l->rest);
    if (l->rest.n) {
        s->has_time = true;
        if (str_to_i64(take_word(&l->rest), &s->time_ms))
            return "expected a timestamp in milliseconds after the value";
        skip_blanks(&l->rest);
    }
    return l->rest.n ? "expected the end of the line after the timestamp" : NULL;
}

int scrape_read(str text, scrape_fn *each, void *context, err_t *e)
{
    auto_buf struct buf texts = { 0 };
    buf_reserve(&texts, SCRAPE_LINE_MAX);
    struct line l = { .texts = &texts };
    size_t number = 0;
    for (str line; str_cut(&text, '\n', &line);) {
        number++;
        if (line.n > SCRAPE_LINE_MAX)
            return err_set(e, EMSGSIZE, "metrics, line %zu: longer than %d bytes", number,
                           SCRAPE_LINE_MAX);
        if (line.n && line.p[line.n - 1] == '\r')
            line.n--;
        skip_blanks(&line);
        if (!line.n || line.p[0] == '#')
            continue;
        l.rest = line;
        l.sample = (struct scrape_sample){ .labels = l.labels };
        buf_clear(&texts);
        const char *problem = read_sample(&l);
        if (problem)
            return err_set(e, EINVAL, "metrics, line %zu (\"" STR_FMT "\"): %s", number,
                           STR_ARG(str_upto(line, 80)), problem);
        int r = each(context, &l.sample, e);
        if (r < 0)
            return r;
    }
    return 0;
}
