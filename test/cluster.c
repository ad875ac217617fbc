/* See cluster.h. */
#include "cluster.h"

void cluster_check(int result, const err_t *e)
{
    if (result < 0) {
        fprintf(stderr, "cluster: %s\n", e->text);
        exit(EXIT_FAILURE);
    }
}

void cluster_refuse(struct exchange *x, int code)
{
    static const struct {
        int code;
        const char *reason, *message;
    } words[] = { { 409, "Conflict", "the object has been modified" },
                  { 403, "Forbidden", "the test does not allow it" },
                  { 410, "Expired", "too old resource version" },
                  { 500, "InternalError", "the test breaks the server" } };
    auto_buf struct buf body = { 0 };
    for (size_t i = 0; i < countof(words); i++)
        if (words[i].code == code)
            buf_printf(&body,
                       "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\","
                       "\"reason\":\"%s\",\"message\":\"%s\",\"code\":%d}",
                       words[i].reason, words[i].message, code);
    exchange_answer(x, code, HTTP_HEADERS({ S("content-type"), S("application/json") }),
                    buf_str(&body));
}

bool cluster_intercept(void *context, struct exchange *x)
{
    struct cluster *c = context;
    str path = exchange_path(x), method = exchange_method(x);
    if (c->deaf) {
        exchange_abort(x);
        return true;
    }
    if (!str_starts(exchange_header(x, S("user-agent")), S("operator")))
        return false;
    c->operator_requests++;
    if (str_eq(method, S("GET"))) {
        bool watch = str_find(exchange_query(x), S("watch=")) != SIZE_MAX;
        c->counted_n += c->counted && str_find(path, str_c(c->counted)) != SIZE_MAX;
        if (c->hidden && str_find(path, str_c(c->hidden)) != SIZE_MAX) {
            cluster_refuse(x, 403);
            return true;
        }
        if (!watch)
            buf_printf(&c->reads, STR_FMT "\n", STR_ARG(path));
        if (watch && c->watch_code)
            cluster_refuse(x, c->watch_code);
        return watch && c->watch_code;
    }
    if (c->operator_cut) {
        exchange_abort(x);
        return true;
    }
    bool fails = c->failures > 0 && str_find(path, str_c(c->fail_path)) != SIZE_MAX;
    if (fails && c->fail_busy) {
        c->failures--;
        exchange_answer(x, 429,
                        HTTP_HEADERS({ S("content-type"), S("text/plain") },
                                     { S("retry-after"), S("1") }),
                        S("too many requests"));
        return true;
    }
    if (fails) {
        c->failures--;
        cluster_refuse(x, c->fail_code ? c->fail_code : 409);
        return true;
    }
    c->operator_writes++;
    buf_printf(&c->log, STR_FMT " " STR_FMT " " STR_FMT "\n", STR_ARG(method), STR_ARG(path),
               STR_ARG(exchange_body(x)));
    return false;
}

struct kube *cluster_client(struct cluster *c, const char *agent)
{
    struct kube_config config = { .where = S("a test"), .ns = S("default") };
    if (!c->remote) {
        config.server = str_c(apiserver_url(c->server));
        config.token = str_c(apiserver_admin_token(c->server));
    }
    struct kube *kube;
    err_t e;
    cluster_check(kube_new(&(struct kube_options){ .loop = c->loop,
                                                   .config = c->remote ? c->remote : &config,
                                                   .user_agent = str_c(agent),
                                                   .rate = -1 },
                           &kube, &e),
                  &e);
    return kube;
}

void cluster_answered(void *context, const struct kube_reply *reply)
{
    struct cluster_answer *a = context;
    a->done = true;
    a->code = reply->code;
    a->object = reply->object ? json_copy(&a->c->arena, reply->object) : NULL;
}

struct cluster_answer cluster_ask(struct cluster *c, struct kube_request request)
{
    struct cluster_answer a = { .c = c };
    request.done = cluster_answered;
    request.context = &a;
    kube_send(c->kube, &request);
    while (!a.done)
        loop_turn(c->loop);
    return a;
}

struct cluster_answer cluster_do(struct cluster *c, enum kube_verb verb,
                                 const struct resource *resource, const char *ns, const char *name,
                                 str body)
{
    return cluster_ask(c, (struct kube_request){ .verb = verb,
                                                 .resource = resource,
                                                 .ns = str_c(ns),
                                                 .name = str_c(name),
                                                 .body = body });
}

