"""Hostile and broken API servers for `flyball operator`: it must live, stay small, ask at a decent pace, send its token
to no other host, and exit on SIGTERM.

The server below knows discovery, lists and watches of every kind flyball asks for, all empty; each fault replaces some
of that. Faults run side by side, each with an operator of its own."""
import concurrent.futures
import functools
import http.server
import json
import pathlib
import re
import signal
import socket
import socketserver
import ssl
import subprocess
import threading
import time

from access import make_certificate, openssl
from target import Process, Scale, attack

TOKEN = "operator-token-7d1f0a"
SECONDS = 4
RSS_MIB = 128
REQUESTS = 400   # in SECONDS: what a start takes (some 60), and backoffs
CPU_S = 3.0
KINDS = {"VariantAutoscaling": "llmd.ai/v1alpha1", "SmartHorizontalPodAutoscaler": "autoscaling.sarabala.io/v1alpha1",
         "AIMService": "aim.silogen.ai/v1alpha1", "PodAllocation": "allocation.mbcas.io/v1alpha1"}
PLURALS = {"variantautoscalings": "VariantAutoscaling", "smarthorizontalpodautoscalers": "SmartHorizontalPodAutoscaler",
           "aimservices": "AIMService", "aimmodels": "AIMModel", "aimruntimeconfigs": "AIMRuntimeConfig",
           "aimclusterruntimeconfigs": "AIMClusterRuntimeConfig", "aimservicetemplates": "AIMServiceTemplate",
           "podallocations": "PodAllocation", "pods": "Pod", "nodes": "Node", "configmaps": "ConfigMap",
           "deployments": "Deployment", "horizontalpodautoscalers": "HorizontalPodAutoscaler"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except (OSError, ValueError):
            pass  # the operator went away in the middle of it: so it should

    def do_GET(self):
        fault = self.server.fault
        self.server.note(self)
        watch = "watch=" in self.path
        if fault.answer(self, watch):
            return
        if watch:
            self.stream()
            return
        if self.command == "GET":
            self.reply(200, self.listed([]))
            return
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        try:
            self.reply(200 if self.command != "POST" else 201, json.loads(body))
        except ValueError:
            self.reply(200, {})

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def plural(self):
        return self.path.split("?")[0].rstrip("/").split("/")[-1]

    def listed(self, items, more=None):
        kind = PLURALS.get(self.plural(), "Thing")
        return {"kind": kind + "List", "apiVersion": self.version(), "metadata": {"resourceVersion": "1", **(more or {})},
                "items": items}

    def version(self):
        found = re.match(r"/apis/([^/]+/[^/]+)", self.path)
        return found[1] if found else "v1"

    def object(self, name="x", **more):
        return {"apiVersion": self.version(), "kind": PLURALS.get(self.plural(), "Thing"), "metadata": {
            "name": name, "namespace": "default", "uid": "u-" + name, "resourceVersion": "1", "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z"}, **more}

    def head(self, status, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()

    def reply(self, status, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.head(status, [("Content-Type", "application/json"), ("Content-Length", str(len(data))), *headers])
        self.wfile.write(data)

    def stream(self, parts=()):
        """A watch: the parts, then silence until the end."""
        self.head(200, [("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")])
        for part in parts:
            data = part if isinstance(part, bytes) else json.dumps(part).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.server.over.wait(60)
        self.close_connection = True

    def status(self, code, reason, headers=()):
        self.reply(code, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason, "code": code,
                          "message": reason}, headers)
        return True


class Fault:
    """One bad server. `answer` returns True when it answered in the place of the good one."""

    def __init__(self, name, answer=None, tls=None, after=None):
        self.name, self.tls, self.after = name, tls, after
        self.answer = answer or (lambda request, watch: False)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, fault, tls=None):
        super().__init__(("127.0.0.1", 0), Handler)
        self.fault, self.over, self.requests, self.tokens, self.other = fault, threading.Event(), 0, 0, None
        self.tls = tls
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def get_request(self):
        raw, address = super().get_request()
        if self.tls:
            raw.settimeout(5)
            raw = self.tls.wrap_socket(raw, server_side=True, do_handshake_on_connect=False)
        return raw, address

    def handle_error(self, *_):
        pass

    def note(self, request):
        self.requests += 1
        self.tokens += TOKEN in (request.headers.get("Authorization") or "")

    def end(self):
        self.over.set()
        self.shutdown()
        self.server_close()


# ---- the faults


def on_lists(do):
    def answer(request, watch):
        return not watch and request.command == "GET" and do(request) is not False
    return answer


def on_watches(do):
    def answer(request, watch):
        return watch and do(request) is not False
    return answer


def endless_list(request):
    request.head(200, [("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")])
    start = b'{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":['
    request.wfile.write(b"%x\r\n%s\r\n" % (len(start), start))
    many = b"".join(json.dumps(request.object("x-00000000-%d" % i, spec={"a": "b" * 200})).encode() + b"," for i in range(500))
    number = 0
    while not request.server.over.is_set():
        number += 1
        part = many.replace(b"00000000", b"%08d" % number)
        request.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))


