/* Status of a service: see service_status_core.h. Each stage that can end the story is one function that
 * returns true when it did; the order of `stages` is the order of precedence. */
#include "service_status_core.h"

enum word { PENDING, STARTING, RUNNING, DEGRADED, FAILED };

struct evaluation {
    struct arena *a;
    const struct aim_service_facts *f;
    enum word word;
    struct aim_service_condition *c; /* SERVICE_CONDITION_N of them */
};

static const char *const words[] = { "Pending", "Starting", "Running", "Degraded", "Failed" };

const char *aim_service_condition_name(enum aim_service_condition_type type)
{
    static const char *const names[SERVICE_CONDITION_N] = {
        "Resolved", "CacheReady", "RuntimeReady", "RoutingReady", "Ready", "Progressing", "Failure"
    };
    return names[type];
}

static void set_condition(struct evaluation *s, enum aim_service_condition_type type, bool holds, str reason,
                str message)
{
    s->c[type] =
        (struct aim_service_condition){ holds ? SERVICE_TRUE : SERVICE_FALSE, reason, message };
}

/* All that a cause says when it ends the story; a NULL text leaves its condition alone. */
struct outcome {
    enum word word;
    str reason;
    str resolved, runtime, ready, failure;
    const char *progressing;
    bool is_progressing; /* Progressing is True */
};

static bool end_with(struct evaluation *s, const struct outcome *e)
{
    s->word = MAX(s->word, e->word); /* a failing route stays failing */
    if (e->resolved.p)
        set_condition(s, SERVICE_RESOLVED, false, e->reason, e->resolved);
    if (e->runtime.p)
        set_condition(s, SERVICE_RUNTIME_READY, false, e->reason, e->runtime);
    if (e->failure.p)
        set_condition(s, SERVICE_FAILURE, true, e->reason, e->failure);
    set_condition(s, SERVICE_READY, false, e->reason, e->ready);
    set_condition(s, SERVICE_PROGRESSING, e->is_progressing && s->word != FAILED, e->reason, str_c(e->progressing));
    return true;
}

static str text_or(str text, str otherwise)
{
    return text.n ? text : otherwise;
}

/* ---- before the stages: cache and route */

static void set_cache_condition(struct evaluation *s)
{
    static const struct {
        bool holds;
        const char *reason, *message;
    } t[] = {
        [SERVICE_CACHE_OFF] = { true, "CacheWarm", "Caching not requested" },
        [SERVICE_CACHE_WAITING] = { false, "WaitingForCache", "Waiting for the template cache" },
        [SERVICE_CACHE_WARMING] = { false, "CacheWarming", "Model sources are being cached" },
        [SERVICE_CACHE_WARM] = { true, "CacheWarm", "All model sources are cached" },
        [SERVICE_CACHE_FAILED] = { false, "CacheFailed", "Caching of model sources failed" },
    };
    enum aim_service_cache_state state = s->f->cache;
    set_condition(s, SERVICE_CACHE_READY, t[state].holds, str_c(t[state].reason),
        text_or(s->f->cache_message, str_c(t[state].message)));
}

static void set_route_condition(struct evaluation *s)
{
    static const struct {
        bool holds;
        const char *reason, *message;
        enum word word;
    } t[SERVICE_ROUTE_N] = {
        [SERVICE_ROUTE_OFF] = { true, "RouteReady", "Routing disabled", PENDING },
        [SERVICE_ROUTE_READY] = { true, "RouteReady", "HTTPRoute is ready", PENDING },
        [SERVICE_ROUTE_WAITING] = { false, "ConfiguringRoute",
                                    "Waiting for HTTPRoute to be created", PENDING },
        [SERVICE_ROUTE_REJECTED] = { false, "RouteFailed", "HTTPRoute not accepted by gateway",
                                     DEGRADED },
        [SERVICE_ROUTE_PATH_INVALID] = { false, "PathTemplateInvalid", "Path template is invalid",
                                         DEGRADED },
        [SERVICE_ROUTE_NO_GATEWAY] = { false, "RouteFailed",
                                       "routing.gatewayRef must be specified via AIMService or "
                                       "runtime config when routing is enabled",
                                       FAILED },
    };
    const struct aim_service_route_fact *r = &s->f->route;
    str reason = text_or(r->reason, str_c(t[r->state].reason));
    str message = text_or(r->message, str_c(t[r->state].message));
    set_condition(s, SERVICE_ROUTING_READY, t[r->state].holds, reason, message);
    s->word = t[r->state].word;
    if (r->state == SERVICE_ROUTE_REJECTED)
        set_condition(s, SERVICE_FAILURE, true, reason, message);
    if (r->state == SERVICE_ROUTE_NO_GATEWAY)
        set_condition(s, SERVICE_FAILURE, true, reason, S("Routing gateway reference is missing"));
}

