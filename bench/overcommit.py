#!/usr/bin/python3
"""Who waits, and how long, when limits exceed a node: real cgroups, real kernel.

Forty groups share one CPU, their weights (requests) add up to 0.9 of it. 30 are nearly idle, 5 use
half of their share, one is a latency probe, 4 are hungry. For each kappa the limits of the hungry
groups are raised until all limits add up to kappa times 0.9 cores. Read from the kernel: usage,
throttled periods, cpu.pressure, and the delay of the probe's wake-ups.

Needs root, cgroup v1 cpu and cpuset, and cgroup v2 for cpu.pressure; uses the last CPU for some
12 s per kappa. Usage: bench/overcommit.py [SECONDS] [KAPPA...]
"""
import os
import signal
import statistics
import sys
import time

BASE = "/sys/fs/cgroup"
NAME = f"flyball-overcommit-{os.getpid()}"
CPU = os.cpu_count() - 1
CAPACITY = 900  # millicores, of one core
KINDS = {  # name: (groups, share, busy milliseconds, of every so many)
    "idle": (30, 10, 1, 250),
    "steady": (5, 40, 2, 100),
    "probe": (1, 40, 0.1, 10),
    "hungry": (4, 90, 1, 0),
}


def write(path, value):
    with open(path, "w", encoding="ascii") as file:
        file.write(str(value))


def read(path):
    with open(path, encoding="ascii") as file:
        return file.read()


def spin(milliseconds):
    end = time.process_time() + milliseconds / 1000
    while time.process_time() < end:
        pass


def work(kind, out):
    """The process of one group: never returns."""
    _, _, busy, every = KINDS[kind]
    if not every:
        while True:
            spin(50)
    delays = []
    if kind == "probe":
        def report(*_):
            write(out, " ".join(f"{d:.6f}" for d in delays))
            os._exit(0)
        signal.signal(signal.SIGTERM, report)
    while True:
        due = time.monotonic() + every / 1000
        time.sleep(every / 1000)
        delays.append(max(0.0, time.monotonic() - due))
        spin(busy)


def make_group(name, share, limit):
    cpu, unified = f"{BASE}/cpu/{NAME}/{name}", f"{BASE}/unified/{NAME}/{name}"
    os.mkdir(cpu)
    os.mkdir(unified)
    write(f"{cpu}/cpu.shares", max(2, share * 1024 // 1000))
    write(f"{cpu}/cpu.cfs_quota_us", limit * 100)
    return cpu, unified


def counters(group):
    stat = dict(line.split() for line in read(f"{group[0]}/cpu.stat").splitlines())
    usage = int(read(f"{BASE}/cpuacct/{NAME}/{os.path.basename(group[0])}/cpuacct.usage"))
    total = int(read(f"{group[1]}/cpu.pressure").split("total=")[1].split()[0])
    return usage / 1e6, int(stat["nr_periods"]), int(stat["nr_throttled"]), total / 1000


def run(kappa, seconds):
    others = sum(n * (share + 1) for kind, (n, share, _, _) in KINDS.items() if kind != "hungry")
    hungry = max(KINDS["hungry"][1] + 1, int(kappa * CAPACITY - others) // KINDS["hungry"][0])
    out = f"/tmp/{NAME}.delays"
    groups, children = [], []
    try:
        for kind, (n, share, _, _) in KINDS.items():
            for i in range(n):
                name = f"{kind}{i}"
                limit = hungry if kind == "hungry" else share + 1
                if kind in ("steady", "probe"):
                    limit = 2 * share  # a burst of 2 ms must fit into a period
                group = make_group(name, share, limit)
                os.mkdir(f"{BASE}/cpuacct/{NAME}/{name}")
                pid = os.fork()
                if pid == 0:
                    time.sleep(0.3)
                    work(kind, out)
                children.append(pid)
                for tree in ("cpu", "cpuacct", "unified"):
                    write(f"{BASE}/{tree}/{NAME}/{name}/cgroup.procs", pid)
                write(f"{BASE}/cpuset/{NAME}/cgroup.procs", pid)
                groups.append((kind, group))
        return measure(kappa, hungry, groups, children, out, seconds)
    finally:
        for pid in children:
            try:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
        time.sleep(0.2)
        for kind, (cpu, unified) in groups:
            os.rmdir(cpu)
            os.rmdir(unified)
            os.rmdir(f"{BASE}/cpuacct/{NAME}/{os.path.basename(cpu)}")


def measure(kappa, hungry, groups, children, out, seconds):
    time.sleep(1)
    first = last = [counters(g) for _, g in groups]
    waits = {kind: [] for kind in KINDS}  # milliseconds waited in each second
    for _ in range(seconds):
        time.sleep(1)
        now = [counters(g) for _, g in groups]
        for (kind, _), a, b in zip(groups, last, now):
            if b[2] == a[2] and b[0] > a[0]:  # its own quota did not stop it
                waits[kind].append(b[3] - a[3])
        last = now
    probe = next(pid for (kind, _), pid in zip(groups, children) if kind == "probe")
    os.kill(probe, signal.SIGTERM)
    os.waitpid(probe, 0)
    delays = sorted(float(x) * 1000 for x in read(out).split())
    os.unlink(out)
    used = {kind: statistics.mean((b[0] - a[0]) / seconds for (k, _), a, b in zip(groups, first, last) if k == kind)
            for kind in KINDS}
    row = f"{kappa:5.1f} {hungry:8d}m {used['hungry']:7.0f}m {used['steady']:7.1f}m {used['idle']:6.1f}m"
    for kind in ("steady", "idle"):
        w = waits[kind]
        row += f" {statistics.mean(w) if w else 0:7.1f} {100 * sum(x > 250 for x in w) / max(len(w), 1):7.2f}%"
    row += f" {delays[len(delays) // 2]:7.2f} {delays[int(len(delays) * 0.99)]:7.2f} {delays[-1]:7.1f}"
    print(row, flush=True)


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 12
    kappas = [float(k) for k in sys.argv[2:]] or [1, 1.5, 2, 2.5, 3]
    trees = ("cpu", "cpuacct", "cpuset", "unified")
    for tree in trees:
        os.mkdir(f"{BASE}/{tree}/{NAME}")
    try:
        write(f"{BASE}/cpu/{NAME}/cpu.shares", 262144)  # what else runs on this CPU hardly counts
        write(f"{BASE}/cpuset/{NAME}/cpuset.cpus", CPU)
        write(f"{BASE}/cpuset/{NAME}/cpuset.mems", 0)
        print("KAPPA  HUNGRY LIMIT, USED  STEADY    IDLE  WAITED ms/s, >250 ms: STEADY       IDLE   PROBE p50,  p99,  max ms")
        for kappa in kappas:
            run(kappa, seconds)
    finally:
        for tree in trees:
            os.rmdir(f"{BASE}/{tree}/{NAME}")


main()
