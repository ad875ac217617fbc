#include "tap.h"

#include "testbed/trace.h"

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

static void a_bad_line_is_named(void)
{
    const char *texts[] = {
        "h\n1,2\n",    "h\n1,2,x\n",   "h\n2,1,1\n1,1,1\n", "h\n-1,1,1\n",
        "h\n1,-1,1\n", "h\nnan,1,1\n", "h\n1,1,99999999\n", "h\n2023-13-01 00:00:00.0,1,1\n",
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
    return tap_run(
        (struct tap_case[]){ TAP(both_clocks_are_read), TAP(a_bad_line_is_named), { 0 } });
}
