#!/usr/bin/python3
"""Runs recorded kubectl command lines against the API server and compares exit code, reason and output.

    kubectl.py FLYBALL [--only PART]

Speaks TAP, one case a recording. Ages, times, ids and runs of blanks are made alike on both sides. Skipped
where there is no kubectl of 1.32 or newer, as older ones ask for other things.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

import compare
from compare import fill
from running import Server

HERE = pathlib.Path(__file__).resolve().parent
OLDEST = (1, 32)
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z|\w{3}, \d\d \w{3} \d{4} [\d:]{8} [+-]\d{4}"
AGE = r"(?<!cpu: )(?<![^ ])(?:\d+[smhdy]){1,2}(?= |$)|<invalid>"


def version():
    try:
        out = subprocess.run(["kubectl", "version", "--client", "-o", "json"], capture_output=True, text=True,
                             timeout=30).stdout
        found = re.search(r'"gitVersion": *"v(\d+)\.(\d+)', out)
        return (int(found[1]), int(found[2])) if found else None
    except (OSError, subprocess.TimeoutExpired):
        return None


class Recording:
    def __init__(self, kubeconfig, recording):
        self.recording, self.left_running = recording, {}
        self.ident = "c" + "".join(random.choices("bcdfghjklmnpqrstvwxz2456789", k=7))
        self.names = {"id": self.ident, "ns": "conf-" + self.ident}
        self.dir = tempfile.mkdtemp(prefix="kubectl-")
        self.base = ["kubectl", "--kubeconfig", os.path.abspath(kubeconfig), "--cache-dir",
                     self.dir + "/.cache"]
        for name, lines in recording.get("files", {}).items():
            pathlib.Path(self.dir, name).write_text(fill("\n".join(lines) + "\n", self.names))

    def start(self, argv, scoped=True):
        scope = ["-n", self.names["ns"]] if scoped else []
        return subprocess.Popen(self.base + scope + fill(argv, self.names), cwd=self.dir, text=True,
                                env={**os.environ, "HOME": self.dir}, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def end(self, process, stdin="", timeout=60):
        try:
            out, err = process.communicate(fill(stdin, self.names), timeout)
            return out, err, process.returncode
        except subprocess.TimeoutExpired:
            process.kill()
            return (*process.communicate(), "killed")

    def begin(self):
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.names["ns"]}}
        self.end(self.start(["create", "--validate=false", "-f", "-"], False), json.dumps(space))
        if self.recording.get("wait_sa"):
            self.end(self.start(["wait", "--for=create", "serviceaccount/default", "--timeout=5s"]))

    def finish(self):
        for process in self.left_running.values():
            self.end(process, timeout=0)
        for argv in [*self.recording.get("cleanup", []), ["delete", "namespace", "${ns}"]]:
            self.end(self.start(argv + ["--ignore-not-found", "--wait=false"], False))
        shutil.rmtree(self.dir, ignore_errors=True)

    def alike(self, text, step):
        text = text.replace(self.dir, "${dir}").replace(self.ident, "${id}")
        text = re.sub(compare.SHAPE["uid"], "<uid>", text)
        text = re.sub(TIME, "<time>", text)
        text = re.sub(r'(resourceVersion"?: |Resource Version: +)"?\d+"?', r"\1<rv>", text)
        lines = []
        for line in text.splitlines():
            indent = line[:len(line) - len(line.lstrip(" "))]
            lines.append(re.sub(AGE, "<age>", indent + re.sub(r"[ \t]+", " ", line.strip())))
        if "only" in step:
            patterns = [p.replace("${id}", re.escape("${id}")) for p in step["only"]]
            lines = [line for line in lines if any(re.search(p, line) for p in patterns)]
        return sorted(lines) if step.get("sorted") else lines

    def perform(self, step, again=None):
        if "collect" in step:
            out, err, code = self.end(self.left_running.pop(step["collect"]), timeout=step["seconds"])
        else:
            process = self.start(step["args"], step.get("namespaced", True))
            if "start" in step:
                self.left_running[step["start"]] = process
                time.sleep(1.5)  # kubectl prints nothing when its watch is open
                return None
            out, err, code = self.end(process, step.get("stdin", ""))
            tries = step.get("retry", 0) if again is None else again
            if code and tries:
                time.sleep(1)
                return self.perform(step, tries - 1)
        reason = re.search(r"Error from server \((\w+)\)", err)
        return {"exit": code, "reason": reason[1] if reason else "", "stdout": self.alike(out, step),
                "stderr": err}

    def run(self):
        """Problems by step name."""
        problems = {}
        try:
            self.begin()
            for step in self.recording["steps"]:
                got = self.perform(step)
                if got is None:
                    continue
                keys = ["exit", "reason"] + ["stdout"] * (step.get("expect") != "exit")
                found = [d for key in keys
                         for d in compare.Comparison({}).differences(step["got"][key], got[key], key)]
                if found:
                    problems[step["name"]] = found + ["stderr: %.200r" % got["stderr"]]
        finally:
            self.finish()
        return problems


def run_alone(flyball, recording):
    """On a server of its own: short names of custom resources would get in each other's way."""
    with Server(flyball, ["--in-memory"]) as server:
        problems = Recording(server.kubeconfig, recording).run()
    said = server.complaints()
    return {**problems, "server": [said]} if said else problems


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("flyball")
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    have = version()
    if not have or have < OLDEST:
        print("1..0 # SKIP there is no kubectl of %d.%d or newer here" % OLDEST)
        return
    recordings = [json.loads(f.read_text()) for f in sorted((HERE / "kubectl").glob("*.json"))]
    recordings = [r for r in recordings if args.only in r["name"]]
    print("1..%d" % len(recordings), flush=True)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(run_alone, args.flyball, r) for r in recordings]
        for number, (recording, run) in enumerate(zip(recordings, runs), 1):
            problems = run.result()
            failed += bool(problems)
            for step, found in problems.items():
                print("# %s: %s" % (step, "; ".join(found[:4])))
            print("%s %d - %s (%d steps)" % ("not ok" if problems else "ok", number, recording["name"],
                                            len(recording["steps"])), flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
