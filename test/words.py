#!/usr/bin/python3
"""Plain words: looks for phrases that readers of Kubernetes documentation would stumble over.

    words.py [--list] [PATH...]

Reads every string literal and comment of the C sources, the documents, the man page, the manifests and the
templates of the Helm chart; of tests, benchmarks and scripts the comments and messages, but not the data. Speaks
TAP: one case per file that has text. A case fails with one line per phrase found: file, line, the phrase, and what
to write instead. Texts that clients compare are exempt: a C string is a quotation if its line
or the line above carries `quoted:` and the origin, in Markdown a quotation is a code span or fence.

Names of functions are checked too: no bare verbs as static functions, no clauses or adjectives as names. An exported
function begins with a word of its file or folder, and no two folders export the same prefix.

And that there are words at all: a source of more than 150 lines opens with a comment of 4 lines or more, no C file
has more than 600 lines, and in each folder of src at least 8 % of the lines of its sources are comments.
"""
import io
import pathlib
import re
import subprocess
import sys
import tokenize

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
STATES = (r"(as|awaited|awkward|between|committed|damaged|fixed|found|governed|here|kept|known|numberlike|plain|printable|real|since|"
          r"stays|tagged|trusted|unsayable|usable|uses|without|wrong)")
NAMES = {
    rf"^static [\w *]*?\b{BARE}\(": "a verb needs its object and the file's prefix",
    rf"^static [\w *]*?\b{STATES}\(": "an adjective or adverb names nothing: verb and object, or is_, has_, can_",
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


MESSAGE = re.compile(r"\b(f?printf|tap_note|err_set|err_wrap|log_\w+|fputs|puts)\s*\([^;{}]*$")


def test_texts(text):
    """Yields (line, text) of the comments of a test in C, and of the literals that it prints: the others are data."""
    lines = text.split("\n")
    for m in TOKEN.finditer(text):
        number = line_of(text, m.start())
        piece = m[0]
        before = text[max(0, m.start() - 400):m.start()]
        if piece.startswith("'") or (piece.startswith('"') and not MESSAGE.search(before)):
            continue
        for offset, part in enumerate(piece.split("\n")):
            if not is_quoted(lines, number + offset):
                yield number + offset, part


def python_texts(text):
    """Yields (line, text) of comments and of strings that are statements: documentation."""
    previous = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        is_text = token.type == tokenize.COMMENT or (
            token.type == tokenize.STRING and previous in (None, tokenize.NEWLINE, tokenize.INDENT, tokenize.NL))
        if is_text and "quoted:" not in token.line:
            for offset, part in enumerate(token.string.split("\n")):
                yield token.start[0] + offset, re.sub(r"`[^`]*`", "``", part)
        if token.type != tokenize.COMMENT:
            previous = token.type


def shell_texts(text):
    """Yields (line, text) of comments and of lines that print something."""
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"\s*(#|echo |printf |die )", line) or re.search(r"\s# ", line):
            yield number, re.sub(r"`[^`]*`|\$\w+|\$\{[^}]*\}", "``", line)


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
    product = path.relative_to(ROOT).parts[0] == "src"
    c_reader = c_texts if product else test_texts
    texts = {".c": c_reader, ".h": c_reader, ".yaml": yaml_texts, ".types": yaml_texts, ".tpl": yaml_texts,
             ".py": python_texts, ".sh": shell_texts}.get(path.suffix, prose_texts)
    if path.name == "dev":
        texts = shell_texts
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


SHARE_LEAST, HEAD_FROM, HEAD_LEAST, FILE_MOST = 0.08, 150, 4, 600
# A header of tests with more static functions than this is a world of its own, to be compiled once. TAP is a header, and
# the tables of random objects are compiled into two programs only.
HEADER_FUNCTIONS_MOST, HEADER_EXEMPT = 4, ("tap.h", "protobuf_write.h", "protobuf_random.h")


def comment_lines(text):
    """The lines that begin with or inside a comment, as (all of them, those of the comment that opens the file)."""
    count, head, inside, at_head = 0, 0, False, True
    for line in text.split("\n"):
        if inside or line.lstrip().startswith("/*"):
            count += 1
            head += at_head
            inside = "*/" not in line
        at_head = at_head and inside
    return count, head


def shape_faults(path):
    """What is wrong with the length of a C file, or with the paragraph that it opens with."""
    if path.suffix not in (".c", ".h"):
        return
    text = path.read_text(encoding="utf-8")
    n = text.count("\n")
    if n > FILE_MOST:
        yield n, f"{n} lines", f"split it; a file has at most {FILE_MOST}"
    functions = len(re.findall(r"^static [^=;]*?\)\n\{", text, re.M))
    is_test = path.relative_to(ROOT).parts[0] in ("test", "bench")
    if is_test and path.suffix == ".h" and functions > HEADER_FUNCTIONS_MOST and path.name not in HEADER_EXEMPT:
        yield 1, f"{functions} static functions in a header", "compile them: test/support/meson.build"
    is_source = path.suffix == ".c" and path.relative_to(ROOT).parts[0] == "src"
    if is_source and n > HEAD_FROM and comment_lines(text)[1] < HEAD_LEAST:
        yield 1, "no opening paragraph", "explain what the file does and what must hold"


