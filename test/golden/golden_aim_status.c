/* Families aim-status and aim-status-next: the status of an AIMService as the operator that we replace projects it.
 *
 * Where its answer was a fault we answer otherwise. In aim-status-next such a case has a member `target`, and null in it
 * marks words that are not compared. The cases of aim-status are older and have none; correct_*() below write the
 * same rules (D1 to D8 of the specification) over what the original answered. */
#include "golden.h"

#include "runtimeconfig/service_route_core.h"
#include "runtimeconfig/service_status_core.h"

/* ---- facts */

/* The setting of the service, else that of its runtime configuration. */
static const struct json *routing_member(const struct json *c, const char *key)
{
    const struct json *own = json_at(c, "service", "spec", "routing", key, NULL);
    return own ? own : json_at(c, "observation", "runtimeConfigSpec", "routing", key, NULL);
}

static struct json *make_route(struct golden *g, const struct json *given)
{
    struct json *route = json_new_obj(g->arena), *parents = json_new_arr(g->arena);
    const struct json *lists = json_get(given, "parents");
    for (size_t i = 0; i < json_len(lists); i++) {
        struct json *parent = json_new_obj(g->arena);
        json_set(g->arena, parent, S("conditions"), json_item(lists, i));
        json_push(g->arena, parents, parent);
    }
    json_set(g->arena, json_make(g->arena, route, "status", NULL), S("parents"), parents);
    return route;
}

static struct aim_service_route_fact route_of(struct golden *g, const struct json *c)
{
    const struct json *given = json_get(c, "httpRoute");
    str invalid = json_text(json_at(c, "observation", "pathTemplateErr", NULL));
    bool gateway = json_is(routing_member(c, "gatewayRef"), JSON_OBJ);
    if (!json_bool(routing_member(c, "enabled"), false))
        return (struct aim_service_route_fact){ .state = SERVICE_ROUTE_OFF };
    if (invalid.n)
        return (struct aim_service_route_fact){ .state = SERVICE_ROUTE_PATH_INVALID,
                                                .message = invalid,
                                                .no_gateway = !gateway };
    if (!gateway)
        return (struct aim_service_route_fact){ .state = SERVICE_ROUTE_NO_GATEWAY };
    return aim_service_route_fact(json_is(given, JSON_OBJ) ? make_route(g, given) : NULL);
}

