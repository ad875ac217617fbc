/* A recorded stream of requests: arrival time, prompt tokens and generated tokens of each.
 *
 * Formats, one request per line:
 *
 *     TIMESTAMP,ContextTokens,GeneratedTokens      CSV as Azure publishes it; the header may be absent, and
 *     2023-11-16 18:15:46.6805900,374,44           the first column may be seconds ("12.25")
 *     {"timestamp": 27482, "input_length": 6955, "output_length": 52, ...}     JSON lines as Mooncake's,
 *                                                                              timestamp in ms
 *
 * Lines that begin with # are comments. Every format may be gzip-compressed (trace_load). Tokens are 0 to
 * 1048576. */
#ifndef FLYBALL_TRACE_H
#define FLYBALL_TRACE_H

#include "../base/str.h"
#include "replica_model.h"

struct trace {
    VEC(struct replica_request) requests; /* ascending; arrived_ns counts from the first one */
    int64_t length_ns;                    /* after it the trace repeats; > 0 */
    size_t moved;                         /* requests that were out of order in the text */
};

/* Requests must be ascending in time; -EINVAL otherwise. trace_done() it. */
int trace_parse(str text, struct trace *ret, err_t *e);
/* The same, but requests that are out of order are sorted and counted in `moved`. */
int trace_parse_unordered(str text, struct trace *ret, err_t *e);

/* A file in any of the formats, sorted; errors name the file. "-" is standard input. */
int trace_load(const char *path, struct trace *ret, err_t *e);

/* Multiplies the load and keeps its shape: each request occurs `factor` times, copies up to 10 s earlier or later with
 * the lengths of a neighbor. The fraction of `factor` is the probability of one more copy; below 1, of staying. */
void trace_scale(struct trace *trace, double factor, uint64_t seed);

void trace_done(struct trace *trace);

#endif
