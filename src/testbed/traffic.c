/* Sends simulated requests to simulated servers: see traffic.h for the ConfigMaps.
 *
 *     curve or trace --next_from_*--> request --serving_pick--> server
 *                                                 |
 *                                                 +-- none ready --> held --> (full) lost
 *
 * Arrivals are exact to the nanosecond whatever the tick is: before a request is placed, all servers are
 * advanced to its arrival. A coarser tick changes only when the results become visible, not what they are.
 *
 * A source remembers how far it has sent (`now_ns`), the position in its trace, and the fraction of a
 * request that is due (`owed`), so that cutting time into ticks loses none. The rate is constant within a
 * slice of a second. After a gap of more than 10 minutes (the machine was suspended) it resumes 10 minutes
 * back instead of replaying hours.
 *
 * struct traffic owns the sources. Held requests are limited to HELD_MAX per source; beyond that they are
 * counted as lost, as behind a real gateway. */
#include "traffic.h"

#include "../base/clock.h"

#include <math.h>

enum { HELD_MAX = 10000 };

static void source_free(struct traffic_source *source)
{
    free(source->ns);
    free(source->name);
    free(source->model);
    curve_done(&source->rate);
    trace_done(&source->trace);
    vec_done(&source->held);
    free(source);
}

/* ---- reading */

static int read_tokens(const struct json *data, const char *key, int32_t *ret, err_t *e)
{
    str text = json_text(json_get(data, key));
    int64_t value = *ret;
    if (text.n && (str_to_i64(text, &value) < 0 || value < 1 || value > 1 << 20))
        return err_set(e, EINVAL, "%s is \"" STR_FMT "\", but must be a number from 1 to 1048576",
                       key, STR_ARG(text));
    *ret = (int32_t)value;
    return 0;
}

/* Fills a source from its ConfigMap; what was read so far is freed with the source. */
static int read_source(struct traffic_source *source, const struct traffic_spec *spec, err_t *e)
{
    str model = json_text(json_get(spec->data, "model")),
        rate = json_text(json_get(spec->data, "rate"));
    if (!model.n)
        return err_set(e, EINVAL,
                       "model is missing; set it to the model that the requests are for");
    source->model = mem_dup(model.p, model.n);
    int r = curve_parse(rate.n ? rate : S("1"), &source->rate, e);
    r = r < 0 ? r : read_tokens(spec->data, "promptTokens", &source->prompt_tokens, e);
    r = r < 0 ? r : read_tokens(spec->data, "outputTokens", &source->output_tokens, e);
    if (r == 0 && spec->trace_csv.n)
        r = trace_parse(spec->trace_csv, &source->trace, e);
    return r;
}

static bool is_source(const struct traffic_source *source, str ns, str name)
{
    return str_eqc(name, source->name) && str_eqc(ns, source->ns);
}

int traffic_put(struct traffic *t, const struct traffic_spec *spec, err_t *e)
{
    struct traffic_source *source = mem_zero(1, sizeof(*source));
    source->prompt_tokens = 800;
    source->output_tokens = 200;
    source->origin_ns = spec->created_ns;
    source->now_ns = spec->now_ns;
    source->ns = mem_dup(spec->ns.p, spec->ns.n);
    source->name = mem_dup(spec->name.p, spec->name.n);
    random_init(&source->random, 1, 1);
    int r = read_source(source, spec, e);
    if (r < 0) {
        source_free(source);
        return err_wrap(e, "ConfigMap " STR_FMT "/" STR_FMT, STR_ARG(spec->ns),
                        STR_ARG(spec->name));
    }
    traffic_remove(t, spec->ns, spec->name);
    vec_push(&t->sources, source);
    return 0;
}

void traffic_remove(struct traffic *t, str ns, str name)
{
    for (size_t i = 0; i < t->sources.n; i++)
        if (is_source(t->sources.at[i], ns, name)) {
            source_free(t->sources.at[i]);
            vec_remove(&t->sources, i);
            return;
        }
}

void traffic_done(struct traffic *t)
{
    for (size_t i = 0; i < t->sources.n; i++)
        source_free(t->sources.at[i]);
    vec_done(&t->sources);
}

/* ---- sending */

