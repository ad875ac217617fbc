#include "tap.h"

#include "testbed/trace.h"

#include "base/buf.h"
#include "base/clock.h"

static void both_clocks_are_read(void)
{
    const char *texts[] = {
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2023-11-16 18:15:46.6805900,374,44\n2023-11-16 18:15:50.9951690,396,109\n",
        "seconds,prompt,output\r\n1.5,374,44\r\n5.814579,396,109",
    };
    for (size_t i = 0; i < countof(texts); i++) {
        struct trace t = { 0 };
        err_t e;
        if (!OK_CALL(trace_parse(str_c(texts[i]), &t, &e), &e))
            continue;
        EQ_INT(t.requests.n, 2);
        EQ_INT(t.requests.at[0].arrived_ns, 0);
        EQ_INT((t.requests.at[1].arrived_ns + 500) / 1000, 4314579);
        EQ_INT(t.requests.at[1].prompt_tokens, 396);
        EQ_INT(t.requests.at[1].output_tokens, 109);
        OK(t.length_ns > t.requests.at[1].arrived_ns);
        trace_done(&t);
    }
}

static void every_format_is_read(void)
{
    const char *texts[] = {
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.5,10,1\n2023-11-16 18:15:48,20,2\n",
        "# a comment\n3.5,10,1\n\n# another\n5.0,20,2\n", /* no header */
        ("{\"timestamp\": 27482, \"input_length\": 10, \"output_length\": 1, \"hash_ids\": [1, 2]}\n"
         "{\"timestamp\": 28982, \"input_length\": 20, \"output_length\": 2}\n"),
    };
    for (size_t i = 0; i < countof(texts); i++) {
        struct trace t = { 0 };
        err_t e;
        if (!OK_CALL(trace_parse(str_c(texts[i]), &t, &e), &e))
            continue;
        EQ_INT(t.requests.n, 2);
        EQ_INT(t.requests.at[0].prompt_tokens, 10);
        EQ_INT(t.requests.at[1].arrived_ns / 1000, 1500000);
        EQ_INT(t.requests.at[1].output_tokens, 2);
        trace_done(&t);
    }
}

static void disorder_is_sorted_where_allowed(void)
{
    str text = S("5,1,1\n3,2,2\n4,3,3\n3,4,4\n");
    struct trace t;
    err_t e;
    OK(trace_parse(text, &t, &e) < 0);
    OK(strstr(e.text, "line 2"));
    if (!OK_CALL(trace_parse_unordered(text, &t, &e), &e))
        return;
    EQ_INT(t.moved, 3);
    const int32_t order[] = { 2, 4, 3, 1 };
    for (size_t i = 0; i < countof(order); i++)
        EQ_INT(t.requests.at[i].prompt_tokens, order[i]);
    EQ_INT(t.requests.at[0].arrived_ns, 0);
    trace_done(&t);
}

static void scaling_keeps_the_shape(void)
{
    struct trace t, u;
    auto_buf struct buf text = { 0 };
    err_t e;
    for (int i = 0; i < 1000; i++)
        buf_printf(&text, "%d,%d,%d\n", i, 100 + i % 7, 10 + i % 3);
    if (!OK_CALL(trace_parse(buf_str(&text), &t, &e), &e) ||
        !OK_CALL(trace_parse(buf_str(&text), &u, &e), &e))
        return;
    trace_scale(&t, 6, 1);
    trace_scale(&u, 0.5, 1);
    EQ_INT(t.requests.n, 6000);
    OK(u.requests.n > 400 && u.requests.n < 600);
    size_t early = 0;
    for (size_t i = 0; i < t.requests.n; i++) {
        OK(!i || t.requests.at[i].arrived_ns >= t.requests.at[i - 1].arrived_ns);
        OK(t.requests.at[i].prompt_tokens >= 100 && t.requests.at[i].prompt_tokens < 107);
        early += t.requests.at[i].arrived_ns < 500 * NS_PER_S;
    }
    OK(early > 2900 && early < 3100);
    trace_done(&t);
    trace_done(&u);
}

static void a_bad_line_is_named(void)
{
    const char *texts[] = {
        "h\n1,2\n",
        "h\n1,2,x\n",
        "h\n2,1,1\n1,1,1\n",
        "h\n-1,1,1\n",
        "h\n1,-1,1\n",
        "h\nnan,1,1\n",
        "h\n{\"timestamp\": 1, \"input_length\": 2}\n",
        "h\n{\n",
        "h\n1e99,1,1\n",
        "h\n1,1,99999999\n",
        "h\n2023-13-01 00:00:00.0,1,1\n",
    };
    struct trace t;
    err_t e;
    for (size_t i = 0; i < countof(texts); i++) {
        OK(trace_parse(str_c(texts[i]), &t, &e) < 0);
        OK(strstr(e.text, i == 2 ? "line 3" : "line 2"));
    }
    OK(trace_parse(S("h\n"), &t, &e) < 0);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(both_clocks_are_read),
                                        TAP(every_format_is_read),
                                        TAP(disorder_is_sorted_where_allowed),
                                        TAP(scaling_keeps_the_shape),
                                        TAP(a_bad_line_is_named),
                                        { 0 } });
}
