/* Log lines: see log.h. Each line is built in full and written with one write(), so that lines from
 * several threads do not interleave. The settings are global and not synchronized: change them only
 * while there is one thread. */
#include "log.h"

#include "buf.h"
#include "clock.h"

#include <math.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static struct {
    enum log_level least;
    enum log_format format;
    void (*sink)(void *context, str line);
    void *context;
} settings = { .least = LOG_INFO };

static const char *const level_names[LOG_LEVEL_N] = { "debug", "info", "warn", "error" };

void log_setup(enum log_level least, enum log_format format)
{
    settings.least = least;
    settings.format = format;
}

void log_redirect(void (*sink)(void *context, str line), void *context)
{
    settings.sink = sink;
    settings.context = context;
}

bool log_enabled(enum log_level level)
{
    return level >= settings.least;
}

int log_level_parse(str name, enum log_level *ret)
{
    for (size_t i = 0; i < LOG_LEVEL_N; i++)
        if (str_eqc(name, level_names[i])) {
            *ret = (enum log_level)i;
            return 0;
        }
    return -EINVAL;
}

/* JSON's escapes, which the text format uses as well. Bytes above 0x7f pass: log lines are UTF-8. */
static void put_quoted(struct buf *line, str text)
{
    buf_putc(line, '"');
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == '"' || c == '\\')
            buf_printf(line, "\\%c", c);
        else if (c == '\n')
            buf_put(line, S("\\n"));
        else if (c < 0x20 || c == 0x7f)
            buf_printf(line, "\\u%04x", c);
        else
            buf_putc(line, (char)c);
    }
    buf_putc(line, '"');
}

/* True if a text value needs no quotes in key=value form. */
static bool is_plain(str text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7f)
            return false;
    }
    return text.n > 0;
}

static void put_value(struct buf *line, const struct log_kv *kv)
{
    if (kv->kind == KV_IS_INT)
        buf_printf(line, "%lld", (long long)kv->integer);
    else if (kv->kind == KV_IS_REAL && isfinite(kv->real))
        buf_printf(line, "%.6g", kv->real);
    else if (kv->kind == KV_IS_REAL)
        put_quoted(line, isnan(kv->real) ? S("NaN") : kv->real > 0 ? S("+Inf") : S("-Inf"));
    else if (settings.format == LOG_TEXT && is_plain(kv->text))
        buf_put(line, kv->text);
    else
        put_quoted(line, kv->text);
}

/* UTC with milliseconds, in both formats. */
static void put_time(struct buf *line)
{
    int64_t now = clock_wall_ns();
    time_t seconds = (time_t)(now / NS_PER_S);
    struct tm t;
    gmtime_r(&seconds, &t);
    char text[32];
    strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &t);
    buf_printf(line, "%s.%03dZ", text, (int)(now % NS_PER_S / NS_PER_MS));
}

static void put_text_line(struct buf *line, enum log_level level, const char *message,
                          const struct log_kv *kvs)
{
    put_time(line);
    buf_printf(line, " %s %s", level_names[level], message);
    for (const struct log_kv *kv = kvs; kv->key; kv++) {
        buf_printf(line, " %s=", kv->key);
        put_value(line, kv);
    }
    buf_putc(line, '\n');
}

static void put_json_line(struct buf *line, enum log_level level, const char *message,
                          const struct log_kv *kvs)
{
    buf_put(line, S("{\"ts\":\""));
    put_time(line);
    buf_printf(line, "\",\"level\":\"%s\",\"msg\":", level_names[level]);
    put_quoted(line, str_c(message));
    for (const struct log_kv *kv = kvs; kv->key; kv++) {
        buf_putc(line, ',');
        put_quoted(line, str_c(kv->key));
        buf_putc(line, ':');
        put_value(line, kv);
    }
    buf_put(line, S("}\n"));
}

void log_write(enum log_level level, const char *message, const struct log_kv *kvs)
{
    auto_buf struct buf line = { 0 };
    if (settings.format == LOG_JSON)
        put_json_line(&line, level, message, kvs);
    else
        put_text_line(&line, level, message, kvs);
    if (settings.sink)
        settings.sink(settings.context, buf_str(&line));
    else if (write(STDERR_FILENO, line.p, line.n) < 0)
        return; /* there is nowhere to report this */
}
