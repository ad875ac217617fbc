"""A controller that watches all pods: what its start and its events cost, beside client-go's.

Three servers. One is made up (bench/podserver.c): 5,000 pods of 17 KB out of nothing, so that the client's cost is all there
is. The others have 5,000 pods: a real kube-apiserver, and the embedded one. The first two send JSON or protobuf, as the client
accepts; the last one JSON. The forms take turns, each number is the best of a few runs, and every ratio is of the
same run of this script, to flyball as it is. What runs besides disturbs wall time, but not CPU time and memory.

client-go is measured as it is by default, and tuned as a careful author would: with protobuf, a transform that keeps only our
fields, and the garbage collector at GOGC=50.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

from budget import budget
from peer import PROGRAMS, ROOT, Pods, build_peer, run_once

RUNS = 3
BUDGETS = {"cpu_ms": (600, "ms CPU"), "peak_mb": (12, "MB peak"), "bytes_a_pod": (300, "bytes per pod")}
FORMS = [("JSON", [], {}), ("JSON, transform", ["-transform"], {}), ("protobuf", ["-protobuf"], {}),
         ("protobuf, transform", ["-protobuf", "-transform"], {}),
         ("protobuf, tuned", ["-protobuf", "-transform"], {"GOGC": "50"})]


def best(results):
    """The least of each number; None if a run failed."""
    if not results or None in results:
        return None
    return {name: min(r[name] for r in results) for name in results[0]}


def show(name, r, ours):
    if not r:
        return
    line = f"  {name:34} {r['wall_ms']:7.0f} ms {r['cpu_ms']:7.0f} ms CPU {r['peak_mb']:7.1f} MB peak"
    if "bytes_a_pod" in r:
        line += f" {r['bytes_a_pod']:4} bytes per pod kept"
    if ours and r is not ours:
        line += f"   {r['cpu_ms'] / ours['cpu_ms']:5.1f} x CPU {r['peak_mb'] / ours['peak_mb']:5.1f} x memory"
    print(line, flush=True)


def judge(r):
    if not r:
        return
    for name, (most, unit) in BUDGETS.items():
        budget("sync of 5,000 pods", r[name], most, unit)


def compare(where, ours, default, tuned):
    """The budgets beside client-go in protobuf."""
    if not ours or not default or not tuned:
        return
    budget(f"{where}: wall time, of client-go's in protobuf", ours["wall_ms"] / default["wall_ms"], 1, "times")
    budget(f"{where}: CPU, of client-go's in protobuf", ours["cpu_ms"] / default["cpu_ms"], 1 / 5, "times")
    budget(f"{where}: peak memory, of client-go's in protobuf", ours["peak_mb"] / default["peak_mb"], 1 / 20, "times")
    budget(f"{where}: peak memory, of client-go's tuned", ours["peak_mb"] / tuned["peak_mb"], 1 / 8, "times")


def sync(where, config, peer):
    lines = [("flyball", [PROGRAMS / "syncclient"], {}), ("flyball, JSON", [PROGRAMS / "syncclient", "-json"], {})]
    lines += [(f"client-go, {name}", [peer, *words], more) for name, words, more in FORMS] if peer else []
    results = {name: [] for name, _, _ in lines}
    for _ in range(RUNS):
        for name, command, more in lines:
            results[name].append(run_once(command, config, **more))
    results = {name: best(runs) for name, runs in results.items()}
    for name, r in results.items():
        show(name, r, results["flyball"])
    compare(where, results["flyball"], results.get("client-go, protobuf"), results.get("client-go, protobuf, tuned"))
    return results["flyball"]


def events(peer, rate, seconds):
    count = rate * seconds
    lines = [("flyball, protobuf", [PROGRAMS / "syncclient", count]),
             ("flyball, JSON", [PROGRAMS / "syncclient", "-json", count])]
    if peer:
        lines += [("client-go, protobuf", [peer, "-protobuf", count]), ("client-go, JSON", [peer, count])]
    ours, all_ours = None, []
    for name, command in lines:
        with Pods(5000, rate, seconds) as config:
            r = run_once(command, config)
        if not r:
            continue
        ours = ours or r
        if name.startswith("flyball"):
            all_ours.append(r)
        depth = f", queue at most {r['most_depth']}" if "most_depth" in r else ""
        print(f"  {name:34} {r['events_a_second']:7.0f} events/s, p50 {r['p50_us']} us, p99 {r['p99_us']} us, "
              f"{r['cpu_us_an_event']:.1f} us CPU an event{depth}"
              + (f"   {r['cpu_us_an_event'] / ours['cpu_us_an_event']:5.1f} x CPU" if r is not ours else ""), flush=True)
    return all_ours


def load_pods(config):
    environment = {**os.environ, "KUBECONFIG": config}
    for i in range(10):
        subprocess.run(["kubectl", "create", "namespace", f"team-{i}"], check=True, stdout=subprocess.DEVNULL, env=environment)
    subprocess.run([PROGRAMS / "loadpods", "5000"], check=True, env=environment)


def real(peer):
    """Inside test/kube/cluster run: $KUBECONFIG is its."""
    config = os.environ["KUBECONFIG"]
    load_pods(config)
    print("5,000 pods from a real kube-apiserver over TLS and HTTP/2", flush=True)
    sync("from kube-apiserver", config, peer)


def embedded(peer):
    flyball = os.environ.get("FLYBALL", ROOT / "build" / "flyball")
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "kubeconfig")
        with open(pathlib.Path(folder, "log"), "w", encoding="utf-8") as log:
            server = subprocess.Popen([flyball, "apiserver", "--in-memory", "--data", folder, "--listen", "127.0.0.1:0"],
                                      stdout=log, stderr=log)
        try:
            while not config.exists():
                if server.poll() is not None:
                    sys.exit("the embedded server ended: " + pathlib.Path(folder, "log").read_text())
                time.sleep(.05)  # another process makes it
            load_pods(str(config))
            print("5,000 pods from the embedded server over TLS and HTTP/2", flush=True)
            sync("from the embedded server", config, peer)
        finally:
            server.terminate()
            server.wait()


def main():
    peer = build_peer()
    if sys.argv[1:] == ["--real"]:
        real(peer)
        return
    print("5,000 pods (84 MB of JSON) over TLS and HTTP/2", flush=True)
    with Pods(5000) as config:
        judge(sync("from a made-up server", config, peer))
    embedded(peer)
    print("100,000 pods (1.7 GB of JSON)", flush=True)
    with Pods(100000) as config:
        ours = run_once([PROGRAMS / "syncclient", "-json"], config)
        show("flyball, JSON", ours, ours)
        if ours:
            budget("sync of 100,000 pods", ours["peak_mb"], 48, "MB peak")
    for rate in (1000, 10000):
        print(f"{rate} events a second, from the server to reconcile()", flush=True)
        ours = events(peer, rate, 3)
        if len(ours) == 2 and rate == 10000:
            for name, r, most in (("protobuf", ours[0], 8), ("JSON", ours[1], 20)):
                budget(f"watch event of 17 KB in {name}, socket to reconcile()", r["cpu_us_an_event"], most, "us CPU")
                budget(f"events in {name} not taken of 10,000 a second", max(0, rate - r["events_a_second"]), rate * .01,
                       "events/s")
    if peer:
        subprocess.run([ROOT / "test" / "kube" / "cluster", "run", sys.executable, __file__, "--real"])
    else:
        print("skipped: without Go there is neither client-go nor a real kube-apiserver to compare with")


main()
