#!/usr/bin/python3
"""What the node agent costs: CPU and memory with 1,000 pods of one container each, sampled once a second, on
real cgroups where they can be made (else on files, which are cheaper to read), beside an agent without pods.

    agent.py FLYBALL [--pods N] [--seconds N]

The original documents for itself: 10 m of CPU and 0.1 m per pod, 50 MB and 1 MB per pod; at 1,000 pods 110 m and 1 GB.
"""
import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

from budget import budget
from schedule_operator import CRD, Server, cpu_seconds, memory_mb

NAME = f"flyball-bench-{os.getpid()}"
WORKLOADS = 50
PODS = "/api/v1/namespaces/default/pods"
STAT = "usage_usec 1000000\nuser_usec 1\nsystem_usec 2\nnice_usec 0\nnr_periods 10\nnr_throttled 0\nthrottled_usec 0\n"


class Cgroups:
    """Real ones of version 1, as the kubelet's cgroupfs driver lays them out, below a folder of our own."""

    def __init__(self):
        self.root = "/sys/fs/cgroup"
        self.tops = [pathlib.Path(self.root, kind, NAME) for kind in ("cpu", "cpuacct")]
        self.made = []
        for top in self.tops:
            self.mkdir(top)
            self.mkdir(top / "kubepods")
            self.mkdir(top / "kubepods/burstable")

    def mkdir(self, path):
        path.mkdir()
        self.made.append(path)

    def add(self, uid):
        for top in self.tops:
            pod = top / "kubepods/burstable" / ("pod" + uid)
            self.mkdir(pod)
            self.mkdir(pod / ("c" + uid))

    def remove(self):
        for path in reversed(self.made):
            path.rmdir()


class Files:
    """Ordinary files in their place."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = self.folder.name

    def add(self, uid):
        pod = pathlib.Path(self.root, "kubepods/burstable/pod" + uid)
        for path in (pod, pod / ("c" + uid)):
            path.mkdir(parents=True)
            (path / "cpu.stat").write_text(STAT)

    def remove(self):
        self.folder.cleanup()


def cgroups():
    try:
        return Cgroups(), "real cgroups"
    except OSError as why:
        print(f"cgroups cannot be made here ({why}): on files")
        return Files(), "files"


def make_owner(server, number):
    name = f"web-{number}-6d4f"
    labels = {"app": f"web-{number}", "pod-template-hash": "6d4f"}
    return server.ask("POST", "/apis/apps/v1/namespaces/default/replicasets", {
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name},
        "spec": {"replicas": 0, "selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels},
                              "spec": {"containers": [{"name": "web", "image": "web"}]}}}})


def make_pod(server, number, groups, owner):
    name = f"web-{number}"
    made = server.ask("POST", PODS, {
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": owner["spec"]["selector"]["matchLabels"],
                     "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True,
                                          "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}]},
        "spec": {"nodeName": "n1", "containers": [{
            "name": "web", "image": "web",
            "resources": {"requests": {"cpu": "50m", "memory": "64Mi"},
                          "limits": {"cpu": "200m", "memory": "64Mi"}}}]}})
    groups.add(made["metadata"]["uid"])
    server.ask("PATCH", f"{PODS}/{name}/status", {"status": {"phase": "Running"}}, "application/merge-patch+json")


class Agent:
    def __init__(self, flyball, server, root):
        self.process = subprocess.Popen(
            [flyball, "agent", "--node-name", "n1", "--kubeconfig", server.data + "/kubeconfig", "--cgroup-root",
             root, "--listen", "127.0.0.1:0", "--qps", "2000", "--burst", "2000"],
            stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            port = re.search(r"/metrics .*port=(\d+)", line)
            if port:
                self.url = f"http://127.0.0.1:{port.group(1)}/metrics"
                return
        raise RuntimeError("the agent did not come up")

    def metric(self, name):
        text = urllib.request.urlopen(self.url).read().decode()
        found = re.search(rf"^{re.escape(name)} (\S+)", text, re.MULTILINE)
        return float(found.group(1)) if found else 0.0

    def settle(self, pods):
        """Waits for two slow rounds with all pods, so that every PodAllocation is written."""
        while self.metric("mbcas_managed_pods") < pods:
            time.sleep(0.5)
        rounds = self.metric("mbcas_agent_allocation_duration_seconds_count") + 2
        while self.metric("mbcas_agent_allocation_duration_seconds_count") < rounds:
            time.sleep(0.5)

    def measure(self, seconds):
        before, start = cpu_seconds(self.process.pid), time.monotonic()
        time.sleep(seconds)  # what is measured is the cost of time passing
        took = time.monotonic() - start
        return (cpu_seconds(self.process.pid) - before) / took

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()


def run(given, server, groups, pods):
    agent = Agent(given.flyball, server, groups.root)
    try:
        agent.settle(pods)
        share = agent.measure(given.seconds)
        agent.metric("mbcas_managed_pods")  # what a scrape needs counts as well
        return share, memory_mb(agent.process.pid, "VmRSS"), agent
    finally:
        agent.end()


def measure(given, server, groups, where):
    server.ask("POST", "/api/v1/nodes", {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}})
    server.ask("PATCH", "/api/v1/nodes/n1/status", {"status": {"allocatable": {"cpu": "256"}}},
               "application/merge-patch+json")
    _, empty_mb, _ = run(given, server, groups, 0)
    owners = [make_owner(server, number) for number in range(WORKLOADS)]
    for number in range(given.pods):
        make_pod(server, number, groups, owners[number % WORKLOADS])
    share, mb, _ = run(given, server, groups, given.pods)
    each = (mb - empty_mb) * 1024 / given.pods
    print(f"{given.pods} idle pods on {where}: {share * 100:.2f} % of a core, {mb:.1f} MB RSS after being scraped"
          f" ({empty_mb:.1f} MB without pods, {each:.2f} KB per pod)")
    print(f"the original by its own account: {(10 + 0.1 * given.pods) / 10:.1f} % of a core, "
          f"{50 + given.pods:.0f} MB: {(10 + 0.1 * given.pods) / 10 / (share * 100):.0f} times the CPU, "
          f"{(50 + given.pods) / mb:.0f} times the memory")
    budget(f"node agent, {given.pods} pods sampled a second", share * 100, 1, "% of a core")
    budget(f"node agent, {given.pods} pods, RSS", mb, 8, "MB")
    budget("node agent, memory a pod", each, 2, "KB")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("flyball")
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=30)
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was made is removed
    groups, where = cgroups()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(given.flyball, folder)
        try:
            crd = CRD / "allocation.mbcas.io_podallocations.yaml"
            subprocess.run(["kubectl", "--kubeconfig", server.data + "/kubeconfig", "apply", "-f", str(crd)],
                           check=True, stdout=subprocess.DEVNULL)
            measure(given, server, groups, where)
        finally:
            server.process.kill()
            groups.remove()


if __name__ == "__main__":
    main()
