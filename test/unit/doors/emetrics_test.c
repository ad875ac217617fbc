/* The API group external.metrics.k8s.io as the HPA controller reads it: through the front proxy of an
 * API server, or with a token. */
#include "doors_world.h"

#include "doors/emetrics_core.h"
#include "net/cert.h"

struct proxy {
    struct cluster c;
    struct cert_pair ca, cert; /* of the front proxy */
};

static void make_cert(struct cert_pair *ret, enum cert_use use, const char *name,
                      const struct cert_pair *issuer)
{
    err_t e;
    cluster_check(cert_make(&(struct cert_request){ .use = use,
                                                    .common_name = str_c(name),
                                                    .now_ns = INT64_C(1780000000) * NS_PER_S,
                                                    .days = 3650, /* OpenSSL reads the real clock */
                                                    .issuer = issuer },
                            ret, &e),
                  &e);
}

static void start_proxy(struct proxy *p)
{
    *p = (struct proxy){ 0 };
    make_cert(&p->ca, CERT_CA, "front-proxy-ca", NULL);
    make_cert(&p->cert, CERT_CLIENT, "front-proxy-client", &p->ca);
    doors_world_options = (struct doors_options){ .emetrics_listen = "127.0.0.1:0" };
    doors_world_start(&p->c);
    doors_world_set(1, "b", 5);
    struct json *map = json_new_obj(&p->c.arena), *data;
    struct arena *a = &p->c.arena;
    json_set_str(a, map, "apiVersion", S("v1"));
    json_set_str(a, map, "kind", S("ConfigMap"));
    json_set_str(a, json_make(a, map, "metadata", NULL), "name",
                 S("extension-apiserver-authentication"));
    data = json_make(a, map, "data", NULL);
    json_set_str(a, data, "requestheader-client-ca-file", buf_str(&p->ca.cert));
    json_set_str(a, data, "requestheader-allowed-names", S("[\"front-proxy-client\"]"));
    json_set_str(a, data, "requestheader-username-headers", S("[\"X-Remote-User\"]"));
    json_set_str(a, data, "requestheader-group-headers", S("[\"X-Remote-Group\"]"));
    json_set_str(a, data, "requestheader-extra-headers-prefix", S("[\"X-Remote-Extra-\"]"));
    cluster_create(&p->c, &resource_configmaps, "kube-system", map);
    cluster_until(&p->c, cluster_now(&p->c) + 5);
}

static void stop(struct proxy *p)
{
    cert_pair_done(&p->ca);
    cert_pair_done(&p->cert);
    cluster_stop(&p->c);
}

struct asked {
    const struct cert_pair *cert;
    const char *user, *group, *token, *method;
};

/* The status of a GET; the body is in the cluster's arena. */
static int get(struct proxy *p, const char *path, struct asked who, str *ret_body)
{
    struct doors_answer a = { 0 };
    struct tls *tls;
    err_t e;
    auto_buf struct buf bearer = { 0 };
    buf_printf(&bearer, "Bearer %s", who.token ? who.token : "");
    cluster_check(tls_client_new(
                      &(struct tls_client_options){
                          .skip_verify = true,
                          .cert_pem = who.cert ? buf_str(&who.cert->cert) : S(""),
                          .key_pem = who.cert ? buf_str(&who.cert->key) : S("") },
                      &tls, &e),
                  &e);
    struct http_client *client =
        doors_world_client(&p->c, doors_emetrics_port(doors_world_doors), tls);
    struct http_header headers[3];
    size_t n = 0;
    if (who.user)
        headers[n++] = (struct http_header){ S("x-remote-user"), str_c(who.user) };
    if (who.group)
        headers[n++] = (struct http_header){ S("x-remote-group"), str_c(who.group) };
    if (who.token)
        headers[n++] = (struct http_header){ S("authorization"), buf_str(&bearer) };
    http_client_send(client,
                     &(struct http_request){ .method = str_c(who.method ? who.method : "GET"),
                                             .target = str_c(path),
                                             .headers = { headers, n },
                                             .on_head = doors_world_head,
                                             .on_data = doors_world_data,
                                             .on_done = doors_world_done,
                                             .context = &a });
    while (!a.done)
        loop_turn(p->c.loop);
    *ret_body = arena_str(&p->c.arena, buf_str(&a.body));
    buf_done(&a.body);
    http_client_free(client);
    tls_unref(tls);
    return a.status;
}

#define VALUES "/apis/external.metrics.k8s.io/v1beta1/namespaces/chat/wva_desired_replicas"

