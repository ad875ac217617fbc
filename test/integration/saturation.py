#!/usr/bin/python3
"""Variants as a user sees them: kubectl, an API server, an operator, and a real Prometheus that scrapes
simulated vLLM servers under a recorded load.

    saturation.py FLYBALL                     on `flyball up`, whose simulated pods serve /metrics
    saturation.py FLYBALL --cluster DIR       on the control plane that test/kube/cluster started in DIR

Speaks TAP. Skipped where there is no kubectl; what needs a Prometheus where there is none.
"""
import datetime
import http.server
import json
import math
import pathlib
import re
import shutil
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

import harness
from harness import Real, Skip, TOP, Up, free_port, until

HOME = "workload-variant-autoscaler-system"
INTERVAL_MAP = "workload-variant-autoscaler-variantautoscaling-config"
MODEL = "meta/llama-3.1-8b"
THRESHOLDS = "kvCacheThreshold: 0.80\nqueueLengthThreshold: 5\nkvSpareTrigger: 0.10\nqueueSpareTrigger: 3\n"


class Watch:
    """The objects of some kinds as they are now and as they were, and a wait for what they should become: each change
    is looked at when it comes."""

    def __init__(self, world, *kinds):
        self.objects = {kind: {} for kind in kinds}
        self.history = []  # (kind, object), in order
        self.changed = threading.Condition()
        self.readers = [self.follow(world, kind) for kind in kinds]

    def follow(self, world, kind):
        reader = subprocess.Popen(["kubectl", "get", kind, "--watch", "--output-watch-events", "-o", "json"],
                                  env=world.env, stdout=subprocess.PIPE, text=True)
        threading.Thread(target=self.read, args=[kind, reader.stdout], daemon=True).start()
        return reader

    def read(self, kind, stream):
        for line in stream:
            event = json.loads(line)
            with self.changed:
                name = event["object"]["metadata"]["name"]
                self.objects[kind][name] = {} if event["type"] == "DELETED" else event["object"]
                self.history.append((kind, event["object"]))
                self.changed.notify_all()

    def until(self, question, seconds=300):
        """How long it may take is no part of any case, so that a busy machine fails none."""
        with self.changed:
            return self.changed.wait_for(question, seconds)

    def stop(self):
        for reader in self.readers:
            reader.kill()
            reader.wait()


class World(harness.World):
    NAMESPACE = "llm"
    FEATURE = "saturation"
    OWN = HOME
    watch = None

    def status(self, name):
        return self.watch.objects["va"].get(name, {}).get("status", {})

    def desired(self, name):
        return desired_by(self.status(name))

    def desired_since(self, mark, name):
        """All targets published for a variant, from a place in the watch's history on."""
        return [desired_by(o.get("status", {})) for kind, o in self.watch.history[mark:]
                if kind == "va" and o["metadata"]["name"] == name]

    def replicas(self, name):
        return self.watch.objects["deployments"].get(name, {}).get("spec", {}).get("replicas", 0)

    def of_condition(self, name, condition, *fields):
        for one in self.status(name).get("conditions", []):
            if one["type"] == condition:
                return tuple(one[field] for field in fields)
        return None

    def says(self, name, condition):
        return self.of_condition(name, condition, "status", "reason")

    def events(self, reason):
        return self.get("events", "--field-selector", "reason=" + reason).get("items", [])

    def config(self, name, **data):
        self.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": HOME},
                    "data": data})

    def rate(self, times):
        """The recorded conversation, so many times as fast as it was: 5 requests a second."""
        self.requests(trace="conversation", rate="0s=%g" % times)

    def requests(self, **data):
        self.apply({"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": "chat", "namespace": "llm",
                                 "labels": {"testbed.flyball.dev/load": "requests"}},
                    "data": {"model": MODEL, **data}})

    def cycles(self, more):
        """Waits for so many decisions."""
        def count():
            if isinstance(self.server, Real):
                with urllib.request.urlopen("http://127.0.0.1:%d/metrics" % self.operator_port, timeout=30) as answer:
                    text = answer.read().decode()
            else:
                text = self.server.metrics()
            return int(re.search(r"^saturation_cycle_seconds_count (\d+)", text, re.MULTILINE).group(1))
        end = count() + more
        return until(lambda: count() >= end)

    def said(self):
        """All that the controllers have logged."""
        if isinstance(self.server, Real):
            return pathlib.Path(self.folder, "operator.log").read_text()
        return self.server.text()

    def prepare(self):
        if isinstance(self.server, Real):
            prepare_real(self)
        self.watch = Watch(self, "va", "deployments", "pods")
        if not isinstance(self.server, Real) and self.server.prometheus:
            self.server.prometheus.follow(self.watch)

    def stop(self):
        if self.watch:
            self.watch.stop()
        super().stop()


