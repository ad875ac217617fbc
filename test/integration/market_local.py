#!/usr/bin/python3
"""The market on real cgroups of this kernel: loads that starve beside one that hoards.

    market_local.py FLYBALL

Speaks TAP. Skipped where this process may not make cgroups. Everything it makes is removed again.
"""
import os
import pathlib
import signal
import subprocess
import sys
import time

from harness import Tap

FLYBALL = str(pathlib.Path(sys.argv[1]).resolve())
NAME = f"flyball-test-{os.getpid()}"
CAPACITY = 1500     # millicores for all
TARGET = 0.05       # share of throttled periods, as in the default configuration
WINDOW = 3.0        # seconds over which it is measured
# Where others compete for the CPUs, loads get less than they want, now and then: how fast they are served
# cannot be predicted (the same in virtual time: test/unit/market/local_test.c).
QUIET = os.getloadavg()[0] <= os.cpu_count()
BUSY = "" if QUIET else " # SKIP the machine is busy"
DEADLINE = 10  # seconds
LIMITS = {"starved": 200, "bursty": 200, "hoarder": 900}

# So many seconds of CPU at a stretch, then so many of sleep.
LOAD = """
import sys, time
burn, rest = float(sys.argv[1]), float(sys.argv[2])
while True:
    end = time.thread_time() + burn
    while time.thread_time() < end:
        pass
    time.sleep(rest)
"""


class Version1:
    roots = [pathlib.Path("/sys/fs/cgroup/cpu"), pathlib.Path("/sys/fs/cgroup/cpuacct")]

    def set_limit(self, group, milli):
        (self.roots[0] / NAME / group / "cpu.cfs_quota_us").write_text(str(milli * 100))

    def limit(self, group):
        return int((self.roots[0] / NAME / group / "cpu.cfs_quota_us").read_text()) // 100

    def usage(self, group):
        return int((self.roots[1] / NAME / group / "cpuacct.usage").read_text()) / 1e9


class Version2:
    roots = [pathlib.Path("/sys/fs/cgroup")]

    def set_limit(self, group, milli):
        (self.roots[0] / NAME / group / "cpu.max").write_text(f"{milli * 100} 100000")

    def limit(self, group):
        quota, period = (self.roots[0] / NAME / group / "cpu.max").read_text().split()
        return int(quota) * 1000 // int(period)

    def usage(self, group):
        return stat(self.roots[0], group)["usage_usec"] / 1e6


def stat(root, group):
    lines = (root / NAME / group / "cpu.stat").read_text().splitlines()
    return {k: int(v) for k, v in (line.split() for line in lines)}


def make(kernel):
    for root in kernel.roots:
        (root / NAME).mkdir()
        if isinstance(kernel, Version2):
            (root / NAME / "cgroup.subtree_control").write_text("+cpu")
        for group in LIMITS:
            (root / NAME / group).mkdir()
    for group, milli in LIMITS.items():
        kernel.set_limit(group, milli)


def remove(kernel):
    for root in kernel.roots:
        for group in LIMITS:
            for _ in range(100):
                try:
                    (root / NAME / group).rmdir()
                    break
                except FileNotFoundError:
                    break
                except OSError:
                    time.sleep(0.05)  # the last task is still leaving; the kernel does not notify
        if (root / NAME).exists():
            (root / NAME).rmdir()


def load(kernel, group, burn, rest):
    def enter():
        for root in kernel.roots:
            (root / NAME / group / "cgroup.procs").write_text("0")

    return subprocess.Popen([sys.executable, "-c", LOAD, str(burn), str(rest)], preexec_fn=enter)


AGENTS = []


def agent(*more, **env):
    process = subprocess.Popen([FLYBALL, "agent", "--local", "/" + NAME, "--capacity", f"{CAPACITY}m",
                                *more], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                               env=dict(os.environ, **env))
    AGENTS.append(process)
    return process