struct json *cluster_get(struct cluster *c, const struct resource *resource, const char *ns,
                         const char *name)
{
    struct cluster_answer a = cluster_do(c, KUBE_GET, resource, ns, name, S(""));
    return a.code == 200 ? a.object : NULL;
}

void cluster_create(struct cluster *c, const struct resource *resource, const char *ns,
                    const struct json *object)
{
    str name = json_text(json_at(object, "metadata", "name", NULL));
    struct cluster_answer a =
        cluster_do(c, KUBE_CREATE, resource, ns, name.p, json_to_str(&c->arena, object));
    if (a.code != 201)
        fprintf(stderr, "cluster: create %s %s: %d %s\n", resource->plural, name.p, a.code,
                json_to_str(&c->arena, a.object).p);
}

void cluster_tick(struct timer *timer)
{
    (void)timer; /* only there for time to reach it */
}

int64_t cluster_now(const struct cluster *c)
{
    return loop_wall_ns(c->loop) / NS_PER_S;
}

void cluster_until(struct cluster *c, int64_t wall_s)
{
    struct timer timer = { 0 };
    int64_t left = wall_s * NS_PER_S - loop_wall_ns(c->loop);
    timer_set(c->loop, &timer, loop_mono_ns(c->loop) + MAX(left, (int64_t)0), cluster_tick);
    while (timer_is_set(&timer))
        loop_turn(c->loop);
}

const char *cluster_setting(void *context, const char *name)
{
    const struct cluster *c = context;
    for (const char *const *s = c->settings; s && *s; s += 2)
        if (!strcmp(s[0], name))
            return s[1];
    return NULL;
}

void cluster_over(void *context)
{
    struct cluster *c = context;
    c->operator_over = true;
}

void cluster_operator(struct cluster *c, const struct feature *feature, const char *const *settings)
{
    err_t e;
    c->settings = settings;
    c->operator_kube = cluster_client(c, "operator");
    cluster_check(manager_new(&(struct manager_options){ .kube = c->operator_kube,
                                                         .identity = S("operator"),
                                                         .seed = 1,
                                                         .setting = cluster_setting,
                                                         .on_lost = cluster_over,
                                                         .context = c },
                              &c->manager, &e),
                  &e);
    cluster_check(manager_add(c->manager, feature, &e), &e);
    cluster_check(manager_run(c->manager, &e), &e);
}

void cluster_operator_down(struct cluster *c)
{
    manager_free(c->manager);
    kube_free(c->operator_kube);
    c->manager = NULL;
    c->operator_kube = NULL;
}

void cluster_install(struct cluster *c, const struct manifest *m)
{
    for (; m->name; m++) {
        struct json *documents = NULL;
        err_t e;
        cluster_check(manifest_read(m, &c->arena, &documents, &e), &e);
        cluster_create(c, &resource_crds, NULL, json_item(documents, 0));
    }
}

void cluster_start_on(struct cluster *c, int64_t start_s, const struct kube_config *remote)
{
    err_t e;
    *c = (struct cluster){ .fail_path = "", .remote = remote };
    snprintf(c->dir, sizeof(c->dir), "/tmp/flyball-cluster-XXXXXX");
    if (!mkdtemp(c->dir))
        exit(EXIT_FAILURE);
    cluster_check(loop_new(&(struct loop_options){ .time = LOOP_VIRTUAL,
                                                   .start_wall_ns = start_s * NS_PER_S },
                           &c->loop, &e),
                  &e);
    if (!remote)
        cluster_check(apiserver_new(c->loop,
                                    &(struct apiserver_options){ .data = c->dir,
                                                                 .in_memory = true,
                                                                 .insecure_http = true,
                                                                 .intercept = cluster_intercept,
                                                                 .intercept_context = c },
                                    &c->server, &e),
                      &e);
    c->kube = cluster_client(c, "test");
    if (!remote)
        cluster_install(c, manifests_crds);
}

void cluster_start(struct cluster *c, int64_t start_s)
{
    cluster_start_on(c, start_s, NULL);
}

void cluster_remove_file(const char *dir, const char *name)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    unlink(path);
}

void cluster_stop(struct cluster *c)
{
    if (c->manager)
        cluster_operator_down(c);
    kube_free(c->kube);
    apiserver_free(c->server);
    loop_free(c->loop);
    static const char *const files[] = { "admin.token", "reader.token", "kubeconfig", "ca.crt",
                                         "ca.key" };
    for (size_t i = 0; i < countof(files); i++)
        cluster_remove_file(c->dir, files[i]);
    rmdir(c->dir);
    buf_done(&c->log);
    buf_done(&c->reads);
    arena_done(&c->arena);
}
