#!/usr/bin/python3
"""The live page over HTTP, without a browser: who may see it, what the stream sends, and how a client continues.
Usage: page.py FLYBALL. Speaks TAP. test/browser/page.py looks at the page itself.
"""
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse

from harness import Embedded, Tap, Up, free_port, need, until

FLYBALL = str(pathlib.Path(sys.argv[1]).resolve())
PRIVATE = ("/events", "/detail?kind=pod&key=a/b", "/series?kind=pod&key=a/b", "/nothing", "/../state.db", "//")


class Page:
    """A client of one page, with its cookies."""

    def __init__(self, port):
        self.port, self.cookie = port, None

    def ask(self, path, method="GET", **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.cookie and "cookie" not in headers:
            headers["cookie"] = self.cookie
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        if answer.headers.get("content-type") != "text/event-stream":
            answer.text = answer.read().decode()
            connection.close()
        return answer

    def login(self, url):
        answer = self.ask(url[url.index("/login"):])
        if answer.status == 303:
            self.cookie = answer.headers["set-cookie"].split(";")[0]
        return answer

    def stream(self, **headers):
        """The messages of the stream, as (id, event, data), until the caller stops asking."""
        answer = self.ask("/events", **headers)
        assert answer.status == 200, answer.status
        message = {}
        for line in answer:
            line = line.decode().rstrip("\n")
            if line:
                name, _, value = line.partition(": ")
                message[name] = value
            else:
                if "data" in message:
                    yield message.get("id"), message.get("event"), json.loads(message["data"])
                message = {}

    def read(self, enough, **headers):
        """Reads until `enough(objects)`; returns the objects by (kind, key), the last id and the events."""
        objects, events, last = {}, [], None
        for number, event, data in self.stream(**headers):
            if event:
                events.append(event)
                continue
            last = number
            for kind, key, value in data:
                objects[kind, key] = value
            if enough(objects):
                return objects, last, events
        raise AssertionError("the stream ended")


class Run:
    """`flyball up` with a page on one port for its whole life."""

    def __init__(self, folder, scenario):
        self.data, self.port, self.scenario = folder + "/data-" + scenario, free_port(), scenario
        self.start()

    def start(self):
        self.up = Up(FLYBALL, self.data, "--testbed", self.scenario, "--speed", "20", "--web-listen",
                     "127.0.0.1:%d" % self.port)
        self.url = re.search(r"Page: +(\S+)", self.up.text())[1]
        self.page = Page(self.port)


def a_login_link_works_once(run):
    assert Page(run.port).ask(run.url[run.url.index("/login"):], "HEAD").status == 405  # looked at, not used
    answer = run.page.login(run.url)
    assert answer.status == 303 and answer.headers["location"] == "/", answer.status
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Path=/" in cookie, cookie
    assert run.url.split("token=")[1] not in cookie
    assert Page(run.port).login(run.url).status == 403
    again = pathlib.Path(run.data, "page.url").read_text().strip()
    assert again != run.url and Page(run.port).login(again).status == 303
    for bad in ("/login", "/login?token=", "/login?token=%00", "/login?token=" + "0" * 32, "/login?token=" + "a" * 5000):
        assert Page(run.port).ask(bad).status == 403, bad
    for name in ("page.url", "page.session"):
        assert os.stat(run.data + "/" + name).st_mode & 0o077 == 0, name


def nothing_without_a_session(run):
    name, _, value = run.page.cookie.partition("=")
    for cookie in ("", "x", name + "=", name + "=" + "0" * 32, name + "=" + value[:-1], name + "=" + value + "0",
                   "other=" + value, name + "x=" + value, ";;==;" + name):
        for path in PRIVATE:
            answer = Page(run.port).ask(path, cookie=cookie)
            assert answer.status == 401, (cookie, path, answer.status)
            assert "market" not in answer.text
    assert Page(run.port).ask("/detail", cookie="a=b; %s ; c=d" % run.page.cookie).status == 404  # it is found anywhere


def answers_are_safe_to_show(run):
    for path in ("/", "/page.css", "/page.js", "/login", "/detail", "/nothing"):
        headers = run.page.ask(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy, policy
        assert headers["x-content-type-options"] == "nosniff" and headers["cache-control"] == "no-store", path
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        for path in ("/", "/events", "/login", "/detail"):
            assert run.page.ask(path, method).status == 405, (method, path)
    page = run.page.ask("/").text
    assert "<style" not in page and "onclick" not in page and "http:" not in page and "//" not in page.replace("<!--", "")
    packed = http.client.HTTPConnection("127.0.0.1", run.port)
    packed.request("GET", "/page.js", headers={"accept-encoding": "gzip"})
    assert packed.getresponse().headers["content-encoding"] == "gzip"
    packed.close()


def the_stream_has_everything_once(run):
    objects, last, events = run.page.read(lambda o: any(k == "pod" for k, _ in o) and ("health", "flyball") in o)
    assert events == ["reset"], events
    pod = next(v for (kind, _), v in objects.items() if kind == "pod")
    assert pod[1] == "market-1", pod
    assert re.fullmatch(r"[0-9a-f]{8}-\d+", last), last
    more, later, events = run.page.read(lambda o: len(o) > 0, last_event_id=last)
    assert events == [], events
    assert int(later.split("-")[1]) > int(last.split("-")[1])
    assert len(more) < len(objects), (len(more), len(objects))
    for bad in ("nonsense", "", "-", "00000000-1", last.split("-")[0] + "-99999999999999999999",
                last.split("-")[0] + "--1", last + "x", "é"):
        _, _, events = run.page.read(lambda o: len(o) > 0, last_event_id=bad.encode("latin-1"))
        assert events == ["reset"], bad


def at_most_four_messages_per_second(run):
    times = []
    for _ in run.page.stream():
        times.append(time.monotonic())
        if times[-1] - times[0] > 6:
            break
    live = [t for t in times if t - times[0] > 1]
    assert live, "nothing changed"
    for t in live:
        assert sum(t <= other < t + 1 for other in live) <= 5, times  # 4, and one that was late


def details_and_history(run):
    objects, _, _ = run.page.read(lambda o: any(k == "node" for k, _ in o))
    key = next(key for kind, key in objects if kind == "pod")
    detail = json.loads(run.page.ask("/detail?kind=pod&key=" + urllib.parse.quote(key)).text)
    assert "usageCPU" in json.dumps(detail["status"]) or "appliedCPULimit" in json.dumps(detail["status"]), detail
    assert until(lambda: len(json.loads(run.page.ask("/series?kind=node&key=market-1").text)["t"]) >= 2)
    series = json.loads(run.page.ask("/series?kind=node&key=market-1").text)
    assert len(series["n"]) == 3 and all(len(c) == len(series["t"]) for c in series["n"]), series
    for bad in ("", "?kind=pod", "?key=x", "?kind=nonsense&key=x", "?kind=pod&key=%zz", "?kind=pod&key=../..",
                "?kind=health&key=", "?kind=pod&key=" + "x" * 9000):
        assert run.page.ask("/detail" + bad).status == 404, bad
        assert run.page.ask("/series" + bad).status == 404, bad


def hundreds_of_clients(run):
    sockets = []
    for _ in range(200):
        s = socket.create_connection(("127.0.0.1", run.port), timeout=60)
        s.sendall(("GET /events HTTP/1.1\r\nHost: x\r\nCookie: %s\r\n\r\n" % run.page.cookie).encode())
        sockets.append(s)
    for s in sockets:
        got = b""
        while b"\ndata: [[" not in got:
            more = s.recv(65536)
            assert more, got[-200:]
            got += more
    assert until(lambda: run.page.read(lambda o: ("health", "flyball") in o)[0]["health", "flyball"]["clients"] >= 200)
    for s in sockets:
        s.close()
    assert until(lambda: run.page.read(lambda o: ("health", "flyball") in o)[0]["health", "flyball"]["clients"] < 20)


def a_session_survives_a_crash(run):
    before = next(run.page.stream())
    _, last, _ = run.page.read(lambda o: len(o) > 3)
    cookie = run.page.cookie
    run.up.stop(signal.SIGKILL)
    run.start()
    run.page.cookie = cookie
    _, _, events = run.page.read(lambda o: len(o) > 3, last_event_id=last)
    assert before and events == ["reset"], events  # numbers of the other process mean nothing
    assert run.up.stop() == 0  # with a stream open: it ends


def only_this_machine(run):
    for bad, why in (("0.0.0.0:0", "loopback"), ("nonsense", "web-listen"), ("127.0.0.1:99999", "web-listen")):
        done = subprocess.run([FLYBALL, "up", "--data", run.data + "-x", "--web-listen", bad, "--testbed", "empty", "--for",
                               "20s"], capture_output=True, text=True, timeout=60)
        assert done.returncode != 0 and why in done.stderr, (bad, done.stderr)
    up = Up(FLYBALL, run.data + "-y", "--web-listen", "none", "--testbed", "empty")
    assert up.stop() == 0 and "Page:    none" in up.text(), up.text()


def in_a_cluster_rbac_decides(folder):
    os.mkdir(folder + "/cluster")
    server = Embedded(FLYBALL, folder + "/cluster")
    env = dict(os.environ, KUBECONFIG=server.kubeconfig, HOME=folder)
    port = free_port()

    def kubectl(*words):
        return subprocess.run(["kubectl", *words], env=env, check=True, capture_output=True, text=True).stdout.strip()
    for name in ("viewer", "stranger"):
        kubectl("create", "serviceaccount", name)
    kubectl("create", "clusterrole", "flyball-page-reader", "--verb=get", "--non-resource-url=/flyball/page")
    kubectl("create", "clusterrolebinding", "viewer", "--clusterrole=flyball-page-reader", "--serviceaccount=default:viewer")
    operator = subprocess.Popen([FLYBALL, "operator", "--kubeconfig", server.kubeconfig, "--leader-elect=false", "--listen",
                                 "none", "--controllers", "schedule", "--web-listen", ":%d" % port],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def is_up():
        try:
            return Page(port).ask("/").status == 200
        except OSError:
            return False
    try:
        assert until(is_up)
        viewer, stranger = (kubectl("create", "token", name) for name in ("viewer", "stranger"))
        page = Page(port)
        assert page.ask("/events").status == 401
        for bearer, status in ((None, 401), ("Bearer", 401), ("Bearer x", 401), ("Bearer " + "x" * 20000, 401),
                               ("Basic " + viewer, 401), ("Bearer " + stranger, 403)):
            answer = page.ask("/login", **({"authorization": bearer} if bearer else {}))
            assert answer.status == status, (bearer and bearer[:30], answer.status)
        assert page.ask("/login?token=" + viewer).status == 401  # tokens of users do not belong into a URL
        answer = page.ask("/login", authorization="Bearer " + viewer)
        assert answer.status == 200, answer.text
        page.cookie = answer.headers["set-cookie"].split(";")[0]
        assert viewer not in page.cookie
        objects, _, _ = page.read(lambda o: ("health", "flyball") in o)
        assert objects["health", "flyball"]["server"] is True
    finally:
        operator.terminate()
        assert operator.wait(30) == 0
        server.stop()


def main():
    need("kubectl")
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        run = Run(folder, "market")
        try:
            for case in (a_login_link_works_once, nothing_without_a_session, answers_are_safe_to_show,
                         the_stream_has_everything_once, at_most_four_messages_per_second, details_and_history,
                         hundreds_of_clients, a_session_survives_a_crash, only_this_machine):
                tap.run(case, run)
        finally:
            run.up.stop()
        tap.run(in_a_cluster_rbac_decides, folder)
    tap.end()


main()
