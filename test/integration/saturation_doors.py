#!/usr/bin/python3
"""Decisions served to others: KEDA's external scaler for a real gRPC client, and external.metrics.k8s.io over HTTPS.

    saturation_doors.py FLYBALL
    saturation_doors.py FLYBALL --cluster DIR       on the control plane that test/kube/cluster started in DIR

On a real control plane the HPA controller reads the metric through the aggregation layer. The gRPC cases are skipped
where Python has no grpc. Speaks TAP.
"""
import base64
import json
import os
import ssl
import subprocess
import time
import urllib.error
import urllib.request

import harness
from harness import Skip, TOP, free_port, until

GROUP = "/apis/external.metrics.k8s.io/v1beta1"
VALUES = GROUP + "/namespaces/default/wva_desired_replicas?labelSelector=variant_name%3Dweb"
OPEN = ssl.create_default_context()
OPEN.check_hostname = False
OPEN.verify_mode = ssl.CERT_NONE

DEPLOYMENT = {
    "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
    "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}},
             "template": {"metadata": {"labels": {"app": "web"}},
                          "spec": {"containers": [{"name": "c", "image": "vllm"}]}}}}


def variant(low, high):
    """Without metrics the last target holds, within its bounds: they are the decision here."""
    return {"apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
            "metadata": {"name": "web", "namespace": "default",
                         "labels": {"inference.optimization/acceleratorName": "H100"}},
            "spec": {"modelID": "llama", "minReplicas": low, "maxReplicas": high,
                     "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}}


class World(harness.World):
    FEATURE = "saturation"

    def prepare(self):
        self.define(TOP / "deploy/crds/llmd.ai_variantautoscalings.yaml")
        self.apply({"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": "saturation-scaling-config", "namespace": "default"},
                    "data": {"default": "kvCacheThreshold: 0.8\nqueueLengthThreshold: 5\nkvSpareTrigger: 0.1\n"
                                        "queueSpareTrigger: 3\n"}})
        self.apply(DEPLOYMENT, variant(3, 5))
        self.certificate()
        self.scaler, self.metrics = free_port(), free_port()
        self.kubeconfig_of_role()
        self.grant()
        self.start()

    def certificate(self):
        """A serving certificate of an authority of its own, as `flyball install` makes it."""
        def openssl(*words, text=None):
            return subprocess.run(["openssl", *words], cwd=self.folder, input=text, check=True, capture_output=True)
        openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "7", "-subj", "/CN=serving-ca", "-keyout",
                "serving-ca.key", "-out", "serving-ca.crt")
        with open(self.folder + "/serving.ext", "w") as out:
            out.write("subjectAltName=DNS:localhost,DNS:flyball-metrics-api.default.svc,IP:127.0.0.1\n"
                      "extendedKeyUsage=serverAuth\n")
        request = openssl("req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", "tls.key", "-subj",
                          "/CN=flyball").stdout
        openssl("x509", "-req", "-CA", "serving-ca.crt", "-CAkey", "serving-ca.key", "-CAcreateserial", "-days", "7",
                "-extfile", "serving.ext", "-out", "tls.crt", text=request)

    def grant(self):
        """Reviews of clients, and the CA of the front proxy."""
        account = {"kind": "ServiceAccount", "name": "flyball-saturation", "namespace": "default"}
        rbac = "rbac.authorization.k8s.io"
        self.apply({"apiVersion": rbac + "/v1", "kind": "ClusterRole", "metadata": {"name": "reviews"}, "rules": [
                        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
                        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"],
                         "verbs": ["create"]}]},
                   {"apiVersion": rbac + "/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "reviews"},
                    "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "reviews"}, "subjects": [account]},
                   {"apiVersion": rbac + "/v1", "kind": "Role",
                    "metadata": {"name": "front-proxy", "namespace": "kube-system"},
                    "rules": [{"apiGroups": [""], "resources": ["configmaps"],
                               "resourceNames": ["extension-apiserver-authentication"],
                               "verbs": ["get", "list", "watch"]}]},
                   {"apiVersion": rbac + "/v1", "kind": "RoleBinding",
                    "metadata": {"name": "front-proxy", "namespace": "kube-system"},
                    "roleRef": {"apiGroup": rbac, "kind": "Role", "name": "front-proxy"}, "subjects": [account]},
                   {"apiVersion": rbac + "/v1", "kind": "ClusterRole", "metadata": {"name": "external-metrics"},
                    "rules": [{"apiGroups": ["external.metrics.k8s.io"], "resources": ["*"],
                               "verbs": ["get", "list", "watch"]}]},
                   {"apiVersion": rbac + "/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "external-metrics"},
                    "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "external-metrics"},
                    "subjects": [{"kind": "ServiceAccount", "name": "horizontal-pod-autoscaler",
                                  "namespace": "kube-system"}]})

    def start(self):
        os.environ["GLOBAL_OPT_INTERVAL"] = "2s"
        self.run_operator("--wva-namespace", "default", "--serving-cert-dir", self.folder, "--scaler-listen",
                          f"127.0.0.1:{self.scaler}", "--external-metrics-listen", f"127.0.0.1:{self.metrics}")

    def get_external(self, path, token=None):
        request = urllib.request.Request(f"https://127.0.0.1:{self.metrics}{path}",
                                         headers={"Authorization": "Bearer " + token} if token else {})
        try:
            with urllib.request.urlopen(request, timeout=10, context=OPEN) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""


