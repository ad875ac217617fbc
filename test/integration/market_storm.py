#!/usr/bin/python3
"""A node of two hundred pods in bad weather: the market's controller, a node's agent and a simulated node, three
processes behind a proxy that refuses, loses and falls silent (faults.py), while pods come and go and another client
writes to the same objects.

    market_storm.py FLYBALL                     on the embedded API server
    market_storm.py FLYBALL --cluster DIR       on the control plane that test/kube/cluster started in DIR

The simulated node (test/support/node.c, src/testbed) starts pods, carries out resizes, and reports Deferred and
Infeasible as a kubelet does. Most pods are in the agent's market. Some, in the namespace `byhand`, are not: their wishes are this
test's, and more than the node has. All pods are watched from the side, past the proxy: what they may use together is
summed up at every event. Each case takes up where the one before ended. Speaks TAP. Skipped where there is no kubectl.
"""
import collections
import os
import pathlib
import random
import signal
import subprocess
import threading
import time

import harness

os.environ["MBCAS_LIMIT_OVERCOMMIT"] = "1"  # limits that add up to the node: the promise that is checked
from api import BROKEN, Api, Refused, Watch
from faults import Faults
from harness import Real, TOP, until

NODE, SPACE, BY_HAND, OWN = "n1", "market", "byhand", "flyball-agent"
ALLOCATABLE = 36000
ALLOCATIONS = "/apis/allocation.mbcas.io/v1alpha1/podallocations"
STORM_SHARE, STORM_LENGTH, OUTAGE_SECONDS, CHURN = 0.5, 40, 60, 20
DEFERRED, TOO_LARGE = ["deferred-%d" % i for i in range(8)], ["large-%d" % i for i in range(6)]
RESTARTED = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]


def milli(amount):
    return int(amount[:-1]) if amount.endswith("m") else int(float(amount) * 1000)


def cpu(containers, kind):
    """Of all containers together; of their specs or of their statuses."""
    return sum(milli(c.get("resources", {}).get(kind, {}).get("cpu", "0")) for c in containers)


def statuses(pod):
    return pod.get("status", {}).get("containerStatuses", [])


def name_of(thing):
    return thing["metadata"]["name"]


def container(name, request, limit, **more):
    return {"name": name, "image": "x", "resources": {"requests": {"cpu": request, "memory": "16Mi"},
                                                      "limits": {"cpu": limit, "memory": "32Mi"}}, **more}


class Watched:
    """What happened to the pods and their allocations, event by event."""

    def __init__(self, server):
        self.claims, self.most, self.admitted_most = {}, 0, 0
        self.answers, self.said = collections.defaultdict(set), collections.defaultdict(set)
        self.restarts, self.events = 0, 0
        self.pods = Watch(server, "/api/v1/pods", self.pod_changed)
        self.allocations = Watch(server, ALLOCATIONS, self.allocation_changed)

    def pod_changed(self, key, old, new):
        """In the market limits count, of the spec or in force, whatever is more; else what the node admitted."""
        self.events += 1
        self.claims.pop(key, None)
        if new:
            admitted = cpu(statuses(new) or new["spec"]["containers"], "requests")
            claim = max(cpu(new["spec"]["containers"], "limits"), cpu(statuses(new), "limits"))
            self.claims[key] = (claim if key.startswith(SPACE + "/") else admitted, admitted)
            self.restarts += sum(s["restartCount"] for s in statuses(new))
            self.answers[name_of(new)] |= {c.get("reason") for c in new["status"].get("conditions", [])
                                           if c["type"] == "PodResizePending"}
        self.most = max(self.most, sum(claim for claim, _ in self.claims.values()))
        self.admitted_most = max(self.admitted_most, sum(admitted for _, admitted in self.claims.values()))

    def allocation_changed(self, key, old, new):
        if new and "status" in new:
            self.said[new["spec"]["podName"]].add((new["status"].get("phase"), new["status"].get("reason")))

    def start(self):
        self.pods.start()
        self.allocations.start()

    def end(self):
        self.pods.end()
        self.allocations.end()


class Meddler(threading.Thread):
    """Another client that writes to the same objects all the time."""

    def __init__(self, server, watched):
        super().__init__(daemon=True)
        self.api, self.watched, self.ended, self.writes = Api(server), watched, threading.Event(), 0

    def run(self):
        while not self.ended.is_set():
            for one in random.sample(self.watched.pods.all(), 5) + random.sample(self.watched.allocations.all(), 5):
                path = "/api/v1/namespaces/%s/pods/%s" if "nodeName" in one["spec"] else \
                    ALLOCATIONS.replace("/podallocations", "/namespaces/%s/podallocations/%s")
                try:
                    self.api.patch(path % (one["metadata"]["namespace"], name_of(one)),
                                   {"metadata": {"annotations": {"meddler": str(self.writes)}}})
                    self.writes += 1
                except Refused:
                    continue  # it has just gone
            self.ended.wait(0.05)

    def end(self):
        self.ended.set()
        self.join()


