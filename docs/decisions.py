#!/usr/bin/python3
"""docs/decisions.md: every scaling policy on every development trace, by flyball simulate.

    decisions.py FLYBALL FOLDER     FOLDER holds conv.csv.gz, convr.csv.gz, day.csv.gz, ...

`./dev simulate-report` runs it. No number of the page comes from anywhere else.
"""
import json
import pathlib
import subprocess
import sys

TOP = pathlib.Path(__file__).resolve().parents[1]
POLICIES = ["static-peak", "hpa-running", "hpa-kv", "keda", "2026", "v2", "queue-model", "need", "slo", "oracle"]
NAMES = {
    "static-peak": "static for the peak (hindsight)",
    "hpa-running": "HPA on running requests (tuned by the profile)",
    "hpa-kv": "HPA on KV cache, 70 %",
    "keda": "KEDA on waiting requests, 5 per replica",
    "2026": "WVA V1 2026, through an HPA",
    "v2": "WVA V2, through an HPA",
    "queue-model": "WVA queue model, true profile, through an HPA",
    "need": "flyball `need`, through an HPA",
    "slo": "**flyball `slo`**",
    "oracle": "oracle (clairvoyant)",
}
# trace, profile, ITL target, more flags, what it is
SCENARIOS = [
    ("conv", "p1", "60ms", [], "conv p1 60 ms"),
    ("conv", "p2", "120ms", [], "conv p2 120 ms"),
    ("conv", "p1", "30ms", [], "conv p1 30 ms"),
    ("convr", "p1", "60ms", [], "conv reversed"),
    ("day", "p1", "60ms", [], "day"),
    ("ramp", "p1", "60ms", [], "ramp"),
    ("mix", "p1", "60ms", [], "mix"),
    ("step", "p1", "60ms", [], "step ×4"),
    ("spike", "p1", "60ms", [], "spike"),
    ("idle", "p1", "60ms", [], "idle, then burst"),
]
RESERVES = [("step", "8"), ("step", "12"), ("spike", "12"), ("spike", "16"), ("idle", "12")]


def simulate(flyball, folder, scenario, policies, *more):
    trace, profile, itl, flags, _ = scenario
    command = [flyball, "simulate", "--trace", folder / (trace + ".csv.gz"), "--variants",
               TOP / "examples/simulate" / (profile + ".yaml"), "--policy", ",".join(policies), "--ttft", "2s",
               "--itl", itl, "--goal", "99", "--start", "120s", "--seed", "1", "-o", "json", *flags, *more]
    report = json.loads(subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE).stdout)
    return {p["policy"]: p for p in report["policies"]}


def cell(p):
    over = "%.2f" % p["costOverOracle"] if "costOverOracle" in p else "–"
    return "%.1f / %s" % (p["attainedPercent"], over)


def summary(results):
    print("| policy | " + " | ".join(s[4] for s in SCENARIOS) + " |")
    print("| --- |" + " --- |" * len(SCENARIOS))
    for name in POLICIES[:-1]:
        print("| %s | %s |" % (NAMES[name], " | ".join(cell(results[s[4]][name]) for s in SCENARIOS)))


def details(results):
    for s in SCENARIOS:
        print("\n### %s\n" % s[4])
        print("| policy | attained % | cost | ÷ static | ÷ oracle | worst minute % | changes/h | p99 TTFT s "
              "| p99 ITL ms |")
        print("| --- |" + " ---: |" * 8)
        for name in POLICIES:
            p = results[s[4]][name]
            late = "%.2f" % p["p99TtftSeconds"] if "p99TtftSeconds" in p else "never"
            slow = "%.1f" % (1000 * p["p99ItlSeconds"]) if "p99ItlSeconds" in p else "never"
            print("| `%s` | %.2f | %.1f | %.3f | %.3f | %.1f | %.1f | %s | %s |" % (
                name, p["attainedPercent"], p["cost"], p.get("costOverBestStatic", float("nan")),
                p.get("costOverOracle", float("nan")), p["worstMinutePercent"], p["changesPerHour"], late, slow))


def reserves(results, flyball, folder):
    print("| trace | `--reserve` | attained % | cost | ÷ oracle |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for trace, n in RESERVES:
        scenario = next(s for s in SCENARIOS if s[0] == trace)
        p = simulate(flyball, folder, scenario, ["slo"], "--reserve", n)["slo"]
        oracle = results[scenario[4]]["oracle"]["cost"]
        print("| %s | %s | %.1f | %.1f | %.2f |" % (scenario[4], n, p["attainedPercent"], p["cost"],
                                                    p["cost"] / oracle))


def main():
    flyball, folder = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    missing = [s[0] for s in SCENARIOS if not (folder / (s[0] + ".csv.gz")).exists()]
    if missing:
        sys.exit("decisions.py: %s has no %s.csv.gz" % (folder, missing[0]))
    results = {s[4]: simulate(flyball, folder, s, POLICIES) for s in SCENARIOS}
    print("""# How well the policies decide

Made by `./dev simulate-report`; every number below is printed by `flyball simulate` ([simulate.md](simulate.md)) with
seed 1. Targets: TTFT 2 s, ITL as named, for 99 % of the requests. Replicas start in 120 s ± 15 s. Profiles p1 (8B,
compute-bound) and p2 (13B, KV-bound) are in `examples/simulate`; traces without a profile in their name use p1 and
60 ms. Each cell: attained % / cost ÷ oracle.
""")
    summary(results)
    print("""
Traces: `conv` is the hour of the Azure conversation trace (Patel et al., "Splitwise", ISCA 2024, CC-BY) with each
request six times, `reversed` the same backwards; the others are synthetic with its lengths: `day` two days of 3 h,
`ramp` 8 → 60 → 8 requests per second, `mix` prompts growing fourfold, `step` 10 → 40 → 10, `spike` bursts of one or
two minutes, `idle` nothing, then 24 requests per second.

## A reserve for sudden load

A replica takes two minutes to start: no reactive policy serves the first two minutes of a step. `reserve` holds replicas
free.
""")
    reserves(results, flyball, folder)
    print("\n## Details")
    details(results)


main()
