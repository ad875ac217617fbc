#!/usr/bin/python3
"""Counts test cases, and shows what failed and why something was skipped.

  tap.py log FILE          reads the JSON log that `meson test` leaves behind
  tap.py run N [PREFIX...] -- PROGRAM...
                           runs each program behind the words of the prefix, N at a time, and reads its output

Meson counts programs; people want cases. A program that speaks TAP counts one case a line, any
other counts as one case by its exit status (77: skipped). A program that crashes, stops short of
its plan or ends badly without a failing line is itself one failed case. The last line is always
`N passed, N failed` with `, N skipped` when there are any; the exit status is 1 if any failed.
"""
import concurrent.futures
import json
import re
import subprocess
import sys

CASE = re.compile(r"(not )?ok\b\s*(\d+)?\s*-?\s*(.*)")
PLAN = re.compile(r"1\.\.(\d+)(?:\s*#\s*skip\b\s*(.*))?", re.IGNORECASE)
SKIP = re.compile(r"(.*?)\s*#\s*skip\b:?\s*(.*)", re.IGNORECASE)
EXIT_SKIP = 77
TAIL_LINES = 40


class Totals:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def skip(self, name, reason):
        self.skipped += 1
        print(f"skipped: {name}: {reason or 'no reason given'}")

    def fail(self, name, detail):
        self.failed += 1
        print(f"FAILED: {name}: {detail}")

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


def count(name, status, stdout, stderr, totals):
    """Counts one finished program. `status` is its exit status, or a word for how it ended."""
    failed_before = totals.failed
    lines = stdout.splitlines()
    planned, seen = count_tap(name, lines, totals)
    if planned is None and seen == 0:
        if status == 0:
            totals.passed += 1
        elif status == EXIT_SKIP:
            totals.skip(name, lines[-1] if lines else "")
        else:
            totals.fail(name, f"ended with {status}")
    elif planned is None or planned > seen:
        totals.fail(name, f"ended with {status} after {seen} of {planned or '?'} cases")
    elif status != 0 and totals.failed == failed_before:
        totals.fail(name, f"ended with {status} though no case failed")
    if totals.failed > failed_before:
        shown = [x for x in lines if not x.startswith("ok ")] + stderr.splitlines()
        print("\n".join("    " + x for x in shown[-TAIL_LINES:]))


def from_log(path, totals):
    with open(path, encoding="utf-8") as log:
        for line in log:
            test = json.loads(line)
            # A timed-out program has a status with only the signal that ended it.
            ended = "timeout" if test["result"] == "TIMEOUT" else test["returncode"]
            name = test["name"].split(" / ")[-1]
            count(name, ended, test.get("stdout") or "", test.get("stderr") or "", totals)


def from_programs(jobs, prefix, programs, totals):
    def run(program):
        return subprocess.run([*prefix, program], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, encoding="utf-8", errors="replace")

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for program, done in zip(programs, pool.map(run, programs)):
            name = program.rsplit("/", 1)[-1]
            count(name, done.returncode, done.stdout, done.stderr, totals)
            print(f"{name} has ended; so far {totals.line()}", flush=True)


def main(mode, *rest):
    totals = Totals()
    if mode == "log":
        from_log(rest[0], totals)
    else:
        middle = rest.index("--")
        from_programs(int(rest[0]), rest[1:middle], rest[middle + 1:], totals)
    print(totals.line())
    return 1 if totals.failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in ("log", "run"):
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
