#!/usr/bin/python3
"""An AIMService from its manifest to its end: kubectl, an API server, an operator, and the shapes of KServe. The test
plays KServe; on a real control plane its own controllers run jobs and collect garbage.

    aimservice.py FLYBALL                     on the embedded API server
    aimservice.py FLYBALL --cluster DIR       on the control plane that test/kube/cluster started in DIR

Speaks TAP. Skipped where there is no kubectl.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import tempfile

import schedule
from schedule import Embedded, Real, until

TOP = pathlib.Path(__file__).resolve().parents[2]
GROUP = "aim.silogen.ai"
NS = "aim-test"
MODEL_CACHE = "meta-llama-llama-3-8b"


def aim(kind, name, spec, namespace=NS, labels=None):
    metadata = {"name": name, "labels": labels or {}}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": GROUP + "/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def service(name, **spec):
    return aim("AIMService", name, {"model": {"ref": "meta-llama-3-8b"}, **spec}, labels={"team": "a"})


class World(schedule.World):
    def run_operator(self, *flags):
        self.stop_operator()
        self.log = open(self.folder + "/operator.log", "a")
        self.operator = subprocess.Popen(
            [self.flyball, "operator", "--kubeconfig", self.server.kubeconfig, "--leader-elect=false",
             "--listen", "none", "--controllers", "runtimeconfig", *flags],
            stdout=self.log, stderr=subprocess.STDOUT)

    def kill_operator(self):
        self.operator.kill()
        self.operator.wait()
        self.operator = None
        self.log.close()

    def here(self, kind, name):
        return self.get(kind, name, "-n", NS)

    def word(self, name, kind="aimservice"):
        return self.here(kind, name).get("status", {}).get("status")

    def is_true(self, name, condition, kind="aimservice"):
        return any(one["type"] == condition and one["status"] == "True"
                   for one in self.here(kind, name).get("status", {}).get("conditions", []))

    def set_status(self, kind, name, status):
        self.kubectl("patch", kind, name, "-n", NS, "--subresource=status", "--type=merge", "-p",
                     json.dumps({"status": status}))

    def make_ready(self, name, ready="True"):
        self.set_status("isvc", name, {"conditions": [{"type": "Ready", "status": ready}]})

    def prepare(self):
        crds = sorted((TOP / "deploy/crds").glob("aim*.yaml")) + sorted((TOP / "examples/crds").glob("*.yaml"))
        for crd in crds:
            self.kubectl("apply", "--server-side", "-f", str(crd))
        names = [".".join(crd.stem.split("_")[::-1]) for crd in crds]
        self.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", *names)
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
        self.apply(aim("AIMModel", "meta-llama-3-8b", {"image": "example.org/llama:1"}),
                   aim("AIMServiceTemplate", "llama-latency", {
                       "modelName": "meta-llama-3-8b", "metric": "latency", "precision": "fp16",
                       "modelSources": [{"name": "meta-llama/Llama-3-8B", "size": "16Gi",
                                         "sourceUri": "hf://meta-llama/Llama-3-8B"}]}))


def a_service_comes_up(world):
    world.apply(service("chat", replicas=2))
    assert until(lambda: world.here("isvc", "chat"))
    assert until(lambda: world.word("chat") == "Starting")
    predictor = world.here("isvc", "chat")["spec"]["predictor"]
    assert predictor["minReplicas"] == predictor["maxReplicas"] == 2
    assert predictor["model"]["runtime"] == "llama-latency"
    claim = world.here("pvc", "chat-temp-cache")
    assert claim["spec"]["resources"]["requests"]["storage"] == "18Gi", claim["spec"]
    assert world.here("servingruntime", "llama-latency")["spec"]["containers"][0]["image"] == "example.org/llama:1"
    world.make_ready("chat")
    assert until(lambda: world.word("chat") == "Running")
    line = world.kubectl("get", "aimservice", "chat", "-n", NS, "--no-headers").split()
    assert line[:4] == ["chat", "Running", "meta-llama-3-8b", "llama-latency"], line


def an_operator_that_is_killed_goes_on(world):
    world.kill_operator()
    world.make_ready("chat", "False")
    world.kubectl("patch", "aimservice", "chat", "-n", NS, "--type=merge", "-p", '{"spec":{"replicas":3}}')
    uid = world.here("isvc", "chat")["metadata"]["uid"]
    world.run_operator()
    assert until(lambda: world.here("isvc", "chat")["spec"]["predictor"]["maxReplicas"] == 3)
    assert until(lambda: world.word("chat") == "Starting")
    assert world.here("isvc", "chat")["metadata"]["uid"] == uid
    world.make_ready("chat")
    assert until(lambda: world.word("chat") == "Running")


def a_runtime_deleted_by_hand_comes_back(world):
    uid = world.here("isvc", "chat")["metadata"]["uid"]
    world.kubectl("delete", "isvc", "chat", "-n", NS)
    assert until(lambda: world.here("isvc", "chat").get("metadata", {}).get("uid", uid) != uid)
    world.make_ready("chat")
    assert until(lambda: world.word("chat") == "Running")


def overrides_make_a_template(world):
    world.apply(service("fast", overrides={"metric": "throughput", "precision": "fp16"}))
    name = "llama-latency-ovr-6c75f1d2"
    assert until(lambda: world.word(name, "aimservicetemplate") == "Ready")
    assert until(lambda: world.here("isvc", "fast").get("spec", {}).get("predictor", {}).get(
        "model", {}).get("runtime") == name)
    world.kubectl("delete", "aimservice", "fast", "-n", NS)


def finish_download(world):
    """The job's pod succeeds; where nobody runs jobs, the job does."""
    job = MODEL_CACHE + "-cache-download"
    assert until(lambda: world.here("job", job))
    if not isinstance(world.server, Real):
        world.set_status("job", job, {"succeeded": 1, "startTime": "2026-01-01T00:00:00Z",
                                      "completionTime": "2026-01-01T00:01:00Z",
                                      "conditions": [{"type": "SuccessCriteriaMet", "status": "True"},
                                                     {"type": "Complete", "status": "True"}]})
        return
    pods = lambda: world.get("pods", "-n", NS, "-l", "job-name=" + job).get("items")
    assert until(pods)
    world.set_status("pod", pods()[0]["metadata"]["name"], {"phase": "Succeeded"})


