/* Status engine: see engine_core.h.
 *
 * The steps, in order:
 *
 *   1. errors by class, over all components      DependenciesReachable, AuthValid, ConfigValid
 *   2. each component                            <Name>Ready
 *   3. the whole                                 Ready, and the status word
 *   4. what may be done                          apply, retry_with_backoff
 *
 * The three conditions of step 1 are written only once they have been False: a healthy object does not carry them. For
 * ENGINE_GRACE_S after the dependencies became unreachable, a component that could not be read keeps its status, so that
 * a restart of the API server does not degrade every object in the cluster. Texts are those of the original. */
#include "engine_core.h"

struct evaluation {
    struct arena *a;
    const struct aim_engine_question *q;
    struct aim_engine_condition *at; /* room for all conditions */
    size_t n;
    bool has[ENGINE_CLASS_N]; /* errors of this class exist */
};

const char *aim_engine_state_name(enum aim_engine_state state)
{
    static const char *const names[ENGINE_STATE_N] = {
        "", "Failed", "NotAvailable", "Degraded", "Pending", "Starting", "Progressing", "Ready"
    };
    return names[state];
}

enum aim_engine_state aim_engine_state_of(str word)
{
    for (int i = 1; i < ENGINE_STATE_N; i++)
        if (str_eqc(word, aim_engine_state_name((enum aim_engine_state)i)))
            return (enum aim_engine_state)i;
    return ENGINE_UNSET;
}

const char *aim_engine_class_name(enum aim_engine_class class)
{
    static const char *const names[ENGINE_CLASS_N] = { "",
                                                       "Unknown",
                                                       "Infrastructure",
                                                       "Auth",
                                                       "InvalidSpec",
                                                       "ResourceExhaustion",
                                                       "MissingReference",
                                                       "MissingDependency" };
    return names[class];
}

/* ---- errors */

/* The class decides what the status reports and whether to retry; reasons and messages are those of the
 * original. */
struct aim_engine_error aim_engine_http_error(int status, str reason)
{
    static const struct {
        int status;
        enum aim_engine_class class;
        const char *reason, *message;
    } t[] = {
        { 404, ENGINE_MISSING_DOWNSTREAM, "NotFound", "Resource not found" },
        { 401, ENGINE_AUTH, "Unauthorized", "Authentication required or invalid credentials" },
        { 403, ENGINE_AUTH, "Forbidden", "Insufficient permissions to access resource" },
        { 422, ENGINE_INVALID, "InvalidSpec", "Resource specification is invalid" },
        { 409, ENGINE_INFRASTRUCTURE, "Conflict",
          "Resource conflict - version mismatch or concurrent modification" },
        { 504, ENGINE_INFRASTRUCTURE, "Timeout", "Request timed out" },
        { 500, ENGINE_INFRASTRUCTURE, "ServiceUnavailable",
          "Kubernetes API server unavailable or internal error" },
        { 503, ENGINE_INFRASTRUCTURE, "ServiceUnavailable",
          "Kubernetes API server unavailable or internal error" },
        { 429, ENGINE_INFRASTRUCTURE, "RateLimited", "Too many requests - rate limited" },
    };
    if (str_eqc(reason, "AlreadyExists"))
        return (struct aim_engine_error){ ENGINE_INVALID, S("AlreadyExists"),
                                          S("Resource already exists") };
    for (size_t i = 0; i < countof(t); i++)
        if (t[i].status == status)
            return (struct aim_engine_error){ t[i].class, str_c(t[i].reason), str_c(t[i].message) };
    return status >= 500 ? (struct aim_engine_error){ ENGINE_INFRASTRUCTURE, S("ServerError"),
                                                      S("Server error (5xx)") }
                         : (struct aim_engine_error){ ENGINE_INVALID, S("ClientError"),
                                                      S("Client error (4xx)") };
}

/* A network that does not answer is infrastructure, never a fault of the user. */
struct aim_engine_error aim_engine_network_error(struct arena *a, enum aim_engine_network kind,
                                                 str about)
{
    struct aim_engine_error e = { .class = ENGINE_INFRASTRUCTURE };
    switch (kind) {
    case NETWORK_REFUSED:
        e.reason = S("ConnectionRefused");
        e.message = S("Connection refused - service may be down");
        break;
    case NETWORK_TIMEOUT:
        e.reason = S("NetworkTimeout");
        e.message = S("Network timeout");
        break;
    case NETWORK_RESET:
        e.reason = S("ConnectionReset");
        e.message = S("Connection reset by peer");
        break;
    case NETWORK_DNS:
        e.reason = S("DNSFailure");
        e.message = arena_printf(a, "DNS resolution failed for " STR_FMT, STR_ARG(about));
        break;
    case NETWORK_OTHER:
        e.reason = S("NetworkError");
        e.message = arena_printf(a, "Network operation failed: " STR_FMT, STR_ARG(about));
        break;
    }
    return e;
}

/* ---- conditions */

static struct aim_engine_condition *find_condition(struct evaluation *e, str type)
{
    for (size_t i = 0; i < e->n; i++)
        if (str_eq(e->at[i].type, type))
            return &e->at[i];
    return NULL;
}

