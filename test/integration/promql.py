#!/usr/bin/python3
"""What a confined query answers, asked of a real Prometheus.

    promql.py PROMQL [SEED [COUNT]]     PROMQL is test/support/promql

Two servers: one has the series of two tenants and some without a tenant, the other those of tenant-a alone. What tenant-a asks of the
first, confined, must be answered exactly as it is by the second, value by value, and as the plain query is by the second;
whatever the query, also one made up at random. Speaks TAP. Skipped where there is no Prometheus.
"""
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request

from harness import Tap, free_port, need, until

NS = "tenant-a"
START = 1780000000
TIMES = range(START, START + 3600, 60)
AT = START + 1800

HOSTILE = [
    "secret_total", "{__name__=~\".+\"}", "{namespace=\"tenant-b\"}", "secret_total{namespace=~\".*\"}",
    "secret_total{namespace!=\"tenant-a\"}", "secret_total or secret_total{namespace=\"tenant-b\"}",
    "sum(secret_total)", "sum(secret_total) by (namespace)", "count({__name__!=\"\"})",
    "sum by (namespace) ({__name__=~\"secret.*\"})", "absent(secret_total{namespace=\"tenant-b\"})",
    "label_replace(secret_total, \"namespace\", \"tenant-b\", \"\", \"\")",
    "label_join(secret_total, \"namespace\", \"-\", \"tenant\", \"job\")",
    "secret_total # {namespace=\"tenant-a\"}\n or secret_total", "secret_total{job=\"}\"} or secret_total",
    "secret_total{job='x\"'} or secret_total{job=`\\`}", "secret_total offset 5m", "secret_total @ %d" % (AT - 600),
    "rate(secret_total[10m])", "max_over_time(rate(secret_total[5m])[20m:1m])", "sum_over_time(secret_total[30m:5m])",
    "max_over_time(secret_total[30m:])", "secret_total * on(job) group_left(namespace) nobody_total",
    "secret_total * on(job) group_left (namespace) max by (job, namespace) (nobody_total)",
    "limit_total * on(job) group_left() sum by (job) (secret_total)", "secret_total unless limit_total",
    "secret_total and on() vector(1)", "-secret_total", "secret_total > bool 5", "topk(3, secret_total)",
    "bottomk by (job) (1, {__name__=~\"secret_total|limit_total\"})", "count_values(\"v\", secret_total)",
    "quantile(0.5, secret_total)", "scalar(sum(secret_total))", "vector(scalar(sum(secret_total)))",
    "histogram_quantile(0.9, sum by (le) (rate(wait_bucket[10m])))", "time()", "timestamp(secret_total)",
    "absent_over_time(nobody_total[5m])", "sort_desc(secret_total)", "SUM BY (job) (secret_total) OFFSET 1m",
    "job:secret:sum", "rate (secret_total [5m] )", "avg without (instance) (limit_total) atan2 1",
    "(((secret_total)))", "clamp_max(secret_total, 3) % 2 ^ 2", "predict_linear(secret_total[10m], 3600)",
    "changes(limit_total[20m] offset -1m)", "secret_total{job=~\"api|web\",}", "{job=\"api\"}",
    "group by (namespace) ({job=~\".+\"})", "sgn(delta(limit_total[10m]))", "day_of_week(secret_total)",
    "secret_total * on(job) group_left (namespace) - limit_total", "secret_total @ end()", "rate(secret_total[5m] @ start() offset 1m)",
]


