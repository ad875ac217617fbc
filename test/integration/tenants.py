#!/usr/bin/python3
"""Two tenants and one operator: what tenant-a may make flyball do to what tenant-b has, by every field that could name it.

    tenants.py FLYBALL                     on the embedded API server
    tenants.py FLYBALL --cluster DIR       on the control plane that test/kube/cluster started in DIR

Each tenant acts by the token of its own service account, which may do anything in its own namespace and nothing elsewhere;
the operator runs all four controllers by the token of an account that has their roles. Speaks TAP. Skipped where there is
no kubectl.
"""
import copy
import http.server
import json
import os
import pathlib
import subprocess
import threading
import urllib.parse

import harness
from harness import Real, TOP, until

A, B = "tenant-a", "tenant-b"
ANNOTATION = "flyball.io/allow-references-from"
FEATURES = ["schedule", "saturation", "market", "runtimeconfig"]
EVERY_DAY = "SUN,M,TU,W,TH,F,SAT"
SEEN = ["hpa", "deployments", "replicasets", "pods", "configmaps", "secrets", "shpa", "va", "podallocations", "aimservices",
        "aimmodels", "aimservicetemplates", "aimruntimeconfigs", "aimtemplatecaches", "aimmodelcaches", "httproutes",
        "gateways", "inferenceservices", "servingruntimes", "pvc", "jobs", "referencegrants"]


class History(http.server.ThreadingHTTPServer):
    """A Prometheus that knows nothing, and remembers what it was asked."""

    def __init__(self):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self.server.queries.append(urllib.parse.parse_qs(form)["query"][0])
                body = b'{"status":"success","data":{"resultType":"matrix","result":[]}}'
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass
        self.queries = []
        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def url(self):
        return "http://127.0.0.1:%d" % self.server_address[1]


class Tenant:
    """kubectl by the tenant's own token, in its own namespace."""

    def __init__(self, world, namespace):
        self.world, self.namespace = world, namespace
        token = world.kubectl("create", "token", "tenant", "-n", namespace, "--duration=2h").strip()
        self.env = dict(os.environ, HOME=world.folder,
                        KUBECONFIG=world.kubeconfig(namespace, namespace=namespace, token=token))

    def kubectl(self, *words, text=None, check=True):
        done = subprocess.run(["kubectl", *words], env=self.env, input=text, capture_output=True, text=True, timeout=120)
        if check and done.returncode:
            raise RuntimeError("%s: %s" % (" ".join(words), done.stderr))
        return done.stdout if check else (done.returncode, done.stderr)

    def apply(self, *objects):
        self.kubectl("apply", "-f", "-", text="\n".join(json.dumps(o) for o in objects))

    def get(self, *words):
        return json.loads(self.kubectl("get", *words, "-o", "json"))

    def reason(self, kind, name, condition="Ready"):
        for one in self.get(kind, name).get("status", {}).get("conditions", []):
            if one["type"] == condition:
                return one["reason"]
        return None


class World(harness.World):
    OPERATOR = ["--qps", "200", "--burst", "200"]
    OWN = "workload-variant-autoscaler-system"  # saturation keeps its last good configuration there
    FEATURE = ",".join(FEATURES)

    def kubeconfig_of_role(self):
        path = pathlib.Path(self.folder, "operator.kubeconfig")
        if not path.exists():
            token = [self.token_of_role(feature, account="flyball") for feature in FEATURES][-1]
            self.kubeconfig("operator", token=token)
        return str(path)

    def prepare(self):
        self.define(*sorted((TOP / "deploy/crds").glob("*.yaml")), *sorted((TOP / "examples/crds").glob("*.yaml")))
        for namespace in (A, B, "workload-variant-autoscaler-system"):
            self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        for namespace in (A, B):
            self.apply(*account(namespace))
        self.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}},
                   config_map("saturation-scaling-config", "workload-variant-autoscaler-system", default="{}"))
        if isinstance(self.server, Real):
            for namespace in (A, B):
                assert until(lambda: self.get("serviceaccount", "default", "-n", namespace))
        self.a, self.b = Tenant(self, A), Tenant(self, B)
        self.history = History()
        self.b.apply(*belongings())
        self.run_operator("--smarthpa-prometheus-url", self.history.url())
        self.b.apply(hpa("settled"), schedule("settled", "settled"))
        assert until(lambda: self.b.reason("shpa", "settled") == "Reconciled"), self.b.get("shpa", "settled")
        assert until(lambda: self.b.reason("aimservicetemplate", "template") is not None)
        assert until(lambda: not isinstance(self.server, Real) or len(self.b.get("pods")["items"]) == 3)
        self.before = self.snapshot()

    def snapshot(self):
        """What tenant-b has and wants, without what flyball rightly reports about it."""
        everything = {}
        for one in self.get(",".join(SEEN), "-n", B)["items"]:
            one = copy.deepcopy(one)
            one.pop("status", None)
            for field in ("resourceVersion", "managedFields", "generation"):
                one["metadata"].pop(field, None)
            everything[one["kind"] + "/" + one["metadata"]["name"]] = one
        return everything

    def nothing_changed(self):
        """After a marker: a new schedule of tenant-a's own is done with after all that came before it."""
        self.markers = getattr(self, "markers", 0) + 1
        name = "marker-%d" % self.markers
        self.a.apply(hpa(name), schedule(name, name))
        assert until(lambda: self.a.reason("shpa", name) == "Reconciled")
        now = self.snapshot()
        assert now.keys() == self.before.keys(), now.keys() ^ self.before.keys()
        for name, one in now.items():
            assert one == self.before[name], "%s was %s, is %s" % (name, self.before[name], one)

    def bounds(self):
        spec = self.get("hpa", "web", "-n", B)["spec"]
        return spec["minReplicas"], spec["maxReplicas"]


