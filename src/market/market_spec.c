/* Configuration: see market_spec.h.
 *
 * One row per key in the table below; parsing, environment, printing and the compatible readers
 * follow from it. Values use Go's grammar, because MBCAS parses them with strconv and
 * time.ParseDuration, and messages about bounds are MBCAS' own: the golden vectors compare them.
 * Two values differ from MBCAS' grammar: NaN and infinity are rejected, because no setting has a
 * meaning for them.
 *
 * Strings of a config point into the arena that it was read with. */
#include "market_spec.h"

#include "../base/duration.h"
#include "../base/quantity.h"

#include <math.h>
#include <stdio.h>

enum type { DURATION, REAL, INTEGER, BOOLEAN, TEXT };

enum place { IN_MAP = 1, IN_ENV = 2, IN_BOTH = 3 }; /* where MBCAS reads it */

static const struct key {
    const char *name, *env;
    enum type type;
    size_t at;
    enum place original;
} keys[] = {
#define KEY(name, env, type, field, place)                                                         \
    { name, env, type, offsetof(struct market_config, field), place }
    KEY("samplingInterval", "MBCAS_SAMPLING_INTERVAL", DURATION, sampling_ns, IN_BOTH),
    KEY("writeInterval", "MBCAS_WRITE_INTERVAL", DURATION, write_ns, IN_BOTH),
    KEY("minChangePercent", "MBCAS_MIN_CHANGE_PERCENT", REAL, min_change_percent, IN_BOTH),
    KEY("systemReservePercent", "MBCAS_SYSTEM_RESERVE_PERCENT", REAL, system_reserve_percent,
        IN_BOTH),
    KEY("baselineCPUPerPod", "MBCAS_BASELINE_CPU_PER_POD", TEXT, baseline_cpu, IN_BOTH),
    KEY("startupGracePeriod", "MBCAS_STARTUP_GRACE_PERIOD", DURATION, grace_ns, IN_BOTH),
    KEY("sloTargetLatencyMs", "MBCAS_SLO_TARGET_LATENCY_MS", REAL, slo_target_ms, IN_BOTH),
    KEY("prometheusURL", "MBCAS_PROMETHEUS_URL", TEXT, prometheus_url, IN_BOTH),
    KEY("fastLoopInterval", "MBCAS_FAST_LOOP_INTERVAL", DURATION, fast_ns, IN_BOTH),
    KEY("slowLoopInterval", "MBCAS_SLOW_LOOP_INTERVAL", DURATION, slow_ns, IN_BOTH),
    KEY("p99ThresholdMultiplier", "MBCAS_P99_THRESHOLD_MULTIPLIER", REAL, p99_multiplier, IN_BOTH),
    KEY("throttlingThreshold", "MBCAS_THROTTLING_THRESHOLD", REAL, throttling_threshold, IN_BOTH),
    KEY("fastStepSizeMin", "MBCAS_FAST_STEP_SIZE_MIN", REAL, fast_step_min, IN_BOTH),
    KEY("fastStepSizeMax", "MBCAS_FAST_STEP_SIZE_MAX", REAL, fast_step_max, IN_BOTH),
    KEY("allocationMechanism", "MBCAS_ALLOCATION_MECHANISM", TEXT, mechanism, IN_BOTH),
    KEY("enableKalmanPrediction", "MBCAS_ENABLE_KALMAN_PREDICTION", BOOLEAN, kalman, IN_BOTH),
    KEY("enableBatchReconciliation", "MBCAS_ENABLE_BATCH_RECONCILIATION", BOOLEAN, batch, IN_BOTH),
    KEY("coalitionGroupingAnnotation", "MBCAS_COALITION_GROUPING_ANNOTATION", TEXT,
        coalition_annotation, IN_BOTH),
    KEY("enablePriceResponse", "MBCAS_ENABLE_PRICE_RESPONSE", BOOLEAN, price_response, IN_BOTH),
    KEY("enableAgentBasedModeling", "MBCAS_ENABLE_AGENT_BASED_MODELING", BOOLEAN, agents, IN_BOTH),
    KEY("agentLearningRate", "MBCAS_AGENT_LEARNING_RATE", REAL, learning_rate, IN_BOTH),
    KEY("agentMemorySize", "MBCAS_AGENT_MEMORY_SIZE", INTEGER, memory_size, IN_BOTH),
    KEY("agentExplorationRate", "MBCAS_AGENT_EXPLORATION_RATE", REAL, exploration_rate, IN_BOTH),
    KEY("agentDiscountFactor", "MBCAS_AGENT_DISCOUNT_FACTOR", REAL, discount, IN_BOTH),
    KEY("totalClusterCPUCapacityMilli", "MBCAS_TOTAL_CLUSTER_CPU_CAPACITY_MILLI", INTEGER,
        capacity_milli, IN_MAP),
    KEY("costEfficiencyMode", "MBCAS_COST_EFFICIENCY_MODE", BOOLEAN, cost_efficiency, IN_ENV),
    KEY("maxCoalitionSize", "MBCAS_MAX_COALITION_SIZE", INTEGER, coalition_max, IN_ENV),
    KEY("maxHistorySize", "MBCAS_MAX_HISTORY_SIZE", INTEGER, history_max, IN_ENV),
    KEY("minUsageMicroseconds", "MBCAS_MIN_USAGE_MICROSECONDS", INTEGER, min_usage_usec, IN_ENV),
    KEY("absoluteMinAllocation", "MBCAS_ABSOLUTE_MIN_ALLOCATION", INTEGER, absolute_min_milli,
        IN_ENV),
    KEY("needHeadroomFactor", "MBCAS_NEED_HEADROOM_FACTOR", REAL, need_headroom, IN_ENV),
    KEY("wantHeadroomFactor", "MBCAS_WANT_HEADROOM_FACTOR", REAL, want_headroom, IN_ENV),
    KEY("maxDemandMultiplier", "MBCAS_MAX_DEMAND_MULTIPLIER", REAL, max_demand_multiplier, IN_ENV),
    KEY("alphaDown", "MBCAS_ALPHA_DOWN", REAL, alpha_down, 0),
    KEY("alphaUp", "MBCAS_ALPHA_UP", REAL, alpha_up, 0),
    KEY("idleDecayRate", "MBCAS_IDLE_DECAY_RATE", REAL, idle_decay, 0),
    KEY("targetThrottling", "MBCAS_TARGET_THROTTLING", REAL, target_throttling, 0),
    KEY("maxMinCPUShare", "MBCAS_MAX_MIN_CPU_SHARE", REAL, max_min_share, 0),
    KEY("lendBaseline", "MBCAS_LEND_BASELINE", BOOLEAN, lend_baseline, 0),
    KEY("limitOvercommit", "MBCAS_LIMIT_OVERCOMMIT", REAL, limit_overcommit, 0),
    KEY("limitCeiling", "MBCAS_LIMIT_CEILING", REAL, limit_ceiling, 0),
    KEY("requestHeadroomPercent", "MBCAS_REQUEST_HEADROOM_PERCENT", REAL, request_headroom_percent,
        0),
    KEY("bids", "MBCAS_BIDS", TEXT, bids, 0),
    KEY("hpaPeace", "MBCAS_HPA_PEACE", TEXT, hpa_peace, 0),
    KEY("memoryManagement", "MBCAS_MEMORY_MANAGEMENT", TEXT, memory, 0),
    KEY("memoryShrink", "MBCAS_MEMORY_SHRINK", BOOLEAN, memory_shrink, 0),
    KEY("startupBoostType", "MBCAS_STARTUP_BOOST_TYPE", TEXT, boost_type, 0),
    KEY("startupBoostFactor", "MBCAS_STARTUP_BOOST_FACTOR", INTEGER, boost_factor, 0),
    KEY("startupBoostQuantity", "MBCAS_STARTUP_BOOST_QUANTITY", TEXT, boost_quantity, 0),
    KEY("startupBoostDurationSeconds", "MBCAS_STARTUP_BOOST_DURATION_SECONDS", INTEGER,
        boost_duration_s, 0),
    KEY("startupBoostMaxSeconds", "MBCAS_STARTUP_BOOST_MAX_SECONDS", INTEGER, boost_max_s, 0),
    KEY("clusterReportInterval", "MBCAS_CLUSTER_REPORT_INTERVAL", DURATION, report_ns, 0),
#undef KEY
};

