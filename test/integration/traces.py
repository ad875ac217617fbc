#!/usr/bin/python3
"""Traces: what a collector of OpenTelemetry receives from `flyball up`.

    traces.py FLYBALL

The collector is a few lines of HTTP here, because none is packaged. It reads the batches with a decoder of its own, and with
the Python package opentelemetry-proto as well where that is installed. Speaks TAP.
"""
import http.server
import os
import re
import struct
import subprocess
import sys
import tempfile
import threading
import time

import harness
from harness import Tap, until

FLYBALL = os.path.abspath(sys.argv[1])
try:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
except ImportError:
    ExportTraceServiceRequest = None


def fields(message):
    """Field numbers and values of a protobuf message."""
    at, found = 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7f) << shift
            shift += 7
            if byte < 0x80:
                return value
    while at < len(message):
        key = varint()
        if key & 7 == 0:
            value = varint()
        elif key & 7 == 1:
            value, at = struct.unpack_from("<Q", message, at)[0], at + 8
        else:
            assert key & 7 == 2, key
            length = varint()
            value, at = message[at:at + length], at + length
            assert len(value) == length
        found.append((key >> 3, value))
    return found


def one(message, number):
    return next((value for n, value in fields(message) if n == number), None)


def attributes(message, number):
    found = {}
    for pair in (value for n, value in fields(message) if n == number):
        (kind, value), = fields(one(pair, 2))
        found[one(pair, 1).decode()] = value.decode() if kind == 1 else value
    return found


def spans(body):
    """The spans of a batch, each with the attributes of its resource."""
    if ExportTraceServiceRequest:
        ExportTraceServiceRequest.FromString(body)
    (number, whole), = fields(body)
    assert number == 1
    scope_spans = one(whole, 2)
    assert one(one(scope_spans, 1), 1) == b"flyball"
    for n, span in fields(scope_spans):
        if n != 2:
            continue
        status = one(span, 15)
        yield {"trace": one(span, 1), "id": one(span, 2), "parent": one(span, 4), "name": one(span, 5).decode(),
               "start": one(span, 7), "end": one(span, 8), "at": attributes(span, 9),
               "error": status and one(status, 2).decode(), "resource": attributes(one(whole, 1), 1)}


class Collector(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, status=200):
        super().__init__(("127.0.0.1", 0), Handler)
        self.status, self.requests = status, []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.server_port

    def spans(self):
        return [span for _, _, body in list(self.requests) for span in spans(body)]


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.requests.append((self.path, headers, body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


def up(folder, **env):
    return harness.Up(FLYBALL, folder + "/data", "--testbed", "all", "--speed", "10", env=env)


def every_step_is_a_span(folder):
    began = time.time_ns()
    collector = Collector()
    run = up(folder, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url + "/", OTEL_SERVICE_NAME="a b",
             OTEL_RESOURCE_ATTRIBUTES="deployment.environment=te%20st,service.name=other",
             OTEL_EXPORTER_OTLP_HEADERS="X-Token=s%3Dcret,other=1")
    wanted = {"reconcile", "collect", "analyze", "decide", "actuate"}
    try:
        assert until(lambda: wanted <= {s["name"] for s in collector.spans()}, 90), {s["name"] for s in collector.spans()}
        assert until(lambda: any(s["name"] == "decide" and "->" in s["at"].get("replicas", "") for s in collector.spans()), 90)
        text = run.metrics()
        assert re.search(r'flyball_trace_spans_total\{result="sent"\} [1-9]', text), text
    finally:
        run.stop()
    path, headers, _ = collector.requests[0]
    assert path == "/v1/traces" and headers["content-type"] == "application/x-protobuf", (path, headers)
    assert headers["x-token"] == "s=cret" and headers["other"] == "1", headers
    assert "s=cret" not in run.text()
    found = collector.spans()
    ids = {s["id"]: s for s in found}
    assert len(ids) == len(found), "ids are unique"
    for s in found:
        assert len(s["trace"]) == 16 and len(s["id"]) == 8, s
        assert began <= s["start"] <= s["end"] <= time.time_ns(), s
        assert s["resource"]["service.name"] == "a b" and s["resource"]["deployment.environment"] == "te st", s
        if s["name"] in ("analyze", "decide", "actuate"):
            assert s["parent"], s
            turn = ids.get(s["parent"])  # the last turns before the stop are not sent
            assert not turn or turn["name"] == "reconcile" and turn["trace"] == s["trace"], (s, turn)
    decided = next(s for s in found if s["name"] == "decide" and "model" in s["at"])
    assert decided["at"]["k8s.namespace.name"] == "llm" and decided["at"]["variants"] >= 1, decided
    controllers = {s["at"].get("controller") for s in found if s["name"] == "reconcile"}
    assert len(controllers) > 3 and "saturation-engine" in controllers, controllers


def a_collector_that_fails_costs_only_its_spans(folder):
    collector = Collector(status=503)
    run = up(folder, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=collector.url + "/some/path")
    try:
        assert until(lambda: len(collector.requests) >= 3, 60)
        bodies = [body for _, _, body in collector.requests[:3]]
        assert bodies[0] == bodies[1] == bodies[2], "the batch that failed is sent again"
        assert collector.requests[0][0] == "/some/path", collector.requests[0][0]
        collector.status = 400  # final: the batch is dropped, the next one is sent
        assert until(lambda: len({body for _, _, body in collector.requests}) >= 2, 90)
        assert re.search(r'flyball_trace_spans_total\{result="dropped"\} [1-9]', run.metrics())
    finally:
        assert run.stop() == 0, run.text()


def it_is_off_by_default(folder):
    for env in ({}, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"}):
        run = up(folder, **env)
        try:
            assert "flyball_trace_spans_total" not in run.metrics()
        finally:
            run.stop()


def bad_settings_turn_it_off(folder):
    """A program must not stop because it cannot be watched: others set these variables for all pods of a cluster."""
    def logged(**env):
        done = subprocess.run([FLYBALL, "up", "--data", folder + "/x", "--for", "1s", "--testbed", "empty"],
                              env={**os.environ, **env}, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0 and "no traces are sent" in done.stderr, done
        return done.stderr
    there = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}
    assert "ftp" in logged(OTEL_EXPORTER_OTLP_ENDPOINT="ftp://127.0.0.1")
    assert "must be a number from 0 to 1" in logged(**there, OTEL_TRACES_SAMPLER="traceidratio", OTEL_TRACES_SAMPLER_ARG="2")
    assert "always_on, always_off or traceidratio" in logged(**there, OTEL_TRACES_SAMPLER="jaeger")
    said = logged(OTEL_EXPORTER_OTLP_ENDPOINT="http://192.0.2.1:4318", OTEL_EXPORTER_OTLP_HEADERS="authorization=secret")
    assert "only over HTTPS or to loopback" in said and "secret" not in said, said
    assert "is not valid" in logged(**there, OTEL_EXPORTER_OTLP_HEADERS="a b=1")


def main():
    tap = Tap()
    for case in (every_step_is_a_span, a_collector_that_fails_costs_only_its_spans, it_is_off_by_default,
                 bad_settings_turn_it_off):
        with tempfile.TemporaryDirectory(prefix="flyball-traces-", ignore_cleanup_errors=True) as folder:
            tap.run(case, folder)
    tap.end()


main()
