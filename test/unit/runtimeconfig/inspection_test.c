/* From an image to templates: a registry in the same process, the model controller, pull secrets, and every way in which
 * that can fail. The metadata end up in the status; a failure is reported, and removes nothing. */
#include "aim_world.h"
#include "base/base64.h"
#include "base/sha256.h"

#define CONFIG                                                                                     \
    "{\"config\":{\"Labels\":{\"com.amd.aim.model.canonicalName\":\"acme/tiny\","                  \
    "\"com.amd.aim.model.recommendedDeployments\":\"[{'gpuModel':'MI300X','gpuCount':1,"           \
    "'metric':'latency','precision':'fp8'}]\"}}}"
#define BROKEN "{\"config\":{\"Labels\":{\"com.amd.aim.model.recommendedDeployments\":\"[7]\"}}}"

static const char ns[] = "ml-team";

struct depot {
    struct http_server *server;
    uint16_t port;
    size_t manifests;
    int status; /* of manifests; 0: 200 */
    bool broken, basic;
};

static str config_of(const struct depot *d)
{
    return d->broken ? S(BROKEN) : S(CONFIG);
}

static void answer_manifest(struct depot *d, struct exchange *x)
{
    char hex[SHA256_HEX + 1];
    sha256_hex(config_of(d), hex);
    str body =
        arena_printf(exchange_arena(x), "{\"config\":{\"digest\":\"sha256:%s\",\"size\":%zu}}", hex,
                     config_of(d).n);
    d->manifests++;
    exchange_answer(x, d->status ? d->status : 200,
                    HTTP_HEADERS(
                        { S("content-type"), S("application/vnd.oci.image.manifest.v1+json") }),
                    body);
}

static void on_request(void *context, struct exchange *x)
{
    struct depot *d = context;
    bool known = str_eqc(exchange_header(x, S("authorization")), "Basic Ym9iOnNlY3JldA==");
    if (d->basic && !known)
        exchange_answer(x, 401, HTTP_HEADERS({ S("www-authenticate"), S("Basic realm=\"r\"") }),
                        S("{}"));
    else if (str_eqc(exchange_path(x), "/v2/"))
        exchange_answer(x, 200, (struct http_headers){ 0 }, S("{}"));
    else if (str_find(exchange_path(x), S("/manifests/")) != SIZE_MAX)
        answer_manifest(d, x);
    else
        exchange_answer(x, 200, (struct http_headers){ 0 }, config_of(d));
}

static void open_world(struct cluster *c, struct depot *d, const char *private)
{
    static const char *settings[16];
    err_t e;
    *d = (struct depot){ 0 };
    aim_test_start(c);
    OK_CALL(http_server_new(c->loop,
                            &(struct http_server_options){ .on_request = on_request, .context = d },
                            &d->server, &e),
            &e);
    d->port = http_server_port(d->server);
    const char *all[] = { "aim-operator-namespace",
                          "kaiwo-system",
                          "registry-plain-http",
                          "127.0.0.1:*",
                          "registry-allow-private",
                          private,
                          NULL };
    memcpy(settings, all, sizeof(all));
    cluster_operator(c, &runtimeconfig_feature, settings);
    aim_test_wait(c);
}

static void close_world(struct cluster *c, struct depot *d)
{
    cluster_operator_down(c);
    http_server_free(d->server);
    cluster_stop(c);
}

static void create_model(struct cluster *c, const struct depot *d, const char *name,
                         const char *more)
{
    aim_test_create(
        c, aim_test_kind(AIM_MODEL), ns,
        arena_printf(&c->arena, "{metadata: {name: %s}, spec: {image: '127.0.0.1:%u/acme/%s:1'%s}}",
                     name, d->port, name, more)
            .p);
    cluster_until(c, cluster_now(c) + 10);
}

static const struct json *check(struct cluster *c, const char *name, const char *word,
                                const char *reason)
{
    const struct json *status = aim_test_status(c, AIM_MODEL, ns, name);
    EQ_STR(json_text(json_get(status, "status")), str_c(word));
    EQ_STR(aim_test_reason(status, "MetadataExtracted"), str_c(reason));
    return status;
}

static size_t count_templates(struct cluster *c)
{
    struct cluster_answer a =
        cluster_do(c, KUBE_LIST, aim_test_kind(AIM_TEMPLATE), ns, NULL, S(""));
    return json_len(json_get(a.object, "items"));
}