struct market_config market_config_default(enum market_defaults which)
{
    bool compat = which == MARKET_DEFAULTS_COMPAT;
    static const int64_t second = 1000000000;
    return (struct market_config){
        .sampling_ns = second,
        .write_ns = (compat ? 5 : 10) * second,
        .fast_ns = 2 * second,
        .slow_ns = (compat ? 10 : 15) * second,
        .grace_ns = (compat ? 90 : 45) * second,
        .min_change_percent = compat ? 2 : 5,
        .system_reserve_percent = 10,
        .baseline_cpu = S("100m"),
        .p99_multiplier = 1.2,
        .prometheus_url = S(""),
        .throttling_threshold = 0.1,
        .fast_step_min = 0.2,
        .fast_step_max = 0.4,
        .mechanism = S("nash"),
        .kalman = true,
        .batch = true,
        .price_response = compat,
        .agents = true,
        .coalition_annotation = S("mbcas.io/coalition"),
        .learning_rate = 0.1,
        .exploration_rate = 0.2,
        .discount = 0.9,
        .memory_size = 20,
        .coalition_max = 8,
        .history_max = 1000,
        .min_usage_usec = 1000,
        .absolute_min_milli = 10,
        .need_headroom = 0.15,
        .want_headroom = 0.10,
        .max_demand_multiplier = 4,
        .alpha_down = 0.8,
        .alpha_up = 0.1,
        .idle_decay = 0.005,
        .target_throttling = 0.05,
        .max_min_share = 0.5,
        .lend_baseline = true,
        .limit_overcommit = 2.5,
        .request_headroom_percent = 10,
        .bids = S("need"),
        .hpa_peace = S("hold"),
        .memory = S("off"),
        .boost_type = S(""),
        .boost_quantity = S(""),
        .boost_max_s = 300,
        .report_ns = 60 * second,
        .capacity_milli = 4000,
    };
}

