/* Fills a cluster with the pods of pods.h: loadpods PODS, the cluster of $KUBECONFIG. What only a server
 * may set is left out, and so is the node: what runs on a node that does not exist is deleted. */
#include "base/log.h"
#include "kube/kube.h"
#include "pods.h"

#include <stdio.h>

enum { AT_ONCE = 32 };

static struct {
    struct loop *loop;
    struct kube *kube;
    int64_t pods, next, done, failed;
} load;

static void send_next(void);

static void created(void *context, const struct kube_reply *reply)
{
    (void)context;
    if (reply->failure && reply->reason != KUBE_ALREADY_EXISTS && !load.failed++)
        fprintf(stderr, "loadpods: %s\n", reply->failure);
    if (++load.done == load.pods)
        loop_stop(load.loop);
    else
        send_next();
}

static void send_next(void)
{
    if (load.next == load.pods)
        return;
    auto_arena struct arena a = { 0 };
    auto_buf struct buf text = { 0 };
    struct json *pod;
    pods_write(&text, (size_t)load.next++, 1);
    if (json_parse(&a, buf_str(&text), &pod, NULL) < 0)
        abort();
    struct json *meta = json_get(pod, "metadata"), *spec = json_get(pod, "spec");
    json_del(meta, S("resourceVersion"));
    json_del(meta, S("uid"));
    json_del(meta, S("ownerReferences"));
    json_del(spec, S("nodeName"));
    json_del(spec, S("serviceAccountName"));
    json_set_bool(&a, spec, "automountServiceAccountToken", false);
    for (size_t i = 0; i < json_len(json_get(spec, "containers")); i++)
        json_del(json_item(json_get(spec, "containers"), i), S("volumeMounts"));
    json_del(pod, S("status"));
    kube_send(load.kube, &(struct kube_request){ .verb = KUBE_CREATE,
                                                 .resource = &resource_pods,
                                                 .ns = json_text(json_get(meta, "namespace")),
                                                 .body = json_to_str(&a, pod),
                                                 .done = created });
}

int main(int argc, char **argv)
{
    err_t e;
    struct kube_config *config;
    if (argc < 2 || str_to_i64(str_c(argv[1]), &load.pods) < 0 || load.pods < 1)
        return 2;
    if (loop_new(&(struct loop_options){ 0 }, &load.loop, &e) < 0 ||
        kube_config_load(&(struct kube_config_options){ 0 }, &config, &e) < 0 ||
        kube_new(&(struct kube_options){ .loop = load.loop, .config = config, .rate = -1 },
                 &load.kube, &e) < 0) {
        fprintf(stderr, "loadpods: %s\n", e.text);
        return 1;
    }
    kube_config_free(config);
    for (int i = 0; i < AT_ONCE; i++)
        send_next();
    loop_run(load.loop);
    kube_free(load.kube);
    loop_free(load.loop);
    return load.failed ? 1 : 0;
}
