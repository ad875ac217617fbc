/* See install_doors.h.
 *
 * The certificates are made here, because then flyball needs no right to write Secrets or the
 * APIService: a CA that signs one serving certificate and is forgotten. Installing again makes new
 * ones for all objects at once; the operator reloads the files. */
#include "install_doors.h"

#include "../base/base64.h"
#include "../base/clock.h"
#include "../net/cert.h"

#define SECRET "flyball-serving"
#define CERT_DIR "/etc/flyball/serving"
enum { CERT_DAYS = 3650 };

/* Both services share one certificate with all of their names. The CA's key exists only in this process. */
int install_doors_init(struct arena *a, const char *ns, struct install_doors *d, err_t *e)
{
    static const char *const services[] = { "flyball-scaler", "flyball-metrics-api" };
    auto_cert_pair struct cert_pair ca = { 0 }, cert = { 0 };
    str names[2 * countof(services)];
    for (size_t i = 0; i < countof(services); i++) {
        names[2 * i] = arena_printf(a, "%s.%s", services[i], ns);
        names[2 * i + 1] = arena_printf(a, "%s.%s.svc", services[i], ns);
    }
    struct cert_request request = { .use = CERT_CA,
                                    .common_name = S("flyball-serving-ca"),
                                    .now_ns = clock_wall_ns(),
                                    .days = CERT_DAYS };
    int r = cert_make(&request, &ca, e);
    if (r < 0)
        return r;
    request.use = CERT_SERVER;
    request.common_name = S("flyball");
    request.names = names;
    request.name_count = countof(names);
    request.issuer = &ca;
    if ((r = cert_make(&request, &cert, e)) < 0)
        return r;
    d->ca = arena_str(a, buf_str(&ca.cert));
    d->cert = arena_str(a, buf_str(&cert.cert));
    d->key = arena_str(a, buf_str(&cert.key));
    return 0;
}

/* The manifests have these lists; a Deployment of another shape is left as it is, here and below. */
static void add_arg(struct arena *a, struct json *container, const char *arg)
{
    struct json *args = json_get(container, "args");
    if (args)
        json_push(a, args, json_new_str(a, str_c(arg)));
}

static void add_port(struct arena *a, struct json *container, const char *name, int64_t port)
{
    struct json *ports = json_get(container, "ports"), *one = json_new_obj(a);
    json_set_str(a, one, "name", str_c(name));
    json_set_int(a, one, "containerPort", port);
    if (ports)
        json_push(a, ports, one);
}

/* The leader labels its own pod, so that the Service of the doors selects it. */
static void add_pod_name(struct arena *a, struct json *container)
{
    struct json *env = json_get(container, "env"), *one = json_new_obj(a);
    json_set_str(a, one, "name", S("POD_NAME"));
    json_set_str(a, json_make(a, one, "valueFrom", "fieldRef", NULL), "fieldPath",
                 S("metadata.name"));
    if (env)
        json_push(a, env, one);
}

/* The certificate and the tokens of the doors, from the Secret that is printed before. */
static void add_volume(struct arena *a, struct json *pod, struct json *container)
{
    struct json *volume = json_new_obj(a), *mount = json_new_obj(a), *volumes = json_new_arr(a),
                *mounts = json_new_arr(a);
    json_set_str(a, volume, "name", S("serving"));
    json_set_str(a, json_make(a, volume, "secret", NULL), "secretName", S(SECRET));
    json_push(a, volumes, volume);
    json_set(a, pod, S("volumes"), volumes);
    json_set_str(a, mount, "name", S("serving"));
    json_set_str(a, mount, "mountPath", S(CERT_DIR));
    json_set_bool(a, mount, "readOnly", true);
    json_push(a, mounts, mount);
    json_set(a, container, S("volumeMounts"), mounts);
}

/* Adds flags, ports, the certificate and the pod's name to the operator's Deployment; other objects pass
 * unchanged. */
void install_doors_extend(struct arena *a, const struct install_doors *d, struct json *object)
{
    struct json *pod = json_at(object, "spec", "template", "spec", NULL);
    struct json *container = json_item(json_get(pod, "containers"), 0);
    if (!(d->scaler || d->external_metrics) ||
        !str_eqc(json_text(json_get(object, "kind")), "Deployment") || !container)
        return;
    add_arg(a, container, "--serving-cert-dir=" CERT_DIR);
    add_pod_name(a, container);
    add_volume(a, pod, container);
    if (d->scaler) {
        add_arg(a, container, "--scaler-listen=:9443");
        add_port(a, container, "scaler", 9443);
    }
    if (d->external_metrics) {
        add_arg(a, container, "--external-metrics-listen=:6443");
        add_port(a, container, "metrics-api", 6443);
    }
}

static str encode(struct arena *a, str text)
{
    auto_buf struct buf out = { 0 };
    base64_encode(&out, text);
    return arena_str(a, buf_str(&out));
}

/* The APIService trusts the CA that was made a moment ago. */
void install_doors_finish(struct arena *a, const struct install_doors *d, const char *ns,
                          struct json *object)
{
    if (!str_eqc(json_text(json_get(object, "kind")), "APIService"))
        return;
    struct json *spec = json_get(object, "spec");
    json_set_str(a, spec, "caBundle", encode(a, d->ca));
    json_set_str(a, json_get(spec, "service"), "namespace", str_c(ns));
}

struct json *install_doors_secret(struct arena *a, const struct install_doors *d, const char *ns)
{
    struct json *secret = json_new_obj(a), *data = json_new_obj(a),
                *meta = json_make(a, secret, "metadata", NULL);
    json_set_str(a, secret, "apiVersion", S("v1"));
    json_set_str(a, secret, "kind", S("Secret"));
    json_set_str(a, secret, "type", S("kubernetes.io/tls"));
    json_set_str(a, meta, "name", S(SECRET));
    json_set_str(a, meta, "namespace", str_c(ns));
    json_set_str(a, json_make(a, meta, "labels", NULL), "app.kubernetes.io/part-of", S("flyball"));
    json_set_str(a, data, "tls.crt", encode(a, d->cert));
    json_set_str(a, data, "tls.key", encode(a, d->key));
    json_set_str(a, data, "ca.crt", encode(a, d->ca));
    json_set(a, secret, S("data"), data);
    return secret;
}