/* ---- values, in Go's grammar */

/* Underscores may separate digits, as in 1_000. */
static bool drop_underscores(str text, char out[static 64])
{
    if (text.n == 0 || text.n >= 64)
        return false;
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool between = i > 0 && i + 1 < text.n && text.p[i - 1] != '_' && text.p[i + 1] != '_' &&
                       strchr("0123456789abcdefABCDEFx", text.p[i - 1]) &&
                       strchr("0123456789abcdefABCDEF", text.p[i + 1]);
        if (c == '\0' || (c == '_' && !between))
            return false;
        if (c != '_')
            out[n++] = c;
    }
    out[n] = '\0';
    return true;
}

static bool read_real(str text, double *ret)
{
    char plain[64], *end;
    if (!drop_underscores(text, plain))
        return false;
    bool hex = strchr(plain, 'x') || strchr(plain, 'X');
    if (plain[0] == ' ' || (plain[0] >= '\t' && plain[0] <= '\r') ||
        (hex && !strchr(plain, 'p') && !strchr(plain, 'P')) || strchr(plain, '('))
        return false; /* accepted by strtod but not by Go: blanks, hex without exponent, nan(...) */
    double value = strtod(plain, &end);
    if (end == plain || *end)
        return false;
    *ret = value;
    return true;
}

static bool read_bool(str text, bool *ret)
{
    static const char *const yes[] = { "1", "t", "T", "TRUE", "true", "True" };
    static const char *const no[] = { "0", "f", "F", "FALSE", "false", "False" };
    for (size_t i = 0; i < countof(yes); i++) {
        if (str_eqc(text, yes[i]) || str_eqc(text, no[i])) {
            *ret = str_eqc(text, yes[i]);
            return true;
        }
    }
    return false;
}

static const char *const type_descriptions[] = {
    [DURATION] = "a duration such as 15s or 1m30s",
    [REAL] = "a number",
    [INTEGER] = "a whole number",
    [BOOLEAN] = "true or false",
    [TEXT] = "a text",
};

