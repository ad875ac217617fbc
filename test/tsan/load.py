#!/usr/bin/python3
"""A bounded load on binaries built with ThreadSanitizer: no report may come.

    load.py BUILD [--seconds N]

BUILD holds `flyball` and `test/tsan/race`, a program with a race that must be reported. The server commits on a
thread of its own, and clients look names up on libuv's pool (the kubeconfig names localhost). Speaks TAP.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from api import BROKEN, Api, Refused, Watch  # noqa: E402
from harness import TOP, Embedded, Tap, World, until  # noqa: E402

REPORT = "WARNING: ThreadSanitizer"
EXIT_REPORTED = 66
WRITERS, WATCHES, RESTARTS = 4, 8, 4
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def report_of(text):
    """The first report, or "": ThreadSanitizer separates them with lines of equal signs."""
    at = text.find(REPORT)
    return text[at:at + 3000].split("\n=====")[0] if at >= 0 else ""


def expect_clean(what, text, status=0):
    assert REPORT not in text, "%s: %s" % (what, report_of(text))
    assert status in (0, -signal.SIGKILL), "%s ended with %s: %s" % (what, status, text[-2000:])


class Writer(threading.Thread):
    """Creates, updates, patches and deletes config maps of 100 bytes to 300 KB; a server that is away is retried."""

    def __init__(self, server, number, ended):
        super().__init__(daemon=True)
        self.api, self.number, self.ended = Api(server), number, ended
        self.choose, self.done = random.Random(number), 0

    def run(self):
        while not self.ended.is_set():
            name = "w%d-%d" % (self.number, self.choose.randrange(20))
            size = self.choose.choice([100, 100, 100, 4000, 300000])
            try:
                self.write(name, {"v": "x" * size})
                self.done += 1
            except Refused:
                continue
            except (*BROKEN, AttributeError):
                self.api.close()
                self.ended.wait(0.05)

    def write(self, name, data):
        what = self.choose.randrange(4)
        if what < 2:
            self.api.create(CONFIG_MAPS, {"metadata": {"name": name}, "data": data})
        elif what == 2:
            self.api.patch(CONFIG_MAPS + "/" + name, {"data": data})
        else:
            self.api.delete(CONFIG_MAPS + "/" + name)


def race_is_reported(build, _):
    done = subprocess.run([build + "/test/tsan/race"], capture_output=True, text=True, timeout=60)
    assert done.returncode == EXIT_REPORTED and REPORT in done.stderr, (done.returncode, done.stderr)


def server_under_writes_and_restarts(build, seconds):
    with tempfile.TemporaryDirectory() as folder:
        server = Embedded(build + "/flyball", folder)
        ended = threading.Event()
        watches = [Watch(server, CONFIG_MAPS) for _ in range(WATCHES)]
        writers = [Writer(server, i, ended) for i in range(WRITERS)]
        for thread in [*watches, *writers]:
            thread.start()
        try:
            for number in range(RESTARTS):
                time.sleep(seconds / RESTARTS)
                status = server.stop(signal.SIGKILL if number % 2 else signal.SIGTERM)
                expect_clean("the server", server.text(), status)
                server.start()
        finally:
            ended.set()
            for watch in watches:
                with contextlib.suppress(OSError):  # it was between two connections
                    watch.end()
            for writer in writers:
                writer.join(60)
            status = server.stop()
        expect_clean("the server", server.text(), status)
        done = [writer.done for writer in writers]
        assert min(done) > 0, "writers did %s" % done
        print("# %d writes, %d restarts" % (sum(done), RESTARTS))


class Cluster(World):
    FEATURE = "schedule"


def operator_by_name_and_restarts(build, seconds):
    """The client: a name to look up, a server that goes and comes back."""
    with tempfile.TemporaryDirectory() as folder:
        server = Embedded(build + "/flyball", folder)
        world = Cluster(server, build + "/flyball", folder)
        try:
            config = json.loads(world.kubectl("config", "view", "--raw", "--flatten", "-o", "json"))
            cluster = config["clusters"][0]["cluster"]
            cluster["server"] = cluster["server"].replace("127.0.0.1", "localhost")
            path = pathlib.Path(folder, "by-name.kubeconfig")
            path.write_text(json.dumps(config))
            world.define(*sorted((TOP / "deploy/crds").glob("*.yaml")))
            log = open(folder + "/log", "w+")
            operator = subprocess.Popen([build + "/flyball", "operator", "--kubeconfig", path, "--listen", "none",
                                         "--lease-namespace", "default"], stdout=log, stderr=log)
            for _ in range(2):
                time.sleep(seconds / 4)
                expect_clean("the server", server.text(), server.stop())
                server.start()
            assert until(lambda: operator.poll() is not None or "kind" in world.get("lease", "flyball-operator")), \
                "no lease"
            operator.send_signal(signal.SIGTERM)
            status = operator.wait(60)
            log.seek(0)
            expect_clean("the operator", log.read(), status)
        finally:
            status = server.stop()
        expect_clean("the server", server.text(), status)


def everything_in_one_process(build, seconds):
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):  # the second goes on from the first
            done = subprocess.run([build + "/flyball", "up", "--data", folder + "/data", "--speed", "60", "--for",
                                   "%ds" % (seconds / 2)], capture_output=True, text=True, timeout=300)
            expect_clean("flyball up", done.stdout + done.stderr, done.returncode)
            assert re.search(r"stopped: [1-9]", done.stdout), done.stdout[-1000:]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--seconds", type=int, default=20)
    args = parser.parse_args()
    os.environ["TSAN_OPTIONS"] = "exitcode=%d:ignore_noninstrumented_modules=1" % EXIT_REPORTED
    tap, build = Tap(), str(pathlib.Path(args.build).resolve())
    for case in (race_is_reported, server_under_writes_and_restarts, operator_by_name_and_restarts,
                 everything_in_one_process):
        tap.run(case, build, args.seconds)
    tap.end()


main()