def endless_pages(request):
    request.server.pages = getattr(request.server, "pages", 0) + 1
    n = request.server.pages
    request.reply(200, request.listed([request.object("x-%d-%d" % (n, i)) for i in range(500)], {"continue": "page-%d" % n}))


def giant_object(request):
    size = 200 << 20
    text = b'{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[{"metadata":{"name":"x","namespace":"d"' \
           b',"uid":"u"},"spec":{"a":"'
    request.head(200, [("Content-Type", "application/json"), ("Content-Length", str(size))])
    request.wfile.write(text)
    for _ in range(size // 65536):
        if request.server.over.is_set():
            return
        request.wfile.write(b"x" * 65536)


def deep(request):
    request.reply(200, b'{"items":' + b"[" * 500000 + b"]" * 500000 + b"}")


def hang(request):
    request.server.over.wait(60)
    request.close_connection = True


def raw(data, close=True):
    def do(request):
        request.wfile.write(data)
        request.wfile.flush()
        request.close_connection = close
    return do


def items(*bodies):
    """Lists of objects of every shape."""
    def do(request):
        made = []
        for number, body in enumerate(bodies):
            one = request.object("x-%d" % number)
            one.update(body) if isinstance(body, dict) else None
            made.append(one if isinstance(body, dict) else body)
        request.reply(200, request.listed(made))
    return do


ODD = [None, "x", 5, -1.5, True, [], {}, [1], [None], [[]], {"conditions": "x"}, {"conditions": [1, None, {"type": 5}]},
       {"a": {"b": {"c": []}}}, {"conditions": {"type": "Ready"}}]
SHAPES = [{"status": odd, "spec": {}} for odd in ODD] + [{"spec": odd} for odd in ODD] + [
    {"spec": {"scaleTargetRef": odd, "modelID": odd, "triggers": odd, "HPAObjectRef": odd, "model": odd, "routing": odd}}
    for odd in ODD] + [{"status": {"resolvedRuntimeConfig": odd, "desiredOptimizedAlloc": odd, "routing": odd, "cpu": odd}}
                       for odd in ODD]
META = [{"metadata": odd} for odd in (None, "x", 5, [], {}, {"name": 5}, {"name": ""}, {"name": "x" * 5000}, {"name": "a/../b"},
                                      {"name": "x", "labels": []}, {"name": "x", "annotations": {"a": 5}})]


def slow_drip(request):
    body = json.dumps(request.listed([])).encode()
    request.head(200, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
    for at in range(len(body)):
        if request.server.over.wait(0.5):
            return
        request.wfile.write(body[at:at + 1])


def redirect(code):
    def do(request):
        request.reply(code, b"", [("Location", "http://127.0.0.1:%d%s" % (request.server.other.server_port, request.path))])
    return do


def watch_of(*parts):
    return on_watches(lambda request: request.stream(part(request) if callable(part) else part for part in parts))


def event_flood(request):
    one = json.dumps({"type": "MODIFIED", "object": request.object()}).encode() + b"\n"
    request.head(200, [("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")])
    while not request.server.over.is_set():
        request.wfile.write(b"%x\r\n%s\r\n" % (len(one) * 100, one * 100))
        time.sleep(0.005)


def new_names(request):
    request.head(200, [("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")])
    many = b"".join(json.dumps({"type": "ADDED", "object": request.object("n-00000000-%d" % i, spec={"a": "b" * 1000})}).encode() +
                    b"\n" for i in range(200))
    number = 0
    while not request.server.over.is_set():
        number += 1
        part = many.replace(b"00000000", b"%08d" % number)
        request.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))


def endless_line(request):
    request.head(200, [("Content-Type", "application/json"), ("Transfer-Encoding", "chunked")])
    while not request.server.over.is_set():
        request.wfile.write(b"10000\r\n%s\r\n" % (b'{"a":"' + b"x" * 65530))


