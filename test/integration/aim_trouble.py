#!/usr/bin/python3
"""Never degrade what runs: a service that runs, then a trouble, a restart of the operator in the middle of it, and its end.
In all of that the InferenceService and its serving runtime stay as they were. A service that is new in a trouble gets neither an
InferenceService nor a route. The test plays KServe and the gateway.

    aim_trouble.py FLYBALL                     on the embedded API server
    aim_trouble.py FLYBALL --cluster DIR       on the control plane that test/kube/cluster started in DIR

Speaks TAP. Skipped where there is no kubectl. test/unit/runtimeconfig/service_trouble_test.c has the same table in virtual time.
"""
import json
import sys

import harness
from harness import TOP, until

GROUP = "aim.silogen.ai"
NS = "trouble-test"
PAUSE = GROUP + "/reconciliation-paused"
SOURCES = [{"modelId": "acme/tiny", "sourceUri": "hf://acme/tiny", "size": "2Gi"}]
TEMPLATE = {"modelName": "tiny", "metric": "latency", "precision": "fp16", "modelSources": SOURCES}
ROUTING = {"routing": {"enabled": True, "gatewayRef": {"name": "edge", "namespace": NS}}}


def aim(kind, name, spec):
    return {"apiVersion": GROUP + "/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": NS}, "spec": spec}


MODEL = aim("AIMModel", "tiny", {"image": "example.org/acme/tiny:1"})
CONFIG = aim("AIMRuntimeConfig", "gold", ROUTING)
FAST = aim("AIMServiceTemplate", "fast", TEMPLATE)


def service(name, **more):
    return aim("AIMService", name, {"model": {"ref": "tiny"}, "runtimeConfigName": "gold", **more})