static struct aim_service_model_fact model_of(struct golden *g, const struct json *o)
{
    str error = json_text(json_get(o, "modelResolutionErr"));
    str image = json_text(json_get(o, "imageErr"));
    str reason = json_text(json_get(o, "imageReadyReason"));
    if (json_bool(json_get(o, "modelResolutionMultiple"), false))
        return (struct aim_service_model_fact){
            SERVICE_MODEL_UNRESOLVED, S("MultipleModelsFound"),
            arena_printf(g->arena, "multiple models found with the same image " STR_FMT,
                         STR_ARG(error))
        };
    if (error.n)
        return (struct aim_service_model_fact){ .state = SERVICE_MODEL_UNRESOLVED,
                                                .message = error };
    if (image.n)
        return (struct aim_service_model_fact){ .state = SERVICE_MODEL_MISSING, .message = image };
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

static enum aim_service_template_state found_state_of(const struct json *o)
{
    str status = json_text(json_at(o, "templateStatus", "status", NULL));
    if (str_eqc(status, "Failed"))
        return SERVICE_TEMPLATE_FAILED;
    if (str_eqc(status, "Degraded") || str_eqc(status, "NotAvailable"))
        return SERVICE_TEMPLATE_DEGRADED;
    if (!json_bool(json_get(o, "templateAvailable"), false))
        return SERVICE_TEMPLATE_PENDING;
    bool empty = json_int(json_at(o, "templateStatus", "modelSources", NULL), 0) == 0;
    return empty ? SERVICE_TEMPLATE_EMPTY : SERVICE_TEMPLATE_READY;
}

static enum aim_service_template_state template_state_of(const struct json *o)
{
    return json_text(json_get(o, "templateSelectionReason")).n          ? SERVICE_TEMPLATE_REFUSED
           : json_get(o, "scope")                                       ? found_state_of(o)
           : json_bool(json_get(o, "shouldCreateTemplate"), false)      ? SERVICE_TEMPLATE_DERIVING
           : json_bool(json_get(o, "templatesExistButNotReady"), false) ? SERVICE_TEMPLATE_AWAITED
           : json_text(json_get(o, "baseTemplateName")).n               ? SERVICE_TEMPLATE_MISSING
                                                                        : SERVICE_TEMPLATE_UNNAMED;
}

static const struct json *failure_of(const struct json *conditions)
{
    for (size_t i = 0; i < json_len(conditions); i++) {
        const struct json *c = json_item(conditions, i);
        if (str_eqc(json_text(json_get(c, "type")), "Failure") &&
            str_eqc(json_text(json_get(c, "status")), "True"))
            return c;
    }
    return NULL;
}

/* The scope decides: a namespace need not be recorded. */
static str namespace_of(const struct json *o)
{
    str ns = json_text(json_get(o, "templateNamespace"));
    return str_eqc(json_text(json_get(o, "scope")), "cluster") ? S("") : ns.n ? ns : S("ns");
}

static struct aim_service_template_fact template_of(const struct json *o)
{
    const struct json *failure = failure_of(json_at(o, "templateStatus", "conditions", NULL));
    struct aim_service_template_fact t = {
        .state = template_state_of(o),
        .name = json_text(json_get(o, "templateName")),
        .ns = namespace_of(o),
        .found = json_get(o, "scope") != NULL,
        .reason = json_text(json_get(failure, "reason")),
        .message = json_text(json_get(failure, "message")),
    };
    if (!t.found || t.state == SERVICE_TEMPLATE_REFUSED) {
        t.reason = json_text(json_get(o, "templateSelectionReason"));
        t.message = !json_is(o, JSON_OBJ) ? S("Template not found")
                                          : json_text(json_get(o, "templateSelectionMessage"));
    }
    return t;
}

static struct aim_service_runtime_fact runtime_of(struct golden *g, const struct json *c)
{
    const struct json *isvc = json_get(c, "inferenceService");
    const struct json *pull = json_at(c, "observation", "podImageError", NULL);
    struct aim_service_runtime_fact r = { .found = json_is(isvc, JSON_OBJ),
                                          .ready = json_bool(json_get(isvc, "ready"), false),
                                          .failed = json_is(json_get(isvc, "failure"), JSON_STR),
                                          .failure = json_text(json_get(isvc, "failure")) };
    if (json_is(pull, JSON_OBJ))
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
    static const char *const phases[] = { "apply", "plan", "observe" }; /* the first phase wins */
    bool missing = json_is(json_get(o, "runtimeConfigErr"), JSON_STR);
    bool cached = json_bool(json_at(c, "service", "spec", "cacheModel", NULL), false);
    struct aim_service_facts f = {
        .old = json_at(c, "service", "status", NULL),
        .config = missing ? SERVICE_CONFIG_MISSING : SERVICE_CONFIG_FOUND,
        .config_message = json_text(json_get(o, "runtimeConfigErr")),
        .route = route_of(g, c),
        .model = model_of(g, o),
        .template = template_of(o),
        .cache = cached ? SERVICE_CACHE_WARM : SERVICE_CACHE_OFF, /* no cache is observed there */
        .runtime = runtime_of(g, c),
    };
    for (size_t i = 0; i < countof(phases); i++)
        if (json_is(json_get(errors, phases[i]), JSON_STR))
            f.trouble =
                (struct aim_service_trouble){ (enum aim_service_phase)(countof(phases) - 1 - i),
                                              json_text(json_get(errors, phases[i])),
                                              SERVICE_GRACE_S };
    return f;
}

/* ---- corrections of the older family */

static const struct json *find_condition(const struct json *expect, const char *type)
{
    const struct json *list = json_get(expect, "conditions");
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(json_item(list, i), "type")), type))
            return json_item(list, i);
    return NULL;
}

static str reason_in(const struct json *expect, const char *type)
{
    return json_text(json_get(find_condition(expect, type), "reason"));
}