def faults():
    lists, watches = on_lists, on_watches
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}
    yield Fault("answers nothing", lambda r, w: hang(r) is None)
    yield Fault("closes at once", lambda r, w: raw(b"")(r) is None)
    yield Fault("garbage", lambda r, w: raw(bytes(range(256)) * 20)(r) is None)
    yield Fault("no HTTP status", lambda r, w: raw(b"HTTP/1.1 abc\r\n\r\n")(r) is None)
    yield Fault("endless headers", lambda r, w: raw(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200000)(r) is None)
    yield Fault("two lengths", lists(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 5\r\n\r\n{}xyz")))
    yield Fault("negative length", lists(raw(b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}")))
    yield Fault("bad chunks", lists(raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n")))
    yield Fault("chunks cut off", lists(raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{\"items\":[")))
    yield Fault("bodies cut off", lists(raw(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"items\":[")))
    yield Fault("letters one by one", lists(slow_drip))
    yield Fault("lists without end", lists(endless_list))
    yield Fault("pages without end", lists(endless_pages))
    yield Fault("giant objects", lists(giant_object))
    yield Fault("deep nesting", lists(deep))
    yield Fault("no JSON", lists(lambda r: r.reply(200, b"<html>hello</html>")))
    yield Fault("JSON that is no list", lists(lambda r: r.reply(200, b'"x"')))
    yield Fault("items are text", lists(lambda r: r.reply(200, {"items": "x", "metadata": 5})))
    yield Fault("items of every shape", lists(items(*SHAPES)))
    yield Fault("items that are no objects", lists(items(*ODD)))
    yield Fault("odd metadata", lists(items(*META)))
    yield Fault("the same name many times", lists(lambda r: r.reply(200, r.listed([r.object("x") for _ in range(1000)]))))
    yield Fault("gzip that is none", lists(lambda r: r.reply(200, b"x" * 100, [("Content-Encoding", "gzip")])))
    yield Fault("always 401", lambda r, w: r.status(401, "Unauthorized"))
    yield Fault("always 403", lambda r, w: r.status(403, "Forbidden"))
    yield Fault("always 404", lambda r, w: r.status(404, "NotFound"))
    yield Fault("always 409", lambda r, w: r.status(409, "Conflict"))
    yield Fault("always 410", lambda r, w: r.status(410, "Expired"))
    yield Fault("always 429, Retry-After 0", lambda r, w: r.status(429, "TooManyRequests", [("Retry-After", "0")]))
    yield Fault("always 429, Retry-After huge", lambda r, w: r.status(429, "TooManyRequests", [("Retry-After", "9" * 30)]))
    yield Fault("always 500", lambda r, w: r.status(500, "InternalError"))
    yield Fault("always 503, Retry-After 0", lambda r, w: r.status(503, "ServiceUnavailable", [("Retry-After", "0")]))
    yield Fault("1xx without end", lambda r, w: raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 100000)(r) is None)
    yield Fault("redirects elsewhere 302", lambda r, w: redirect(302)(r) is None)
    yield Fault("redirects elsewhere 307", lambda r, w: redirect(307)(r) is None)
    yield Fault("watches end at once", watches(lambda r: r.reply(200, b"")))
    yield Fault("watches that are 410", watch_of(gone))
    yield Fault("watches of garbage", watch_of(b"\xff\xfe{{{{\n" * 1000))
    yield Fault("watches of odd events", watch_of(*({"type": odd, "object": odd} for odd in ODD)))
    yield Fault("watches of odd objects", watches(lambda r: r.stream(
        {"type": kind, "object": {**r.object("x-%d" % n), **shape}} for n, shape in enumerate(SHAPES)
        for kind in ("ADDED", "MODIFIED", "DELETED"))))
    yield Fault("event floods", watches(event_flood))
    yield Fault("new names without end", watches(new_names))
    yield Fault("events without end", watches(endless_line))


# ---- an operator on each


def write_kubeconfig(folder, name, url, authority=None):
    cluster = {"server": url, **({"certificate-authority": authority} if authority else {})}
    path = pathlib.Path(folder, name + ".kubeconfig")
    path.write_text(json.dumps({
        "apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": cluster}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {"token": TOKEN}}]}))
    return path


@functools.lru_cache
def memory_limit():
    """Words that run a command where the files of the control group state a limit of RSS_MIB, as in the shipped
    manifest: the operator's budgets follow from it. [] where that needs more rights than we have; it then takes the
    whole machine for its own, and may."""
    words = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs limit /sys/fs/cgroup && echo %d >/sys/fs/cgroup/memory.max && "
             "exec \"$@\"" % (RSS_MIB << 20), "limit"]
    return words if subprocess.run([*words, "true"], capture_output=True).returncode == 0 else []


def run_operator(flyball, folder, fault, number, seconds):
    """What was wrong, or "". """
    server = Server(fault, fault.tls)
    other = server.other = Server(Fault("elsewhere"))
    scheme = "https" if fault.tls else "http"
    config = write_kubeconfig(folder, "s%d" % number, "%s://127.0.0.1:%d" % (scheme, server.server_port), fault.after)
    process = Process([flyball, "operator", "--kubeconfig", config, "--leader-elect=false", "--listen", "none"],
                      "%s/operator-%d.log" % (folder, number), before=memory_limit())
    wrong, peak, end = [], 0, time.monotonic() + seconds
    while time.monotonic() < end and process.alive():
        peak = max(peak, process.rss_mib())
        time.sleep(0.1)  # looked at from outside: there is no event to wait for
    if process.alive():
        peak = max(peak, process.peak_mib())
        cpu = process.cpu_s()
        if peak > RSS_MIB * Scale.times and (memory_limit() or fault.name != "new names without end"):
            wrong.append("RSS %d MiB" % peak)
        if cpu > CPU_S * Scale.times * seconds / SECONDS:
            wrong.append("%.1f s of CPU" % cpu)
        if server.requests > REQUESTS * seconds / SECONDS:
            wrong.append("%d requests in %d s" % (server.requests, seconds))
    code = process.stop(signal.SIGTERM, 30)
    if code not in (0, 1):  # 1: an error it cannot recover from
        wrong.append("it ended with %s: %s" % (code, process.text()[-300:]))
    if other.tokens:
        wrong.append("the token went to another host")
    if fault.tls and server.tokens:
        wrong.append("the token went to a server without a good certificate")
    if TOKEN in process.text():
        wrong.append("the token is in the log")
    server.end()
    other.end()
    return "%s: %s" % (fault.name, ", ".join(wrong)) if wrong else ""


def bad_certificates(folder):
    """Servers with a certificate that the client must reject."""
    authority = make_certificate(folder, "ca", "/CN=the authority")
    pathlib.Path(folder, "san.ext").write_text("subjectAltName=DNS:elsewhere.example\n")
    for name in ("self-signed", "another host"):
        base = str(pathlib.Path(folder, name.replace(" ", "-")))
        if name == "self-signed":
            pair = make_certificate(folder, "self", "/CN=127.0.0.1", use="serverAuth")
        else:
            openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", base + ".key", "-out",
                    base + ".csr", "-subj", "/CN=elsewhere.example")
            openssl("x509", "-req", "-in", base + ".csr", "-out", base + ".crt", "-days", "1", "-extfile",
                    str(pathlib.Path(folder, "san.ext")), "-CA", authority[0], "-CAkey", authority[1], "-CAcreateserial")
            pair = (base + ".crt", base + ".key")
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*pair)
        yield Fault("certificate: " + name, None, tls, authority[0])


