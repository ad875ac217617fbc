#!/usr/bin/python3
"""Runtime configuration as a user sees it: kubectl, an API server, an operator, and the shapes of the Gateway
API and KServe.

    runtimeconfig.py FLYBALL                     on the embedded API server
    runtimeconfig.py FLYBALL --cluster DIR       on the control plane that test/kube/cluster started in DIR

Speaks TAP. Skipped where there is no kubectl.
"""
import json

import harness
from harness import TOP, until

GROUP = "aim.silogen.ai"
NS = "ml-team"
MANY = 100
SEED_TEMPLATE = "/ml/{.metadata.namespace}/{.metadata.labels['project']}"
GATEWAY = {"name": "inference-gateway", "namespace": "gateways"}


def aim(kind, name, spec, namespace=NS, labels=None):
    metadata = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": GROUP + "/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def config(name, template, kind="AIMRuntimeConfig"):
    spec = {"routing": {"enabled": True, "gatewayRef": GATEWAY, "pathTemplate": template}}
    return aim(kind, name, spec, NS if kind == "AIMRuntimeConfig" else None)


def service(name, config_name="default", labels=None, **spec):
    return aim("AIMService", name, {"model": {"ref": "meta-llama-3-8b"}, "templateRef": "llama-latency",
                                    "runtimeConfigName": config_name, **spec}, labels=labels)


class World(harness.World):
    NAMESPACE = NS
    FEATURE = "runtimeconfig"
    OPERATOR = ["--aim-operator-namespace", "kaiwo-system", "--qps", "1000", "--burst", "1000"]

    def status(self, name, kind="aimservice"):
        return self.get(kind, name).get("status", {})

    def reason(self, name, condition, kind="aimservice"):
        found = self.condition(kind, name, condition)
        return found and found[1]

    def route(self, name):
        rules = self.get("httproute", name).get("spec", {}).get("rules")
        return rules[0]["matches"][0]["path"]["value"] if rules else None

    def prepare(self):
        self.define(*(TOP / "deploy/crds").glob("aim*.yaml"), *(TOP / "examples/crds").glob("*.yaml"))
        for name in (NS, "gateways", "kaiwo-system"):
            self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        self.apply({"apiVersion": "gateway.networking.k8s.io/v1", "kind": "Gateway", "metadata": GATEWAY,
                    "spec": {"gatewayClassName": "test",
                             "listeners": [{"name": "http", "port": 80, "protocol": "HTTP"}]}})
        self.apply(aim("AIMClusterModel", "meta-llama-3-8b", {"image": "example.org/llama:1"}, None),
                   aim("AIMClusterServiceTemplate", "llama-latency", {
                       "modelName": "meta-llama-3-8b", "metric": "latency", "precision": "fp16",
                       "modelSources": [{"name": "meta-llama/Llama-3-8B", "size": "16Gi",
                                         "sourceUri": "hf://meta-llama/Llama-3-8B"}]}, None))
        self.run_operator()


def the_example_of_the_seed(world):
    world.apply(config("default", SEED_TEMPLATE),
                service("llama-chat", labels={"project": "conversational-ai"}),
                service("custom", routing={"pathTemplate": "/custom/{.metadata.name}"}))
    assert until(lambda: world.route("llama-chat") == "/ml/ml-team/conversational-ai")
    assert until(lambda: world.route("custom") == "/custom/custom")
    assert until(lambda: world.status("llama-chat").get("routing", {}).get("path"))
    effective = world.status("llama-chat")["effectiveRuntimeConfig"]
    assert effective["namespaceRef"]["name"] == "default" and "clusterRef" not in effective
    assert len(effective["hash"]) == 64
    assert world.reason("llama-chat", "ConfigResolved") == "RuntimeConfigResolved"


def render_says_what_the_cluster_does(world):
    live = [world.get("aimservice", "llama-chat"),
            config("default", SEED_TEMPLATE)]  # as a user wrote it, without what the server fills in
    said = world.run(world.flyball, "render", "-f", "-", "--explain", text="\n---\n".join(map(json.dumps, live)))
    assert "path           /ml/ml-team/conversational-ai" in said, said
    assert world.status("llama-chat")["effectiveRuntimeConfig"]["hash"] in said, said
    said = world.explain("aimsvc", "llama-chat")
    assert "AIMRuntimeConfig ml-team/default" in said, said
    assert "{.metadata.labels['project']} = conversational-ai" in said, said


