#!/usr/bin/python3
"""The node agent as a process: pods of a node, cgroups of files that this test writes, PodAllocations.

    market_agent.py FLYBALL                 on the embedded API server
    market_agent.py FLYBALL --cluster DIR   on the control plane that test/kube/cluster started in DIR

Speaks TAP. Skipped where there is no kubectl.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
CRD = ROOT / "deploy/crds/allocation.mbcas.io_podallocations.yaml"
NODE = "market-agent-test"


def until(question, seconds=90):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if question():
            return True
        time.sleep(0.3)  # asked from outside: there is no event to wait for
    return False


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


class World:
    def __init__(self, flyball, folder, kubeconfig):
        self.flyball, self.folder, self.kubeconfig = flyball, folder, kubeconfig
        self.kernel = Kernel(folder + "/cgroup")
        self.agent = None

    def kubectl(self, *words, text=None, check=True):
        env = dict(os.environ, KUBECONFIG=self.kubeconfig, HOME=self.folder)
        done = subprocess.run(["kubectl", *words], env=env, input=text, capture_output=True, text=True, timeout=60)
        if check and done.returncode:
            raise RuntimeError(f"kubectl {' '.join(words)}: {done.stderr}")
        return done.stdout

    def get(self, *words):
        answer = self.kubectl("get", *words, "-n", "market-test", "-o", "json", check=False)
        return json.loads(answer) if answer else {}

    def status(self, kind, name, status, *more):
        self.kubectl("patch", kind, name, *more, "--subresource=status", "--type=merge", "-p",
                     json.dumps({"status": status}))

    def pod(self, name, limit, wants):
        self.kubectl("apply", "-f", "-", text=json.dumps({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "market-test"},
            "spec": {"nodeName": NODE, "terminationGracePeriodSeconds": 0, "tolerations": [{"operator": "Exists"}],
                     "containers": [{"name": "a", "image": "a",
                                     "resources": {"requests": {"cpu": "50m"}, "limits": {"cpu": f"{limit}m"}}}]}}))
        self.in_force(name, limit)
        self.kernel.add(self.get("pod", name)["metadata"]["uid"], wants, limit)

    def in_force(self, name, limit):
        self.status("pod", name, {"phase": "Running", "containerStatuses": [{
            "name": "a", "image": "a", "imageID": "", "ready": True, "restartCount": 0,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
            "resources": {"limits": {"cpu": f"{limit}m"}}}]}, "-n", "market-test")

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

    def start(self):
        self.agent = subprocess.Popen(
            [self.flyball, "agent", "--node-name", NODE, "--kubeconfig", self.kubeconfig, "--listen", "127.0.0.1:0",
             "--cgroup-root", self.folder + "/cgroup", "--market-namespace", "market-test"],
            stderr=subprocess.PIPE, text=True, env=dict(os.environ, MBCAS_SLOW_LOOP_INTERVAL="4s"))
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

    def stop(self, number=signal.SIGTERM):
        if self.agent and self.agent.poll() is None:
            self.agent.send_signal(number)
            return self.agent.wait(60)
        return None


def cases(w):
    w.kubectl("apply", "-f", str(CRD))
    w.kubectl("create", "namespace", "market-test")
    w.kubectl("apply", "-f", "-", text=json.dumps({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}))
    w.status("node", NODE, {"capacity": {"cpu": "2", "pods": "100"}, "allocatable": {"cpu": "2", "pods": "100"}})
    until(lambda: w.kubectl("get", "serviceaccount", "default", "-n", "market-test", check=False))
    w.kernel.start()
    w.pod("starved", 200, 700)
    w.pod("hoarder", 1400, 20)
    w.start()
    yield until(lambda: w.ask("/readyz").strip() == "ok") and w.ask("/healthz").strip() == "ok", \
        "it is healthy, and ready when its caches are filled"
    yield until(lambda: min(w.obey("hoarder"), 1) + w.obey("starved") > 700), \
        "who is throttled gets what it needs"
    yield w.desired("starved") + w.desired("hoarder") <= 1800, "and the node is not promised twice"
    owner = w.get("podallocation", "market-test-starved")["metadata"]["ownerReferences"][0]
    yield owner["kind"] == "Pod" and owner["name"] == "starved", "a PodAllocation belongs to its pod"
    metrics = w.ask("/metrics")
    yield "mbcas_managed_pods 2" in metrics and 'mbcas_throttling_ratio{pod="starved"' in metrics, \
        "the metrics of the original are there"
    w.stop(signal.SIGKILL)
    before = w.desired("starved")
    w.start()
    until(lambda: w.rounds() >= 1)
    yield w.desired("starved") >= before, "an agent that was killed takes nothing away when it comes back"
    until(lambda: w.rounds() >= 3)  # it takes a round to bid and one to learn from it
    w.kubectl("annotate", "pod", "hoarder", "-n", "market-test", "mbcas.io/managed=false")
    yield until(lambda: "mbcas_managed_pods 1" in w.ask("/metrics")), "a pod can opt out"
    w.kubectl("delete", "pod", "starved", "-n", "market-test", "--grace-period=0", "--force")
    yield until(lambda: not w.get("podallocation", "market-test-starved")), "a PodAllocation goes with its pod"
    yield w.stop() == 0, "it ends when asked to"
    yield w.get("configmap", "mbcas-qtable-" + NODE).get("data"), "what was learnt is kept"
    yield not [line for line in w.said if "orbidden" in line or " error " in line], "and nothing was refused"


def run(w):
    number = failed = 0
    for good, name in cases(w):
        number += 1
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {name}", flush=True)
    print(f"1..{number}")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("flyball")
    parser.add_argument("--cluster")
    given = parser.parse_args()
    if not shutil.which("kubectl"):
        print("1..0 # SKIP kubectl is not installed")
        return 0
    flyball, server = str(pathlib.Path(given.flyball).resolve()), None
    with tempfile.TemporaryDirectory() as folder:
        kubeconfig = f"{given.cluster}/kubeconfig" if given.cluster else folder + "/data/kubeconfig"
        if not given.cluster:
            server = subprocess.Popen([flyball, "apiserver", "--data", folder + "/data", "--listen", "127.0.0.1:0"],
                                      stdout=subprocess.PIPE, text=True)
            server.stdout.readline()
        pathlib.Path(folder, "cgroup").mkdir()
        w = World(flyball, folder, kubeconfig)
        try:
            return run(w)
        finally:
            w.stop(signal.SIGKILL)
            w.kernel.ended.set()
            w.kernel.join()
            if server:
                server.kill()
                server.wait()
            else:
                w.kubectl("delete", "node", NODE, check=False)


if __name__ == "__main__":
    raise SystemExit(main())