# --- objects

def account(namespace):
    """A service account with every right in its own namespace, itself included."""
    rules = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    return ({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "tenant", "namespace": namespace}},
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
             "metadata": {"name": "tenant", "namespace": namespace}, "rules": rules},
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
             "metadata": {"name": "tenant", "namespace": namespace},
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "tenant"},
             "subjects": [{"kind": "ServiceAccount", "name": "tenant", "namespace": namespace}]})


def hpa(name):
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
            "spec": {"minReplicas": 2, "maxReplicas": 9,
                     "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}}


def config_map(name, namespace=None, **data):
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def window(**config):
    """Open all day; nothing holds after it."""
    return {"name": "day", "timezone": "UTC", "interval": {"recurring": EVERY_DAY}, "startTime": "00:00:00",
            "endTime": "23:59:59", "startHPAConfig": config}


def schedule(name, target, config=None, namespace=None, **more):
    ref = {"name": target, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "autoscaling.sarabala.io/v1alpha1", "kind": "SmartHorizontalPodAutoscaler",
            "metadata": {"name": name},
            "spec": {"HPAObjectRef": ref, "triggers": [window(**(config or {"minReplicas": 3, "maxReplicas": 4}))],
                     **more}}


def deployment(name, replicas=2):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}},
                                  "spec": {"containers": [{"name": "c", "image": "example.invalid/c:1"}]}}}}


