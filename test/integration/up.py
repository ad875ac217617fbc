#!/usr/bin/python3
"""flyball up as a newcomer meets it: start, look with kubectl, apply, edit, delete, kill it, start again.

    up.py FLYBALL

Speaks TAP. Skipped where there is no kubectl.
"""
import fcntl
import json
import os
import pathlib
import re
import select
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios
import time
import urllib.request

import harness

FLYBALL = str(pathlib.Path(sys.argv[1]).resolve())
SEEDS = pathlib.Path(__file__).resolve().parent / "seeds"
FEATURES = ("saturation", "schedule", "market", "runtimeconfig")


class Up(harness.Up):
    def __init__(self, data, *more):
        super().__init__(FLYBALL, data, *more)

    def reconciled(self, controller):
        """How many turns a controller has made in this run."""
        found = re.findall(r'controller_runtime_reconcile_total\{controller="%s"[^}]*\} (\d+)' % controller,
                           self.metrics())
        return sum(map(int, found))


def kubectl(data, *words, **more):
    env = dict(os.environ, KUBECONFIG=data + "/kubeconfig", HOME=data)
    return subprocess.run(["kubectl", *words], env=env, capture_output=True, text=True, timeout=120, **more)


def must(data, *words, **more):
    answer = kubectl(data, *words, **more)
    assert answer.returncode == 0, "kubectl %s: %s" % (" ".join(words), answer.stderr)
    return answer.stdout


def get(data, *words):
    answer = kubectl(data, "get", *words, "-o", "json")
    return json.loads(answer.stdout) if answer.returncode == 0 else {}


def until(question, what):
    """Waits until the question is answered with yes; `what` says what is there instead."""
    assert harness.until(question, 150), what()


def bounds(data):
    spec = get(data, "hpa", "web", "-n", "shop").get("spec", {})
    return spec.get("minReplicas"), spec.get("maxReplicas")


def ready(data):
    return get(data, "deployment", "web", "-n", "shop").get("status", {}).get("readyReplicas", 0)


def path_of(data, service):
    route = get(data, "httproute", service, "-n", "ml-team")
    rules = route.get("spec", {}).get("rules", [{}])
    return rules[0].get("matches", [{}])[0].get("path", {}).get("value")


def limits(data):
    pods = get(data, "pods", "-n", "shop", "-l", "app=web").get("items", [])
    return [pod["spec"]["containers"][0]["resources"]["limits"]["cpu"] for pod in pods]


# ---- cases, each in a data directory of its own


def every_feature_decides(data):
    up = Up(data)
    try:
        for feature in FEATURES:
            until(lambda f=feature: told(data, f) > 0, up.text)
        every_decision_is_explained(data)
    finally:
        code = up.stop()
    assert code == 0, "exit code %s: %s" % (code, up.text())
    summary = up.text().split("Decisions that were applied")[1]
    for feature in FEATURES:
        count = re.search(r"^  %s +(\d+)  last: \S" % feature, summary, re.MULTILINE)
        assert count and int(count.group(1)) > 0, summary


EXPLAINED = ["variantautoscalings", "smarthorizontalpodautoscalers", "podallocations", "aimservices",
             "aimruntimeconfigs", "aimmodels", "aimservicetemplates"]


def every_decision_is_explained(data):
    env = {**os.environ, "KUBECONFIG": data + "/kubeconfig"}
    for kind in EXPLAINED:
        items = get(data, kind, "-A")["items"]
        assert items, "the scenario has no " + kind
        meta = items[0]["metadata"]
        run = subprocess.run([FLYBALL, "explain", kind, meta["name"], "-n", meta["namespace"]], env=env,
                             capture_output=True, text=True, timeout=60)
        assert run.returncode == 0 and meta["name"] in run.stdout, (kind, run.stdout, run.stderr)
        if kind == "smarthorizontalpodautoscalers":
            assert "Last changes:" in run.stdout, run.stdout


