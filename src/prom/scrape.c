/* The text format: see scrape.h.
 *
 *     name{label="value",…} value [timestamp]
 *
 * One pass over each line; texts point into it except quoted ones that hold escapes, which are put
 * together in a buffer as large as the longest line. With quoted names the metric's own stands in
 * the braces: {"http.requests",code="200"} 3. */
#include "scrape.h"

#include "../base/buf.h"

struct line {
    str rest;
    struct buf *texts; /* unescaped texts; reserved once, so that it never moves */
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

/* What follows an opening quote, up to and with the closing one. */
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

/* A label, or the metric's quoted name. */
static const char *take_label(struct line *l)
{
    str name;
    bool quoted = take_char(&l->rest, '"');
    if (quoted ? !take_quoted(l, &name) : !take_name(&l->rest, false, &name))
        return "a label name is expected";
    skip_blanks(&l->rest);
    if (quoted && !l->sample.name.n && name.n && (!l->rest.n || l->rest.p[0] != '=')) {
        l->sample.name = name;
        return NULL;
    }
    if (!take_char(&l->rest, '='))
        return "= is expected after a label name";
    skip_blanks(&l->rest);
    if (l->sample.label_n == SCRAPE_LABELS_MAX)
        return "it has too many labels";
    str value;
    if (!take_char(&l->rest, '"') || !take_quoted(l, &value))
        return "a label value in quotes is expected, with no escapes but \\\\, \\\" and \\n";
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
            return "a comma or a closing brace is expected after a label";
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
        return "a metric name is expected";
    if (prom_number(take_word(&l->rest), &s->value))
        return "a number is expected after the name and labels";
    skip_blanks(&l->rest);
    if (l->rest.n) {
        s->has_time = true;
        if (str_to_i64(take_word(&l->rest), &s->time_ms))
            return "a timestamp in milliseconds is expected after the value";
        skip_blanks(&l->rest);
    }
    return l->rest.n ? "nothing more is expected after the timestamp" : NULL;
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
            return err_set(e, EMSGSIZE, "metrics, line %zu: it is longer than %d bytes", number,
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