static bool old_has_failure(const struct json *old)
{
    const struct json *list = json_get(old, "conditions");
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(json_item(list, i), "type")), "Failure"))
            return true;
    return false;
}

/* While a route is awaited nothing is said of failures, unless one was cache_condition of before. */
static void clear_failure(struct evaluation *s)
{
    bool settled =
        s->f->route.state == SERVICE_ROUTE_OFF || s->f->route.state == SERVICE_ROUTE_READY;
    if (settled || (s->f->route.state == SERVICE_ROUTE_WAITING && old_has_failure(s->f->old)))
        set_condition(s, SERVICE_FAILURE, false, S("Resolved"), S("No active failures"));
}

/* ---- stages */

/* A server that fails for a moment is no reason to call a running service failed. */
static void keep_status_word(struct evaluation *s)
{
    str before = json_text(json_get(s->f->old, "status"));
    s->word = PENDING;
    for (size_t i = 0; i < countof(words); i++)
        if (str_eqc(before, words[i]))
            s->word = (enum word)i;
    set_condition(s, SERVICE_READY, false, S("ServerUnavailable"), s->f->trouble.message);
    s->c[SERVICE_READY].truth = SERVICE_UNKNOWN;
}

static bool stage_trouble(struct evaluation *s)
{
    const struct aim_service_trouble *t = &s->f->trouble;
    if (!t->message.n)
        return false;
    if (t->lasting_s < SERVICE_GRACE_S) {
        keep_status_word(s);
        return true;
    }
    static const char *const what[] = { "Observation", "Planning", "Apply" };
    str message = arena_printf(s->a, "%s failed: " STR_FMT, what[t->phase], STR_ARG(t->message));
    return end_with(s, &(struct outcome){
                         .word = FAILED,
                         .reason = t->phase == SERVICE_APPLYING ? S("RuntimeFailed")
                                                                : S("ValidationFailed"),
                         .resolved = S("Template resolution pending due to reconciliation failure"),
                         .runtime = message,
                         .ready = message,
                         .failure = message,
                         .progressing = "Reconciliation halted due to failure" });
}

static bool stage_unresolved(struct evaluation *s)
{
    const struct aim_service_model_fact *m = &s->f->model;
    if (m->state == SERVICE_MODEL_MISSING)
        return end_with(s, &(struct outcome){ .word = DEGRADED,
                                        .reason = text_or(m->reason, S("ImageNotFound")),
                                        .resolved = m->message,
                                        .runtime = S("Cannot proceed without resolved model"),
                                        .ready = m->message,
                                        .failure = m->message,
                                        .progressing = "Model of the template is missing" });
    return m->state == SERVICE_MODEL_UNRESOLVED &&
           end_with(s, &(struct outcome){ .word = FAILED,
                                    .reason = text_or(m->reason, S("ModelResolutionFailed")),
                                    .resolved = S("Cannot resolve model for service"),
                                    .runtime = S("Cannot proceed without resolved model"),
                                    .ready = m->message,
                                    .failure = m->message,
                                    .progressing = "Model resolution failed" });
}

static bool stage_model(struct evaluation *s)
{
    const struct aim_service_model_fact *m = &s->f->model;
    str message = text_or(m->message, S("Image is not ready"));
    if (m->state == SERVICE_MODEL_WAITING)
        return end_with(s, &(struct outcome){ .word = PENDING,
                                        .reason = m->reason,
                                        .resolved = message,
                                        .runtime = S("Waiting for image readiness"),
                                        .ready = message,
                                        .progressing = "Awaiting image readiness",
                                        .is_progressing = true });
    bool failed = m->state == SERVICE_MODEL_FAILED;
    return (failed || m->state == SERVICE_MODEL_DEGRADED) &&
           end_with(s, &(struct outcome){ .word = failed ? FAILED : DEGRADED,
                                    .reason = m->reason,
                                    .resolved = message,
                                    .runtime = S("Waiting for image readiness"),
                                    .ready = message,
                                    .failure = message,
                                    .progressing = "Model cannot be used" });
}