# --- a gRPC client ----------------------------------------------------------------------------

def text(number, value):
    return bytes([number << 3 | 2, len(value)]) + value.encode()


def reference(**metadata):
    pairs = b"".join(b"\x1a" + bytes([len(one)]) + one
                     for one in (text(1, key) + text(2, value) for key, value in metadata.items()))
    return text(1, "web") + text(2, "default") + pairs


class Scaler:
    """A client as KEDA has one, with the messages as bytes."""

    def __init__(self, world):
        try:
            import grpc
        except ImportError as error:
            raise Skip("Python has no grpc (python3-grpcio)") from error
        self.grpc = grpc
        authority = open(world.folder + "/serving-ca.crt", "rb").read()
        self.channel = grpc.secure_channel(f"localhost:{world.scaler}", grpc.ssl_channel_credentials(authority))

    def call(self, method, message, timeout=10):
        return self.channel.unary_unary("/externalscaler.ExternalScaler/" + method)(message, timeout=timeout)

    def stream(self, message, timeout=30):
        return self.channel.unary_stream("/externalscaler.ExternalScaler/StreamIsActive")(message, timeout=timeout)

    def code(self, method, message):
        try:
            self.call(method, message)
        except self.grpc.RpcError as error:
            return error.code().name
        return "OK"


def metrics_request(ref):
    return b"\x0a" + bytes([len(ref)]) + ref + text(2, "x")


def a_grpc_client_gets_decisions(world):
    scaler = Scaler(world)
    assert until(lambda: scaler.code("IsActive", reference()) == "OK"), scaler.code("IsActive", reference())
    assert scaler.call("IsActive", reference()) == b"\x08\x01"
    assert b"flyball-desired-replicas" in scaler.call("GetMetricSpec", reference())
    assert b"\x10\x03" in scaler.call("GetMetrics", metrics_request(reference())), "not 3 replicas"
    assert b"\x10\x03" in scaler.call("GetMetrics", metrics_request(reference(variant="web")))
    assert scaler.code("GetMetrics", metrics_request(reference(variant="other"))) == "NOT_FOUND"
    assert scaler.code("GetMetrics", b"\x0a\x7f") == "INVALID_ARGUMENT"
    assert scaler.code("StreamMetricSpec", reference()) == "UNIMPLEMENTED"


