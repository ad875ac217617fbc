#!/usr/bin/python3
"""Which folder may include which: reads every #include under src/ and speaks TAP, one case per folder.

A folder sees itself and the folders listed for it, nothing else. Two kinds of file see less: a
`*_core` or `*_spec` (the pure part of a feature) reaches only base, json and the folders of its own feature,
however many headers are in between. A `*_core.c` also calls nothing impure, and neither does a file of its folder
whose header it reaches: no clock, log, file, environment, time zone database, random seed, process or thread; what it
needs of these is passed in. Every external library has exactly one
folder that may include it, so that it can be replaced there.
"""
import pathlib
import re
import sys

BELOW_KUBE = ["base", "json", "net"]
BELOW_FEATURE = BELOW_KUBE + ["kube", "prom", "registry"]
FEATURES = ["saturation", "schedule", "market", "runtimeconfig"]
# The rooms of saturation, each with the other rooms that it sees.
SATURATION = {
    "saturation/objects": [],
    "saturation/slo": [],
    "saturation/wva": ["saturation/objects"],
    "saturation/limits": ["saturation/objects", "saturation/wva"],
    "saturation/zero": ["saturation/objects"],
    "saturation/config": ["saturation/" + room for room in ("objects", "slo", "wva", "limits", "zero")],
    "saturation/collect": ["saturation/objects", "saturation/slo"],
}
FEATURES_AND_ROOMS = FEATURES + list(SATURATION)
BELOW_CMD = BELOW_FEATURE + FEATURES_AND_ROOMS + ["testbed", "doors", "web", "apiserver"]

MAY_SEE = {
    "base": [],
    "json": ["base"],
    "net": ["base", "json"],
    "kube": BELOW_KUBE,
    "prom": BELOW_KUBE,
    "registry": BELOW_KUBE,
    "apiserver/schema": BELOW_KUBE,
    "apiserver/schema/cel": BELOW_KUBE + ["apiserver/schema"],
    "apiserver/kinds": BELOW_KUBE + ["apiserver/schema", "apiserver/schema/cel"],
    "apiserver/store": BELOW_KUBE,
    "apiserver/http": BELOW_KUBE + ["apiserver/schema", "apiserver/schema/cel", "apiserver/kinds", "apiserver/store"],
    "apiserver/controllers": BELOW_KUBE + ["apiserver/schema", "apiserver/kinds", "apiserver/store", "apiserver/http"],
    "apiserver": BELOW_KUBE + ["apiserver/store", "apiserver/http", "apiserver/controllers"],
    **{feature: BELOW_FEATURE for feature in FEATURES},
    **{room: BELOW_FEATURE + others for room, others in SATURATION.items()},
    "saturation": BELOW_FEATURE + ["doors"] + list(SATURATION),
    "testbed": BELOW_FEATURE + FEATURES_AND_ROOMS,
    "doors": BELOW_FEATURE,
    "web": BELOW_FEATURE + FEATURES_AND_ROOMS,
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
    r"\b(clock_(?:wall|mono|cpu)_ns|time|gettimeofday|clock_gettime|localtime(?:_r)?|gmtime(?:_r)?|mktime|strftime|"
    r"getenv|secure_getenv|setenv|fopen|freopen|open|openat|read|write|close|stat|fstat|access|unlink|rename|mkdir|opendir|"
    r"v?f?printf|puts|fputs|perror|syslog|log_(?!2\b|10\b)\w+|file_\w+|tz_get|random_seed|getrandom|rand|random|srand|"
    r"loop_\w+|uv_\w+|pthread_\w+|fork|execv\w*|system|popen|getpid|gethostname|sleep|usleep|nanosleep|setlocale)\s*\(")
IMPURE_NAME = re.compile(r"\b(stdin|stdout|stderr|environ)\b")
IMPURE_HEADER = re.compile(r"(time|fcntl|unistd|dirent|pthread|signal|sys/\w+|netinet/\w+|arpa/\w+)\.h")
TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/', re.S)


def folder_of(path, src):
    parts = path.relative_to(src).parts
    return "/".join(parts[:-1]) if len(parts) > 1 else "."


def includes(path):
    return INCLUDE.findall(path.read_text(encoding="utf-8"))


def resolve(path, name, src):
    """The file of a quoted include, beside the including file or under src/; None: generated."""
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


def impurities(path, src, user):
    """What a pure file, or one that the pure file `user` calls, must not do."""
    text = TEXT.sub(" ", path.read_text(encoding="utf-8"))
    who = user if path.name == user.name else f"{path.relative_to(src.parent)}, which {user} includes,"
    for m in list(IMPURE_CALL.finditer(text)) + list(IMPURE_NAME.finditer(text)):
        yield f"{who} is pure but uses {m[1]}"
    for kind, name in includes(path):
        if kind == "<" and IMPURE_HEADER.fullmatch(name):
            yield f"{who} is pure but includes <{name}>"


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
        yield from impurities(path, src, shown)
        for target in sorted(reach(path, src, set())):
            source = target.with_suffix(".c")
            if folder_of(target, src).split("/")[0] == here.split("/")[0] and not PURE.fullmatch(target.name) and source.is_file():
                yield from impurities(source, src, shown)
    if PURE.fullmatch(path.name):
        for target in sorted(reach(path, src, set())):
            there = folder_of(target, src)
            if there not in ("base", "json") and there.split("/")[0] != here.split("/")[0]:
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
