"""A controller that watches all pods: what its start and its events cost, beside client-go's.

Two servers. One is made up (bench/podserver.c): 5,000 and 100,000 pods of 17 KB out of nothing, so that the
client's cost is all there is. The other is a real kube-apiserver with 5,000 pods, which also speaks protobuf. Each line is
the best of a few runs, and every ratio is of the same run of this script.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys

from budget import budget

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = pathlib.Path(os.environ.get("FLYBALL_BENCH", ROOT / "build" / "bench"))
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "flyball" / "bench"
RUNS = 3
BUDGETS = {"cpu_ms": (600, "ms CPU"), "peak_mb": (12, "MB peak"), "bytes_a_pod": (300, "bytes a pod")}


def build_peer():
    """client-go's informer, built once; None where there is no Go."""
    if not shutil.which("go"):
        return None
    program = CACHE / "informer"
    CACHE.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["nice", "-n", "19", "go", "build", "-p", "2", "-trimpath", "-buildvcs=false", "-o", program, "."],
                          cwd=ROOT / "bench" / "peers", capture_output=True, text=True)
    if done.returncode:
        print(f"client-go cannot be built here: {done.stderr.strip().splitlines()[-1:]}")
        return None
    return program


def measure(command, config, runs=RUNS):
    """The run with the least CPU."""
    results = []
    for _ in range(runs):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=600,
                              env={**os.environ, "KUBECONFIG": str(config)})
        if done.returncode:
            print(f"  {command[0].name} failed: {done.stderr.strip()[-300:]}")
            return None
        results.append(json.loads(done.stdout))
    return min(results, key=lambda r: r["cpu_ms"])


class Pods:
    """The made-up server."""

    def __init__(self, *words):
        self.process = subprocess.Popen([PROGRAMS / "podserver", *map(str, words)], stdout=subprocess.PIPE, text=True)
        self.config = self.process.stdout.readline().strip()

    def __enter__(self):
        return self.config

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        os.unlink(self.config)


def show(name, r, ours):
    if not r:
        return
    line = f"  {name:34} {r['wall_ms']:7.0f} ms {r['cpu_ms']:7.0f} ms CPU {r['peak_mb']:7.1f} MB peak"
    if "bytes_a_pod" in r:
        line += f" {r['bytes_a_pod']:4} bytes a pod kept"
    if ours and r is not ours:
        line += f"   {r['cpu_ms'] / ours['cpu_ms']:5.1f} x CPU {r['peak_mb'] / ours['peak_mb']:5.1f} x memory"
    print(line, flush=True)


def judge(r):
    if not r:
        return
    for name, (most, unit) in BUDGETS.items():
        budget("sync of 5,000 pods", r[name], most, unit)


def sync(config, peer, forms):
    ours = measure([PROGRAMS / "syncclient"], config)
    show("flyball, JSON", ours, ours)
    for name, words in forms if peer else []:
        show(f"client-go, {name}", measure([peer, *words], config), ours)
    return ours


JSON_FORMS = [("JSON", []), ("JSON, our projection as transform", ["-transform"])]
ALL_FORMS = JSON_FORMS + [("protobuf", ["-protobuf"]), ("protobuf, transform", ["-protobuf", "-transform"])]


def events(peer, rate, seconds):
    count = rate * seconds
    lines = [("flyball, JSON", [PROGRAMS / "syncclient", count])]
    if peer:
        lines.append(("client-go, JSON", [peer, count]))
    ours = None
    for name, command in lines:
        with Pods(5000, rate, seconds) as config:
            r = measure(command, config, runs=1)
        if not r:
            continue
        ours = ours or r
        depth = f", queue at most {r['most_depth']}" if "most_depth" in r else ""
        print(f"  {name:34} {r['events_a_second']:7.0f} events/s, p50 {r['p50_us']} us, p99 {r['p99_us']} us, "
              f"{r['cpu_us_an_event']:.1f} us CPU an event{depth}"
              + (f"   {r['cpu_us_an_event'] / ours['cpu_us_an_event']:5.1f} x CPU" if r is not ours else ""), flush=True)
    return ours


def real(peer):
    """Inside test/kube/cluster run: $KUBECONFIG is its."""
    config = os.environ["KUBECONFIG"]
    for i in range(10):
        subprocess.run(["kubectl", "create", "namespace", f"team-{i}"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([PROGRAMS / "loadpods", "5000"], check=True)
    print("5,000 pods from a real kube-apiserver over TLS and HTTP/2", flush=True)
    sync(config, peer, ALL_FORMS)


def main():
    peer = build_peer()
    if sys.argv[1:] == ["--real"]:
        real(peer)
        return
    print("5,000 pods (84 MB of JSON) over TLS and HTTP/2", flush=True)
    with Pods(5000) as config:
        judge(sync(config, peer, JSON_FORMS))
    print("100,000 pods (1.7 GB of JSON)", flush=True)
    with Pods(100000) as config:
        ours = measure([PROGRAMS / "syncclient"], config, runs=1)
        show("flyball, JSON", ours, ours)
        if ours:
            budget("sync of 100,000 pods", ours["peak_mb"], 48, "MB peak")
    for rate in (1000, 10000):
        print(f"{rate} events a second, from the server to reconcile()", flush=True)
        ours = events(peer, rate, 3)
        if ours and rate == 10000:
            budget("watch event of 17 KB, socket to reconcile()", ours["cpu_us_an_event"], 30, "us CPU")
            budget("events not taken of 10,000 a second", max(0, rate - ours["events_a_second"]), rate * .01, "events/s")
    if peer:
        subprocess.run([ROOT / "test" / "kube" / "cluster", "run", sys.executable, __file__, "--real"])
    else:
        print("skipped: without Go there is neither client-go nor a real kube-apiserver to compare with")


main()
