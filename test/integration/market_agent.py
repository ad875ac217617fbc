#!/usr/bin/python3
"""The node agent as a process: pods of a node, cgroups of files that this test writes, PodAllocations.

    market_agent.py FLYBALL                 on the embedded API server
    market_agent.py FLYBALL --cluster DIR   on the control plane that test/kube/cluster started in DIR

Speaks TAP. Skipped where there is no kubectl.
"""
import os
import pathlib
import re
import signal
import subprocess
import threading
import urllib.error
import urllib.request

import harness
from harness import TOP, until

NODE = "market-agent-test"


class Kernel(threading.Thread):
    """Counters of pods: each uses its limit when it wants more, and is then throttled in every period."""

    def __init__(self, root):
        super().__init__(daemon=True)
        self.root, self.pods, self.lock, self.ended = pathlib.Path(root), {}, threading.Lock(), threading.Event()

    def add(self, uid, wants, limit):
        folder = self.root / "kubepods/burstable" / ("pod" + uid)
        (folder / "c1").mkdir(parents=True)
        with self.lock:
            self.pods[uid] = {"folder": folder, "wants": wants, "limit": limit, "usage": 0, "periods": 0, "hits": 0}
            self.write(self.pods[uid])

    def write(self, pod):
        text = (f"usage_usec {pod['usage']}\nnr_periods {pod['periods']}\nnr_throttled {pod['hits']}\n"
                f"throttled_usec {pod['hits'] * 50000}\n")
        for folder in (pod["folder"], pod["folder"] / "c1"):
            (folder / "cpu.stat").write_text(text)

    def run(self):
        while not self.ended.wait(0.1):
            with self.lock:
                for pod in self.pods.values():
                    pod["usage"] += int(min(pod["wants"], pod["limit"]) * 100)  # microseconds in 100 ms
                    pod["periods"] += 1
                    pod["hits"] += pod["wants"] > pod["limit"]
                    self.write(pod)


class World(harness.World):
    NAMESPACE = "market-test"

    def __init__(self, server, flyball, folder):
        super().__init__(server, flyball, folder)
        os.mkdir(folder + "/cgroup")
        self.kernel = Kernel(folder + "/cgroup")
        self.agent = None

    def pod(self, name, limit, wants):
        self.apply({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"nodeName": NODE, "terminationGracePeriodSeconds": 0, "tolerations": [{"operator": "Exists"}],
                     "containers": [{"name": "a", "image": "a",
                                     "resources": {"requests": {"cpu": "50m"}, "limits": {"cpu": f"{limit}m"}}}]}})
        self.in_force(name, limit)
        self.kernel.add(self.get("pod", name)["metadata"]["uid"], wants, limit)

    def in_force(self, name, limit):
        self.patch_status("pod", name, {"phase": "Running", "containerStatuses": [{
            "name": "a", "image": "a", "imageID": "", "ready": True, "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
            "resources": {"limits": {"cpu": f"{limit}m"}}}]})

    def desired(self, name):
        spec = self.get("podallocation", "market-test-" + name).get("spec", {})
        return int(spec["desiredCPULimit"].rstrip("m")) if spec else 0

    def obey(self, name):
        """What the controller and the kubelet do."""
        limit = self.desired(name)
        uid = self.get("pod", name)["metadata"]["uid"]
        with self.kernel.lock:
            changed = limit and self.kernel.pods[uid]["limit"] != limit
            if changed:
                self.kernel.pods[uid]["limit"] = limit
        if changed:
            self.in_force(name, limit)
        return limit

    def start_agent(self):
        self.agent = subprocess.Popen(
            [self.flyball, "agent", "--node-name", NODE, "--kubeconfig", self.server.kubeconfig, "--listen", "127.0.0.1:0",
             "--cgroup-root", self.folder + "/cgroup", "--market-namespace", "market-test"],
            stderr=subprocess.PIPE, text=True, env=dict(os.environ, MBCAS_SLOW_LOOP_INTERVAL="4s", MBCAS_LIMIT_OVERCOMMIT="1"))
        self.said = []
        for line in self.agent.stderr:
            self.said.append(line)
            port = re.search(r"/metrics .*port=(\d+)", line)
            if port:
                self.url = f"http://127.0.0.1:{port.group(1)}"
                threading.Thread(target=lambda: self.said.extend(self.agent.stderr), daemon=True).start()
                return
        raise RuntimeError("the agent did not come up: " + "".join(self.said))

    def ask(self, path):
        try:
            return urllib.request.urlopen(self.url + path, timeout=10).read().decode()
        except urllib.error.HTTPError as refused:
            return f"{refused.code}"

    def rounds(self):
        return int(re.search(r"^mbcas_agent_allocation_duration_seconds_count (\d+)", self.ask("/metrics"),
                             re.MULTILINE).group(1))

    def stop_agent(self, number=signal.SIGTERM):
        if self.agent and self.agent.poll() is None:
            self.agent.send_signal(number)
            return self.agent.wait(60)
        return None

    def prepare(self):
        self.define(TOP / "deploy/crds/allocation.mbcas.io_podallocations.yaml")
        self.kubectl("create", "namespace", self.NAMESPACE)
        self.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
        room = {"cpu": "2", "pods": "100"}
        self.patch_status("node", NODE, {"capacity": room, "allocatable": room})
        if isinstance(self.server, harness.Real):
            assert until(lambda: self.get("serviceaccount", "default")), "no default service account"
        self.kernel.start()
        self.pod("starved", 200, 700)
        self.pod("hoarder", 1400, 20)
        self.start_agent()

    def stop(self):
        self.stop_agent(signal.SIGKILL)
        self.kernel.ended.set()
        self.kernel.join()
        self.kubectl("delete", "node", NODE, check=False)


