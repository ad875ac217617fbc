"""The operator with nothing to do: its size, how fast it is ready, what it holds. The server is the embedded one,
in a process of its own; leader election is on and the lease is free, as after a restart in good order.

    operator.py FLYBALL
"""
import os
import pathlib
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from budget import budget

RUNS = 15
CRDS = pathlib.Path(__file__).resolve().parents[1] / "deploy" / "crds"


def stripped_mb(flyball, folder):
    small = pathlib.Path(folder, "stripped")
    subprocess.run(["strip", "-o", small, flyball], check=True)
    return small.stat().st_size / 1e6


def resident_mb(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s*(\d+)", status)[1]) / 1024


class Operator:
    """Started and ready: it leads, its caches are synced and its controllers start."""

    def __init__(self, flyball, config):
        before = time.monotonic()
        self.process = subprocess.Popen([flyball, "operator", "--kubeconfig", config, "--listen", "127.0.0.1:0"],
                                        stderr=subprocess.PIPE, text=True)
        port = None
        for line in self.process.stderr:
            port = port or re.search(r"serving /healthz.* port=(\d+)", line)
            if "starting controllers" in line:
                break
        self.ready_ms = 1000 * (time.monotonic() - before)
        with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/readyz") as answer:
            assert answer.status == 200

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()


def main():
    flyball = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        server = subprocess.Popen([flyball, "apiserver", "--data", folder + "/data", "--listen", "127.0.0.1:0"],
                                  stdout=subprocess.PIPE, text=True)
        try:
            config = server.stdout.readline().split()[-1]
            subprocess.run(["kubectl", "apply", "-f", CRDS], check=True, stdout=subprocess.DEVNULL,
                           env=dict(os.environ, KUBECONFIG=config, HOME=folder))
            measure(flyball, folder, config)
        finally:
            server.kill()
            server.wait()


def measure(flyball, folder, config):
    times = []
    for _ in range(RUNS):
        operator = Operator(flyball, config)
        times.append(operator.ready_ms)
        operator.end()
    print(f"start to ready, {RUNS} times: least {min(times):.1f} ms, median {statistics.median(times):.1f} ms, "
          f"most {max(times):.1f} ms")
    operator = Operator(flyball, config)
    time.sleep(3)  # what is measured is doing nothing
    idle = resident_mb(operator.process.pid)
    operator.end()
    budget("binary, stripped", stripped_mb(flyball, folder), 2.5, "MB")
    budget("operator, start to ready", statistics.median(times), 50, "ms")
    budget("operator, idle", idle, 10, "MB")


main()
