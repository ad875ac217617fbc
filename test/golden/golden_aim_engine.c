/* Families aim-engine and aim-service: the status engine of the newer generation of AIM, its reading of children, and the
 * components of a service.
 *
 * Why as_original: these cases were recorded by running the original's code, and unlike those of aim-status they have no member
 * `target` with the answer that we give instead. The cores have both answers; the runner asks for the recorded one. Without
 * as_original they differ in exactly two rules, both marked as corrections in the specification:
 *
 *   aim-engine   a component that is no longer reported loses its condition (the original keeps it, and it goes on counting)
 *   aim-service  Warning events of an InferenceService count only while it is not Ready
 *
 * Everything else that the cases pin is the same code in both modes. */
#include "golden.h"

#include "golden_aim_engine.h"
#include "runtimeconfig/derive_core.h"
#include "runtimeconfig/engine_children_core.h"
#include "runtimeconfig/engine_service_core.h"

enum { NOW = 1000000 };

static str text_of(const struct json *object, const char *key)
{
    return json_text(json_get(object, key));
}

/* ---- input */

static bool has(str kind, const char *part)
{
    return str_find(kind, str_c(part)) != SIZE_MAX;
}

static bool typed_error(str kind, enum aim_engine_class *ret)
{
    static const struct {
        const char *kind;
        enum aim_engine_class class;
    } t[] = { { "auth", ENGINE_AUTH },
              { "invalid", ENGINE_INVALID },
              { "exhaustion", ENGINE_EXHAUSTED },
              { "infrastructure", ENGINE_INFRASTRUCTURE },
              { "missing-upstream", ENGINE_MISSING_UPSTREAM },
              { "missing-downstream", ENGINE_MISSING_DOWNSTREAM } };
    for (size_t i = 0; i < countof(t); i++)
        if (str_eqc(kind, t[i].kind)) {
            *ret = t[i].class;
            return true;
        }
    return false;
}

struct aim_engine_error golden_engine_error(struct golden *g, const struct json *given)
{
    str kind = text_of(given, "kind"), message = text_of(given, "message");
    enum aim_engine_class class;
    int64_t status = 0;
    if (!json_is(given, JSON_OBJ))
        return (struct aim_engine_error){ 0 };
    if (typed_error(kind, &class))
        return (struct aim_engine_error){ class, text_of(given, "reason"), message };
    if (str_starts(kind, S("http-")) && str_to_i64(str_upto(str_from(kind, 5), 3), &status) == 0)
        return aim_engine_http_error((int)status, has(kind, "exist") ? S("AlreadyExists") : S(""));
    if (has(kind, "exist"))
        return aim_engine_http_error(409, S("AlreadyExists"));
    if (has(kind, "refused"))
        return aim_engine_network_error(g->arena, NETWORK_REFUSED, message);
    if (has(kind, "reset"))
        return aim_engine_network_error(g->arena, NETWORK_RESET, message);
    if (has(kind, "timedout") || has(kind, "timeout"))
        return aim_engine_network_error(g->arena, NETWORK_TIMEOUT, message);
    if (str_starts(kind, S("dns")))
        return aim_engine_network_error(g->arena, NETWORK_DNS, message);
    if (str_starts(kind, S("net")) || str_starts(kind, S("op")))
        return aim_engine_network_error(g->arena, NETWORK_OTHER, message);
    return (struct aim_engine_error){ ENGINE_UNKNOWN_ERROR, S("UnknownError"), message };
}

static struct aim_engine_component component_of(struct golden *g, const struct json *given)
{
    const struct json *errors = json_get(given, "errors");
    struct aim_engine_component c = {
        .name = text_of(given, "component").p,
        .state = aim_engine_state_of(text_of(given, "state")),
        .reason = text_of(given, "reason"),
        .message = text_of(given, "message"),
        .has_reason = json_get(given, "reason") != NULL,
        .upstream = str_eqc(text_of(given, "dependency"), "Upstream"),
    };
    if (text_of(given, "state").n && !c.state)
        c.state = ENGINE_PROGRESSING; /* a word of another kind, such as Running: not ready */
    for (size_t i = 0; i < MIN(json_len(errors), countof(c.errors)); i++)
        c.errors[i] = golden_engine_error(g, json_item(errors, i));
    return c;
}

static struct aim_engine_condition *old_of(struct golden *g, const struct json *old)
{
    struct aim_engine_condition *at = arena_array(g->arena, json_len(old) + 1, sizeof(*at));
    for (size_t i = 0; i < json_len(old); i++) {
        const struct json *c = json_item(old, i);
        str status = text_of(c, "Status");
        at[i] = (struct aim_engine_condition){ text_of(c, "Type"),
                                               str_eqc(status, "True")    ? ENGINE_TRUE
                                               : str_eqc(status, "False") ? ENGINE_FALSE
                                                                          : ENGINE_UNKNOWN,
                                               text_of(c, "Reason"), text_of(c, "Message"),
                                               NOW - json_int(json_get(c, "AgeSeconds"), 0) };
    }
    return at;
}