static void advance_servers(struct serving *serving, int64_t now_ns)
{
    for (size_t i = 0; i < serving->servers.n; i++)
        replica_advance(&serving->servers.at[i]->replica, now_ns);
}

static void place_request(struct traffic *t, struct traffic_source *source,
                          struct replica_request request)
{
    struct vllm_server *server = serving_pick(t->serving, str_c(source->ns), str_c(source->model));
    if (server) {
        replica_submit(&server->replica, request);
        source->sent++;
    } else if (source->held.n < HELD_MAX) {
        vec_push(&source->held, request);
    } else {
        source->lost++;
    }
}

void traffic_reroute(void *context, const struct vllm_server *from, struct replica_request request)
{
    struct traffic *t = context;
    for (size_t i = 0; i < t->sources.n; i++)
        if (str_eqc(str_c(from->model), t->sources.at[i]->model) &&
            str_eqc(str_c(from->ns), t->sources.at[i]->ns)) {
            place_request(t, t->sources.at[i], request);
            return;
        }
}

/* Places the requests that waited for a server, if there is one now. */
static void release_held(struct traffic *t, struct traffic_source *source)
{
    if (!source->held.n || !serving_pick(t->serving, str_c(source->ns), str_c(source->model)))
        return;
    for (size_t i = 0; i < source->held.n; i++)
        place_request(t, source, source->held.at[i]);
    vec_clear(&source->held);
}

/* The next request if it is due before `until_ns`; moves the source to its arrival. A trace repeats when it ends. */
static bool next_from_trace(struct traffic_source *source, double rate, int64_t until_ns,
                            struct replica_request *ret)
{
    const struct trace *trace = &source->trace;
    if (source->next == trace->requests.n) { /* over again */
        source->next = 0;
        source->position_ns -= (double)trace->length_ns;
    }
    *ret = trace->requests.at[source->next];
    double wait_ns = fmax(0, (double)ret->arrived_ns - source->position_ns) / rate;
    if (wait_ns > (double)(until_ns - source->now_ns))
        return false;
    source->position_ns = (double)ret->arrived_ns;
    source->now_ns += (int64_t)wait_ns;
    source->next++;
    return true;
}

/* The same for requests at a rate: evenly spaced, with lengths that vary by half around the means. */
static bool next_from_curve(struct traffic_source *source, double rate, int64_t until_ns,
                            struct replica_request *ret)
{
    double wait_ns = fmax(0, 1 - source->owed) / rate * 1e9;
    if (wait_ns > (double)(until_ns - source->now_ns))
        return false;
    source->owed = 0;
    source->now_ns += (int64_t)wait_ns;
    double length = 0.5 + random_unit(&source->random);
    ret->prompt_tokens = (int32_t)(source->prompt_tokens * length);
    ret->output_tokens = (int32_t)(source->output_tokens * (2 - length));
    return true;
}

/* Sends what is due until `until_ns` at the rate of the slice's start, and carries the remainder over. */
static void advance_source(struct traffic *t, struct traffic_source *source, int64_t until_ns)
{
    double rate = curve_at(&source->rate, source->now_ns - source->origin_ns);
    struct replica_request request;
    bool traced = source->trace.requests.n > 0;
    release_held(t, source);
    while (rate > 0 &&
           (traced ? next_from_trace : next_from_curve)(source, rate, until_ns, &request)) {
        request.arrived_ns = source->now_ns;
        advance_servers(t->serving, source->now_ns);
        place_request(t, source, request);
    }
    double rest_ns = (double)(until_ns - source->now_ns) * rate;
    source->position_ns += rest_ns;
    source->owed += rest_ns / 1e9;
    source->now_ns = until_ns;
}

void traffic_advance(struct traffic *t, int64_t now_ns)
{
    static const int64_t slice_ns = NS_PER_S; /* of a curve that counts as constant */
    for (size_t i = 0; i < t->sources.n; i++) {
        struct traffic_source *source = t->sources.at[i];
        if (now_ns - source->now_ns > 600 * NS_PER_S)
            source->now_ns =
                now_ns - 600 * NS_PER_S; /* the machine slept: do not catch up for hours */
        while (source->now_ns < now_ns)
            advance_source(t, source, MIN(now_ns, source->now_ns + slice_ns));
    }
    advance_servers(t->serving, now_ns);
}
