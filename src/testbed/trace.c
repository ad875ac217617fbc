/* See trace.h. */
#include "trace.h"

#include "../base/clock.h"
#include "../base/rfc3339.h"

#include <stdio.h>

/* "2023-11-16 18:15:46.6805900" is RFC 3339 but for the letter in the middle and the zone. */
static int parse_time(str text, int64_t *ret_ns)
{
    double seconds;
    if (str_find_char(text, ':') == SIZE_MAX) {
        if (str_to_f64(text, &seconds) < 0 || !(seconds >= 0 && seconds < 1e9))
            return -EINVAL;
        *ret_ns = (int64_t)(seconds * 1e9);
        return 0;
    }
    char full[48];
    if (text.n < 19 || text.n > 40)
        return -EINVAL;
    int n = snprintf(full, sizeof(full), STR_FMT "Z", STR_ARG(text));
    full[10] = 'T';
    return rfc3339_parse_ns((str){ full, (size_t)n }, ret_ns, NULL);
}

static int parse_line(str line, struct vllm_request *ret)
{
    str when, prompt, output;
    int64_t prompt_n, output_n;
    if (!str_cut(&line, ',', &when) || !str_cut(&line, ',', &prompt) ||
        !str_cut(&line, ',', &output))
        return -EINVAL;
    if (str_to_i64(str_trim(prompt), &prompt_n) < 0 || str_to_i64(str_trim(output), &output_n) < 0)
        return -EINVAL;
    if (prompt_n < 0 || output_n < 0 || prompt_n > 1 << 20 || output_n > 1 << 20)
        return -EINVAL;
    ret->prompt_tokens = (int32_t)prompt_n;
    ret->output_tokens = (int32_t)output_n;
    return parse_time(str_trim(when), &ret->arrived_ns);
}

static int add_line(struct trace *trace, str line)
{
    struct vllm_request request;
    if (parse_line(line, &request) < 0)
        return -EINVAL;
    size_t n = trace->requests.n;
    if (n && request.arrived_ns < trace->requests.at[n - 1].arrived_ns)
        return -EINVAL;
    vec_push(&trace->requests, request);
    return 0;
}

int trace_parse(str csv, struct trace *ret, err_t *e)
{
    struct trace trace = { 0 };
    str rest = csv, line;
    for (size_t number = 1; str_cut(&rest, '\n', &line); number++) {
        line = str_trim(line);
        if (number == 1 || !line.n || add_line(&trace, line) == 0)
            continue;
        trace_done(&trace);
        return err_set(
            e, EINVAL,
            "line %zu of the trace is \"" STR_FMT
            "\", but must be a time not before the last, prompt tokens and generated tokens",
            number, STR_ARG(str_upto(line, 100)));
    }
    if (!trace.requests.n)
        return err_set(e, EINVAL, "the trace holds no request");
    int64_t first = trace.requests.at[0].arrived_ns;
    for (size_t i = 0; i < trace.requests.n; i++)
        trace.requests.at[i].arrived_ns -= first;
    trace.length_ns = trace.requests.at[trace.requests.n - 1].arrived_ns + NS_PER_MS;
    *ret = trace;
    return 0;
}

void trace_done(struct trace *trace)
{
    vec_done(&trace->requests);
}