/* ---- answers */

static const struct json *find_condition(const struct json *list, str type)
{
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eq(text_of(json_item(list, i), "type"), type))
            return json_item(list, i);
    return NULL;
}

static void check_condition(struct golden *g, const struct aim_engine_condition *got,
                            const struct json *want)
{
    const char *type = got->type.p;
    if (!golden_ok(g, want != NULL, "%s: unwanted, \"" STR_FMT "\"", type, STR_ARG(got->message)))
        return;
    golden_eq_str(g, type, got->truth == ENGINE_TRUE ? S("True") : S("False"),
                  json_get(want, "status"));
    golden_eq_str(g, type, got->reason, json_get(want, "reason"));
    golden_eq_str(g, type, got->message, json_get(want, "message"));
    if (json_get(want, "ageSeconds"))
        golden_eq_int(g, type, NOW - got->since_s, json_get(want, "ageSeconds"));
}

struct aim_engine_answer golden_engine_check(struct golden *g,
                                             const struct aim_engine_component *components,
                                             size_t n, const struct aim_engine_condition *extra,
                                             size_t extra_n, const struct json *old,
                                             const struct json *want)
{
    struct aim_engine_question q = { .components = components,
                                     .n = n,
                                     .old = old_of(g, old),
                                     .old_n = json_len(old),
                                     .extra = extra,
                                     .extra_n = extra_n,
                                     .now_s = NOW,
                                     .as_original = true };
    struct aim_engine_answer answer = aim_engine_evaluate(g->arena, &q);
    const struct json *list = json_get(want, "conditions");
    for (size_t i = 0; i < answer.n; i++)
        check_condition(g, &answer.conditions[i], find_condition(list, answer.conditions[i].type));
    golden_ok(g, answer.n == json_len(list), "%zu conditions instead of %zu", answer.n,
              json_len(list));
    golden_eq_bool(g, "apply", answer.apply, json_get(want, "apply"));
    golden_eq_bool(g, "retryWithBackoff", answer.retry_with_backoff,
                   json_get(want, "retryWithBackoff"));
    return answer;
}

static void run_engine(struct golden *g, const struct json *c)
{
    const struct json *given = json_get(c, "components"), *want = json_get(c, "expect");
    struct aim_engine_component *at = arena_array(g->arena, json_len(given) + 1, sizeof(*at));
    for (size_t i = 0; i < json_len(given); i++)
        at[i] = component_of(g, json_item(given, i));
    struct aim_engine_answer answer =
        golden_engine_check(g, at, json_len(given), NULL, 0, json_get(c, "old"), want);
    golden_eq_str(g, "status", str_c(aim_engine_state_name(answer.status)),
                  json_get(want, "status"));
}

static void check_child(struct golden *g, const struct aim_engine_component *got,
                        const struct json *want)
{
    bool given = got->has_reason || got->reason.n;
    const struct aim_engine_error *error = &got->errors[0];
    golden_eq_str(g, "state", str_c(aim_engine_state_name(aim_engine_component_state(got))),
                  json_get(want, "state"));
    golden_eq_str(g, "reason", given ? got->reason : error->reason, json_get(want, "reason"));
    golden_eq_str(g, "message", given ? got->message : error->message, json_get(want, "message"));
    if (json_get(want, "errorClass") || error->class)
        golden_eq_str(g, "errorClass", str_c(aim_engine_class_name(error->class)),
                      json_get(want, "errorClass"));
}

static void run_log(struct golden *g, const struct json *c)
{
    str line;
    enum aim_engine_log_class class = aim_engine_classify_log(text_of(c, "log"), &line);
    golden_eq_str(g, "class", str_c(aim_engine_log_class_name(class)),
                  json_at(c, "expect", "class", NULL));
    golden_eq_str(g, "line", line, json_at(c, "expect", "line", NULL));
}

static void run_any(struct golden *g, const struct json *c)
{
    str fn = text_of(c, "fn");
    const struct json *object = json_get(c, "object"), *want = json_get(c, "expect");
    struct aim_engine_component got;
    if (str_eqc(fn, "engine")) {
        run_engine(g, c);
        return;
    }
    if (str_eqc(fn, "log")) {
        run_log(g, c);
        return;
    }
    if (str_eqc(fn, "pods"))
        got = aim_engine_pods(g->arena, object, json_get(c, "events"), text_of(c, "log"));
    else if (str_eqc(fn, "job"))
        got = aim_engine_job(object);
    else if (str_eqc(fn, "pvc"))
        got = aim_engine_claim(g->arena, object);
    else if (golden_ok(g, str_eqc(fn, "route"), "unknown function " STR_FMT, STR_ARG(fn)))
        got = aim_engine_route(g->arena, object);
    else
        return;
    check_child(g, &got, want);
}