def a_grpc_stream_reports_and_ends_at_its_deadline(world):
    scaler = Scaler(world)
    stream = scaler.stream(reference(), timeout=3)
    assert next(stream) == b"\x08\x01"
    before = time.monotonic()
    try:
        next(stream)
        assert False, "a second answer without a change"
    except scaler.grpc.RpcError as error:
        assert error.code().name == "DEADLINE_EXCEEDED", error.code()
    assert time.monotonic() - before < 10


def external_metrics_need_an_allowed_user(world):
    world.apply({"apiVersion": "v1", "kind": "ServiceAccount",
                 "metadata": {"name": "reader", "namespace": "default"}})
    assert until(lambda: world.get_external("/healthz")[0] == 200)
    assert world.get_external(VALUES)[0] == 401
    assert world.get_external(VALUES, "wrong")[0] == 401
    token = world.kubectl("create", "token", "reader", "-n", "default").strip()
    assert world.get_external(VALUES, token)[0] == 403
    rbac = "rbac.authorization.k8s.io"
    world.apply({"apiVersion": rbac + "/v1", "kind": "RoleBinding",
                 "metadata": {"name": "reader", "namespace": "default"},
                 "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "external-metrics"},
                 "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}]})
    assert until(lambda: world.get_external(VALUES, token)[0] == 200, 30), world.get_external(VALUES, token)
    item = json.loads(world.get_external(VALUES, token)[1])["items"][0]
    assert item["value"] == "3" and item["metricLabels"]["exported_namespace"] == "default", item
    assert world.get_external(VALUES + "%3D%3D%3Dx", token)[0] == 400


# --- the real HPA controller ------------------------------------------------------------------

def replicas(world):
    return world.get("deployment", "web").get("spec", {}).get("replicas")


def hpa_condition(world):
    for one in world.get("hpa", "web").get("status", {}).get("conditions", []):
        if one["type"] == "ScalingActive":
            return one["status"], one["reason"]
    return None


def the_hpa_controller_follows_through_the_aggregation_layer(world):
    authority = base64.b64encode(open(world.folder + "/serving-ca.crt", "rb").read()).decode()
    world.apply({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "flyball-metrics-api",
                                                                     "namespace": "default"},
                 "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": world.metrics}]}},
                {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                 "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
                 "spec": {"group": "external.metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100,
                          "versionPriority": 100, "caBundle": authority,
                          "service": {"name": "flyball-metrics-api", "namespace": "default",
                                      "port": world.metrics}}})
    assert until(lambda: '"3"' in world.kubectl("get", "--raw", VALUES, check=False), 60), \
        world.kubectl("get", "apiservice", "v1beta1.external.metrics.k8s.io", "-o", "yaml", check=False)
    world.apply({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
                 "metadata": {"name": "web", "namespace": "default"},
                 "spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                          "minReplicas": 1, "maxReplicas": 9,
                          "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
                          "metrics": [{"type": "External", "external": {
                              "metric": {"name": "wva_desired_replicas", "selector": {
                                  "matchLabels": {"variant_name": "web", "exported_namespace": "default"}}},
                              "target": {"type": "AverageValue", "averageValue": "1"}}}]}})
    assert until(lambda: replicas(world) == 3, 60), (replicas(world), world.get("hpa", "web"))
    world.apply(variant(5, 5))
    assert until(lambda: replicas(world) == 5, 60), replicas(world)


def without_flyball_the_hpa_keeps_the_replicas(world):
    world.stop_operator()
    assert until(lambda: hpa_condition(world) == ("False", "FailedGetExternalMetric"), 90), hpa_condition(world)
    assert replicas(world) == 5
    world.start()
    world.apply(variant(2, 2))
    assert until(lambda: replicas(world) == 2, 90), replicas(world)


if __name__ == "__main__":
    CASES = [a_grpc_client_gets_decisions, a_grpc_stream_reports_and_ends_at_its_deadline,
             external_metrics_need_an_allowed_user]
    harness.main(World, CASES, CASES + [the_hpa_controller_follows_through_the_aggregation_layer,
                                        without_flyball_the_hpa_keeps_the_replicas])