GROUPS = {"saturation": "llmd.ai/", "schedule": "autoscaling.sarabala.io/", "market": "allocation.mbcas.io/",
          "runtimeconfig": "aim."}


def told(data, feature):
    events = get(data, "events", "-A").get("items", [])
    return sum(e["type"] == "Normal" and e["involvedObject"].get("apiVersion", "").startswith(GROUPS[feature])
               and e["reason"] != "Reconciled" for e in events)


def it_stops_after_the_time_given(data):
    for seconds in ("0.1s", "0.4s", "0.7s", "1s", "3s"):  # also in the midst of its start
        run = subprocess.run([FLYBALL, "up", "--data", data, "--testbed", "schedule", "--speed", "600",
                              "--for", seconds], capture_output=True, text=True, timeout=120)
        assert run.returncode == 0 and "stopped:" in run.stdout, run.stdout + run.stderr
        assert not run.stderr, run.stderr


class Terminal:
    """`flyball up` as somebody sees it who sits before it."""

    def __init__(self, rows, columns, *words):
        self.screen, theirs = os.openpty()
        self.resize(rows, columns)
        self.process = subprocess.Popen([FLYBALL, "up", *words], stdin=theirs, stdout=theirs, stderr=theirs,
                                        start_new_session=True, env={**os.environ, "TERM": "xterm"},
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(theirs)
        self.said = ""

    def resize(self, rows, columns):
        fcntl.ioctl(self.screen, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, words):
        """What comes until then, without colours."""
        start = len(self.said)
        while not re.search(words, plain(self.said[start:])):
            assert select.select([self.screen], [], [], 150)[0], self.said
            try:
                self.said += os.read(self.screen, 65536).decode(errors="replace")
            except OSError:  # it has ended
                break
        assert re.search(words, plain(self.said[start:])), self.said
        return plain(self.said[start:])


def plain(text):
    return re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text)


def a_terminal_shows_a_summary_that_fits(data):
    terminal = Terminal(24, 60, "--data", data)
    try:
        shown = terminal.read_until(r"(?s)by its clock.*CPU limit.*by its clock.*by its clock")
        live = shown[shown.index("by its clock"):].splitlines()
        assert max(map(len, live)) <= 60 and any(line.endswith("…") for line in live), live
        terminal.resize(40, 120)
        shown = terminal.read_until(r"(?s)export KUBECONFIG=.*by its clock.*by its clock")  # all of it anew
        assert max(map(len, shown.splitlines())) > 60, shown
        os.write(terminal.screen, b"\x03")
        shown = terminal.read_until("All state is kept in " + data)
        assert all(re.search(r"^  %s +\d+" % feature, shown, re.MULTILINE) for feature in FEATURES), shown
        assert terminal.process.wait(60) == 0
    finally:
        terminal.process.kill()
        terminal.process.wait()
        os.close(terminal.screen)


def snapshot(data):
    """What must be the same after a kill: who is there, and what they were told to be."""
    objects = get(data, "deployments,replicasets,pods,hpa,shpa,aimservices,aimruntimeconfigs,httproutes,configmaps",
                  "-A")["items"]
    return {(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]):
            (o["metadata"]["uid"], json.dumps(o.get("data") or o.get("spec"), sort_keys=True)) for o in objects
            if "qtable" not in o["metadata"]["name"]}


def decisions(data):
    """Each event of the schedule and of runtime configuration, and how often it was told."""
    events = get(data, "events", "-A")["items"]
    return {(e["involvedObject"]["kind"], e["involvedObject"]["name"], e["reason"], e["message"]): e.get("count", 1)
            for e in events if e["involvedObject"].get("apiVersion", "").startswith(("aim.", "autoscaling.sarabala"))}


def apply_seeds(data):
    for name in ("manifests.yaml", "shop.yaml"):
        must(data, "apply", "-f", str(SEEDS / name))