def desired_by(status):
    return status.get("desiredOptimizedAlloc", {}).get("numReplicas", 0)


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
         "scaleDown": {"stabilizationWindowSeconds": 2}}


class Prometheus:
    """A real one, updated with the pods as they come and go."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.targets = pathlib.Path(folder, "targets.json")
        self.targets.write_text("[]")
        pathlib.Path(folder, "prometheus.yml").write_text(json.dumps({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "scrape_configs": [{"job_name": "vllm", "honor_labels": True, "file_sd_configs": [
                {"files": [str(self.targets)], "refresh_interval": "1s"}]}]}))
        self.over, self.teller, self.starts = False, None, 0
        self.start()

    def start(self):
        """With an empty store: it knows nothing of what was before."""
        self.starts += 1
        self.process = subprocess.Popen(
            ["prometheus", "--config.file=%s/prometheus.yml" % self.folder,
             "--storage.tsdb.path=%s/tsdb-%d" % (self.folder, self.starts),
             "--web.listen-address=127.0.0.1:%d" % self.port, "--web.enable-admin-api"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def post(self, path, **data):
        with urllib.request.urlopen("http://127.0.0.1:%d/api/v1/%s" % (self.port, path),
                                    urllib.parse.urlencode(data).encode(), timeout=30) as answer:
            return answer.read()

    def total(self, metric, at):
        """Over all pods, the highest of the minute before that time."""
        answer = self.post("query", time=at, query="sum(max by (pod) (max_over_time(vllm:%s[1m])))" % metric)
        found = json.loads(answer)["data"]["result"]
        return float(found[0]["value"][1]) if found else 0

    def forget(self):
        """What was so far: else the minute that a decision looks back on has to pass."""
        self.post("admin/tsdb/delete_series", **{"match[]": '{__name__=~".+"}'})

    def follow(self, watch):
        self.teller = threading.Thread(target=self.tell, args=[watch], daemon=True)
        self.teller.start()

    def tell(self, watch):
        told = None
        while not self.over:
            with watch.changed:
                watch.changed.wait(1)
                found = [{"targets": ["%s:8000" % p["status"]["podIP"]],
                          "labels": {"namespace": "llm", "pod": name}}
                         for name, p in watch.objects["pods"].items() if p.get("status", {}).get("podIP")]
            if found != told:
                fresh = self.targets.with_suffix(".new")
                fresh.write_text(json.dumps(found))
                fresh.rename(self.targets)
                told = found

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        self.over = True
        if self.teller:
            self.teller.join(10)
        self.kill()


class Simulated(Up):
    """`flyball up` with an empty cluster; it reads a Prometheus where there is one."""

    def __init__(self, flyball, folder):
        scenario = pathlib.Path(folder, "scenario.yaml")
        objects = [namespace("llm"), namespace(HOME), node("node-1"),
                   {"apiVersion": "testbed.flyball.dev/v1", "kind": "Include", "files": ["conversation"]},
                   {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": INTERVAL_MAP, "namespace": HOME},
                    "data": {"GLOBAL_OPT_INTERVAL": "1s"}},
                   {"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": "saturation-scaling-config", "namespace": HOME},
                    "data": {"default": THRESHOLDS}}]
        scenario.write_text("\n---\n".join(map(json.dumps, objects)))
        self.prometheus, env = None, {"WVA_RULES": "need"}
        if shutil.which("prometheus"):
            self.prometheus = Prometheus(folder)
            env.update(PROMETHEUS_BASE_URL="http://127.0.0.1:%d" % self.prometheus.port, PROMETHEUS_ALLOW_HTTP="true")
        # These cases test `need`, which decides from KV cache and queue; `slo` has its own tests.
        super().__init__(flyball, folder + "/data", "--testbed", scenario, "--log-level", "info", env=env)

    def stop(self, *how):
        if self.prometheus:
            self.prometheus.stop()
        return super().stop(*how)


FOUND = ("True", "MetricsFound")


def bound(world, name, least, most):
    world.kubectl("patch", "va", name, "--type=merge", "-p",
                  json.dumps({"spec": {"minReplicas": least, "maxReplicas": most}}))


def an_idle_model_shrinks_to_one_of_each(world):
    world.rate(0.2)
    world.apply(deployment("chat-l40s", "L40S", 2), variant("chat-l40s", "L40S", "10.0", actuation="Scale",
                                                            maxReplicas=6, behavior=QUICK),
                deployment("chat-h100", "H100", 2), variant("chat-h100", "H100", "40.0", actuation="Scale",
                                                            maxReplicas=6, behavior=QUICK))
    assert world.watch.until(lambda: world.says("chat-l40s", "MetricsAvailable") == FOUND), world.status("chat-l40s")
    assert world.watch.until(lambda: world.replicas("chat-h100") == 1), world.status("chat-h100")
    assert world.watch.until(lambda: world.replicas("chat-l40s") == 1), world.status("chat-l40s")
    assert until(lambda: world.events("ScaleDown"))


def needed(prometheus, have, at):
    """The replicas that the load of a model asks for when it needs more than it has: by the rule, not by flyball."""
    load = max(prometheus.total("kv_cache_usage_perc", at) / 0.7, prometheus.total("num_requests_waiting", at) / 2)
    return min(max(math.ceil(load), have + 1), max(2 * have, have + 2))


def seconds_of(event):
    return datetime.datetime.fromisoformat(event["lastTimestamp"].replace("Z", "+00:00")).timestamp()


def load_grows_the_cheap_one_and_the_expensive_one_last(world):
    mark, known = len(world.watch.history), {event["metadata"]["name"] for event in world.events("ScaleUp")}
    world.rate(2)
    assert world.watch.until(lambda: world.replicas("chat-l40s") >= 3), world.status("chat-l40s")
    assert set(world.desired_since(mark, "chat-h100")) <= {1}, "the cheap variant has room, the expensive one must wait"
    assert until(lambda: world.events("Scaled"))
    assert until(lambda: {event["metadata"]["name"] for event in world.events("ScaleUp")} > known)
    first = min((e for e in world.events("ScaleUp") if e["metadata"]["name"] not in known), key=seconds_of)
    before, after, need, have = map(int, re.match(
        r"(\d+) -> (\d+) replicas: scale-up: the load needs (\d+) replicas of the model, it has (\d+);",
        first["message"]).groups())
    assert first["involvedObject"]["name"] == "chat-l40s" and have == 2 and after - before == need - have, first
    if world.server.prometheus:  # asked later about that time. The load grows, and the decision is not older than 15 s
        at = seconds_of(first)
        least, most = (needed(world.server.prometheus, have, when) for when in (at - 15, at + 1))
        assert least <= need <= most, (first, least, most)


def explain_says_why(world):
    said = world.explain("va", "chat-l40s")
    for part in ("VariantAutoscaling llm/chat-l40s: %s on L40S, a replica costs 10" % MODEL,
                 "scales Deployment chat-l40s by writing its replicas, between 1 and 6 replicas",
                 "OptimizationReady", "> chat-l40s", "  chat-h100",
                 "saturated at KV cache >= 0.8 or queue >= 5"):
        assert part in said, said


def get_lists_variants_of_both_kinds(world):
    def get(*words):
        return subprocess.run([world.flyball, "get", "variants", *words], env=world.env, capture_output=True, text=True)
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "plain"}
    world.apply(deployment("plain", "L40S"),
                {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
                 "metadata": {"name": "plain", "namespace": "llm", "annotations": {"llm-d.ai/managed": "true", "llm-d.ai/model-id": "m"}},
                 "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 3}},
                {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {
                    "name": "second", "namespace": "llm", "annotations": {"llm-d.ai/managed": "true", "llm-d.ai/model-id": MODEL}},
                 "spec": {"scaleTargetRef": dict(target, name="chat-l40s"), "minReplicas": 1, "maxReplicas": 3}})
    rows = [line.split() for line in get("-n", world.NAMESPACE).stdout.splitlines()]
    assert rows[0] == ["NAME", "DESCRIBED-BY", "MODEL", "TARGET", "CURRENT", "DESIRED", "REASON"], rows
    by_name = {row[0]: row[1:] for row in rows[1:]}
    assert by_name["chat-l40s"][0] == "VariantAutoscaling" and by_name["chat-l40s"][3].isdigit(), rows
    assert by_name["plain"][:3] == ["HorizontalPodAutoscaler", "m", "Deployment/plain"], rows
    assert by_name["second"][-1] == "DuplicateVariant", rows
    assert get("-A").stdout.startswith("NAMESPACE ") and "ACCELERATOR" in get("-A", "-o", "wide").stdout
    items = json.loads(get("-A", "-o", "json").stdout)["items"]
    assert {one["name"] for one in items} >= {"chat-l40s", "chat-h100", "plain", "second"}, items
    assert [one["name"] for one in json.loads(get("plain", "-n", world.NAMESPACE, "-o", "json").stdout)["items"]] == ["plain"]
    absent = get("absent", "-n", world.NAMESPACE)
    assert absent.returncode == 1 and 'variant "absent" not found' in absent.stderr, absent
    assert get("-o", "yaml").returncode == 2
    world.kubectl("delete", "hpa,deployment", "plain", check=False)
    world.kubectl("delete", "hpa", "second")


def columns_are_the_originals(world):
    def rows():
        return world.kubectl("get", "va", "chat-l40s").splitlines()
    assert until(lambda: rows()[1].split()[:5] == ["chat-l40s", "chat-l40s", MODEL, "L40S", "1"]), rows()
    row = rows()
    assert row[0].split() == ["NAME", "TARGET", "MODEL", "ACCELERATOR", "CURRENTREPLICAS", "OPTIMIZED",
                              "METRICSREADY", "AGE"], row


def an_edit_counts_at_once_and_a_wrong_one_not(world):
    name = "chat-l40s"

    def all_report():
        return world.status(name).get("currentAlloc", {}).get("numReplicas") == 2 and \
            world.of_condition(name, "MetricsAvailable", "message") == \
            ("Saturation metrics data is available for scaling decisions",)
    bound(world, name, 1, 2)
    # Thresholds of nothing: any load at all asks for more.
    world.config("saturation-scaling-config", default=THRESHOLDS,
                 **{name: "kvCacheThreshold: 0.001\nkvSpareTrigger: 0.001\n"})
    assert until(lambda: "Updated global saturation config from ConfigMap entries=2" in world.said())
    assert world.watch.until(lambda: world.desired(name) == 2), world.status(name)
    assert world.watch.until(all_report), world.status(name)
    mark = len(world.watch.history)
    for wrong, line in (("kvCacheThreshold: 1.5\n", "Invalid saturation scaling config entry key=" + name),
                        ("kvCacheThreshold: [\n", "Failed to parse saturation scaling config entry key=" + name)):
        world.config("saturation-scaling-config", default=THRESHOLDS, **{name: wrong})
        assert until(lambda: line in world.said())
        assert world.cycles(5)
        # By any other thresholds an idle model would shrink.
        assert world.desired(name) == 2 and set(world.desired_since(mark, name)) <= {2}, world.status(name)
    world.config("saturation-scaling-config", default=THRESHOLDS)
    assert world.watch.until(lambda: world.desired(name) == 1), world.status(name)
    assert world.watch.until(lambda: world.replicas(name) == 1), world.status(name)
    bound(world, name, 1, 6)


def read_servers(world):
    """(requests waiting, part of the KV cache used) of each, by their own word."""
    found = []
    for pod in list(world.watch.objects["pods"].values()):
        if not pod.get("status", {}).get("podIP"):
            continue
        with urllib.request.urlopen("http://%s:8000/metrics" % pod["status"]["podIP"], timeout=30) as answer:
            text = answer.read().decode()
        found.append([float(re.search(r"^vllm:%s\{.*\} (\S+)" % name, text, re.MULTILINE).group(1))
                      for name in ("num_requests_waiting", "kv_cache_usage_perc")])
    return found


def until_servers(world, question):
    """Waits for an answer about all servers. One that starts or stops refuses connections: then nothing is known of
    all of them, and they are asked again."""
    def answer():
        try:
            return question(read_servers(world))
        except urllib.error.URLError:
            return False
    return until(answer, 300)


def are_idle(servers):
    """Have the servers worked off what came before?"""
    return all(not waiting and used <= 0.2 for waiting, used in servers)


def without_prometheus_the_last_decision_holds(world):
    prometheus = world.server.prometheus
    if not prometheus:
        raise Skip("there is no Prometheus")
    prometheus.kill()
    assert world.watch.until(lambda: world.says("chat-l40s", "MetricsAvailable") == ("False", "PrometheusError")), \
        world.status("chat-l40s")
    held = world.desired("chat-l40s")
    assert held >= 3, world.status("chat-l40s")
    world.rate(0.2)
    assert world.cycles(10)
    assert until_servers(world, are_idle)
    assert world.desired("chat-l40s") == held, world.status("chat-l40s")  # idle now, and nothing may shrink
    assert "Safety net activated" in world.said()
    prometheus.start()
    assert world.watch.until(lambda: world.says("chat-l40s", "MetricsAvailable") == FOUND), world.status("chat-l40s")


def the_load_falls_and_so_do_the_replicas(world):
    world.rate(0.2)
    assert world.watch.until(lambda: world.replicas("chat-l40s") == 1), world.status("chat-l40s")
    assert world.replicas("chat-h100") == 1


def load(world, per_second, is_there):
    """Steady requests, until the servers' caches together are as full as they should be."""
    world.requests(rate="0s=%g" % per_second, promptTokens="800", outputTokens="100")
    assert until_servers(world, lambda servers: is_there(sum(used for _, used in servers))), "%g a second" % per_second


