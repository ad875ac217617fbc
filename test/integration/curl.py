#!/usr/bin/python3
"""Third-party clients against the HTTP server: curl (HTTP/1.1, HTTP/2, HTTP/2 without TLS) and,
where installed, h2load. Usage: curl.py HTTPD, the program of test/support/httpd.c. Speaks TAP.
"""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

from harness import Tap, need


class Server:
    def __init__(self, program, *args):
        self.process = subprocess.Popen([program, *args], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())

    def stop(self, with_signal=None):
        if with_signal:
            self.process.send_signal(with_signal)
        else:
            self.process.stdin.close()
        return self.process.wait(30)


CASES = []


def case(function):
    CASES.append(function)
    return function


class Curl:
    """curl in one way of talking to one server."""

    def __init__(self, server, folder, option, tls, version):
        scheme = "https" if tls else "http"
        self.base = f"{scheme}://localhost:{server.port}"
        self.fixed = ["curl", "-sS", "-m", "20", "--noproxy", "*", option]
        if tls:
            self.fixed += ["--cacert", f"{folder}/ca.pem"]
        self.tls, self.version, self.folder, self.name = tls, version, folder, f"{scheme} {option}"

    def __call__(self, path, *options, data=None):
        more = ["--data-binary", "@-"] if data is not None else []
        return subprocess.run([*self.fixed, *options, *more, self.base + path], input=data or b"",
                              capture_output=True, timeout=60)

    def text(self, path, *options, data=None):
        done = self(path, *options, data=data)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def status(self, path, *options, data=None):
        return self.text(path, "-o", "/dev/null", "-w", "%{http_code}", *options, data=data).decode()


@case
def small_answers(curl):
    assert curl.text("/hello") == b"hello\n"
    assert curl.text("/hello", "-w", "%{http_version}") == b"hello\n" + curl.version.encode()
    assert curl.status("/nowhere") == "404"
    assert curl.text("/later") == b"later\n"


@case
def bodies_come_back(curl):
    small, large = b"hello", os.urandom(2_000_000)
    assert curl.text("/echo", data=small) == small
    assert curl.text("/echo", data=large) == large
    assert curl.text("/echo", "-H", "Transfer-Encoding: chunked", data=large[:100_000]) == large[:100_000]


@case
def too_large_bodies_are_refused(curl):
    assert curl.status("/echo", data=bytes(4_000_000)) == "413"


@case
def too_large_headers_are_refused(curl):
    many = [word for i in range(30) for word in ("-H", f"x-{i}: {'a' * 2500}")]
    done = curl("/hello", *many)
    assert b"hello" not in done.stdout
    assert done.returncode != 0 or b"431" in done.stdout


@case
def lists_are_streamed_and_compressed(curl):
    plain = curl.text("/list?lines=200000")
    assert plain.count(b"\n") == 200_000 and plain.endswith(b"line 1\n")
    assert curl.text("/list?lines=200000", "--compressed") == plain
    size = curl.text("/list?lines=200000", "-H", "Accept-Encoding: gzip")
    assert len(size) < len(plain) / 2 and size[:2] == b"\x1f\x8b"
    big = curl.text("/big")
    assert curl.text("/big", "--compressed") == big and len(big) > 1_000_000
    head = curl.text("/big", "-I").decode().lower()
    assert f"content-length: {len(big)}" in head


@case
def watches_deliver_events(curl):
    assert curl.text("/watch").decode().split("\n")[:5] == [f"event {i}" for i in range(1, 6)]


@case
def aborted_answers_are_seen(curl):
    assert curl("/abort").returncode != 0


@case
def identity_comes_from_certificates(curl):
    who = curl.text("/whoami")
    assert who == b"anonymous\n"
    if curl.tls:
        files = ["--cert", f"{curl.folder}/client.pem", "--key", f"{curl.folder}/client.key"]
        assert curl.text("/whoami", *files) == b"alice dev ops\n"


@case
def connections_are_reused(curl):
    if curl.version == "2" and not curl.tls:
        return  # curl 7.88 then fails on its second request, without sending it
    paths = [curl.base + p for p in ("/later", "/list?lines=3")]
    out = curl.text("/hello", "-w", "[%{num_connects}]", *paths).decode()
    assert out.count("[1]") == 1 and out.count("[0]") == 2, out


@case
def load_is_carried(curl):
    if not shutil.which("h2load") or curl.version != "2":
        return
    done = subprocess.run(["h2load", "-n", "2000", "-c", "4", "-m", "20", curl.base + "/hello"],
                          capture_output=True, text=True, timeout=120)
    assert "2000 succeeded, 0 failed" in done.stdout, done.stdout


def main():
    need("curl")
    program, tap = sys.argv[1], Tap()
    with tempfile.TemporaryDirectory() as folder:
        plain, secure = Server(program), Server(program, "--tls", folder)
        ways = [Curl(plain, folder, "--http1.1", False, "1.1"),
                Curl(plain, folder, "--http2-prior-knowledge", False, "2"),
                Curl(secure, folder, "--http1.1", True, "1.1"),
                Curl(secure, folder, "--http2", True, "2")]
        for way in ways:
            for test in CASES:
                tap.run(test, way, name=f"{way.name}: {test.__name__}")
        tap.say(plain.stop() == 0, "the server ends cleanly at the end of its input")
        tap.say(secure.stop(signal.SIGTERM) == 0, "the server ends cleanly on SIGTERM, after a drain")
    tap.end()


main()