def the_manifests_act(data):
    until(lambda: bounds(data) == (2, 3), lambda: "bounds are %s" % (bounds(data),))
    until(lambda: ready(data) >= 2, lambda: "%s pods are ready" % ready(data))
    until(lambda: path_of(data, "llama-chat") == "/ml/ml-team/conversational-ai",
          lambda: "the route is %s" % path_of(data, "llama-chat"))
    until(lambda: any(limit != "200m" for limit in limits(data)), lambda: "limits are %s" % limits(data))


def edits_are_followed(data):
    override = {"spec": {"routing": {"pathTemplate": "/custom/{.metadata.name}"}}}
    must(data, "patch", "aimservice", "llama-chat", "-n", "ml-team", "--type=merge", "-p", json.dumps(override))
    until(lambda: path_of(data, "llama-chat") == "/custom/llama-chat",
          lambda: "the route is %s" % path_of(data, "llama-chat"))
    trigger = {"name": "now", "priority": 9, "interval": {"recurring": "M,TU,W,TH,F,SAT,SUN"},
               "startTime": "00:00:00", "endTime": "23:59:59", "startHPAConfig": {"minReplicas": 4, "maxReplicas": 9}}
    must(data, "patch", "shpa", "web", "-n", "shop", "--type=merge", "-p", json.dumps({"spec": {"triggers": [trigger]}}))
    until(lambda: bounds(data) == (4, 9), lambda: "bounds are %s" % (bounds(data),))
    until(lambda: ready(data) == 4, lambda: "%s pods are ready" % ready(data))


def deletions_are_followed(data):
    must(data, "delete", "aimservice", "llama-chat", "-n", "ml-team")
    until(lambda: path_of(data, "llama-chat") is None, lambda: "the route is %s" % path_of(data, "llama-chat"))
    must(data, "delete", "shpa", "web", "-n", "shop")
    must(data, "delete", "deployment", "web", "-n", "shop")
    until(lambda: not get(data, "pods", "-n", "shop").get("items"),
          lambda: must(data, "get", "pods", "-n", "shop"))


def a_kill_loses_and_repeats_nothing(data, up):
    # The market goes on bidding; it is opted out so that what is compared stands still.
    for pod in get(data, "pods", "-n", "shop")["items"]:
        must(data, "annotate", "pod", pod["metadata"]["name"], "-n", "shop", "mbcas.io/managed=false")
    until(lambda: stands_still(data), lambda: "objects keep changing")
    before, told_before = snapshot(data), decisions(data)
    up.stop(signal.SIGKILL)
    up = Up(data, "--testbed", "empty")
    try:
        for controller in ("schedule", "runtimeconfig"):
            until(lambda c=controller: turns(up, c) > 0, up.metrics)
        until(lambda: stands_still(data), lambda: "objects keep changing")
        after, told_after = snapshot(data), decisions(data)
        assert before == after, "changed: %s" % sorted(
            str((k, before.get(k), after.get(k))) for k in before.keys() | after.keys() if before.get(k) != after.get(k))
        repeated = {k: n for k, n in told_after.items() if n != told_before.get(k) and k[2] != "Reconciled"}
        assert not repeated, "told again: %s" % repeated
    except BaseException:
        up.stop(signal.SIGKILL)
        raise
    return up


def turns(up, feature):
    return sum(up.reconciled(c) for c in set(re.findall(r'controller="(%s[^"]*|aim[^"]*)"' % feature, up.metrics()))
               if (feature == "runtimeconfig") == (c.startswith(("aim", "runtimeconfig"))))


def stands_still(data):
    first = snapshot(data)
    time.sleep(2)  # nothing happens: that is what is looked for
    return first == snapshot(data)


def a_bare_pod_runs(data):
    up = Up(data, "--testbed", "empty")
    try:
        must(data, "run", "bare", "--image=example.invalid/app:1")
        must(data, "wait", "--for=condition=Ready", "--timeout=100s", "pod/bare")
        assert get(data, "pod", "bare")["spec"]["nodeName"]
        node = get(data, "nodes")["items"][0]["metadata"]["name"]
        must(data, "cordon", node)
        must(data, "run", "late", "--image=example.invalid/app:1")
        must(data, "wait", "--for=condition=PodScheduled=false", "--timeout=100s", "pod/late")
        must(data, "uncordon", node)
        must(data, "wait", "--for=condition=Ready", "--timeout=100s", "pod/late")
    finally:
        code = up.stop()
    assert code == 0, "exit code %s: %s" % (code, up.text())


