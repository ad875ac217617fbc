/* Parsing and scaling of recorded traffic: see trace.h for the formats.
 *
 * Text is read line by line into requests with absolute times; sort_trace() then orders them, renumbers them
 * and counts time from the first. Invariants of a finished trace: at least one request, ascending arrivals
 * from 0, ids 0..n-1, and a length greater than the last arrival, so that a trace can be played in a loop.
 *
 * A trace is untrusted input: every number is range-checked before it is narrowed, and an error quotes the
 * line. JSON lines share one arena that is reset per line, so memory does not grow with the file.
 *
 * Scaling copies requests instead of compressing time: a compressed trace would have shorter bursts and
 * another shape. Copies get the lengths of a neighbor, so that the joint distribution of lengths stays, and
 * are moved by up to 10 s, so that they do not arrive in lockstep. */
#include "trace.h"

#include "../base/clock.h"
#include "../base/rfc3339.h"
#include "../json/json.h"

#include <math.h>
#include <stdio.h>

enum { TOKENS_MAX = 1 << 20 };

/* Seconds, or "2023-11-16 18:15:46.6805900": RFC 3339 except for the separator and the missing zone. */
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

static int set_tokens(struct replica_request *r, int64_t prompt, int64_t output)
{
    if (prompt < 0 || output < 0 || prompt > TOKENS_MAX || output > TOKENS_MAX)
        return -EINVAL;
    r->prompt_tokens = (int32_t)prompt;
    r->output_tokens = (int32_t)output;
    return 0;
}

/* -EINVAL unless the line has three columns in range; further columns are ignored. */
static int parse_csv_line(str line, struct replica_request *ret)
{
    str when, prompt, output;
    int64_t prompt_n, output_n;
    if (!str_cut(&line, ',', &when) || !str_cut(&line, ',', &prompt) ||
        !str_cut(&line, ',', &output))
        return -EINVAL;
    if (str_to_i64(str_trim(prompt), &prompt_n) < 0 || str_to_i64(str_trim(output), &output_n) < 0)
        return -EINVAL;
    if (set_tokens(ret, prompt_n, output_n) < 0)
        return -EINVAL;
    return parse_time(str_trim(when), &ret->arrived_ns);
}

static int parse_json_line(struct arena *a, str line, struct replica_request *ret)
{
    struct json *object;
    if (json_parse(a, line, &object, NULL) < 0 || !json_is(object, JSON_OBJ))
        return -EINVAL;
    double ms = json_real(json_get(object, "timestamp"), -1);
    if (!(ms >= 0 && ms < 1e12))
        return -EINVAL;
    ret->arrived_ns = (int64_t)(ms * 1e6);
    return set_tokens(ret, json_int(json_get(object, "input_length"), -1),
                      json_int(json_get(object, "output_length"), -1));
}

static int parse_line(struct arena *a, str line, struct replica_request *ret)
{
    struct arena_mark mark = arena_mark(a);
    *ret = (struct replica_request){ 0 };
    int r = line.p[0] == '{' ? parse_json_line(a, line, ret) : parse_csv_line(line, ret);
    arena_reset(a, mark);
    return r;
}

/* A header names columns: its first one holds letters only. */
static bool is_header_line(str line)
{
    char c = line.n ? line.p[0] : '\0';
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '"';
}