/* Parses a value into its field, which is unchanged on failure. */
static int read_value(struct market_config *config, struct arena *a, const struct key *key,
                      str text, err_t *e)
{
    void *field = (char *)config + key->at;
    bool good = true;
    switch (key->type) {
    case DURATION:
        good = duration_parse(text, field, NULL) == 0;
        break;
    case REAL:
        good = read_real(text, field);
        break;
    case INTEGER:
        good = str_to_i64(text, field) == 0;
        break;
    case BOOLEAN:
        good = read_bool(text, field);
        break;
    case TEXT:
        *(str *)field = arena_str(a, text);
        break;
    }
    if (!good)
        return err_set(e, EINVAL, "invalid %s: \"" STR_FMT "\" is not %s", key->name, STR_ARG(text),
                       type_descriptions[key->type]);
    if (key->at == offsetof(struct market_config, capacity_milli))
        config->capacity_set = true;
    return 0;
}

/* ---- reading */

/* NaN and infinity are valid in Go's grammar, but not as a setting. */
static int read_finite(struct market_config *config, struct arena *a, const struct key *key,
                       str text, err_t *e)
{
    double value;
    if (key->type == REAL && read_real(text, &value) && !isfinite(value))
        return err_set(e, EINVAL, "invalid %s: \"" STR_FMT "\" is not a finite number", key->name,
                       STR_ARG(text));
    return read_value(config, a, key, text, e);
}

int market_config_read(struct market_config *config, struct arena *a, const struct json *data,
                       market_complain *complain, void *context)
{
    int bad = 0;
    for (size_t i = 0; i < countof(keys); i++) {
        str text = json_text(json_get(data, keys[i].name));
        err_t e;
        if (text.n && read_finite(config, a, &keys[i], text, &e)) {
            complain(context, e.text);
            bad++;
        }
    }
    return bad;
}

int market_config_read_env(struct market_config *config, struct arena *a,
                           const char *(*lookup)(void *context, const char *name),
                           void *lookup_context, market_complain *complain, void *context)
{
    int bad = 0;
    for (size_t i = 0; i < countof(keys); i++) {
        str text = str_c(lookup(lookup_context, keys[i].env));
        err_t e;
        if (text.n && read_finite(config, a, &keys[i], text, &e)) {
            err_wrap(&e, "environment variable %s", keys[i].env);
            complain(context, e.text);
            bad++;
        }
    }
    return bad;
}

int market_config_read_compat(struct market_config *config, struct arena *a,
                              const struct json *data, err_t *e)
{
    if (!json_is(data, JSON_OBJ))
        return err_set(e, EINVAL, "ConfigMap data is nil");
    for (size_t i = 0; i < countof(keys); i++) {
        str text = json_text(json_get(data, keys[i].name));
        int failed =
            text.n && keys[i].original & IN_MAP ? read_value(config, a, &keys[i], text, e) : 0;
        if (failed)
            return failed;
    }
    return 0;
}

void market_config_read_env_compat(struct market_config *config, struct arena *a,
                                   const char *(*lookup)(void *context, const char *name),
                                   void *lookup_context)
{
    for (size_t i = 0; i < countof(keys); i++) {
        struct market_config tried = *config;
        str text = str_c(lookup(lookup_context, keys[i].env));
        if (text.n && keys[i].original & IN_ENV && read_value(&tried, a, &keys[i], text, NULL) == 0)
            *config = tried;
    }
}

bool market_config_is_duration(str key)
{
    for (size_t i = 0; i < countof(keys); i++)
        if (str_eqc(key, keys[i].name))
            return keys[i].type == DURATION;
    return false;
}

/* ---- checking */

static int check_positive(const char *key, int64_t ns, err_t *e)
{
    char text[DURATION_TEXT_MAX];
    if (ns > 0)
        return 0;
    str shown = duration_text(ns, text);
    return err_set(e, ERANGE, "%s must be > 0, got " STR_FMT, key, STR_ARG(shown));
}

static int check_not_below(const char *key, int64_t ns, const char *other, int64_t least, err_t *e)
{
    char a[DURATION_TEXT_MAX], b[DURATION_TEXT_MAX];
    if (ns >= least)
        return 0;
    str have = duration_text(ns, a), want = duration_text(least, b);
    return err_set(e, ERANGE, "%s (" STR_FMT ") must be >= %s (" STR_FMT ")", key, STR_ARG(have),
                   other, STR_ARG(want));
}

