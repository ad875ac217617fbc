#!/usr/bin/python3
"""What 1,000 calendars of 500 events cost the operator in memory, text included: they are ConfigMaps of an API server (another
process), and the operator has read them all.

    schedule_calendars.py FLYBALL [--calendars N]
"""
import argparse
import concurrent.futures
import os
import pathlib
import random
import subprocess
import tempfile

from budget import budget
from schedule_operator import CRD, WRITERS, Server, memory_mb, settle

EVENTS = 500
MAPS = "/api/v1/namespaces/default/configmaps"


def text(number, recurring):
    """A tenth of the events (or all of them) recur; the others are all-day or timed, as in a calendar of holidays and sales."""
    pick = random.Random(number)
    lines = ["BEGIN:VCALENDAR", "VERSION:2.0"]
    for i in range(EVENTS):
        day = "%04d%02d%02d" % (pick.randint(2020, 2030), pick.randint(1, 12), pick.randint(1, 28))
        lines += ["BEGIN:VEVENT", "UID:%d-%d" % (number, i), "SUMMARY:Event %d" % i]
        lines += ["DTSTART;VALUE=DATE:" + day] if i % 2 else ["DTSTART:%sT120000Z" % day, "DURATION:PT8H"]
        if recurring or i % 10 == 0:
            lines += ["RRULE:FREQ=YEARLY"]
        lines += ["END:VEVENT"]
    return "\r\n".join(lines + ["END:VCALENDAR", ""])


def make(server, number, recurring):
    return server.ask("POST", MAPS, {
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "calendar-%d" % number, "labels": {"flyball.io/calendar": ""}},
        "data": {"calendar.ics": text(number, recurring)}})


def run_operator(flyball, server, folder):
    """Its resident memory at rest, and its largest."""
    with open(folder + "/operator.log", "w", encoding="utf-8") as log:
        operator = subprocess.Popen(
            [flyball, "operator", "--kubeconfig", server.data + "/kubeconfig", "--leader-elect=false", "--listen", "none",
             "--controllers", "schedule", "--smarthpa-calendars", "true", "--log-level", "error"], stdout=log, stderr=log)
    try:
        settle(operator.pid)
        return memory_mb(operator.pid, "VmRSS"), memory_mb(operator.pid, "VmHWM")
    finally:
        operator.terminate()
        operator.wait()


def measure(given, recurring):
    with tempfile.TemporaryDirectory() as folder:
        server = Server(given.flyball, folder)
        try:
            environment = dict(os.environ, KUBECONFIG=server.data + "/kubeconfig", HOME=folder)
            subprocess.run(["kubectl", "apply", "-f", str(CRD)], env=environment, check=True, stdout=subprocess.DEVNULL)
            without, _ = run_operator(given.flyball, server, folder)
            with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
                list(pool.map(lambda n: make(server, n, recurring), range(given.calendars)))
            rest, peak = run_operator(given.flyball, server, folder)
            share = "all" if recurring else "a tenth"
            print("%d calendars of %d events, %s recur: %.1f kB of text each, %.1f MB RSS (%.1f MB without them, peak %.1f MB)" % (
                given.calendars, EVENTS, share, len(text(0, recurring)) / 1e3, rest, without, peak))
            budget("%d calendars, %s of the events recur" % (given.calendars, share), rest - without, 64, "MB RSS")
        finally:
            server.process.kill()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("flyball", type=pathlib.Path)
    parser.add_argument("--calendars", type=int, default=1000)
    given = parser.parse_args()
    measure(given, False)
    measure(given, True)


if __name__ == "__main__":
    main()
