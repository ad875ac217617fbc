#!/usr/bin/python3
"""flyball simulate as a user runs it: formats in, table, JSON and SVG out, the same bytes for the same seed, and
errors that name the line.

    simulate.py FLYBALL

Speaks TAP.
"""
import gzip
import http.server
import json
import os
import pathlib
import pty
import re
import subprocess
import sys
import tempfile
import threading
import urllib.parse
import xml.etree.ElementTree

from harness import Handler, TOP, Tap

EXAMPLES = TOP / "examples/simulate"
TRACE = EXAMPLES / "conversation.csv"
FIELDS = {"policy", "attainedPercent", "cost", "costOverBestStatic", "costOverOracle", "worstMinutePercent",
          "changesPerHour", "p99TtftSeconds", "p99ItlSeconds", "brokenRequests"}
POLICIES = "slo,need,2026,v2,hpa-running,keda,static-peak"


def simulate(flyball, *arguments, code=0, stdin=None):
    done = subprocess.run([flyball, "simulate", *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=600, input=stdin)
    assert done.returncode == code, "exit code %d, want %d: %s" % (done.returncode, code,
                                                                   done.stderr.decode())
    return done.stdout.decode(), done.stderr.decode()


def usual(flyball, *more, trace=TRACE):
    return simulate(flyball, "--trace", trace, "--variants", EXAMPLES / "p1.yaml", "--scale", "6", "--ttft", "2s",
                    "--itl", "60ms", "--goal", "99", "--start", "120s", "--seed", "1", *more)


def json_has_one_object_per_policy(flyball, _):
    out, _ = usual(flyball, "--policy", POLICIES, "-o", "json")
    report = json.loads(out)
    assert [p["policy"] for p in report["policies"]] == POLICIES.split(","), out
    for p in report["policies"]:
        assert set(p) <= FIELDS, p
        assert 0 <= p["worstMinutePercent"] <= p["attainedPercent"] <= 100, p
        assert p["cost"] > 0 and p["p99ItlSeconds"] > 0.02, p
        assert "costOverOracle" not in p, p  # not asked for
    static = report["policies"][-1]
    assert static["costOverBestStatic"] == 1 and static["changesPerHour"] == 0, static
    assert static["attainedPercent"] >= 99, static


def the_oracle_is_cheapest(flyball, _):
    out, _ = usual(flyball, "--policy", "static-peak,oracle", "-o", "json")
    static, oracle = json.loads(out)["policies"]
    assert oracle["costOverOracle"] == 1 and static["costOverOracle"] >= 1, out
    assert oracle["attainedPercent"] >= 99, out


def knowledge_is_worth_money(flyball, _):
    out, _ = usual(flyball, "--policy", "oracle,known-mean,last-minute", "-o", "json")
    oracle, mean, follow = json.loads(out)["policies"]
    assert mean["attainedPercent"] >= 99 and follow["attainedPercent"] >= 99, out
    assert oracle["cost"] * 0.97 < mean["cost"] <= follow["cost"], out  # the oracle's grid is twice as wide


def same_seed_gives_same_bytes(flyball, _):
    runs = [usual(flyball, "--policy", "slo,need,keda", "--explain") for _ in range(2)]
    assert runs[0] == runs[1]
    other, _ = usual(flyball, "--policy", "slo,need,keda", "--explain", "--seed", "2")
    assert other != runs[0][0]
    assert runs[0][1] == "", runs[0][1]  # no progress bar: standard error is no terminal


def formats_are_equal(flyball, folder):
    lines = [line for line in TRACE.read_text().splitlines() if line[:1].isdigit()]

    def seconds(text):
        h, m, s = text.split(" ")[1].split(":")
        return int(h) * 3600 + int(m) * 60 + float(s)

    first = seconds(lines[0].split(",")[0])
    rows = [(round((seconds(l.split(",")[0]) - first) * 1000), *map(int, l.split(",")[1:])) for l in lines]
    plain = "".join("%.3f,%d,%d\n" % (ms / 1000, i, o) for ms, i, o in rows)
    headed = "seconds,in,out\n" + plain
    mooncake = "".join(json.dumps({"timestamp": ms, "input_length": i, "output_length": o, "hash_ids": [1]}) + "\n"
                       for ms, i, o in rows)
    outputs = set()
    for name, text in ("a.csv", plain), ("b.csv", headed), ("c.jsonl", mooncake), ("d.csv.gz", plain):
        data = text.encode()
        path = folder / name
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        outputs.add(simulate(flyball, "--trace", path, "--variants", EXAMPLES / "p1.yaml", "--policy",
                             "static-peak,hpa-running", "-o", "json")[0])
    outputs.add(simulate(flyball, "--trace", "-", "--variants", EXAMPLES / "p1.yaml", "--policy",
                         "static-peak,hpa-running", "-o", "json", stdin=plain.encode())[0])
    assert len(outputs) == 1, outputs


def explain_prints_every_decision(flyball, _):
    out, _ = usual(flyball, "--policy", "slo", "--explain")
    decisions = [line for line in out.splitlines() if line.startswith("slo ") and " s " in line]
    assert 15 <= len([line for line in decisions if "l40s=" in line]) <= 25, out
    assert any("busy replicas" in line or "watching" in line for line in decisions), out


def svg_is_well_formed(flyball, _):
    out, _ = usual(flyball, "--policy", "slo,need,static-peak", "-o", "svg")
    root = xml.etree.ElementTree.fromstring(out)
    assert root.tag.endswith("svg")
    texts = [t.text for t in root.iter() if t.tag.endswith("text")]
    for name in "slo", "need", "static-peak":
        assert any(name in (t or "") for t in texts), texts


def history_is_known_at_the_start(flyball, _):
    """With a history the first decision comes at once and is sized by what was learned; the peers are as before."""
    runs = {}
    for history in ((), ("--history",)):
        out, _ = usual(flyball, "--policy", "slo,hpa-running", "--cold", "--explain", *history)
        runs[history] = [line for line in out.splitlines() if line.startswith("slo  ") and "->" in line], \
            re.search(r"^hpa-running .*%.*$", out, re.M).group()
    blind, known = runs[()], runs[("--history",)]
    assert blind[1] == known[1], (blind[1], known[1])
    assert int(blind[0][0].split()[1]) == 30 and int(known[0][0].split()[1]) == 1, (blind[0][0], known[0][0])
    assert "a100=0 " in known[0][0], known[0][0]  # the past was served by l40s: it is known, and cheaper


# The accelerators of src/testbed/serving.c at the prices of examples/llm.yaml.
LLM_VARIANTS = """
- {name: l40s, cost: 10, min: 1, max: 8, initial: 1, profile: {baseMs: 45, perSeqMs: 0.1, perPromptTokenMs: 0.15,
   perCachedTokenMs: 0.0008, kvBlocks: 1600, blockTokens: 16, maxSeqs: 32, maxBatchedTokens: 2048}}
- {name: h100, cost: 40, min: 1, max: 8, initial: 1, profile: {baseMs: 18, perSeqMs: 0.06, perPromptTokenMs: 0.05,
   perCachedTokenMs: 0.00024, kvBlocks: 6000, blockTokens: 16, maxSeqs: 96, maxBatchedTokens: 2048}}
"""
LLM_RATE = [(0, 1), (10, 2), (90, 2), (110, 1), (240, 1)]  # examples/llm.yaml
LLM_MINUTES, LLM_START = 40, 20


def llm_requests():
    """The load of examples/llm.yaml: the conversation at a speed that doubles and falls every four minutes."""
    text = (TOP / "examples/conversation.yaml").read_text()
    rows = [tuple(map(float, row)) for row in re.findall(r"^    (\d[\d.]*),(\d+),(\d+)$", text, re.M)]
    length, t, at, lines = rows[-1][0] + 1, 0.0, 0.0, ["seconds,in,out\n"]
    for i in range(len(rows) * LLM_MINUTES):
        seconds, prompt, answer = rows[i % len(rows)]
        then = seconds + length * (i // len(rows))
        (a, x), (b, y) = next(p for p in zip(LLM_RATE, LLM_RATE[1:]) if p[0][0] <= t % 240 <= p[1][0])
        t += (then - at) / (x + (y - x) * (t % 240 - a) / (b - a))
        at = then
        if t >= LLM_MINUTES * 60:
            break
        lines.append("%.3f,%d,%d\n" % (t, prompt, answer))
    return "".join(lines)


def the_llm_scenario_attains_and_does_not_flap(flyball, folder):
    """From one replica of each variant: after five minutes 99 % attain, no variant turns more often than the load does,
    and none is started and stopped within its start delay."""
    (folder / "llm.csv").write_text(llm_requests())
    (folder / "llm.yaml").write_text(LLM_VARIANTS)
    for seed in ("1", "2", "3"):
        run = ["--trace", folder / "llm.csv", "--variants", folder / "llm.yaml", "--policy", "slo", "--initial", "variants",
               "--itl", "135ms", "--start", "%ds+-5s" % LLM_START, "--no-gateway", "--seed", seed]
        svg, _ = simulate(flyball, *run, "-o", "svg")
        minutes = [(int(m), float(share) * int(n), int(n))
                   for m, share, n in re.findall(r"minute (\d+): ([\d.]+) % of (\d+)", svg) if int(m) >= 5]
        attained = sum(ok for _, ok, _ in minutes) / sum(n for _, _, n in minutes)
        assert attained >= 99, "seed %s: %.2f %%" % (seed, attained)
        explained, _ = simulate(flyball, *run, "--explain")
        for variant in ("l40s", "h100"):
            changes = [tuple(map(int, c)) for c in
                       re.findall(r"^slo +(\d+) s .*?\b%s=(\d+)->(\d+)" % variant, explained, re.M)]
            pairs = [(p, q) for p, q in zip(changes, changes[1:]) if (p[2] > p[1]) != (q[2] > q[1])]
            assert all(q[0] - p[0] >= LLM_START for p, q in pairs if q[2] < q[1]), (seed, variant, pairs)
            turns = sum(q[0] >= 300 for _, q in pairs)
            assert turns <= 2 * (LLM_MINUTES - 5) // 4, "seed %s: %s turns %d times" % (seed, variant, turns)


def initial_replicas_are_taken(flyball, folder):
    out, _ = usual(flyball, "--policy", "static", "--initial", "l40s=3,a100=1", "-o", "json")
    assert json.loads(out)["initial"] == {"a100": 1, "l40s": 3}
    out, _ = usual(flyball, "--policy", "static", "--cold", "-o", "json")
    assert json.loads(out)["initial"] == {"a100": 0, "l40s": 1}
    variants = folder / "variants.yaml"
    variants.write_text((EXAMPLES / "p1.yaml").read_text().replace("max: 64", "max: 64\n  initial: 2"))
    out, _ = simulate(flyball, "--trace", TRACE, "--variants", variants, "--policy", "static", "--initial",
                      "variants", "-o", "json")
    assert json.loads(out)["initial"] == {"a100": 2, "l40s": 2}


def bad_input_is_refused(flyball, folder):
    p1 = EXAMPLES / "p1.yaml"
    bad = folder / "bad.csv"
    cases = [
        ("seconds,in,out\n1,2,3\n2,x,3\n", "line 3"),
        ("seconds,in,out\n1,2\n", "line 2"),
        ("seconds,in,out\n1,2,99999999\n", "line 2"),
        ("1e300,2,3\n", "line 1"),
        ("{\"timestamp\": 1}\n", "line 1"),
        ("seconds,in,out\n", "has no requests"),
        ("", "has no requests"),
        ("1,10,10\n99999999,10,10\n", "at most 31"),
    ]
    for text, want in cases:
        bad.write_text(text)
        _, said = simulate(flyball, "--trace", bad, "--variants", p1, code=1)
        assert want in said and ("bad.csv" in said or "31" in want), (text, said)
    bad.write_bytes(gzip.compress(b"1,2,3\n")[:-9])
    _, said = simulate(flyball, "--trace", bad, "--variants", p1, code=1)
    assert "gzip" in said, said
    bad.write_text("5,10,10\n1,10,10\n3,10,10\n")
    _, said = simulate(flyball, "--trace", bad, "--variants", p1, "--policy", "static")
    assert "2 requests" in said and "sorted" in said, said

    bad = folder / "bad.yaml"
    for text, want in (("- {name: a}", "cost is missing"), ("[]", "list of variants"), ("a: [", "line"),
                       (p1.read_text().replace("kvBlocks: 25700", "kvBlocks: 0"), "kvBlocks"),
                       (p1.read_text().replace("l40s", "a100"), "twice"),
                       (p1.read_text().replace("cost: 15", "cost: x"), "cost must be a number")):
        bad.write_text(text)
        _, said = simulate(flyball, "--trace", TRACE, "--variants", bad, code=1)
        assert want in said, (text, said)
    for arguments, want in ((["--policy", "best"], "--policy contains"), (["--goal", "100"], "--goal"),
                            (["--start", "x"], "--start"), (["--initial", "z=1"], "--initial"),
                            (["-o", "xml"], "--output is"), (["--scale", "0"], "--scale"),
                            (["--ttft", "0s"], "--ttft")):
        _, said = simulate(flyball, "--trace", TRACE, "--variants", p1, *arguments, code=1)
        assert want in said, (arguments, said)
    _, said = simulate(flyball, "--variants", p1, code=1)
    assert "--trace" in said, said
    simulate(flyball, "--nonsense", code=2)


def a_terminal_shows_progress(flyball, _):
    ours, theirs = pty.openpty()
    done = subprocess.Popen([flyball, "simulate", "--trace", TRACE, "--variants", EXAMPLES / "p1.yaml", "--scale",
                             "60", "--policy", "need,slo"], stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            some = os.read(ours, 65536)
        except OSError:  # how a pseudo-terminal ends
            break
        if not some:
            break
        shown += some
    out, _ = done.communicate(timeout=600)
    os.close(ours)
    assert done.returncode == 0 and b"POLICY" in out, shown
    assert b"\r" in shown and b"[" in shown and b"%" in shown, shown
    assert shown.endswith(b" \r"), shown[-80:]  # and wiped at the end


def odd_traces_run(flyball, folder):
    path = folder / "odd.csv"
    everything = "slo,need,2026,seed,v2,v2-taught,queue-model,hpa-running,hpa-kv,hpa-queue,keda,static,static-peak,oracle," \
        "known-mean,last-minute"
    for text in ("0,10,10\n", "0,0,0\n", "0,1048576,1048576\n", "5,100,10\n" * 300,
                 "0,100,10\n200000,100,10\n", "".join("%d,2000,1\n" % i for i in range(400))):
        path.write_text(text)
        out, _ = simulate(flyball, "--trace", path, "--variants", EXAMPLES / "p2.yaml", "--policy", everything,
                          "-o", "json")
        assert len(json.loads(out)["policies"]) == len(everything.split(",")), out


def an_unattainable_goal_is_no_error(flyball, _):
    out, _ = usual(flyball, "--policy", "slo,static-peak,oracle", "-o", "json", "--itl", "5ms")
    for p in json.loads(out)["policies"]:
        assert p["attainedPercent"] < 50, p
        assert "costOverBestStatic" not in p and "costOverOracle" not in p, p


class Prometheus(Handler):
    """Answers query_range about one model with a rate of 2, then 4 requests a second."""
    asked = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.reply(urllib.parse.parse_qs(body))

    def do_GET(self):
        self.reply(urllib.parse.parse_qs(urllib.parse.urlsplit(self.path).query))

    def reply(self, query):
        promql = query["query"][0]
        self.asked.append(promql)
        start, end, step = (float(query[k][0]) for k in ("start", "end", "step"))
        values, at = [], start
        while at <= end:
            share = (at - start) / max(end - start, 1)
            if "prompt_tokens" in promql:
                value = 800
            elif "generation_tokens" in promql:
                value = 150
            else:
                value = 2 if share < 0.5 else 4
            values.append([at, str(value)])
            at += step
        text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": [
            {"metric": {}, "values": values}]}}).encode()
        self.answer(text, "application/json")


