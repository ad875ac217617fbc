#!/usr/bin/python3
"""flyball up as a newcomer meets it: start, look with kubectl, change something, kill it, start again.

    up.py FLYBALL

Speaks TAP. Skipped where there is no kubectl.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

FLYBALL = str(pathlib.Path(sys.argv[1]).resolve())


class Up:
    """One run of `flyball up`; ready when it has said where it is."""

    def __init__(self, data, *more):
        self.process = subprocess.Popen([FLYBALL, "up", "--data", data, *more], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        self.said = []
        for line in self.process.stdout:
            self.said.append(line)
            if "Ctrl-C stops" in line:
                return
        raise RuntimeError("it did not come up: " + "".join(self.said))

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.said.append(self.process.stdout.read())
        return self.process.wait(30)


def kubectl(data, *words):
    env = dict(os.environ, KUBECONFIG=data + "/kubeconfig", HOME=data)
    return subprocess.run(["kubectl", *words], env=env, capture_output=True, text=True, timeout=60)


def get(data, *words):
    answer = kubectl(data, "get", *words, "-o", "json")
    return json.loads(answer.stdout) if answer.returncode == 0 else {}


def until(question, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if question():
            return True
        time.sleep(0.2)  # kubectl asks anew: there is no event to wait for from out here
    return False


def bounds(data):
    spec = get(data, "hpa", "web", "-n", "shop").get("spec", {})
    return spec.get("minReplicas"), spec.get("maxReplicas")


def ready(data):
    return get(data, "deployment", "web", "-n", "shop").get("status", {}).get("readyReplicas", 0)


def a_schedule_governs_and_pods_run(data):
    up = Up(data)
    try:
        assert until(lambda: bounds(data)[0] in (2, 5, 8)), "bounds are %s" % (bounds(data),)
        assert until(lambda: ready(data) >= bounds(data)[0]), "%s pods are ready" % ready(data)
    finally:
        code = up.end()
    assert code == 0, "exit code %s: %s" % (code, "".join(up.said))


def an_edit_is_seen(data):
    up = Up(data)
    try:
        trigger = {"name": "now", "priority": 0, "interval": {"recurring": "M,TU,W,TH,F,SAT,SUN"},
                   "startTime": "00:00:00", "endTime": "23:59:59", "startHPAConfig": {"minReplicas": 7, "maxReplicas": 9}}
        patch = json.dumps({"spec": {"triggers": [trigger]}})
        answer = kubectl(data, "patch", "shpa", "web", "-n", "shop", "--type=merge", "-p", patch)
        assert answer.returncode == 0, answer.stderr
        assert until(lambda: bounds(data) == (7, 9)), "bounds are %s" % (bounds(data),)
    finally:
        up.end()


def killed_it_goes_on(data):
    up = Up(data)
    kubectl(data, "create", "configmap", "kept", "-n", "shop", "--from-literal=a=b")
    up.end(signal.SIGKILL)
    up = Up(data)
    try:
        assert get(data, "configmap", "kept", "-n", "shop").get("data") == {"a": "b"}
        assert bounds(data) == (7, 9), "bounds are %s" % (bounds(data),)
    finally:
        up.end()


def a_bad_start_is_one_sentence(data):
    for words, wanted in ((["--speed", "0"], "--speed"), (["--testbed", "no-such"], "no-such"),
                          (["--listen", "nowhere"], "--listen"), (["--data", "/proc/none"], "/proc/none")):
        run = subprocess.run([FLYBALL, "up", "--data", data + "/other", *words], capture_output=True, text=True,
                             timeout=60)
        assert run.returncode != 0 and wanted in run.stderr, (words, run.returncode, run.stderr)
        assert len(run.stderr.strip().splitlines()) == 1, run.stderr


def main():
    cases = [a_schedule_governs_and_pods_run, an_edit_is_seen, killed_it_goes_on, a_bad_start_is_one_sentence]
    print("1..%d" % len(cases))
    data = tempfile.mkdtemp(prefix="flyball-up-")
    failed = 0
    for number, case in enumerate(cases, 1):
        name = case.__name__.replace("_", " ")
        if not shutil.which("kubectl"):
            print("ok %d - %s # SKIP there is no kubectl" % (number, name))
            continue
        try:
            case(data)
            print("ok %d - %s" % (number, name), flush=True)
        except Exception as e:  # whatever it is, the next case is still worth a try
            failed += 1
            print("# %s\nnot ok %d - %s" % (str(e).replace("\n", "\n# "), number, name), flush=True)
    shutil.rmtree(data, ignore_errors=True)
    return failed > 0


sys.exit(main())
