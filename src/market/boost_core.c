/* Startup boost: see boost_core.h.
 *
 * The VPA's proposal calls a quantity an addition, its API comment an absolute amount. It is
 * absolute here, and never below the original limit. */
#include "boost_core.h"

#include "floor_core.h"

enum { SETTLE_S = 5 }; /* after the boost, until readings count again */

#define BOOST_ANNOTATION "mbcas.io/startup-boost"

static int read_factor(const struct json *cpu, struct boost *ret, err_t *e)
{
    const struct json *factor = json_get(cpu, "factor");
    if (json_get(cpu, "quantity"))
        return err_set(e, EINVAL, "quantity belongs to type Quantity");
    if (!json_is(factor, JSON_INT) || factor->integer < 1 || factor->integer > BOOST_FACTOR_MAX)
        return err_set(e, EINVAL, "factor must be a whole number between 1 and %d",
                       BOOST_FACTOR_MAX);
    ret->type = BOOST_FACTOR;
    ret->factor = factor->integer;
    return 0;
}

static int read_quantity(const struct json *cpu, struct boost *ret, err_t *e)
{
    uint32_t problems = 0;
    if (json_get(cpu, "factor"))
        return err_set(e, EINVAL, "factor belongs to type Factor");
    int64_t milli = floor_read_max(json_text(json_get(cpu, "quantity")), &problems);
    if (!json_is(json_get(cpu, "quantity"), JSON_STR) || problems)
        return err_set(e, EINVAL, "quantity must be a positive quantity");
    ret->type = BOOST_QUANTITY;
    ret->quantity_milli = milli;
    return 0;
}

int boost_read(const struct json *cpu, struct boost *ret, err_t *e)
{
    const struct json *duration = json_get(cpu, "durationSeconds");
    str type = json_text(json_get(cpu, "type"));
    *ret = (struct boost){ 0 };
    if (type.n == 0)
        return 0;
    if (duration && (!json_is(duration, JSON_INT) || duration->integer < 0 ||
                     duration->integer > BOOST_DURATION_MAX_S))
        return err_set(e, EINVAL, "durationSeconds must be between 0 and %d", BOOST_DURATION_MAX_S);
    struct boost boost = { .duration_s = json_int(duration, 0) };
    int r = str_eq(type, S("Factor"))     ? read_factor(cpu, &boost, e)
            : str_eq(type, S("Quantity")) ? read_quantity(cpu, &boost, e)
                                          : err_set(e, EINVAL, "type must be Factor or Quantity");
    if (r == 0)
        *ret = boost;
    return r;
}

int boost_parse(struct arena *a, str annotation, struct boost *ret, err_t *e)
{
    struct json *value = NULL;
    *ret = (struct boost){ 0 };
    if (json_parse(a, annotation, &value, NULL) || !json_is(json_get(value, "cpu"), JSON_OBJ))
        return err_set(e, EINVAL, BOOST_ANNOTATION " is not of the form {\"cpu\":{…}}");
    return boost_read(json_get(value, "cpu"), ret, e);
}

static int64_t boosted_limit(const struct boost *boost, const struct boost_pod *pod)
{
    int64_t base =
        pod->original_limit_milli > 0 ? pod->original_limit_milli : pod->original_request_milli;
    base = MIN(MAX(base, INT64_C(0)), CLEAR_MILLI_MAX);
    int64_t limit =
        boost->type == BOOST_FACTOR ? base * boost->factor : MAX(boost->quantity_milli, base);
    return pod->max_milli > 0 ? MIN(limit, pod->max_milli) : limit;
}

struct boost_state boost_at(const struct boost *boost, const struct boost_pod *pod)
{
    struct boost_state s = { .is_reading_valid = true };
    if (boost->type == BOOST_NONE)
        return s;
    int64_t last = pod->started_s + pod->max_s; /* for a pod that is not Ready */
    if (pod->is_ready) {
        s.has_end = true;
        s.until_s = MIN(pod->ready_s, last) + boost->duration_s;
        last = s.until_s;
    }
    bool started = pod->now_s >= pod->started_s;
    s.boosting = started && pod->now_s < last;
    s.is_reading_valid = !started || pod->now_s >= last + SETTLE_S;
    s.limit_milli = s.boosting ? boosted_limit(boost, pod) : 0;
    return s;
}
