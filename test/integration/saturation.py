#!/usr/bin/python3
"""Variants as a user meets them: kubectl, an API server, an operator, and a real Prometheus that scrapes
simulated vLLM servers under a recorded load.

    saturation.py FLYBALL                     on `flyball up`, whose simulated pods serve /metrics
    saturation.py FLYBALL --cluster DIR       on the control plane that test/kube/cluster started in DIR

Speaks TAP. Skipped where there is no kubectl; what needs a Prometheus where there is none.
"""
import argparse
import http.server
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading
import time

HOME = "workload-variant-autoscaler-system"
INTERVAL_MAP = "workload-variant-autoscaler-variantautoscaling-config"
CRD = pathlib.Path(__file__).resolve().parents[2] / "deploy/crds/llmd.ai_variantautoscalings.yaml"
ROLE = CRD.parents[1] / "rbac/saturation.yaml"
MODEL = "meta/llama-3.1-8b"
THRESHOLDS = "kvCacheThreshold: 0.80\nqueueLengthThreshold: 5\nkvSpareTrigger: 0.10\nqueueSpareTrigger: 3\n"


class Skip(Exception):
    """The case cannot run here."""


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def until(question, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if question():
            return True
        time.sleep(0.2)  # asked from outside: there is no event to wait for
    return False


class World:
    """A cluster, and kubectl for it."""

    def __init__(self, flyball, folder, kubeconfig):
        self.flyball, self.folder, self.kubeconfig = flyball, folder, kubeconfig
        self.processes = []

    def kubectl(self, *words, text=None, check=True):
        env = dict(os.environ, KUBECONFIG=self.kubeconfig, HOME=self.folder)
        done = subprocess.run(["kubectl", *words], env=env, input=text, capture_output=True, text=True,
                              timeout=60)
        if check and done.returncode:
            raise RuntimeError("kubectl %s: %s" % (" ".join(words), done.stderr))
        return done.stdout

    def apply(self, *objects):
        self.kubectl("apply", "-f", "-", text="\n".join(json.dumps(o) for o in objects))

    def get(self, *words):
        answer = self.kubectl("get", *words, "-n", "llm", "-o", "json", check=False)
        return json.loads(answer) if answer else {}

    def status(self, name):
        return self.get("va", name).get("status", {})

    def desired(self, name):
        return self.status(name).get("desiredOptimizedAlloc", {}).get("numReplicas", 0)

    def condition(self, name, kind):
        for one in self.status(name).get("conditions", []):
            if one["type"] == kind:
                return one["status"], one["reason"]
        return None

    def replicas(self, name):
        return self.get("deployment", name).get("spec", {}).get("replicas", 0)

    def events(self, reason):
        return self.get("events", "--field-selector", "reason=" + reason).get("items", [])

    def config(self, name, **data):
        self.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": HOME},
                    "data": data})

    def rate(self, times):
        """The recorded conversation, so many times as fast as it was: 5 requests a second."""
        self.apply({"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": "chat", "namespace": "llm",
                                 "labels": {"testbed.flyball.dev/load": "requests"}},
                    "data": {"model": MODEL, "trace": "conversation", "rate": "0s=%g" % times}})

    def start(self, *words, log, env=None):
        out = open("%s/%s.log" % (self.folder, log), "a")
        process = subprocess.Popen(words, stdout=out, stderr=subprocess.STDOUT,
                                   env=dict(os.environ, **(env or {})))
        self.processes.append(process)
        return process

    def log(self, name):
        return pathlib.Path(self.folder, name + ".log").read_text()

    def stop(self):
        for process in self.processes:
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(30)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()


def namespace(name):
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def node(name):
    room = {"cpu": "256", "memory": "512Gi", "pods": "110"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"allocatable": room, "capacity": room}}


