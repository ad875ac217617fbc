/* The pure parts of routing: timeouts, templates that are never valid, claims, what others' routes
 * take, where a gateway is, labels that are handed on, and statuses of several hands. */
#include "runtimeconfig/aim.h"
#include "runtimeconfig/gateway_core.h"
#include "tap.h"
#include "json/yaml.h"

static struct json *tree(struct arena *a, const char *text)
{
    struct json *t = NULL;
    err_t e;
    OK_CALL(yaml_parse(a, str_c(text), &t, &e), &e);
    return t;
}

static void timeouts(void)
{
    static const struct {
        const char *text, *want; /* NULL: refused */
    } table[] = {
        { "0s", "0s" },        { "0", "0s" },    { "90s", "1m30s" },     { "1500ms", "1s500ms" },
        { "1.5s", "1s500ms" }, { "2h0m", "2h" }, { "24h1ms", "24h1ms" }, { "99999h", "99999h" },
        { "100000h", NULL },   { "-1s", NULL },  { "1us", NULL },        { "1.0005s", NULL },
        { "soon", NULL },      { "", NULL },     { "5", NULL },
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(table); i++) {
        str got = S("");
        err_t e = { 0 };
        int r = aim_route_parse_timeout(&a, str_c(table[i].text), &got, &e);
        if (!OK((r == 0) == (table[i].want != NULL)) || !table[i].want)
            OK(r == 0 || e.text[0]);
        else
            EQ_STR(got, str_c(table[i].want));
    }
}

static void templates_that_nobody_could_use(void)
{
    static const struct {
        const char *template;
        enum aim_path_fault fault;
    } table[] = {
        { "", PATH_FINE },
        { "/{.metadata.name}/{$.spec.model.ref}/{.metadata.labels['x']}", PATH_FINE },
        { "/{..name}", PATH_FINE },
        { "/{.status.x}", PATH_FINE },
        { "/{.metadata.name", PATH_INVALID },
        { "/{.metadata[}", PATH_INVALID },
        { "/{.metdata.name}", PATH_MISSING },
        { "/a/../{.metadata.name}", PATH_DOT_SEGMENT },
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(table); i++) {
        struct aim_path_problem problem = { 0 };
        struct runtimeconfig_spec spec = { .routing.path_template = str_c(table[i].template) };
        int r = runtimeconfig_lint(&a, &spec, &problem);
        EQ_INT(r < 0, table[i].fault != PATH_FINE);
        EQ_INT(r < 0 ? problem.fault : PATH_FINE, table[i].fault);
    }
    char lengthy[300] = "/";
    memset(lengthy + 1, 'x', 210);
    struct aim_path_problem problem = { 0 };
    struct runtimeconfig_spec spec = { .routing.path_template = str_c(lengthy) };
    OK(runtimeconfig_lint(&a, &spec, &problem) < 0);
    EQ_INT(problem.fault, PATH_TOO_LONG);
}

/* ---- claims */

static void count(void *context, struct aim_claim_holder *holder)
{
    (void)holder;
    ++*(int *)context;
}