/* The time moves with the status or the reason; a message may change on every turn. */
static void set_condition(struct evaluation *e, str type, enum aim_engine_truth truth, str reason,
                          str message)
{
    struct aim_engine_condition *c = find_condition(e, type);
    int64_t since = c && c->truth == truth && str_eq(c->reason, reason) ? c->since_s : e->q->now_s;
    if (!c)
        c = &e->at[e->n++];
    *c = (struct aim_engine_condition){ type, truth, reason, message, since };
}

/* Step 1, one condition: False while there are such errors, True once it was False and they are gone. */
static void set_category(struct evaluation *e, str type, bool bad, str reason, str message,
                         str good_reason, str good_message)
{
    const struct aim_engine_condition *old = find_condition(e, type);
    if (bad)
        set_condition(e, type, ENGINE_FALSE, reason, message);
    else if (old && old->truth == ENGINE_FALSE)
        set_condition(e, type, ENGINE_TRUE, good_reason, good_message);
}

static bool is_infrastructure(const struct evaluation *e)
{
    return e->has[ENGINE_INFRASTRUCTURE] || e->has[ENGINE_UNKNOWN_ERROR];
}

static void set_categories(struct evaluation *e)
{
    for (size_t i = 0; i < e->q->n; i++)
        for (size_t k = 0; k < countof(e->q->components[i].errors); k++)
            e->has[e->q->components[i].errors[k].class] = true;
    set_category(e, S("DependenciesReachable"), is_infrastructure(e), S("InfrastructureError"),
                 S("Cannot reach dependencies"), S("Reachable"),
                 S("All dependencies are reachable"));
    set_category(e, S("AuthValid"), e->has[ENGINE_AUTH], S("AuthError"),
                 S("Authentication or authorization failure"), S("AuthenticationValid"),
                 S("Authentication and authorization successful"));
    bool invalid = e->has[ENGINE_INVALID];
    set_category(e, S("ConfigValid"), invalid || e->has[ENGINE_MISSING_UPSTREAM],
                 invalid ? S("InvalidSpec") : S("ReferenceNotFound"),
                 invalid ? S("Configuration validation failed")
                         : S("Referenced resource not found"),
                 S("ConfigurationValid"), S("Configuration is valid"));
}

/* ---- components */

struct aim_engine_component aim_engine_make(const char *name, enum aim_engine_state state,
                                            const char *reason, str message)
{
    return (struct aim_engine_component){ .name = name,
                                          .state = state,
                                          .reason = str_c(reason),
                                          .message = message,
                                          .has_reason = true };
}

const struct json *aim_engine_find_condition(const struct json *object, const char *type)
{
    const struct json *list = json_at(object, "status", "conditions", NULL);
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(json_item(list, i), "type")), type))
            return json_item(list, i);
    return NULL;
}

/* The class of the first error decides; a component without errors is ready. */
enum aim_engine_state aim_engine_component_state(const struct aim_engine_component *c)
{
    static const enum aim_engine_state states[ENGINE_CLASS_N] = {
        [ENGINE_OK] = ENGINE_READY,
        [ENGINE_UNKNOWN_ERROR] = ENGINE_PROGRESSING,
        [ENGINE_INFRASTRUCTURE] = ENGINE_DEGRADED,
        [ENGINE_AUTH] = ENGINE_FAILED,
        [ENGINE_INVALID] = ENGINE_FAILED,
        [ENGINE_EXHAUSTED] = ENGINE_FAILED,
        [ENGINE_MISSING_UPSTREAM] = ENGINE_DEGRADED,
        [ENGINE_MISSING_DOWNSTREAM] = ENGINE_PROGRESSING,
    };
    return c->state ? c->state : states[c->errors[0].class];
}

static str condition_type(struct evaluation *e, const struct aim_engine_component *c)
{
    return arena_printf(e->a, "%sReady", c->name);
}

static bool has_infrastructure_error(const struct aim_engine_component *c)
{
    for (size_t i = 0; i < countof(c->errors); i++)
        if (c->errors[i].class == ENGINE_INFRASTRUCTURE)
            return true;
    return false;
}

/* Step 2: within the grace period a component that could not be read keeps its status. */
static void set_component(struct evaluation *e, const struct aim_engine_component *c)
{
    str type = condition_type(e, c);
    const struct aim_engine_condition *reachable = find_condition(e, S("DependenciesReachable"));
    const struct aim_engine_condition *old = find_condition(e, type);
    bool ready = aim_engine_component_state(c) == ENGINE_READY;
    bool grace = reachable && reachable->truth == ENGINE_FALSE &&
                 e->q->now_s - reachable->since_s < ENGINE_GRACE_S && has_infrastructure_error(c);
    str reason = c->reason, message = c->message;
    if (!c->has_reason && !c->reason.n) {
        reason = c->errors[0].class ? c->errors[0].reason : S("Ready");
        message = c->errors[0].class ? c->errors[0].message : S("");
    }
    enum aim_engine_truth truth = grace && old ? old->truth : ready ? ENGINE_TRUE : ENGINE_FALSE;
    set_condition(e, type, truth, reason, message);
}

