/* Model sources end to end: a registry in the same process that lists repositories and tags in pages, and the models that
 * appear. What fails removes nothing; what was asked is not asked again before its time. */
#include "aim_world.h"
#include "runtimeconfig/modelsource_check.h"

struct shop {
    struct http_server *server;
    uint16_t port;
    size_t lists; /* pages of repositories that were asked for */
    bool away, basic;
    bool third; /* a repository that appears later */
};

/* Pages of one name each: the second page is asked for with `last`. */
static void answer_page(struct exchange *x, const char *key, const char *const *names, size_t n)
{
    str query = exchange_query(x);
    size_t at = str_find(query, S("last="));
    int64_t from = 0;
    if (at != SIZE_MAX)
        (void)str_to_i64(str_from(query, at + strlen("last=")), &from);
    struct arena *a = exchange_arena(x);
    str body = arena_printf(a, "{\"%s\":[\"%s\"]}", key, names[from]);
    str link = arena_printf(a, "<" STR_FMT "?n=1&last=%lld>; rel=\"next\"",
                            STR_ARG(exchange_path(x)), (long long)from + 1);
    struct http_headers next = HTTP_HEADERS({ S("link"), link });
    exchange_answer(x, 200, (size_t)from + 1 < n ? next : (struct http_headers){ 0 }, body);
}

static void on_request(void *context, struct exchange *x)
{
    static const char *const repositories[] = { "acme/chat", "acme/vision", "other/tool",
                                                "acme/late" };
    static const char *const tags[] = { "1.0.0", "1.1.0", "2.0.0", "latest" };
    struct shop *s = context;
    bool known = str_eqc(exchange_header(x, S("authorization")), "Basic Ym9iOnNlY3JldA==");
    s->lists += str_eqc(exchange_path(x), "/v2/_catalog");
    if (s->away)
        exchange_answer(x, 503, (struct http_headers){ 0 }, S("{}"));
    else if (s->basic && !known)
        exchange_answer(x, 401, HTTP_HEADERS({ S("www-authenticate"), S("Basic realm=\"r\"") }),
                        S("{}"));
    else if (str_eqc(exchange_path(x), "/v2/_catalog"))
        answer_page(x, "repositories", repositories, s->third ? 4 : 3);
    else if (str_ends(exchange_path(x), S("/tags/list")))
        answer_page(x, "tags", tags, 4);
    else if (str_eqc(exchange_path(x), "/v2/"))
        exchange_answer(x, 200, (struct http_headers){ 0 }, S("{}"));
    else
        exchange_answer(x, 404, (struct http_headers){ 0 }, S("{}"));
}

static void start_operator(struct cluster *c)
{
    static const char *const settings[] = { "aim-operator-namespace",
                                            "kaiwo-system",
                                            "registry-plain-http",
                                            "127.0.0.1:*",
                                            "registry-allow-private",
                                            "127.0.0.1:*",
                                            NULL };
    cluster_operator(c, &runtimeconfig_feature, settings);
    aim_test_wait(c);
}

static void open_world(struct cluster *c, struct shop *s)
{
    err_t e;
    *s = (struct shop){ 0 };
    aim_test_start(c);
    OK_CALL(http_server_new(c->loop,
                            &(struct http_server_options){ .on_request = on_request, .context = s },
                            &s->server, &e),
            &e);
    s->port = http_server_port(s->server);
    start_operator(c);
}

static void close_world(struct cluster *c, struct shop *s)
{
    cluster_operator_down(c);
    http_server_free(s->server);
    cluster_stop(c);
}

static void create_source(struct cluster *c, const struct shop *s, const char *name,
                          const char *spec)
{
    aim_test_create(c, aim_test_kind(AIM_MODEL_SOURCE), NULL,
                    arena_printf(&c->arena,
                                 "{metadata: {name: %s}, spec: {registry: '127.0.0.1:%u', %s}}",
                                 name, s->port, spec)
                        .p);
    cluster_until(c, cluster_now(c) + 30);
}

