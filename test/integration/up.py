#!/usr/bin/python3
"""flyball up as a newcomer sees it: start, look with kubectl, apply, edit, delete, kill it, start again.

    up.py FLYBALL

Speaks TAP. Skipped where there is no kubectl.
"""
import json
import os
import pathlib
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
import urllib.error
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
    """Waits until the question is answered with yes; `what` describes what is there instead."""
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
        # the simulated hours of the run before are still to come: that is all there is to report
        assert all("the clock starts at" in line for line in run.stderr.splitlines()), run.stderr


def a_clock_that_goes_back_is_reported(data):
    def run(clock):
        return subprocess.run([FLYBALL, "up", "--data", data, "--testbed", "schedule", "--clock", clock, "--for", "1s"],
                              capture_output=True, text=True, timeout=120).stderr
    assert not run("2091-01-02T08:00:00Z")
    assert "warning: the clock starts at 2090-06-01T00:00:00Z" in run("2090-06-01T00:00:00Z")
    assert not run("2091-01-02T09:00:00Z")


def a_clock_in_the_far_future_has_events(data):
    up = Up(data, "--testbed", "schedule", "--clock", "2090-01-02T08:58:00Z", "--speed", "60")
    env = {**os.environ, "KUBECONFIG": data + "/kubeconfig"}

    def events():
        return subprocess.run(["kubectl", "get", "events", "-n", "shop"], env=env, capture_output=True, text=True,
                              timeout=60).stdout
    try:
        until(lambda: "HPAUpdated" in events(), events)
    finally:
        up.stop()


def snapshot(data):
    """What must be the same after a kill: which objects exist, and their specs."""
    objects = get(data, "deployments,replicasets,pods,hpa,shpa,aimservices,aimruntimeconfigs,httproutes,configmaps",
                  "-A")["items"]
    return {(o["kind"], o["metadata"].get("namespace"), o["metadata"]["name"]):
            (o["metadata"]["uid"], json.dumps(o.get("data") or o.get("spec"), sort_keys=True)) for o in objects
            if "qtable" not in o["metadata"]["name"]}


def decisions(data):
    """Each event of the schedule and of runtime configuration, and how often it was emitted."""
    events = get(data, "events", "-A")["items"]
    return {(e["involvedObject"]["kind"], e["involvedObject"]["name"], e["reason"], e["message"]): e.get("count", 1)
            for e in events if e["involvedObject"].get("apiVersion", "").startswith(("aim.", "autoscaling.sarabala"))}


def apply_seeds(data):
    for name in ("manifests.yaml", "model.yaml", "shop.yaml"):
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


def an_image_becomes_a_running_service(data):
    """Nothing but the name of an image: labels from the registry, a template, a discovery job, a route."""
    up = Up(data, "--testbed", "routing")
    try:
        status = lambda: get(data, "aimservice", "tiny", "-n", "ml-team").get("status", {})
        until(lambda: status().get("status") == "Running", lambda: "its status is %s" % status())
        model = get(data, "aimmodel", "tiny-chat", "-n", "ml-team")["status"]
        assert model["imageMetadata"]["model"]["canonicalName"] == "acme/tiny-chat", model
        template = get(data, "aimservicetemplate", status()["resolvedTemplate"]["name"], "-n", "ml-team")["status"]
        assert template["modelSources"][0]["sourceUri"] == "hf://acme/tiny-chat", template
        assert path_of(data, "tiny") == "/ml/ml-team/tiny"
        until(lambda: not get(data, "jobs", "-n", "ml-team").get("items"), lambda: "the discovery job is still there")
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

        def page(ip):
            """Empty while the pod starts or stops."""
            try:
                return urllib.request.urlopen("http://%s:8000/metrics" % ip, timeout=30).read().decode()
            except urllib.error.URLError:
                return ""

        def served():
            counts = re.findall(r"vllm:request_success_total\{[^}]*\} (\S+)", "".join(map(page, addresses())))
            return sum(map(float, counts))

        until(lambda: served() > 5, lambda: "%s requests were served" % served())
        # flyball scrapes them too, asks for more, and an autoscaler reads that from flyball's own metrics.
        def replicas():
            return sum(d["spec"]["replicas"] for d in get(data, "deployments", "-n", "llm")["items"])

        until(lambda: replicas() > 2, lambda: must(data, "get", "va,hpa", "-n", "llm"))
        # The thresholds of the ConfigMap are not in force: they are not shown as if they were.
        why = subprocess.run([FLYBALL, "explain", "va", "chat-l40s", "-n", "llm"], capture_output=True, text=True,
                             env={**os.environ, "KUBECONFIG": data + "/kubeconfig"}, timeout=60).stdout
        assert "Latency targets decide" in why and "saturated at KV cache" not in why, why
    finally:
        up.stop()


