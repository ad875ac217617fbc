/* Startup boost: a higher CPU limit from the start of a pod until it is Ready, and a while after.
 *
 *     mbcas.io/startup-boost: '{"cpu":{"type":"Factor","factor":3,"durationSeconds":10}}'
 *
 * The fields are those of the VPA's startupBoost. The boost is a guarantee of the last stage
 * (floor_core.h): it never costs another pod its baseline. Requests are not raised, and readings
 * taken while it lasts do not show what the pod needs later. */
#ifndef FLYBALL_BOOST_CORE_H
#define FLYBALL_BOOST_CORE_H

#include "../json/json.h"

enum boost_type { BOOST_NONE, BOOST_FACTOR, BOOST_QUANTITY };

enum { BOOST_FACTOR_MAX = 100, BOOST_DURATION_MAX_S = 3600, BOOST_MAX_S_DEFAULT = 300 };

struct boost {
    enum boost_type type;
    int64_t factor;         /* BOOST_FACTOR: 1 .. 100 times the original limit */
    int64_t quantity_milli; /* BOOST_QUANTITY: an absolute limit */
    int64_t duration_s;     /* after Ready */
};

/* Reads the annotation (its text), or the object inside `cpu`. On an error there is no boost, and
 * the error names the field. */
int boost_parse(struct arena *a, str annotation, struct boost *ret, err_t *e);
int boost_read(const struct json *cpu, struct boost *ret, err_t *e);

struct boost_pod {
    int64_t now_s, started_s;
    int64_t ready_s; /* since when it is Ready */
    bool is_ready;
    int64_t max_s; /* startupBoostMaxSeconds: a pod that is not Ready by then loses it */
    int64_t original_request_milli, original_limit_milli; /* 0: none */
    int64_t max_milli;                                    /* max-cpu; 0: none */
};

struct boost_state {
    bool boosting;
    int64_t limit_milli; /* while boosting; 0 if the pod has neither limit nor request */
    bool has_end;
    int64_t until_s;       /* once it is Ready */
    bool is_reading_valid; /* readings of now may enter need */
};

struct boost_state boost_at(const struct boost *boost, const struct boost_pod *pod);

#endif
