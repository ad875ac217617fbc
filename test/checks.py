#!/usr/bin/python3
"""The checks of the sources find what they look for: each case plants one fault in a small tree and runs layers.py or
words.py on it. Speaks TAP. The same trees without the fault pass, so that no case can succeed by accident.
"""
import pathlib
import subprocess
import sys
import tempfile

TEST = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(TEST))
import words  # noqa: E402 (found beside this file)

# A feature with a pure core, a helper that the core calls, and a folder above it.
TREE = {
    "base/log.h": "void log_info(const char *text);\n",
    "market/price_core.h": "int price_now(int demand);\n",
    "market/price_core.c": '#include "price_core.h"\n#include "steps.h"\nint price_now(int demand)\n{\n    return steps_count(demand);\n}\n',
    "market/steps.h": "int steps_count(int n);\n",
    "market/steps.c": '#include "steps.h"\nint steps_count(int n)\n{\n    return n;\n}\n',
    "kube/client.h": "struct client {\n    int n;\n};\nvoid client_send(void);\n",
    "kube/client.c": '#include "client.h"\nvoid client_send(void)\n{\n}\n',
}

CORE, HELPER = "market/price_core.c", "market/steps.c"
# file, what is added to it, what the report must contain
LAYER_FAULTS = [
    (CORE, "long f(void) { return time(0); }", "uses time"),
    (CORE, "long f(void) { return clock_wall_ns(); }", "uses clock_wall_ns"),
    (CORE, "void f(void) { localtime_r(0, 0); }", "uses localtime_r"),
    (CORE, 'void f(void) { log_info("x"); }', "uses log_info"),
    (CORE, "void f(void) { fputs(0, stderr); }", "uses stderr"),
    (CORE, 'void f(void) { getenv("HOME"); }', "uses getenv"),
    (CORE, 'void f(void) { fopen("x", "r"); }', "uses fopen"),
    (CORE, 'void f(void) { file_read("x", 1, 0, 0); }', "uses file_read"),
    (CORE, "void f(void) { tz_get(0, 0, 0); }", "uses tz_get"),
    (CORE, "long f(void) { return random_seed(); }", "uses random_seed"),
    (CORE, "#include <unistd.h>", "includes <unistd.h>"),
    (CORE, '#include "../kube/client.h"', "reaches kube/client.h"),
    (HELPER, 'void f(void) { getenv("HOME"); }', "uses getenv"),
    ("kube/client.c", '#include "../market/steps.h"', "kube may not see market"),
    ("base/log.h", '#include "../kube/client.h"', "base may not see kube"),
    ("kube/client.c", "#include <sqlite3.h>", "belongs to apiserver/store alone"),
    ("toys/toy.c", "int toy;", "no place in the order of folders"),
]
NAME_FAULTS = [
    ("market/steps.h", "int finish_all(void);", "finish_all() begins with no word"),
    ("market/client.h", "void client_bid(void);", "two folders export names that begin with client_"),
    ("market/steps.h", "struct client {", "also defines client"),
]


def plant(folder, file=None, text=""):
    src = pathlib.Path(folder) / "src"
    for name, content in {**TREE, **({file: TREE.get(file, "") + text + "\n"} if file else {})}.items():
        path = src / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return src


def layers(src):
    run = subprocess.run([sys.executable, TEST / "layers.py", src], capture_output=True, text=True, check=False)
    return run.returncode != 0, run.stdout


def names(src):
    found = list(words.name_faults(src))
    return bool(found), "\n".join(found)


def main():
    cases = [(layers, None, "", ""), (names, None, "", "")]
    cases += [(layers, *case) for case in LAYER_FAULTS] + [(names, *case) for case in NAME_FAULTS]
    print(f"1..{len(cases)}")
    failed = 0
    for number, (check, file, text, want) in enumerate(cases, 1):
        with tempfile.TemporaryDirectory() as folder:
            refused, report = check(plant(folder, file, text))
        good = refused and want in report if file else not refused
        failed += not good
        print(f"{'ok' if good else 'not ok'} {number} - {check.__name__}: {file + ' with ' + text if file else 'a clean tree'}")
        if not good:
            print("# " + report.strip().replace("\n", "\n# "))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