static void the_front_proxy_names_the_user(void)
{
    struct proxy p;
    str body;
    start_proxy(&p);
    struct asked admin = { &p.cert, "hpa", "system:masters", NULL, NULL };
    EQ_INT(get(&p, VALUES, admin, &body), 200);
    OK(str_find(body, S("\"value\":\"3\"")) != SIZE_MAX);
    OK(str_find(body, S("\"value\":\"5\"")) != SIZE_MAX);
    OK(str_find(body, S("\"timestamp\":\"2026-")) != SIZE_MAX);
    struct asked other = { &p.cert, "mallory", NULL, NULL, NULL };
    EQ_INT(get(&p, VALUES, other, &body), 403);
    struct asked forged = { NULL, "hpa", "system:masters", NULL, NULL };
    EQ_INT(get(&p, VALUES, forged, &body), 401);
    struct asked token = { NULL, "hpa", "system:masters", "wrong", NULL };
    EQ_INT(get(&p, VALUES, token, &body), 401);
    token.token = apiserver_admin_token(p.c.server);
    EQ_INT(get(&p, VALUES, token, &body), 200);
    stop(&p);
}

static void certificates_of_others_do_not_count(void)
{
    struct proxy p;
    str body;
    start_proxy(&p);
    auto_cert_pair struct cert_pair ca = { 0 }, foreign = { 0 }, named = { 0 };
    make_cert(&ca, CERT_CA, "another-ca", NULL);
    make_cert(&foreign, CERT_CLIENT, "front-proxy-client", &ca);
    make_cert(&named, CERT_CLIENT, "someone", &p.ca);
    struct asked who = { &foreign, "hpa", "system:masters", NULL, NULL };
    OK(get(&p, VALUES, who, &body) != 200);
    who.cert = &named;
    EQ_INT(get(&p, VALUES, who, &body), 401);
    stop(&p);
}

static void selectors_choose_and_stale_values_fail(void)
{
    struct proxy p;
    str body;
    start_proxy(&p);
    struct asked admin = { &p.cert, "hpa", "system:masters", NULL, NULL };
    EQ_INT(get(&p, VALUES "?labelSelector=variant_name%3Db%2Cexported_namespace%3Dchat", admin,
               &body),
           200);
    OK(str_find(body, S("\"value\":\"3\"")) == SIZE_MAX);
    OK(str_find(body, S("\"value\":\"5\"")) != SIZE_MAX);
    EQ_INT(get(&p, VALUES "?labelSelector=variant_name%20in%20(x)", admin, &body), 200);
    OK(str_find(body, S("\"items\":[]")) != SIZE_MAX);
    EQ_INT(get(&p, VALUES "?labelSelector=a%3D%3D%3Db", admin, &body), 400);
    EQ_INT(get(&p, VALUES "?labelSelector=%zz", admin, &body), 400);
    doors_world_values[1].state = DOOR_STALE;
    EQ_INT(get(&p, VALUES, admin, &body), 503);
    EQ_INT(get(&p, VALUES "?labelSelector=variant_name%3Da", admin, &body), 200);
    doors_world_leads = false;
    EQ_INT(get(&p, VALUES "?labelSelector=variant_name%3Da", admin, &body), 503);
    stop(&p);
}

static void the_group_can_be_discovered(void)
{
    struct proxy p;
    str body;
    start_proxy(&p);
    struct asked admin = { &p.cert, "hpa", "system:masters", NULL, NULL }, nobody = { 0 };
    EQ_INT(get(&p, "/apis/external.metrics.k8s.io/v1beta1", admin, &body), 200);
    OK(str_find(body, S("\"kind\":\"APIResourceList\"")) != SIZE_MAX);
    OK(str_find(body, S("workload_optimized_replicas")) != SIZE_MAX);
    EQ_INT(get(&p, "/apis", admin, &body), 200);
    EQ_INT(get(&p, "/apis/external.metrics.k8s.io", admin, &body), 200);
    EQ_INT(get(&p, "/healthz", nobody, &body), 200);
    EQ_INT(get(&p, "/apis/external.metrics.k8s.io/v1beta1/namespaces/chat/other", admin, &body),
           404);
    EQ_INT(get(&p, "/apis/external.metrics.k8s.io/v1beta1x", admin, &body), 404);
    admin.method = "POST";
    EQ_INT(get(&p, VALUES, admin, &body), 405);
    stop(&p);
}

static void ratios_are_quantities(void)
{
    auto_arena struct arena a = { 0 };
    struct json *list = emetrics_list(&a);
    struct emetrics_item item = { S("n"), S("v"), S("t"), S("m"), S("x"), 3, 2, 0 };
    emetrics_add(&a, list, EMETRICS_RATIO, &item);
    item.current = 0;
    emetrics_add(&a, list, EMETRICS_RATIO, &item);
    const struct json *items = json_get(list, "items");
    EQ_STR(json_text(json_get(json_item(items, 0), "value")), S("1500m"));
    EQ_STR(json_text(json_get(json_item(items, 1), "value")), S("3"));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(the_front_proxy_names_the_user),
                                        TAP(certificates_of_others_do_not_count),
                                        TAP(selectors_choose_and_stale_values_fail),
                                        TAP(the_group_can_be_discovered),
                                        TAP(ratios_are_quantities),
                                        { 0 } });
}