def deployment(name, accelerator, replicas=1):
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "llm"},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}},
                     "template": {"metadata": {"labels": {"app": name},
                                               "annotations": {"testbed.flyball.dev/model": MODEL,
                                                               "testbed.flyball.dev/accelerator": accelerator}},
                                  "spec": {"containers": [
                                      {"name": "vllm", "image": "example.invalid/vllm:1",
                                       "ports": [{"name": "metrics", "containerPort": 8000}],
                                       "resources": {"requests": {"cpu": "1"}}}]}}}}


def variant(name, accelerator, cost, **more):
    return {"apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
            "metadata": {"name": name, "namespace": "llm",
                         "labels": {"inference.optimization/acceleratorName": accelerator}},
            "spec": {"modelID": MODEL, "variantCost": cost,
                     "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}, **more}}


QUICK = {"scaleUp": {"stabilizationWindowSeconds": 0},
         "scaleDown": {"stabilizationWindowSeconds": 10}}


class Prometheus:
    """A real one, told of the pods as they come and go."""

    def __init__(self, world):
        if not shutil.which("prometheus"):
            raise Skip("there is no Prometheus")
        self.world, self.port = world, free_port()
        self.targets = pathlib.Path(world.folder, "targets.json")
        self.targets.write_text("[]")
        pathlib.Path(world.folder, "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [{"job_name": "vllm", "honor_labels": True, "file_sd_configs": [
                {"files": [str(self.targets)], "refresh_interval": "1s"}]}]}))
        self.over = threading.Event()
        self.start()
        self.teller = threading.Thread(target=self.tell, daemon=True)
        self.teller.start()

    def start(self):
        self.process = self.world.start(
            "prometheus", "--config.file=%s/prometheus.yml" % self.world.folder,
            "--storage.tsdb.path=%s/tsdb" % self.world.folder,
            "--web.listen-address=127.0.0.1:%d" % self.port, log="prometheus")

    def tell(self):
        while not self.over.wait(1):
            pods = self.world.get("pods").get("items", [])
            found = [{"targets": ["%s:8000" % p["status"]["podIP"]],
                      "labels": {"namespace": "llm", "pod": p["metadata"]["name"]}}
                     for p in pods if p.get("status", {}).get("podIP")]
            fresh = self.targets.with_suffix(".new")
            fresh.write_text(json.dumps(found))
            fresh.rename(self.targets)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.over.set()
        self.teller.join(10)


def the_right_variant_grows_and_the_dear_one_shrinks_first(world):
    world.rate(0.2)
    world.apply(deployment("chat-l40s", "L40S", 2), variant("chat-l40s", "L40S", "10.0", actuation="Scale",
                                                            maxReplicas=6, behavior=QUICK),
                deployment("chat-h100", "H100", 2), variant("chat-h100", "H100", "40.0", actuation="Scale",
                                                            maxReplicas=6, behavior=QUICK))
    assert until(lambda: world.condition("chat-l40s", "MetricsAvailable") == ("True", "MetricsFound"), 90), \
        world.status("chat-l40s")
    assert until(lambda: world.replicas("chat-h100") == 1, 90), world.status("chat-h100")
    assert until(lambda: world.replicas("chat-l40s") == 1, 90), world.status("chat-l40s")
    world.rate(5)
    assert until(lambda: world.replicas("chat-l40s") >= 3, 120), world.status("chat-l40s")
    assert world.replicas("chat-h100") == 1, "the cheap variant has room, the dear one must wait"
    assert until(lambda: world.events("ScaleUp"))
    assert until(lambda: world.events("Scaled"))
    world.rate(0.2)
    assert until(lambda: world.replicas("chat-l40s") == 1, 180), world.status("chat-l40s")


