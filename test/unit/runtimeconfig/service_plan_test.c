/* What may be written for the children of a service: the table of trouble and existing children, and laws that hold for
 * any facts. */
#include "base/random.h"
#include "runtimeconfig/service_children_core.h"
#include "runtimeconfig/service_plan_core.h"
#include "tap.h"
#include "json/yaml.h"

static struct aim_service_facts good(void)
{
    return (struct aim_service_facts){
        .config = SERVICE_CONFIG_FOUND,
        .route = { .state = SERVICE_ROUTE_WAITING },
        .model = { .state = SERVICE_MODEL_READY },
        .template = { .state = SERVICE_TEMPLATE_READY, .name = S("t"), .found = true },
        .cache = SERVICE_CACHE_OFF,
    };
}

struct trouble {
    const char *name;
    enum aim_service_config_state config;
    enum aim_service_model_state model;
    enum aim_service_template_state template;
    enum aim_service_route_state route;
    bool unsettled, unread, deleting;
    /* if nothing exists; if InferenceService and route exist */
    enum aim_service_act fresh_runtime, fresh_route, live_runtime, live_route;
};

#define K SERVICE_KEEP
#define NEW SERVICE_CREATE
#define MAY SERVICE_CHANGE
#define DEL SERVICE_DELETE

/* The row of a trouble: what is not named in it is good. */
static struct trouble row_of(struct trouble t)
{
    t.config = t.config ? t.config : SERVICE_CONFIG_FOUND;
    t.model = t.model ? t.model : SERVICE_MODEL_READY;
    t.template = t.template ? t.template : SERVICE_TEMPLATE_READY;
    t.route = t.route ? t.route : SERVICE_ROUTE_WAITING;
    return t;
}

static struct aim_service_plan plan_with(const struct trouble *t, bool runtime, bool route)
{
    struct aim_service_facts f = good();
    f.config = t->config;
    f.model.state = t->model;
    f.template.state = t->template;
    f.route.state = t->route;
    f.runtime.found = f.runtime.ready = runtime;
    return aim_service_plan(&(struct aim_service_plan_question){ .facts = &f,
                                                                 .deleting = t->deleting,
                                                                 .unread = t->unread,
                                                                 .storage_settled = !t->unsettled,
                                                                 .route_exists = route });
}

static void a_trouble_keeps_what_runs(void)
{
    static const struct trouble table[] = {
        { "no trouble", 0, 0, 0, 0, 0, 0, 0, NEW, NEW, MAY, MAY },
        { "service deleting", .deleting = true },
        { "server error", .unread = true },
        { "config missing", .config = SERVICE_CONFIG_MISSING },
        { "several models", 0, SERVICE_MODEL_UNRESOLVED, 0, 0, 0, 0, 0, K, K, K, MAY },
        { "model waiting", 0, SERVICE_MODEL_WAITING, 0, 0, 0, 0, 0, K, K, K, MAY },
        { "model failed", 0, SERVICE_MODEL_FAILED, 0, 0, 0, 0, 0, K, K, K, MAY },
        { "model degraded", 0, SERVICE_MODEL_DEGRADED, 0, 0, 0, 0, 0, K, K, K, MAY },
        { "template's model absent", 0, SERVICE_MODEL_MISSING, 0, 0, 0, 0, 0, K, K, K, MAY },
        { "template deleted", 0, 0, SERVICE_TEMPLATE_MISSING, 0, 0, 0, 0, K, K, K, MAY },
        { "no template", 0, 0, SERVICE_TEMPLATE_UNNAMED, 0, 0, 0, 0, K, K, K, MAY },
        { "ambiguous", 0, 0, SERVICE_TEMPLATE_REFUSED, 0, 0, 0, 0, K, K, K, MAY },
        { "none ready", 0, 0, SERVICE_TEMPLATE_AWAITED, 0, 0, 0, 0, K, K, K, MAY },
        { "deriving", 0, 0, SERVICE_TEMPLATE_DERIVING, 0, 0, 0, 0, K, K, K, MAY },
        { "template pending", 0, 0, SERVICE_TEMPLATE_PENDING, 0, 0, 0, 0, K, K, K, MAY },
        { "template degraded", 0, 0, SERVICE_TEMPLATE_DEGRADED, 0, 0, 0, 0, K, K, K, MAY },
        { "template failed", 0, 0, SERVICE_TEMPLATE_FAILED, 0, 0, 0, 0, K, K, K, MAY },
        { "no sources", 0, 0, SERVICE_TEMPLATE_EMPTY, 0, 0, 0, 0, K, K, K, MAY },
        { "path invalid", 0, 0, 0, SERVICE_ROUTE_PATH_INVALID, 0, 0, 0, NEW, K, MAY, K },
        { "no gateway", 0, 0, 0, SERVICE_ROUTE_NO_GATEWAY, 0, 0, 0, NEW, K, MAY, K },
        { "conflict", 0, 0, 0, SERVICE_ROUTE_REJECTED, 0, 0, 0, NEW, K, MAY, K },
        { "routing off", 0, 0, 0, SERVICE_ROUTE_OFF, 0, 0, 0, NEW, K, MAY, DEL },
        { "cache not ready", 0, 0, 0, 0, true, 0, 0, K, K, K, MAY },
    };
    for (size_t i = 0; i < countof(table); i++) {
        struct trouble t = row_of(table[i]);
        struct aim_service_plan fresh = plan_with(&t, false, false),
                                live = plan_with(&t, true, true);
        bool same = fresh.runtime == t.fresh_runtime && fresh.route == t.fresh_route &&
                    live.runtime == t.live_runtime && live.route == t.live_route;
        if (!OK(same))
            printf("# %s: %d %d, %d %d\n", t.name, (int)fresh.runtime, (int)fresh.route,
                   (int)live.runtime, (int)live.route);
    }
}

