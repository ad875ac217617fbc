#!/usr/bin/python3
"""A real KEDA follows decisions through flyball's external scaler: one workload with the trigger external-push, one with
external, from 0 to 1, to 3, to 1 and to 0, while flyball is killed in the middle.

    saturation_keda.py FLYBALL --cluster DIR       on the control plane that test/kube/cluster started in DIR

The test takes the place of kubelets and serves the metrics of all pods. Speaks TAP.
"""
import base64
import datetime
import http.server
import json
import os
import signal
import threading
import time

import harness
import saturation_doors
from harness import Skip, until

NAMES = {"push": "external-push", "poll": "external"}
ZERO = {"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "wva-model-scale-to-zero-config", "namespace": "default"},
        "data": {"default": "enable_scale_to_zero: true\nretention_period: 20s\n"}}


class Page(harness.Handler):
    """Every pod of both models: how full it is, and requests that grow with each look while there is load."""
    kv, queue, busy, requests = 0.3, 0, True, 0

    def do_GET(self):
        Page.requests += Page.busy
        text = "".join("vllm:kv_cache_usage_perc{model_name=\"%s\"} %g\nvllm:num_requests_waiting{model_name=\"%s\"} %g\n"
                       "vllm:request_success_total{model_name=\"%s\"} %d\n"
                       % (name, Page.kv, name, Page.queue, name, Page.requests) for name in NAMES).encode()
        self.answer(text)


def deployment(name):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
            "spec": {"replicas": 0, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name}},
                                  "spec": {"containers": [{"name": "c", "image": "vllm"}]}}}}


def variant(name):
    return {"apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
            "metadata": {"name": name, "namespace": "default",
                         "labels": {"inference.optimization/acceleratorName": "H100"}},
            "spec": {"modelID": name, "maxReplicas": 3,
                     "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}}


def scaled_object(world, name):
    quick = {"scaleDown": {"stabilizationWindowSeconds": 0}}
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name, "namespace": "default"},
            "spec": {"scaleTargetRef": {"name": name}, "minReplicaCount": 0, "maxReplicaCount": 5, "pollingInterval": 2,
                     "cooldownPeriod": 0, "advanced": {"horizontalPodAutoscalerConfig": {"behavior": quick}},
                     "triggers": [{"type": NAMES[name], "metricType": "AverageValue",
                                   "metadata": {"scalerAddress": "localhost:%d" % world.scaler, "enableTLS": "true",
                                                "variant": name},
                                   "authenticationRef": {"name": "flyball-ca"}}]}}


class World(saturation_doors.World):
    keda = None

    def prepare(self):
        self.define(harness.TOP / "deploy/crds/llmd.ai_variantautoscalings.yaml")
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.port = server.server_port
        self.apply({"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": "saturation-scaling-config", "namespace": "default"},
                    "data": {"default": "kvCacheThreshold: 0.8\nqueueLengthThreshold: 5\nkvSpareTrigger: 0.1\n"
                                        "queueSpareTrigger: 3\n"}}, ZERO,
                   {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"}})
        self.certificate()
        self.scaler, self.metrics = harness.free_port(), harness.free_port()
        self.kubeconfig_of_role()
        self.grant()
        self.seen = {name: [] for name in NAMES}
        self.ends = threading.Event()

    def start_keda(self):
        try:
            import keda
        except ImportError as error:
            raise Skip("there is no test/integration/keda.py") from error
        programs = keda.Keda(self)
        programs.define()
        programs.start(adapter=True)
        self.keda = programs
        self.start()
        threading.Thread(target=self.play_kubelet, daemon=True).start()

    def need_keda(self):
        if not self.keda:
            raise Skip("KEDA is not running")

    def start(self):
        os.environ["PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL"] = "2s"
        super().start()

    def stop(self):
        self.ends.set()
        if self.keda:
            self.keda.stop()
        super().stop()

    def replicas(self, name):
        return self.get("deployment", name).get("spec", {}).get("replicas")

    def play_kubelet(self):
        """Until the end: pods are ready at our address; the replicas that are wanted are noted."""
        while not self.ends.wait(0.5):
            for pod in self.get("pods").get("items", []):
                if pod.get("status", {}).get("podIP") or pod["metadata"].get("deletionTimestamp"):
                    continue
                name = pod["metadata"]["name"]
                binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": "default"},
                           "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"}}
                self.kubectl("create", "--raw", "/api/v1/namespaces/default/pods/%s/binding" % name, "-f", "-",
                             text=json.dumps(binding), check=False)
                self.kubectl("annotate", "pod", name, "prometheus.io/port=%d" % self.port, check=False)
                now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
                ready = [{"type": kind, "status": "True", "lastTransitionTime": now}
                         for kind in ("Ready", "ContainersReady")]
                self.patch_status("pod", name, {"phase": "Running", "podIP": "127.0.0.1",
                                                "podIPs": [{"ip": "127.0.0.1"}], "conditions": ready})
            for name in NAMES:
                seen, now = self.seen[name], self.replicas(name)
                if now is not None and (not seen or seen[-1] != now):
                    seen.append(now)

    def are(self, number, seconds):
        assert until(lambda: all(self.replicas(name) == number for name in NAMES), seconds), \
            (number, self.seen, {name: self.get("va", name).get("status") for name in NAMES}, self.keda.text()[-1500:])