static void the_oldest_has_a_place(void)
{
    struct aim_claims c = { 0 };
    int notified = 0;
    struct aim_claim_place here = { S("g"), S("gw"), S(""), S("/a") }, below = here, section = here;
    below.path = S("/a/b");
    section.section = S("https");
    struct aim_claim_holder old = { .ns = S("n"), .name = S("old"), .created_ns = 1 },
                            young = { .ns = S("n"), .name = S("young"), .created_ns = 2 },
                            twin = { .ns = S("n"), .name = S("twin"), .created_ns = 2 },
                            foreign = {
                                .ns = S("n"), .name = S("f"), .foreign = true, .created_ns = 5
                            };
    aim_claims_set(&c, &young, &here, 1, count, &notified);
    EQ_INT(notified, 0);
    OK(!aim_claims_find_older(&c, &young, &here));
    aim_claims_set(&c, &old, &section, 1, count, &notified);
    EQ_INT(notified, 1);
    OK(aim_claims_find_older(&c, &young, &here) == &old);
    OK(!aim_claims_find_older(&c, &old, &section));
    aim_claims_set(&c, &old, &section, 1, count, &notified); /* the same: no notification */
    EQ_INT(notified, 1);
    aim_claims_set(&c, &old, NULL, 0, count, &notified);
    EQ_INT(notified, 2);
    aim_claims_set(&c, &twin, &here, 1, count, &notified);
    OK(aim_claims_find_older(&c, &young, &here) == &twin); /* of equals the smaller name */
    aim_claims_set(&c, &twin, NULL, 0, count, &notified);
    aim_claims_set(&c, &foreign, &here, 1, count, &notified);
    OK(aim_claims_find_older(&c, &young, &here) == &foreign); /* it has no route yet */
    young.routed_ns = 4;
    OK(!aim_claims_find_older(&c, &young, &here));
    str above;
    aim_claims_set(&c, &old, &below, 1, count, &notified);
    OK(aim_claims_find_above(&c, &old, &below, &above));
    EQ_STR(above, S("/a"));
    OK(!aim_claims_find_above(&c, &young, &here, &above));
    OK(aim_claims_has_gateway(&old, S("g"), S("gw")) &&
       !aim_claims_has_gateway(&old, S("g"), S("g")));
    struct aim_claim_holder *all[] = { &old, &young, &foreign };
    for (size_t i = 0; i < countof(all); i++)
        aim_claims_set(&c, all[i], NULL, 0, count, &notified);
    aim_claims_done(&c);
}

static void what_a_foreign_route_takes(void)
{
    auto_arena struct arena a = { 0 };
    struct aim_route_paths p = aim_route_paths(
        &a,
        tree(&a,
             "{metadata: {namespace: here}, spec: {parentRefs: [{name: g}, {name: h, namespace: "
             "o, sectionName: s}, {name: x, kind: Service}], rules: [{matches: [{path: {value: "
             "/a/}}, {path: {type: Exact, value: /b}}, {path: {value: /c}, method: GET}]}]}}"));
    EQ_INT(p.n, 2);
    EQ_STR(p.at[0].path, S("/a"));
    EQ_STR(p.at[0].gateway_ns, S("here"));
    EQ_STR(p.at[1].gateway_ns, S("o"));
    EQ_STR(p.at[1].section, S("s"));
    p = aim_route_paths(&a, tree(&a, "{spec: {parentRefs: [{name: g}], rules: [{}]}}"));
    EQ_INT(p.n, 1);
    EQ_STR(p.at[0].path, S("/"));
    p = aim_route_paths(&a,
                        tree(&a, "{spec: {hostnames: [x], parentRefs: [{name: g}], rules: [{}]}}"));
    EQ_INT(p.n, 1); /* only for that host name */
    EQ_STR(p.at[0].host, S("x"));
    p = aim_route_paths(&a,
                        tree(&a, "{spec: {parentRefs: [{name: g}], rules: [{matches: [{headers: "
                                 "[{name: X-Model, value: a/b}]}, {path: {value: /c}, headers: "
                                 "[{name: x, value: y}]}]}]}}"));
    EQ_INT(p.n, 1); /* a header on every path, but not one on some */
    EQ_STR(p.at[0].header, S("x-model: a/b"));
}

static void where_a_gateway_is(void)
{
    static const struct {
        const char *listeners, *addresses, *section, *want;
    } table[] = {
        { "[{\"name\":\"a\",\"port\":80,\"protocol\":\"HTTP\"}]", "[{\"value\":\"10.0.0.1\"}]", "",
          "http://10.0.0.1/p" },
        { "[{\"name\":\"a\",\"port\":8443,\"protocol\":\"HTTPS\",\"hostname\":\"x.org\"}]", "", "a",
          "https://x.org:8443/p" },
        { "[{\"name\":\"a\",\"port\":80,\"protocol\":\"HTTP\",\"hostname\":\"*.x.org\"}]",
          "[{\"value\":\"::1\"}]", "", "http://[::1]/p" },
        { "[{\"name\":\"a\",\"port\":80,\"protocol\":\"HTTP\"}]", "[{\"value\":\"h\"}]", "b", "" },
        { "[]", "[]", "", "" },
        { "{", "", "", "" },
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(table); i++) {
        struct aim_route_plan plan = { .path = S("/p"), .section = str_c(table[i].section) };
        EQ_STR(aim_route_url(&a, str_c(table[i].listeners), str_c(table[i].addresses), &plan),
               str_c(table[i].want));
    }
}

