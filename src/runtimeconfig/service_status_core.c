/* Status of a service: see service_status_core.h.
 *
 * The problem. An AIMService depends on a model, a template, a cache, a configuration, an InferenceService, its pods and
 * a route. Each of them can be missing, pending, degraded or failed, and several can be at once. From that the status
 * must give one word (Pending, Starting, Running, Degraded, Failed) and seven conditions, and it must name the cause
 * that a user can act on, not one of its effects: "template not found" rather than "InferenceService missing".
 * Dashboards and scripts compare reasons and messages with those of the original operator, so most texts here are
 * quotations, pinned by the golden vectors aim-status.
 *
 * The invariant. The status is a function of the facts. It is computed from scratch on every pass; a cause that is
 * gone leaves no trace. The previous status is read in two cases only: while the API server fails (a service that
 * runs is not called failed for SERVICE_GRACE_S), and for a Failure condition that must be cleared.
 *
 * How data moves. Cache and route have their own conditions and are evaluated first. Then the stages run in the order
 * of precedence; the first one that applies ends the evaluation:
 *
 *     facts --> set_cache_condition, set_route_condition, clear_failure
 *           --> stage_trouble      the API server refuses or does not answer
 *               stage_unknown      something was not read: nothing is concluded from it
 *               stage_unresolved   no model, or more than one
 *               stage_model        the model is not ready
 *               stage_selection    no single best template
 *               stage_awaited      templates exist, none is ready
 *               stage_deriving     the template with the overrides is being created
 *               stage_missing      the named template does not exist
 *               stage_unread       model or template were not read
 *               stage_resolved     never ends: sets Resolved, everything below has a template
 *               stage_config       the runtime configuration does not exist
 *               stage_blocked      the name of the InferenceService is taken
 *               stage_path         the path template is invalid; the runtime continues
 *               stage_template     the template is not usable
 *               stage_pull         a pod cannot pull its image
 *               stage_warm         never ends: a requested cache that is warm counts from here on
 *               stage_route        the route was rejected, or has no gateway; the runtime continues
 *               stage_cache        the requested cache is not warm
 *               stage_volume       a volume was lost
 *               stage_running      starting, or running
 *           --> answer: word and conditions
 *
 * A stage returns true if it ended the evaluation. Most of them describe their result as a struct outcome, which
 * end_with() turns into conditions, so that each stage sets the same four or five conditions and none is forgotten.
 *
 * The order is the specification: what comes first is what the user must fix first. A stage sets the word; only Failed of
 * a route without a gateway outlives it, because nothing else can repair that.
 *
 * Why not update the conditions in place, as the original does: an old failure then stays after its cause is gone, and
 * the status depends on its own history (test/golden/golden_aim.c lists the vectors in which this differs).
 * Texts are literals, borrowed from the facts, or in the arena. */
#include "service_status_core.h"

#include "names_core.h"
#include "status_core.h"

enum word { PENDING, STARTING, RUNNING, DEGRADED, FAILED };

struct evaluation {
    struct arena *a;
    const struct aim_service_facts *f;
    enum word word;
    struct aim_service_condition *c; /* SERVICE_CONDITION_N of them */
    bool no_gateway;                 /* Failed, whatever a stage finds */
    const char *nowhere;             /* what a route without a place lacks */
    bool config_missing;             /* Degraded at least */
};

static const char *const words[] = { "Pending", "Starting", "Running", "Degraded", "Failed" };

static void set_condition(struct evaluation *s, enum aim_service_condition_type type, bool holds,
                          str reason, str message)
{
    s->c[type] =
        (struct aim_service_condition){ holds ? SERVICE_TRUE : SERVICE_FALSE, reason, message };
}

/* The conditions that a stage sets when it ends the evaluation. A NULL text leaves its condition unchanged. */
struct outcome {
    enum word word;
    str reason;
    str resolved, runtime, ready, failure;
    const char *progressing;
    bool is_progressing; /* Progressing is True */
};

