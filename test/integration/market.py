#!/usr/bin/python3
"""PodAllocations as a cluster meets them: kubectl, an API server that judges every resize, and an operator with
no more rights than its role gives.

    market.py FLYBALL                     on the embedded API server
    market.py FLYBALL --cluster DIR       on the control plane that test/kube/cluster started in DIR

There is no kubelet: the cases say what a node would say. Speaks TAP. Skipped where there is no kubectl.
"""
import argparse
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
NS = "market"


class Embedded:
    def __init__(self, flyball, folder):
        self.data = folder + "/data"
        self.kubeconfig = self.data + "/kubeconfig"
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        self.process = subprocess.Popen(
            [flyball, "apiserver", "--data", self.data, "--listen", "127.0.0.1:%d" % port],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if "serving" not in self.process.stdout.readline():
            raise RuntimeError("the API server did not start")

    def stop(self):
        self.process.kill()
        self.process.wait()


class Real:
    def __init__(self, folder):
        self.folder, self.kubeconfig = folder, folder + "/kubeconfig"

    def stop(self):
        pass


class World:
    def __init__(self, server, flyball, folder):
        self.server, self.flyball, self.folder = server, flyball, folder
        self.operator = None

    def kubectl(self, *words, text=None, check=True):
        env = dict(os.environ, KUBECONFIG=self.server.kubeconfig, HOME=self.folder)
        done = subprocess.run(["kubectl", "-n", NS, *words], env=env, input=text, capture_output=True,
                              text=True, timeout=120)
        if check and done.returncode:
            raise RuntimeError("kubectl %s: %s" % (" ".join(words), done.stderr))
        return done.stdout

    def apply(self, *objects):
        self.kubectl("apply", "-f", "-", text="\n".join(json.dumps(o) for o in objects))

    def get(self, *words):
        answer = self.kubectl("get", *words, "-o", "json", check=False)
        return json.loads(answer) if answer else {}

    def restricted_kubeconfig(self):
        """Where rights are checked, a user of the operator's own, who has its role and nothing else."""
        if not isinstance(self.server, Real):
            return self.server.kubeconfig
        self.kubectl("apply", "-f", str(ROOT / "deploy/rbac/market.yaml"))
        self.kubectl("create", "serviceaccount", "operator")
        self.kubectl("create", "clusterrolebinding", "market-operator", "--clusterrole=flyball-market",
                     "--serviceaccount=%s:operator" % NS)
        token = self.kubectl("create", "token", "operator").strip()
        path = self.folder + "/operator.kubeconfig"
        url = pathlib.Path(self.server.folder, "server").read_text().strip()
        pathlib.Path(path).write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": url,
                                                   "certificate-authority": self.server.folder + "/ca.crt"}}],
            "users": [{"name": "u", "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}))
        return path

    def run_operator(self, kubeconfig):
        self.log = open(self.folder + "/operator.log", "a")
        self.operator = subprocess.Popen(
            [self.flyball, "operator", "--kubeconfig", kubeconfig, "--leader-elect=false", "--listen",
             "none", "--controllers", "market"], stdout=self.log, stderr=subprocess.STDOUT)

    def stop_operator(self):
        if self.operator:
            self.operator.terminate()
            assert self.operator.wait(30) == 0, "the operator ended with %s" % self.operator.returncode
            self.log.close()

    # --- what a kubelet does

    def enact(self, name, conditions=()):
        pod = self.get("pod", name)

        def statuses(containers):
            return [{"name": c["name"], "image": "x", "imageID": "", "ready": True, "started": True,
                     "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
                     "resources": c.get("resources", {}),
                     "allocatedResources": c.get("resources", {}).get("requests", {})} for c in containers]

        spec = pod["spec"]
        status = {"phase": "Running", "conditions": list(conditions),
                  "containerStatuses": statuses(spec["containers"])}
        if "initContainers" in spec:
            status["initContainerStatuses"] = statuses(spec["initContainers"])
        self.kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "-p",
                     json.dumps({"status": status}))

    def say(self, name, reason):
        """The node answers a resize with a condition instead."""
        generation = self.get("pod", name)["metadata"]["generation"]
        self.kubectl("patch", "pod", name, "--subresource=status", "--type=merge", "-p", json.dumps(
            {"status": {"conditions": [{"type": "PodResizePending", "status": "True", "reason": reason,
                                        "message": "Node didn't have enough capacity: cpu",
                                        "observedGeneration": generation}]}}))

    # --- pods and allocations

    def add(self, name, containers, init=(), annotations=None):
        spec = {"nodeName": "n1", "containers": containers, "terminationGracePeriodSeconds": 0,
                "automountServiceAccountToken": False}
        if init:
            spec["initContainers"] = list(init)
        self.apply({"apiVersion": "v1", "kind": "Pod",
                    "metadata": {"name": name, "annotations": annotations or {}}, "spec": spec})
        self.enact(name)

    def want(self, name, request, limit):
        uid = self.get("pod", name)["metadata"]["uid"]
        self.apply({"apiVersion": "allocation.mbcas.io/v1alpha1", "kind": "PodAllocation",
                    "metadata": {"name": NS + "-" + name, "ownerReferences": [
                        {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}]},
                    "spec": {"namespace": NS, "podName": name, "desiredCPURequest": request,
                             "desiredCPULimit": limit}})

    def cpu(self, name):
        spec = self.get("pod", name).get("spec", {})
        every = spec.get("containers", []) + spec.get("initContainers", [])
        return {c["name"]: (c["resources"].get("limits", {}).get("cpu"),
                            c["resources"].get("requests", {}).get("cpu")) for c in every}

    def said(self, name):
        status = self.get("podallocation", NS + "-" + name).get("status", {})
        return status.get("phase"), status.get("reason")

    def expect(self, question, want):
        if not until(lambda: question() == want):
            raise AssertionError("%s, want %s" % (question(), want))


def until(question, seconds=120):
    """How long it may take is no part of any case, so that a busy machine fails none."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if question():
            return True
        time.sleep(0.2)  # asked from outside: there is no event to wait for
    return False


def container(name, limit=None, request=None, memory=True, **more):
    limits, requests = {}, {}
    if memory:
        limits["memory"] = requests["memory"] = "64Mi"
    if limit:
        limits["cpu"] = limit
    if request:
        requests["cpu"] = request
    return {"name": name, "image": "x", "resources": {"limits": limits, "requests": requests}, **more}


# --- cases

def a_wish_is_applied_and_verified(w):
    w.add("a", [container("app", "500m", "250m")])
    w.want("a", "727m", "808m")
    w.expect(lambda: w.cpu("a"), {"app": ("808m", "727m")})
    w.expect(lambda: w.said("a"), ("Pending", "Applying"))
    w.enact("a")
    w.expect(lambda: w.said("a"), ("Applied", "Applied"))
    row = w.kubectl("get", "podallocation", NS + "-a")
    assert "808m" in row and "Applied" in row, row


def the_class_of_a_pod_stays(w):
    """Memory is equal already: a request that reached the limit would make it Guaranteed."""
    w.add("b", [container("app", "500m", "250m")])
    w.want("b", "600m", "600m")
    w.expect(lambda: w.cpu("b"), {"app": ("600m", "599m")})
    w.enact("b")
    w.expect(lambda: w.said("b"), ("Applied", "Applied"))


def a_guaranteed_pod_that_wants_to_takes_part(w):
    w.add("g", [container("app", "500m", "500m")], annotations={"mbcas.io/skip-guaranteed": "false"})
    w.want("g", "540m", "600m")
    w.expect(lambda: w.cpu("g"), {"app": ("600m", "600m")})


def sidecars_get_their_share(w):
    w.add("s", [container("app", "300m", "200m"), container("log", "200m", "100m")],
          init=[container("proxy", "100m", "50m", restartPolicy="Always")])
    w.want("s", "540m", "600m")
    w.expect(lambda: w.cpu("s"), {"app": ("300m", "270m"), "log": ("200m", "180m"),
                                  "proxy": ("100m", "90m")})
    w.want("s", "1080m", "1200m")
    w.expect(lambda: w.cpu("s"), {"app": ("600m", "540m"), "log": ("400m", "360m"),
                                  "proxy": ("200m", "180m")})
    w.enact("s")
    w.expect(lambda: w.said("s"), ("Applied", "Applied"))


def what_cannot_be_is_taken_back(w):
    w.add("i", [container("app", "500m", "250m")])
    w.want("i", "1800m", "2")
    w.expect(lambda: w.cpu("i"), {"app": ("2", "1800m")})
    w.say("i", "Infeasible")
    w.expect(lambda: w.said("i"), ("Failed", "Infeasible"))
    assert w.cpu("i") == {"app": ("500m", "250m")}, w.cpu("i")


def who_opts_out_gets_back_what_it_had(w):
    w.add("o", [container("app", "500m", "250m"), container("bare")])
    w.want("o", "540m", "600m")
    until(lambda: w.cpu("o")["app"][0] != "500m")
    w.enact("o")
    w.expect(lambda: w.said("o"), ("Applied", "Applied"))
    assert w.cpu("o")["bare"][0], "a container without CPU takes part too"
    w.kubectl("annotate", "pod", "o", "mbcas.io/managed=false")
    w.expect(lambda: w.cpu("o"), {"app": ("500m", "250m"), "bare": ("256", "0")})
    w.enact("o")
    w.expect(lambda: w.said("o"), ("Applied", "Excluded"))


def explain_says_what_is_what(w):
    said = subprocess.run([w.flyball, "explain", "podallocation", NS + "-a", "-n", NS, "--kubeconfig",
                           w.server.kubeconfig], capture_output=True, text=True, timeout=60)
    assert said.returncode == 0, said.stderr
    for words in ["of pod market/a", "request 727m, limit 808m", "container app: request 250m, limit 500m",
                  "Applied, Applied", "QoS Burstable", "nothing: Applied"]:
        assert words in said.stdout, said.stdout


CASES = [a_wish_is_applied_and_verified, the_class_of_a_pod_stays, a_guaranteed_pod_that_wants_to_takes_part,
         sidecars_get_their_share, what_cannot_be_is_taken_back, who_opts_out_gets_back_what_it_had,
         explain_says_what_is_what]


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
            world.kubectl("apply", "-f", str(ROOT / "deploy/crds/allocation.mbcas.io_podallocations.yaml"))
            world.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd",
                          "podallocations.allocation.mbcas.io")
            world.kubectl("create", "namespace", NS)
            world.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
            world.kubectl("patch", "node", "n1", "--subresource=status", "--type=merge", "-p", json.dumps(
                {"status": {"capacity": {"cpu": "300", "memory": "8Gi", "pods": "200"},
                            "allocatable": {"cpu": "300", "memory": "8Gi", "pods": "200"}}}))
            if given.cluster:
                assert until(lambda: world.get("serviceaccount", "default")), "no default service account"
            world.run_operator(world.restricted_kubeconfig())
            for number, case in enumerate(CASES, 1):
                name = case.__name__.replace("_", " ")
                try:
                    case(world)
                    print("ok %d - %s" % (number, name), flush=True)
                except Exception as why:  # every failure is one line of the answer
                    print("not ok %d - %s" % (number, name))
                    print("# " + (repr(why) if not str(why) else str(why)).replace("\n", "\n# "), flush=True)
        finally:
            world.stop_operator()
            server.stop()


if __name__ == "__main__":
    main()