/* No node has the GPU, which is not a fault of the model: it is Ready. */
static void an_image_becomes_templates(void)
{
    struct cluster c;
    struct depot d;
    open_world(&c, &d, "127.0.0.1:*");
    create_model(&c, &d, "tiny", "");
    const struct json *status = check(&c, "tiny", "Ready", "MetadataExtracted");
    EQ_STR(json_text(json_at(status, "imageMetadata", "model", "canonicalName", NULL)),
           S("acme/tiny"));
    OK(str_starts(json_text(json_get(status, "inspectedImage")), S("127.0.0.1:")));
    EQ_INT((int64_t)count_templates(&c), 1);
    EQ_INT((int64_t)d.manifests, 1);
    cluster_operator_down(&c); /* what is known is not asked for again */
    cluster_operator(&c, &runtimeconfig_feature, c.settings);
    cluster_until(&c, cluster_now(&c) + 30);
    EQ_INT((int64_t)d.manifests, 1);
    aim_test_patch(&c, aim_test_kind(AIM_MODEL), ns, "tiny",
                   arena_printf(&c.arena, "{spec: {image: '127.0.0.1:%u/acme/tiny:2'}}", d.port).p);
    cluster_until(&c, cluster_now(&c) + 30);
    EQ_INT((int64_t)d.manifests, 2); /* another image */
    check(&c, "tiny", "Ready", "MetadataExtracted");
    close_world(&c, &d);
}

static void many_models_of_one_image_ask_once(void)
{
    struct cluster c;
    struct depot d;
    open_world(&c, &d, "127.0.0.1:*");
    for (int i = 0; i < 5; i++)
        aim_test_create(&c, aim_test_kind(AIM_MODEL), ns,
                        arena_printf(&c.arena,
                                     "{metadata: {name: m%d}, spec: {image: "
                                     "'127.0.0.1:%u/acme/same:1'}}",
                                     i, d.port)
                            .p);
    cluster_until(&c, cluster_now(&c) + 10);
    EQ_INT((int64_t)d.manifests, 1);
    EQ_INT((int64_t)count_templates(&c), 5);
    close_world(&c, &d);
}

/* Each failure has its reason, and passes when its cause is gone. */
static void failures_are_reported_and_tried_again(void)
{
    static const struct {
        int status;
        bool broken;
        const char *word, *reason;
        int64_t within_s;
    } t[] = {
        { 404, false, "Failed", "ImageNotFound", 70 },
        { 403, false, "Degraded", "ImagePullAuthFailure", 70 },
        { 503, false, "Degraded", "RegistryUnreachable", 10 },
        { 429, false, "Degraded", "RateLimited", 310 },
        { 0, true, "Failed", "MetadataFormatInvalid", 70 },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct cluster c;
        struct depot d;
        open_world(&c, &d, "127.0.0.1:*");
        d.status = t[i].status;
        d.broken = t[i].broken;
        create_model(&c, &d, "tiny", "");
        check(&c, "tiny", t[i].word, t[i].reason);
        EQ_INT((int64_t)aim_test_count_events(&c, ns, "tiny", t[i].reason), 1);
        size_t asked = d.manifests;
        OK(asked <= 6);
        d.status = 0;
        d.broken = false;
        cluster_until(&c, cluster_now(&c) + t[i].within_s);
        if (!t[i].broken) /* the tag is known for 10 minutes */
            check(&c, "tiny", "Ready", "MetadataExtracted");
        close_world(&c, &d);
    }
}

/* Templates that a user wrote are used, whatever the registry answers. */
static void a_template_of_a_user_is_enough(void)
{
    struct cluster c;
    struct depot d;
    open_world(&c, &d, "127.0.0.1:*");
    d.status = 404;
    aim_test_create(&c, aim_test_kind(AIM_TEMPLATE), ns,
                    "{metadata: {name: own}, spec: {modelName: tiny, modelSources: [{modelId: a/b, "
                    "sourceUri: 'hf://a/b', size: 2Gi}]}}");
    create_model(&c, &d, "tiny", "");
    check(&c, "tiny", "Ready", "ImageNotFound");
    close_world(&c, &d);
}

