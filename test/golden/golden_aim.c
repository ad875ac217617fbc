/* Families of AIMService: aim-names, and aim-status, which pins the operator that we replace. Where its
 * answer was a fault, `ours` below says by id what we answer and why; everything else must be the same. */
#include "golden.h"

#include "runtimeconfig/names_core.h"
#include "runtimeconfig/service_route_core.h"
#include "runtimeconfig/service_status_core.h"

/* ---- aim-names */

static struct aim_names_deployment deployment_of(const struct json *in)
{
    const struct json *d = json_get(in, "deployment");
    return (struct aim_names_deployment){ json_text(json_get(d, "gpuModel")),
                                          json_text(json_get(d, "metric")),
                                          json_text(json_get(d, "precision")),
                                          json_int(json_get(d, "gpuCount"), 0) };
}

/* The name that a function of texts gives; false: it is none of them. */
static bool name_of(struct golden *g, str fn, const struct json *in, str *ret)
{
    struct arena *a = g->arena;
    if (str_eqc(fn, "inferenceServiceName"))
        *ret = aim_names_inference_service(a, json_text(json_get(in, "service")),
                                           json_text(json_get(in, "namespace")));
    else if (str_eqc(fn, "sanitizeLabelValue"))
        *ret = aim_names_label_value(a, json_text(in));
    else if (str_eqc(fn, "rfc1123_kaiwo"))
        *ret = aim_names_rfc1123(a, json_text(in));
    else if (str_eqc(fn, "rfc1123_engine"))
        *ret = aim_names_rfc1123_strict(a, json_text(in));
    else if (str_eqc(fn, "modelNameFromImage"))
        *ret = aim_names_model_of_image(a, json_text(in));
    else if (str_eqc(fn, "templateNameFromDeployment")) {
        struct aim_names_deployment d = deployment_of(in);
        *ret = aim_names_template_of_deployment(a, json_text(json_get(in, "image")), &d);
    } else
        return false;
    return true;
}

static void run_names(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "in"), *out = json_get(c, "out");
    str fn = json_text(json_get(c, "fn")), name;
    if (name_of(g, fn, in, &name)) {
        golden_eq_str(g, "name", name, out);
    } else if (str_eqc(fn, "derivedTemplateName")) {
        name = aim_names_derived_template(g->arena, json_text(json_get(in, "base")),
                                          json_text(json_get(in, "overridesJson")));
        golden_eq_str(g, "name", name, json_get(out, "name"));
    } else if (str_eqc(fn, "pvcSizeWithHeadroom")) {
        golden_eq_int(g, "bytes",
                      aim_names_volume_bytes(json_int(json_get(in, "bytes"), -1),
                                             json_int(json_get(in, "percent"), -1)),
                      out);
    } else if (str_eqc(fn, "labelKeyMatch")) {
        bool bad, match = aim_names_match_key(json_text(json_get(in, "pattern")),
                                              json_text(json_get(in, "key")), &bad);
        golden_eq_bool(g, "match", match, json_get(out, "match"));
        golden_eq_bool(g, "badPattern", bad, json_get(out, "badPattern"));
    } else {
        golden_ok(g, false, "unknown function " STR_FMT, STR_ARG(fn));
    }
}

/* ---- aim-status: facts */

static struct aim_service_route_fact route_of(struct golden *g, const struct json *c)
{
    const struct json *observation = json_get(c, "observation"), *given = json_get(c, "httpRoute");
    const struct json *routing = json_at(c, "service", "spec", "routing", NULL);
    str invalid = json_text(json_get(observation, "pathTemplateErr"));
    if (!json_bool(json_get(routing, "enabled"), false))
        return (struct aim_service_route_fact){ .state = SERVICE_ROUTE_OFF };
    if (invalid.n)
        return (struct aim_service_route_fact){ .state = SERVICE_ROUTE_PATH_INVALID,
                                                .message = invalid };
    if (!json_get(routing, "gatewayRef"))
        return (struct aim_service_route_fact){ .state = SERVICE_ROUTE_NO_GATEWAY };
    if (!json_is(given, JSON_OBJ))
        return aim_service_route_fact(NULL);
    struct json *route = json_new_obj(g->arena), *parents = json_new_arr(g->arena);
    const struct json *lists = json_get(given, "parents");
    for (size_t i = 0; i < json_len(lists); i++) {
        struct json *parent = json_new_obj(g->arena);
        json_set(g->arena, parent, S("conditions"), json_item(lists, i));
        json_push(g->arena, parents, parent);
    }
    json_set(g->arena, json_make(g->arena, route, "status", NULL), S("parents"), parents);
    return aim_service_route_fact(route);
}