def folder_faults(folder):
    """Yields one sentence if the sources of a folder of src have too few comments."""
    texts = [p.read_text(encoding="utf-8") for p in sorted(folder.rglob("*.c"))]
    lines = sum(t.count("\n") for t in texts)
    comments = sum(comment_lines(t)[0] for t in texts)
    if comments < lines * SHARE_LEAST:
        yield f"{comments} of {lines} lines are comments; {lines * SHARE_LEAST:.0f} are needed"


# Folders whose exported names also begin with these words: each is the subject of several of its files.
FOLDER_WORDS = {
    "apiserver/http": ["server", "hook"], "apiserver/kinds": ["kind"], "base": ["file"], "cmd": ["command"],
    "json": ["projection"], "kube": ["reconcile", "reconciled"], "net": ["http"], "runtimeconfig": ["aim"],
    "saturation": ["sat"], "testbed": ["fleet", "plant"],
}
PROTOTYPE = re.compile(r"^(?!static|typedef|extern|enum|#|\s)[A-Za-z_][\w *]*?[ *](\w+)\(", re.M)
DEFINITION = re.compile(r"^(?!static|typedef|extern|enum|#|\s)[A-Za-z_][\w *]*?[ *](\w+)\([^;{]*\)\n\{", re.M)


def exported_names(src):
    """Yields (header, file that defines it or None, name) of every function that a header of src declares."""
    defined = {}
    for path in src.rglob("*.c"):
        for m in DEFINITION.finditer(TOKEN.sub(" ", path.read_text(encoding="utf-8"))):
            defined[m[1]] = path
    for path in sorted(src.rglob("*.h")):
        for m in PROTOTYPE.finditer(TOKEN.sub(" ", path.read_text(encoding="utf-8"))):
            yield path, defined.get(m[1]), m[1]


def prefix_of(name, stems):
    """The longest of the stems that the name begins with, otherwise its first word."""
    fitting = [s for s in stems if name == s or name.startswith(s + "_")]
    return max(fitting, key=len) if fitting else name.split("_")[0]


def naming_folder(header):
    """The folder whose words a header may use: the rooms of a feature share those of the feature."""
    parts = header.parts[:-1]
    return "/".join(parts if parts[0] == "apiserver" else parts[:1])


def name_faults(src):
    """Yields one sentence per exported function without the prefix of its file, and per prefix of two folders or
    struct of two headers."""
    owners, tags = {}, {}
    for path in sorted(src.rglob("*.h")):
        for m in re.finditer(r"^(?:struct|enum|union) (\w+) \{", path.read_text(encoding="utf-8"), re.M):
            if m[1] in tags:
                yield f"{path.relative_to(src.parent)}: {tags[m[1]].relative_to(src.parent)} also defines {m[1]}"
            tags[m[1]] = path
    for header, source, name in exported_names(src):
        folder = naming_folder(header.relative_to(src))
        stems = [p.stem for p in (header, source) if p]
        words = [s.split("_")[0].rstrip("s") for s in stems] + [header.parent.name.rstrip("s")]
        if not name.startswith(tuple(words)) and name.split("_")[0] not in FOLDER_WORDS.get(folder, []):
            yield f"{header.relative_to(src.parent)}: {name}() begins with no word of its file or folder"
        owners.setdefault(prefix_of(name, stems), {}).setdefault(folder, name)
    for prefix, folders in sorted(owners.items()):
        if len(folders) > 1:
            names = ", ".join(f"{name}() of {folder}" for folder, name in sorted(folders.items()))
            yield f"two folders export names that begin with {prefix}_: {names}"


def tracked():
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", "src", "docs", "deploy", "scripts", "test", "bench", "dev", "*.md"],
        cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    product = (".c", ".h", ".md", ".1", ".yaml", ".types", ".tpl", "NOTES.txt", ".sh", ".py", "dev")
    for name in names:
        is_test = name.startswith(("test/", "bench/"))
        ends = (".c", ".h", ".py", ".sh", ".md") if is_test else product
        if name.endswith(ends) and name != "test/words.py" and (ROOT / name).is_file():
            yield ROOT / name


def main():
    arguments = [a for a in sys.argv[1:] if a != "--list"]
    paths = [pathlib.Path(a).resolve() for a in arguments]
    files = sorted(f for f in tracked() if not paths or any(f == p or p in f.parents for p in paths))
    folders = sorted(p for p in (ROOT / "src").iterdir() if p.is_dir()) if not paths else []
    print(f"1..{len(files) + len(folders) + (not paths)}")
    failed = 0
    for number, path in enumerate(files, 1):
        found = list(faults(path)) + list(shape_faults(path))
        name = path.relative_to(ROOT)
        print(f"{'not ok' if found else 'ok'} {number} - {name} is written in plain words")
        for line, phrase, advice in found:
            print(f"# {name}:{line}: \"{phrase}\": {advice}")
        failed += bool(found)
    for number, folder in enumerate(folders, len(files) + 1):
        found = list(folder_faults(folder))
        print(f"{'not ok' if found else 'ok'} {number} - src/{folder.name} is explained")
        for sentence in found:
            print(f"# src/{folder.name}: {sentence}")
        failed += bool(found)
    if not paths:
        found = list(name_faults(ROOT / "src"))
        print(f"{'not ok' if found else 'ok'} {len(files) + len(folders) + 1} - exported functions have their own prefix")
        for sentence in found:
            print(f"# {sentence}")
        failed += bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
