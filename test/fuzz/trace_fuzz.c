/* An untrusted trace: read in any order or refused with a line; what is read is ascending, begins at 0, and
 * scaling keeps that. */
#include "fuzz.h"
#include "testbed/trace.h"

static void check(const struct trace *t)
{
    if (!t->requests.n || t->requests.at[0].arrived_ns || t->length_ns <= 0)
        abort();
    for (size_t i = 0; i < t->requests.n; i++) {
        const struct replica_request *r = &t->requests.at[i];
        if (i && r->arrived_ns < r[-1].arrived_ns)
            abort();
        if (r->prompt_tokens < 0 || r->output_tokens < 0 || r->prompt_tokens > 1 << 20 ||
            r->output_tokens > 1 << 20)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    str text = { (const char *)data, size };
    struct trace t, strict;
    err_t e;
    bool ordered = trace_parse(text, &strict, &e) == 0;
    if (ordered)
        trace_done(&strict);
    if (trace_parse_unordered(text, &t, &e) < 0) {
        if (ordered || !e.text[0])
            abort();
        return 0;
    }
    if (ordered != !t.moved)
        abort();
    check(&t);
    trace_scale(&t, 2.5, 1);
    check(&t);
    trace_done(&t);
    return 0;
}