def it_is_healthy_and_ready_when_its_caches_are_filled(w):
    assert until(lambda: w.ask("/readyz").strip() == "ok"), w.ask("/readyz")
    assert w.ask("/healthz").strip() == "ok"


def who_is_throttled_gets_what_it_needs(w):
    assert until(lambda: min(w.obey("hoarder"), 1) + w.obey("starved") > 700), w.desired("starved")


def and_the_node_is_not_promised_twice(w):
    assert w.desired("starved") + w.desired("hoarder") <= 1800


def a_podallocation_belongs_to_its_pod(w):
    owner = w.get("podallocation", "market-test-starved")["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"]) == ("Pod", "starved"), owner


def the_metrics_of_the_original_are_there(w):
    metrics = w.ask("/metrics")
    assert "mbcas_managed_pods 2" in metrics and 'mbcas_throttling_ratio{pod="starved"' in metrics, metrics


def an_agent_that_was_killed_takes_nothing_away_when_it_comes_back(w):
    w.stop_agent(signal.SIGKILL)
    before = w.obey("starved")  # the limit in force: a wish still on its way is measured again
    w.start_agent()
    assert until(lambda: w.rounds() >= 1)
    assert w.desired("starved") >= before, (w.desired("starved"), before)


def a_pod_can_opt_out(w):
    assert until(lambda: w.rounds() >= 3)  # it takes a round to bid and one to learn from it
    w.kubectl("annotate", "pod", "hoarder", "mbcas.io/managed=false")
    assert until(lambda: "mbcas_managed_pods 1" in w.ask("/metrics"))


def a_podallocation_goes_with_its_pod(w):
    w.kubectl("delete", "pod", "starved", "--grace-period=0", "--force")
    assert until(lambda: not w.get("podallocation", "market-test-starved"))


def it_ends_when_asked_to(w):
    code = w.stop_agent()
    assert code == 0, code


def what_was_learnt_is_kept(w):
    assert w.get("configmap", "mbcas-qtable-" + NODE).get("data")


def nothing_was_refused(w):
    refused = [line for line in w.said if "orbidden" in line or " error " in line]
    assert not refused, refused


CASES = [it_is_healthy_and_ready_when_its_caches_are_filled, who_is_throttled_gets_what_it_needs,
         and_the_node_is_not_promised_twice, a_podallocation_belongs_to_its_pod, the_metrics_of_the_original_are_there,
         an_agent_that_was_killed_takes_nothing_away_when_it_comes_back, a_pod_can_opt_out,
         a_podallocation_goes_with_its_pod, it_ends_when_asked_to, what_was_learnt_is_kept, nothing_was_refused]

harness.main(World, CASES)