def a_configuration_comes_after_its_consumer_and_goes(world):
    world.apply(service("late", "gpu-fast"))
    assert until(lambda: world.reason("late", "ConfigResolved") == "RuntimeConfigMissing")
    world.apply(config("gpu-fast", "/fast/{.metadata.name}", "AIMClusterRuntimeConfig"))
    assert until(lambda: world.route("late") == "/fast/late")
    assert until(lambda: "clusterRef" in world.status("late").get("effectiveRuntimeConfig", {}))
    world.kubectl("delete", "aimclusterruntimeconfig", "gpu-fast")
    assert until(lambda: world.reason("late", "ConfigResolved") == "RuntimeConfigMissing")
    assert world.route("late") == "/fast/late"


def a_template_that_cannot_be_rendered(world):
    world.apply(service("lost"))
    assert until(lambda: world.reason("lost", "RoutingReady") == "PathTemplateInvalid")
    assert world.route("lost") is None
    assert until(lambda: world.status("default", "aimruntimeconfig").get("consumers", {}).get("failing") == 1)
    assert world.status("default", "aimruntimeconfig")["consumers"]["failingNames"] == ["ml-team/lost"]
    events = world.get("events", "--field-selector", "reason=PathTemplateInvalid")
    assert until(lambda: world.get("events", "--field-selector",
                                   "reason=PathTemplateInvalid").get("items")), events
    world.kubectl("delete", "aimservice", "lost")


def two_services_want_one_path(world):
    world.apply(service("first", "none-needed", routing={"enabled": True, "gatewayRef": GATEWAY,
                                                         "pathTemplate": "/only/one"}),
                aim("AIMRuntimeConfig", "none-needed", {}))
    assert until(lambda: world.route("first") == "/only/one")
    world.apply(service("second", "none-needed", routing={"enabled": True, "gatewayRef": GATEWAY,
                                                          "pathTemplate": "/only/one/"}))
    losers = lambda: [name for name in ("first", "second") if world.reason(name, "RoutingReady") == "RouteConflict"]
    assert until(lambda: losers() == ["second"]), losers()
    world.kubectl("delete", "aimservice", "first")
    assert until(lambda: world.route("second") == "/only/one")


def credentials_stay_out_of_the_cluster_kind(world):
    try:
        world.apply(aim("AIMClusterRuntimeConfig", "leaky", {"serviceAccountName": "x"}, None))
    except RuntimeError as why:
        assert "credentials" in str(why), why
    else:
        raise AssertionError("the API server took credentials in an AIMClusterRuntimeConfig")


def one_edit_moves_many_while_the_server_is_killed(world):
    world.apply(aim("AIMRuntimeConfig", "fleet", {"routing": {
        "enabled": True, "gatewayRef": GATEWAY, "pathTemplate": "/old/{.metadata.name}"}}))
    world.apply(*(service("s%d" % i, "fleet") for i in range(MANY)))
    def all_under(prefix):
        paths = [o["spec"]["rules"][0]["matches"][0]["path"]["value"]
                 for o in world.get("httproutes").get("items", [])]
        return len([path for path in paths if path.startswith(prefix)]) == MANY

    assert until(lambda: all_under("/old/"))
    world.kubectl("patch", "aimruntimeconfig", "fleet", "--type=merge", "-p",
                  json.dumps({"spec": {"routing": {"pathTemplate": "/new/{.metadata.name}"}}}))
    world.server.kill()
    world.server.start()
    assert until(lambda: all_under("/new/"), 240)
    assert until(lambda: world.status("s7").get("routing", {}).get("path") == "/new/s7")
    assert until(lambda: world.status("fleet", "aimruntimeconfig").get("consumers", {}).get("total") == MANY)


CASES = [the_example_of_the_seed, render_says_what_the_cluster_does,
         a_configuration_comes_after_its_consumer_and_goes, a_template_that_cannot_be_rendered,
         two_services_want_one_path, credentials_stay_out_of_the_cluster_kind,
         one_edit_moves_many_while_the_server_is_killed]

harness.main(World, CASES)