/* Sets the conditions of an outcome; always true, so that a stage can return it. */
static bool end_with(struct evaluation *s, const struct outcome *e)
{
    s->word = s->no_gateway ? FAILED : s->config_missing ? MAX(e->word, DEGRADED) : e->word;
    if (e->resolved.p)
        set_condition(s, SERVICE_RESOLVED, false, e->reason, e->resolved);
    if (e->runtime.p)
        set_condition(s, SERVICE_RUNTIME_READY, false, e->reason, e->runtime);
    if (e->failure.p)
        set_condition(s, SERVICE_FAILURE, true, e->reason, e->failure);
    set_condition(s, SERVICE_READY, false, e->reason, e->ready);
    set_condition(s, SERVICE_PROGRESSING, e->is_progressing && s->word != FAILED, e->reason,
                  str_c(e->progressing));
    return true;
}

static str text_or(str text, str otherwise)
{
    return text.n ? text : otherwise;
}

/* ---- cache and route, before the stages */

/* A cache that was not requested counts as warm, and a warm one only after the stages that come before it, both as in
 * the original. */
static void set_cache_condition(struct evaluation *s)
{
    static const struct {
        bool holds;
        const char *reason, *message;
    } t[SERVICE_CACHE_N] = {
        [SERVICE_CACHE_UNKNOWN] = { false, "WaitingForCache", "Waiting for cache warm-up" },
        [SERVICE_CACHE_OFF] = { true, "CacheWarm", "Caching not requested" },
        [SERVICE_CACHE_WAITING] = { false, "WaitingForCache", "Waiting for cache warm-up" },
        [SERVICE_CACHE_WARMING] = { false, "CacheWarming", "Model sources are being cached" },
        [SERVICE_CACHE_WARM] = { false, "WaitingForCache", "Waiting for cache warm-up" },
        [SERVICE_CACHE_FAILED] = { false, "CacheFailed", "Caching of model sources failed" },
    };
    enum aim_service_cache_state state = s->f->cache;
    set_condition(s, SERVICE_CACHE_READY, t[state].holds, str_c(t[state].reason),
                  text_or(s->f->cache_message, str_c(t[state].message)));
}

/* A missing backend is expected until the InferenceService is ready. */
static bool is_route_rejected(const struct evaluation *s)
{
    enum aim_service_route_state state = s->f->route.state;
    return state == SERVICE_ROUTE_REJECTED ||
           (state == SERVICE_ROUTE_NO_BACKEND && s->f->runtime.ready);
}

static bool is_route_pending(const struct evaluation *s)
{
    enum aim_service_route_state state = s->f->route.state;
    return state == SERVICE_ROUTE_WAITING ||
           (state == SERVICE_ROUTE_NO_BACKEND && !s->f->runtime.ready);
}

/* RoutingReady, and Failure if the route causes one. */
static void set_route_condition(struct evaluation *s)
{
    static const struct {
        bool holds;
        const char *reason, *message;
    } t[SERVICE_ROUTE_N] = {
        [SERVICE_ROUTE_UNKNOWN] = { false, "ConfiguringRoute", "The route has not been read yet" },
        [SERVICE_ROUTE_OFF] = { true, "RouteReady", "Routing disabled" },
        [SERVICE_ROUTE_READY] = { true, "RouteReady", "HTTPRoute is ready" },
        [SERVICE_ROUTE_WAITING] = { false, "ConfiguringRoute",
                                    "Waiting for HTTPRoute to be created" },
        [SERVICE_ROUTE_REJECTED] = { false, "RouteFailed", "HTTPRoute not accepted by gateway" },
        [SERVICE_ROUTE_PATH_INVALID] = { false, "PathTemplateInvalid", "Path template is invalid" },
        [SERVICE_ROUTE_NO_GATEWAY] = { false, "RouteFailed",
                                       "routing.gatewayRef must be specified via AIMService or "
                                       "runtime config when routing is enabled" },
        [SERVICE_ROUTE_NO_BACKEND] = { false, "BackendNotFound", "The backend does not exist yet" },
    };
    const struct aim_service_route_fact *r = &s->f->route;
    str reason = text_or(r->reason, str_c(t[r->state].reason));
    str message = text_or(r->message, str_c(t[r->state].message));
    set_condition(s, SERVICE_ROUTING_READY, t[r->state].holds, reason, message);
    s->no_gateway = r->state == SERVICE_ROUTE_NO_GATEWAY || r->no_gateway;
    s->nowhere = str_eqc(reason, "RouteFailed") ? "Routing gateway reference is missing"
                                                : "Routing hostnames are missing";
    if (is_route_rejected(s))
        set_condition(s, SERVICE_FAILURE, true, reason, message);
    if (r->state == SERVICE_ROUTE_NO_GATEWAY)
        set_condition(s, SERVICE_FAILURE, true, reason, str_c(s->nowhere));
}

