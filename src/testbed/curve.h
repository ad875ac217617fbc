/* A load curve: a value over time, linear between points, repeated when it ends.
 *
 *     "300m"                       constant 0.3
 *     "0s=1 30s=4 50s=4 60s=1"     rises to 4 within 30 s, stays for 20 s, falls within 10 s, repeats
 *
 * Values are Kubernetes quantities: cores, or requests per second. */
#ifndef FLYBALL_CURVE_H
#define FLYBALL_CURVE_H

#include "../base/str.h"
#include "../base/vec.h"

struct curve_point {
    int64_t at_ns;
    double value;
};

struct curve { /* `{0}` is constant 0 */
    VEC(struct curve_point) points;
};

int curve_parse(str text, struct curve *ret, err_t *e); /* curve_done() it */
void curve_done(struct curve *curve);
double curve_at(const struct curve *curve, int64_t since_ns);

#endif
