/* Schedules that name an HPA of another namespace, on the embedded API server: nothing happens until the HPA, its
 * namespace or a ReferenceGrant permits it, and nothing more once it is withdrawn. Tenant "a" reaches for what is in
 * "shop". */
#include "base/log.h"
#include "base/rfc3339.h"
#include "cluster.h"
#include "kube/grants.h"
#include "schedule/schedule_controller.h"
#include "schedule/schedule_records.h"
#include "schedule/schedule_status_core.h"
#include "tap.h"

#define TRIGGERS(min, max)                                                                         \
    "triggers: [{name: day, interval: {recurring: 'SUN,M,TU,W,TH,F,SAT'}, startTime: '00:00:00', " \
    "endTime: '23:59:59', startHPAConfig: {minReplicas: " #min ", maxReplicas: " #max "}}]"
#define SCHEDULE(name, fields)                                                                      \
    "{apiVersion: autoscaling.sarabala.io/v1alpha1, kind: SmartHorizontalPodAutoscaler, metadata: " \
    "{name: " name "}, spec: {" fields "}}"
#define ABROAD SCHEDULE("far", "HPAObjectRef: {name: web, namespace: shop}, " TRIGGERS(40, 45))
#define GRANT(name, from_kind, from_ns, to)                                                        \
    "{apiVersion: gateway.networking.k8s.io/v1beta1, kind: ReferenceGrant, metadata: {name: " name \
    "}, spec: {from: [{group: autoscaling.sarabala.io, kind: " from_kind ", namespace: " from_ns   \
    "}], to: [" to "]}}"
#define TO_HPAS "{group: autoscaling, kind: HorizontalPodAutoscaler}"

static struct json *yaml(struct cluster *c, const char *text)
{
    struct json *tree = NULL;
    err_t e;
    OK_CALL(yaml_parse(&c->arena, str_c(text), &tree, &e), &e);
    return tree;
}

static void create(struct cluster *c, const struct resource *resource, const char *ns,
                   const char *text)
{
    str body = json_to_str(&c->arena, yaml(c, text));
    EQ_INT(cluster_do(c, KUBE_CREATE, resource, ns, NULL, body).code, 201);
}

static void pass(struct cluster *c, int64_t seconds)
{
    cluster_until(c, cluster_now(c) + seconds);
}

static void make_hpa(struct cluster *c, const char *ns)
{
    create(
        c, &resource_hpas, ns,
        "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: web}, spec: "
        "{minReplicas: 2, maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, "
        "name: web}}}");
}

static void make_namespace(struct cluster *c, const char *name)
{
    create(c, &resource_namespaces, NULL,
           arena_printf(&c->arena, "{metadata: {name: %s}}", name).p);
}

/* With or without the Gateway API. */
static void start_world(struct cluster *c, bool grants, const char *const *settings)
{
    err_t e;
    log_setup(LOG_ERROR, LOG_TEXT);
    int64_t now = 0;
    OK_CALL(rfc3339_parse(S("2026-06-03T08:00:00Z"), &now, &e), &e);
    cluster_start(c, now);
    if (grants)
        cluster_install(c, manifests_shapes);
    make_namespace(c, "a");
    make_namespace(c, "shop");
    make_hpa(c, "shop");
    cluster_operator(c, &schedule_feature, settings);
    pass(c, 1);
}

static bool has_bounds(struct cluster *c, const char *ns, int64_t min, int64_t max)
{
    const struct json *spec = json_get(cluster_get(c, &resource_hpas, ns, "web"), "spec");
    return json_int(json_get(spec, "minReplicas"), 0) == min &&
           json_int(json_get(spec, "maxReplicas"), 0) == max;
}

static str condition(struct cluster *c, const char *ns, const char *name, const char *type,
                     const char *field)
{
    const struct json *o = cluster_get(c, &schedule_resource, ns, name);
    return json_text(json_get(schedule_condition_find(json_get(o, "status"), type), field));
}

#define SAYS(c, ns, name, reason) EQ_STR(condition(c, ns, name, "Ready", "reason"), S(reason))

static void annotate(struct cluster *c, const struct resource *resource, const char *ns,
                     const char *name, const char *value)
{
    str body = arena_printf(&c->arena, "{\"metadata\":{\"annotations\":{\"%s\":%s}}}",
                            GRANT_ANNOTATION, value);
    EQ_INT(cluster_do(c, KUBE_MERGE_PATCH, resource, ns, name, body).code, 200);
    pass(c, 2);
}