/* Clears Failure if the route is settled. While it is pending, Failure is set only if the old status had it. */
static void clear_failure(struct evaluation *s)
{
    bool settled =
        s->f->route.state == SERVICE_ROUTE_OFF || s->f->route.state == SERVICE_ROUTE_READY;
    if (settled || (is_route_pending(s) && aim_status_find(s->f->old, "Failure")))
        set_condition(s, SERVICE_FAILURE, false, S("Resolved"), S("No active failures"));
}

/* ---- stages */

/* The API server fails, but not long enough to report it: the word stays, and Ready is Unknown. */
static void keep_status_word(struct evaluation *s, str reason, str message)
{
    str before = json_text(json_get(s->f->old, "status"));
    s->word = PENDING;
    for (size_t i = 0; i < countof(words); i++)
        if (str_eqc(before, words[i]))
            s->word = (enum word)i;
    set_condition(s, SERVICE_READY, false, reason, message);
    s->c[SERVICE_READY].truth = SERVICE_UNKNOWN;
}

/* Failed once a write has failed for SERVICE_GRACE_S. */
static bool stage_trouble(struct evaluation *s)
{
    const struct aim_service_trouble *t = &s->f->trouble;
    if (!t->message.n)
        return false;
    if (t->lasting_s < SERVICE_GRACE_S) {
        keep_status_word(s, S("ServerUnavailable"), t->message);
        return true;
    }
    static const char *const what[] = { "Observation", "Planning", "Apply" };
    str message = arena_printf(s->a, "%s failed: " STR_FMT, what[t->phase], STR_ARG(t->message));
    return end_with(s,
                    &(struct outcome){
                        .word = FAILED,
                        .reason = t->phase == SERVICE_APPLYING ? S("RuntimeFailed")
                                                               : S("ValidationFailed"),
                        .resolved = S("Template resolution pending due to reconciliation failure"),
                        .runtime = message,
                        .ready = message,
                        .failure = message,
                        .progressing = "Reconciliation halted due to failure" });
}

static bool end_unread(struct evaluation *s, const char *what)
{
    keep_status_word(s, S("NotObserved"), arena_printf(s->a, "%s has not been read yet", what));
    return true;
}

/* Nothing is concluded from what was not read: the word stays and Ready is Unknown. */
static bool stage_unknown(struct evaluation *s)
{
    if (s->f->config == SERVICE_CONFIG_UNKNOWN)
        return end_unread(s, "The runtime configuration");
    return s->f->route.state == SERVICE_ROUTE_UNKNOWN && end_unread(s, "The route");
}

/* After the stages that need no model: a named template that is missing is known to be missing. */
static bool stage_unread(struct evaluation *s)
{
    if (s->f->model.state == SERVICE_MODEL_UNKNOWN)
        return end_unread(s, "The model");
    return s->f->template.state == SERVICE_TEMPLATE_UNKNOWN && end_unread(s, "The template");
}

/* Without a single model nothing can be selected; a missing model of the template is only Degraded, because it may
 * be created. */
