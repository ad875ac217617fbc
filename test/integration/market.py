#!/usr/bin/python3
"""PodAllocations in a cluster: kubectl, an API server that validates every resize, and an operator with
no more rights than its role gives.

    market.py FLYBALL                     on the embedded API server
    market.py FLYBALL --cluster DIR       on the control plane that test/kube/cluster started in DIR

There is no kubelet: the cases write the status that a node would write. Many pods in bad weather: market_storm.py. Speaks TAP. Skipped
where there is no kubectl.
"""
import json
import subprocess

import harness
from harness import Real, TOP, until

NS = "market"


class World(harness.World):
    NAMESPACE = NS
    FEATURE = "market"

    def prepare(self):
        self.define(TOP / "deploy/crds/allocation.mbcas.io_podallocations.yaml")
        self.kubectl("create", "namespace", NS)
        self.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
        room = {"cpu": "300", "memory": "8Gi", "pods": "200"}
        self.patch_status("node", "n1", {"capacity": room, "allocatable": room})
        if isinstance(self.server, Real):
            assert until(lambda: self.get("serviceaccount", "default")), "no default service account"
        self.run_operator()

    # --- what a kubelet does

    @staticmethod
    def status_of(pod, conditions=()):
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
        return status

    def enact(self, name, conditions=()):
        self.patch_status("pod", name, self.status_of(self.get("pod", name), conditions))

    def say(self, name, reason):
        """The node answers a resize with a condition instead."""
        generation = self.get("pod", name)["metadata"]["generation"]
        self.patch_status("pod", name, {"conditions": [
            {"type": "PodResizePending", "status": "True", "reason": reason,
             "message": "Node didn't have enough capacity: cpu", "observedGeneration": generation}]})

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
        self.apply(allocation(self.get("pod", name), request, limit))

    def cpu(self, name):
        return self.cpu_of(self.get("pod", name))

    @staticmethod
    def cpu_of(pod):
        spec = pod.get("spec", {})
        every = spec.get("containers", []) + spec.get("initContainers", [])
        return {c["name"]: (c["resources"].get("limits", {}).get("cpu"),
                            c["resources"].get("requests", {}).get("cpu")) for c in every}

    def said(self, name):
        status = self.get("podallocation", NS + "-" + name).get("status", {})
        return status.get("phase"), status.get("reason")

    def expect(self, question, want):
        if not until(lambda: question() == want):
            raise AssertionError("%s, want %s" % (question(), want))


def allocation(pod, request, limit):
    name = pod["metadata"]["name"]
    return {"apiVersion": "allocation.mbcas.io/v1alpha1", "kind": "PodAllocation",
            "metadata": {"name": NS + "-" + name, "ownerReferences": [
                {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": pod["metadata"]["uid"]}]},
            "spec": {"namespace": NS, "podName": name, "desiredCPURequest": request, "desiredCPULimit": limit}}


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
    said = w.explain("podallocation", NS + "-a")
    for words in ["of pod market/a", "request 727m, limit 808m", "container app: request 250m, limit 500m",
                  "Applied, Applied", "QoS Burstable", "nothing: Applied"]:
        assert words in said, said


def explain_says_who_takes_part(w):
    assert w.explain("pod", "a") == w.explain("pod/a") == w.explain("podallocation", NS + "-a")
    w.add("greedy", [container("app", "200m", "200m")])
    w.patch_status("pod", "greedy", {"qosClass": "Guaranteed"})
    said = w.explain("pod", "greedy")
    assert said.startswith("Pod market/greedy is not in the market: Guaranteed pods are skipped; to include it, "
                           "annotate it with mbcas.io/skip-guaranteed=false."), said
    said = w.explain("pod", "o")
    assert said.startswith("PodAllocation market/market-o of pod market/o"), said
    w.add("late", [container("app", "200m", "100m")])
    said = w.explain("pod", "late")
    assert "can take part, but the agent of node n1 has written no PodAllocation" in said, said
    w.kubectl("label", "podallocation", NS + "-a", "mbcas.io/node=n1")
    said = w.explain("node", "n1")
    for words in ["Market of node n1: price", "  market/a ", "sum of 1 pods: uses 0m, needs 0m, requests 727m, limits 808m",
                  "allocatable CPU of the node 300", "Not in the market:", "  market/greedy: Guaranteed pods are skipped"]:
        assert words in said, said


def explain_helps_to_find_what_is_elsewhere(w):
    for words, hint in ((("pod", "a", "-n", "default"), "that name exists in namespace market: use -n"),
                        (("pod", "nobody"), 'pods "nobody" not found'),
                        (("hpa", "nobody"), '"nobody" not found'),
                        (("va", "chat"), "the cluster does not serve this kind; install it with: flyball install")):
        done = subprocess.run([w.flyball, "explain", *words], env=w.env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and hint in done.stderr and not done.stdout, (words, done)
    for words in ((), ("pod",), ("pod/",), ("pod", "a", "b"), ("potato", "a")):
        done = subprocess.run([w.flyball, "explain", *words], env=w.env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and "flyball explain: " in done.stderr, (words, done)


def explain_says_who_governs_an_hpa(w):
    w.apply({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
             "spec": {"minReplicas": 2, "maxReplicas": 5,
                      "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                      "metrics": [{"type": "Resource", "resource": {
                          "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}]}})
    said = w.explain("hpa", "web")
    for words in ["HorizontalPodAutoscaler market/web of Deployment web", "min 2, max 5", "(target 70 %), so the market"]:
        assert words in said, said
    assert "governed by" not in said, said
    w.kubectl("patch", "hpa", "web", "--type=merge", "-p", json.dumps({"spec": {"metrics": [
        {"type": "External", "external": {"metric": {"name": "wva_desired_replicas",
                                                     "selector": {"matchLabels": {"variant_name": "chat"}}},
                                          "target": {"type": "AverageValue", "averageValue": "1"}}}]}}))
    assert "metric wva_desired_replicas of VariantAutoscaling chat; see: flyball explain va chat -n market" in \
        w.explain("hpa", "web"), w.explain("hpa", "web")
    w.kubectl("patch", "hpa", "web", "--type=merge", "-p", json.dumps({"spec": {"metrics": [
        {"type": "External", "external": {"metric": {"name": "queue_length"},
                                          "target": {"type": "AverageValue", "averageValue": "1"}}}]}}))
    assert "nothing of flyball" in w.explain("hpa", "web"), w.explain("hpa", "web")


CASES = [a_wish_is_applied_and_verified, the_class_of_a_pod_stays, a_guaranteed_pod_that_wants_to_takes_part,
         sidecars_get_their_share, what_cannot_be_is_taken_back, who_opts_out_gets_back_what_it_had,
         explain_says_what_is_what, explain_says_who_takes_part, explain_helps_to_find_what_is_elsewhere,
         explain_says_who_governs_an_hpa]


harness.main(World, CASES)
