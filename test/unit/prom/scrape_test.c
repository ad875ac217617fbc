#include "tap.h"

#include "base/buf.h"
#include "prom/scrape.h"

static int print_sample(void *context, const struct scrape_sample *s, err_t *e)
{
    (void)e;
    struct buf *out = context;
    buf_put(out, s->name);
    for (size_t i = 0; i < s->label_n; i++)
        buf_printf(out, "|" STR_FMT "=" STR_FMT, STR_ARG(s->labels[i].name),
                   STR_ARG(s->labels[i].value));
    buf_printf(out, " %g", s->value);
    if (s->has_time)
        buf_printf(out, " @%lld", (long long)s->time_ms);
    buf_putc(out, ';');
    return 0;
}

static void reads_samples(void)
{
    static const struct {
        const char *text, *want;
    } t[] = {
        { "", "" },
        { "a 1", "a 1;" },
        { "a 1\n", "a 1;" },
        { "a 1\r\nb 2\r\n", "a 1;b 2;" },
        { "  a\t 1 \n", "a 1;" },
        { "\n\n# HELP a x\n# TYPE a counter\n#odd\na 1\n\n", "a 1;" },
        { "a{} 1", "a 1;" },
        { "a { } 1", "a 1;" },
        { "a{b=\"c\"} 1", "a|b=c 1;" },
        { "a{b=\"c\",} 1", "a|b=c 1;" },
        { "a { b = \"c\" , d=\"\" } 1 1395066363000", "a|b=c|d= 1 @1395066363000;" },
        { "a{b=\"x\\\\y\\\"z\\nw\",c=\"\\n\"} -1.5e-3 -3", "a|b=x\\y\"z\nw|c=\n -0.0015 @-3;" },
        { "a{b=\"}{,=\"}1", "a|b=}{,= 1;" },
        { "vllm:kv_cache_usage_perc{model_name=\"m\"} 0.5",
          "vllm:kv_cache_usage_perc|model_name=m 0.5;" },
        { "h_bucket{le=\"+Inf\"} 3\nh_sum NaN\nh_count +Inf\nx -Inf",
          "h_bucket|le=+Inf 3;h_sum nan;h_count inf;x -inf;" },
        { "{\"my.metric\",\"my.label\"=\"v\"} 1", "my.metric|my.label=v 1;" },
        { "{\"my.metric\"} 1", "my.metric 1;" },
        { "a{b=\"\xc3\xa9\"} 1", "a|b=\xc3\xa9 1;" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_buf struct buf out = { 0 };
        err_t e;
        if (!OK_CALL(scrape_read(str_c(t[i].text), print_sample, &out, &e), &e) ||
            !EQ_STR(buf_str(&out), str_c(t[i].want)))
            printf("# case %zu\n", i);
    }
}

static void refuses_the_rest(void)
{
    static const char *const t[] = {
        "a",
        "a b",
        "a 1 2 3",
        "a 1 x",
        "1a 1",
        "a{b=\"c\" 1",
        "a{b=\"c} 1",
        "a{b=c} 1",
        "a{b} 1",
        "a{=\"c\"} 1",
        "a{,} 1",
        "a{b=\"c\",,} 1",
        "a{1b=\"\"} 1",
        "a{b:c=\"\"} 1",
        "a{b=\"\\x\"} 1",
        "a{b=\"\\",
        "a{\"m\"} 1",
        "{} 1",
        "{b=\"c\"} 1",
        "a{b=\"c\"d=\"e\"} 1",
        "a 0x10",
        "a 1_0",
        "a 1e999",
        "a 1 1.5",
        "a{b=\"c\"",
        "{\"\"} 1",
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_buf struct buf out = { 0 };
        auto_buf struct buf text = { 0 };
        buf_printf(&text, "ok 1\n%s\n", t[i]);
        err_t e = { 0 };
        if (!EQ_INT(scrape_read(buf_str(&text), print_sample, &out, &e), -EINVAL) ||
            !OK(strstr(e.text, "metrics, line 2")))
            printf("# %s: %s\n", t[i], e.text);
    }
}

static void is_bounded(void)
{
    auto_buf struct buf text = { 0 }, out = { 0 };
    buf_put(&text, S("a{"));
    for (int i = 0; i <= SCRAPE_LABELS_MAX; i++)
        buf_printf(&text, "l%d=\"v\",", i);
    buf_put(&text, S("} 1\n"));
    err_t e;
    EQ_INT(scrape_read(buf_str(&text), print_sample, &out, &e), -EINVAL);
    buf_clear(&text);
    for (int i = 0; i <= SCRAPE_LINE_MAX; i++)
        buf_putc(&text, '#');
    EQ_INT(scrape_read(buf_str(&text), print_sample, &out, &e), -EMSGSIZE);
}

static int stop_at_once(void *context, const struct scrape_sample *s, err_t *e)
{
    ++*(int *)context;
    return err_set(e, ECANCELED, "enough of " STR_FMT, STR_ARG(s->name));
}

static void stops_when_the_callback_fails(void)
{
    int calls = 0;
    err_t e;
    EQ_INT(scrape_read(S("a 1\nb 2\n"), stop_at_once, &calls, &e), -ECANCELED);
    EQ_INT(calls, 1);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(reads_samples),
                                        TAP(refuses_the_rest),
                                        TAP(is_bounded),
                                        TAP(stops_when_the_callback_fails),
                                        { 0 } });
}