class World(harness.World):
    FEATURE = "market"

    def __init__(self, server, flyball, folder):
        super().__init__(server, flyball, folder)
        self.api, self.watched = Api(server), Watched(server)
        self.faults = Faults(server.url, server.authority)
        self.processes, self.made, self.random = {}, 0, random.Random(2)
        self.began = time.monotonic()

    def note(self, *words):
        print("# %3d s:" % (time.monotonic() - self.began), *words, flush=True)

    # --- processes, all of them behind the proxy

    def through_proxy(self, name, feature=None, **account):
        """Where rights are checked, with those of its role and no others."""
        judged = feature and isinstance(self.server, Real)
        token = self.token_of_role(feature, **account) if judged else self.server.token
        return self.kubeconfig(name, token=token, url=self.faults.url)

    def launch(self, name, *words, **env):
        log = open("%s/%s.log" % (self.folder, name), "w")
        self.processes[name] = subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **env})
        log.close()

    def log(self, name):
        return pathlib.Path(self.folder, name + ".log").read_text()

    def finish(self, name, how=signal.SIGTERM):
        process = self.processes.pop(name)
        process.send_signal(how)
        return process.wait(60)

    def prepare(self):
        self.define(TOP / "deploy/crds/allocation.mbcas.io_podallocations.yaml")
        for namespace in (SPACE, BY_HAND, OWN):
            self.kubectl("create", "namespace", namespace)
        self.apply({"apiVersion": "v1", "kind": "Node", "metadata": {
            "name": NODE, "annotations": {"testbed.flyball.dev/cpu-manager": "static"}}})
        room = {"cpu": "%dm" % ALLOCATABLE, "memory": "64Gi", "pods": "300"}
        self.patch_status("node", NODE, {"capacity": room, "allocatable": room})
        if isinstance(self.server, Real):
            for namespace in (SPACE, BY_HAND):
                assert until(lambda: self.get("serviceaccount", "default", "-n", namespace)), "no service account"
        self.watched.start()
        self.launch("node", str(pathlib.Path(self.flyball).parent / "test/support/node"),
                    self.through_proxy("node"), self.folder + "/nodes")
        self.launch("operator", self.flyball, "operator", "--kubeconfig", self.through_proxy("operator", "market"),
                    "--leader-elect=false", "--listen", "none", "--controllers", "market", "--qps", "200",
                    "--burst", "400")

    def run_agent(self):
        """Once the node has cgroups."""
        cgroups = self.folder + "/nodes/" + NODE
        expect(lambda: os.path.exists(cgroups + "/cgroup.controllers"), lambda: self.log("node")[-2000:])
        config = self.through_proxy("agent", "market-agent", account="flyball-agent", namespace=OWN)
        self.launch("agent", self.flyball, "agent", "--kubeconfig", config, "--node-name", NODE, "--listen", "none",
                    "--cgroup-root", cgroups, "--market-namespace", OWN, "--qps", "200",
                    "--market-exclude-namespaces", "%s,kube-system" % BY_HAND, MBCAS_SLOW_LOOP_INTERVAL="4s",
                    MBCAS_WRITE_INTERVAL="2s", MBCAS_STARTUP_GRACE_PERIOD="5s")

    def stop(self):
        for name in list(self.processes):
            self.finish(name, signal.SIGKILL)
        self.watched.end()
        self.faults.end()

    # --- pods

    def add(self, namespace, name, containers, **annotations):
        self.api.create("/api/v1/namespaces/%s/pods" % namespace, {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations},
            "spec": {"nodeName": NODE, "terminationGracePeriodSeconds": 0, "automountServiceAccountToken": False,
                     "tolerations": [{"operator": "Exists"}], "containers": containers}})

    def come(self, n):
        """Pods of the market; together they want more than there is, now and then."""
        for _ in range(n):
            self.made += 1
            containers = [container("app", "60m", "100m"), container("log", "30m", "50m")]
            annotations = {"testbed.flyball.dev/cpu": "0s=%dm 15s=%dm 30s=%dm 45s=%dm" % tuple(
                self.random.choice([30, 60, 120, 500]) for _ in range(4))}
            if self.made % 20 == 1 and self.made < 200:  # the node never resizes these
                containers = [{**container("app", "150m", "150m")}]
                containers[0]["resources"]["requests"]["memory"] = "32Mi"
                annotations = {"mbcas.io/skip-guaranteed": "false", "testbed.flyball.dev/cpu": "30m"}
            elif self.made % 20 == 2:
                containers[1] = container("log", "10m", "12m", resizePolicy=RESTARTED)
            self.add(SPACE, "p%03d" % self.made, containers, **annotations)

    def go(self, n):
        for pod in self.random.sample([p for p in self.watched.pods.all() if p["metadata"]["namespace"] == SPACE], n):
            self.api.delete("/api/v1/namespaces/%s/pods/%s" % (SPACE, name_of(pod)))

    def churn(self):
        self.go(CHURN)
        self.come(CHURN)

    def wish(self, name, request, limit):
        path = ALLOCATIONS.replace("/podallocations", "/namespaces/%s/podallocations" % BY_HAND)
        spec = {"namespace": BY_HAND, "podName": name, "desiredCPURequest": request, "desiredCPULimit": limit}
        if (BY_HAND + "/" + name) in self.watched.allocations.objects:
            self.api.patch(path + "/" + name, {"spec": spec})
            return
        owner = self.watched.pods.objects[BY_HAND + "/" + name]["metadata"]["uid"]
        self.api.create(path, {"apiVersion": "allocation.mbcas.io/v1alpha1", "kind": "PodAllocation", "spec": spec,
                               "metadata": {"name": name, "ownerReferences": [
                                   {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": owner}]}})

    # --- what is so

    def each_has_its_own(self):
        """As many allocations as pods is not enough: those of pods that went may still be there."""
        return {p["metadata"]["uid"] for p in self.watched.pods.all()} == {
            a["metadata"]["ownerReferences"][0]["uid"] for a in self.watched.allocations.all()}

    def differences(self):
        """Of pods and allocations, in words; none at the end."""
        pods = {p["metadata"]["uid"]: p for p in self.watched.pods.all()}
        found, said = [], {}
        for a in self.watched.allocations.all():
            owner = a["metadata"]["ownerReferences"][0]["uid"]
            if owner not in pods:
                found.append("%s has no pod" % name_of(a))
            said[owner] = a
        for uid, pod in pods.items():
            a = said.get(uid)
            if not a:
                group = "%s/nodes/%s/kubepods/burstable/pod%s" % (self.folder, NODE, uid)
                found.append("%s, %s, with%s counters, has no allocation" % (
                    name_of(pod), pod["status"]["phase"], "" if os.path.exists(group + "/cpu.stat") else "out"))
                continue
            status = a.get("status", {})
            limits = {milli(a["spec"]["desiredCPULimit"]), milli(status.get("appliedCPULimit", "0")),
                      cpu(pod["spec"]["containers"], "limits"), cpu(statuses(pod), "limits")}
            requests = {milli(a["spec"]["desiredCPURequest"]), milli(status.get("appliedCPURequest", "0")),
                        cpu(pod["spec"]["containers"], "requests"), cpu(statuses(pod), "requests")}
            if (status.get("phase"), len(limits), len(requests)) != ("Applied", 1, 1):
                found.append("%s: %s %s, limits %s, requests %s" % (name_of(pod), status.get("phase"),
                                                                   status.get("reason"), limits, requests))
        return found

    def trouble(self):
        """What an agreement that does not come about looks like, from all sides."""
        self.api.close()  # two minutes without a request: the server has
        listed = len(self.api.get(ALLOCATIONS)["items"])
        return "\n".join(self.differences()[:10] + [
            "the server has %d allocations, the watch %d" % (listed, len(self.watched.allocations.objects)),
            *(line for name in ("operator", "agent", "node") for line in self.log(name).splitlines()[-5:])])

    def reasons(self, names=None):
        return [a.get("status", {}).get("reason") for a in self.watched.allocations.all()
                if not names or a["spec"]["podName"] in names]


def expect(question, why, seconds=120):
    if not until(question, seconds):
        raise AssertionError(why())


# --- the story

def two_hundred_pods_get_an_allocation_each(w):
    w.come(200 - len(DEFERRED + TOO_LARGE))
    for name in DEFERRED + TOO_LARGE:
        w.add(BY_HAND, name, [container("app", "100m", "20")])
    w.run_agent()
    market = 200 - len(DEFERRED + TOO_LARGE)
    expect(lambda: len(w.watched.allocations.objects) == market, lambda: w.log("agent")[-2000:])
    w.note("all have one")


def what_a_node_cannot_give_is_said(w):
    for name in DEFERRED:  # each could have that on an empty node
        w.wish(name, "34", "35")
    for name in TOO_LARGE:
        w.wish(name, "37", "38")
    expect(lambda: w.reasons(DEFERRED) == ["Deferred"] * len(DEFERRED), lambda: w.reasons(DEFERRED))
    expect(lambda: w.reasons(TOO_LARGE) == ["Infeasible"] * len(TOO_LARGE), lambda: w.reasons(TOO_LARGE))
    w.note("said")


def a_storm_of_conflicts_and_refusals_is_weathered(w):
    meddler = Meddler(w.server, w.watched)
    meddler.start()
    w.faults.storm(STORM_SHARE)
    w.churn()
    expect(lambda: all(w.faults.seen[made] >= STORM_LENGTH for made in ("409 made", "429 made", "lost made")),
           lambda: w.faults.seen)
    w.faults.storm(0)
    meddler.end()
    w.note("answers %s, %d writes of another" % (dict(w.faults.seen), meddler.writes))
    assert w.processes["operator"].poll() is None and w.processes["agent"].poll() is None


def an_outage_of_a_minute_is_survived(w):
    w.faults.cut()
    end = time.monotonic() + OUTAGE_SECONDS
    w.server.kill()
    w.server.start()
    w.note("the server is back, but nobody knows")
    w.api.close()
    w.churn()
    time.sleep(max(0, end - time.monotonic()))  # the outage lasts; there is no event to wait for
    w.faults.mend()
    w.note("the outage is over")
    # the resizes that waited all the time were taken back, so that others have the room
    expect(lambda: w.reasons(DEFERRED) == ["Deferred"] * len(DEFERRED) and all(
        cpu(w.watched.pods.objects[BY_HAND + "/" + name]["spec"]["containers"], "limits") == 20000 for name in DEFERRED),
        lambda: w.reasons(DEFERRED))
    w.note("what was deferred is taken back")


def pods_and_allocations_agree_and_nothing_is_lost(w):
    for name in DEFERRED + TOO_LARGE:
        w.wish(name, "200m", "2")
    for _ in range(3):
        expect(lambda: w.each_has_its_own() and "Infeasible" not in w.reasons(), w.trouble)
        code = w.finish("agent")
        assert code == 0, "the agent ended with %s" % code
        # It may end between a wish and the node's refusal, which only an agent can take back.
        until(lambda: not w.differences() or "Infeasible" in w.reasons())
        if "Infeasible" not in w.reasons():
            break
        w.run_agent()
    expect(lambda: not w.differences(), w.trouble)
    assert len(w.watched.pods.objects) == 200, len(w.watched.pods.objects)
    w.note("they agree; %d events of pods" % w.watched.events)


def the_node_was_never_promised_twice(w):
    w.note("at most %dm of %dm, admitted %dm" % (w.watched.most, ALLOCATABLE, w.watched.admitted_most))
    assert w.watched.most <= ALLOCATABLE, w.watched.most
    assert w.watched.admitted_most <= ALLOCATABLE, w.watched.admitted_most
    assert w.watched.pods.lists <= 2, w.watched.pods.lists  # nothing went unseen


def the_node_itself_deferred_and_refused(w):
    answers = collections.Counter(a for answers in w.watched.answers.values() for a in answers)
    w.note("the node's answers: %s" % dict(answers))
    assert answers["Deferred"] >= len(DEFERRED) and answers["Infeasible"] > 0, answers


def nobody_was_restarted(w):
    assert w.watched.restarts == 0, w.watched.restarts


def all_end_well_and_nothing_was_forbidden(w):
    for name in ("operator", "node"):
        code = w.finish(name)
        assert code == 0, "the %s ended with %s: %s" % (name, code, w.log(name)[-2000:])
    refused = [line for name in ("operator", "agent") for line in w.log(name).splitlines()
               if "cannot" in line and "orbidden" in line]
    assert not refused, refused[:5]


CASES = [two_hundred_pods_get_an_allocation_each, what_a_node_cannot_give_is_said,
         a_storm_of_conflicts_and_refusals_is_weathered, an_outage_of_a_minute_is_survived,
         pods_and_allocations_agree_and_nothing_is_lost, the_node_was_never_promised_twice,
         the_node_itself_deferred_and_refused, nobody_was_restarted, all_end_well_and_nothing_was_forbidden]

harness.main(World, CASES)
