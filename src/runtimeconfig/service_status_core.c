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
 *               stage_unresolved   no model, or more than one
 *               stage_model        the model is not ready
 *               stage_selection    no single best template
 *               stage_awaited      the template is being created
 *               stage_missing      the named template does not exist
 *               stage_resolved     never ends: sets Resolved, everything below has a template
 *               stage_config       the runtime configuration does not exist
 *               stage_path         the path template is invalid; the runtime continues
 *               stage_template     the template is not usable
 *               stage_pull         a pod cannot pull its image
 *               stage_gateway      routing without a gatewayRef
 *               stage_cache        the requested cache is not warm
 *               stage_running      starting, or running
 *           --> answer: word and conditions
 *
 * A stage returns true if it ended the evaluation. Most of them describe their result as a struct outcome, which
 * end_with() turns into conditions, so that each stage sets the same four or five conditions and none is forgotten.
 *
 * The order is the specification: what comes first is what the user must fix first. The word is the maximum of what
 * route and stage require (`enum word` is ordered by severity), because a failing route stays failing whatever else
 * is pending.
 *
 * Why not update the conditions in place, as the original does: an old failure then stays after its cause is gone, and
 * the status depends on its own history (test/golden/golden_aim.c lists the vectors in which this differs).
 *
 * Texts are literals, borrowed from the facts, or in the arena. */
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
    s->word = MAX(s->word, e->word); /* a failing route stays failing */
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

/* A cache that was not requested counts as warm, as in the original. */
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

/* RoutingReady, the lowest word that the route requires, and Failure if it causes one. */
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

/* Clears Failure if the route is settled. While it is pending, Failure is set only if the old status had it. */
static void clear_failure(struct evaluation *s)
{
    bool settled =
        s->f->route.state == SERVICE_ROUTE_OFF || s->f->route.state == SERVICE_ROUTE_READY;
    if (settled || (s->f->route.state == SERVICE_ROUTE_WAITING && old_has_failure(s->f->old)))
        set_condition(s, SERVICE_FAILURE, false, S("Resolved"), S("No active failures"));
}

/* ---- stages */

/* The API server fails, but not long enough to report it: the word stays, and Ready is Unknown. */
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

/* Failed once a write has failed for SERVICE_GRACE_S. */
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

/* Without a single model nothing can be selected; a missing model of the template is only Degraded, because it may
 * be created. */
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
    const struct aim_service_template_fact *t = &s->f->template;
    return t->state == SERVICE_TEMPLATE_AWAITED &&
           end_with(s,
                    &(struct outcome){ .word = PENDING,
                                       .reason = text_or(t->reason, S("TemplateNotAvailable")),
                                       .resolved = t->message,
                                       .runtime = S("Waiting for a template to become available"),
                                       .ready = S("Template is not available yet"),
                                       .progressing = "Waiting for a template to become available",
                                       .is_progressing = true });
}

/* A named template that does not exist, or no template at all. Both texts are quoted from the original. */
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

/* Never ends the evaluation: the stages after it have a template. */
static bool stage_resolved(struct evaluation *s)
{
    set_condition(s, SERVICE_RESOLVED, true, S("Resolved"),
                  arena_printf(s->a, "Resolved template \"" STR_FMT "\"",
                               STR_ARG(s->f->template.name)));
    return false;
}

/* Existing children keep running; only new ones cannot be configured. */
static bool stage_config(struct evaluation *s)
{
    return s->f->config_missing &&
           end_with(s, &(struct outcome){
                           .word = DEGRADED,
                           .reason = S("RuntimeConfigMissing"),
                           .runtime = S("Cannot configure runtime without AIMRuntimeConfig"),
                           .ready = s->f->config_message,
                           .failure = s->f->config_message,
                           .progressing = "Runtime configuration is missing" });
}

/* A failure that KServe still reports is ignored once the InferenceService is ready. */
static void set_runtime_condition(struct evaluation *s)
{
    const struct aim_service_runtime_fact *r = &s->f->runtime;
    if (r->failure.n && !r->ready)
        set_condition(s, SERVICE_RUNTIME_READY, false, S("RuntimeFailed"), r->failure);
    else if (r->ready)
        set_condition(s, SERVICE_RUNTIME_READY, true, S("RuntimeReady"),
                      S("InferenceService is ready"));
    else
        set_condition(s, SERVICE_RUNTIME_READY, false, S("CreatingRuntime"),
                      r->found ? S("Waiting for InferenceService to become ready")
                               : S("Waiting for InferenceService to be created"));
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
    str message = arena_printf(s->a, "Template \"" STR_FMT "\" is not ready yet", STR_ARG(t->name));
    if (t->state == SERVICE_TEMPLATE_PENDING)
        return end_with(s, &(struct outcome){ .word = PENDING,
                                              .reason = S("TemplateNotAvailable"),
                                              .runtime = message,
                                              .ready = message,
                                              .progressing =
                                                  "Waiting for template discovery to complete",
                                              .is_progressing = true });
    message = arena_printf(s->a, "Template \"" STR_FMT "\" has no model sources", STR_ARG(t->name));
    return t->state == SERVICE_TEMPLATE_EMPTY &&
           end_with(s, &(struct outcome){ .word = DEGRADED,
                                          .reason = S("NoModelSources"),
                                          .runtime = message,
                                          .ready = message,
                                          .failure = message,
                                          .progressing =
                                              "Service cannot proceed without model sources" });
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

/* The InferenceService waits for a requested cache, unless it already runs. */
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

/* A missing gatewayRef has the same reason in all conditions. */
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

/* The last stage: Running if the InferenceService and the route are ready, otherwise Starting or Degraded. */
static bool stage_running(struct evaluation *s)
{
    const struct aim_service_runtime_fact *r = &s->f->runtime;
    bool routed = s->c[SERVICE_ROUTING_READY].truth == SERVICE_TRUE;
    set_runtime_condition(s);
    if (r->found && r->ready && routed) {
        s->word = RUNNING;
        set_condition(s, SERVICE_READY, true, S("RuntimeReady"),
                      S("AIMService is ready to serve traffic"));
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

/* Runs the stages; see the head of this file. */
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
    if (facts->config_missing) /* in addition to any other cause */
        s.word = MAX(s.word, DEGRADED);
    clear_failure(&s);
    for (size_t i = 0; i < countof(stages) && !stages[i](&s); i++)
        ;
    answer.status = words[s.word];
    return answer;
}

/* ---- image pull errors */

enum aim_service_pull_kind aim_service_pull_kind(str word)
{
    return str_eqc(word, "auth")                                     ? SERVICE_PULL_AUTH
           : str_eqc(word, "not-found") || str_eqc(word, "notfound") ? SERVICE_PULL_MISSING
                                                                     : SERVICE_PULL_OTHER;
}

/* Does the text contain one of these phrases, in any case? */
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

/* The scope is Unknown while the named template does not exist, as in the original. */
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
