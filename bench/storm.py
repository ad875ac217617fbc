#!/usr/bin/python3
"""Windows of N schedules open in the same second, on the kube-apiserver of $CLUSTER_DIR: when does the last HPA follow, how
many requests does an object cost, and what does another client see meanwhile?

    storm.py FLYBALL [--objects 500,5000] [--before OTHER_FLYBALL]

The yardstick of the same run: bare merge patches of the same HPAs at several fixed numbers of requests in flight.
"""
import argparse
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time
import urllib.request

from budget import budget

TOP = pathlib.Path(__file__).resolve().parents[1]
CLIENT = str(TOP / "build/bench/stormclient")
IN_FLIGHT = (4, 8, 16, 32, 64)
CALM_S = 6


def client(*words):
    return subprocess.run([CLIENT, *map(str, words)], check=True, capture_output=True, text=True).stdout


class Operator:
    def __init__(self, flyball, folder, *more):
        self.log = open(folder + "/operator.log", "a")
        self.process = subprocess.Popen(
            [flyball, "operator", "--leader-elect=false", "--listen", "127.0.0.1:18080", "--controllers", "schedule",
             "--log-level", "error", *more], stdout=self.log, stderr=self.log)

    def requests(self, method=""):
        try:
            text = urllib.request.urlopen("http://127.0.0.1:18080/metrics", timeout=5).read().decode()
        except OSError:
            return None
        return sum(float(v) for m, v in re.findall(r'rest_client_requests_total\{[^}]*method="(\w+)"[^}]*\} (\S+)', text)
                   if m in (method or m))

    def settle(self):
        """Until no request was sent for three seconds."""
        last, quiet = None, 0
        while quiet < 3:
            time.sleep(1)  # what is measured is the absence of work
            now = self.requests()
            quiet = quiet + 1 if now is not None and now == last else 0
            last = now

    def stop(self):
        self.process.terminate()
        self.process.wait()


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


def bare(n):
    """Seconds of bare patches at the best fixed concurrency."""
    took = {}
    for turn, flying in enumerate(IN_FLIGHT):
        took[flying] = float(client("patch", n, flying, 20 + turn))
    best = min(took, key=took.get)
    print("bare patches of %d HPAs: %s; best %.2f s at %d in flight" % (
        n, ", ".join("%d: %.2f s" % pair for pair in took.items()), took[best], best), flush=True)
    return took[best]


def storm(flyball, n, label):
    folder = os.environ["CLUSTER_DIR"]
    boundary = int(time.time()) + 45 + n // 40
    client("make", n, time.strftime("%H:%M:%S", time.gmtime(boundary)))
    first = Operator(flyball, folder, "--qps", "100000", "--burst", "100000")  # finalizers and first statuses
    first.settle()
    first.stop()
    operator = Operator(flyball, folder)
    try:
        operator.settle()
        if time.time() > boundary - CALM_S - 1:
            sys.exit("this machine was not ready %.0f s before the boundary" % (CALM_S + 1))
        samples = open(folder + "/other.txt", "w+")  # it would block on a full pipe
        other = subprocess.Popen([CLIENT, "other", str(int(boundary - time.time()) + 20 + n // 100)], stdout=samples)
        watch = subprocess.Popen([CLIENT, "watch", str(n), "5"], stdout=subprocess.PIPE, text=True)
        before = operator.requests("PATCH POST PUT")
        reached = [float(line) for line in watch.communicate(timeout=400)[0].split()]
        at_last = operator.requests("PATCH POST PUT") - before
        operator.settle()
        total = operator.requests("PATCH POST PUT") - before
        events = len(subprocess.run(["kubectl", "get", "events", "-A", "-o", "name"], capture_output=True,
                                    text=True).stdout.split())
        other.terminate()
        other.wait()
        samples.seek(0)
        lines = samples.readlines()
        seen = [tuple(map(float, line.split())) for line in lines if line.endswith("\n")]  # the last may be cut off
    finally:
        operator.stop()
    last = max(reached) - boundary
    calm = [ms for at, ms in seen if boundary - CALM_S < at < boundary - 1]
    busy = [ms for at, ms in seen if boundary <= at <= max(reached)]
    print("%s, %d schedules: half of the HPAs after %.2f s, the last after %.2f s; requests per object: %.2f until then, "
          "%.2f in all (%d events); GET of another client p50 %.1f -> %.1f ms, p99 %.1f -> %.1f ms (%d, %d samples)" % (
              label, n, statistics.median(reached) - boundary, last, at_last / n, total / n, events,
              percentile(calm, .5), percentile(busy, .5), percentile(calm, .99), percentile(busy, .99), len(calm),
              len(busy)), flush=True)
    return last, total / n, percentile(busy, .5) / percentile(calm, .5)


def clean():
    """Another boundary needs schedules that have not opened yet."""
    names = ["storm-%d" % i for i in range(10)]
    for name in names:  # no finalizer may wait for an operator that does not run
        subprocess.run("kubectl get shpa -n %s -o name | xargs -r -n 50 kubectl patch -n %s --type merge -p "
                       "'{\"metadata\":{\"finalizers\":null}}'" % (name, name), shell=True, stdout=subprocess.DEVNULL)
        subprocess.run(["kubectl", "delete", "shpa,hpa,events", "--all", "-n", name, "--wait=false"],
                       stdout=subprocess.DEVNULL)
    while subprocess.run(["kubectl", "get", "shpa,hpa", "-A", "-o", "name"], capture_output=True, text=True).stdout:
        time.sleep(1)  # asked from outside: there is no event to wait for


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("flyball")
    parser.add_argument("--objects", default="500,5000")
    parser.add_argument("--before", help="an older program, to compare with")
    given = parser.parse_args()
    folder = os.environ["CLUSTER_DIR"]
    os.environ["KUBECONFIG"] = folder + "/kubeconfig"
    subprocess.run(["kubectl", "apply", "-f", str(TOP / "deploy/crds")], check=True, stdout=subprocess.DEVNULL)
    goals = {500: 3, 5000: 20}
    rounds = [(int(n), label) for n in given.objects.split(",")
              for label in (["before", "now"] if given.before else ["now"])]
    for i, (n, label) in enumerate(rounds):
        if i:
            clean()
        last, each, ratio = storm(given.before if label == "before" else given.flyball, n, label)
        if label == "before":
            continue
        best = bare(n)
        budget("last of %d HPAs after the boundary" % n, last, max(goals.get(n, 0), 1.3 * best), "s")
        budget("requests per object, %d schedules" % n, each, 2, "requests")
        budget("p50 of another client in the storm of %d" % n, ratio, 2, "times")


if __name__ == "__main__":
    main()