def a_cluster_gives_the_trace(flyball, _):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Prometheus)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        url = "http://127.0.0.1:%d" % server.server_address[1]
        out, said = simulate(flyball, "--from-prometheus", url, "--model", "meta/llama", "--namespace", "llm",
                             "--since", "30m", "--variants", EXAMPLES / "p1.yaml", "--policy", "static-peak,slo",
                             "-o", "json")
        report = json.loads(out)
        assert 5000 <= report["requests"] <= 5800, report["requests"]  # 900 s * 2 + 900 s * 4
        assert "mean" in report["note"], report
        assert all("meta/llama" in q and 'namespace="llm"' in q for q in Prometheus.asked), Prometheus.asked
    finally:
        server.shutdown()
        server.server_close()
    _, said = simulate(flyball, "--from-prometheus", url, "--model", "m", "--variants", EXAMPLES / "p1.yaml",
                       code=1)
    assert "Prometheus" in said, said
    _, said = simulate(flyball, "--from-prometheus", url, "--variants", EXAMPLES / "p1.yaml", code=1)
    assert "--model" in said, said


def help_says_what_is_taken(flyball, _):
    out, _ = simulate(flyball, "--help")
    for word in "--trace", "--variants", "--policy", "--from-prometheus", "static-peak", "default 2s":
        assert word in out, word


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        for case in (json_has_one_object_per_policy, the_oracle_is_cheapest, knowledge_is_worth_money, same_seed_gives_same_bytes,
                     formats_are_equal, explain_prints_every_decision, svg_is_well_formed,
                     history_is_known_at_the_start, the_llm_scenario_attains_and_does_not_flap,
                     initial_replicas_are_taken, a_terminal_shows_progress, odd_traces_run, an_unattainable_goal_is_no_error,
                     bad_input_is_refused, a_cluster_gives_the_trace,
                     help_says_what_is_taken):
            tap.run(case, sys.argv[1], pathlib.Path(folder))
    tap.end()


main()
