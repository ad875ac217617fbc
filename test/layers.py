#!/usr/bin/python3
"""Who may include whom: reads every #include under src/ and speaks TAP, one case a folder.

A folder sees itself and the folders listed for it, nothing else. Two kinds of file see less: a
`*_core` or `*_spec` (the pure part of a feature) reaches only base, json and its own folder,
however many headers are in between. A `*_core.c` also calls nothing impure: no clock, log, file, environment,
time zone database or random seed; what it needs of these is passed in. Every external library has exactly one
folder that may include it, so that it can be replaced there.
"""
import pathlib
import re
import sys

BELOW_KUBE = ["base", "json", "net"]
BELOW_FEATURE = BELOW_KUBE + ["kube", "prom"]
FEATURES = ["saturation", "schedule", "market", "runtimeconfig"]
BELOW_CMD = BELOW_FEATURE + FEATURES + ["testbed", "web", "apiserver"]

MAY_SEE = {
    "base": [],
    "json": ["base"],
    "net": ["base", "json"],
    "kube": BELOW_KUBE,
    "prom": BELOW_KUBE,
    "apiserver/schema": BELOW_KUBE,
    "apiserver/kinds": BELOW_KUBE + ["apiserver/schema"],
    "apiserver/store": BELOW_KUBE,
    "apiserver/http": BELOW_KUBE + ["apiserver/schema", "apiserver/kinds", "apiserver/store"],
    "apiserver/controllers": BELOW_KUBE + ["apiserver/schema", "apiserver/kinds", "apiserver/store", "apiserver/http"],
    "apiserver": BELOW_KUBE + ["apiserver/store", "apiserver/http", "apiserver/controllers"],
    **{feature: BELOW_FEATURE for feature in FEATURES},
    "testbed": BELOW_FEATURE + FEATURES,
    "web": BELOW_FEATURE + FEATURES,
    "cmd": BELOW_CMD,
    ".": BELOW_CMD + ["cmd"],  # src/main.c
}

EXTERNAL = {
    "xxhash.h": "base",
    "yyjson.h": "json",
    "yaml.h": "json",
    "uv.h": "net",
    "openssl/": "net",
    "nghttp2/": "net",
    "llhttp.h": "net",
    "zlib.h": "net",
    "sqlite3.h": "apiserver/store",
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
PURE = re.compile(r".*_(core|spec)\.[ch]")
IMPURE_CALL = re.compile(
    r"\b(clock_(?:wall|mono)_ns|time|gettimeofday|clock_gettime|getenv|fopen|open|openat|read|write|stat|printf|fprintf|"
    r"log_\w+|file_\w+|tz_get|tz_refresh|random_seed|loop_\w+|rand|random|srand)\s*\(")
TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/', re.S)


def folder_of(path, src):
    parts = path.relative_to(src).parts
    return "/".join(parts[:-1]) if len(parts) > 1 else "."


def includes(path):
    return INCLUDE.findall(path.read_text(encoding="utf-8"))


def resolve(path, name, src):
    """The file a quoted include means, beside the including file or under src/; None: generated."""
    for base in (path.parent, src):
        found = (base / name).resolve()
        if found.is_file():
            return found
    return None


def reach(path, src, seen):
    """All files that `path` includes, directly or through headers."""
    for kind, name in includes(path):
        target = resolve(path, name, src) if kind == '"' else None
        if target and target not in seen:
            seen.add(target)
            reach(target, src, seen)
    return seen


def faults_of(path, src):
    here = folder_of(path, src)
    shown = path.relative_to(src.parent)
    for kind, name in includes(path):
        if kind == '"':
            target = resolve(path, name, src)
            there = folder_of(target, src) if target else here
            if there != here and there not in MAY_SEE.get(here, []):
                yield f"{shown} includes {name}, but {here} may not see {there}"
        else:
            for prefix, owner in EXTERNAL.items():
                if name.startswith(prefix) and here != owner:
                    yield f"{shown} includes <{name}>, which belongs to {owner} alone"
    if path.name.endswith(("_core.c", "_spec.c")):
        for m in IMPURE_CALL.finditer(TEXT.sub(" ", path.read_text(encoding="utf-8"))):
            yield f"{shown} is pure but calls {m[1]}()"
    if PURE.fullmatch(path.name):
        for target in sorted(reach(path, src, set())):
            there = folder_of(target, src)
            if there not in ("base", "json", here):
                yield f"{shown} is pure but reaches {target.relative_to(src)}"


def main():
    src = pathlib.Path(__file__).resolve().parent.parent / "src"
    if len(sys.argv) > 1:
        src = pathlib.Path(sys.argv[1]).resolve()
    files = sorted(p for p in src.rglob("*.[ch]"))
    folders = sorted({folder_of(p, src) for p in files})
    print(f"1..{len(folders)}")
    failed = False
    for number, folder in enumerate(folders, 1):
        faults = [f for p in files if folder_of(p, src) == folder for f in faults_of(p, src)]
        if folder not in MAY_SEE:
            faults.append(f"src/{folder} has no place in the order of folders")
        print(f"{'not ok' if faults else 'ok'} {number} - src/{folder} includes only what it may")
        for fault in faults:
            print(f"# {fault}")
        failed = failed or bool(faults)
    return 1 if failed else 0


sys.exit(main())