def a_falling_load_shrinks_the_expensive_one_first(world):
    """A replica may use 0.2 of its cache here, far below where servers slow down: load and use are proportional."""
    prometheus = world.server.prometheus
    if not prometheus:
        raise Skip("there is no Prometheus")
    cheap, expensive = "chat-l40s", "chat-h100"

    def have(cheap_ones, expensive_ones):
        return (world.desired(cheap), world.desired(expensive)) == (cheap_ones, expensive_ones) == \
            (world.replicas(cheap), world.replicas(expensive))
    bound(world, cheap, 2, 2)
    bound(world, expensive, 4, 4)
    world.config("saturation-scaling-config", default=THRESHOLDS.replace("0.80", "0.30"))
    assert world.watch.until(lambda: have(2, 4)), (world.status(cheap), world.status(expensive))
    assert until_servers(world, lambda servers: len(servers) == 6)
    load(world, 35, lambda used: used > 1.2)  # for more than six
    prometheus.forget()
    bound(world, cheap, 1, 2)
    bound(world, expensive, 1, 4)
    assert world.cycles(5)
    assert have(2, 4), (world.status(cheap), world.status(expensive))

    mark = len(world.watch.history)
    load(world, 18, lambda used: used < 0.9)  # for three to five: one may go, three at most
    prometheus.forget()
    assert world.watch.until(lambda: world.replicas(expensive) < 4), world.status(expensive)
    assert world.cycles(5)
    fell = world.desired_since(mark, expensive), world.desired_since(mark, cheap)
    assert min(fell[0]) < 4 and set(fell[1]) <= {2}, "expensive, then cheap: %s" % (fell,)
    assert world.replicas(cheap) == 2, world.status(cheap)

    load(world, 0.5, lambda used: used < 0.2)  # for one, and each keeps its minimum
    prometheus.forget()
    assert world.watch.until(lambda: have(1, 1)), (world.status(cheap), world.status(expensive))
    world.config("saturation-scaling-config", default=THRESHOLDS)


