/* Loading with a fallback per key: see market_agent_config.h. */
#include "market_agent_config.h"

static void ignore_complaint(void *context, const char *sentence)
{
    (void)context, (void)sentence;
}

static bool is_invalid(struct arena *a, str key, const struct json *value,
                       market_complain *complain, void *context)
{
    err_t e;
    if (market_config_check_value(a, key, json_text(value), &e) == 0)
        return false;
    complain(context, e.text);
    return true;
}

/* The values of the ConfigMap; an invalid one is replaced by the last valid one of its key. */
static struct json *valid_values(struct arena *a, const struct json *data,
                                 const struct json *before,
                                 const struct agent_config_source *source)
{
    struct json *good = json_new_obj(a);
    json_each(m, data) {
        struct json *value = m->value;
        if (is_invalid(a, m->key, value, source->complain, source->complain_context))
            value = json_get_str(before, m->key);
        if (value)
            json_append(a, good, m->key, json_copy(a, value));
    }
    return good;
}

/* A pair of settings that contradict each other keeps its last valid values. */
static void keep_pair(int64_t *least, int64_t *most, int64_t least_before, int64_t most_before,
                      const char *sentence, const struct agent_config_source *source)
{
    if (*most >= *least)
        return;
    *least = least_before;
    *most = most_before;
    source->complain(source->complain_context, sentence);
}

static void keep_pairs(struct market_config *now, const struct market_config *before,
                       const struct agent_config_source *source)
{
    keep_pair(&now->fast_ns, &now->slow_ns, before->fast_ns, before->slow_ns,
              "slowLoopInterval is below fastLoopInterval; both keep their last valid values",
              source);
    keep_pair(&now->sampling_ns, &now->write_ns, before->sampling_ns, before->write_ns,
              "writeInterval is below samplingInterval; both keep their last valid values", source);
    if (now->fast_step_max < now->fast_step_min) {
        now->fast_step_min = before->fast_step_min;
        now->fast_step_max = before->fast_step_max;
        source->complain(
            source->complain_context,
            "fastStepSizeMax is below fastStepSizeMin; both keep their last valid values");
    }
}

int market_agent_config_load(struct agent_config *c, const struct agent_config_source *source,
                             err_t *e)
{
    struct arena a = { 0 };
    struct json *data = NULL;
    int r = source->data.n ? json_parse(&a, source->data, &data, e) : 0;
    if (r == 0) {
        struct market_config market = market_config_default(MARKET_DEFAULTS);
        struct json *good = valid_values(&a, data, c->good, source);
        market_config_read(&market, &a, good, ignore_complaint, NULL);
        market_config_read_env(&market, &a, source->environment, source->environment_context,
                               source->complain, source->complain_context);
        struct market_config defaults = market_config_default(MARKET_DEFAULTS);
        keep_pairs(&market, c->good ? &c->market : &defaults, source);
        r = market_config_check(&market, e);
        if (r == 0) {
            arena_done(&c->arena);
            *c = (struct agent_config){ .market = market, .arena = a, .good = good };
            return 0;
        }
    }
    arena_done(&a);
    return r;
}

void market_agent_config_done(struct agent_config *c)
{
    arena_done(&c->arena);
}