class Watch:
    """Samples of all groups: when, limits, periods, throttled periods, usage."""

    def __init__(self, kernel):
        self.kernel, self.samples, self.start = kernel, [], time.monotonic()

    def limits(self):
        """All at one moment: read until nothing changed meanwhile."""
        while True:
            first, second = ({group: self.kernel.limit(group) for group in LIMITS} for _ in range(2))
            if first == second:
                return first

    def look(self):
        groups, limits = {}, self.limits()
        for group in LIMITS:
            counters = stat(self.kernel.roots[0], group)
            groups[group] = (limits[group], counters["nr_periods"], counters["nr_throttled"],
                             self.kernel.usage(group))
        self.samples.append((time.monotonic() - self.start, groups))

    def run(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.look()
            time.sleep(0.25)  # the sampling interval of this test
        self.look()

    def throttled(self, group, since, until):
        inside = [groups[group] for at, groups in self.samples if since <= at <= until]
        periods = inside[-1][1] - inside[0][1]
        return (inside[-1][2] - inside[0][2]) / periods if periods else 0.0

    def calm_from(self, group):
        """The first moment after which a whole window is below the target, to the end."""
        last = self.samples[-1][0]
        for at, _ in self.samples:
            if at + WINDOW > last:
                return None
            if all(self.throttled(group, t, t + WINDOW) <= TARGET
                   for t, _ in self.samples if at <= t <= last - WINDOW):
                return at
        return None

    def most_handed_out(self):
        return max(sum(g[0] for g in groups.values()) for _, groups in self.samples)

    def lowest_limit(self, group):
        return min(groups[group][0] for _, groups in self.samples)

    def highest_usage(self, group, samples=None):
        """Millicores in any second."""
        best, samples = 0.0, samples or self.samples
        for i, (at, groups) in enumerate(samples):
            for later, then in samples[i:]:
                if later - at >= 1:
                    best = max(best, (then[group][3] - groups[group][3]) / (later - at) * 1000)
                    break
        return best

    def cut_into_use(self, group):
        """Limits that were lowered to less than had been used until then."""
        limits = [groups[group][0] for _, groups in self.samples]
        return [new for i, (old, new) in enumerate(zip(limits, limits[1:]))
                if new < old and new < self.highest_usage(group, self.samples[:i + 2])]


def starve_and_recover(tap, kernel):
    first = agent()
    watch = Watch(kernel)
    watch.run(DEADLINE + 2 * WINDOW)
    calm = {group: watch.calm_from(group) for group in ("starved", "bursty")}
    shown = ", ".join(f"{g} after {'never' if t is None else f'{t:.1f} s'}" for g, t in calm.items())
    tap.say(all(t is not None and t <= DEADLINE for t in calm.values()) or not QUIET,
             f"throttling of who starved is below the target within {DEADLINE} s" + BUSY, shown)
    tap.say(watch.most_handed_out() <= CAPACITY, "the sum of limits stays within capacity",
             f"at most {watch.most_handed_out()}m of {CAPACITY}m")
    return first


def kill_and_restart(tap, kernel, first):
    before = {group: kernel.limit(group) for group in LIMITS}
    first.send_signal(signal.SIGKILL)
    first.communicate()
    tap.say(before == {group: kernel.limit(group) for group in LIMITS},
             "limits stay when the agent is killed")
    second = agent()
    watch = Watch(kernel)
    watch.run(7)
    low = {group: (watch.lowest_limit(group), watch.highest_usage(group)) for group in ("starved", "bursty")}
    # a load that the first agent could not help in time, on a busy machine, uses more once the second has
    cuts = [limit for group in low for limit in watch.cut_into_use(group)]
    tap.say(not cuts and (all(limit >= used for limit, used in low.values()) or not QUIET),
             "a new agent never sets a limit below what is in use",
             ", ".join(f"{g}: limit {limit}m, used {used:.0f}m" for g, (limit, used) in low.items()))
    tap.say(all(watch.throttled(g, 0, 100) <= TARGET for g in ("starved", "bursty")) or not QUIET,
             "and no group starves again" + BUSY)
    second.send_signal(signal.SIGTERM)
    second.communicate(timeout=20)
    tap.say(second.returncode == 0 and before == {group: kernel.limit(group) for group in LIMITS},
             "an agent that is asked to end puts back the limits it found")


def dry_run(tap, kernel):
    for group, milli in LIMITS.items():
        kernel.set_limit(group, milli)
    third = agent("--dry-run", "--for", "4s", MBCAS_SLOW_LOOP_INTERVAL="2s")
    said, _ = third.communicate(timeout=60)
    rows = {line.split()[0]: line.split() for line in said.splitlines() if line.startswith(tuple(LIMITS))}
    tap.say(LIMITS == {group: kernel.limit(group) for group in LIMITS}, "a dry run writes nothing")
    wanted = rows.get("starved", ["-"])[-1]
    tap.say("dry run" in said and wanted.endswith("m") and int(wanted[:-1]) > LIMITS["starved"],
             "but shows what it would do", f"starved wanted {wanted}")


def main():
    kernel = Version1() if Version1.roots[0].is_dir() else Version2()
    try:
        make(kernel)
    except OSError as why:
        remove(kernel)
        print(f"1..0 # SKIP cgroups cannot be made here: {why}")
        return
    loads = []
    try:
        loads = [load(kernel, "starved", 0.06, 0.1), load(kernel, "bursty", 0.04, 0.2)]
        tap = Tap()
        kill_and_restart(tap, kernel, starve_and_recover(tap, kernel))
        dry_run(tap, kernel)
        tap.end()
    finally:
        for process in loads + AGENTS:
            process.kill()
            process.wait()
        remove(kernel)


main()