static void private_registries_need_consent(void)
{
    struct cluster c;
    struct depot d;
    open_world(&c, &d, "");
    create_model(&c, &d, "tiny", "");
    const struct json *status = check(&c, "tiny", "Degraded", "MetadataExtractionFailed");
    str message = json_text(json_get(aim_status_find(status, "Ready"), "message"));
    OK(str_find(message, S("--registry-allow-private 127.0.0.1:")) != SIZE_MAX);
    EQ_INT((int64_t)d.manifests, 0);
    close_world(&c, &d);
}

/* ---- pull secrets */

static void create_secret(struct cluster *c, const struct depot *d, const char *name)
{
    auto_buf struct buf text = { 0 }, coded = { 0 };
    buf_printf(&text, "{\"auths\":{\"127.0.0.1:%u\":{\"auth\":\"Ym9iOnNlY3JldA==\"}}}", d->port);
    base64_encode(&coded, buf_str(&text));
    aim_test_create(c, &resource_secrets, ns,
                    arena_printf(&c->arena,
                                 "{metadata: {name: %s}, type: kubernetes.io/dockerconfigjson, "
                                 "data: {.dockerconfigjson: %s}}",
                                 name, coded.p)
                        .p);
}

static void secrets_of_spec_config_and_account_are_used(void)
{
    static const char *const more[] = { ", imagePullSecrets: [{name: pull}]",
                                        ", runtimeConfigName: gold", ", serviceAccountName: puller",
                                        "" };
    for (size_t i = 0; i < countof(more); i++) {
        struct cluster c;
        struct depot d;
        open_world(&c, &d, "127.0.0.1:*");
        d.basic = true;
        create_secret(&c, &d, "pull");
        aim_test_create(&c, aim_test_kind(AIM_CONFIG), ns,
                        "{metadata: {name: gold}, spec: {imagePullSecrets: [{name: pull}]}}");
        aim_test_create(&c, &resource_service_accounts, ns,
                        "{metadata: {name: puller}, imagePullSecrets: [{name: gone}, {name: "
                        "pull}]}");
        create_model(&c, &d, "tiny", more[i]);
        if (*more[i])
            check(&c, "tiny", "Ready", "MetadataExtracted");
        else
            check(&c, "tiny", "Degraded", "ImagePullAuthFailure");
        const struct json *status = aim_test_status(&c, AIM_MODEL, ns, "tiny");
        OK(str_find(json_to_str(&c.arena, status), S("secret")) == SIZE_MAX);
        close_world(&c, &d);
    }
}

static void a_missing_secret_is_named(void)
{
    struct cluster c;
    struct depot d;
    open_world(&c, &d, "127.0.0.1:*");
    create_model(&c, &d, "tiny", ", imagePullSecrets: [{name: pull}]");
    const struct json *status = check(&c, "tiny", "Degraded", "SecretNotFound");
    EQ_STR(json_text(json_get(aim_status_find(status, "MetadataExtracted"), "message")),
           S("imagePullSecret \"pull\" not found in namespace \"ml-team\""));
    EQ_INT((int64_t)d.manifests, 0);
    create_secret(&c, &d, "pull");
    cluster_until(&c, cluster_now(&c) + 70);
    check(&c, "tiny", "Ready", "MetadataExtracted");
    close_world(&c, &d);
}

/* Deleted in the middle of it; and the operator stopped in the middle of another. */
static void an_end_in_the_middle_leaves_nothing(void)
{
    struct cluster c;
    struct depot d;
    open_world(&c, &d, "127.0.0.1:*");
    for (int i = 0; i < 2; i++) {
        aim_test_create(&c, aim_test_kind(AIM_MODEL), ns,
                        arena_printf(&c.arena,
                                     "{metadata: {name: m%d}, spec: {image: "
                                     "'127.0.0.1:%u/acme/x%d:1'}}",
                                     i, d.port, i)
                            .p);
        for (int k = 0; k < 12; k++)
            loop_turn(c.loop);
        if (i == 0)
            cluster_do(&c, KUBE_DELETE, aim_test_kind(AIM_MODEL), ns, "m0", S(""));
    }
    OK(d.manifests <= 2);
    close_world(&c, &d);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(an_image_becomes_templates),
                                        TAP(many_models_of_one_image_ask_once),
                                        TAP(failures_are_reported_and_tried_again),
                                        TAP(a_template_of_a_user_is_enough),
                                        TAP(private_registries_need_consent),
                                        TAP(secrets_of_spec_config_and_account_are_used),
                                        TAP(a_missing_secret_is_named),
                                        TAP(an_end_in_the_middle_leaves_nothing),
                                        { 0 } });
}