static void labels_are_handed_on(void)
{
    auto_arena struct arena a = { 0 };
    const struct json *service =
        tree(&a, "{metadata: {name: s, namespace: here, uid: u, labels: {team/a: x, other: y, "
                 "app.kubernetes.io/name: mine}}, spec: {}}");
    struct runtimeconfig_spec own = { 0 };
    struct runtimeconfig_spec config = runtimeconfig_spec_read(
        tree(&a,
             "{labelPropagation: {enabled: true, match: ['team/*', 'app.*/*']}, routing: {enabled: "
             "true, gatewayRef: {name: g}}}"),
        false);
    struct aim_route_template template = { .ready = true };
    struct aim_route_question q = { .group = AIM_GROUP,
                                    .service = service,
                                    .own = &own,
                                    .config = &config,
                                    .template = &template };
    struct aim_route_plan plan = aim_route_plan(&a, &q);
    const struct json *route = aim_route_object(&a, &q, &plan);
    const struct json *labels = json_at(route, "metadata", "labels", NULL);
    EQ_STR(json_text(json_get(labels, "team/a")), S("x"));
    OK(!json_get(labels, "other"));
    EQ_STR(json_text(json_get(labels, "app.kubernetes.io/name")), S("aim-service"));
}

static void one_status_of_several_hands(void)
{
    auto_arena struct arena a = { 0 };
    const struct json *old =
        tree(&a, "{observedGeneration: 1, conditions: [{type: A, status: 'True', "
                 "reason: R, message: m, lastTransitionTime: "
                 "'2026-01-01T00:00:00Z', observedGeneration: 1}], x: y}");
    struct aim_status s;
    aim_status_begin(&s, &a, old, 1780000000, 1);
    OK(!aim_status_condition(&s, &(struct aim_condition){ "A", AIM_TRUE, "R", S("m") }));
    OK(!aim_status_patch(&s));
    OK(aim_status_condition(&s, &(struct aim_condition){ "A", AIM_TRUE, "Other", S("m") }));
    OK(aim_status_condition(&s, &(struct aim_condition){ "B", AIM_UNKNOWN, "R", S("m") }));
    aim_status_text(&s, "x", S(""));
    const struct json *patch = aim_status_patch(&s);
    OK(json_is(json_get(patch, "x"), JSON_NULL));
    EQ_INT(json_len(json_get(patch, "conditions")), 2);
    EQ_STR(json_text(json_get(aim_status_find(s.next, "B"), "status")), S("Unknown"));
    aim_status_drop_condition(&s, "A");
    OK(!aim_status_find(s.next, "A") && aim_status_find(s.next, "B"));
}

static void what_is_already_so(void)
{
    static const struct {
        const char *live, *desired;
        bool covers;
    } table[] = {
        { "{a: 1, b: 2}", "{a: 1}", true },
        { "{a: 1}", "{a: 2}", false },
        { "{a: {b: 1, c: 2}}", "{a: {b: 1}}", true },
        { "{}", "{a: {}}", false },
        { "{l: [1, 2]}", "{l: [1]}", false },
        { "{l: [{x: 1, d: 0}]}", "{l: [{x: 1}]}", true },
        { "{l: [{name: a}, {name: b, v: 1}]}", "{l: [{name: b, v: 1}]}", true },
        { "{l: [{name: a}]}", "{l: [{name: b}]}", false },
        { "{l: 3}", "{l: []}", false },
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(table); i++)
        EQ_INT(aim_apply_covers(tree(&a, table[i].live), tree(&a, table[i].desired)),
               table[i].covers);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(timeouts),
                                        TAP(templates_that_nobody_could_use),
                                        TAP(the_oldest_has_a_place),
                                        TAP(what_a_foreign_route_takes),
                                        TAP(where_a_gateway_is),
                                        TAP(labels_are_handed_on),
                                        TAP(one_status_of_several_hands),
                                        TAP(what_is_already_so),
                                        { 0 } });
}
