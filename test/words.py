#!/usr/bin/python3
"""Plain words: looks for phrases that readers of Kubernetes documentation would stumble over.

    words.py [--list] [PATH...]

Reads every string literal and comment of the C sources, the documents, the man page and the manifests,
and speaks TAP: one case per file that has text. A case fails with one line per phrase found: file, line, the
phrase, and what to write instead. Texts that clients compare are exempt: a C string is a quotation if its line
or the line above carries `quoted:` and the origin, in Markdown a quotation is a code span or fence.

Names of functions are checked too: no bare verbs as static functions, no clauses or adjectives as names.
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# phrase (a regular expression, matched as whole words, case ignored): what to write instead
PHRASES = {
    r"(is|are|was|were|be|been|being|gets?) told": "is notified; reports; logs",
    r"told|tells?( of| about)?": "report, notify, log, state",
    r"says?|said": "reports, states; or drop it",
    r"(lay|lays|laid|laying) up": "preallocate",
    r"lulls?": "idle time",
    r"patience": "timeout, limit",
    r"in vain": "failed; without effect",
    r"(for |to |by |with |of )?whom": "name the subject: a client, a user, a caller",
    r"who(ever|soever)": "name the subject: the caller, the client",
    r"dear(er|est)?": "expensive",
    r"be it": "rewrite: whether ... or ...",
    r"judge[sd]?|judging": "check, decide, evaluate",
    r"meets?": "attain, satisfy; conflict, find",
    r"nobody|somebody": "name the subject; no client, another process",
    r"anew": "again",
    r"would else|else would": "otherwise would",
    r"for so long": "within this time",
    r"stands? (in|at|on|for|there|beside|behind|above|below)": "is in, is at, means",
    r"(is|are) awaited": "waits for; retrying",
    r"strangers?": "a client; untrusted input",
    r"quarrels?": "conflict",
    r"newborn": "new",
    r"dying": "terminating; being deleted",
    r"nonsense": "invalid",
    r"hardly meant": "probably a mistake",
    r"called wrongly": "usage error",
    r"last words": "last lines of output",
    r"without a word": "silently",
    r"with a word": "with a message",
    r"of (its|their|our|your|his) own accord": "by itself",
    r"(much|as) as it likes": "without limit",
    r"one after another": "in sequence",
    r"(line|row|file|entry|page|cell|table|bytes?|bits?|KB|MB|KiB|MiB|ns|us|queries|query|"
    r"requests?|events?|thread|arena|block|record|object) an? "
    r"(?!second|minute|hour|day|week|month|year|cycle|time|few|lot|little|bit|moment|single|new|long|short|good|"
    r"field|number|string|list|bool|map|client|server|user|caller|test)(\w+)": "per",
}

# names of functions
BARE = r"(finish|start|settle|tell|look|drop|told|heard|remember|forget|done_with|go_on|carry_on|come|went)"
NAMES = {
    rf"^static [\w *]*?\b{BARE}\(": "a verb needs its object and the file's prefix",
    r"\b\w*(_told|_tell|_tells|_heard|in_vain|lull|patience|lay_up|newborn)\w*\b": "use the field's word",
}

TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|/\*.*?\*/|//[^\n]*|\'(?:\\.|[^\'\\\n])*\'', re.S)
PATTERNS = [(re.compile(r"(?<![\w-])(?:" + p + r")(?![\w-])", re.I), advice) for p, advice in PHRASES.items()]
NAME_PATTERNS = [(re.compile(p, re.M), advice) for p, advice in NAMES.items()]


def line_of(text, at):
    return text.count("\n", 0, at) + 1


def is_quoted(lines, number):
    return any("quoted:" in lines[n - 1] for n in (number, number - 1) if 0 < n <= len(lines))


def c_texts(text):
    """Yields (line, text) of comments and of string literals; neighbouring literals are one text."""
    lines = text.split("\n")
    for m in TOKEN.finditer(text):
        number = line_of(text, m.start())
        piece = m[0]
        if piece.startswith("'"):
            continue
        if piece.startswith('"'):
            if lines[number - 1].lstrip().startswith("#include") or is_quoted(lines, number):
                continue
            piece = piece[1:-1].replace("\\n", " ").replace('\\"', '"')
        for offset, part in enumerate(piece.split("\n")):
            yield number + offset, part


def prose_texts(text):
    """Yields (line, text) without fenced code and code spans."""
    fenced = False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, re.sub(r"`[^`]*`", "``", line)


def yaml_texts(text):
    """Yields (line, text) of comments and descriptions."""
    for number, line in enumerate(text.split("\n"), 1):
        if "quoted:" not in line:
            yield number, line


def faults(path):
    text = path.read_text(encoding="utf-8")
    texts = {".c": c_texts, ".h": c_texts, ".yaml": yaml_texts, ".types": yaml_texts}.get(path.suffix, prose_texts)
    for number, part in texts(text):
        for pattern, advice in PATTERNS:
            for m in pattern.finditer(part):
                yield number, m[0].strip(), advice
    if path.suffix in (".c", ".h"):
        lines = text.split("\n")
        bare = TOKEN.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)
        for pattern, advice in NAME_PATTERNS:
            for m in pattern.finditer(bare):
                number = line_of(bare, m.start())
                if not is_quoted(lines, number):
                    yield number, m[0].strip(), advice


def tracked():
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", "src", "docs", "deploy", "scripts", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    for name in names:
        if name.endswith((".c", ".h", ".md", ".1", ".yaml", ".types")) and (ROOT / name).is_file():
            yield ROOT / name


def main():
    arguments = [a for a in sys.argv[1:] if a != "--list"]
    paths = [pathlib.Path(a).resolve() for a in arguments]
    files = sorted(f for f in tracked() if not paths or any(f == p or p in f.parents for p in paths))
    print(f"1..{len(files)}")
    failed = 0
    for number, path in enumerate(files, 1):
        found = list(faults(path))
        name = path.relative_to(ROOT)
        print(f"{'not ok' if found else 'ok'} {number} - {name} is written in plain words")
        for line, phrase, advice in found:
            print(f"# {name}:{line}: \"{phrase}\": {advice}")
        failed += bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
