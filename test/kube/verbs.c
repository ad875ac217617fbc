/* Every verb of the client against a real server, one after the other: each step reports whether the answer
 * was what it should be. */
#include "kube/kube.h"

#include <stdio.h>

void verbs_run(struct kube *k, str ns);

struct step {
    const char *what;
    enum kube_verb verb;
    const struct resource *resource;
    const char *name, *subresource, *body;
    enum kube_reason reason;
    const char *has; /* what the answer must hold */
};

#define MAP "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"verbs\"},"
#define DEPLOYMENT                                                                                                    \
    "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"name\":\"verbs\"},\"spec\":{\"replicas\":0," \
    "\"selector\":{\"matchLabels\":{\"a\":\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{"   \
    "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"limits\":{\"cpu\":\"1\",\"memory\":\"1Gi\"}}}]}}}}"
#define POD                                                                                                                \
    "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"verbs\"},\"spec\":{\"containers\":[{\"name\":\"c\"," \
    "\"image\":\"i\",\"resources\":{\"limits\":{\"cpu\":\"1\"},\"requests\":{\"cpu\":\"500m\"}}}]}}"

static const struct step steps[] = {
    { "get what is not there", KUBE_GET, &resource_configmaps, "verbs", NULL, NULL, KUBE_NOT_FOUND,
      "not found" },
    { "create", KUBE_CREATE, &resource_configmaps, "", NULL, MAP "\"data\":{\"a\":\"1\"}}", KUBE_OK,
      "\"a\":\"1\"" },
    { "create again", KUBE_CREATE, &resource_configmaps, "", NULL, MAP "\"data\":{}}",
      KUBE_ALREADY_EXISTS, "already exists" },
    { "create what is invalid", KUBE_CREATE, &resource_configmaps, "", NULL,
      "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"Not Valid\"}}",
      KUBE_INVALID, "Invalid value" },
    { "get", KUBE_GET, &resource_configmaps, "verbs", NULL, NULL, KUBE_OK, "\"a\":\"1\"" },
    { "list", KUBE_LIST, &resource_configmaps, "", NULL, NULL, KUBE_OK, "ConfigMapList" },
    { "update", KUBE_UPDATE, &resource_configmaps, "verbs", NULL, MAP "\"data\":{\"a\":\"2\"}}",
      KUBE_OK, "\"a\":\"2\"" },
    { "update an old version", KUBE_UPDATE, &resource_configmaps, "verbs", NULL,
      "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"verbs\",\"resourceVersion\":\"1\"}}",
      KUBE_CONFLICT, "modified" },
    { "JSON patch", KUBE_JSON_PATCH, &resource_configmaps, "verbs", NULL,
      "[{\"op\":\"add\",\"path\":\"/data/b\",\"value\":\"3\"}]", KUBE_OK, "\"b\":\"3\"" },
    { "merge patch", KUBE_MERGE_PATCH, &resource_configmaps, "verbs", NULL,
      "{\"data\":{\"a\":null,\"c\":\"4\"}}", KUBE_OK, "{\"b\":\"3\",\"c\":\"4\"}" },
    { "strategic patch", KUBE_STRATEGIC_PATCH, &resource_configmaps, "verbs", NULL,
      "{\"data\":{\"d\":\"5\"}}", KUBE_OK, "\"d\":\"5\"" },
    { "apply", KUBE_APPLY, &resource_configmaps, "verbs", NULL, MAP "\"data\":{\"e\":\"6\"}}",
      KUBE_OK, "\"manager\":\"flyball\",\"operation\":\"Apply\"" },
    { "create a deployment", KUBE_CREATE, &resource_deployments, "", NULL, DEPLOYMENT, KUBE_OK,
      "\"replicas\":0" },
    { "scale it", KUBE_MERGE_PATCH, &resource_deployments, "verbs", "scale",
      "{\"spec\":{\"replicas\":2}}", KUBE_OK, "\"replicas\":2" },
    { "patch its status", KUBE_MERGE_PATCH, &resource_deployments, "verbs", "status",
      "{\"status\":{\"conditions\":[{\"type\":\"Shown\",\"status\":\"True\"}]}}", KUBE_OK,
      "\"type\":\"Shown\"" },
    { "create a pod", KUBE_CREATE, &resource_pods, "", NULL, POD, KUBE_OK, "\"cpu\":\"500m\"" },
    { "resize it", KUBE_STRATEGIC_PATCH, &resource_pods, "verbs", "resize",
      "{\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"cpu\":\"2\"}}}]}}",
      KUBE_OK, "\"limits\":{\"cpu\":\"2\"}" },
    { "delete the pod", KUBE_DELETE, &resource_pods, "verbs", NULL, "{\"gracePeriodSeconds\":0}",
      KUBE_OK, "" },
    { "delete the deployment", KUBE_DELETE, &resource_deployments, "verbs", NULL, NULL, KUBE_OK,
      "Success" },
    { "delete the map", KUBE_DELETE, &resource_configmaps, "verbs", NULL, NULL, KUBE_OK,
      "Success" },
    { "delete it again", KUBE_DELETE, &resource_configmaps, "verbs", NULL, NULL, KUBE_NOT_FOUND,
      "not found" },
};

static struct {
    struct kube *k;
    str ns;
    size_t at;
} run;

static void next(void);

static void on_discovered(void *context, const struct resource *r, const char *failure)
{
    (void)context;
    bool right = r && !strcmp(r->plural, "horizontalpodautoscalers") && r->namespaced;
    printf("%s discover%s%s\n", right ? "ok" : "not ok", right ? "" : ": ", failure ? failure : "");
    puts(".");
    fflush(stdout);
}

static void done(void *context, const struct kube_reply *reply)
{
    (void)context;
    const struct step *s = &steps[run.at++];
    bool right = reply->reason == s->reason && str_find(reply->body, str_c(s->has)) != SIZE_MAX;
    printf("%s %s%s%s\n", right ? "ok" : "not ok", s->what, right ? "" : ": ",
           right            ? ""
           : reply->failure ? reply->failure
                            : reply->body.p);
    next();
}

static void next(void)
{
    if (run.at == countof(steps)) {
        kube_discover(run.k, S("autoscaling/v2"), S("HorizontalPodAutoscaler"), on_discovered,
                      NULL);
        return;
    }
    const struct step *s = &steps[run.at];
    kube_send(run.k, &(struct kube_request){ .verb = s->verb,
                                             .resource = s->resource,
                                             .ns = run.ns,
                                             .name = str_c(s->name),
                                             .subresource = s->subresource,
                                             .body = str_c(s->body),
                                             .done = done });
}

void verbs_run(struct kube *k, str ns)
{
    run.k = k;
    run.ns = ns;
    run.at = 0;
    next();
}