def refused(*words):
    run = subprocess.run([FLYBALL, "up", *words], capture_output=True, text=True, timeout=120)
    assert run.returncode != 0, (words, run.stdout)
    assert len(run.stderr.strip().splitlines()) == 1, run.stderr
    return run.stderr


def a_bad_scenario_is_refused_at_once(data, other):
    def scenario(text):
        pathlib.Path(data + "/bad.yaml").write_text(text)
        return refused("--data", other, "--testbed", data + "/bad.yaml")
    ours = "apiVersion: testbed.flyball.dev/v1\nkind: "
    assert "must be Include or Clock" in scenario(ours + "Surprise\n")
    assert "weekday" in scenario(ours + "Clock\nstart: {weekday: Someday, time: '08:50:00'}\n")
    assert "timezone" in scenario(ours + "Clock\nstart: {weekday: Monday, time: '08:50', timezone: Mars/Phobos}\n")
    assert "between 1 and 1000" in scenario(ours + "Clock\nspeed: 0\n")
    assert "Nothing a" in scenario("apiVersion: example.com/v1\nkind: Nothing\nmetadata: {name: a}\n")


def a_bad_start_is_one_sentence(data):
    other = data + "/other"
    assert "--speed" in refused("--data", other, "--speed", "0")
    assert "no-such" in refused("--data", other, "--testbed", "no-such")
    assert "--speed" in refused("--data", other, "--speed", "fast")
    a_bad_scenario_is_refused_at_once(data, other)
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


def explain_uses_the_clock_of_the_cluster(data):
    up = Up(data, "--testbed", "schedule", "--speed", "60", "--clock", "2020-01-06T10:30:00Z")
    env = {**os.environ, "KUBECONFIG": data + "/kubeconfig"}

    def explained():
        return subprocess.run([FLYBALL, "explain", "shpa", "web", "-n", "shop"], env=env, capture_output=True,
                              text=True, timeout=60).stdout
    try:
        until(lambda: "as it should" in explained(), explained)
        text = explained()
        assert "simulated" in text and "2020-01-" in text, text
    finally:
        up.stop()


def the_printed_command_works_from_any_directory(data):
    folder = os.path.join(data, "it's a folder")
    os.mkdir(folder)
    up = Up(os.path.relpath(folder), "--testbed", "empty")
    try:
        command = re.search(r"^ +(export KUBECONFIG=.*)$", up.text(), re.MULTILINE).group(1)
        done = subprocess.run(["sh", "-c", command + " && kubectl get namespaces"], cwd="/", capture_output=True, text=True,
                              timeout=60)
        assert done.returncode == 0 and "default" in done.stdout, (command, done)
    finally:
        up.stop()


CASES = [it_stops_after_the_time_given, the_printed_command_works_from_any_directory,
         a_clock_that_goes_back_is_reported, a_clock_in_the_far_future_has_events,
         explain_uses_the_clock_of_the_cluster, every_feature_decides, a_bare_pod_runs,
         an_image_becomes_a_running_service,
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