def variant(name, target, model="llama", labels=None, **more):
    return {"apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
            "metadata": {"name": name, "labels": {"inference.optimization/acceleratorName": "A100", **(labels or {})}},
            "spec": {"modelID": model, "variantCost": "0.001",
                     "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}, **more}}


def aim(kind, name, spec):
    return {"apiVersion": "aim.silogen.ai/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def pod(name, **metadata):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata},
            "spec": {"nodeName": "n1", "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
                     "tolerations": [{"operator": "Exists"}],
                     "containers": [{"name": "c", "image": "c", "resources": {
                         "requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "500m", "memory": "64Mi"}}}]}}


def grant(kind="SmartHorizontalPodAutoscaler", namespace=A, name=None):
    to = {"group": "autoscaling", "kind": "HorizontalPodAutoscaler", **({"name": name} if name else {})}
    return {"apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant", "metadata": {"name": "grant"},
            "spec": {"from": [{"group": "autoscaling.sarabala.io", "kind": kind, "namespace": namespace}], "to": [to]}}


def belongings():
    """What tenant-b has."""
    return [deployment("web"), hpa("web"), pod("victim"), config_map("settings", key="value"),
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pull"}, "stringData": {"a": "b"}},
            variant("web", "web"),
            aim("AIMModel", "model", {"image": "example.org/model:1"}),
            aim("AIMServiceTemplate", "template", {
                "modelName": "model", "metric": "latency", "precision": "fp16",
                "modelSources": [{"name": "x/y", "size": "1Gi", "sourceUri": "hf://x/y"}]}),
            aim("AIMRuntimeConfig", "config", {"routing": {"enabled": True}}),
            {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": {"name": "gateway"},
             "spec": {"gatewayClassName": "test",
                      "listeners": [{"name": "http", "port": 80, "protocol": "HTTP",
                                     "allowedRoutes": {"namespaces": {"from": "Same"}}}]}}]


# --- cases

def the_tenants_are_who_they_say(world):
    """Or the rest would prove nothing."""
    code, why = world.a.kubectl("get", "hpa", "web", "-n", B, check=False)
    assert code and "forbidden" in why.lower(), why
    code, why = world.a.kubectl("annotate", "namespace", B, ANNOTATION + "=" + A, check=False)
    assert code and "forbidden" in why.lower(), why
    code, why = world.a.kubectl("create", "-n", B, "-f", "-", text=json.dumps(grant()), check=False)
    assert code and "forbidden" in why.lower(), why


def schedules_reach_nothing(world):
    world.a.apply(
        schedule("bounds", "web", {"minReplicas": 400, "maxReplicas": 450}, B),
        schedule("replicas", "web", {"minReplicas": 2, "maxReplicas": 450, "desiredReplicas": 450}, B,
                 desiredReplicasPolicy="Exact"),
        schedule("zero", "web", {"desiredReplicas": 0}, B),
        schedule("nothing", "no-such", {"minReplicas": 400, "maxReplicas": 450}, B),
        schedule("nowhere", "web", {"minReplicas": 400, "maxReplicas": 450}, "no-such"),
        schedule("learner", "web", None, B, smartRecommendation={"enabled": True, "mode": "Apply"}),
        {**schedule("self", "web", {"minReplicas": 400, "maxReplicas": 450}, B),
         "metadata": {"name": "self", "annotations": {ANNOTATION: "*"}}})
    template = schedule("template", "x", {"minReplicas": 400, "maxReplicas": 450})
    del template["spec"]["HPAObjectRef"]
    template["spec"]["HPASpecTemplate"] = {
        "metadata": {"name": "web", "namespace": B},
        "spec": {"maxReplicas": 450, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}
    world.a.apply(template, grant())  # a grant of one's own namespace permits nothing elsewhere
    world.a.kubectl("annotate", "namespace", A, ANNOTATION + "=*", "--overwrite")
    for name in ("bounds", "replicas", "zero", "nothing", "nowhere", "learner", "self", "template"):
        assert until(lambda: world.a.reason("shpa", name) == "RefNotPermitted"), world.a.get("shpa", name)
    message = [one["message"] for one in world.a.get("shpa", "bounds")["status"]["conditions"]
               if one["type"] == "Ready"][0]
    assert message == ("HorizontalPodAutoscaler %s/web does not permit references from namespace \"%s\"; annotate it or "
                       "namespace \"%s\" with %s=%s, or create a ReferenceGrant there" % (B, A, B, ANNOTATION, A)), message
    said = subprocess.run([world.flyball, "explain", "shpa", "bounds"], env=world.a.env, capture_output=True, text=True,
                          timeout=60)
    assert "which does not allow it" in said.stdout and "RefNotPermitted" in said.stdout, said
    world.nothing_changed()
    assert not world.history.queries, world.history.queries


def a_schedule_of_tenant_b_comes_before_strangers(world):
    """The ones of tenant-a are older and have the same target."""
    world.b.apply(schedule("own", "web", {"minReplicas": 3, "maxReplicas": 8}))
    assert until(lambda: world.b.reason("shpa", "own") == "Reconciled"), world.b.get("shpa", "own")
    assert world.bounds() == (3, 8)
    world.b.kubectl("delete", "shpa", "own")
    world.b.apply(hpa("web"))
    world.b.kubectl("annotate", "hpa", "web", "autoscaling.sarabala.io/smarthpa-baseline-")
    world.before = world.snapshot()
    assert world.bounds() == (2, 9)


def variants_reach_nothing(world):
    uid = world.get("deployment", "web", "-n", B)["metadata"]["uid"]
    far = variant("namespaced", "web", actuation="Scale", minReplicas=50, maxReplicas=60)
    far["spec"]["scaleTargetRef"]["namespace"] = B
    world.a.kubectl("apply", "--validate=false", "-f", "-", text=json.dumps(far))
    world.a.apply(
        variant("same-name", "web", actuation="Scale", minReplicas=50, maxReplicas=60),
        variant("path", B + "/web", actuation="Scale", minReplicas=50, maxReplicas=60),
        config_map("saturation-scaling-config", default="kvCacheThreshold: 0.01\n",
                   theirs="model_id: llama\nnamespace: %s\nkvCacheThreshold: 0.01\n" % B),
        config_map("wva-model-scale-to-zero-config", default="enable_scale_to_zero: true\nretention_period: 1s\n",
                   theirs="model_id: llama\nnamespace: %s\nenable_scale_to_zero: true\nretention_period: 1s\n" % B))
    world.a.apply({**deployment("cheap"), "metadata": {"name": "cheap", "annotations": {
        "wva.llmd.ai/cost": "0", "wva.llmd.ai/target-namespace": B}}})
    code, why = world.a.kubectl("create", "-f", "-", check=False, text=json.dumps({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {"name": "evil", "finalizers": ["example.com/hold"], "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid, "controller": True}]},
        "spec": {"replicas": 0, **{k: deployment("evil")["spec"][k] for k in ("selector", "template")}}}))
    assert code == 0, why
    for name in ("namespaced", "same-name", "path"):
        assert until(lambda: world.a.reason("va", name, "TargetResolved") == "TargetNotFound"), world.a.get("va", name)
    world.nothing_changed()
    world.a.kubectl("patch", "replicaset", "evil", "--type=merge", "-p", '{"metadata":{"finalizers":null}}', check=False)


def allocations_reach_nothing(world):
    world.a.apply({"apiVersion": "allocation.mbcas.io/v1alpha1", "kind": "PodAllocation", "metadata": {"name": "far"},
                   "spec": {"namespace": B, "podName": "victim", "desiredCPURequest": "1m", "desiredCPULimit": "1m"}})
    assert until(lambda: world.a.get("podallocation", "far").get("status", {}).get("reason")), \
        world.a.get("podallocation", "far")
    status = world.a.get("podallocation", "far")["status"]
    assert (status["phase"], status["reason"]) == ("Failed", "NamespaceMismatch"), status
    world.nothing_changed()


def services_reach_nothing(world):
    """Names are looked up in the own namespace and in the cluster's; a gateway elsewhere decides by its allowedRoutes."""
    routing = {"enabled": True, "gatewayRef": {"name": "gateway", "namespace": B}, "pathTemplate": "/stolen"}
    world.a.apply(
        aim("AIMService", "model-ref", {"model": {"ref": "model"}}),
        aim("AIMService", "template-ref", {"model": {"ref": "model"}, "templateRef": "template"}),
        aim("AIMService", "path-ref", {"model": {"ref": B + "/model"}, "templateRef": B + "/template"}),
        aim("AIMService", "config-ref", {"model": {"ref": "model"}, "runtimeConfigName": "config"}),
        aim("AIMService", "secret-ref", {"model": {"ref": "model"}, "imagePullSecrets": [{"name": "pull"}],
                                         "serviceAccountName": "tenant"}),
        aim("AIMService", "gateway-ref", {"model": {"ref": "model"}, "routing": routing}),
        aim("AIMTemplateCache", "template", {"templateRef": "template"}),
        aim("AIMModelCache", "cache", {"sourceUri": "hf://x/y", "size": "1Gi"}),
        aim("AIMRuntimeConfig", "default", {"routing": {"enabled": False}, "defaultStorageClassName": "theirs"}),
        aim("AIMServiceTemplate", "template-b", {"modelName": "model"}))
    assert until(lambda: world.a.reason("aimservice", "model-ref", "Resolved") == "ModelNotFound"), \
        world.a.get("aimservice", "model-ref")
    assert until(lambda: world.a.reason("aimservice", "template-ref", "Resolved") in ("TemplateNotFound", "ModelNotFound")), \
        world.a.get("aimservice", "template-ref")
    assert until(lambda: world.a.reason("aimservice", "config-ref", "ConfigResolved") == "RuntimeConfigMissing"), \
        world.a.get("aimservice", "config-ref")
    world.nothing_changed()


def queries_are_confined(world):
    queries = {"plain": "sum(container_cpu{namespace=\"%s\"})" % B, "any": "{__name__=~\".+\"} or secret # x",
               "broken": "sum(secret) + info(secret)"}
    for name, query in queries.items():
        world.a.apply(hpa("query-" + name),
                      schedule("query-" + name, "query-" + name,
                               smartRecommendation={"enabled": True, "query": query}))
    assert until(lambda: world.a.reason("shpa", "query-broken", "QueryValid") == "InvalidQuery"), \
        world.a.get("shpa", "query-broken")
    own = "namespace=\"%s\"" % A
    assert until(lambda: {"sum(container_cpu{namespace=\"%s\",%s})" % (B, own),
                          "{__name__=~\".+\",%s} or secret{%s}" % (own, own)} <= set(world.history.queries)), \
        world.history.queries
    assert all(own in query for query in world.history.queries), world.history.queries
    assert not any("info" in query for query in world.history.queries), world.history.queries


def consent(world, give, withdraw):
    """Given, the oldest schedule of tenant-a governs; withdrawn, it stops, and what runs stays."""
    world.b.apply(hpa("web"))
    give()
    assert until(lambda: world.a.reason("shpa", "granted") == "Reconciled"), world.a.get("shpa", "granted")
    assert until(lambda: world.bounds() == (5, 6)), world.bounds()
    withdraw()
    assert until(lambda: world.a.reason("shpa", "granted") == "RefNotPermitted"), world.a.get("shpa", "granted")
    assert world.bounds() == (5, 6)
    world.b.kubectl("patch", "hpa", "web", "--type=merge", "-p", '{"spec":{"minReplicas":2,"maxReplicas":9}}')
    world.b.kubectl("annotate", "hpa", "web", "autoscaling.sarabala.io/smarthpa-baseline-")
    world.before = world.snapshot()
    world.nothing_changed()
    assert world.bounds() == (2, 9)


def consent_by_every_way(world):
    world.a.kubectl("delete", "shpa", "bounds", "replicas", "zero", "learner", "self", "template", "nothing", "nowhere")
    world.a.apply(schedule("granted", "web", {"minReplicas": 5, "maxReplicas": 6}, B))
    assert until(lambda: world.a.reason("shpa", "granted") == "RefNotPermitted")

    def annotate(kind, name, value):
        return lambda: world.b.kubectl("annotate", kind, name, ANNOTATION + value, *(["--overwrite"] * ("=" in value)))

    def delete(kind, name):
        return lambda: world.b.kubectl("delete", kind, name)
    consent(world, annotate("hpa", "web", "=" + A), annotate("hpa", "web", "-"))
    consent(world, annotate("namespace", B, "= x , %s" % A), annotate("namespace", B, "=x"))
    consent(world, annotate("namespace", B, "=*"), annotate("namespace", B, "-"))
    consent(world, lambda: world.b.apply(grant()), delete("referencegrant", "grant"))
    consent(world, lambda: world.b.apply(grant(name="web")), lambda: world.b.apply(grant(name="other")))
    world.b.apply(grant(kind="HTTPRoute"))
    world.before = world.snapshot()
    world.nothing_changed()
    assert world.a.reason("shpa", "granted") == "RefNotPermitted"


def a_grant_withdrawn_while_the_operator_is_down(world):
    world.b.apply(grant())
    assert until(lambda: world.bounds() == (5, 6)), world.bounds()
    world.stop_operator()
    world.b.kubectl("delete", "referencegrant", "grant")
    world.b.kubectl("patch", "hpa", "web", "--type=merge", "-p", '{"spec":{"minReplicas":4}}')
    world.before = world.snapshot()
    world.run_operator("--smarthpa-prometheus-url", world.history.url())
    assert until(lambda: world.a.reason("shpa", "granted") == "RefNotPermitted"), world.a.get("shpa", "granted")
    world.nothing_changed()


def with_the_role_of_an_earlier_version(world):
    """Which may see neither namespaces nor grants: they permit nothing, and all else goes on."""
    role = json.loads(world.kubectl("get", "clusterrole", "flyball-schedule", "-o", "json"))
    others = [rule for rule in role["rules"] if not {"namespaces", "referencegrants"} & set(rule["resources"])]
    assert len(others) == len(role["rules"]) - 2, role["rules"]
    world.stop_operator()
    world.b.kubectl("annotate", "namespace", B, ANNOTATION + "=*")
    world.b.apply(grant())
    world.before = world.snapshot()
    world.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                 "metadata": {"name": "flyball-earlier"}, "rules": others},
                {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "earlier", "namespace": "default"}},
                {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                 "metadata": {"name": "flyball-earlier"},
                 "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "flyball-earlier"},
                 "subjects": [{"kind": "ServiceAccount", "name": "earlier", "namespace": "default"}]})
    token = world.kubectl("create", "token", "earlier", "-n", "default", "--duration=2h").strip()
    world.kubeconfig("operator", token=token)
    world.FEATURE = "schedule"
    world.run_operator()
    world.nothing_changed()
    assert world.a.reason("shpa", "granted") == "RefNotPermitted"
    world.b.kubectl("annotate", "hpa", "web", ANNOTATION + "=" + A)  # HPAs it sees
    assert until(lambda: world.bounds() == (5, 6)), world.bounds()


harness.main(World, [the_tenants_are_who_they_say, schedules_reach_nothing, a_schedule_of_tenant_b_comes_before_strangers,
                     variants_reach_nothing, allocations_reach_nothing, services_reach_nothing, queries_are_confined,
                     consent_by_every_way, a_grant_withdrawn_while_the_operator_is_down,
                     with_the_role_of_an_earlier_version])