static const char *real_text(double value, char out[static 400])
{
    if (isinf(value))
        return value > 0 ? "+Inf" : "-Inf";
    snprintf(out, 400, "%f", value);
    return out;
}

static int check_within(const char *key, double value, double most, err_t *e)
{
    char text[400];
    if (!(value < 0) && !(value > most))
        return 0;
    return err_set(e, ERANGE, "%s must be in [0, %g], got %s", key, most, real_text(value, text));
}

static int check_times(const struct market_config *c, err_t *e)
{
    int failed = check_positive("samplingInterval", c->sampling_ns, e);
    failed = failed ? failed : check_positive("writeInterval", c->write_ns, e);
    return failed ? failed
                  : check_not_below("writeInterval", c->write_ns, "samplingInterval",
                                    c->sampling_ns, e);
}

static int check_loops(const struct market_config *c, err_t *e)
{
    char text[DURATION_TEXT_MAX];
    if (c->grace_ns < 0) {
        str shown = duration_text(c->grace_ns, text);
        return err_set(e, ERANGE, "startupGracePeriod must be >= 0, got " STR_FMT, STR_ARG(shown));
    }
    int failed = check_positive("fastLoopInterval", c->fast_ns, e);
    failed = failed ? failed : check_positive("slowLoopInterval", c->slow_ns, e);
    return failed
               ? failed
               : check_not_below("slowLoopInterval", c->slow_ns, "fastLoopInterval", c->fast_ns, e);
}

static int check_steps(const struct market_config *c, err_t *e)
{
    char a[400], b[400];
    if (c->p99_multiplier <= 0)
        return err_set(e, ERANGE, "p99ThresholdMultiplier must be > 0, got %s",
                       real_text(c->p99_multiplier, a));
    int failed = check_within("throttlingThreshold", c->throttling_threshold, 1, e);
    failed = failed ? failed : check_within("fastStepSizeMin", c->fast_step_min, 1, e);
    failed = failed ? failed : check_within("fastStepSizeMax", c->fast_step_max, 1, e);
    if (!failed && c->fast_step_max < c->fast_step_min)
        return err_set(e, ERANGE, "fastStepSizeMax (%s) must be >= fastStepSizeMin (%s)",
                       real_text(c->fast_step_max, a), real_text(c->fast_step_min, b));
    return failed;
}

int market_config_check(const struct market_config *c, err_t *e)
{
    int failed = check_times(c, e);
    failed = failed ? failed : check_within("minChangePercent", c->min_change_percent, 100, e);
    failed =
        failed ? failed : check_within("systemReservePercent", c->system_reserve_percent, 100, e);
    if (failed)
        return failed;
    if (!c->baseline_cpu.n)
        return err_set(e, EINVAL, "baselineCPUPerPod must not be empty");
    failed = check_loops(c, e);
    failed = failed ? failed : check_steps(c, e);
    if (failed)
        return failed;
    if (!str_eqc(c->mechanism, "nash") && !str_eqc(c->mechanism, "primal-dual"))
        return err_set(e, EINVAL,
                       "allocationMechanism must be 'nash' or 'primal-dual', got " STR_FMT,
                       STR_ARG(c->mechanism));
    if (c->capacity_milli <= 0)
        return err_set(e, ERANGE, "totalClusterCPUCapacityMilli must be > 0, got %lld",
                       (long long)c->capacity_milli);
    return 0;
}

/* ---- printing */

static struct json *print_value(const struct market_config *config, struct arena *a,
                                const struct key *key)
{
    const void *field = (const char *)config + key->at;
    switch (key->type) {
    case DURATION:
    case INTEGER:
        return json_new_int(a, *(const int64_t *)field);
    case REAL:
        return json_new_real(a, *(const double *)field);
    case BOOLEAN:
        return json_new_bool(a, *(const bool *)field);
    default:
        return json_new_str(a, *(const str *)field);
    }
}

struct json *market_config_print(const struct market_config *config, struct arena *a)
{
    struct json *all = json_new_obj(a);
    for (size_t i = 0; i < countof(keys); i++)
        json_set(a, all, str_c(keys[i].name), print_value(config, a, &keys[i]));
    return all;
}
