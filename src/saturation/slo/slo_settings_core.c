/* Parses and merges latency settings: see slo_settings_core.h. */
#include "slo_settings_core.h"

#include "../../base/clock.h"
#include "../../base/duration.h"

#include <math.h>

const struct slo_settings slo_settings_none = { NAN, NAN, NAN, NAN, NAN, NAN };

/* A duration ("60ms"), or a number of seconds. */
static int read_seconds(const struct json *v, const char *field, double *ret, err_t *e)
{
    int64_t ns;
    double s = json_real(v, NAN);
    if (v && v->type == JSON_STR) {
        if (duration_parse(json_text(v), &ns, e) < 0)
            return err_wrap(e, "slo.%s", field);
        s = (double)ns / (double)NS_PER_S;
    }
    if (!(s >= 0.0001 && s <= 600))
        return err_set(e, EINVAL, "slo.%s must be between 100us and 600s", field);
    *ret = s;
    return 0;
}

/* "99%", "99", 99 or 0.99: a share above 1 is a percentage. */
static double read_share(const struct json *v, bool *ret_percent)
{
    str text = json_text(v);
    double x = json_real(v, NAN);
    *ret_percent = str_ends(text, S("%"));
    if (v && v->type == JSON_STR &&
        str_to_f64(str_trim(str_upto(text, text.n - *ret_percent)), &x) < 0)
        x = NAN;
    return *ret_percent ? x / 100 : x;
}

static int read_goal(const struct json *v, double *ret, err_t *e)
{
    bool percent;
    double goal = read_share(v, &percent);
    if (!percent && goal > 1)
        goal /= 100;
    if (!(goal >= 0.5 && goal <= 0.9999))
        return err_set(e, EINVAL, "slo.goal must be between 50%% and 99.99%%");
    *ret = goal;
    return 0;
}

/* A percentage is a share of the need, a plain number is replicas. */
static int read_reserve(const struct json *v, struct slo_settings *s, err_t *e)
{
    bool percent;
    double x = read_share(v, &percent);
    if (!(x >= 0 && x <= (percent ? 10 : 10000)))
        return err_set(e, EINVAL, "slo.reserve must be replicas (2) or a percentage (20%%)");
    s->reserve = percent ? x : 0;
    s->reserve_replicas = percent ? 0 : x;
    return 0;
}

static int read_field(str key, const struct json *v, struct slo_settings *s, err_t *e)
{
    if (str_eqc(key, "ttft"))
        return read_seconds(v, "ttft", &s->ttft, e);
    if (str_eqc(key, "itl"))
        return read_seconds(v, "itl", &s->itl, e);
    if (str_eqc(key, "goal"))
        return read_goal(v, &s->goal, e);
    if (str_eqc(key, "reserve"))
        return read_reserve(v, s, e);
    if (!str_eqc(key, "caution"))
        return err_set(e, EBADMSG,
                       "unknown field slo." STR_FMT "; use ttft, itl, goal, reserve or caution",
                       STR_ARG(key));
    s->caution = json_real(v, NAN);
    if (!(s->caution >= 1 && s->caution <= 3))
        return err_set(e, EINVAL, "slo.caution must be between 1 and 3");
    return 0;
}

int slo_settings_read(const struct json *tree, struct slo_settings *ret, err_t *e)
{
    struct slo_settings s = slo_settings_none;
    if (tree && tree->type != JSON_NULL && tree->type != JSON_OBJ)
        return err_set(e, EBADMSG, "slo has type %s; use a map of fields", json_type_name(tree));
    if (json_is(tree, JSON_OBJ))
        json_each(m, tree)
            if (m->value->type != JSON_NULL && read_field(m->key, m->value, &s, e) < 0)
                return -e->code;
    *ret = s;
    return 0;
}

void slo_settings_merge(struct slo_settings *to, const struct slo_settings *over)
{
    double *fields[] = { &to->ttft,   &to->itl, &to->goal, &to->reserve, &to->reserve_replicas,
                         &to->caution };
    const double from[] = {
        over->ttft, over->itl, over->goal, over->reserve, over->reserve_replicas, over->caution
    };
    for (size_t i = 0; i < countof(fields); i++)
        if (!isnan(from[i]))
            *fields[i] = from[i];
}
