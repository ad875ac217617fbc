#!/usr/bin/python3
"""Every reference in the documents resolves. Speaks TAP: one case per document.

Checked in README.md, ARCHITECTURE.md, CONTRIBUTING.md, SECURITY.md, CHANGELOG.md and docs/*.md:
  [text](target)    the file exists; the heading that #anchor names exists
  `src/kube/...`    a code span that looks like a path of this repository (it starts with a top-level folder, or
                    names a .c, .h, .py, .sh or .yaml file) exists. In ARCHITECTURE.md a path may leave out src/.
  FILES, a "tree"   in ARCHITECTURE.md, each entry of the drawn tree exists, and each folder of src/ is drawn

And in every comment of the C sources: a file or a function (`name_of()`) that it mentions exists.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
SPAN = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"^[\w.*-]+(/[\w.*-]+)*/?$")
TOP = {"src", "test", "docs", "deploy", "bench", "scripts", "examples", ".ci"}
ENDINGS = (".c", ".h", ".py", ".sh", ".types")


def without_fences(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)


def anchors(path):
    found = set()
    for line in without_fences(path.read_text(encoding="utf-8")).split("\n"):
        m = re.match(r"#+ (.*)", line)
        if m:
            found.add(re.sub(r"[^\w -]", "", m[1].strip().lower()).replace(" ", "-"))
    return found


def exists(name, page):
    """A glob, a folder, a file; beside the page, at the top, or (ARCHITECTURE.md) under src/."""
    bases = [page.parent, ROOT] + ([ROOT / "src"] if page.name == "ARCHITECTURE.md" else [])
    name = name.rstrip("/")
    return any((base / name).exists() or ("*" in name and any(base.glob(name))) for base in bases)


def looks_like_path(span):
    if not PATH.match(span):
        return False
    first = span.split("/")[0]
    return ("/" in span and first in TOP) or span.endswith(ENDINGS)


def faults(page):
    text = page.read_text(encoding="utf-8")
    prose = without_fences(text)
    for m in LINK.finditer(prose):
        target, _, anchor = m[1].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        there = (page.parent / target).resolve() if target else page
        if not there.exists():
            yield f"{m[1]}: there is no such file"
        elif anchor and there.suffix == ".md" and anchor not in anchors(there):
            yield f"{m[1]}: there is no such heading"
    for m in SPAN.finditer(prose):
        if looks_like_path(m[1]) and not exists(m[1], page) and not any(ROOT.rglob(m[1].split("/")[-1])):
            yield f"`{m[1]}`: there is no such file"
        elif looks_like_path(m[1]) and "/" in m[1] and not exists(m[1], page):
            yield f"`{m[1]}`: the file is elsewhere"


def tree_faults(page):
    """The drawn tree: an entry is a name ending in / (several may share a line) or a file, indented by depth."""
    block = re.search(r"^```\n(dev .*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M)
    if not block:
        yield "there is no drawn tree"
        return
    stack, drawn = [], set()
    for line in block[1].split("\n"):
        if not line.strip():
            continue
        depth = (len(line) - len(line.lstrip())) // 2
        if depth > 4:  # a continued remark
            continue
        for name in re.match(r"\s*((?:[\w.-]+/?\s)+)", line + " ")[1].split():
            if not name.endswith("/") and "." not in name and name != "dev":
                break  # the remark begins
            stack[depth:] = [name.rstrip("/")]
            path = "/".join(stack)
            drawn.add(path)
            if not (ROOT / path).exists():
                yield f"the tree draws {path}, which does not exist"
    for folder in sorted(p for p in (ROOT / "src").rglob("*") if p.is_dir() and any(p.glob("*.c"))):
        if str(folder.relative_to(ROOT)) not in drawn:
            yield f"the tree does not draw {folder.relative_to(ROOT)}"


COMMENT = re.compile(r"/\*.*?\*/", re.S)
COMMENT_FILE = re.compile(r"(?<![\w/.<-])((?:\w+/)*\w+\.(?:c|h|py|types))\b")
COMMENT_CALL = re.compile(r"(?<![\w.>-])([a-z]\w*_\w+)\(\)")


def comment_faults():
    """A comment that mentions a file or a function that was renamed or removed misleads its reader."""
    sources = {p: p.read_text(encoding="utf-8") for d in ("src", "test", "bench") for p in sorted((ROOT / d).rglob("*.[ch]"))}
    files = ["/" + str(p.relative_to(ROOT)) for d in ("src", "test", "bench", "docs", "deploy")
             for p in (ROOT / d).rglob("*.*")]
    names = {name for text in sources.values() for name in re.findall(r"\b[a-z_]\w*", COMMENT.sub(" ", text))}
    for path, text in sources.items():
        for comment in COMMENT.finditer(text):
            for m in COMMENT_FILE.finditer(comment[0]):
                if not any(f.endswith("/" + m[1]) for f in files):
                    yield f"{path.relative_to(ROOT)}: there is no file {m[1]}"
            for m in COMMENT_CALL.finditer(comment[0]):
                if m[1] not in names:
                    yield f"{path.relative_to(ROOT)}: there is no function {m[1]}()"


def main():
    pages = sorted(ROOT.glob("*.md")) + sorted((ROOT / "docs").glob("*.md"))
    cases = []
    for page in pages:
        name = page.relative_to(ROOT)
        found = list(faults(page)) + (list(tree_faults(page)) if page.name == "ARCHITECTURE.md" else [])
        cases.append((f"{name}: every reference resolves", [f"{name}: {fault}" for fault in found]))
    cases.append(("comments mention files and functions that exist", list(comment_faults())))
    print(f"1..{len(cases)}")
    for number, (title, found) in enumerate(cases, 1):
        print(f"{'not ok' if found else 'ok'} {number} - {title}")
        for fault in found:
            print(f"# {fault}")
    return 1 if any(found for _, found in cases) else 0


if __name__ == "__main__":
    sys.exit(main())