class Prometheus:
    def __init__(self, folder, name, series):
        self.folder = pathlib.Path(folder, name)
        self.folder.mkdir()
        text = self.folder / "series"
        text.write_text("".join("%s %g %d\n" % (labels, value(t - START), t) for labels, value in series for t in TIMES)
                        + "# EOF\n")
        subprocess.run(["promtool", "tsdb", "create-blocks-from", "openmetrics", text, self.folder / "tsdb"], check=True,
                       capture_output=True)
        (self.folder / "prometheus.yml").write_text("global: {scrape_interval: 1h}\n")
        self.url = "http://127.0.0.1:%d" % free_port()
        self.process = subprocess.Popen(
            ["prometheus", "--config.file=%s/prometheus.yml" % self.folder, "--storage.tsdb.path=%s/tsdb" % self.folder,
             "--storage.tsdb.retention.time=100y", "--web.listen-address=" + self.url[7:],
             "--enable-feature=promql-negative-offset,promql-at-modifier"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ready(self):
        try:
            with urllib.request.urlopen(self.url + "/-/ready", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def ask(self, query):
        """The result in an order of its own, or ("error", what)."""
        form = urllib.parse.urlencode({"query": query, "time": AT}).encode()
        try:
            with urllib.request.urlopen(self.url + "/api/v1/query", form, timeout=30) as answer:
                data = json.load(answer)["data"]
        except urllib.error.HTTPError as failed:
            return "error", json.load(failed)["errorType"]
        result = data["result"]
        if data["resultType"] in ("vector", "matrix"):
            result = sorted(json.dumps(one, sort_keys=True) for one in result)
        return data["resultType"], result

    def stop(self):
        self.process.kill()
        self.process.wait()


def series():
    """(labels, value at a second) of all; the first are tenant-a's."""
    def grow(speed):
        return lambda t: speed * t

    def wave(size):
        return lambda t: size * (t % 600)
    mine, others = [], []
    for number, namespace in enumerate((NS, "tenant-b", "tenant-a2", "a", "")):
        for job in ("api", "web"):
            tags = 'job="%s",tenant="%s",instance="i%d"' % (job, namespace, number)
            tags += ',namespace="%s"' % namespace if namespace else ""
            kind = mine if namespace == NS else others
            kind.append(("secret_total{%s}" % tags, grow(number + 1)))
            kind.append(("limit_total{%s}" % tags, wave(number + 2)))
            kind.append(("job:secret:sum{%s}" % tags, wave(number + 3)))
            for le in ("0.1", "1", "+Inf"):
                kind.append(('wait_bucket{%s,le="%s"}' % (tags, le), grow((number + 1) * len(le))))
    others.append(('nobody_total{job="api",namespace="tenant-b"}', grow(7)))
    return mine, others


class Maker:
    """Queries at random, of nearly everything that the grammar has."""

    METRICS = ["secret_total", "limit_total", "job:secret:sum", "wait_bucket", "nobody_total"]
    LABELS = ["job", "namespace", "instance", "tenant", "le"]

    def __init__(self, seed):
        self.random = random.Random(seed)

    def of(self, *choices):
        return self.random.choice(choices)

    def gap(self):
        return self.of("", "", "", " ", "\t", "\n", " # }\"'`{\n", "#\r")

    def string(self, text):
        kind = self.of('"', "'", "`")
        return kind + text + kind

    def matcher(self):
        value = self.of("api", "web", ".*", "", "tenant-a", "tenant-b", "a|b", "tenant-.", "} or secret_total {", "#")
        return self.of(*self.LABELS, "__name__") + self.gap() + self.of("=", "!=", "=~", "!~") + self.gap() + \
            self.string(value)

    def matchers(self):
        some = [self.matcher() for _ in range(self.random.randrange(3))]
        comma = self.of("", ",") if some else ""
        return "{" + self.gap() + (self.gap() + "," + self.gap()).join(some) + comma + self.gap() + "}"

    def selector(self):
        if self.random.random() < 0.25:
            return self.matchers()
        return self.of(*self.METRICS) + self.of("", self.gap() + self.matchers())

    def modifiers(self):
        return self.of("", "", "", " offset 5m", " OFFSET -1m", " @ %d" % (AT - 300), " @ start()", " @ end() offset 1m")

    def vector(self, depth):
        if depth <= 0:
            return self.selector() + self.modifiers()
        kind = self.random.randrange(9)
        if kind == 0:
            return "(" + self.gap() + self.vector(depth - 1) + self.gap() + ")"
        if kind == 1:
            return self.of("rate", "increase", "max_over_time", "count_over_time", "absent_over_time", "delta") + \
                self.gap() + "(" + self.matrix(depth - 1) + ")"
        if kind == 2:
            return self.aggregation(depth - 1)
        if kind in (3, 4):
            return self.binary(depth - 1)
        if kind == 5:
            return self.of("abs", "sort", "absent", "timestamp", "ceil", "sgn") + "(" + self.vector(depth - 1) + ")"
        if kind == 6:
            return "label_replace(%s, \"namespace\", \"tenant-b\", \"job\", \"(.*)\")" % self.vector(depth - 1)
        if kind == 7:
            return "-" + self.vector(depth - 1)
        return "clamp_min(%s, scalar(%s))" % (self.vector(depth - 1), self.vector(depth - 1))

    def matrix(self, depth):
        if self.random.random() < 0.4:
            return "%s[10m:%s]" % ("(" + self.vector(depth) + ")", self.of("", "1m", "30s")) + self.modifiers()
        return self.selector() + self.gap() + "[" + self.of("5m", "10m", "1h30m") + "]" + self.modifiers()

    def labels(self):
        return "(" + ", ".join(self.random.sample(self.LABELS, self.random.randrange(3))) + ")"

    def aggregation(self, depth):
        name = self.of("sum", "avg", "count", "max", "MIN", "group", "stddev", "topk", "quantile")
        first = {"topk": "2, ", "quantile": "0.5, "}.get(name, "")
        inner = "(" + first + self.vector(depth) + ")"
        grouping = self.of("by", "without", "BY") + self.gap() + self.labels()
        return self.of(name + inner, name + " " + grouping + " " + inner, name + inner + " " + grouping)

    def binary(self, depth):
        sign = self.of("+", "-", "*", "/", "%", "^", "==", "!=", ">", "<=", "> bool ", " and ", " or ", " unless ")
        match = self.of("", "", " on" + self.labels(), " ignoring" + self.labels())
        if match and sign not in (" and ", " or ", " unless ", "> bool "):
            match += self.of("", " group_left", " group_left" + self.labels(), " group_right()")
        if sign not in (" and ", " or ", " unless ") and self.random.random() < 0.2:
            return self.vector(depth) + sign + self.of("1", "1e3", "0x1F", ".5", "Inf", "time()")
        return self.vector(depth) + sign + match + " " + self.vector(depth)


def confine(program, queries):
    done = subprocess.run([program, NS], input=b"".join(q.encode() + b"\0" for q in queries), stdout=subprocess.PIPE,
                          check=True)
    return done.stdout.decode().split("\0")[:-1]


def same_answers(program, everything, alone, queries, least):
    """Every query that can be parsed is let through and answered as if there were no other tenant; and it still means the same."""
    answered = 0
    for query, confined in zip(queries, confine(program, queries), strict=True):
        if confined[0] != "=":
            assert alone.ask(query) == ("error", "bad_data"), "refused: %r: %s" % (query, confined)
            continue
        plain, want, got = alone.ask(query), alone.ask(confined[1:]), everything.ask(confined[1:])
        assert got == want, "%r\n%r\nwant %s\ngot  %s" % (query, confined[1:], want, got)
        # a selector that is empty is refused only without our matcher; absent() makes labels of matchers
        if plain != ("error", "bad_data") and "absent" not in query:
            assert plain == want, "%r\n%r\nwant %s\ngot  %s" % (query, confined[1:], plain, want)
        answered += got[0] != "error" and bool(got[1])
    print("# %d queries, %d with an answer" % (len(queries), answered), flush=True)
    assert answered >= least, answered


def free_queries_see_everything(_program, everything, alone):
    """The oracle can fail: without being confined, most of these answer otherwise."""
    differ = sum(everything.ask(query) != alone.ask(query) for query in HOSTILE)
    assert differ > len(HOSTILE) * 3 // 4, differ


def main():
    need("prometheus")
    need("promtool")
    program = str(pathlib.Path(sys.argv[1]).resolve())
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 1000
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        mine, others = series()
        everything, alone = Prometheus(folder, "everything", mine + others), Prometheus(folder, "alone", mine)
        try:
            if not until(lambda: everything.ready() and alone.ready()):
                raise RuntimeError("Prometheus does not come up")
            tap.run(free_queries_see_everything, program, everything, alone)
            tap.run(same_answers, program, everything, alone, HOSTILE, len(HOSTILE) // 2,
                    name="hostile queries are answered as if nobody else were there")
            maker = Maker(seed)
            made = [maker.vector(maker.random.randrange(5)) for _ in range(count)]
            tap.run(same_answers, program, everything, alone, made, count // 5,
                    name="queries at random are answered as if nobody else were there")
        finally:
            everything.stop()
            alone.stop()
    tap.end()


if __name__ == "__main__":
    main()