def a_variant_may_come_first(world):
    world.apply(variant("early", "A100", "20.0"))
    assert world.watch.until(lambda: world.says("early", "TargetResolved") == ("False", "TargetNotFound"))
    world.apply(deployment("early", "A100"))
    assert world.watch.until(lambda: world.says("early", "TargetResolved") == ("True", "TargetFound"))
    world.kubectl("delete", "va,deployment", "early")


EMBEDDED = [an_idle_model_shrinks_to_one_of_each, explain_says_why, get_lists_variants_of_both_kinds,
            columns_are_the_originals,
            an_edit_counts_at_once_and_a_wrong_one_not, load_grows_the_cheap_one_and_the_expensive_one_last,
            without_prometheus_the_last_decision_holds, the_load_falls_and_so_do_the_replicas,
            a_falling_load_shrinks_the_expensive_one_first, a_variant_may_come_first]


# ---- on a real control plane: no simulated pods, so the test serves the metrics of one itself


class Page(harness.Handler):
    kv, queue = 0.9, 9

    def do_GET(self):
        text = ("vllm:kv_cache_usage_perc{model_name=\"%s\"} %g\nvllm:num_requests_waiting{model_name=\"%s\"} %g\n"
                % (MODEL, Page.kv, MODEL, Page.queue)).encode()
        self.answer(text)


