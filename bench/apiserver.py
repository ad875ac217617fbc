"""Puts the same requests to the embedded API server and, where ./dev kube has built one, to a real
kube-apiserver with etcd, and compares them.

    apiserver.py [PROGRAM]      (default: build/bench/apiserver_bench)
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from budget import budget

ROOT = pathlib.Path(__file__).resolve().parent.parent


def measure(command, env=None):
    """Runs it, shows what it prints, and keeps the first number of every line."""
    numbers = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            found = re.match(r"(\S.*?) {2,}([0-9.]+) (/s|ms)", line)
            if found:
                numbers[found[1]] = float(found[2])
    if process.returncode:
        sys.exit("apiserver.py: %s ended with %d" % (command[0], process.returncode))
    return numbers


def peer():
    """The folder of the real servers when both they and etcd are here; building them takes long."""
    version = re.search(r"k8s.io/kubernetes (v[0-9.]+)", (ROOT / "test/kube/go.mod").read_text())
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache"))
    there = version and cache / "flyball" / ("kube-" + version[1]) / "kube-apiserver"
    return there if there and there.exists() and shutil.which("etcd") else None


def most_with_one_connection(ours):
    """Creates a second if one were a GET and a write to the disk, and took no time of its own."""
    return 1000 / (1000 / ours["the disk alone, one write at a time"] + ours["GET"])


def compare(ours, theirs):
    for name in ours:
        if name in theirs and ours[name] and theirs[name]:
            faster = ours[name] / theirs[name] if name.startswith("creates") else theirs[name] / ours[name]
            print("%-44s %10.1f times as fast as kube-apiserver" % (name, faster))
    print("%-44s %10.1f times, if it were a GET and a write to this disk" %
          ("a create, 1 connection", most_with_one_connection(ours) / theirs["creates, 1 connection"]))
    for name in ("creates, 1 connection", "creates, 16 connections"):
        budget("kube-apiserver to embedded server, " + name, theirs[name] / ours[name], 0.1, "of ours")
    budget("embedded server to kube-apiserver, GET latency", ours["GET"] / theirs["GET"], 0.2, "of theirs")


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/bench/apiserver_bench")
    ours = measure([program])
    if not peer():
        print("no kube-apiserver and etcd here (./dev kube builds one): nothing to compare with")
        return
    ask = 'exec "$0" kube-apiserver "$(cat "$CLUSTER_DIR/server")" "$(cat "$CLUSTER_DIR/token")"'
    compare(ours, measure([str(ROOT / "test/kube/cluster"), "run", "sh", "-c", ask, program]))


main()
