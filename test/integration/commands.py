#!/usr/bin/python3
"""Commands that work without a cluster: what they refuse, what they print, and their exit codes.

    commands.py FLYBALL

Speaks TAP.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

import harness

FLYBALL = str(pathlib.Path(sys.argv[1]).resolve())

SCHEDULE = """
apiVersion: autoscaling.sarabala.io/v1alpha1
kind: SmartHorizontalPodAutoscaler
metadata: {name: %s, namespace: shop}
spec:
  HPAObjectRef: {name: web}
  triggers:
  - name: day
    timezone: UTC
    interval: {recurring: "M,TU,W,TH,F,SAT,SUN"%s}
    startTime: "09:00"
    endTime: "17:00"
    %s: {minReplicas: 5, maxReplicas: 9}
    endHPAConfig: {minReplicas: 1, maxReplicas: 3}
---
"""

CALENDAR = """
apiVersion: v1
kind: ConfigMap
metadata: {name: holidays, namespace: shop, labels: {flyball.io/calendar: ""}}
data:
  calendar.ics: |
    BEGIN:VCALENDAR
    BEGIN:VEVENT
    %s
    END:VEVENT
    END:VCALENDAR
---
"""

SCALED = """
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata: {name: web, namespace: shop}
spec:
  scaleTargetRef: {name: web}
  minReplicaCount: 1
  triggers:
  - {type: cron, metadata: {timezone: UTC, start: 0 8 * * *, end: 0 18 * * *, desiredReplicas: "4"}}
