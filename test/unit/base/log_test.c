#include "tap.h"

#include "base/buf.h"
#include "base/log.h"

static struct buf seen;

static void keep(void *context, str line)
{
    (void)context;
    buf_clear(&seen);
    buf_put(&seen, line);
}

static str without_time(void)
{
    return str_from(buf_str(&seen), str_find_char(buf_str(&seen), ' ') + 1);
}

static void text_lines(void)
{
    log_setup(LOG_INFO, LOG_TEXT);
    log_info("bounds changed", KV("hpa", S("web")), KV_INT("min", 5), KV_REAL("load", 0.25));
    EQ_STR(without_time(), S("info bounds changed hpa=web min=5 load=0.25\n"));
    log_warn("no keys");
    EQ_STR(without_time(), S("warn no keys\n"));
}

static void values_cannot_forge_a_line(void)
{
    log_setup(LOG_INFO, LOG_TEXT);
    log_info("m", KV("name", S("a\n2026 error x=\"y\"")));
    EQ_STR(without_time(), S("info m name=\"a\\n2026 error x=\\\"y\\\"\"\n"));
    log_info("m", KV("empty", S("")));
    EQ_STR(without_time(), S("info m empty=\"\"\n"));
}

static void json_lines(void)
{
    log_setup(LOG_INFO, LOG_JSON);
    log_error("it \"failed\"", KV("k", S("v")), KV_INT("n", -1), KV_REAL("r", NAN));
    size_t level = str_find(buf_str(&seen), S(",\"level\""));
    EQ_STR(
        str_from(buf_str(&seen), level),
        S(",\"level\":\"error\",\"msg\":\"it \\\"failed\\\"\",\"k\":\"v\",\"n\":-1,\"r\":\"NaN\"}\n"));
}

static void levels_filter(void)
{
    log_setup(LOG_WARN, LOG_TEXT);
    buf_clear(&seen);
    log_info("quiet");
    EQ_INT(seen.n, 0);
    enum log_level level = LOG_INFO;
    EQ_INT(log_level_parse(S("debug"), &level), 0);
    EQ_INT(level, LOG_DEBUG);
    EQ_INT(log_level_parse(S("loud"), &level), -EINVAL);
}

int main(void)
{
    log_redirect(keep, NULL);
    int result = tap_run((struct tap_case[]){ TAP(text_lines),
                                              TAP(values_cannot_forge_a_line),
                                              TAP(json_lines),
                                              TAP(levels_filter),
                                              { 0 } });
    buf_done(&seen);
    return result;
}