/* Replaces a condition of `expect`; an unset message is not compared. */
static void put_condition(struct golden *g, struct json *expect, const char *type, bool holds,
                          str reason, str message)
{
    struct json *list = json_get(expect, "conditions"), *c = json_new_obj(g->arena);
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(json_item(list, i), "type")), type))
            json_remove(list, i);
    json_set_str(g->arena, c, "type", str_c(type));
    json_set_str(g->arena, c, "status", holds ? S("True") : S("False"));
    json_set_str(g->arena, c, "reason", reason);
    json_set(g->arena, c, S("message"),
             message.p ? json_new_str(g->arena, message) : json_new_null(g->arena));
    json_push(g->arena, list, c);
}

/* "The runtime alone". */
static void put_runtime(struct golden *g, struct json *expect,
                        const struct aim_service_runtime_fact *r)
{
    if (r->found && r->ready)
        put_condition(g, expect, "RuntimeReady", true, S("RuntimeReady"),
                      S("InferenceService is ready"));
    else if (r->found && r->failed)
        put_condition(g, expect, "RuntimeReady", false, S("RuntimeFailed"), r->failure);
    else
        put_condition(g, expect, "RuntimeReady", false, S("CreatingRuntime"),
                      r->found ? S("Waiting for InferenceService to become ready")
                               : S("Waiting for InferenceService creation"));
}

/* D1: RoutingReady names the invalid path, and the runtime speaks for itself. */
static void correct_path(struct golden *g, struct json *expect, const struct aim_service_facts *f)
{
    put_condition(g, expect, "RoutingReady", false, S("PathTemplateInvalid"), f->route.message);
    if (str_eqc(reason_in(expect, "RuntimeReady"), "PathTemplateInvalid"))
        put_runtime(g, expect, &f->runtime);
}

/* D2, D3: a rejected route, or none that is possible, decides once model and template are good. */
static void correct_route(struct golden *g, struct json *expect, const struct aim_service_facts *f)
{
    static const char *const after[] = { "CreatingRuntime", "RuntimeReady", "RuntimeFailed",
                                         "ConfiguringRoute" };
    bool nowhere = f->route.state == SERVICE_ROUTE_NO_GATEWAY, late = false;
    str now = reason_in(expect, "RuntimeReady");
    if (!nowhere)
        put_condition(g, expect, "RoutingReady", false, f->route.reason, f->route.message);
    for (size_t i = 0; i < countof(after); i++)
        late |= str_eqc(now, after[i]) && !f->trouble.message.n;
    if (!late)
        return;
    str reason = reason_in(expect, "RoutingReady");
    str message = json_text(json_get(find_condition(expect, "RoutingReady"), "message"));
    json_set_str(g->arena, expect, "status", nowhere ? S("Failed") : S("Degraded"));
    put_runtime(g, expect, &f->runtime);
    put_condition(g, expect, "Ready", false, reason, message);
    put_condition(g, expect, "Progressing", false, reason, (str){ 0 });
    if (!nowhere)
        put_condition(g, expect, "Failure", true, reason, message);
}

/* D4, D5. */
static void correct_words(struct golden *g, struct json *expect, const struct aim_service_facts *f)
{
    str runtime = reason_in(expect, "RuntimeReady");
    bool failed = str_eqc(json_text(json_get(expect, "status")), "Failed");
    if (failed || f->model.state == SERVICE_MODEL_DEGRADED)
        put_condition(g, expect, "Progressing", false, reason_in(expect, "Progressing"),
                      (str){ 0 });
    if (str_eqc(runtime, "TemplateNotAvailable"))
        put_condition(g, expect, "Ready", false, runtime, (str){ 0 });
}