static struct aim_service_model_fact model_of(const struct json *o)
{
    str error = json_text(json_get(o, "modelResolutionErr"));
    str reason = json_text(json_get(o, "imageReadyReason"));
    if (error.n)
        return (struct aim_service_model_fact){ .state = SERVICE_MODEL_UNRESOLVED,
                                                .message = error };
    if (json_bool(json_get(o, "imageReady"), true))
        return (struct aim_service_model_fact){ .state = SERVICE_MODEL_READY };
    return (struct aim_service_model_fact){
        str_eqc(reason, "ModelFailed")     ? SERVICE_MODEL_FAILED
        : str_eqc(reason, "ModelDegraded") ? SERVICE_MODEL_DEGRADED
                                           : SERVICE_MODEL_WAITING,
        reason,
        json_text(json_get(o, "imageReadyMessage")),
    };
}

static enum aim_service_template_state template_state_of(const struct json *o)
{
    str status = json_text(json_at(o, "templateStatus", "status", NULL));
    if (json_get(o, "templateSelectionReason"))
        return SERVICE_TEMPLATE_REFUSED;
    if (!status.n)
        return json_get(o, "templateName") ? SERVICE_TEMPLATE_MISSING : SERVICE_TEMPLATE_UNNAMED;
    if (str_eqc(status, "Failed"))
        return SERVICE_TEMPLATE_FAILED;
    if (str_eqc(status, "Degraded") || str_eqc(status, "NotAvailable"))
        return SERVICE_TEMPLATE_DEGRADED;
    if (!str_eqc(status, "Ready"))
        return SERVICE_TEMPLATE_PENDING;
    bool empty = json_int(json_at(o, "templateStatus", "modelSources", NULL), 0) == 0;
    return empty ? SERVICE_TEMPLATE_EMPTY : SERVICE_TEMPLATE_READY;
}

static struct aim_service_template_fact template_of(const struct json *o)
{
    const struct json *failure = json_item(json_at(o, "templateStatus", "conditions", NULL), 0);
    struct aim_service_template_fact t = {
        .state = template_state_of(o),
        .name = json_text(json_get(o, "templateName")),
        .found = json_get(o, "scope") != NULL,
        .reason = json_text(json_get(failure, "reason")),
        .message = json_text(json_get(failure, "message")),
    };
    if (t.state == SERVICE_TEMPLATE_REFUSED) {
        t.reason = json_text(json_get(o, "templateSelectionReason"));
        t.message = json_text(json_get(o, "templateSelectionMessage"));
    }
    return t;
}

static struct aim_service_runtime_fact runtime_of(struct golden *g, const struct json *c)
{
    const struct json *isvc = json_get(c, "inferenceService");
    const struct json *pull = json_at(c, "observation", "podImageError", NULL);
    struct aim_service_runtime_fact r = { .found = json_is(isvc, JSON_OBJ),
                                          .ready = json_bool(json_get(isvc, "ready"), false),
                                          .failure = json_text(json_get(isvc, "failure")) };
    if (pull)
        aim_service_set_pull_error(g->arena, &r,
                                   &(struct aim_service_pull_error){
                                       .container = json_text(json_get(pull, "container")),
                                       .init = json_bool(json_get(pull, "init"), false),
                                       .reason = json_text(json_get(pull, "reason")),
                                       .message = json_text(json_get(pull, "message")),
                                       .kind = aim_service_pull_kind(
                                           json_text(json_get(pull, "type"))) });
    return r;
}

static struct aim_service_facts facts_of(struct golden *g, const struct json *c)
{
    const struct json *o = json_get(c, "observation"), *errors = json_get(c, "errors");
    static const char *const phases[] = { "observe", "plan", "apply" };
    struct aim_service_facts f = {
        .old = json_at(c, "service", "status", NULL),
        .config_missing = json_get(o, "runtimeConfigErr") != NULL,
        .config_message = json_text(json_get(o, "runtimeConfigErr")),
        .route = route_of(g, c),
        .model = model_of(o),
        .template = template_of(o),
        .runtime = runtime_of(g, c),
    };
    for (size_t i = 0; i < countof(phases); i++)
        if (json_get(errors, phases[i]))
            f.trouble = (struct aim_service_trouble){ (enum aim_service_phase)i,
                                                      json_text(json_get(errors, phases[i])),
                                                      SERVICE_GRACE_S };
    return f;
}