def explain_says_why(world):
    env = dict(os.environ, KUBECONFIG=world.kubeconfig, HOME=world.folder)
    done = subprocess.run([world.flyball, "explain", "va", "chat-l40s", "-n", "llm"], env=env,
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for part in ("VariantAutoscaling llm/chat-l40s: %s on L40S, a replica costs 10" % MODEL,
                 "scales Deployment chat-l40s by writing its replicas, between 1 and 6 replicas",
                 "OptimizationReady", "> chat-l40s", "  chat-h100",
                 "saturated at KV cache >= 0.8 or queue >= 5"):
        assert part in done.stdout, done.stdout


def columns_are_the_originals(world):
    def rows():
        return world.kubectl("get", "va", "chat-l40s", "-n", "llm").splitlines()
    assert until(lambda: rows()[1].split()[:5] == ["chat-l40s", "chat-l40s", MODEL, "L40S", "1"]), rows()
    row = rows()
    assert row[0].split() == ["NAME", "TARGET", "MODEL", "ACCELERATOR", "CURRENTREPLICAS", "OPTIMIZED",
                              "METRICSREADY", "AGE"], row


def an_edit_counts_at_once_and_a_wrong_one_not(world):
    world.config("saturation-scaling-config", default="kvCacheThreshold: 1.5\n")
    assert until(lambda: "Invalid saturation scaling config entry key=default" in world.log("up"))
    assert world.desired("chat-l40s") == 1
    # Thresholds of nothing: any load at all asks for more.
    world.config("saturation-scaling-config", default=THRESHOLDS,
                 **{"chat-l40s": "kvCacheThreshold: 0.02\nkvSpareTrigger: 0.02\n"})
    assert until(lambda: "Updated global saturation config from ConfigMap entries=2" in world.log("up"))
    world.rate(4)
    assert until(lambda: world.desired("chat-l40s") > 1, 90), world.status("chat-l40s")
    world.config("saturation-scaling-config", default=THRESHOLDS)
    world.rate(0.2)
    assert until(lambda: world.desired("chat-l40s") == 1, 120), world.status("chat-l40s")


def without_prometheus_the_last_decision_holds(world):
    if not world.prometheus:
        raise Skip("there is no Prometheus")
    world.rate(5)
    assert until(lambda: world.replicas("chat-l40s") >= 2, 120), world.status("chat-l40s")
    world.prometheus.kill()
    assert until(lambda: world.condition("chat-l40s", "MetricsAvailable") == ("False", "PrometheusError"), 90), \
        world.status("chat-l40s")
    held = world.desired("chat-l40s")
    world.rate(0.2)
    end = time.monotonic() + 20
    while time.monotonic() < end:  # idle now, and nothing may shrink
        assert world.desired("chat-l40s") == held, world.status("chat-l40s")
        time.sleep(1)
    assert "Safety net activated" in world.log("up")
    world.prometheus.start()
    assert until(lambda: world.condition("chat-l40s", "MetricsAvailable") == ("True", "MetricsFound"), 120)
    assert until(lambda: world.desired("chat-l40s") == 1, 120), world.status("chat-l40s")


def a_variant_may_come_first(world):
    world.apply(variant("early", "A100", "20.0"))
    assert until(lambda: world.condition("early", "TargetResolved") == ("False", "TargetNotFound"))
    world.apply(deployment("early", "A100"))
    assert until(lambda: world.condition("early", "TargetResolved") == ("True", "TargetFound"))
    world.kubectl("delete", "va,deployment", "early", "-n", "llm")


EMBEDDED = [the_right_variant_grows_and_the_dear_one_shrinks_first, explain_says_why, columns_are_the_originals,
            an_edit_counts_at_once_and_a_wrong_one_not, without_prometheus_the_last_decision_holds,
            a_variant_may_come_first]


# ---- on a real control plane: no simulated pods, so the test serves the metrics of one itself


class Page(http.server.BaseHTTPRequestHandler):
    kv, queue = 0.9, 9

    def do_GET(self):
        text = ("vllm:kv_cache_usage_perc{model_name=\"%s\"} %g\nvllm:num_requests_waiting{model_name=\"%s\"} %g\n"
                % (MODEL, Page.kv, MODEL, Page.queue)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def make_ready(world, port):
    """Stands in for a kubelet: every pod is ready at our address, with our port."""
    for pod in world.get("pods").get("items", []):
        name = pod["metadata"]["name"]
        if not pod.get("spec", {}).get("nodeName"):
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": "llm"},
                       "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"}}
            world.kubectl("create", "--raw", "/api/v1/namespaces/llm/pods/%s/binding" % name, "-f", "-",
                          text=json.dumps(binding), check=False)
        world.kubectl("annotate", "pod", name, "-n", "llm", "prometheus.io/port=%d" % port, "--overwrite")
        status = {"status": {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}],
                             "conditions": [{"type": "Ready", "status": "True"},
                                            {"type": "ContainersReady", "status": "True"}]}}
        world.kubectl("patch", "pod", name, "-n", "llm", "--subresource=status", "--type=merge", "-p",
                      json.dumps(status))