static bool stage_selection(struct evaluation *s)
{
    const struct aim_service_template_fact *t = &s->f->template;
    str message = text_or(t->message, S("Template selection failed"));
    return t->state == SERVICE_TEMPLATE_REFUSED &&
           end_with(s, &(struct outcome){ .word = FAILED,
                                    .reason = t->reason,
                                    .resolved = message,
                                    .runtime = S("Cannot proceed without a unique template"),
                                    .ready = message,
                                    .failure = message,
                                    .progressing = "Template selection failed" });
}

static bool stage_awaited(struct evaluation *s)
{
    const struct aim_service_template_fact *t = &s->f->template;
    return t->state == SERVICE_TEMPLATE_AWAITED &&
           end_with(s, &(struct outcome){ .word = PENDING,
                                    .reason = text_or(t->reason, S("TemplateNotAvailable")),
                                    .resolved = t->message,
                                    .runtime = S("Waiting for a template to become available"),
                                    .ready = S("Template is not available yet"),
                                    .progressing = "Waiting for a template to become available",
                                    .is_progressing = true });
}

static bool stage_missing(struct evaluation *s)
{
    const struct aim_service_template_fact *t = &s->f->template;
    if (t->state != SERVICE_TEMPLATE_MISSING && t->state != SERVICE_TEMPLATE_UNNAMED)
        return false;
    str message =
        t->state == SERVICE_TEMPLATE_MISSING
            ? arena_printf(s->a,
                           "Template \"" STR_FMT
                           "\" not found. Create the template or verify the template name.",
                           STR_ARG(t->name))
            : S("No template reference specified and no templates are available for the selected "
                "image. Provide spec.templateRef or create templates for the image.");
    return end_with(s, &(struct outcome){ .word = DEGRADED,
                                    .reason = S("TemplateNotFound"),
                                    .resolved = message,
                                    .runtime = S("Referenced template does not exist"),
                                    .ready = S("Template missing"),
                                    .failure = message,
                                    .progressing = "Cannot proceed without template" });
}

/* From here on the template is known. */
static bool stage_resolved(struct evaluation *s)
{
    set_condition(s, SERVICE_RESOLVED, true, S("Resolved"),
        arena_printf(s->a, "Resolved template \"" STR_FMT "\"", STR_ARG(s->f->template.name)));
    return false;
}

static bool stage_config(struct evaluation *s)
{
    return s->f->config_missing &&
           end_with(s,
                  &(struct outcome){ .word = DEGRADED,
                                 .reason = S("RuntimeConfigMissing"),
                                 .runtime = S("Cannot configure runtime without AIMRuntimeConfig"),
                                 .ready = s->f->config_message,
                                 .failure = s->f->config_message,
                                 .progressing = "Runtime configuration is missing" });
}

static void set_runtime_condition(struct evaluation *s)
{
    const struct aim_service_runtime_fact *r = &s->f->runtime;
    if (r->failure.n && !r->ready)
        set_condition(s, SERVICE_RUNTIME_READY, false, S("RuntimeFailed"), r->failure);
    else if (r->ready)
        set_condition(s, SERVICE_RUNTIME_READY, true, S("RuntimeReady"), S("InferenceService is ready"));
    else
        set_condition(s, SERVICE_RUNTIME_READY, false, S("CreatingRuntime"),
            r->found ? S("Waiting for InferenceService to become ready")
                     : S("Waiting for InferenceService to be created"));
}

/* The InferenceService goes on as it is: only the route is in trouble. */
static bool stage_path(struct evaluation *s)
{
    if (s->f->route.state != SERVICE_ROUTE_PATH_INVALID)
        return false;
    set_runtime_condition(s);
    str message = s->c[SERVICE_ROUTING_READY].message;
    return end_with(s, &(struct outcome){ .word = DEGRADED,
                                    .reason = S("PathTemplateInvalid"),
                                    .ready = message,
                                    .failure = message,
                                    .progressing = "Path template is invalid" });
}