static const struct aim_engine_component *component_of(struct evaluation *e,
                                                       const struct aim_engine_condition *c)
{
    for (size_t i = 0; i < e->q->n; i++) {
        const struct aim_engine_component *one = &e->q->components[i];
        if (one->name && *one->name && str_eq(condition_type(e, one), c->type))
            return one;
    }
    return NULL;
}

/* ---- the whole */

static bool is_component_condition(const struct aim_engine_condition *c)
{
    return str_ends(c->type, S("Ready")) && !str_eqc(c->type, "Ready");
}

/* What a condition contributes to the word: a component that is not ready and not bad is still being worked on. */
static enum aim_engine_state state_of_condition(struct evaluation *e,
                                                const struct aim_engine_condition *c)
{
    const struct aim_engine_component *component = component_of(e, c);
    enum aim_engine_state state =
        component ? aim_engine_component_state(component) : ENGINE_PROGRESSING;
    if (c->truth == ENGINE_TRUE)
        return ENGINE_READY;
    return state <= ENGINE_PENDING            ? state
           : component && component->upstream ? ENGINE_PENDING
                                              : ENGINE_PROGRESSING;
}

/* Errors that only the user can fix; false: there are none. */
static bool end_with_user_error(struct evaluation *e)
{
    const char *type = e->has[ENGINE_AUTH]                                         ? "AuthValid"
                       : e->has[ENGINE_INVALID] || e->has[ENGINE_MISSING_UPSTREAM] ? "ConfigValid"
                                                                                   : NULL;
    if (!type)
        return false;
    struct aim_engine_condition cause = *find_condition(e, str_c(type));
    set_condition(e, S("Ready"), ENGINE_FALSE, cause.reason, cause.message);
    return true;
}

/* Ready while not all components are: the first bad one is named. */
static void set_not_ready(struct evaluation *e)
{
    for (size_t i = 0; i < e->n; i++) {
        const struct aim_engine_condition *c = &e->at[i];
        if (!is_component_condition(c) || state_of_condition(e, c) >= ENGINE_PENDING ||
            !component_of(e, c))
            continue;
        str name = str_upto(c->type, c->type.n - strlen("Ready"));
        set_condition(e, S("Ready"), ENGINE_FALSE, c->reason,
                      arena_printf(e->a, "Component " STR_FMT " is not ready: " STR_FMT,
                                   STR_ARG(name), STR_ARG(c->message)));
        return;
    }
    if (is_infrastructure(e))
        set_condition(e, S("Ready"), ENGINE_FALSE, S("InfrastructureError"),
                      S("Infrastructure error - waiting for retry"));
    else
        set_condition(e, S("Ready"), ENGINE_FALSE, S("Progressing"),
                      S("Waiting for components to become ready"));
}

/* Step 3: the word, and the condition Ready. */
static enum aim_engine_state set_whole(struct evaluation *e)
{
    enum aim_engine_state worst = ENGINE_READY;
    if (end_with_user_error(e))
        return ENGINE_FAILED;
    for (size_t i = 0; i < e->n; i++)
        if (is_component_condition(&e->at[i]))
            worst = MIN(worst, state_of_condition(e, &e->at[i]));
    if (worst == ENGINE_READY) {
        set_condition(e, S("Ready"), ENGINE_TRUE, S("AllComponentsReady"),
                      S("All components are ready"));
        return worst;
    }
    set_not_ready(e);
    return is_infrastructure(e) ? ENGINE_DEGRADED : worst;
}

/* The old conditions; without those of components that are gone, unless asked to keep them. */
static void take_old(struct evaluation *e)
{
    for (size_t i = 0; i < e->q->old_n; i++) {
        const struct aim_engine_condition *c = &e->q->old[i];
        if (e->q->as_original || !is_component_condition(c) || component_of(e, c))
            e->at[e->n++] = *c;
    }
}

struct aim_engine_answer aim_engine_evaluate(struct arena *a, const struct aim_engine_question *q)
{
    enum { OWN = 4 }; /* Ready and the three categories */
    struct evaluation e = { .a = a, .q = q };
    e.at = arena_array(a, q->n + q->old_n + q->extra_n + OWN, sizeof(*e.at));
    take_old(&e);
    set_categories(&e);
    for (size_t i = 0; i < q->n; i++)
        if (q->components[i].name && *q->components[i].name)
            set_component(&e, &q->components[i]);
    for (size_t i = 0; i < q->extra_n; i++)
        set_condition(&e, q->extra[i].type, q->extra[i].truth, q->extra[i].reason,
                      q->extra[i].message);
    struct aim_engine_answer answer = { .status = set_whole(&e) };
    answer.conditions = e.at;
    answer.n = e.n;
    answer.retry_with_backoff = is_infrastructure(&e);
    answer.apply = !is_infrastructure(&e) && !e.has[ENGINE_AUTH] && !e.has[ENGINE_INVALID] &&
                   !e.has[ENGINE_MISSING_UPSTREAM];
    return answer;
}
