"""What is attacked: a `flyball apiserver` of our own on loopback, and what must hold of it after every attack.

The bounds are those of the documentation, not of today's measurements: a server that lives, that answers a client
who did nothing wrong, that gives memory and descriptors back, and that keeps secrets out of its log.
"""
import base64
import http.client
import json
import os
import pathlib
import re
import resource
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from harness import TOP, Skip, free_port, until  # noqa: E402,F401

# How long a healthy client may wait is counted in CPU seconds of the server, so that a busy machine fails nothing; by
# the clock there is only the client's own timeout.
ANSWER_S = 0.5          # after the attack
ANSWER_DURING_S = 1.5   # while it goes on
RSS_AFTER_MIB = 128   # when the attackers have gone
RSS_PEAK_MIB = 192    # at any moment
UNREAD_MIB = 128      # while answers wait for clients that do not read: the documented 48, 300 connections, history
SANITIZED_TIMES = 5   # what a binary with sanitizers may use in place of that
FD_SLACK = 8
SETTLE_S = 30
BROKEN = (OSError, http.client.HTTPException, ValueError)
SANITIZER = re.compile(r"(ERROR: \w+Sanitizer|runtime error:|WARNING: ThreadSanitizer|Assertion .* failed)")
SECRET_VALUE = "attack-secret-value-5f1c"
USERS = {  # token: (user, groups)
    "alice-token-0001": ("alice", []),
    "bob-token-000001": ("bob", ["team-a"]),
    "carol-token-0001": ("carol", []),
    "dave-token-00001": ("dave", []),
    "erin-token-00001": ("erin", []),
    "patcher-token-01": ("patcher", []),
}


class Scale:
    """How many times as much memory and CPU the binary may use: with sanitizers everything costs more."""

    times, sanitized = 1, False

    @classmethod
    def measure(cls, flyball):
        cls.sanitized = b"__asan_init" in pathlib.Path(flyball).read_bytes()
        cls.times = SANITIZED_TIMES if cls.sanitized else 1
        if cls.sanitized:  # what was freed is to be given back soon, or every bound on RSS is one on ASan's quarantine
            os.environ["ASAN_OPTIONS"] = "quarantine_size_mb=8:malloc_context_size=4:detect_leaks=0"
            os.environ["UBSAN_OPTIONS"] = "halt_on_error=1:print_stacktrace=1"


def at_most(value, bound, text):
    """Memory in MiB or CPU in seconds; `text` has places for both."""
    assert value <= bound * Scale.times, text % (value, bound * Scale.times)


def context(cafile=None, cert=None, alpn=("http/1.1",)):
    tls = ssl.create_default_context(cafile=cafile)
    tls.set_alpn_protocols(list(alpn))
    if cert:
        tls.load_cert_chain(*cert)
    return tls


IDLE_S = 120  # the server closes a connection that was not used for 180 s, which would look like a lost answer


class Client:
    """Requests on one kept connection; `ask` gives (status, body as JSON or text)."""

    def __init__(self, target, token=None, cert=None, timeout=30):
        self.target, self.token, self.cert, self.timeout = target, token, cert, timeout
        self.connection, self.used = None, 0

    def open(self, method, path, body=None, headers=None):
        now, before = time.monotonic(), self.used
        self.used = now
        if self.connection and now - before > IDLE_S:
            self.close()
        if not self.connection:
            tls = context(self.target.authority, self.cert)
            self.connection = http.client.HTTPSConnection("127.0.0.1", self.target.port, timeout=self.timeout,
                                                          context=tls)
        own = {"Content-Type": "application/json"}
        if self.token:
            own["Authorization"] = "Bearer " + self.token
        own.update(headers or {})
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        self.connection.request(method, path, body, own)
        return self.connection.getresponse()

    def ask(self, method, path, body=None, headers=None):
        try:
            answer = self.open(method, path, body, headers)
            text = answer.read()
        except BROKEN:
            self.close()
            raise
        try:
            return answer.status, json.loads(text)
        except ValueError:
            return answer.status, text.decode("utf-8", "replace")

    def must(self, method, path, body=None, headers=None):
        status, answer = self.ask(method, path, body, headers)
        assert status < 300, "%s %s: %s %s" % (method, path, status, str(answer)[:300])
        return answer

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


class Process:
    """A child whose memory, descriptors, CPU and log can be read."""

    def __init__(self, words, log, limits=None, env=None, before=None):
        def prepare():
            for what, value in (limits or {}).items():
                resource.setrlimit(what, (value, value))

        self.log = pathlib.Path(log)
        with open(self.log, "ab") as errors:
            self.child = subprocess.Popen([*(before or []), *words], stdout=subprocess.PIPE, stderr=errors, text=True,
                                          preexec_fn=prepare, env={**os.environ, **(env or {})})

    @property
    def pid(self):
        return self.child.pid

    def status_of(self, field):
        found = re.search(r"^%s:\s+(\d+)" % field, pathlib.Path("/proc/%d/status" % self.pid).read_text(), re.M)
        return int(found[1]) / 1024 if found else 0

    def rss_mib(self):
        return self.status_of("VmRSS")

    def peak_mib(self):
        return self.status_of("VmHWM")

    def forget_peak(self):
        try:
            pathlib.Path("/proc/%d/clear_refs" % self.pid).write_text("5")
        except OSError:
            pass

    def cpu_s(self):
        assert self.alive(), "it ended with %s: %s" % (self.child.poll(), self.text()[-1000:])
        fields = pathlib.Path("/proc/%d/stat" % self.pid).read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def fds(self):
        return len(os.listdir("/proc/%d/fd" % self.pid))

    def alive(self):
        return self.child.poll() is None

    def text(self):
        return self.log.read_text(errors="replace")

    def stop(self, how=signal.SIGTERM, seconds=40):
        if self.alive():
            self.child.send_signal(how)
        try:
            code = self.child.wait(seconds)
        except subprocess.TimeoutExpired:
            self.child.kill()
            self.child.wait()
            code = "nothing: it did not end within %d s" % seconds
        if self.child.stdout:
            self.child.stdout.close()
        return code