static bool stage_template(struct evaluation *s)
{
    const struct aim_service_template_fact *t = &s->f->template;
    bool failed = t->state == SERVICE_TEMPLATE_FAILED;
    if (failed || t->state == SERVICE_TEMPLATE_DEGRADED)
        return end_with(s, &(struct outcome){
                             .word = failed ? FAILED : DEGRADED,
                             .reason = text_or(t->reason, S("TemplateDegraded")),
                             .runtime = S("Cannot create InferenceService due to template issues"),
                             .ready = S("Service cannot be ready due to template issues"),
                             .failure = text_or(t->message, S("Template is not available")),
                             .progressing = "Service cannot proceed due to template issues" });
    str message = arena_printf(s->a, "Template \"" STR_FMT "\" is not ready yet", STR_ARG(t->name));
    if (t->state == SERVICE_TEMPLATE_PENDING)
        return end_with(s, &(struct outcome){ .word = PENDING,
                                        .reason = S("TemplateNotAvailable"),
                                        .runtime = message,
                                        .ready = message,
                                        .progressing = "Waiting for template discovery to complete",
                                        .is_progressing = true });
    message = arena_printf(s->a, "Template \"" STR_FMT "\" has no model sources", STR_ARG(t->name));
    return t->state == SERVICE_TEMPLATE_EMPTY &&
           end_with(s,
                  &(struct outcome){ .word = DEGRADED,
                                 .reason = S("NoModelSources"),
                                 .runtime = message,
                                 .ready = message,
                                 .failure = message,
                                 .progressing = "Service cannot proceed without model sources" });
}

static bool stage_pull(struct evaluation *s)
{
    const struct aim_service_runtime_fact *r = &s->f->runtime;
    return r->pull_reason.n &&
           end_with(s, &(struct outcome){
                         .word = DEGRADED,
                         .reason = r->pull_reason,
                         .runtime = S("InferenceService cannot run due to image pull failure"),
                         .ready = S("Service cannot be ready due to image pull failure"),
                         .failure = r->pull_message,
                         .progressing = "Service is degraded due to image pull failure" });
}

/* A cache that is asked for comes before the runtime that mounts it; one that runs already goes on. */
static bool stage_cache(struct evaluation *s)
{
    enum aim_service_cache_state cache = s->f->cache;
    const struct aim_service_condition *cache_condition = &s->c[SERVICE_CACHE_READY];
    if (cache == SERVICE_CACHE_OFF || cache == SERVICE_CACHE_WARM || s->f->runtime.found)
        return false;
    bool failed = cache == SERVICE_CACHE_FAILED;
    struct outcome e = { .word = failed ? DEGRADED : STARTING,
                     .reason = cache_condition->reason,
                     .runtime = cache_condition->message,
                     .ready = cache_condition->message,
                     .progressing = failed ? "Caching of model sources failed"
                                           : "Waiting for model sources to be cached",
                     .is_progressing = !failed };
    if (failed)
        e.failure = cache_condition->message;
    return end_with(s, &e);
}

/* The missing gateway has one reason, wherever it is cache_condition. */
static bool stage_gateway(struct evaluation *s)
{
    str message = s->c[SERVICE_ROUTING_READY].message;
    return s->f->route.state == SERVICE_ROUTE_NO_GATEWAY &&
           end_with(s, &(struct outcome){ .word = FAILED,
                                    .reason = s->c[SERVICE_ROUTING_READY].reason,
                                    .runtime = message,
                                    .ready = message,
                                    .progressing = "Routing gateway reference is missing" });
}