def a_real_deployment_is_scaled(world):
    plain = deployment("real", "A100")
    del plain["spec"]["template"]["spec"]["containers"][0]["ports"]
    world.apply(plain, variant("real", "A100", "10.0", actuation="Scale", maxReplicas=4, behavior=QUICK))
    assert until(lambda: world.get("pods", "-l", "app=real").get("items"))
    make_ready(world, world.port)
    assert until(lambda: world.condition("real", "MetricsAvailable") == ("True", "MetricsFound"), 90), \
        world.status("real")
    assert until(lambda: world.replicas("real") > 1, 90), world.status("real")
    grown = world.replicas("real")
    assert until(lambda: len(world.get("pods", "-l", "app=real")["items"]) == grown)
    make_ready(world, world.port)
    alloc = world.status("real")["currentAlloc"]
    assert alloc["accelerator"] == "A100" and "arrivalRate" in alloc["load"], alloc
    assert until(lambda: world.events("Scaled"))
    Page.kv, Page.queue = 0.01, 0

    def settles():
        make_ready(world, world.port)
        return world.replicas("real") == 1
    assert until(settles, 120), world.status("real")
    assert until(lambda: world.status("real")["actuation"]["applied"]), world.status("real")


def has_settled(world, name):
    """The decision is followed, and the status says so: nothing is left to be told."""
    status = world.status(name)
    messages = {one["type"]: one["message"] for one in status["conditions"]}
    return (status["currentAlloc"]["numReplicas"] == status["desiredOptimizedAlloc"]["numReplicas"]
            and "no change needed" in messages["OptimizationReady"])


def conditions_and_events_are_stored(world):
    assert world.condition("real", "TargetResolved") == ("True", "TargetFound")
    assert world.condition("real", "OptimizationReady")[0] == "True"
    kinds = {e["involvedObject"]["kind"] for e in world.events("ScaleUp") + world.events("ScaleDown")}
    assert kinds == {"VariantAutoscaling"}, kinds
    assert until(lambda: has_settled(world, "real")), world.status("real")
    before = world.get("va", "real")
    time.sleep(20)  # several cycles with nothing new
    after = world.get("va", "real")
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"], \
        "written without a reason: %s, then %s" % (before["status"], after["status"])
    assert "forbidden" not in world.log("operator"), world.log("operator")


def bad_manifests_are_refused(world):
    bad = variant("bad", "A100", "ten")
    try:
        world.apply(bad)
    except RuntimeError as why:
        assert "variantCost" in str(why), why
    else:
        raise AssertionError("a cost of \"ten\" was accepted")


REAL = [a_real_deployment_is_scaled, conditions_and_events_are_stored, bad_manifests_are_refused]


def run(number, case, world):
    name = case.__name__.replace("_", " ")
    try:
        case(world)
        print("ok %d - %s" % (number, name), flush=True)
    except Skip as why:
        print("ok %d - %s # SKIP %s" % (number, name, why), flush=True)
    except Exception as why:  # every failure is one line of the answer
        print("not ok %d - %s" % (number, name))
        print("# " + (repr(why) if not str(why) else str(why)).replace("\n", "\n# "), flush=True)