static void allow_shop(struct cluster *c, const char *value)
{
    annotate(c, &resource_namespaces, NULL, "shop", value);
}

static size_t writes_to(const struct cluster *c, const char *path)
{
    size_t n = 0;
    for (str rest = buf_str(&c->log), line; str_cut(&rest, '\n', &line);)
        n += str_find(line, str_c(path)) != SIZE_MAX;
    return n;
}

/* ---- without consent */

static void nothing_happens_by_default(void)
{
    struct cluster c;
    start_world(&c, false, NULL);
    create(&c, &schedule_resource, "a", ABROAD);
    create(&c, &schedule_resource, "a",
           SCHEDULE("zero", "HPAObjectRef: {name: web, namespace: shop}, triggers: [{name: day, "
                            "interval: {recurring: 'SUN,M,TU,W,TH,F,SAT'}, startTime: '00:00:00', "
                            "endTime: '23:59:59', startHPAConfig: {desiredReplicas: 0}}]"));
    create(&c, &schedule_resource, "a",
           SCHEDULE("template",
                    "HPASpecTemplate: {metadata: {name: web, namespace: shop}, spec: "
                    "{maxReplicas: 50, scaleTargetRef: {kind: Deployment, name: web}}}, " TRIGGERS(
                        40, 45)));
    pass(&c, 900);
    OK(has_bounds(&c, "shop", 2, 9));
    static const char *const names[] = { "far", "zero", "template" };
    for (size_t i = 0; i < countof(names); i++) {
        EQ_STR(condition(&c, "a", names[i], "Ready", "reason"), S("RefNotPermitted"));
        EQ_STR(condition(&c, "a", names[i], "Ready", "status"), S("False"));
        EQ_STR(condition(&c, "a", names[i], "HPAValid", "reason"), S("RefNotPermitted"));
    }
    EQ_STR(
        condition(&c, "a", "far", "Ready", "message"),
        S("HorizontalPodAutoscaler shop/web does not permit references from namespace \"a\"; "
          "annotate it or namespace \"shop\" with flyball.io/allow-references-from=a, or create a "
          "ReferenceGrant there"));
    EQ_INT(writes_to(&c, "/namespaces/shop/"), 0);
    cluster_stop(&c);
}

/* A tenant learns nothing about what exists elsewhere. */
static void what_is_there_and_what_is_not_look_the_same(void)
{
    struct cluster c;
    start_world(&c, true, NULL);
    create(&c, &schedule_resource, "a", ABROAD);
    create(&c, &schedule_resource, "a",
           SCHEDULE("none", "HPAObjectRef: {name: nothing, namespace: shop}, " TRIGGERS(40, 45)));
    create(&c, &schedule_resource, "a",
           SCHEDULE("nowhere", "HPAObjectRef: {name: web, namespace: no-such}, " TRIGGERS(40, 45)));
    pass(&c, 60);
    SAYS(&c, "a", "far", "RefNotPermitted");
    SAYS(&c, "a", "none", "RefNotPermitted");
    SAYS(&c, "a", "nowhere", "RefNotPermitted");
    cluster_stop(&c);
}

static void the_own_namespace_needs_no_consent(void)
{
    struct cluster c;
    start_world(&c, false, NULL);
    create(&c, &schedule_resource, "shop",
           SCHEDULE("near", "HPAObjectRef: {name: web, namespace: shop}, " TRIGGERS(3, 4)));
    pass(&c, 2);
    OK(has_bounds(&c, "shop", 3, 4));
    SAYS(&c, "shop", "near", "Reconciled");
    cluster_stop(&c);
}