class Target:
    """The server, who may use it, and a client that does nothing wrong."""

    def __init__(self, flyball, folder, flags=(), **process):
        self.flyball, self.folder, self.flags, self.options = flyball, pathlib.Path(folder), list(flags), process
        self.data = self.folder / "data"
        self.port, self.process, self.secrets = free_port(), None, set(USERS)
        (self.folder / "users.csv").write_text("".join(
            '%s,%s,,"%s"\n' % (token, name, ",".join(groups)) for token, (name, groups) in USERS.items()))

    def start(self):
        self.process = Process([self.flyball, "apiserver", "--data", self.data, "--listen", "127.0.0.1:%d" % self.port,
                                "--token-file", self.folder / "users.csv", "--log-requests", *self.flags],
                               self.folder / "server.log", **self.options)
        words = self.process.child.stdout.readline().split()
        if len(words) != 4:
            answer = [line for line in self.process.text().splitlines() if " info request " not in line]
            raise AssertionError("the server did not start: " + "\n".join(answer)[-1000:])
        self.authority = str(self.data / "ca.crt")
        self.admin_token = (self.data / "admin.token").read_text().strip()
        self.reader_token = (self.data / "reader.token").read_text().strip()
        self.secrets |= {self.admin_token, self.reader_token, SECRET_VALUE, base64.b64encode(
            SECRET_VALUE.encode()).decode()}
        self.admin = Client(self, self.admin_token)
        return self

    def measure_base(self):
        self.health()
        self.base_fds = self.process.fds()

    def socket(self, alpn="http/1.1", timeout=15, receive_bytes=None, cert=None):
        """A TLS connection to write bytes to."""
        raw = socket.socket()
        if receive_bytes:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        raw.settimeout(timeout)
        raw.connect(("127.0.0.1", self.port))
        return context(self.authority, cert, (alpn,)).wrap_socket(raw, server_hostname="127.0.0.1")

    # --- what must hold

    def latency(self):
        """Time to create, read and delete an object, in CPU seconds of the server."""
        client = Client(self, self.admin_token, timeout=SETTLE_S)
        begin = self.process.cpu_s()
        path = "/api/v1/namespaces/default/configmaps"
        made = client.must("POST", path, {"metadata": {"generateName": "healthy-"}, "data": {"a": "b"}})
        name = made["metadata"]["name"]
        assert client.must("GET", path + "/" + name)["data"] == {"a": "b"}
        client.must("DELETE", path + "/" + name)
        client.close()
        return self.process.cpu_s() - begin

    def health(self, bound=ANSWER_S):
        assert self.process.alive(), "the server ended with %s: %s" % (self.process.child.poll(),
                                                                      self.process.text()[-1500:])
        at_most(self.latency(), bound, "a healthy client waited for %.1f s of the server's CPU (bound %.1f)")

    def check(self):
        """After an attack."""
        self.health()
        settled = until(lambda: self.process.fds() <= self.base_fds + FD_SLACK and
                        self.process.rss_mib() <= RSS_AFTER_MIB * Scale.times, SETTLE_S)
        fds, rss, peak = self.process.fds(), self.process.rss_mib(), self.process.peak_mib()
        assert settled, "afterwards: %d descriptors (%d before), RSS %d MiB (bound %d)" % (
            fds, self.base_fds, rss, RSS_AFTER_MIB * Scale.times)
        at_most(peak, RSS_PEAK_MIB, "RSS rose to %d MiB (bound %d)")
        self.check_log()

    def check_log(self):
        text = self.process.text()
        found = SANITIZER.search(text)
        assert not found, text[found.start():][:2000] if found else ""
        for secret in self.secrets:
            assert secret not in text, "a secret is in the log: %s..." % secret[:12]
        assert "PRIVATE KEY" not in text, "a key is in the log"

    def stop(self, how=signal.SIGTERM):
        return self.process.stop(how) if self.process else 0


class Bystander(threading.Thread):
    """A client that does nothing wrong while an attack goes on, and how long it had to wait."""

    def __init__(self, target):
        super().__init__(daemon=True)
        self.target, self.ended, self.longest, self.failure = target, threading.Event(), 0, None

    def run(self):
        while not self.ended.wait(0.1):
            try:
                self.longest = max(self.longest, self.target.latency())
            except Exception as why:  # reported by check()
                self.failure = why
                return

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join(2 * SETTLE_S)

    def check(self):
        assert not self.failure, "meanwhile a healthy client was not served: %s" % self.failure
        at_most(self.longest, ANSWER_DURING_S, "meanwhile a healthy client waited for %.1f s of the server's CPU (bound %.1f)")


class Attack:
    """One row of the table."""

    def __init__(self, name, run, fresh):
        self.name, self.run, self.fresh = name, run, fresh
        self.count, self.rounds, self.peak, self.outcome, self.skipped = 0, 0, 0, "", ""


ATTACKS = []


def attack(name, fresh=False):
    """Registers run(target, choose, long): what it tried, as a number. `fresh`: it brings processes of its own, and
    gets the flyball binary and a folder in place of a target."""
    def add(run):
        ATTACKS.append(Attack(name, run, fresh))
        return run
    return add


def scratch():
    return tempfile.TemporaryDirectory(prefix="flyball-attack-")