def start_embedded(flyball, folder):
    world = World(flyball, folder, folder + "/data/kubeconfig")
    scenario = pathlib.Path(folder, "scenario.yaml")
    objects = [namespace("llm"), namespace(HOME), node("node-1"),
               {"apiVersion": "testbed.flyball.dev/v1", "kind": "Include", "files": ["conversation"]},
               {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": INTERVAL_MAP, "namespace": HOME},
                "data": {"GLOBAL_OPT_INTERVAL": "2s"}},
               {"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "saturation-scaling-config", "namespace": HOME},
                "data": {"default": THRESHOLDS}}]
    scenario.write_text("\n---\n".join(json.dumps(o) for o in objects))
    try:
        world.prometheus = Prometheus(world)
        env = {"PROMETHEUS_BASE_URL": "http://127.0.0.1:%d" % world.prometheus.port,
               "PROMETHEUS_ALLOW_HTTP": "true"}
    except Skip:
        world.prometheus, env = None, {}
    world.start(flyball, "up", "--data", folder + "/data", "--testbed", str(scenario), "--log-level", "info",
                log="up", env=env)
    def up():
        return "saturation-scaling-config" in world.kubectl("get", "va,cm", "-n", HOME, check=False)
    if not until(up):
        raise RuntimeError("flyball up did not start: " + world.log("up"))
    return world


def least_privilege(world):
    """A kubeconfig of somebody who may do what deploy/rbac/saturation.yaml allows, and nothing else."""
    world.kubectl("apply", "-f", str(ROLE))
    world.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "flyball", "namespace": HOME}},
                {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                 "metadata": {"name": "flyball-saturation"},
                 "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                             "name": "flyball-saturation"},
                 "subjects": [{"kind": "ServiceAccount", "name": "flyball", "namespace": HOME}]})
    token = world.kubectl("create", "token", "flyball", "-n", HOME).strip()
    config = json.loads(world.kubectl("config", "view", "--raw", "--flatten", "--minify", "-o", "json"))
    config["users"][0]["user"] = {"token": token}
    path = world.folder + "/least.kubeconfig"
    pathlib.Path(path).write_text(json.dumps(config))
    return path


def start_real(flyball, folder, cluster):
    world = World(flyball, folder, cluster + "/kubeconfig")
    world.prometheus = None
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    world.port = server.server_port
    world.kubectl("apply", "-f", str(CRD))
    world.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "variantautoscalings.llmd.ai")
    world.apply(namespace("llm"), namespace(HOME), node("node-1"))
    world.config(INTERVAL_MAP, GLOBAL_OPT_INTERVAL="2s")
    world.config("saturation-scaling-config", default=THRESHOLDS)
    world.start(flyball, "operator", "--kubeconfig", least_privilege(world), "--leader-elect=false", "--listen", "none",
                "--controllers", "saturation", log="operator")
    return world


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("flyball")
    parser.add_argument("--cluster")
    parser.add_argument("cases", nargs="*")
    given = parser.parse_args()
    if not shutil.which("kubectl"):
        print("1..0 # SKIP there is no kubectl")
        return
    cases = [c for c in (REAL if given.cluster else EMBEDDED) if not given.cases or c.__name__ in given.cases]
    print("1..%d" % len(cases), flush=True)
    flyball = str(pathlib.Path(given.flyball).resolve())
    with tempfile.TemporaryDirectory() as folder:
        world = start_real(flyball, folder, given.cluster) if given.cluster else start_embedded(flyball, folder)
        try:
            for number, case in enumerate(cases, 1):
                run(number, case, world)
        finally:
            if world.prometheus:
                world.prometheus.stop()
            world.stop()


main()
