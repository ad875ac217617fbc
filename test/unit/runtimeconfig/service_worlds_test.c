/* A property over random worlds and random orders of events: services, models, templates and configurations come, go, fail
 * and change, requests fail, and the operator restarts, at any moment. Whatever happens,
 *
 *   - every InferenceService that the operator writes is complete, and it deletes none;
 *   - every route that it writes leads to an InferenceService that exists.
 *
 * service_trouble_test.c has the troubles one by one, with the status that each of them must show. */
#include "aim_world.h"
#include "base/random.h"
#include "runtimeconfig/service_world.h"

#define RUNTIMES "/apis/serving.kserve.io/v1beta1/namespaces/ml-team/inferenceservices/"
#define ROUTES "/apis/gateway.networking.k8s.io/v1/namespaces/ml-team/httproutes/"

enum { WORLDS = 16, EVENTS = 60 };

static const char ns[] = "ml-team";

struct world {
    struct cluster c;
    struct random r;
    size_t runtimes, routes; /* that were written: a walk that writes none proves nothing */
};

/* ---- objects */

struct object {
    enum aim_kind kind;
    const char *ns, *name;
    const char *forms[3]; /* one of them is created */
};

#define GATE "gatewayRef: {name: inference-gateway, namespace: gateways}"
#define SOURCES(id) "modelSources: [{modelId: " id ", sourceUri: 'hf://" id "', size: 1Gi}]"

static const struct object objects[] = {
    { AIM_CONFIG,
      ns,
      "gold",
      { "{metadata: {name: gold}, spec: {routing: {enabled: true, " GATE "}}}",
        "{metadata: {name: gold}, spec: {routing: {enabled: true, " GATE
        ", pathTemplate: '/{.metadata.labels[\"none\"]}'}}}",
        "{metadata: {name: gold}, spec: {}}" } },
    { AIM_CLUSTER_CONFIG,
      NULL,
      "gold",
      { "{metadata: {name: gold}, spec: {routing: {enabled: true}}}",
        "{metadata: {name: gold}, spec: {routing: {enabled: true, " GATE "}}}" } },
    { AIM_MODEL,
      ns,
      "m2",
      { "{metadata: {name: m2}, spec: {image: 'example.org/two:1', discovery: {enabled: false}}}",
        "{metadata: {name: m2}, spec: {image: 'example.org/two:1', custom: {hardware: {cpu: "
        "{requests: '1'}}}, " SOURCES("a/two") "}}",
        "{metadata: {name: m2}, spec: {image: 'example.org/llama:1'}}" } },
    { AIM_TEMPLATE,
      ns,
      "t1",
      { "{metadata: {name: t1}, spec: {modelName: meta-llama-3-8b, metric: latency, " SOURCES(
            "a/one") "}}",
        "{metadata: {name: t1}, spec: {modelName: m2, gpuSelector: {model: MI300X}}}" } },
    { AIM_TEMPLATE,
      ns,
      "t2",
      { "{metadata: {name: t2}, spec: {modelName: m2, precision: fp8, " SOURCES("a/two") "}}",
        "{metadata: {name: t2}, spec: {modelName: none, " SOURCES("a/two") "}}" } },
    { AIM_CLUSTER_MODEL, NULL, "meta-llama-3-8b", { WORLD_MODEL } },
    { AIM_CLUSTER_TEMPLATE, NULL, "llama-latency", { WORLD_TEMPLATE } },
    { AIM_SERVICE,
      ns,
      "s0",
      { "{metadata: {name: s0}, spec: {model: {ref: meta-llama-3-8b}, runtimeConfigName: gold}}",
        "{metadata: {name: s0}, spec: {model: {ref: m2}, runtimeConfigName: gold}}" } },
    { AIM_SERVICE,
      ns,
      "s1",
      { "{metadata: {name: s1}, spec: {model: {ref: m2}, templateRef: t2, routing: {enabled: true, " GATE
        "}}}",
        "{metadata: {name: s1}, spec: {model: {ref: m2}, templateRef: t2, cacheModel: true}}" } },
    { AIM_SERVICE,
      ns,
      "s2",
      { "{metadata: {name: s2}, spec: {model: {image: 'example.org/llama:1'}, overrides: {precision: "
        "fp8}, runtimeConfigName: gold}}",
        "{metadata: {name: s2}, spec: {model: {custom: {baseImage: 'a/b:1', hardware: {cpu: "
        "{requests: '4'}}, " SOURCES("a/own") "}}, runtimeConfigName: gold}}" } },
};

/* ---- events: any of them may be refused, because its object does not exist or may not change so */

static const struct object *any_object(struct world *w)
{
    return &objects[random_below(&w->r, countof(objects))];
}

static const char *any_of(struct world *w, const char *const *texts, size_t n)
{
    return texts[random_below(&w->r, (uint32_t)n)];
}