@attack("bad API servers", fresh=True)
def bad_servers(flyball, folder, choose, long):
    every = [*faults(), *bad_certificates(folder)]
    choose.shuffle(every)
    seconds = 20 if long else SECONDS
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        wrong = [w for w in pool.map(lambda pair: run_operator(flyball, folder, pair[1], pair[0], seconds), enumerate(every)) if w]
    assert not wrong, "%d of %d: %s" % (len(wrong), len(every), " | ".join(wrong))
    return len(every)


@attack("API server that is no server", fresh=True)
def no_server(flyball, folder, choose, long):
    """Nothing listens, and a port that speaks junk instead of TLS."""
    wrong = []
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # bound, but not listening: refused
        junk = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=speak_junk, args=(junk,), daemon=True).start()
        for number, (port, scheme) in enumerate(((closed.getsockname()[1], "http"), (junk.getsockname()[1], "https"))):
            config = write_kubeconfig(folder, "n%d" % number, "%s://127.0.0.1:%d" % (scheme, port))
            process = Process([flyball, "operator", "--kubeconfig", config, "--listen", "none", "--lease-namespace", "default"],
                              "%s/none-%d.log" % (folder, number))
            time.sleep(2)
            cpu = process.cpu_s() if process.alive() else 0
            code = process.stop(signal.SIGTERM, 30)
            if code not in (0, 1) or cpu > Scale.times:
                wrong.append("%s: ended with %s, %.1f s of CPU" % (scheme, code, cpu))
        junk.close()
    assert not wrong, "; ".join(wrong)
    return 2


def speak_junk(listener):
    while True:
        try:
            peer, _ = listener.accept()
            with peer:
                peer.sendall(b"SSH-2.0-OpenSSH_9.2\r\n" * 10)
        except OSError:
            return