/* ---- aim-service */

static struct aim_engine_ref ref_of(const struct json *given)
{
    return (struct aim_engine_ref){ str_eqc(text_of(given, "scope"), "Cluster"),
                                    text_of(given, "name"), text_of(given, "status") };
}

static const struct json *object_of(const struct json *c, const char *key)
{
    const struct json *object = json_get(c, key);
    return json_is(object, JSON_OBJ) ? object : NULL;
}

static struct aim_engine_service_facts service_facts(struct golden *g, const struct json *c)
{
    struct aim_engine_service_facts f = {
        .service = json_get(c, "service"),
        .model = ref_of(json_get(c, "model")),
        .template = ref_of(json_get(c, "template")),
        .cache = ref_of(json_get(c, "cache")),
        .model_error = golden_engine_error(g, json_get(c, "modelError")),
        .template_error = golden_engine_error(g, json_get(c, "templateError")),
        .selection_error = golden_engine_error(g, json_at(c, "selection", "error", NULL)),
        .selection_not_ready = json_bool(json_at(c, "selection", "notReady", NULL), false),
        .config = object_of(c, "runtimeConfig"),
        .config_missing = text_of(c, "runtimeConfigErr"),
        .inference_service = object_of(c, "inferenceService"),
        .pods = object_of(c, "pods"),
        .route = object_of(c, "httpRoute"),
        .hpa = object_of(c, "hpa"),
        .inference_service_error = golden_engine_error(g, json_get(c, "isvcError")),
        .route_error = golden_engine_error(g, json_get(c, "routeError")),
        .events = json_get(c, "events"),
        .as_original = true,
    };
    f.inference_service_failure = text_of(json_get(c, "isvcError"), "message");
    if (str_eqc(text_of(json_get(c, "isvcError"), "kind"), "http-503"))
        f.inference_service_failure = S("down"); /* the text of the server in the recording */
    return f;
}

/* Written from a ready object, else what the status had. */
static void check_resolved(struct golden *g, const struct json *c, const char *key,
                           const struct aim_engine_ref *ref, bool with_namespace)
{
    const struct json *want = json_at(c, "expect", key, NULL);
    const struct json *old = json_at(c, "service", "status", key, NULL);
    struct json *now = json_new_obj(g->arena);
    bool ready = ref->name.n && str_eqc(ref->status, "Ready");
    if (!ready) {
        golden_ok(g, json_eq(old, want), "%s differs from what it was", key);
        return;
    }
    json_set_str(g->arena, now, "name", ref->name);
    json_set_str(g->arena, now, "scope", ref->cluster ? S("Cluster") : S("Namespace"));
    if (with_namespace && !ref->cluster)
        json_set_str(g->arena, now, "namespace",
                     json_text(json_at(c, "service", "metadata", "namespace", NULL)));
    golden_eq_json(g, key, now, want);
}

static void check_replicas(struct golden *g, const struct aim_engine_service_facts *f,
                           const struct json *want)
{
    struct aim_engine_replicas r = aim_engine_service_replicas(f->service, f->hpa);
    golden_eq_int(g, "minReplicas", r.min, json_get(want, "minReplicas"));
    golden_eq_int(g, "maxReplicas", r.max, json_get(want, "maxReplicas"));
    golden_eq_int(g, "currentReplicas", r.current, json_get(want, "currentReplicas"));
    golden_eq_int(g, "desiredReplicas", r.desired, json_get(want, "desiredReplicas"));
    golden_eq_str(g, "replicas", aim_engine_replicas_text(g->arena, &r),
                  json_get(want, "replicas"));
}

static void run_service(struct golden *g, const struct json *c)
{
    const struct json *want = json_get(c, "expect"), *creates = json_get(want, "createsModel");
    struct aim_engine_service_facts f = service_facts(g, c);
    struct aim_engine_component at[ENGINE_SERVICE_COMPONENTS];
    size_t n = aim_engine_service_components(g->arena, &f, at);
    struct aim_engine_answer answer =
        golden_engine_check(g, at, n, NULL, 0, json_get(c, "old"), want);
    golden_eq_str(g, "status", str_c(aim_engine_service_word(answer.status)),
                  json_get(want, "status"));
    check_replicas(g, &f, json_get(want, "runtime"));
    check_resolved(g, c, "resolvedModel", &f.model, false);
    check_resolved(g, c, "resolvedTemplate", &f.template, true);
    str image = json_text(json_at(f.service, "spec", "model", "image", NULL));
    if (creates)
        golden_ok(g, aim_engine_service_creates_model(&f), "no model is created");
    if (creates && image.n)
        golden_eq_str(g, "createsModel", aim_derive_model(g->arena, image), creates);
}

const struct golden_family golden_aim_engine[] = {
    { "aim-engine", run_any },
    { "aim-service", run_service },
    { 0 },
};