/* A schedule without consent does not take precedence, however old it is. */
static void a_schedule_without_consent_has_no_precedence(void)
{
    struct cluster c;
    start_world(&c, false, NULL);
    create(&c, &schedule_resource, "a", ABROAD);
    pass(&c, 5);
    create(&c, &schedule_resource, "shop",
           SCHEDULE("own", "HPAObjectRef: {name: web}, " TRIGGERS(3, 4)));
    pass(&c, 2);
    OK(has_bounds(&c, "shop", 3, 4));
    SAYS(&c, "shop", "own", "Reconciled");
    allow_shop(&c, "\"a\""); /* now the older one governs */
    OK(has_bounds(&c, "shop", 40, 45));
    SAYS(&c, "shop", "own", "HPAAlreadyManaged");
    allow_shop(&c, "null");
    OK(has_bounds(&c, "shop", 3, 4));
    SAYS(&c, "shop", "own", "Reconciled");
    SAYS(&c, "a", "far", "RefNotPermitted");
    cluster_stop(&c);
}

/* ---- consent by annotation */

static void annotations_permit_and_withdraw(void)
{
    static const struct {
        const char *value;
        bool permits;
    } t[] = {
        { "\"a\"", true },   { "\"\"", false },  { "\"b, a\"", true }, { "\"b\"", false },
        { "\"*\"", true },   { "\" \"", false }, { "\" a \"", true },  { "\"a*\"", false },
        { "\"b,*\"", true }, { "\"A\"", false }, { "\",a,\"", true },  { "null", false },
    };
    for (int on_object = 0; on_object < 2; on_object++) {
        struct cluster c;
        start_world(&c, false, NULL);
        create(&c, &schedule_resource, "a", ABROAD);
        pass(&c, 2);
        for (size_t i = 0; i < countof(t); i++) {
            if (on_object)
                annotate(&c, &resource_hpas, "shop", "web", t[i].value);
            else
                allow_shop(&c, t[i].value);
            EQ_STR(condition(&c, "a", "far", "Ready", "reason"),
                   t[i].permits ? S("Reconciled") : S("RefNotPermitted"));
            OK(has_bounds(&c, "shop", 40, 45)); /* what was written stays */
            size_t writes = writes_to(&c, "/namespaces/shop/horizontal");
            EQ_INT(cluster_do(&c, KUBE_MERGE_PATCH, &resource_hpas, "shop", "web",
                              S("{\"spec\":{\"minReplicas\":7}}"))
                       .code,
                   200);
            pass(&c, 700);
            OK(has_bounds(&c, "shop", t[i].permits ? 40 : 7, 45));
            EQ_INT(writes_to(&c, "/namespaces/shop/horizontal"), writes + t[i].permits);
            if (!t[i].permits)
                cluster_do(&c, KUBE_MERGE_PATCH, &resource_hpas, "shop", "web",
                           S("{\"spec\":{\"minReplicas\":40}}"));
        }
        cluster_stop(&c);
    }
}

/* The consent of the HPA is for itself. */
static void one_hpa_does_not_speak_for_another(void)
{
    struct cluster c;
    start_world(&c, false, NULL);
    create(
        &c, &resource_hpas, "shop",
        "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: other, "
        "annotations: {flyball.io/allow-references-from: '*'}}, spec: {minReplicas: 2, maxReplicas: "
        "9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}}}");
    create(&c, &schedule_resource, "a", ABROAD);
    pass(&c, 5);
    SAYS(&c, "a", "far", "RefNotPermitted");
    OK(has_bounds(&c, "shop", 2, 9));
    cluster_stop(&c);
}

/* The annotation on the referrer's side is no consent. */
static void nobody_permits_himself(void)
{
    struct cluster c;
    start_world(&c, true, NULL);
    annotate(&c, &resource_namespaces, NULL, "a", "\"a,shop,*\"");
    create(&c, &schedule_resource, "a",
           "{apiVersion: autoscaling.sarabala.io/v1alpha1, kind: SmartHorizontalPodAutoscaler, "
           "metadata: {name: far, annotations: {flyball.io/allow-references-from: '*'}}, spec: "
           "{HPAObjectRef: {name: web, namespace: shop}, " TRIGGERS(40, 45) "}}");
    create(&c, &resource_grants_beta, "a",
           GRANT("mine", "SmartHorizontalPodAutoscaler", "a", TO_HPAS));
    pass(&c, 5);
    SAYS(&c, "a", "far", "RefNotPermitted");
    OK(has_bounds(&c, "shop", 2, 9));
    cluster_stop(&c);
}

