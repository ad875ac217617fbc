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