/* ---- aim-status: answers */

/* What we answer in place of the original, as JSON: `status`, and conditions by type that replace its own; null in
 * one of these stands for words that are not compared. The ids are those of the whole family: a file need not have
 * all of them. */
static const struct correction {
    const char *id, *why, *instead;
} ours[] = {
#define REJECTED "a rejected route degrades the service and says so in Failure"
    { "s0010", REJECTED,
      "{\"status\":\"Degraded\",\"Failure\":[\"True\",\"NotAllowedByListeners\",\"no\"]}" },
    { "s0013", REJECTED, "{\"status\":\"Degraded\",\"Failure\":[\"True\",\"X\",\"bad\"]}" },
#define ONE_REASON                                                                                 \
    "a missing gateway has one reason in all conditions, and what has failed does not progress"
#define MISSING_GATEWAY                                                                            \
    "\"routing.gatewayRef must be specified via AIMService or runtime config when routing is "     \
    "enabled\""
#define NO_GATEWAY                                                                                 \
    "{\"Progressing\":[\"False\",\"RouteFailed\",\"Routing gateway reference is missing\"],"       \
    "\"Ready\":[\"False\",\"RouteFailed\"," MISSING_GATEWAY "],"                                   \
    "\"RuntimeReady\":[\"False\",\"RouteFailed\"," MISSING_GATEWAY "]}"
    { "s0014", ONE_REASON, NO_GATEWAY },
    { "s0015", ONE_REASON, NO_GATEWAY },
    { "s0016", ONE_REASON, NO_GATEWAY },
#define HONEST_PATH                                                                                  \
    "a path that cannot be rendered is told by RoutingReady, the runtime speaks for itself, and no " \
    "path is shown that nothing serves"
    { "s0020", HONEST_PATH,
      "{\"RoutingReady\":[\"False\",\"PathTemplateInvalid\",\"failed to evaluate route template "
      "\\\".metadata.labels['x']\\\": jsonpath evaluation error: label \\\"x\\\" not found\"],"
      "\"RuntimeReady\":[\"True\",\"RuntimeReady\",\"InferenceService is ready\"]}" },
    { "s0021", HONEST_PATH,
      "{\"RoutingReady\":[\"False\",\"PathTemplateInvalid\",null],"
      "\"RuntimeReady\":[null,null,null]}" },
    { "s0023", HONEST_PATH,
      "{\"RoutingReady\":[\"False\",\"PathTemplateInvalid\",\"bad\"],"
      "\"RuntimeReady\":[\"False\",\"CreatingRuntime\","
      "\"Waiting for InferenceService to be created\"]}" },
#define NO_PROGRESS "a model that cannot be used is a failure, and does not progress"
    { "s0032", NO_PROGRESS,
      "{\"Progressing\":[\"False\",null,null],\"Failure\":[\"True\",null,null]}" },
    { "s0033", NO_PROGRESS,
      "{\"Progressing\":[\"False\",null,null],\"Failure\":[\"True\",null,null]}" },
    { "s0040", "all conditions have one reason",
      "{\"Ready\":[\"False\",\"TemplateNotAvailable\",null]}" },
#define FROM_SCRATCH "the status is computed anew each time: what was before does not stick"
    { "s0066", FROM_SCRATCH, "{\"fresh\":true}" },
    { "s0067", FROM_SCRATCH, "{\"fresh\":true}" },
    { "s0068", "a failure is cleared as soon as its cause is gone",
      "{\"status\":\"Starting\",\"Failure\":[\"False\",\"Resolved\",\"No active failures\"]}" },
};

static const struct json *correction_of(struct golden *g, str id)
{
    struct json *instead = NULL;
    for (size_t i = 0; i < countof(ours); i++)
        if (str_eqc(id, ours[i].id))
            golden_ok(g, json_parse(g->arena, str_c(ours[i].instead), &instead, NULL) == 0,
                      "the correction cannot be read");
    return instead;
}

static const struct json *wanted_condition(const struct json *expect, const char *type)
{
    const struct json *list = json_get(expect, "conditions");
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(json_item(list, i), "type")), type))
            return json_item(list, i);
    return NULL;
}