static int compare_arrivals(const void *a, const void *b)
{
    const struct replica_request *x = a, *y = b;
    if (x->arrived_ns != y->arrived_ns)
        return x->arrived_ns < y->arrived_ns ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

/* Sorts by time (requests of the same instant keep their order) and counts from the first one. */
static void sort_trace(struct trace *trace)
{
    size_t n = trace->requests.n;
    for (size_t i = 0; i < n; i++)
        trace->requests.at[i].id = (uint32_t)i;
    qsort(trace->requests.at, n, sizeof(*trace->requests.at), compare_arrivals);
    int64_t first = trace->requests.at[0].arrived_ns;
    for (size_t i = 0; i < n; i++) {
        trace->requests.at[i].arrived_ns -= first;
        trace->requests.at[i].id = (uint32_t)i;
    }
    trace->length_ns = trace->requests.at[n - 1].arrived_ns + NS_PER_MS;
}

/* Frees the trace and reports what the line must be. */
static int reject_line(struct trace *trace, size_t number, str line, const char *want, err_t *e)
{
    trace_done(trace);
    return err_set(e, EINVAL, "line %zu of the trace is \"" STR_FMT "\", but must be %s", number,
                   STR_ARG(str_upto(line, 100)), want);
}

/* The common part of both parsers; `sorts` accepts requests that are out of order and counts them. */
static int parse_trace(str text, bool sorts, struct trace *ret, err_t *e)
{
    auto_arena struct arena a = { 0 };
    struct trace trace = { 0 };
    str rest = text, line;
    int64_t latest = INT64_MIN;
    bool first = true;
    for (size_t number = 1; str_cut(&rest, '\n', &line); number++) {
        struct replica_request request;
        line = str_trim(line);
        if (!line.n || line.p[0] == '#')
            continue;
        bool header = first && is_header_line(line);
        first = false;
        if (header)
            continue;
        if (parse_line(&a, line, &request) < 0)
            return reject_line(&trace, number, line,
                               "a time, prompt tokens and generated tokens (0 to 1048576)", e);
        trace.moved += request.arrived_ns < latest;
        if (trace.moved && !sorts)
            return reject_line(&trace, number, line, "no earlier than the line before it", e);
        latest = MAX(latest, request.arrived_ns);
        if (trace.requests.n == UINT32_MAX)
            return reject_line(&trace, number, line,
                               "the last one: a trace holds at most 4294967295 requests", e);
        vec_push(&trace.requests, request);
    }
    if (!trace.requests.n)
        return err_set(e, EINVAL, "the trace has no requests");
    sort_trace(&trace);
    *ret = trace;
    return 0;
}

int trace_parse(str text, struct trace *ret, err_t *e)
{
    return parse_trace(text, false, ret, e);
}

int trace_parse_unordered(str text, struct trace *ret, err_t *e)
{
    return parse_trace(text, true, ret, e);
}

/* ---- scaling */

/* A copy of request `i` at a nearby time, with the lengths of one of its 100 neighbors. */
static struct replica_request copy_request(const struct trace *trace, size_t i, struct random *r)
{
    enum { NEIGHBORS = 50 };
    static const double most_s = 10;
    size_t n = trace->requests.n, from = i > NEIGHBORS ? i - NEIGHBORS : 0;
    size_t span = MIN(n - from, (size_t)2 * NEIGHBORS + 1);
    struct replica_request copy = trace->requests.at[i];
    const struct replica_request *lengths =
        &trace->requests.at[from + random_below(r, (uint32_t)span)];
    double moved = (double)copy.arrived_ns + (2 * random_unit(r) - 1) * most_s * 1e9;
    copy.arrived_ns = (int64_t)fmax(0, fmin(moved, (double)trace->requests.at[n - 1].arrived_ns));
    copy.prompt_tokens = lengths->prompt_tokens;
    copy.output_tokens = lengths->output_tokens;
    return copy;
}

void trace_scale(struct trace *trace, double factor, uint64_t seed)
{
    struct trace scaled = { .moved = trace->moved };
    struct random r;
    random_init(&r, seed, 3);
    for (size_t i = 0; i < trace->requests.n; i++) {
        double copies = floor(factor) + (random_unit(&r) < factor - floor(factor));
        for (double k = 0; k < copies; k++)
            vec_push(&scaled.requests, k > 0 ? copy_request(trace, i, &r) : trace->requests.at[i]);
    }
    if (!scaled.requests.n)
        vec_push(&scaled.requests, trace->requests.at[0]);
    sort_trace(&scaled);
    trace_done(trace);
    *trace = scaled;
}

void trace_done(struct trace *trace)
{
    vec_done(&trace->requests);
}