"""


def run(*words, text=None):
    return subprocess.run([FLYBALL, *words], input=text, capture_output=True, text=True, timeout=60)


def flags_that_make_no_sense_are_refused():
    answer = run("install", "--image", "")
    assert answer.returncode == 2 and "--image" in answer.stderr and not answer.stdout, answer.stderr
    with tempfile.TemporaryDirectory() as data:
        answer = run("up", "--data", data, "--for", "-5s")
        assert answer.returncode == 2 and "--for" in answer.stderr, answer.stderr
        answer = run("up", "--data", data, "--listen", "0.0.0.0:0")
        assert answer.returncode == 1 and "127.0.0.1" in answer.stderr, answer.stderr
        assert "set --allow-remote" not in answer.stderr  # up has no such flag
        answer = run("apiserver", "--data", data, "--listen", "0.0.0.0:0")
        assert answer.returncode == 1 and "set --allow-remote" in answer.stderr, answer.stderr


def conversions_report_what_they_leave_out():
    answer = run("schedule", "--from-keda", "-", text=SCALED)
    assert answer.returncode == 0 and not answer.stderr, answer.stderr
    assert "namespace: shop" in answer.stdout and "delete" not in answer.stdout
    partial = SCALED + SCALED.splitlines()[-1].replace("UTC", "Mars/Base") + "\n"
    answer = run("schedule", "--from-keda", "-", text=partial)
    assert answer.returncode == 3, answer.returncode
    assert "could not be converted" in answer.stderr, answer.stderr
    assert "cron-0" in answer.stdout and "keep the ScaledObject" in answer.stdout
    answer = run("schedule", "--all", "--from-keda", "-", text=SCALED)  # --from-keda was ignored
    assert answer.returncode == 2 and "exclude each other" in answer.stderr and not answer.stdout, answer.stderr
    answer = run("schedule", "--from-keda", "-", text=SCALED.replace("UTC", "Mars/Base"))
    assert answer.returncode == 3 and "SmartHorizontalPodAutoscaler" not in answer.stdout, answer.stdout


def a_page_of_schedules_hides_no_error():
    good = SCHEDULE % ("good", "", "startHPAConfig")
    answer = run("schedule", "--all", "-", text=good)
    assert answer.returncode == 0 and "shop/good" in answer.stdout, answer.stderr
    answer = run("schedule", "--all", "-", text=good + SCHEDULE % ("typo", "", "startHpaConfig"))
    assert answer.returncode == 1, answer.returncode
    assert "startHPAConfig" in answer.stderr and "typo" in answer.stderr, answer.stderr
    assert "shop/good" in answer.stdout and "shop/typo" in answer.stdout  # all are drawn
    answer = run("schedule", "--all", "-", "-o", "json", text=good)
    page = json.loads(answer.stdout)
    assert [one["name"] for one in page] == ["shop/good"]
    assert any(part["bounds"].get("minReplicas") == 5 for part in page[0]["timeline"]), page


def calendars_of_the_file_are_used():
    named = SCHEDULE % ("web", ", excludeDatesFrom: [holidays]", "startHPAConfig")
    day = ("--from", "2026-12-25", "--to", "2026-12-26", "-o", "json", "-")

    def is_open(text, *more):
        answer = run("schedule", *more, *day, text=text)
        line = json.loads(answer.stdout)
        return answer, any(part["bounds"].get("minReplicas") == 5
                           for part in (line[0]["timeline"] if more else line))
    holiday = CALENDAR % "DTSTART;VALUE=DATE:20261225"
    for more in ((), ("--all",)):
        answer, opened = is_open(named + holiday, *more)
        assert answer.returncode == 0 and not opened, answer.stderr
        answer, opened = is_open(named, *more)
        assert answer.returncode == 0 and opened and "not in the file" in answer.stderr, answer.stderr
        # the operator refuses calendars of other namespaces than the schedule's and its own
        foreign = holiday.replace("namespace: shop", "namespace: bank")
        answer, opened = is_open(named + foreign, *more)
        assert answer.returncode == 1 and opened and "namespace bank" in answer.stderr, answer.stderr
        shared = holiday.replace("namespace: shop", "namespace: flyball-system")
        answer, opened = is_open(named + shared + foreign, *more)
        assert answer.returncode == 0 and not opened, answer.stderr
        standard = foreign.replace('calendar: ""', "calendar: default")
        answer, opened = is_open(SCHEDULE % ("web", "", "startHPAConfig") + standard, *more)
        assert answer.returncode == 0 and opened, answer.stderr
        answer, opened = is_open(named + CALENDAR % "DTSTART:soon", *more)
        assert answer.returncode == 1 and "cannot be read" in answer.stderr, answer.stderr


def another_api_version_is_an_error():
    answer = run("schedule", "-", text=(SCHEDULE % ("web", "", "startHPAConfig")).replace("v1alpha1", "v9"))
    assert answer.returncode == 1 and "autoscaling.sarabala.io/v1alpha1" in answer.stderr, answer.stderr


def a_line_that_never_fires_is_an_error():
    never = SCHEDULE.replace('startTime: "09:00"', 'schedule: "0 9 30 2 *"').replace('endTime: "17:00"', "duration: 8h")
    answer = run("schedule", "-", text=never.replace("interval: {recurring: \"M,TU,W,TH,F,SAT,SUN\"%s}", "priority: 1%s")
                 % ("web", "", "startHPAConfig"))
    assert answer.returncode == 1 and "never matches" in answer.stderr, answer.stderr


def usage_errors_name_what_is_missing():
    for words, expected in ((("schedule",), "needs a FILE"), (("schedule", "a", "b"), 'unexpected argument "b"'),
                            (("schedule", "-x"), "unknown flag -x"), (("schedule", "-", "-o"), "--output needs a value"),
                            (("schedule", "-", "-o=xml"), "but must be text, svg or json"), (("get",), "needs a kind"),
                            (("render",), "--file is missing"), (("completion",), "bash, zsh or fish"),
                            (("completion", "tcsh"), 'unknown shell "tcsh"')):
        answer = run(*words)
        assert answer.returncode == 2 and expected in answer.stderr, (words, answer.stderr)
        assert answer.stderr.startswith("flyball %s: " % words[0]) and answer.stderr.count("\n") == 1, answer.stderr


def short_flags_are_those_of_kubectl():
    good = SCHEDULE % ("good", "", "startHPAConfig")
    for output in (("-o", "json"), ("-o=json",), ("--output", "json"), ("--output=json",)):
        assert json.loads(run("schedule", "-", *output, text=good).stdout)
    assert "  -o, --output FORMAT" in run("schedule", "--help").stdout
    assert "  -A, --all-namespaces" in run("get", "--help").stdout
    assert "  --restrict-cross-namespace true|false\n" in run("operator", "--help").stdout


tap = harness.Tap()
for each in (usage_errors_name_what_is_missing, short_flags_are_those_of_kubectl, flags_that_make_no_sense_are_refused, conversions_report_what_they_leave_out,
             a_page_of_schedules_hides_no_error, calendars_of_the_file_are_used, another_api_version_is_an_error,
             a_line_that_never_fires_is_an_error):
    tap.run(each)
tap.end()