static void send(struct world *w, enum kube_verb verb, const struct object *o, const char *yaml)
{
    const struct resource *kind = aim_test_kind(o->kind);
    struct json *body = yaml ? aim_test_yaml(&w->c, yaml) : NULL;
    if (verb == KUBE_CREATE) {
        json_set_str(&w->c.arena, body, "apiVersion", S("aim.silogen.ai/v1alpha1"));
        json_set_str(&w->c.arena, body, "kind", str_c(kind->kind));
    }
    cluster_do(&w->c, verb, kind, o->ns, verb == KUBE_CREATE ? NULL : o->name,
               body ? json_to_str(&w->c.arena, body) : S(""));
}

static void create_form(struct world *w, const struct object *o)
{
    size_t n = 0;
    while (n < countof(o->forms) && o->forms[n])
        n++;
    send(w, KUBE_CREATE, o, any_of(w, o->forms, n));
}

static void create_any(struct world *w)
{
    create_form(w, any_object(w));
}

static void delete_any(struct world *w)
{
    send(w, KUBE_DELETE, any_object(w), NULL);
}

static void change_any(struct world *w)
{
    static const char *const configs[] = {
        "{spec: {routing: {enabled: false}}}",     "{spec: {routing: {enabled: true, " GATE "}}}",
        "{spec: {routing: {gatewayRef: null}}}",   "{spec: {routing: {pathTemplate: '/x/{.y}'}}}",
        "{spec: {routing: {pathTemplate: null}}}",
    };
    static const char *const services[] = {
        "{spec: {replicas: 2}}",
        "{spec: {templateRef: t1}}",
        "{spec: {templateRef: null}}",
        "{spec: {runtimeConfigName: gone}}",
        "{spec: {runtimeConfigName: gold}}",
        "{spec: {overrides: {metric: throughput}}}",
        "{spec: {env: [{name: A, value: b}]}}",
        "{metadata: {annotations: {aim.silogen.ai/force-rebind: 'yes'}}}",
    };
    static const char *const templates[] = {
        "{spec: {modelSources: []}}",
        "{spec: {" SOURCES("a/new") "}}",
        "{spec: {runtimeConfigName: gone}}",
        "{spec: {runtimeConfigName: null}}",
    };
    const struct object *o = any_object(w);
    bool config = o->kind == AIM_CONFIG || o->kind == AIM_CLUSTER_CONFIG;
    bool template = o->kind == AIM_TEMPLATE || o->kind == AIM_CLUSTER_TEMPLATE;
    send(w, KUBE_MERGE_PATCH, o,
         config                   ? any_of(w, configs, countof(configs))
         : o->kind == AIM_SERVICE ? any_of(w, services, countof(services))
         : template               ? any_of(w, templates, countof(templates))
                                  : "{spec: {runtimeConfigName: gone}}");
}

/* A status that another operator, or an older one of ours, left behind; paused, or corrected at once. */
static void set_any_status(struct world *w)
{
    static const char *const words[] = { "Ready", "Failed", "Degraded", "NotAvailable", "Pending" };
    const struct object *o = any_object(w);
    send(w, KUBE_MERGE_PATCH, o,
         random_below(&w->r, 2)
             ? "{metadata: {annotations: {aim.silogen.ai/reconciliation-paused: 'true'}}}"
             : "{metadata: {annotations: {aim.silogen.ai/reconciliation-paused: null}}}");
    if (o->kind == AIM_SERVICE || o->kind == AIM_CONFIG || o->kind == AIM_CLUSTER_CONFIG)
        return;
    str body = arena_printf(&w->c.arena, "{\"status\":{\"status\":\"%s\",\"modelSources\":[]}}",
                            any_of(w, words, countof(words)));
    cluster_ask(&w->c, (struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                              .resource = aim_test_kind(o->kind),
                                              .ns = str_c(o->ns ? o->ns : ""),
                                              .name = str_c(o->name),
                                              .subresource = "status",
                                              .body = body });
}

static void answer_runtime(struct world *w)
{
    static const char *const names[] = { "s0", "s1", "s2" };
    static const char *const states[] = {
        "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}",
        "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]}}",
    };
    cluster_ask(&w->c, (struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                              .resource = &aim_resource_inference_services,
                                              .ns = S("ml-team"),
                                              .name = str_c(any_of(w, names, countof(names))),
                                              .subresource = "status",
                                              .body = str_c(any_of(w, states, countof(states))) });
}

static void break_requests(struct world *w)
{
    static const char *const paths[] = { "inferenceservices", "httproutes",
                                         "aimservices",       "aimservicetemplates",
                                         "aimmodels",         "persistentvolumeclaims" };
    static const int codes[] = { 500, 409, 404, 422 };
    w->c.failures = (int)random_below(&w->r, 6);
    w->c.fail_code = codes[random_below(&w->r, countof(codes))];
    w->c.fail_path = any_of(w, paths, countof(paths));
}