static bool stage_unresolved(struct evaluation *s)
{
    const struct aim_service_model_fact *m = &s->f->model;
    if (m->state == SERVICE_MODEL_MISSING) /* Resolved stays as it was */
        return end_with(s, &(struct outcome){ .word = DEGRADED,
                                              .reason = text_or(m->reason, S("ImageNotFound")),
                                              .runtime =
                                                  S("Cannot create InferenceService without image"),
                                              .ready = m->message,
                                              .failure = m->message,
                                              .progressing = "Image is missing" });
    return m->state == SERVICE_MODEL_UNRESOLVED &&
           end_with(s, &(struct outcome){ .word = FAILED,
                                          .reason = text_or(m->reason, S("ModelResolutionFailed")),
                                          .resolved = S("Cannot resolve model for service"),
                                          .runtime = S("Cannot proceed without resolved model"),
                                          .ready = m->message,
                                          .failure = m->message,
                                          .progressing = "Model resolution failed" });
}

/* A model that is not ready: waiting is progress, anything else is not. */
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
    return s->f->template.state == SERVICE_TEMPLATE_AWAITED &&
           end_with(s,
                    &(struct outcome){ .word = PENDING,
                                       .reason = S("TemplateNotAvailable"),
                                       .resolved = S("Waiting for templates to become Available"),
                                       .runtime = S("Waiting for template discovery to complete"),
                                       .ready = S("Template missing"),
                                       .progressing = "Templates exist but are not yet Available",
                                       .is_progressing = true });
}

static bool stage_deriving(struct evaluation *s)
{
    if (s->f->template.state != SERVICE_TEMPLATE_DERIVING)
        return false;
    end_with(s, &(struct outcome){ .word = PENDING,
                                   .reason = S("TemplateNotFound"),
                                   .resolved = S("Template not found; creating derived template"),
                                   .ready = S("Template missing"),
                                   .progressing = "Waiting for template to be created",
                                   .is_progressing = true });
    set_condition(s, SERVICE_RUNTIME_READY, false, S("CreatingRuntime"),
                  S("Waiting for template creation"));
    return true;
}