def a_cache_is_filled_before_the_service_starts(world):
    world.apply(service("cached", cacheModel=True))
    assert until(lambda: world.here("pvc", MODEL_CACHE + "-cache"))
    assert not world.here("isvc", "cached")
    world.set_status("pvc", MODEL_CACHE + "-cache", {"phase": "Bound"})
    finish_download(world)
    assert until(lambda: world.word("llama-latency", "aimtemplatecache") == "Available")
    assert until(lambda: world.here("isvc", "cached"))
    volume = world.here("isvc", "cached")["spec"]["predictor"]["volumes"][0]
    assert volume["persistentVolumeClaim"]["claimName"] == MODEL_CACHE + "-cache"
    world.make_ready("cached")
    assert until(lambda: world.word("cached") == "Running")


def explain_says_why(world):
    said = subprocess.run([world.flyball, "explain", "aimsvc", "chat", "-n", NS, "--kubeconfig",
                           world.server.kubeconfig], text=True, capture_output=True)
    assert "runs with      llama-latency, the best of the model's templates" in said.stdout, said.stdout + said.stderr
    assert "derived from another by overrides" in said.stdout, said.stdout
    said = subprocess.run([world.flyball, "explain", "aimmodel", "meta-llama-3-8b", "-n", NS, "--kubeconfig",
                           world.server.kubeconfig], text=True, capture_output=True)
    assert "therefore      Ready" in said.stdout, said.stdout + said.stderr


def everything_goes_with_its_service(world):
    for name in ("chat", "cached"):
        world.kubectl("delete", "aimservice", name, "-n", NS, "--timeout=120s")
        assert until(lambda: not world.here("isvc", name))
    assert until(lambda: not world.here("pvc", "chat-temp-cache"))
    assert world.word("llama-latency", "aimtemplatecache") == "Available"  # what is downloaded stays


CASES = [a_service_comes_up, an_operator_that_is_killed_goes_on, a_runtime_deleted_by_hand_comes_back,
         overrides_make_a_template, a_cache_is_filled_before_the_service_starts, explain_says_why,
         everything_goes_with_its_service]


def run(number, case, world):
    name = case.__name__.replace("_", " ")
    try:
        case(world)
        print("ok %d - %s" % (number, name), flush=True)
    except Exception as why:  # every failure is one line of the answer
        print("not ok %d - %s" % (number, name))
        print("# " + (repr(why) if not str(why) else str(why)).replace("\n", "\n# "), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("flyball")
    parser.add_argument("--cluster")
    given = parser.parse_args()
    if not shutil.which("kubectl"):
        print("1..0 # SKIP there is no kubectl")
        return
    print("1..%d" % len(CASES))
    with tempfile.TemporaryDirectory() as folder:
        flyball = str(pathlib.Path(given.flyball).resolve())
        server = Real(given.cluster) if given.cluster else Embedded(flyball, folder)
        world = World(server, flyball, folder)
        try:
            world.prepare()
            world.run_operator()
            for number, case in enumerate(CASES, 1):
                run(number, case, world)
        finally:
            world.stop_operator()
            server.stop()


main()