/* The models that a source made; `image` is a part of their image. */
static size_t count_models(struct cluster *c, const char *image)
{
    struct cluster_answer a =
        cluster_do(c, KUBE_LIST, aim_test_kind(AIM_CLUSTER_MODEL), NULL, NULL, S(""));
    const struct json *items = json_get(a.object, "items");
    size_t n = 0;
    for (size_t i = 0; i < json_len(items); i++) {
        const struct json *o = json_item(items, i);
        bool ours = json_len(json_at(o, "metadata", "ownerReferences", NULL)) > 0;
        n += ours &&
             str_find(json_text(json_at(o, "spec", "image", NULL)), str_c(image)) != SIZE_MAX;
    }
    return n;
}

static const struct json *check(struct cluster *c, const char *name, const char *word,
                                const char *reason)
{
    const struct json *status = aim_test_status(c, AIM_MODEL_SOURCE, NULL, name);
    EQ_STR(json_text(json_get(status, "status")), str_c(word));
    EQ_STR(aim_test_reason(status, "FiltersReady"), str_c(reason));
    return status;
}

static void a_wildcard_finds_repositories_and_tags(void)
{
    struct cluster c;
    struct shop s;
    open_world(&c, &s);
    create_source(&c, &s, "acme",
                  "filters: [{image: 'acme/*', exclude: [acme/vision], versions: "
                  "['>=1.1.0']}]");
    const struct json *status = check(&c, "acme", "Ready", "AllFiltersSucceeded");
    EQ_INT((int64_t)count_models(&c, "acme/chat:1.1.0"), 1);
    EQ_INT((int64_t)count_models(&c, "acme/chat:2.0.0"), 1);
    EQ_INT((int64_t)count_models(&c, ""), 2);
    EQ_INT(json_int(json_get(status, "discoveredModels"), 0), 2);
    OK(json_text(json_get(status, "lastSyncTime")).n > 0);
    size_t listed = s.lists;
    cluster_until(&c, cluster_now(&c) + 1800);
    cluster_operator_down(&c);
    start_operator(&c);
    cluster_until(&c, cluster_now(&c) + 600);
    EQ_INT((int64_t)s.lists, (int64_t)listed); /* not due, although the operator was restarted */
    s.third = true;
    cluster_until(&c, cluster_now(&c) + 1800);
    OK(s.lists > listed);
    EQ_INT((int64_t)count_models(&c, "acme/late"), 2);
    close_world(&c, &s);
}

/* A tag, or an exact version, needs no registry; one that is away fails the other filter only, and removes nothing. */
static void a_registry_that_is_away_removes_nothing(void)
{
    struct cluster c;
    struct shop s;
    open_world(&c, &s);
    create_source(&c, &s, "mixed",
                  "syncInterval: 10m, filters: [{image: 'acme/fixed:7'}, {image: acme/exact, "
                  "versions: ['3.0.0']}, {image: acme/chat, versions: ['^1.0.0']}]");
    check(&c, "mixed", "Ready", "AllFiltersSucceeded");
    EQ_INT((int64_t)count_models(&c, ""), 4);
    s.away = true;
    cluster_until(&c, cluster_now(&c) + 700);
    check(&c, "mixed", "Degraded", "SomeFiltersFailed");
    EQ_INT((int64_t)count_models(&c, ""), 4);
    OK(aim_test_count_events(&c, "default", "mixed", "FilterFailed") > 0);
    s.away = false;
    cluster_until(&c, cluster_now(&c) + 700);
    check(&c, "mixed", "Ready", "AllFiltersSucceeded");
    close_world(&c, &s);
}