static void a_namespace_or_hpa_that_comes_again_has_not_consented(void)
{
    struct cluster c;
    start_world(&c, false, NULL);
    annotate(&c, &resource_hpas, "shop", "web", "\"a\"");
    create(&c, &schedule_resource, "a", ABROAD);
    pass(&c, 2);
    OK(has_bounds(&c, "shop", 40, 45));
    cluster_do(&c, KUBE_DELETE, &resource_hpas, "shop", "web", S(""));
    pass(&c, 2);
    SAYS(&c, "a", "far", "RefNotPermitted");
    make_hpa(&c, "shop");
    pass(&c, 40);
    SAYS(&c, "a", "far", "RefNotPermitted");
    OK(has_bounds(&c, "shop", 2, 9));
    allow_shop(&c, "\"a\"");
    OK(has_bounds(&c, "shop", 40, 45));
    EQ_INT(cluster_do(&c, KUBE_DELETE, &resource_namespaces, NULL, "shop", S("")).code / 100, 2);
    pass(&c, 60);
    OK(!cluster_get(&c, &resource_namespaces, NULL, "shop"));
    make_namespace(&c, "shop");
    make_hpa(&c, "shop");
    pass(&c, 60);
    SAYS(&c, "a", "far", "RefNotPermitted");
    OK(has_bounds(&c, "shop", 2, 9));
    cluster_stop(&c);
}

/* ---- ReferenceGrants */

static void grants_permit_and_withdraw(void)
{
    const struct resource *const versions[] = { &resource_grants_beta, &resource_grants };
    for (size_t i = 0; i < countof(versions); i++) {
        struct cluster c;
        start_world(&c, true, NULL);
        create(&c, &schedule_resource, "a", ABROAD);
        pass(&c, 2);
        SAYS(&c, "a", "far", "RefNotPermitted");
        str grant = arena_printf(
            &c.arena,
            "{apiVersion: gateway.networking.k8s.io/%s, kind: ReferenceGrant, metadata: {name: ok}, "
            "spec: {from: [{group: autoscaling.sarabala.io, kind: SmartHorizontalPodAutoscaler, "
            "namespace: a}], to: [" TO_HPAS "]}}",
            versions[i]->version);
        create(&c, versions[i], "shop", grant.p);
        pass(&c, 2);
        OK(has_bounds(&c, "shop", 40, 45));
        SAYS(&c, "a", "far", "Reconciled");
        cluster_do(&c, KUBE_DELETE, versions[i], "shop", "ok", S(""));
        pass(&c, 2);
        SAYS(&c, "a", "far", "RefNotPermitted");
        OK(has_bounds(&c, "shop", 40, 45));
        cluster_stop(&c);
    }
}

static void grants_for_something_else_permit_nothing(void)
{
    static const char *const other[] = {
        GRANT("g1", "HTTPRoute", "a", TO_HPAS),
        GRANT("g2", "SmartHorizontalPodAutoscaler", "b", TO_HPAS),
        GRANT("g3", "SmartHorizontalPodAutoscaler", "a", "{group: '', kind: Secret}"),
        GRANT("g4", "SmartHorizontalPodAutoscaler", "a",
              "{group: autoscaling, kind: HorizontalPodAutoscaler, name: api}"),
        GRANT("g5", "SmartHorizontalPodAutoscaler", "a", "{group: apps, kind: Deployment}"),
        GRANT("g6", "SmartHorizontalPodAutoscaler", "'*'", TO_HPAS),
    };
    struct cluster c;
    start_world(&c, true, NULL);
    create(&c, &schedule_resource, "a", ABROAD);
    for (size_t i = 0; i < countof(other); i++)
        create(&c, &resource_grants_beta, "shop", other[i]);
    pass(&c, 5);
    SAYS(&c, "a", "far", "RefNotPermitted");
    OK(has_bounds(&c, "shop", 2, 9));
    create(&c, &resource_grants_beta, "shop",
           GRANT("g7", "SmartHorizontalPodAutoscaler", "a",
                 "{group: autoscaling, kind: HorizontalPodAutoscaler, name: web}"));
    pass(&c, 2);
    OK(has_bounds(&c, "shop", 40, 45));
    cluster_stop(&c);
}