/* D6, D7: what was before does not stick. A copy of the answer without it is what is expected. */
static void correct_history(struct golden *g, struct json *expect,
                            const struct aim_service_facts *f)
{
    str before = json_text(json_get(f->old, "status"));
    struct aim_service_facts fresh = *f;
    fresh.old = NULL;
    if (before.n && str_eq(before, json_text(json_get(expect, "status"))) &&
        !str_eqc(before, "Pending"))
        json_set_str(g->arena, expect, "status",
                     str_c(aim_service_status(g->arena, &fresh).status));
    if (find_condition(f->old, "Failure") && f->route.state == SERVICE_ROUTE_WAITING &&
        str_eqc(reason_in(f->old, "Failure"), reason_in(expect, "Failure").p)) {
        json_set_str(g->arena, expect, "status",
                     str_c(aim_service_status(g->arena, &fresh).status));
        put_condition(g, expect, "Failure", false, S("Resolved"), S("No active failures"));
    }
}

static const struct json *corrected(struct golden *g, const struct json *c,
                                    const struct aim_service_facts *f)
{
    struct json *expect = json_copy(g->arena, json_get(c, "expect"));
    bool rejected = f->route.state == SERVICE_ROUTE_REJECTED ||
                    (f->route.state == SERVICE_ROUTE_NO_BACKEND && f->runtime.ready);
    if (f->route.state == SERVICE_ROUTE_PATH_INVALID)
        correct_path(g, expect, f);
    if (rejected || f->route.state == SERVICE_ROUTE_NO_GATEWAY)
        correct_route(g, expect, f);
    correct_words(g, expect, f);
    correct_history(g, expect, f);
    return expect;
}

/* ---- answers */

static str truth_word(enum aim_service_truth truth)
{
    return truth == SERVICE_TRUE ? S("True") : truth == SERVICE_FALSE ? S("False") : S("Unknown");
}

static void check_text(struct golden *g, const char *what, str got, const struct json *want)
{
    if (!json_is(want, JSON_NULL))
        golden_eq_str(g, what, got, want);
}

static void check_condition(struct golden *g, const struct json *expect,
                            enum aim_service_condition_type type,
                            const struct aim_service_condition *got)
{
    const char *name = aim_service_condition_name(type);
    const struct json *want = find_condition(expect, name);
    if (!want) {
        golden_ok(g, got->truth == SERVICE_ABSENT, "%s should be absent", name);
        return;
    }
    if (!golden_ok(g, got->truth != SERVICE_ABSENT, "%s is absent", name))
        return;
    check_text(g, name, truth_word(got->truth), json_get(want, "status"));
    check_text(g, name, got->reason, json_get(want, "reason"));
    check_text(g, name, got->message, json_get(want, "message"));
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

/* D9: a server that fails is an error only after a while; until then the old word stays and Ready is unknown. */
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
    const struct aim_service_condition *failure = &answer.conditions[SERVICE_FAILURE];
    bool route = str_eq(failure->reason, answer.conditions[SERVICE_ROUTING_READY].reason);
    golden_ok(g, failure->truth != SERVICE_TRUE || route, "Failure holds");
}

static void check_answer(struct golden *g, const struct json *c, const struct aim_service_facts *f,
                         const struct json *expect)
{
    struct aim_service_facts asked = *f;
    if (f->template.state == SERVICE_TEMPLATE_MISSING) /* named is what the user can create */
        asked.template.name = json_text(json_at(c, "observation", "baseTemplateName", NULL));
    struct aim_service_answer answer = aim_service_status(g->arena, &asked);
    check_text(g, "status", str_c(answer.status), json_get(expect, "status"));
    for (int type = 0; type < SERVICE_CONDITION_N; type++)
        if (type != SERVICE_SERVING) /* ours */
            check_condition(g, expect, (enum aim_service_condition_type)type,
                            &answer.conditions[type]);
    check_template(g, c, f);
    if (f->trouble.message.n)
        check_grace(g, *f);
}

static void run_status(struct golden *g, const struct json *c)
{
    struct aim_service_facts f = facts_of(g, c);
    check_answer(g, c, &f, corrected(g, c, &f));
}

static void run_status_next(struct golden *g, const struct json *c)
{
    struct aim_service_facts f = facts_of(g, c);
    const struct json *target = json_get(c, "target");
    check_answer(g, c, &f, target ? target : json_get(c, "expect"));
}

const struct golden_family golden_aim_status[] = {
    { "aim-status", run_status },
    { "aim-status-next", run_status_next },
    { 0 },
};
