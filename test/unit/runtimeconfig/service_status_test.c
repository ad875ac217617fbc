/* The status of a service beyond the golden vectors: caches, the grace period of a failing server, and laws that hold
 * for any facts. */
#include "base/random.h"
#include "runtimeconfig/service_route_core.h"
#include "runtimeconfig/service_status_core.h"
#include "tap.h"
#include "json/yaml.h"

static struct json *parse(struct arena *a, const char *yaml)
{
    struct json *tree = NULL;
    err_t e;
    OK_CALL(yaml_parse(a, str_c(yaml), &tree, &e), &e);
    return tree;
}

static struct aim_service_facts running(void)
{
    return (struct aim_service_facts){
        .config = SERVICE_CONFIG_FOUND,
        .route = { .state = SERVICE_ROUTE_OFF },
        .model = { .state = SERVICE_MODEL_READY },
        .cache = SERVICE_CACHE_OFF,
        .template = { .state = SERVICE_TEMPLATE_READY, .name = S("t"), .found = true },
        .runtime = { .found = true, .ready = true },
    };
}

static void a_cache_comes_before_the_runtime(void)
{
    auto_arena struct arena a = { 0 };
    static const struct {
        enum aim_service_cache_state cache;
        bool found;
        const char *status, *reason;
    } t[] = {
        { SERVICE_CACHE_WAITING, false, "Starting", "WaitingForCache" },
        { SERVICE_CACHE_WARMING, false, "Starting", "CacheWarming" },
        { SERVICE_CACHE_FAILED, false, "Degraded", "CacheFailed" },
        { SERVICE_CACHE_WARM, false, "Starting", "CreatingRuntime" },
        { SERVICE_CACHE_WAITING, true, "Starting", "WaitingForCache" },
        { SERVICE_CACHE_FAILED, true, "Degraded", "CacheFailed" }, /* and what runs goes on */
        { SERVICE_CACHE_WARM, true, "Running", "RuntimeReady" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct aim_service_facts f = running();
        f.cache = t[i].cache;
        f.runtime.found = f.runtime.ready = t[i].found;
        struct aim_service_answer answer = aim_service_status(&a, &f);
        EQ_STR(str_c(answer.status), str_c(t[i].status));
        EQ_STR(answer.conditions[SERVICE_READY].reason, str_c(t[i].reason));
        EQ_INT(answer.conditions[SERVICE_RUNTIME_READY].truth,
               t[i].found ? SERVICE_TRUE : SERVICE_FALSE);
    }
}

static void a_lost_volume_leaves_the_runtime_condition_alone(void)
{
    auto_arena struct arena a = { 0 };
    struct aim_service_facts f = running();
    f.volume_lost = S("PersistentVolumeClaim \"x\" lost its volume");
    struct aim_service_answer answer = aim_service_status(&a, &f);
    EQ_STR(str_c(answer.status), S("Degraded"));
    EQ_STR(answer.conditions[SERVICE_FAILURE].reason, S("PVCLost"));
    EQ_STR(answer.conditions[SERVICE_READY].message, f.volume_lost);
    EQ_STR(answer.conditions[SERVICE_RUNTIME_READY].reason, S("RuntimeReady"));
    EQ_INT(answer.conditions[SERVICE_SERVING].truth, SERVICE_TRUE);
}

static void a_failing_server_has_ten_seconds(void)
{
    auto_arena struct arena a = { 0 };
    struct aim_service_facts f = running();
    f.old = parse(&a, "{status: Degraded}");
    f.trouble = (struct aim_service_trouble){ SERVICE_APPLYING, S("no answer"), 9 };
    struct aim_service_answer answer = aim_service_status(&a, &f);
    EQ_STR(str_c(answer.status), S("Degraded"));
    EQ_INT(answer.conditions[SERVICE_READY].truth, SERVICE_UNKNOWN);
    EQ_INT(answer.conditions[SERVICE_RUNTIME_READY].truth, SERVICE_ABSENT); /* left as it was */
    f.trouble.lasting_s = 10;
    answer = aim_service_status(&a, &f);
    EQ_STR(str_c(answer.status), S("Failed"));
    EQ_STR(answer.conditions[SERVICE_FAILURE].message, S("Apply failed: no answer"));
}

static void a_missing_configuration_degrades_whatever_else_is_wrong(void)
{
    auto_arena struct arena a = { 0 };
    struct aim_service_facts f = running();
    f.config = SERVICE_CONFIG_MISSING;
    f.config_message = S("gone");
    f.model.state = SERVICE_MODEL_WAITING;
    f.model.reason = S("ModelPending");
    EQ_STR(str_c(aim_service_status(&a, &f).status), S("Degraded"));
    f.model.state = SERVICE_MODEL_FAILED;
    EQ_STR(str_c(aim_service_status(&a, &f).status), S("Failed"));
}

/* Laws: exactly one word; Ready only when Running; what has failed does not progress; a failure has a reason;
 * the same facts give the same answer whatever was before, but for the condition Failure that is left away. */
static void laws_hold_for_any_facts(void)
{
    struct random r;
    random_init(&r, 5, 1);
    for (int i = 0; i < 5000; i++) {
        auto_arena struct arena a = { 0 };
        struct aim_service_facts f = {
            .config = random_below(&r, 6) ? SERVICE_CONFIG_FOUND : SERVICE_CONFIG_MISSING,
            .config_message = S("gone"),
            .route = { .state = (enum aim_service_route_state)(
                           1 + random_below(&r, SERVICE_ROUTE_N - 1)) },
            .model = { random_below(&r, 3)
                           ? SERVICE_MODEL_READY
                           : (enum aim_service_model_state)random_below(&r, SERVICE_MODEL_N),
                       S("ModelX"), S("words") },
            .template = { .state = random_below(&r, 3) ? SERVICE_TEMPLATE_READY
                                                       : (enum aim_service_template_state)
                                                             random_below(&r, SERVICE_TEMPLATE_N),
                          .name = S("t"),
                          .found = true,
                          .reason = S("TemplateX"),
                          .message = S("words") },
            .cache = (enum aim_service_cache_state)random_below(&r, SERVICE_CACHE_N),
            .runtime = { .found = random_below(&r, 2), .ready = random_below(&r, 2) },
        };
        f.runtime.ready = f.runtime.ready && f.runtime.found;
        struct aim_service_answer x = aim_service_status(&a, &f);
        const struct aim_service_condition *c = x.conditions;
        bool is_running = !strcmp(x.status, "Running"), failed = !strcmp(x.status, "Failed");
        OK((c[SERVICE_READY].truth == SERVICE_TRUE) == is_running);
        OK(!is_running || c[SERVICE_FAILURE].truth == SERVICE_FALSE);
        bool read = c[SERVICE_READY].truth != SERVICE_UNKNOWN;
        OK(!failed || c[SERVICE_PROGRESSING].truth == SERVICE_FALSE);
        OK(!failed || c[SERVICE_FAILURE].truth == SERVICE_TRUE);
        OK((c[SERVICE_SERVING].truth == SERVICE_TRUE) == (f.runtime.found && f.runtime.ready));
        for (int type = 0; type < SERVICE_CONDITION_N; type++)
            OK(c[type].truth == SERVICE_ABSENT || (c[type].reason.n && c[type].message.n));
        f.old =
            parse(&a, "{status: Failed, conditions: [{type: Failure, status: 'True', reason: Old, "
                      "message: old}]}");
        struct aim_service_answer y = aim_service_status(&a, &f);
        EQ_STR(str_c(y.status), str_c(read ? x.status : "Failed")); /* unread: the word stays */
        OK(!str_eqc(y.conditions[SERVICE_FAILURE].reason, "Old"));
    }
}

/* Nothing that was not read is taken for good: the word stays, and Ready is Unknown. */
static void unread_facts_conclude_nothing(void)
{
    auto_arena struct arena a = { 0 };
    struct aim_service_facts some[] = { running(), running(), running(), running(), { 0 } };
    some[0].config = SERVICE_CONFIG_UNKNOWN;
    some[1].model.state = SERVICE_MODEL_UNKNOWN;
    some[2].template.state = SERVICE_TEMPLATE_UNKNOWN;
    some[3].route.state = SERVICE_ROUTE_UNKNOWN;
    for (size_t i = 0; i < countof(some); i++) {
        some[i].old = parse(&a, "{status: Starting}");
        struct aim_service_answer x = aim_service_status(&a, &some[i]);
        EQ_STR(str_c(x.status), S("Starting"));
        EQ_INT(x.conditions[SERVICE_READY].truth, SERVICE_UNKNOWN);
        EQ_STR(x.conditions[SERVICE_READY].reason, S("NotObserved"));
    }
}

static void pull_errors_are_distinguished(void)
{
    EQ_INT(aim_service_pull_cause(S("pull access denied for x")), SERVICE_PULL_AUTH);
    EQ_INT(aim_service_pull_cause(S("failed: 401 Unauthorized")), SERVICE_PULL_AUTH);
    EQ_INT(aim_service_pull_cause(S("manifest unknown")), SERVICE_PULL_MISSING);
    EQ_INT(aim_service_pull_cause(S("connection refused")), SERVICE_PULL_OTHER);
    EQ_INT(aim_service_pull_cause(S("")), SERVICE_PULL_OTHER);
}

/* Unknown is no statement about the references; only Accepted decides then. */
static void only_false_references_reject_a_route(void)
{
    auto_arena struct arena a = { 0 };
    static const struct {
        const char *accepted, *refs;
        enum aim_service_route_state state;
    } t[] = {
        { "True", "Unknown", SERVICE_ROUTE_READY },
        { "True", "True", SERVICE_ROUTE_READY },
        { "True", "False", SERVICE_ROUTE_REJECTED },
        { "Unknown", "False", SERVICE_ROUTE_WAITING },
        { "False", "Unknown", SERVICE_ROUTE_REJECTED },
    };
    for (size_t i = 0; i < countof(t); i++) {
        str text = arena_printf(&a,
                                "{status: {parents: [{conditions: [{type: ResolvedRefs, status: "
                                "'%s', reason: Pending}, {type: Accepted, status: '%s'}]}]}}",
                                t[i].refs, t[i].accepted);
        EQ_INT(aim_service_route_fact(parse(&a, text.p)).state, t[i].state);
    }
}

int main(void)
{
    return tap_run(
        (struct tap_case[]){ TAP(a_cache_comes_before_the_runtime),
                             TAP(a_failing_server_has_ten_seconds),
                             TAP(a_lost_volume_leaves_the_runtime_condition_alone),
                             TAP(a_missing_configuration_degrades_whatever_else_is_wrong),
                             TAP(laws_hold_for_any_facts),
                             TAP(only_false_references_reject_a_route),
                             TAP(unread_facts_conclude_nothing),
                             TAP(pull_errors_are_distinguished),
                             { 0 } });
}