/* Two consents: withdrawing one leaves the other. */
static void the_last_consent_counts(void)
{
    struct cluster c;
    start_world(&c, true, NULL);
    create(&c, &schedule_resource, "a", ABROAD);
    create(&c, &resource_grants_beta, "shop",
           GRANT("one", "SmartHorizontalPodAutoscaler", "a", TO_HPAS));
    create(&c, &resource_grants_beta, "shop",
           GRANT("two", "SmartHorizontalPodAutoscaler", "a", TO_HPAS));
    allow_shop(&c, "\"a\"");
    annotate(&c, &resource_hpas, "shop", "web", "\"a\"");
    SAYS(&c, "a", "far", "Reconciled");
    allow_shop(&c, "null");
    SAYS(&c, "a", "far", "Reconciled");
    cluster_do(&c, KUBE_DELETE, &resource_grants_beta, "shop", "one", S(""));
    pass(&c, 2);
    SAYS(&c, "a", "far", "Reconciled");
    annotate(&c, &resource_hpas, "shop", "web", "null");
    SAYS(&c, "a", "far", "Reconciled");
    cluster_do(&c, KUBE_DELETE, &resource_grants_beta, "shop", "two", S(""));
    pass(&c, 2);
    SAYS(&c, "a", "far", "RefNotPermitted");
    cluster_stop(&c);
}

static void the_gateway_api_may_come_late(void)
{
    struct cluster c;
    start_world(&c, false, NULL);
    create(&c, &schedule_resource, "a", ABROAD);
    pass(&c, 5);
    SAYS(&c, "a", "far", "RefNotPermitted");
    cluster_install(&c, manifests_shapes);
    create(&c, &resource_grants_beta, "shop",
           GRANT("ok", "SmartHorizontalPodAutoscaler", "a", TO_HPAS));
    pass(&c, 45);
    SAYS(&c, "a", "far", "Reconciled");
    OK(has_bounds(&c, "shop", 40, 45));
    cluster_stop(&c);
}

/* A deletion while the server is down is seen in the new list, not as an event. */
static void withdrawn_while_the_operator_is_cut_off(void)
{
    struct cluster c;
    start_world(&c, true, NULL);
    create(&c, &schedule_resource, "a", ABROAD);
    create(&c, &resource_grants_beta, "shop",
           GRANT("ok", "SmartHorizontalPodAutoscaler", "a", TO_HPAS));
    pass(&c, 2);
    OK(has_bounds(&c, "shop", 40, 45));
    cluster_operator_down(&c);
    cluster_do(&c, KUBE_DELETE, &resource_grants_beta, "shop", "ok", S(""));
    cluster_do(&c, KUBE_MERGE_PATCH, &resource_hpas, "shop", "web",
               S("{\"spec\":{\"minReplicas\":7}}"));
    size_t writes = writes_to(&c, "/namespaces/shop/");
    cluster_operator(&c, &schedule_feature, NULL);
    pass(&c, 60);
    SAYS(&c, "a", "far", "RefNotPermitted");
    OK(has_bounds(&c, "shop", 7, 45));
    EQ_INT(writes_to(&c, "/namespaces/shop/"), writes);
    cluster_stop(&c);
}

static void a_thousand_grants_are_no_burden(void)
{
    struct cluster c;
    start_world(&c, true, NULL);
    create(&c, &schedule_resource, "a", ABROAD);
    for (int i = 0; i < 1000; i++) {
        str text = arena_printf(
            &c.arena,
            "{apiVersion: gateway.networking.k8s.io/v1beta1, kind: ReferenceGrant, metadata: {name: "
            "g%d}, spec: {from: [{group: autoscaling.sarabala.io, kind: "
            "SmartHorizontalPodAutoscaler, namespace: t%d}], to: [" TO_HPAS "]}}",
            i, i);
        create(&c, &resource_grants_beta, "shop", text.p);
    }
    pass(&c, 5);
    SAYS(&c, "a", "far", "RefNotPermitted");
    size_t writes = c.operator_writes;
    create(&c, &resource_grants_beta, "shop",
           GRANT("last", "SmartHorizontalPodAutoscaler", "a", TO_HPAS));
    pass(&c, 2);
    OK(has_bounds(&c, "shop", 40, 45));
    OK(c.operator_writes <= writes + 5);
    cluster_stop(&c);
}

/* ---- the end, and other settings */

