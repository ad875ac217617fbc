#!/usr/bin/python3
"""What the operator costs when 10,000 schedules of 10 triggers govern 10,000 HPAs whose status changes every
15 seconds: CPU of the operator alone (the server is another process), and memory.

    schedule_operator.py FLYBALL [--objects N] [--seconds N]

Budget: less than 1 % of a core. The churn comes at N/15 changes a second, or as fast as this machine lets the
writers write: then the share of a core follows from the cost of one.
"""
import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import socket
import ssl
import subprocess
import tempfile
import threading
import time

from budget import budget

WRITERS = 4
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "Pacific/Chatham"]
CRD = pathlib.Path(__file__).resolve().parents[1] / "deploy/crds"
HPAS = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers"
SCHEDULES = "/apis/autoscaling.sarabala.io/v1alpha1/namespaces/default/smarthorizontalpodautoscalers"
local = threading.local()


class Server:
    def __init__(self, flyball, folder):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.data = folder + "/data"
        self.process = subprocess.Popen([flyball, "apiserver", "--data", self.data, "--listen",
                                         "127.0.0.1:%d" % self.port], stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        self.token = pathlib.Path(self.data, "admin.token").read_text().strip()

    def ask(self, method, path, body, kind="application/json"):
        if not hasattr(local, "connection"):
            local.connection = http.client.HTTPSConnection(
                "127.0.0.1", self.port, context=ssl.create_default_context(cafile=self.data + "/ca.crt"))
        local.connection.request(method, path, json.dumps(body),
                                 {"Authorization": "Bearer " + self.token, "Content-Type": kind})
        reply = local.connection.getresponse()
        text = reply.read()
        if reply.status >= 300:
            raise RuntimeError("%s %s: %d %s" % (method, path, reply.status, text[:300]))
        return json.loads(text)


def quiet_minute():
    """A minute of the hour at which no window of any zone opens or closes while this runs: what is measured is the churn."""
    now = time.gmtime().tm_min
    offsets = (0, 30, 15)  # of the zones above, in minutes west of a full hour
    return next(minute for minute in range(60) if all((minute + offset - now) % 60 > 14 for offset in offsets))


MINUTE = quiet_minute()


def trigger(number, index):
    hour = (number + index * 2) % 22
    return {"name": "t%d" % index, "priority": index, "timezone": ZONES[(number + index) % len(ZONES)],
            "interval": {"recurring": "M,TU,W,TH,F"}, "startTime": "%02d:%02d:00" % (hour, MINUTE),
            "endTime": "%02d:%02d:00" % (hour + 2, MINUTE), "startHPAConfig": {"minReplicas": 5, "maxReplicas": 50},
            "endHPAConfig": {"minReplicas": 1, "maxReplicas": 10}}


def make(server, number):
    name = "web-%d" % number
    server.ask("POST", HPAS, {
        "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
        "spec": {"minReplicas": 2, "maxReplicas": 9,
                 "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}})
    server.ask("POST", SCHEDULES, {
        "apiVersion": "autoscaling.sarabala.io/v1alpha1", "kind": "SmartHorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {"HPAObjectRef": {"name": name}, "triggers": [trigger(number, i) for i in range(10)]}})


def churn(server, number, turn):
    server.ask("PATCH", HPAS + "/web-%d/status" % number, {"status": {
        "currentReplicas": 3 + turn % 3, "desiredReplicas": 3 + turn % 4,
        "lastScaleTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "conditions": [{"type": kind, "status": "True", "reason": "r%d" % turn, "message": "m",
                        "lastTransitionTime": "2026-01-01T00:00:00Z"}
                       for kind in ("AbleToScale", "ScalingActive", "ScalingLimited")]}},
               "application/merge-patch+json")


def cpu_seconds(pid):
    """To the nanosecond, of every thread: ticks are too coarse for a hundredth of a core."""
    return sum(int(task.read_text().split()[0]) for task in pathlib.Path("/proc").glob("%d/task/*/schedstat" % pid)) / 1e9


def memory_mb(pid, key):
    for line in pathlib.Path("/proc/%d/status" % pid).read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) / 1024


def settle(pid):
    """Waits until the operator does next to nothing, three times in a row: a busy machine may keep it from working."""
    before, quiet = cpu_seconds(pid), 0
    while quiet < 3:
        time.sleep(3)  # what is measured is the absence of work
        now = cpu_seconds(pid)
        quiet = quiet + 1 if now - before < .03 else 0
        before = now


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("flyball")
    parser.add_argument("--objects", type=int, default=10000)
    parser.add_argument("--seconds", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(given.flyball, folder)
        try:
            measure(given, server, folder)
        finally:
            server.process.kill()


def measure(given, server, folder):
    environment = dict(os.environ, KUBECONFIG=server.data + "/kubeconfig", HOME=folder)
    subprocess.run(["kubectl", "apply", "-f", str(CRD)], env=environment, check=True,
                   stdout=subprocess.DEVNULL)
    with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda n: make(server, n), range(given.objects)))
    log = open(folder + "/operator.log", "w")
    operator = subprocess.Popen(
        [given.flyball, "operator", "--kubeconfig", server.data + "/kubeconfig", "--leader-elect=false",
         "--listen", "none", "--controllers", "schedule", "--qps", "100000", "--burst", "100000",
         "--log-level", "error"], stdout=log, stderr=log)
    try:
        settle(operator.pid)
        print("%d schedules of 10 triggers applied: %.1f s of CPU, %.1f MB RSS (peak %.1f MB)" % (
            given.objects, cpu_seconds(operator.pid), memory_mb(operator.pid, "VmRSS"),
            memory_mb(operator.pid, "VmHWM")))
        idle = rest(operator.pid, given.seconds)
        before, start, events = cpu_seconds(operator.pid), time.monotonic(), 0
        with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
            turn, portion, rate = 0, 5 * WRITERS, given.objects / 15
            while time.monotonic() - start < given.seconds:
                turn += 1
                span = [(turn * portion + i) % given.objects for i in range(portion)]
                list(pool.map(lambda n: churn(server, n, turn), span))
                events += len(span)
                time.sleep(max(0, start + events / rate - time.monotonic()))
        took, used = time.monotonic() - start, cpu_seconds(operator.pid) - before
        each = (used - idle * took) / events
        share = 100 * (idle + each * given.objects / 15)
        print("idle: %.2f %% of a core; %d HPA status changes in %.0f s: %.1f us of CPU each" % (
            100 * idle, events, took, each * 1e6))
        budget("%d schedules, every HPA's status changing each 15 s" % given.objects, share, 1, "% of a core")
    finally:
        operator.terminate()
        operator.wait()


def rest(pid, seconds):
    before = cpu_seconds(pid)
    time.sleep(seconds)  # what is measured is doing nothing
    return (cpu_seconds(pid) - before) / seconds


if __name__ == "__main__":
    main()
