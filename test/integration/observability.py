#!/usr/bin/python3
"""Dashboards and alerts: what they query exists, and the alerts fire when they should.
Usage: observability.py FLYBALL. Speaks TAP.
"""
import importlib.util
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import urllib.request

import yaml

from harness import Skip, TOP, Tap

FLYBALL = os.path.abspath(sys.argv[1])
GRAFANA, PROMETHEUS = TOP / "deploy/grafana", TOP / "deploy/prometheus"
# Words of PromQL, labels and units that look like names of metrics.
NOT_METRICS = {"sum", "rate", "increase", "by", "le", "or", "vector", "time", "histogram_quantile"}
# Reported only by agents, by the leader, or once something has happened: looked up in the sources instead.
SOURCES = "\n".join(p.read_text() for p in (TOP / "src").rglob("*.c"))


def metrics_of(expression):
    bare = re.sub(r"\{[^}]*\}|\[[^\]]*\]|by \([^)]*\)|\"[^\"]*\"", " ", expression)
    return {name for name in re.findall(r"\b[a-z_][a-z0-9_]*\b", bare)} - NOT_METRICS


def expressions():
    for path in sorted(GRAFANA.glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel["targets"]:
                yield f"{path.name}: {panel['title']}", target["expr"]
    for rule in rules()["groups"][0]["rules"]:
        yield rule["alert"], rule["expr"]


def rules():
    return yaml.safe_load((PROMETHEUS / "rules.yaml").read_text())["spec"]


def scrape():
    """What `flyball up` reports with all features at work."""
    with tempfile.TemporaryDirectory() as folder:
        up = subprocess.Popen([FLYBALL, "up", "--data", folder + "/data", "--for", "240s", "--speed", "10"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
        said = b""
        try:
            url = None
            while not url:
                assert select.select([up.stdout], [], [], 60)[0], said
                said += os.read(up.stdout.fileno(), 4096)
                url = re.search(rb"http://\S+/metrics", said)
            while b"saturation llm/" not in said:  # the slowest feature has decided
                assert select.select([up.stdout], [], [], 60)[0], said
                said += os.read(up.stdout.fileno(), 4096)
            with urllib.request.urlopen(url.group().decode(), timeout=20) as page:
                return page.read().decode()
        finally:
            up.send_signal(signal.SIGTERM)
            up.communicate()


def dashboards_are_what_the_script_writes():
    spec = importlib.util.spec_from_file_location("make", GRAFANA / "make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    for name in make.DASHBOARDS:
        assert (GRAFANA / f"{name}.json").read_text() == make.text(name), f"run {GRAFANA}/make.py: {name}.json is old"
    assert len(list(GRAFANA.glob("*.json"))) == len(make.DASHBOARDS)


def every_metric_exists():
    page = scrape()
    there = set(re.findall(r"^([a-z_]+)", page, re.MULTILINE))
    missing, seen = [], 0
    for where, expression in expressions():
        for name in metrics_of(expression):
            plain = re.sub(r"_(bucket|sum|count)$", "", name)
            seen += name in there
            if name not in there and f'"{plain}"' not in SOURCES and f'"{plain} ' not in SOURCES:
                missing.append(f"{where}: {name}")
    assert not missing, missing
    assert seen > 25, f"only {seen} of the metrics were scraped"


def alerts_fire_when_they_should():
    if not shutil.which("promtool"):
        raise Skip("promtool is not installed")
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/rules.yaml", "w", encoding="utf-8") as file:
            yaml.safe_dump(rules(), file)
        shutil.copy(PROMETHEUS / "rules_test.yaml", folder)
        done = subprocess.run(["promtool", "test", "rules", f"{folder}/rules_test.yaml"], capture_output=True,
                              text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def every_alert_is_tested():
    tested = (PROMETHEUS / "rules_test.yaml").read_text()
    firing = {t["alertname"] for test in yaml.safe_load(tested)["tests"] for t in test["alert_rule_test"]
              if t.get("exp_alerts")}
    assert firing == {rule["alert"] for rule in rules()["groups"][0]["rules"]}, firing


tap = Tap()
for case in (dashboards_are_what_the_script_writes, every_metric_exists, alerts_fire_when_they_should,
             every_alert_is_tested):
    tap.run(case)
tap.end()
