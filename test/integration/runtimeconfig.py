#!/usr/bin/python3
"""Runtime configuration as a user meets it: kubectl, an API server, an operator, and the shapes of the Gateway
API and KServe.

    runtimeconfig.py FLYBALL                     on the embedded API server
    runtimeconfig.py FLYBALL --cluster DIR       on the control plane that test/kube/cluster started in DIR

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


class World(schedule.World):
    def run_operator(self, *flags):
        self.stop_operator()
        self.log = open(self.folder + "/operator.log", "a")
        self.operator = subprocess.Popen(
            [self.flyball, "operator", "--kubeconfig", self.server.kubeconfig, "--leader-elect=false",
             "--listen", "none", "--controllers", "runtimeconfig", "--aim-operator-namespace", "kaiwo-system",
             "--qps", "1000", "--burst", "1000", *flags],
            stdout=self.log, stderr=subprocess.STDOUT)

    def status(self, name, kind="aimservice"):
        return self.get(kind, name, "-n", NS).get("status", {})

    def reason(self, name, condition, kind="aimservice"):
        for one in self.status(name, kind).get("conditions", []):
            if one["type"] == condition:
                return one["reason"]
        return None

    def route(self, name):
        rules = self.get("httproute", name, "-n", NS).get("spec", {}).get("rules")
        return rules[0]["matches"][0]["path"]["value"] if rules else None

    def prepare(self):
        crds = sorted((TOP / "deploy/crds").glob("aim*.yaml")) + sorted((TOP / "examples/crds").glob("*.yaml"))
        for crd in crds:
            self.kubectl("apply", "--server-side", "-f", str(crd))
        names = [".".join(crd.stem.split("_")[::-1]) for crd in crds]
        self.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", *names)
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
    live = [world.get("aimservice", "llama-chat", "-n", NS),
            config("default", SEED_TEMPLATE)]  # as a user wrote it, without what the server fills in
    done = subprocess.run([world.flyball, "render", "-f", "-", "--explain"], text=True, capture_output=True,
                          input="\n---\n".join(json.dumps(o) for o in live))
    assert done.returncode == 0, done.stderr
    assert "path           /ml/ml-team/conversational-ai" in done.stdout
    assert world.status("llama-chat")["effectiveRuntimeConfig"]["hash"] in done.stdout
    said = subprocess.run([world.flyball, "explain", "aimsvc", "llama-chat", "-n", NS, "--kubeconfig",
                           world.server.kubeconfig], text=True, capture_output=True)
    assert "AIMRuntimeConfig ml-team/default" in said.stdout, said.stdout + said.stderr
    assert "{.metadata.labels['project']} = conversational-ai" in said.stdout


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
    events = world.get("events", "-n", NS, "--field-selector", "reason=PathTemplateInvalid")
    assert until(lambda: world.get("events", "-n", NS, "--field-selector",
                                   "reason=PathTemplateInvalid").get("items")), events
    world.kubectl("delete", "aimservice", "lost", "-n", NS)


def two_services_want_one_path(world):
    world.apply(service("first", "none-needed", routing={"enabled": True, "gatewayRef": GATEWAY,
                                                         "pathTemplate": "/only/one"}),
                aim("AIMRuntimeConfig", "none-needed", {}))
    assert until(lambda: world.route("first") == "/only/one")
    world.apply(service("second", "none-needed", routing={"enabled": True, "gatewayRef": GATEWAY,
                                                          "pathTemplate": "/only/one/"}))
    losers = lambda: [name for name in ("first", "second") if world.reason(name, "RoutingReady") == "RouteConflict"]
    assert until(lambda: losers() == ["second"]), losers()
    world.kubectl("delete", "aimservice", "first", "-n", NS)
    assert until(lambda: world.route("second") == "/only/one")


def credentials_stay_out_of_the_cluster_kind(world):
    if not isinstance(world.server, Real):
        raise schedule.Skip("the embedded server does not run CEL rules")
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
                 for o in world.get("httproutes", "-n", NS).get("items", [])]
        return len([path for path in paths if path.startswith(prefix)]) == MANY

    assert until(lambda: all_under("/old/"))
    world.kubectl("patch", "aimruntimeconfig", "fleet", "-n", NS, "--type=merge", "-p",
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


def run(number, case, world):
    name = case.__name__.replace("_", " ")
    try:
        case(world)
        print("ok %d - %s" % (number, name), flush=True)
    except schedule.Skip as why:
        print("ok %d - %s # SKIP %s" % (number, name, why), flush=True)
    except Exception as why:  # every failure is one line of the answer
        print("not ok %d - %s" % (number, name))
        print("# " + (repr(why) if not str(why) else str(why)).replace("\n", "\n# "), flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("flyball")
    parser.add_argument("--cluster")
    parser.add_argument("cases", nargs="*")
    given = parser.parse_args()
    if not shutil.which("kubectl"):
        print("1..0 # SKIP there is no kubectl")
        return
    cases = [c for c in CASES if not given.cases or c.__name__ in given.cases]
    print("1..%d" % len(cases))
    with tempfile.TemporaryDirectory() as folder:
        flyball = str(pathlib.Path(given.flyball).resolve())
        server = Real(given.cluster) if given.cluster else Embedded(flyball, folder)
        world = World(server, flyball, folder)
        try:
            world.prepare()
            world.run_operator()
            for number, case in enumerate(cases, 1):
                run(number, case, world)
        finally:
            world.stop_operator()
            server.stop()


main()