/* A named template that does not exist, or no template at all. Both texts are quoted from the original. */
static bool stage_missing(struct evaluation *s)
{
    const struct aim_service_template_fact *t = &s->f->template;
    if (t->state != SERVICE_TEMPLATE_MISSING && t->state != SERVICE_TEMPLATE_UNNAMED)
        return false;
    str message =
        t->message.n ? t->message
        : t->state == SERVICE_TEMPLATE_MISSING
            ? arena_printf(s->a,
                           "Template " STR_FMT
                           " not found. Create the template or verify the template name.",
                           STR_ARG(aim_names_quote(s->a, t->name)))
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

/* Never ends the evaluation: the stages after it have a template. */
static bool stage_resolved(struct evaluation *s)
{
    set_condition(s, SERVICE_RESOLVED, true, S("Resolved"),
                  arena_printf(s->a, "Resolved template " STR_FMT,
                               STR_ARG(aim_names_quote(s->a, s->f->template.name))));
    return false;
}

/* Existing children keep running; only new ones cannot be configured. */
static bool stage_config(struct evaluation *s)
{
    return s->config_missing &&
           end_with(s, &(struct outcome){
                           .word = DEGRADED,
                           .reason = S("RuntimeConfigMissing"),
                           .runtime = S("Cannot configure runtime without AIMRuntimeConfig"),
                           .ready = s->f->config_message,
                           .failure = s->f->config_message,
                           .progressing = "Runtime configuration is missing" });
}

/* Only a user can decide which of the two is to have the name; the other InferenceService is kept. */
static bool stage_blocked(struct evaluation *s)
{
    str message = s->f->runtime.blocked;
    return message.n &&
           end_with(s, &(struct outcome){ .word = DEGRADED,
                                          .reason = S("InferenceServiceConflict"),
                                          .runtime = message,
                                          .ready = message,
                                          .failure = message,
                                          .progressing =
                                              "The name of the InferenceService is taken" });
}

/* A failure that KServe still reports is ignored once the InferenceService is ready. */
static void set_runtime_condition(struct evaluation *s)
{
    const struct aim_service_runtime_fact *r = &s->f->runtime;
    if (r->found && r->failed && !r->ready)
        set_condition(s, SERVICE_RUNTIME_READY, false, S("RuntimeFailed"), r->failure);
    else if (r->ready)
        set_condition(s, SERVICE_RUNTIME_READY, true, S("RuntimeReady"),
                      S("InferenceService is ready"));
    else
        set_condition(s, SERVICE_RUNTIME_READY, false, S("CreatingRuntime"),
                      r->found ? S("Waiting for InferenceService to become ready")
                               : S("Waiting for InferenceService creation"));
}

/* The InferenceService keeps running; only the route is affected. */
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

/* The template exists but cannot be used (yet). */
static bool stage_template(struct evaluation *s)
{
    const struct aim_service_template_fact *t = &s->f->template;
    bool failed = t->state == SERVICE_TEMPLATE_FAILED;
    if (failed || t->state == SERVICE_TEMPLATE_DEGRADED)
        return end_with(s,
                        &(struct outcome){
                            .word = failed ? FAILED : DEGRADED,
                            .reason = text_or(t->reason, S("TemplateDegraded")),
                            .runtime = S("Cannot create InferenceService due to template issues"),
                            .ready = S("Service cannot be ready due to template issues"),
                            .failure = text_or(t->message, S("Template is not available")),
                            .progressing = "Service cannot proceed due to template issues" });
    str name = aim_names_quote(s->a, t->name);
    if (t->state == SERVICE_TEMPLATE_PENDING)
        return end_with(s, &(struct outcome){
                               .word = PENDING,
                               .reason = S("TemplateNotAvailable"),
                               .runtime =
                                   arena_printf(s->a, "Template " STR_FMT " is not yet Available",
                                                STR_ARG(name)),
                               .ready = S("Template is not available"),
                               .progressing = "Waiting for template discovery to complete",
                               .is_progressing = true });
    str message = arena_printf(s->a,
                               "Template " STR_FMT " is Available but discovery produced no usable "
                               "model sources",
                               STR_ARG(name));
    return t->state == SERVICE_TEMPLATE_EMPTY &&
           end_with(s, &(struct outcome){
                           .word = DEGRADED,
                           .reason = S("NoModelSources"),
                           .runtime = S("Cannot create InferenceService without model sources"),
                           .ready = S("Service cannot be ready without model sources"),
                           .failure = message,
                           .progressing = "Service is degraded due to missing model sources" });
}

/* The reason distinguishes credentials, a missing image and anything else, because the remedies differ. */
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

/* The InferenceService waits for a requested cache. One that exists keeps its volumes and speaks for itself. */
static bool stage_cache(struct evaluation *s)
{
    enum aim_service_cache_state cache = s->f->cache;
    const struct aim_service_condition *cache_condition = &s->c[SERVICE_CACHE_READY];
    if (cache == SERVICE_CACHE_OFF || cache == SERVICE_CACHE_WARM)
        return false;
    bool failed = cache == SERVICE_CACHE_FAILED;
    struct outcome e = { .word = failed ? DEGRADED : STARTING,
                         .reason = cache_condition->reason,
                         .runtime = s->f->runtime.found ? (str){ 0 } : cache_condition->message,
                         .ready = cache_condition->message,
                         .failure = failed ? cache_condition->message : (str){ 0 },
                         .progressing = failed ? "Caching of model sources failed"
                                               : "Waiting for model sources to be cached",
                         .is_progressing = !failed };
    if (s->f->runtime.found)
        set_runtime_condition(s);
    return end_with(s, &e);
}

/* The files are gone, but pods that have mounted them may still answer: nothing is written until the volume is back. */
static bool stage_volume(struct evaluation *s)
{
    str message = s->f->volume_lost;
    if (message.n)
        set_runtime_condition(s);
    return message.n && end_with(s, &(struct outcome){ .word = DEGRADED,
                                                       .reason = S("PVCLost"),
                                                       .ready = message,
                                                       .failure = message,
                                                       .progressing = "A model volume was lost" });
}

/* A route that cannot work: one reason in all conditions, but the runtime speaks for itself. */
static bool stage_route(struct evaluation *s)
{
    bool nowhere = s->f->route.state == SERVICE_ROUTE_NO_GATEWAY;
    if (!nowhere && !is_route_rejected(s))
        return false;
    set_runtime_condition(s);
    return end_with(s, &(struct outcome){ .word = nowhere ? FAILED : DEGRADED,
                                          .reason = s->c[SERVICE_ROUTING_READY].reason,
                                          .ready = s->c[SERVICE_ROUTING_READY].message,
                                          .progressing =
                                              nowhere ? s->nowhere
                                                      : "HTTPRoute not accepted by gateway" });
}

static bool stage_warm(struct evaluation *s)
{
    if (s->f->cache == SERVICE_CACHE_WARM)
        set_condition(s, SERVICE_CACHE_READY, true, S("CacheWarm"), S("Template caching enabled"));
    return false;
}

/* The InferenceService does not exist, or is not ready, or waits for its route. */
static bool end_starting(struct evaluation *s, bool routed)
{
    const struct aim_service_runtime_fact *r = &s->f->runtime;
    struct outcome e = { .word = STARTING,
                         .reason = S("CreatingRuntime"),
                         .ready = s->c[SERVICE_RUNTIME_READY].message,
                         .progressing = "InferenceService reconciliation in progress",
                         .is_progressing = true };
    if (!r->found) {
        e.ready = S("InferenceService not yet created");
        e.progressing = "Reconciling InferenceService resources";
    } else if (r->failed && !r->ready) {
        e.word = DEGRADED;
        e.reason = S("RuntimeFailed");
        e.failure = r->failure;
    } else if (!routed) {
        e.reason = S("ConfiguringRoute");
        e.ready = e.runtime = S("Waiting for HTTPRoute to become ready");
    }
    return end_with(s, &e);
}

/* The last stage: Running if the InferenceService and the route are ready, otherwise Starting or Degraded. */
static bool stage_running(struct evaluation *s)
{
    const struct aim_service_runtime_fact *r = &s->f->runtime;
    bool routed = s->c[SERVICE_ROUTING_READY].truth == SERVICE_TRUE;
    set_runtime_condition(s);
    if (!r->found || !r->ready || !routed)
        return end_starting(s, routed);
    s->word = RUNNING;
    set_condition(s, SERVICE_READY, true, S("RuntimeReady"),
                  S("AIMService is ready to serve traffic"));
    set_condition(s, SERVICE_PROGRESSING, false, S("RuntimeReady"), S("Service is running"));
    return true;
}

/* Distinguishes "Degraded, but it answers" from "down". Left out before the first InferenceService. */
static void set_serving_condition(struct evaluation *s)
{
    const struct aim_service_runtime_fact *r = &s->f->runtime;
    if (r->found && r->ready)
        set_condition(s, SERVICE_SERVING, true, S("RuntimeServing"),
                      S("InferenceService is ready and serves requests"));
    else if (r->found)
        set_condition(s, SERVICE_SERVING, false, S("NotServing"),
                      S("InferenceService is not ready"));
}

/* Runs the stages; see the head of this file. */
struct aim_service_answer aim_service_status(struct arena *a, const struct aim_service_facts *facts)
{
    static bool (*const stages[])(struct evaluation *) = {
        stage_trouble, stage_unknown,  stage_unresolved, stage_model,    stage_selection,
        stage_awaited, stage_deriving, stage_missing,    stage_unread,   stage_resolved,
        stage_config,  stage_blocked,  stage_path,       stage_template, stage_pull,
        stage_warm,    stage_route,    stage_cache,      stage_volume,   stage_running,
    };
    struct aim_service_answer answer = { 0 };
    struct evaluation s = { .a = a, .f = facts, .c = answer.conditions };
    s.config_missing = facts->config == SERVICE_CONFIG_MISSING;
    set_cache_condition(&s);
    set_route_condition(&s);
    set_serving_condition(&s);
    clear_failure(&s);
    for (size_t i = 0; i < countof(stages) && !stages[i](&s); i++)
        ;
    answer.status = words[s.word];
    return answer;
}