def make_ready(world, port):
    """Takes the place of a kubelet: every pod is ready at our address, with our port."""
    for pod in world.get("pods").get("items", []):
        name = pod["metadata"]["name"]
        if not pod.get("spec", {}).get("nodeName"):
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name, "namespace": "llm"},
                       "target": {"apiVersion": "v1", "kind": "Node", "name": "node-1"}}
            world.kubectl("create", "--raw", "/api/v1/namespaces/llm/pods/%s/binding" % name, "-f", "-",
                          text=json.dumps(binding), check=False)
        world.kubectl("annotate", "pod", name, "prometheus.io/port=%d" % port, "--overwrite")
        world.patch_status("pod", name, {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}],
                                         "conditions": [{"type": "Ready", "status": "True"},
                                                        {"type": "ContainersReady", "status": "True"}]})


def a_real_deployment_is_scaled(world):
    plain = deployment("real", "A100")
    del plain["spec"]["template"]["spec"]["containers"][0]["ports"]
    world.apply(plain, variant("real", "A100", "10.0", actuation="Scale", maxReplicas=4, behavior=QUICK))
    assert until(lambda: world.get("pods", "-l", "app=real").get("items"))
    make_ready(world, world.port)
    assert until(lambda: world.condition("va", "real", "MetricsAvailable") == ("True", "MetricsFound"), 90), \
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
    # Replicas that were just added stay for the delay with which pods start: two minutes, as long as it is not known.
    assert until(settles, 300), "%s\n%s" % (world.status("real"), world.said()[-3000:])
    assert until(lambda: world.status("real")["actuation"]["applied"]), world.status("real")


