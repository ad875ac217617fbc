#!/usr/bin/python3
"""The red team's list as a program: hostile clients, hostile API servers, and machines that run out of everything.

    attack.py FLYBALL [--once] [--tap] [--seed N] [NAME...]

Each attack is made once, then the list is repeated with new seeds until ATTACK_SECONDS (3600 unless set) have passed;
--once stops after the first pass. Everything is on loopback. Prints a table of attack, count and outcome, and ends
with `N passed, N failed[, N skipped]`; with --tap it speaks TAP instead. A name selects attacks that begin with it.
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import target as attacked  # noqa: E402
from target import ATTACKS, Bystander, Scale, Skip, Target, scratch  # noqa: E402
import access  # noqa: E402,F401
import bodies  # noqa: E402,F401
import http1  # noqa: E402,F401
import http2  # noqa: E402,F401
import slow  # noqa: E402,F401
import machine  # noqa: E402,F401
import servers  # noqa: E402,F401


FRESH_AT_A_TIME = 3


class Run:
    """The server under attack, shared until an attack fails; the next attack gets a new one."""

    def __init__(self, flyball):
        self.flyball, self.target, self.folder = flyball, None, None

    def get(self):
        if not self.target:
            self.folder = scratch()
            self.target = Target(self.flyball, self.folder.name).start()
            access.prepare(self.target)
            self.target.measure_base()
        return self.target

    def drop(self):
        if self.target:
            self.target.stop()
            self.folder.cleanup()
        self.target = None

    def end(self):
        """Stops the server and checks its exit code and log; "" when all is well."""
        if not self.target:
            return ""
        code = self.target.stop()
        try:
            self.target.check_log()
        except AssertionError as why:
            return str(why)
        finally:
            self.drop()
        return "" if code == 0 else "the server ended with %s" % code

    def make(self, one, seed, long):
        choose = random.Random(seed)
        try:
            if one.fresh:
                with scratch() as folder:
                    one.count += one.run(self.flyball, folder, choose, long) or 1
            else:
                target = self.get()
                target.process.forget_peak()
                with Bystander(target) as bystander:
                    one.count += one.run(target, choose, long) or 1
                one.peak = max(one.peak, target.process.peak_mib())
                bystander.check()
                target.check()
            one.rounds += 1
        except Skip as why:
            one.skipped = str(why)
        except Exception as why:  # whatever it is, the next attack is still worth a try
            where = traceback.extract_tb(why.__traceback__)[-1]
            one.outcome = "%s (seed %d, %s:%d)" % (str(why) or type(why).__name__, seed,
                                                   pathlib.Path(where.filename).name, where.lineno)
            if not one.fresh:
                self.drop()  # the next one starts with a healthy server


def print_table(attacks):
    width = max(len(one.name) for one in attacks)
    print("%-*s %9s %7s %8s  %s" % (width, "attack", "count", "rounds", "peak MiB", "outcome"))
    for one in attacks:
        outcome = "FAILED: " + one.outcome if one.outcome else "skipped: " + one.skipped if one.skipped else "held"
        peak = "%d" % one.peak if one.peak else "-"
        print("%-*s %9d %7d %8s  %s" % (width, one.name, one.count, one.rounds, peak, outcome.replace("\n", " ")[:400]))


def print_markdown(attacks):
    """The table of docs/security.md."""
    print("| attack | count | rounds | peak MiB | outcome |\n| --- | ---: | ---: | ---: | --- |")
    for one in attacks:
        outcome = "FAILED: " + one.outcome if one.outcome else "skipped: " + one.skipped if one.skipped else "held"
        print("| %s | %s | %d | %s | %s |" % (one.name, format(one.count, ","), one.rounds, "%d" % one.peak if one.peak else "-",
                                            outcome.replace("\n", " ").replace("|", "/")[:400]))


def print_tap(attacks):
    for number, one in enumerate(attacks, 1):
        print("%s %d - %s%s" % ("not ok" if one.outcome else "ok", number, one.name,
                                " # SKIP " + one.skipped if one.skipped else ""))
        if one.outcome:
            print("# " + one.outcome.replace("\n", "\n# "))
    print("1..%d" % len(attacks))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("flyball")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--tap", action="store_true")
    parser.add_argument("--markdown", action="store_true", help="the table as docs/security.md has it")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("names", nargs="*")
    args = parser.parse_intermixed_args()
    seconds = float(os.environ.get("ATTACK_SECONDS", 3600))
    chosen = [a for a in ATTACKS if not args.names or any(a.name.startswith(n) for n in args.names)]
    if not chosen:
        sys.exit("attack.py: no attack begins with that; there are: " + ", ".join(a.name for a in ATTACKS))
    run, begin, rounds = Run(os.path.abspath(args.flyball)), time.monotonic(), 0
    Scale.measure(run.flyball)
    print("# seed %d" % args.seed, flush=True)

    def make(one):
        if one.outcome or one.skipped or (rounds and time.monotonic() - begin >= seconds):
            return  # what failed is known
        at = time.monotonic()
        run.make(one, args.seed + rounds, rounds > 0)
        if not args.tap:
            print("# %6.1f s  %-36s %5.1f s  %s" % (time.monotonic() - begin, one.name, time.monotonic() - at,
                                                   "FAILED" if one.outcome else one.skipped and "skipped" or ""),
                  flush=True)

    while rounds == 0 or (not args.once and time.monotonic() - begin < seconds):
        # Those with processes of their own mostly wait: they run beside the others.
        with concurrent.futures.ThreadPoolExecutor(FRESH_AT_A_TIME) as pool:
            fresh = pool.map(make, [one for one in chosen if one.fresh])
            for one in chosen:
                if not one.fresh:
                    make(one)
            list(fresh)
        rounds += 1
        if all(one.outcome or one.skipped for one in chosen):
            break
    last = attacked.Attack("end of the server", None, False)
    last.outcome, last.count, last.rounds = run.end(), 1, 1
    chosen.append(last)
    (print_tap if args.tap else print_markdown if args.markdown else print_table)(chosen)
    failed = sum(bool(one.outcome) for one in chosen)
    skipped = sum(bool(one.skipped) for one in chosen)
    if not args.tap:
        print("%d passed, %d failed%s" % (len(chosen) - failed - skipped, failed,
                                          ", %d skipped" % skipped if skipped else ""))
    sys.exit(failed > 0)


main()