static void credentials_and_limits_apply(void)
{
    struct cluster c;
    struct shop s;
    open_world(&c, &s);
    s.basic = true;
    create_source(&c, &s, "shut", "filters: [{image: 'acme/*'}]");
    check(&c, "shut", "Failed", "AllFiltersFailed");
    EQ_INT((int64_t)count_models(&c, ""), 0);
    s.basic = false;
    create_source(&c, &s, "few", "maxModels: 3, filters: [{image: 'acme/*'}]");
    const struct json *status = check(&c, "few", "Ready", "AllFiltersSucceeded");
    EQ_STR(aim_test_reason(status, "MaxModelsLimitReached"), S("LimitReached"));
    EQ_INT((int64_t)count_models(&c, ""), 3);
    create_source(&c, &s, "odd", "filters: [{image: acme/chat, versions: ['newest']}]");
    check(&c, "odd", "Degraded", "InvalidConstraint");
    close_world(&c, &s);
}

/* Neither credentials nor paths that leave the registry end up in the image of a model, nor in an event. */
static void credentials_and_bad_paths_become_no_model(void)
{
    const struct {
        struct aim_modelsource_image image;
        bool good;
    } t[] = { { { S("ghcr.io"), S("a/b"), S("1.0.0") }, true },
              { { S("127.0.0.1:5000"), S("a/b_c/d-e.f"), S("v1") }, true },
              { { S("[::1]:5000"), S("a/b"), S("v1") }, true },
              { { S("user:secret@127.0.0.1:5000"), S("a/b"), S("1") }, false },
              { { S(".."), S("../x"), S("1") }, false },
              { { S("ghcr.io"), S("../../x"), S("1") }, false },
              { { S("ghcr.io"), S("a//b"), S("1") }, false },
              { { S("ghcr.io"), S("a/"), S("1") }, false },
              { { S("ghcr.io"), S("A/b"), S("1") }, false },
              { { S("ghcr.io"), S("a/b"), S("1 2") }, false },
              { { S("x\r\nHost: y"), S("a/b"), S("1") }, false },
              { { S("http://ghcr.io"), S("a/b"), S("1") }, false } };
    struct cluster c;
    struct shop s;
    open_world(&c, &s);
    for (size_t i = 0; i < countof(t); i++) {
        err_t e = { 0 };
        if (!EQ_INT(aim_modelsource_check(&c.arena, &t[i].image, &e) == 0, t[i].good))
            tap_note(__FILE__, __LINE__, "row %zu", i);
        OK(!strstr(e.text, "secret"));
    }
    create_source(&c, &s, "fine",
                  "filters: [{image: 'ann:secret@127.0.0.1/a/b:1.0.0'}, {image: '../../x:1'}, "
                  "{image: a/c, versions: ['1.0.0-x y']}, {image: 'a/b:1.0.0'}]");
    check(&c, "fine", "Degraded", "SomeFiltersFailed");
    EQ_INT((int64_t)count_models(&c, ""), 1);
    EQ_INT((int64_t)count_models(&c, "/a/b:1.0.0"), 1);
    struct cluster_answer a = cluster_do(&c, KUBE_LIST, &resource_events, "default", NULL, S(""));
    OK(json_len(json_get(a.object, "items")) > 0);
    OK(str_find(json_to_str(&c.arena, a.object), S("ann:secret")) == SIZE_MAX);
    struct json *leak = aim_test_yaml(
        &c, "{apiVersion: aim.silogen.ai/v1alpha1, kind: AIMClusterModelSource, metadata: {name: "
            "leak}, spec: {registry: 'ann:secret@127.0.0.1', filters: [{image: 'a/b:1'}]}}");
    a = cluster_do(&c, KUBE_CREATE, aim_test_kind(AIM_MODEL_SOURCE), NULL, NULL,
                   json_to_str(&c.arena, leak));
    EQ_INT(a.code, 422);
    close_world(&c, &s);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_wildcard_finds_repositories_and_tags),
                                        TAP(a_registry_that_is_away_removes_nothing),
                                        TAP(credentials_and_limits_apply),
                                        TAP(credentials_and_bad_paths_become_no_model),
                                        { 0 } });
}