static str truth_word(enum aim_service_truth truth)
{
    return truth == SERVICE_TRUE ? S("True") : truth == SERVICE_FALSE ? S("False") : S("Unknown");
}

static void check_text(struct golden *g, const char *what, str got, const struct json *want)
{
    if (!json_is(want, JSON_NULL))
        golden_eq_str(g, what, got, want);
}

static void check_condition(struct golden *g, const struct json *expect, const struct json *instead,
                            enum aim_service_condition_type type,
                            const struct aim_service_condition *got)
{
    const char *name = aim_service_condition_name(type);
    const struct json *want = wanted_condition(expect, name), *other = json_get(instead, name);
    const struct json *status = other ? json_item(other, 0) : json_get(want, "status");
    if (!status) {
        golden_ok(g, got->truth == SERVICE_ABSENT, "%s should be absent", name);
        return;
    }
    if (!golden_ok(g, got->truth != SERVICE_ABSENT, "%s is absent", name))
        return;
    check_text(g, name, truth_word(got->truth), status);
    check_text(g, name, got->reason, other ? json_item(other, 1) : json_get(want, "reason"));
    check_text(g, name, got->message, other ? json_item(other, 2) : json_get(want, "message"));
}

/* The kind is the real one: the original called templates of the cluster AIMServiceTemplate too. */
static void check_template(struct golden *g, const struct json *c,
                           const struct aim_service_facts *f)
{
    const struct json *want = json_at(c, "expect", "resolvedTemplate", NULL);
    const struct json *got = aim_service_resolved_template(g->arena, &f->template);
    if (!want || !got) {
        golden_ok(g, !want && !got, "resolvedTemplate should be %s", want ? "there" : "absent");
        return;
    }
    bool cluster = str_eqc(json_text(json_get(want, "scope")), "Cluster");
    golden_eq_str(g, "resolvedTemplate.name", json_text(json_get(got, "name")),
                  json_get(want, "name"));
    golden_eq_str(g, "resolvedTemplate.scope", json_text(json_get(got, "scope")),
                  json_get(want, "scope"));
    golden_ok(g,
              str_eqc(json_text(json_get(got, "kind")),
                      cluster ? "AIMClusterServiceTemplate" : "AIMServiceTemplate"),
              "resolvedTemplate.kind is not the real one");
}

/* A server that fails is an error only after a while: until then the old word stays and Ready is unknown. */
static void check_grace(struct golden *g, struct aim_service_facts f)
{
    static const char old[] = "{\"status\":\"Running\"}";
    struct json *before = NULL;
    golden_ok(g, json_parse(g->arena, str_c(old), &before, NULL) == 0, "cannot be read");
    f.old = before;
    f.trouble.lasting_s = SERVICE_GRACE_S - 1;
    struct aim_service_answer answer = aim_service_status(g->arena, &f);
    golden_ok(g, !strcmp(answer.status, "Running"), "status is %s within the grace", answer.status);
    golden_ok(g, answer.conditions[SERVICE_READY].truth == SERVICE_UNKNOWN, "Ready is known");
    golden_ok(g, answer.conditions[SERVICE_FAILURE].truth != SERVICE_TRUE, "Failure holds");
}

static void check_word(struct golden *g, const struct aim_service_facts *f, const char *got,
                       const struct json *instead, const struct json *want)
{
    struct aim_service_facts fresh = *f;
    fresh.old = NULL;
    if (json_get(instead, "fresh"))
        golden_ok(g, !strcmp(got, aim_service_status(g->arena, &fresh).status),
                  "the status before sticks: %s", got);
    else
        golden_eq_str(g, "status", str_c(got),
                      json_get(instead, "status") ? json_get(instead, "status") : want);
}

static void run_status(struct golden *g, const struct json *c)
{
    struct aim_service_facts f = facts_of(g, c);
    const struct json *expect = json_get(c, "expect");
    const struct json *instead = correction_of(g, json_text(json_get(c, "id")));
    struct aim_service_answer answer = aim_service_status(g->arena, &f);
    check_word(g, &f, answer.status, instead, json_get(expect, "status"));
    for (int type = 0; type < SERVICE_CONDITION_N; type++)
        check_condition(g, expect, instead, (enum aim_service_condition_type)type,
                        &answer.conditions[type]);
    check_template(g, c, &f);
    if (f.trouble.message.n)
        check_grace(g, f);
}

const struct golden_family golden_aim[] = {
    { "aim-names", run_names },
    { "aim-status", run_status },
    { 0 },
};