static void restart(struct world *w)
{
    w->c.failures = 0;
    cluster_operator_down(&w->c);
    aim_test_start_operator(&w->c);
}

/* ---- laws */

static bool takes(str *line, const char *prefix)
{
    if (!str_starts(*line, str_c(prefix)))
        return false;
    *line = str_from(*line, strlen(prefix));
    return true;
}

/* "NAME BODY" of a write. */
static struct json *body_of(struct world *w, str rest)
{
    struct json *tree = NULL;
    size_t blank = str_find_char(rest, ' ');
    if (blank == SIZE_MAX || json_parse(&w->c.arena, str_from(rest, blank + 1), &tree, NULL))
        return NULL;
    return json_get(tree, "spec") ? tree : NULL;
}

/* Written again here, so that a fault in the product's own check is found too. */
static void check_runtime(struct world *w, str rest)
{
    const struct json *written = body_of(w, rest);
    const struct json *model = json_at(written, "spec", "predictor", "model", NULL);
    if (!written)
        return;
    w->runtimes++;
    bool whole = json_text(json_get(model, "runtime")).n &&
                 str_eqc(json_text(json_at(model, "modelFormat", "name", NULL)), "aim") &&
                 json_is(json_get(model, "resources"), JSON_OBJ);
    if (!OK(whole))
        printf("# an incomplete InferenceService: %.*s\n", (int)MIN(rest.n, (size_t)400), rest.p);
}

/* The InferenceService was written before or in the same turn; nothing in this walk deletes one by hand. */
static void check_route(struct world *w, str rest)
{
    const struct json *rules = json_at(body_of(w, rest), "spec", "rules", NULL);
    for (size_t i = 0; i < json_len(rules); i++) {
        const struct json *refs = json_get(json_item(rules, i), "backendRefs");
        for (size_t k = 0; k < json_len(refs); k++) {
            str name = json_text(json_get(json_item(refs, k), "name"));
            OK(str_ends(name, S("-predictor")));
            str runtime = str_upto(name, name.n - strlen("-predictor"));
            str made = arena_printf(&w->c.arena, "PATCH " RUNTIMES STR_FMT " ", STR_ARG(runtime));
            bool written = str_find(buf_str(&w->c.log), made) != SIZE_MAX;
            w->routes++;
            if (!OK(written))
                printf("# a route to " STR_FMT ", which was never created\n", STR_ARG(runtime));
        }
    }
}

/* All of the operator's writes of this walk. */
static void check_writes(struct world *w)
{
    str rest = buf_str(&w->c.log), line;
    while (str_cut(&rest, '\n', &line)) {
        if (takes(&line,
                  "PATCH /apis/serving.kserve.io/v1beta1/namespaces/ml-team/inferenceservices/"))
            check_runtime(w, line);
        else if (takes(&line,
                       "PATCH /apis/gateway.networking.k8s.io/v1/namespaces/ml-team/httproutes/"))
            check_route(w, line);
        else
            OK(!str_starts(line, S("DELETE /apis/serving.kserve.io/v1beta1/namespaces/ml-team/"
                                   "inferenceservices")));
    }
}

static void walk(uint64_t seed, size_t *runtimes, size_t *routes)
{
    static void (*const events[])(struct world *) = {
        create_any, create_any, create_any,     delete_any,     change_any,     change_any,
        change_any, restart,    set_any_status, answer_runtime, break_requests,
    };
    struct world w = { 0 };
    random_init(&w.r, seed, 1);
    aim_test_start(&w.c);
    aim_test_start_operator(&w.c);
    for (size_t i = 0; i < countof(objects); i++)
        if (random_below(&w.r, 4))
            create_form(&w, &objects[i]);
    for (int i = 0; i < EVENTS; i++) {
        events[random_below(&w.r, countof(events))](&w);
        cluster_until(&w.c, cluster_now(&w.c) + (int64_t)random_below(&w.r, 6));
    }
    w.c.failures = 0;
    cluster_until(&w.c, cluster_now(&w.c) + 60);
    check_writes(&w);
    *runtimes += w.runtimes;
    *routes += w.routes;
    cluster_stop(&w.c);
}

static void no_order_of_events_degrades_a_service(void)
{
    size_t runtimes = 0, routes = 0;
    for (uint64_t seed = 1; seed <= WORLDS; seed++)
        walk(seed, &runtimes, &routes);
    OK(runtimes >= 2 * WORLDS);
    OK(routes >= WORLDS);
    printf("# %zu InferenceServices and %zu backends of routes were written\n", runtimes, routes);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(no_order_of_events_degrades_a_service), { 0 } });
}