def the_seeds_manifests_live(data):
    up = Up(data, "--testbed", "empty")
    try:
        apply_seeds(data)
        the_manifests_act(data)
        edits_are_followed(data)
        up = a_kill_loses_and_repeats_nothing(data, up)
        deletions_are_followed(data)
    finally:
        code = up.stop()
    assert code == 0, "exit code %s: %s" % (code, up.text())


def a_simulated_server_is_scraped(data):
    up = Up(data, "--testbed", "llm")
    try:
        def addresses():
            pods = get(data, "pods", "-n", "llm").get("items", [])
            return [p["status"]["podIP"] for p in pods if p["status"].get("podIP")]

        until(lambda: len(addresses()) >= 2, lambda: must(data, "get", "pods", "-n", "llm", "-o", "wide"))

        def served():
            pages = [urllib.request.urlopen("http://%s:8000/metrics" % ip, timeout=30).read().decode()
                     for ip in addresses()]
            return sum(float(v) for page in pages for v in re.findall(r"vllm:request_success_total\{[^}]*\} (\S+)", page))

        until(lambda: served() > 5, lambda: "%s requests were served" % served())
        # flyball scrapes them too, asks for more, and an autoscaler reads that from flyball's own metrics.
        def replicas():
            return sum(d["spec"]["replicas"] for d in get(data, "deployments", "-n", "llm")["items"])

        until(lambda: replicas() > 2, lambda: must(data, "get", "va,hpa", "-n", "llm"))
    finally:
        up.stop()


def refused(*words):
    run = subprocess.run([FLYBALL, "up", *words], capture_output=True, text=True, timeout=120)
    assert run.returncode != 0, (words, run.stdout)
    assert len(run.stderr.strip().splitlines()) == 1, run.stderr
    return run.stderr


def a_bad_start_is_one_sentence(data):
    other = data + "/other"
    assert "--speed" in refused("--data", other, "--speed", "0")
    assert "no-such" in refused("--data", other, "--testbed", "no-such")
    assert "--listen" in refused("--data", other, "--listen", "nowhere")
    assert "/proc/none" in refused("--data", "/proc/none")
    pathlib.Path(data + "/file").write_text("")
    assert data + "/file cannot be written to: Not a directory" in refused("--data", data + "/file")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = "127.0.0.1:%d" % taken.getsockname()[1]
        assert "in use" in refused("--data", other, "--listen", address)
    pathlib.Path(data + "/loop.yaml").write_text(
        "apiVersion: testbed.flyball.dev/v1\nkind: Include\nfiles: [%s/loop.yaml]\n" % data)
    assert "nested too deeply" in refused("--data", other, "--testbed", data + "/loop.yaml")


def data_of_another_version_is_refused(data):
    Up(data, "--testbed", "empty").stop()
    with sqlite3.connect(data + "/state.db") as db:
        db.execute("PRAGMA user_version = 4711")
    db.close()
    assert "4711" in refused("--data", data)


def two_at_once_are_refused(data):
    up = Up(data, "--testbed", "empty")
    try:
        assert "in use" in refused("--data", data)
    finally:
        up.stop()


CASES = [it_stops_after_the_time_given, a_terminal_shows_a_summary_that_fits, every_feature_decides, a_bare_pod_runs,
         the_seeds_manifests_live, a_simulated_server_is_scraped, a_bad_start_is_one_sentence,
         data_of_another_version_is_refused, two_at_once_are_refused]


def main():
    harness.need("kubectl")
    tap = harness.Tap()
    for case in CASES:
        with tempfile.TemporaryDirectory(prefix="flyball-up-", ignore_cleanup_errors=True) as data:
            tap.run(case, data)
    tap.end()


main()