/* The zero of every state, alone and in any mixture, writes nothing. */
static void what_was_not_read_writes_nothing(void)
{
    struct aim_service_facts zero = { 0 };
    for (int exists = 0; exists < 4; exists++) {
        zero.runtime.found = exists & 1;
        struct aim_service_plan p = aim_service_plan(&(struct aim_service_plan_question){
            .facts = &zero, .storage_settled = true, .route_exists = exists & 2 });
        EQ_INT(p.runtime, SERVICE_KEEP);
        EQ_INT(p.route, SERVICE_KEEP);
        OK(p.kept_because);
    }
}

/* Laws over random facts: an InferenceService is written only if everything was found good and is never deleted; a route
 * is created only beside an InferenceService and deleted only if routing is known to be off; every reason not to write
 * is named. */
static void laws_hold_for_any_facts(void)
{
    struct random r;
    random_init(&r, 17, 1);
    for (int i = 0; i < 200000; i++) {
        struct aim_service_facts f = {
            .config = (enum aim_service_config_state)random_below(&r, 3),
            .route = { .state = (enum aim_service_route_state)random_below(&r, SERVICE_ROUTE_N) },
            .model = { .state =
                           random_below(&r, 2)
                               ? SERVICE_MODEL_READY
                               : (enum aim_service_model_state)random_below(&r, SERVICE_MODEL_N) },
            .template = { .state = random_below(&r, 2) ? SERVICE_TEMPLATE_READY
                                                       : (enum aim_service_template_state)
                                                             random_below(&r, SERVICE_TEMPLATE_N) },
            .runtime = { .found = random_below(&r, 2) },
        };
        struct aim_service_plan_question q = { &f, random_below(&r, 8) == 0,
                                               random_below(&r, 8) == 0, random_below(&r, 4) != 0,
                                               random_below(&r, 2) };
        struct aim_service_plan p = aim_service_plan(&q);
        bool is_good = f.config == SERVICE_CONFIG_FOUND && f.model.state == SERVICE_MODEL_READY &&
                       f.template.state == SERVICE_TEMPLATE_READY && q.storage_settled &&
                       !q.deleting && !q.unread;
        OK((p.runtime != SERVICE_KEEP) == is_good);
        OK((p.kept_because == NULL) == is_good);
        OK(p.runtime != SERVICE_DELETE);
        OK((p.runtime == SERVICE_CREATE) == (is_good && !f.runtime.found));
        OK(p.route != SERVICE_DELETE || (f.route.state == SERVICE_ROUTE_OFF && q.route_exists));
        OK(p.route != SERVICE_CREATE ||
           (!q.route_exists && (f.runtime.found || p.runtime == SERVICE_CREATE)));
        OK(p.route != SERVICE_CHANGE || (q.route_exists && f.runtime.found));
    }
}

static bool is_whole(struct arena *a, const char *yaml)
{
    struct json *tree = NULL;
    const char *lacks;
    err_t e;
    OK_CALL(yaml_parse(a, str_c(yaml), &tree, &e), &e);
    bool whole = aim_service_is_complete(tree, &lacks);
    OK(whole == !lacks);
    return whole;
}

static void an_incomplete_inference_service_is_refused(void)
{
    auto_arena struct arena a = { 0 };
#define WITH(model) "{metadata: {name: x}, spec: {predictor: {model: {" model "}}}}"
    OK(is_whole(&a, WITH("runtime: t, modelFormat: {name: aim}, resources: {}")));
    OK(!is_whole(&a, WITH("runtime: '', modelFormat: {name: aim}, resources: {}")));
    OK(!is_whole(&a, WITH("modelFormat: {name: aim}, resources: {}")));
    OK(!is_whole(&a, WITH("runtime: t, resources: {}")));
    OK(!is_whole(&a, WITH("runtime: t, modelFormat: {name: aim}")));
    OK(!is_whole(&a, "{}"));
#define BOX(c) "{metadata: {name: x}, spec: {predictor: {containers: [{" c "}]}}}"
    OK(is_whole(&a, BOX("image: a/b:1, resources: {}")));
    OK(!is_whole(&a, BOX("image: '', resources: {}")));
    OK(!is_whole(&a, BOX("image: a/b:1")));
    /* what the fault wrote: an object from no template */
    struct runtimeconfig_spec none = { 0 };
    struct json *service = NULL;
    const char *lacks;
    OK_CALL(yaml_parse(&a, S("{metadata: {name: chat, namespace: ml}, spec: {model: {ref: m}}}"),
                       &service, NULL),
            NULL);
    struct aim_service_basis b = {
        .group = "aim.silogen.ai", .service = service, .config = &none, .own = &none
    };
    struct aim_service_storage no_storage = { 0 };
    OK(!aim_service_is_complete(aim_service_inference_service(&a, &b, &no_storage), &lacks));
    EQ_STR(str_c(lacks), S("spec.predictor.model.runtime"));
}

/* An InferenceService that someone else created under the name is neither changed nor given a route. */
static void an_object_of_others_is_kept(void)
{
    struct aim_service_facts f = good();
    struct aim_service_plan plan = aim_service_plan(&(struct aim_service_plan_question){
        .facts = &f, .storage_settled = true, .foreign_runtime = true });
    EQ_INT(plan.runtime, SERVICE_KEEP);
    EQ_INT(plan.route, SERVICE_KEEP);
    OK(plan.kept_because != NULL);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_trouble_keeps_what_runs),
                                        TAP(what_was_not_read_writes_nothing),
                                        TAP(laws_hold_for_any_facts),
                                        TAP(an_incomplete_inference_service_is_refused),
                                        TAP(an_object_of_others_is_kept),
                                        { 0 } });
}
