#!/usr/bin/python3
"""Counts test cases, and shows what failed and why something was skipped.

  tap.py log FILE [AGAIN]  reads the JSON log that `meson test` leaves behind; AGAIN is the log of a second run of
                           what failed
  tap.py failed FILE       prints the names of the programs that failed in the log
  tap.py run N [PREFIX...] -- PROGRAM...
                           runs each program behind the words of the prefix, N at a time, and reads its output; with
                           RETRY_FAILED=1 in the environment, what failed runs again at the end, alone

Meson counts programs; people want cases. A program that speaks TAP counts one case a line, any
other counts as one case by its exit status (77: skipped). A program that crashes, stops short of
its plan or ends badly without a failing line is itself one failed case. A program that failed beside others
and passed alone counts as it did alone, and a line `FLAKY:` reports it. The last line is always
`N passed, N failed` with `, N skipped` when there are any; the exit status is 1 if any failed.
"""
import concurrent.futures
import json
import os
import re
import subprocess
import sys

CASE = re.compile(r"(not )?ok\b\s*(\d+)?\s*-?\s*(.*)")
PLAN = re.compile(r"1\.\.(\d+)(?:\s*#\s*skip\b\s*(.*))?", re.IGNORECASE)
SKIP = re.compile(r"(.*?)\s*#\s*skip\b:?\s*(.*)", re.IGNORECASE)
EXIT_SKIP = 77
TAIL_LINES = 40


class Totals:
    """Counts of cases, and the lines that report those which failed or were skipped."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.report = []

    def skip(self, name, reason):
        self.skipped += 1
        self.report.append(f"skipped: {name}: {reason or 'no reason given'}")

    def fail(self, name, detail):
        self.failed += 1
        self.report.append(f"FAILED: {name}: {detail}")

    def add(self, other):
        """Adds the counts of one program and prints its report."""
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        for line in other.report:
            print(line)

    def line(self):
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


def count_tap(name, lines, totals):
    """Counts the cases of one TAP output; returns the number planned (None: no plan) and seen."""
    planned, seen = None, 0
    for line in lines:
        plan = PLAN.fullmatch(line.strip())
        if plan:
            planned = int(plan.group(1))
            if planned == 0:
                totals.skip(name, plan.group(2))
            continue
        case = CASE.match(line)
        if not case:
            continue
        seen += 1
        skip = SKIP.fullmatch(case.group(3).strip())
        if case.group(1):
            totals.fail(name, case.group(3).strip() or f"case {seen}")
        elif skip:
            totals.skip(f"{name}: {skip.group(1)}", skip.group(2))
        else:
            totals.passed += 1
    return planned, seen


def count(name, ended, stdout, stderr):
    """Counts one finished program. `ended` is its exit status, or a word for how it ended."""
    totals = Totals()
    lines = stdout.splitlines()
    planned, seen = count_tap(name, lines, totals)
    if planned is None and seen == 0:
        if ended == 0:
            totals.passed += 1
        elif ended == EXIT_SKIP:
            totals.skip(name, lines[-1] if lines else "")
        else:
            totals.fail(name, f"ended with {ended}")
    elif planned is None or planned > seen:
        totals.fail(name, f"ended with {ended} after {seen} of {planned or '?'} cases")
    elif ended != 0 and not totals.failed:
        totals.fail(name, f"ended with {ended} though no case failed")
    if totals.failed:
        shown = [x for x in lines if not x.startswith("ok ")] + stderr.splitlines()
        totals.report += ["    " + x for x in shown[-TAIL_LINES:]]
    return totals


def settle_retry(name, first, second):
    """What counts of a program that failed, and then ran alone: a pass does not hide how it failed before."""
    if second.failed:
        return second
    second.report = [x.replace("FAILED: ", "failed at first: ", 1) for x in first.report] + [
        f"FLAKY: {name} passed when it ran again, alone"] + second.report
    return second


def read_log(path):
    """The counted programs of a log of meson, by name."""
    programs = {}
    with open(path, encoding="utf-8") as log:
        for line in log:
            test = json.loads(line)
            # A timed-out program has a status with only the signal that ended it.
            ended = "timeout" if test["result"] == "TIMEOUT" else test["returncode"]
            name = test["name"].split(" / ")[-1]
            programs[name] = count(name, ended, test.get("stdout") or "", test.get("stderr") or "")
    return programs


def from_log(path, again, totals):
    second = read_log(again) if again else {}
    for name, first in read_log(path).items():
        totals.add(settle_retry(name, first, second[name]) if first.failed and name in second else first)


def from_programs(jobs, prefix, programs, totals):
    def run(program):
        done = subprocess.run([*prefix, program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8", errors="replace")
        return count(program.rsplit("/", 1)[-1], done.returncode, done.stdout, done.stderr)

    retry, later = os.environ.get("RETRY_FAILED") == "1", []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for program, first in zip(programs, pool.map(run, programs)):
            name = program.rsplit("/", 1)[-1]
            if retry and first.failed:
                later.append((name, program, first))
                continue
            totals.add(first)
            print(f"{name} has ended; so far {totals.line()}", flush=True)
    for name, program, first in later:
        totals.add(settle_retry(name, first, run(program)))
        print(f"{name} has ended; so far {totals.line()}", flush=True)


def main(mode, *rest):
    totals = Totals()
    if mode == "failed":
        print("\n".join(name for name, program in read_log(rest[0]).items() if program.failed))
        return 0
    if mode == "log":
        from_log(rest[0], rest[1] if len(rest) > 1 else None, totals)
    else:
        middle = rest.index("--")
        from_programs(int(rest[0]), rest[1:middle], rest[middle + 1:], totals)
    print(totals.line())
    return 1 if totals.failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("log", "failed", "run"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
