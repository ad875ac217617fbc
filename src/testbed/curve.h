/* A load curve: a value over time, straight lines between points, over again when it ends.
 *
 *     "300m"                       always 0.3
 *     "0s=1 30s=4 50s=4 60s=1"     up to 4 within 30 s, stays for 20 s, back within 10 s, and again
 *
 * Values are Kubernetes quantities, so that cores and requests a second read as elsewhere. */
#ifndef FLYBALL_CURVE_H
#define FLYBALL_CURVE_H

#include "../base/str.h"
#include "../base/vec.h"

struct curve_point {
    int64_t at_ns;
    double value;
};

struct curve { /* `{0}` is 0 for ever */
    VEC(struct curve_point) points;
};

int curve_parse(str text, struct curve *ret, err_t *e); /* curve_done() it */
void curve_done(struct curve *curve);
double curve_at(const struct curve *curve, int64_t since_ns);

#endif