class World(harness.World):
    NAMESPACE = NS
    FEATURE = "runtimeconfig"
    OPERATOR = ["--inspect-images=false"]
    restarts = 0

    def word(self, name):
        return self.get("aimservice", name).get("status", {}).get("status")

    def merge(self, kind, name, patch):
        self.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps(patch))

    def pause(self, kind, name, value):
        self.merge(kind, name, {"metadata": {"annotations": {PAUSE: value}}})

    def accept_route(self, name):
        ref = {"name": "edge", "namespace": NS, "group": "gateway.networking.k8s.io", "kind": "Gateway"}
        route = self.get("httproute", name)
        self.patch_status("httproute", name, {"parents": [{
            "parentRef": ref, "controllerName": "test.example/gateway", "conditions": [
                {"type": kind, "status": "True", "reason": kind, "message": "", "lastTransitionTime":
                 "2026-01-01T00:00:00Z", "observedGeneration": route["metadata"]["generation"]}
                for kind in ("Accepted", "ResolvedRefs")]}]})

    def prepare(self):
        self.define(*(TOP / "deploy/crds").glob("aim*.yaml"), *(TOP / "examples/crds").glob("*.yaml"))
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
        self.apply({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway",
                    "metadata": {"name": "edge", "namespace": NS},
                    "spec": {"gatewayClassName": "test",
                             "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]}})
        self.apply(CONFIG, MODEL, FAST)
        self.run_operator()
        self.apply(service("chat"))
        assert until(lambda: self.get("isvc", "chat") and self.get("httproute", "chat"))
        assert self.get("isvc", "chat")["metadata"]["generation"] == 1
        self.patch_status("isvc", "chat", {"conditions": [{"type": "Ready", "status": "True"}]})
        self.accept_route("chat")
        self.runs()

    def runs(self):
        assert until(lambda: self.word("chat") == "Running"), self.get("aimservice", "chat").get("status")

    def snapshot(self):
        """What must not change: the objects that serve, and whether they were written at all."""
        kept = []
        for kind, name in (("isvc", "chat"), ("servingruntime", "fast")):
            one = self.get(kind, name)
            kept.append((one["metadata"]["uid"], one["metadata"]["generation"], one["spec"]))
        return kept, bool(self.get("httproute", "chat"))

    def restart(self):
        """Until the new operator has processed something that was created after its start."""
        self.restarts += 1
        self.run_operator()
        name = "seen-%d" % self.restarts
        self.apply(aim("AIMRuntimeConfig", name, {}))
        assert until(lambda: self.get("aimrcfg", name).get("status", {}).get("hash"))

    def set_word(self, kind, name, status):
        self.pause(kind, name, "true")
        self.patch_status(kind, name, status)


def deletes(*what):
    return lambda world: world.kubectl("delete", *what)


def applies(*objects):
    return lambda world: world.apply(*objects)


def sets(kind, name, word):
    return lambda world: world.set_word(kind, name, {"status": word})


def resumes(kind, name):
    return lambda world: world.pause(kind, name, None)


def merges(kind, name, patch):
    return lambda world: world.merge(kind, name, patch)


def empty_template(world):
    world.set_word("aimservicetemplate", "fast", {"status": "Ready", "modelSources": []})
    world.merge("aimservicetemplate", "fast", {"spec": {"modelSources": []}})


def fill_template(world):
    world.merge("aimservicetemplate", "fast", {"spec": {"modelSources": SOURCES}})
    world.pause("aimservicetemplate", "fast", None)


def refuses_route(world):
    route = world.get("httproute", "chat")["status"]
    route["parents"][0]["conditions"][0].update({"status": "False", "reason": "NotAllowedByListeners"})
    world.patch_status("httproute", "chat", route)


def accepts_route(world):
    world.accept_route("chat")


def claims(phase):
    return lambda world: world.patch_status("pvc", "chat-temp-cache", {"phase": phase})


def doubles_template(world):
    """The one in use goes, and two that are equally good are left."""
    world.apply(*(aim("AIMServiceTemplate", name, TEMPLATE) for name in ("one", "two")))
    assert until(lambda: all(world.get("aimservicetemplate", name)["status"].get("status") == "Ready"
                             for name in ("one", "two")))
    world.kubectl("delete", "aimservicetemplate", "fast")


def singles_template(world):
    world.stop_operator()
    world.kubectl("delete", "aimservicetemplate", "one", "two")
    world.apply(FAST)
    world.run_operator()


# name, begin, end, the word of the service meanwhile (a set: any of them); False: only the route is kept
TROUBLES = [
    ("template deleted", deletes("aimservicetemplate", "fast"), applies(FAST), {"Pending", "Failed", "Degraded"}),
    ("template failed", sets("aimservicetemplate", "fast", "Failed"), resumes("aimservicetemplate", "fast"), {"Failed"}),
    ("template not available", sets("aimservicetemplate", "fast", "NotAvailable"),
     resumes("aimservicetemplate", "fast"), {"Degraded"}),
    ("template without sources", empty_template, fill_template, {"Degraded"}),
    ("model deleted", deletes("aimmodel", "tiny"), applies(MODEL), {"Pending"}),
    ("model failed", sets("aimmodel", "tiny", "Failed"), resumes("aimmodel", "tiny"), {"Failed"}),
    ("model degraded", sets("aimmodel", "tiny", "Degraded"), resumes("aimmodel", "tiny"), {"Degraded"}),
    ("configuration of the model missing", merges("aimmodel", "tiny", {"spec": {"runtimeConfigName": "gone"}}),
     merges("aimmodel", "tiny", {"spec": {"runtimeConfigName": "default"}}), {"Degraded"}),
    ("configuration deleted", deletes("aimrcfg", "gold"), applies(CONFIG), {"Degraded"}),
    ("path invalid", merges("aimrcfg", "gold", {"spec": {"routing": {"pathTemplate": "/{.metadata.labels['none']}"}}}),
     merges("aimrcfg", "gold", {"spec": {"routing": {"pathTemplate": None}}}), {"Degraded"}, False),
    ("gateway removed", merges("aimrcfg", "gold", {"spec": {"routing": {"gatewayRef": None}}}),
     merges("aimrcfg", "gold", {"spec": ROUTING}), {"Failed"}, False),
    ("route refused", refuses_route, accepts_route, {"Degraded"}, False),
    # On a real control plane the claim has a controller, which sets its phase itself.
    *([] if "--cluster" in sys.argv else [("volume lost", claims("Lost"), claims("Bound"), {"Degraded"})]),
    ("several templates", doubles_template, singles_template, {"Failed"}),
]


def keeps_what_runs(world, begin, end, words, keeps_all):
    before = world.snapshot()
    begin(world)
    try:
        assert until(lambda: world.word("chat") in words), (world.word("chat"), words)
        assert world.snapshot() == before, "changed during the trouble"
        reason = world.condition("aimservice", "chat", "Ready")[1]
        said = world.run(world.flyball, "explain", "aimsvc", "chat", "-n", NS)
        assert reason in said and ("kept as it is: " + reason in said) == keeps_all, said
        assert any(one["type"] == "Serving" and one["status"] == "True"
                   for one in world.get("aimservice", "chat")["status"]["conditions"])
        world.restart()
        assert until(lambda: world.word("chat") in words)
        assert world.snapshot() == before, "changed after a restart"
    finally:
        end(world)
    world.runs()
    after = world.snapshot()
    assert after[0][0] == before[0][0], "the InferenceService changed after the end"
    assert after[1]


def a_new_service_gets_nothing(world):
    world.kubectl("delete", "aimmodel", "tiny")
    world.apply(service("late"))
    assert until(lambda: world.word("late") == "Pending")
    world.restart()
    assert not world.get("isvc", "late") and not world.get("httproute", "late")
    world.apply(MODEL)
    assert until(lambda: world.get("isvc", "late") and world.get("httproute", "late"))
    late = world.get("isvc", "late")
    assert late["metadata"]["generation"] == 1 and late["spec"]["predictor"]["model"]["runtime"] == "fast", late


def an_inference_service_of_others_is_kept(world):
    spec = {"predictor": {"model": {"modelFormat": {"name": "sklearn"}}}}
    world.apply({"apiVersion": "serving.kserve.io/v1beta1", "kind": "InferenceService",
                 "metadata": {"name": "taken", "namespace": NS}, "spec": spec})
    world.apply(service("taken"))
    assert until(lambda: world.condition("aimservice", "taken", "Ready") == ("False", "InferenceServiceConflict"))
    assert world.get("isvc", "taken")["spec"]["predictor"]["model"]["modelFormat"]["name"] == "sklearn"
    world.kubectl("delete", "isvc", "taken")
    assert until(lambda: world.get("isvc", "taken").get("spec", {}).get("predictor", {}).get("model", {}).get(
        "runtime") == "fast")


def the_serving_runtime_goes_when_it_is_not_named(world):
    world.kubectl("delete", "aimservicetemplate", "fast")
    world.restart()
    assert world.get("servingruntime", "fast")
    world.kubectl("delete", "aimservice", "--all")
    assert until(lambda: not world.get("isvc").get("items")), "the InferenceServices go with their services"
    assert until(lambda: not world.get("servingruntime", "fast"))


def trouble_case(name, begin, end, words, keeps_all=True):
    def case(world):
        keeps_what_runs(world, begin, end, words, keeps_all)
    case.__name__ = name.replace(" ", "_")
    return case


if __name__ == "__main__":
    harness.main(World, [*(trouble_case(*row) for row in TROUBLES), a_new_service_gets_nothing,
                         an_inference_service_of_others_is_kept, the_serving_runtime_goes_when_it_is_not_named])
