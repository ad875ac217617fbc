"""100,000 pods and 10,000 custom resources that change 2,000 times a second, from a made-up server (bench/podserver.c): does the
client's memory stay flat, does its queue stay bounded, and what does it cost? Before that its start from an empty cache, beside
client-go's in protobuf.

    SCALE_SECONDS=600 bench/scale.py        60 unless set
"""
import os

from budget import budget
from peer import PROGRAMS, Pods, build_peer, run_once

PODS, WIDGETS, RATE = 100000, 10000, 2000
SECONDS = int(os.environ.get("SCALE_SECONDS", "60"))
CHANGES = RATE * .55  # the other events change nothing but the version: see podserver.c
PEER_NEEDS_MB = 8000  # client-go's default informer of 100,000 pods, with room


def available_mb():
    with open("/proc/meminfo", encoding="ascii") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("MemAvailable"))


def show_start(name, r):
    print(f"  {name:22} {r['wall_ms']:7.0f} ms {r['cpu_ms']:7.0f} ms CPU {r['peak_mb']:7.1f} MB peak", flush=True)


def start(peer):
    print(f"start: {PODS:,} pods into an empty cache, in protobuf", flush=True)
    with Pods(PODS) as config:
        ours = run_once([PROGRAMS / "syncclient"], config)
        if not ours:
            return
        show_start("flyball", ours)
        budget("peak of the cache of 100,000 pods", ours["peak_mb"], 48, "MB")
        if not peer or available_mb() < PEER_NEEDS_MB:
            print("  skipped: client-go's informer needs Go and 8 GB of memory")
            return
        theirs = run_once([peer, "-protobuf"], config)
        if theirs:
            show_start("client-go, protobuf", theirs)
            budget("CPU of a start with 100,000 pods, of client-go's", ours["cpu_ms"] / theirs["cpu_ms"], 1 / 3, "times")


def churn():
    print(f"churn: {PODS:,} pods and {WIDGETS:,} custom resources, {RATE:,} events/s for {SECONDS} s", flush=True)
    with Pods(PODS, RATE, SECONDS + 60, WIDGETS) as config:
        r = run_once([PROGRAMS / "scaleclient", SECONDS], config)
    if not r:
        return
    print(f"  {r['changes_a_second']:.0f} changes/s of {CHANGES:.0f}, {100 * r['cpu_share']:.1f} % of a core, "
          f"{r['early_mb']:.1f} MB early, {r['late_mb']:.1f} MB late, queue at most {r['most_depth']}, "
          f"to reconcile(): p50 {r['p50_us']:.0f} us, p99 {r['p99_us']:.0f} us", flush=True)
    budget("CPU with 2,000 events a second", 100 * r["cpu_share"], 15, "% of a core")
    budget("memory after the churn, of that at its beginning", r["late_mb"] / r["early_mb"], 1.02, "times")
    budget("queue with 2,000 events a second", r["most_depth"], 1000, "keys")
    budget("changes not taken", max(0, CHANGES - r["changes_a_second"]), CHANGES * .03, "changes/s")


start(build_peer())
churn()
