"""Comparing a recorded answer with a live one.

Recorded values that change from run to run are written as tokens. A numbered token (<uid:1>, <rv:2>,
<gen:1>) is one value through a whole scenario: the same number must have the same value again, and
another number another value. Tokens without a number (<time>, <rv>, <age>, ...) only have a shape.

The recorder replaced cells that are an age as a whole. An age inside of a text, as in "5 (6y321d ago)", it
recorded as it was on that day; such a text is compared as if it had the token.
"""
import re

NOTHING = "<absent>"  # what a pointer to nothing yields, in recordings too

_DATE = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d"
SHAPE = {
    "uid": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "rv": r"[1-9][0-9]*",
    "gen": r"[a-z0-9]{5}",
    "time": _DATE + "Z",
    "microtime": _DATE + r"\.[0-9]{6}Z",
    "age": r"(?:[0-9]+[smhdy])+",
    "continue": r"[^ ]+",
}
_AGO = re.compile(r"\(" + SHAPE["age"] + r" ago\)")
_TOKEN = re.compile("<(" + "|".join(SHAPE) + ")(?::([0-9]+))?>")


def fill(value, names):
    """Puts ${name} into texts, also inside lists and objects. A text that is one name alone takes on the
    type of its value."""
    if isinstance(value, list):
        return [fill(v, names) for v in value]
    if isinstance(value, dict):
        return {fill(k, names): fill(v, names) for k, v in value.items()}
    if not isinstance(value, str) or "${" not in value:
        return value
    alone = re.fullmatch(r"\$\{(\w+)\}", value)
    if alone:
        return names.get(alone[1], value)
    return re.sub(r"\$\{(\w+)\}", lambda m: str(names.get(m[1], m[0])), value)


def point(document, pointer):
    """A JSON pointer with three more steps: * for every element, # for the length, [a.b=c] for the first
    element whose a.b is c."""
    steps = [s.replace("~1", "/").replace("~0", "~") for s in pointer.split("/")[1:]]
    return _walk(document, steps)


def _walk(value, steps):
    for i, step in enumerate(steps):
        if step == "#" and isinstance(value, (list, dict)):
            value = len(value)
        elif isinstance(value, dict) and step in value:
            value = value[step]
        elif not isinstance(value, list):
            return NOTHING
        elif step == "*":
            return [_walk(v, steps[i + 1:]) for v in value]
        elif step.startswith("["):
            path, _, wanted = step[1:-1].partition("=")
            value = next((v for v in value if str(_walk(v, path.split("."))) == wanted), NOTHING)
            if value is NOTHING:
                return NOTHING
        elif step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            return NOTHING
    return value


class Comparison:
    """One scenario's worth of comparing; remembers what each numbered token stood for."""

    def __init__(self, names):
        self.names = names
        self.meaning = {}  # (kind, number) -> value
        self.number = {}   # (kind, value) -> number

    def text_fits(self, want, got):
        want, pattern, numbered, at = _AGO.sub("(<age> ago)", str(fill(want, self.names))), "", [], 0
        for token in _TOKEN.finditer(want):
            pattern += re.escape(want[at:token.start()]) + "(" + SHAPE[token[1]] + ")"
            numbered.append((token[1], token[2]))
            at = token.end()
        found = re.fullmatch(pattern + re.escape(want[at:]), got)
        if not found:
            return False
        for (kind, number), value in zip(numbered, found.groups()):
            if number is None:
                continue
            if self.meaning.setdefault((kind, number), value) != value:
                return False
            if self.number.setdefault((kind, value), number) != number:
                return False
        return True

    def _key(self, key):
        """managedFields name owners by uid inside keys."""
        return _TOKEN.sub(lambda m: self.meaning.get((m[1], m[2]), m[0]), str(fill(key, self.names)))

    def differences(self, want, got, at="", ignored=()):
        if at in ignored:
            return []
        if isinstance(want, dict) and isinstance(got, dict):
            want, found = {self._key(k): v for k, v in want.items()}, []
            # uids first: they give meaning to tokens in keys
            for k in sorted(set(want) | set(got), key=lambda k: (k != "uid", k)):
                found += self.differences(want.get(k, NOTHING), got.get(k, NOTHING),
                                          at + "/" + k.replace("/", "~1"), ignored)
            return found
        if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
            return [d for i, (w, g) in enumerate(zip(want, got))
                    for d in self.differences(w, g, "%s/%d" % (at, i), ignored)]
        if type(want) is type(got) and (want == got or isinstance(want, str) and self.text_fits(want, got)):
            return []
        return ["%s: want %.200r, got %.200r" % (at or "/", want, got)]