def keda_starts_the_first_replica(world):
    world.start_keda()
    authority = base64.b64encode(open(world.folder + "/serving-ca.crt", "rb").read()).decode()
    world.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "flyball-ca", "namespace": "default"},
                 "data": {"ca.crt": authority}},
                {"apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication",
                 "metadata": {"name": "flyball-ca", "namespace": "default"},
                 "spec": {"secretTargetRef": [{"parameter": "caCert", "name": "flyball-ca", "key": "ca.crt"}]}})
    for name in NAMES:
        world.apply(deployment(name), variant(name), scaled_object(world, name))
    for name in NAMES:
        assert until(lambda name=name: (world.condition("scaledobject", name, "Ready") or [None])[0] == "True", 60), \
            (world.get("scaledobject", name), world.keda.text()[-1500:])
    assert all(world.replicas(name) == 0 for name in NAMES), world.seen
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    for name in NAMES:
        world.kubectl("annotate", "va", name, "flyball.dev/wake=" + now)
    world.are(1, 60)


def kedas_hpa_follows_the_load(world):
    world.need_keda()
    Page.kv, Page.queue = 0.95, 9
    world.are(3, 120)


def nothing_moves_while_flyball_is_away(world):
    world.need_keda()
    assert until(lambda: all(seen[-1] == 3 for seen in world.seen.values()), 30), world.seen
    world.stop_operator(signal.SIGKILL)
    before = {name: list(seen) for name, seen in world.seen.items()}
    end = time.monotonic() + 35  # two rounds of the HPA controller, many of KEDA
    while time.monotonic() < end:
        assert all(world.replicas(name) == 3 for name in NAMES), world.seen
        time.sleep(1)  # nothing is to happen
    world.start()
    end = time.monotonic() + 20
    while time.monotonic() < end:
        assert all(world.replicas(name) == 3 for name in NAMES), world.seen
        time.sleep(1)
    assert world.seen == before, (before, world.seen)


def the_load_falls_to_one_and_then_to_zero(world):
    world.need_keda()
    Page.kv, Page.queue = 0.05, 0
    world.are(1, 120)
    Page.busy = False
    world.are(0, 150)
    assert until(lambda: all(seen[-1] == 0 for seen in world.seen.values()), 30), world.seen
    for name, seen in world.seen.items():
        peak = seen.index(3)
        assert seen[0] == 0 and sorted(seen[:peak]) == seen[:peak] and seen[-1] == 0, (name, seen)
        assert sorted(seen[peak:], reverse=True) == seen[peak:], "it flapped: %s %s" % (name, seen)
    print("# replicas: %s" % world.seen)


if __name__ == "__main__":
    harness.main(World, [], [keda_starts_the_first_replica, kedas_hpa_follows_the_load,
                             nothing_moves_while_flyball_is_away, the_load_falls_to_one_and_then_to_zero])