static bool stage_running(struct evaluation *s)
{
    const struct aim_service_runtime_fact *r = &s->f->runtime;
    bool routed = s->c[SERVICE_ROUTING_READY].truth == SERVICE_TRUE;
    set_runtime_condition(s);
    if (r->found && r->ready && routed) {
        s->word = RUNNING;
        set_condition(s, SERVICE_READY, true, S("RuntimeReady"), S("AIMService is ready to serve traffic"));
        set_condition(s, SERVICE_PROGRESSING, false, S("RuntimeReady"), S("Service is running"));
        return true;
    }
    struct outcome e = { .word = STARTING,
                     .reason = S("CreatingRuntime"),
                     .ready = s->c[SERVICE_RUNTIME_READY].message,
                     .progressing = "InferenceService reconciliation in progress",
                     .is_progressing = true };
    if (r->found && r->failure.n && !r->ready) {
        e.word = DEGRADED;
        e.reason = S("RuntimeFailed");
        e.failure = r->failure;
    } else if (r->found && !routed) {
        e.reason = S("ConfiguringRoute");
        e.ready = e.runtime = S("Waiting for HTTPRoute to become ready");
    }
    return end_with(s, &e);
}

struct aim_service_answer aim_service_status(struct arena *a, const struct aim_service_facts *facts)
{
    static bool (*const stages[])(struct evaluation *) = {
        stage_trouble, stage_unresolved, stage_model,  stage_selection, stage_awaited,
        stage_missing, stage_resolved,   stage_config, stage_path,      stage_template,
        stage_pull,    stage_gateway,    stage_cache,  stage_running,
    };
    struct aim_service_answer answer = { 0 };
    struct evaluation s = { a, facts, PENDING, answer.conditions };
    set_cache_condition(&s);
    set_route_condition(&s);
    if (facts->config_missing) /* whatever else is wrong */
        s.word = MAX(s.word, DEGRADED);
    clear_failure(&s);
    for (size_t i = 0; i < countof(stages) && !stages[i](&s); i++)
        ;
    answer.status = words[s.word];
    return answer;
}

/* ---- facts about pods */

enum aim_service_pull_kind aim_service_pull_kind(str word)
{
    return str_eqc(word, "auth")                                     ? SERVICE_PULL_AUTH
           : str_eqc(word, "not-found") || str_eqc(word, "notfound") ? SERVICE_PULL_MISSING
                                                                     : SERVICE_PULL_OTHER;
}

static bool has_any(str text, const char *const *needles)
{
    for (; *needles; needles++)
        for (size_t i = 0, n = strlen(*needles); i + n <= text.n; i++)
            if (str_eq_nocase((str){ text.p + i, n }, str_c(*needles)))
                return true;
    return false;
}

enum aim_service_pull_kind aim_service_pull_cause(str message)
{
    static const char *const auth[] = { "unauthorized", "authentication required",   "forbidden",
                                        "denied",       "no basic auth credentials", NULL };
    static const char *const missing[] = { "not found", "manifest unknown", "name unknown", NULL };
    return has_any(message, auth)      ? SERVICE_PULL_AUTH
           : has_any(message, missing) ? SERVICE_PULL_MISSING
                                       : SERVICE_PULL_OTHER;
}

void aim_service_set_pull_error(struct arena *a, struct aim_service_runtime_fact *r,
                                const struct aim_service_pull_error *error)
{
    r->pull_reason = error->kind == SERVICE_PULL_AUTH      ? S("ImagePullAuthFailure")
                     : error->kind == SERVICE_PULL_MISSING ? S("ImageNotFound")
                                                           : S("ImagePullBackOff");
    r->pull_message =
        arena_printf(a, "InferenceService pod %s \"" STR_FMT "\" is stuck in " STR_FMT ": " STR_FMT,
                     error->init ? "Init container" : "Container", STR_ARG(error->container),
                     STR_ARG(error->reason), STR_ARG(error->message));
}

struct json *aim_service_resolved_template(struct arena *a,
                                           const struct aim_service_template_fact *t)
{
    if (!t->name.n)
        return NULL;
    struct json *ref = json_new_obj(a);
    bool cluster = t->found && !t->ns.n;
    json_set_str(a, ref, "name", t->name);
    if (t->found && t->ns.n)
        json_set_str(a, ref, "namespace", t->ns);
    json_set_str(a, ref, "scope",
                 !t->found ? S("Unknown")
                 : cluster ? S("Cluster")
                           : S("Namespace"));
    json_set_str(a, ref, "kind",
                 cluster ? S("AIMClusterServiceTemplate") : S("AIMServiceTemplate"));
    if (t->uid.n)
        json_set_str(a, ref, "uid", t->uid);
    return ref;
}