static void a_deletion_without_consent_restores_nothing(void)
{
    struct cluster c;
    start_world(&c, false, NULL);
    allow_shop(&c, "\"a\"");
    create(
        &c, &schedule_resource, "a",
        SCHEDULE("far",
                 "deletionPolicy: Restore, HPAObjectRef: {name: web, namespace: shop}, " TRIGGERS(
                     40, 45)));
    pass(&c, 2);
    OK(has_bounds(&c, "shop", 40, 45));
    allow_shop(&c, "null");
    cluster_do(&c, KUBE_DELETE, &schedule_resource, "a", "far", S(""));
    pass(&c, 5);
    OK(!cluster_get(&c, &schedule_resource, "a", "far"));
    OK(has_bounds(&c, "shop", 40, 45));
    cluster_stop(&c);
}

static void the_operator_may_forbid_it_altogether(void)
{
    struct cluster c;
    start_world(&c, true, (const char *[]){ "restrict-cross-namespace", "true", NULL });
    allow_shop(&c, "\"*\"");
    create(&c, &resource_grants_beta, "shop",
           GRANT("ok", "SmartHorizontalPodAutoscaler", "a", TO_HPAS));
    create(&c, &schedule_resource, "a", ABROAD);
    pass(&c, 5);
    SAYS(&c, "a", "far", "RefNotPermitted");
    OK(str_find(condition(&c, "a", "far", "Ready", "message"), S("--restrict-cross-namespace")) !=
       SIZE_MAX);
    OK(has_bounds(&c, "shop", 2, 9));
    cluster_stop(&c);
}

/* ---- queries */

static void a_query_that_cannot_be_confined_is_a_condition(void)
{
    struct cluster c;
    start_world(&c, false, NULL);
    create(&c, &schedule_resource, "shop",
           SCHEDULE("own", "HPAObjectRef: {name: web}, smartRecommendation: {enabled: true, query: "
                           "'sum(up) + frobnicate(up)'}, " TRIGGERS(3, 4)));
    pass(&c, 2);
    SAYS(&c, "shop", "own", "Reconciled");
    EQ_STR(condition(&c, "shop", "own", "QueryValid", "status"), S("False"));
    EQ_STR(condition(&c, "shop", "own", "QueryValid", "reason"), S("InvalidQuery"));
    EQ_STR(condition(&c, "shop", "own", "QueryValid", "message"),
           S("smartRecommendation.query cannot be restricted to namespace shop: at character 11: "
             "function \"frobnicate\" is unknown or not allowed here"));
    cluster_do(&c, KUBE_MERGE_PATCH, &schedule_resource, "shop", "own",
               S("{\"spec\":{\"smartRecommendation\":{\"query\":\"sum(up)\"}}}"));
    pass(&c, 2);
    EQ_STR(condition(&c, "shop", "own", "QueryValid", "reason"), S("Valid"));
    cluster_stop(&c);
}

static void free_queries_are_the_operators_to_allow(void)
{
    struct cluster c;
    start_world(&c, false, (const char *[]){ "smarthpa-allow-free-queries", "true", NULL });
    create(&c, &schedule_resource, "shop",
           SCHEDULE("own", "HPAObjectRef: {name: web}, smartRecommendation: {enabled: true, query: "
                           "'frobnicate(up)'}, " TRIGGERS(3, 4)));
    pass(&c, 2);
    EQ_STR(condition(&c, "shop", "own", "QueryValid", "reason"), S("Valid"));
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(nothing_happens_by_default),
        TAP(what_is_there_and_what_is_not_look_the_same),
        TAP(the_own_namespace_needs_no_consent),
        TAP(a_schedule_without_consent_has_no_precedence),
        TAP(annotations_permit_and_withdraw),
        TAP(one_hpa_does_not_speak_for_another),
        TAP(nobody_permits_himself),
        TAP(a_namespace_or_hpa_that_comes_again_has_not_consented),
        TAP(grants_permit_and_withdraw),
        TAP(grants_for_something_else_permit_nothing),
        TAP(the_last_consent_counts),
        TAP(the_gateway_api_may_come_late),
        TAP(withdrawn_while_the_operator_is_cut_off),
        TAP(a_thousand_grants_are_no_burden),
        TAP(a_deletion_without_consent_restores_nothing),
        TAP(the_operator_may_forbid_it_altogether),
        TAP(a_query_that_cannot_be_confined_is_a_condition),
        TAP(free_queries_are_the_operators_to_allow),
        { 0 },
    });
}
