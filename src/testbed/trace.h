/* A recorded stream of requests: when each came, how long its prompt was and how many tokens it made.
 *
 * CSV with one header line; the first column is either seconds ("12.25") or a date and time as in the
 * traces that Azure publishes ("2023-11-16 18:15:46.6805900"), ascending. */
#ifndef FLYBALL_TRACE_H
#define FLYBALL_TRACE_H

#include "vllm_model.h"

struct trace {
    VEC(struct vllm_request) requests; /* arrived_ns counts from the first one */
    int64_t length_ns;                 /* after it the trace begins anew; > 0 */
};

int trace_parse(str csv, struct trace *ret, err_t *e); /* trace_done() it */
void trace_done(struct trace *trace);

#endif
