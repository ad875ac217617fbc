#!/usr/bin/python3
"""An AIMService from its manifest to its end: kubectl, an API server, an operator, and the shapes of KServe. The test
plays KServe; on a real control plane its own controllers run jobs and collect garbage.

    aimservice.py FLYBALL                     on the embedded API server
    aimservice.py FLYBALL --cluster DIR       on the control plane that test/kube/cluster started in DIR

Speaks TAP. Skipped where there is no kubectl.
"""
import json
import signal

import harness
from harness import Real, TOP, until

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


class World(harness.World):
    NAMESPACE = NS
    FEATURE = "runtimeconfig"

    def word(self, name, kind="aimservice"):
        return self.get(kind, name).get("status", {}).get("status")

    def is_true(self, name, condition, kind="aimservice"):
        return any(one["type"] == condition and one["status"] == "True"
                   for one in self.get(kind, name).get("status", {}).get("conditions", []))

    def make_ready(self, name, ready="True"):
        self.patch_status("isvc", name, {"conditions": [{"type": "Ready", "status": ready}]})

    def prepare(self):
        self.define(*(TOP / "deploy/crds").glob("aim*.yaml"), *(TOP / "examples/crds").glob("*.yaml"))
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
        self.apply(aim("AIMModel", "meta-llama-3-8b", {"image": "example.org/llama:1"}),
                   aim("AIMServiceTemplate", "llama-latency", {
                       "modelName": "meta-llama-3-8b", "metric": "latency", "precision": "fp16",
                       "modelSources": [{"name": "meta-llama/Llama-3-8B", "size": "16Gi",
                                         "sourceUri": "hf://meta-llama/Llama-3-8B"}]}))
        self.run_operator()


def a_service_comes_up(world):
    world.apply(service("chat", replicas=2))
    assert until(lambda: world.get("isvc", "chat"))
    assert until(lambda: world.word("chat") == "Starting")
    predictor = world.get("isvc", "chat")["spec"]["predictor"]
    assert predictor["minReplicas"] == predictor["maxReplicas"] == 2
    assert predictor["model"]["runtime"] == "llama-latency"
    claim = world.get("pvc", "chat-temp-cache")
    assert claim["spec"]["resources"]["requests"]["storage"] == "18Gi", claim["spec"]
    assert world.get("servingruntime", "llama-latency")["spec"]["containers"][0]["image"] == "example.org/llama:1"
    world.make_ready("chat")
    assert until(lambda: world.word("chat") == "Running")
    line = world.kubectl("get", "aimservice", "chat", "--no-headers").split()
    assert line[:4] == ["chat", "Running", "meta-llama-3-8b", "llama-latency"], line


def an_operator_that_is_killed_goes_on(world):
    world.stop_operator(signal.SIGKILL)
    world.make_ready("chat", "False")
    world.kubectl("patch", "aimservice", "chat", "--type=merge", "-p", '{"spec":{"replicas":3}}')
    uid = world.get("isvc", "chat")["metadata"]["uid"]
    world.run_operator()
    assert until(lambda: world.get("isvc", "chat")["spec"]["predictor"]["maxReplicas"] == 3)
    assert until(lambda: world.word("chat") == "Starting")
    assert world.get("isvc", "chat")["metadata"]["uid"] == uid
    world.make_ready("chat")
    assert until(lambda: world.word("chat") == "Running")


def a_runtime_deleted_by_hand_comes_back(world):
    uid = world.get("isvc", "chat")["metadata"]["uid"]
    world.kubectl("delete", "isvc", "chat")
    assert until(lambda: world.get("isvc", "chat").get("metadata", {}).get("uid", uid) != uid)
    world.make_ready("chat")
    assert until(lambda: world.word("chat") == "Running")


def overrides_make_a_template(world):
    world.apply(service("fast", overrides={"metric": "throughput", "precision": "fp16"}))
    name = "llama-latency-ovr-6c75f1d2"
    assert until(lambda: world.word(name, "aimservicetemplate") == "Ready")
    assert until(lambda: world.get("isvc", "fast").get("spec", {}).get("predictor", {}).get(
        "model", {}).get("runtime") == name)
    world.kubectl("delete", "aimservice", "fast")


def finish_download(world):
    """The job's pod succeeds; without a job controller, the job does."""
    job = MODEL_CACHE + "-cache-download"
    assert until(lambda: world.get("job", job))
    if not isinstance(world.server, Real):
        world.patch_status("job", job, {"succeeded": 1, "startTime": "2026-01-01T00:00:00Z",
                                        "completionTime": "2026-01-01T00:01:00Z",
                                        "conditions": [{"type": "SuccessCriteriaMet", "status": "True"},
                                                       {"type": "Complete", "status": "True"}]})
        return
    pods = lambda: world.get("pods", "-l", "job-name=" + job).get("items")
    assert until(pods)
    world.patch_status("pod", pods()[0]["metadata"]["name"], {"phase": "Succeeded"})


def a_cache_is_filled_before_the_service_starts(world):
    world.apply(service("cached", cacheModel=True))
    assert until(lambda: world.get("pvc", MODEL_CACHE + "-cache"))
    assert not world.get("isvc", "cached")
    world.patch_status("pvc", MODEL_CACHE + "-cache", {"phase": "Bound"})
    finish_download(world)
    assert until(lambda: world.word("llama-latency", "aimtemplatecache") == "Available")
    assert until(lambda: world.get("isvc", "cached"))
    volume = world.get("isvc", "cached")["spec"]["predictor"]["volumes"][0]
    assert volume["persistentVolumeClaim"]["claimName"] == MODEL_CACHE + "-cache"
    world.make_ready("cached")
    assert until(lambda: world.word("cached") == "Running")


def explain_says_why(world):
    said = world.explain("aimsvc", "chat")
    assert "runs with      llama-latency, the best of the model's templates" in said, said
    assert "derived from another by overrides" in said, said
    said = world.explain("aimmodel", "meta-llama-3-8b")
    assert "therefore      Ready" in said, said


def everything_goes_with_its_service(world):
    for name in ("chat", "cached"):
        world.kubectl("delete", "aimservice", name, "--timeout=120s")
        assert until(lambda: not world.get("isvc", name))
    assert until(lambda: not world.get("pvc", "chat-temp-cache"))
    assert world.word("llama-latency", "aimtemplatecache") == "Available"  # what is downloaded stays


CASES = [a_service_comes_up, an_operator_that_is_killed_goes_on, a_runtime_deleted_by_hand_comes_back,
         overrides_make_a_template, a_cache_is_filled_before_the_service_starts, explain_says_why,
         everything_goes_with_its_service]

harness.main(World, CASES)