def has_settled(world, name):
    """The decision is followed, and the status shows it: nothing is left to report."""
    status = world.status(name)
    messages = {one["type"]: one["message"] for one in status["conditions"]}
    return (status["currentAlloc"]["numReplicas"] == status["desiredOptimizedAlloc"]["numReplicas"]
            and "no change needed" in messages["OptimizationReady"])


def conditions_and_events_are_stored(world):
    assert world.condition("va", "real", "TargetResolved") == ("True", "TargetFound")
    assert world.condition("va", "real", "OptimizationReady")[0] == "True"
    kinds = {e["involvedObject"]["kind"] for e in world.events("ScaleUp") + world.events("ScaleDown")}
    assert kinds == {"VariantAutoscaling"}, kinds
    assert until(lambda: has_settled(world, "real")), world.status("real")
    before = world.get("va", "real")
    assert world.cycles(10)  # with nothing new
    after = world.get("va", "real")
    assert after["metadata"]["resourceVersion"] == before["metadata"]["resourceVersion"], \
        "written without a reason: %s, then %s" % (before["status"], after["status"])
    assert "forbidden" not in world.said(), world.said()


def cycles_ask_for_no_configuration(world):
    """By the API server's own record of who asked for a ConfigMap: what is new comes through watches."""
    def requests():
        lines = pathlib.Path(world.server.folder, "audit.log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]
    before = requests()
    watches = [r for r in before if r["verb"] == "watch" and r["user"]["username"].endswith(":flyball-saturation")]
    assert watches, before
    world.config("saturation-scaling-config", default=THRESHOLDS.replace("0.80", "0.75"))
    assert until(lambda: world.said().count("Updated global saturation config from ConfigMap") >= 2), world.said()
    assert world.cycles(10)
    asked = [(r["verb"], r["requestURI"]) for r in requests()[len(before):]
             if r["verb"] != "watch" and "flyball-saturation-state" not in r["requestURI"]]
    assert not asked, asked


def bad_manifests_are_refused(world):
    for bad, field in ((variant("bad", "A100", "ten"), "variantCost"),
                       (variant("bad", "A100", "10", minReplicas=5, maxReplicas=3),
                        "minReplicas must not be more than maxReplicas"),
                       (variant("bad", "A100", "10", maxReplicas=0), "maxReplicas")):
        try:
            world.apply(bad)
        except RuntimeError as why:
            assert field in str(why), why
        else:
            raise AssertionError("accepted: %s" % bad)
    world.apply(variant("edge", "A100", "10", minReplicas=3, maxReplicas=3))


REAL = [a_real_deployment_is_scaled, conditions_and_events_are_stored, cycles_ask_for_no_configuration,
        bad_manifests_are_refused]


def prepare_real(world):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    world.port = server.server_port
    world.define(TOP / "deploy/crds/llmd.ai_variantautoscalings.yaml")
    world.apply(namespace("llm"), namespace(HOME), node("node-1"))
    world.config(INTERVAL_MAP, GLOBAL_OPT_INTERVAL="1s")
    world.config("saturation-scaling-config", default=THRESHOLDS)
    world.operator_port = free_port()
    world.run_operator("--listen", "127.0.0.1:%d" % world.operator_port)


harness.main(World, EMBEDDED, REAL, Simulated)
