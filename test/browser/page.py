#!/usr/bin/python3
"""The live page in a real browser: every view in every scenario, numbers equal to those of kubectl, hostile names, ten
thousand pods, keys, a server that dies, and a browser that is not logged in.

    page.py FLYBALL [FOLDER]     with a folder, pictures of every view are kept there

Speaks TAP. Skipped where there is no Chromium or no kubectl.
"""
import http.server
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from harness import TOP, Tap, Up, free_port, need, until  # noqa: E402

try:
    import driver
except ImportError:
    print("1..0 # SKIP there is no python3-websocket")
    sys.exit(0)

FLYBALL = str(pathlib.Path(sys.argv[1]).resolve())
PICTURES = sys.argv[2] if len(sys.argv) > 2 else None
VIEWS = ("models", "schedules", "market", "services", "decisions", "health")
# What a scenario must show: view -> text that is in one of its rows.
SCENARIOS = {"llm": {"models": "chat-h100"}, "schedule": {"schedules": "shop/web"}, "market": {"market": "market-1"},
             "routing": {"services": "ml-team/"}}
HOSTILE = ("<img src=x onerror=window.hacked=1>", "<script>window.hacked=1</script>", "\"><svg onload=window.hacked=1>",
           "javascript:window.hacked=1", "' onmouseover='window.hacked=1", "</main><iframe src=javascript:window.hacked=1>",
           "{{constructor.constructor('window.hacked=1')()}}", "\u202eevil\u2028line", "&lt;b&gt;", "%3Cscript%3E")
ROWS = "[...document.querySelectorAll('.space .row')].map(r => r.textContent).join('\\n')"
SKIPPED = ("ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET")


class Run:
    """`flyball up` with a page on one port for its whole life, and a browser that is logged in."""

    def __init__(self, folder, scenario, *more):
        self.data, self.port, self.more = folder + "/" + scenario, free_port(), ("--testbed", scenario, *more)
        self.start()
        self.browser = driver.Browser()
        self.browser.look()
        self.browser.open(re.search(r"Page: +(\S+)", self.up.text())[1])
        self.browser.until("document.getElementById('live').textContent.startsWith('live ·')")

    def start(self):
        self.up = Up(FLYBALL, self.data, "--web-listen", "127.0.0.1:%d" % self.port, *self.more)

    def kubectl(self, *words, **more):
        env = dict(os.environ, KUBECONFIG=self.up.kubeconfig, HOME=self.data)
        return subprocess.run(["kubectl", *words], env=env, check=True, capture_output=True, text=True, **more).stdout

    def get(self, *words):
        return json.loads(self.kubectl("get", *words, "-o", "json"))["items"]

    def view(self, name):
        self.browser.run("location.hash = '#%s'" % name)
        self.browser.until("document.querySelector('nav [aria-current]')?.hash === '#%s'" % name)

    def picture(self, name):
        if PICTURES:
            self.browser.picture("%s/%s.png" % (PICTURES, name))

    def check(self):
        """No error was reported, and no other host was asked."""
        errors = [e for e in self.browser.errors if not any(word in e for word in SKIPPED)]
        assert not errors, errors
        others = [u for u in self.browser.requests if not u.startswith(("http://127.0.0.1:%d/" % self.port, "data:"))]
        assert not [u for u in others if u != "about:blank"], others

    def close(self):
        self.browser.close()
        self.up.stop()


def show_every_view(run, scenario):
    for view in VIEWS:
        run.view(view)
        want = SCENARIOS[scenario].get(view)
        if want:
            run.browser.until("%s.includes(%s)" % (ROWS, json.dumps(want)))
            run.browser.run("[...document.querySelectorAll('.space .row:not(.group)')].at(-1).click()")
            run.browser.until("document.querySelector('#detail pre, #detail svg')")
        elif view == "health":
            run.browser.until("document.body.innerText.includes('reachable')")
        elif view != "decisions":
            assert run.browser.run("document.querySelectorAll('.space .row').length") == 0, view
        broken = run.browser.run("""[...document.querySelectorAll('td')].filter(td => {
            const text = document.createRange();
            text.selectNodeContents(td);
            return /^[A-Za-z]+$/.test(td.textContent) && new Set([...text.getClientRects()].map(r => r.top)).size > 1;
        }).map(td => td.textContent)""")
        assert not broken, "words break in tables of %s: %s" % (view, broken)
        run.picture(scenario + "-" + view)
    if scenario == "llm":
        run.browser.look(dark=True)
        run.picture(scenario + "-dark")
        run.browser.look(width=390, height=800, phone=True)
        wide = run.browser.run("document.documentElement.scrollWidth")
        assert wide <= 390, "a phone scrolls sideways: %d" % wide
        run.picture(scenario + "-phone")
        run.browser.look()
    run.check()


def page_state(run, kind):
    """What the page has received, by key; `state` is a global of page.js."""
    return run.browser.run("Object.fromEntries(state.%s)" % kind)


def models_are_those_of_kubectl(run):
    def same():
        page = page_state(run, "model")
        cluster = run.get("va", "-A")
        return len(page) == len(cluster) > 0 and all(
            page["%s/%s" % (o["metadata"]["namespace"], o["metadata"]["name"])]["current"] ==
            o.get("status", {}).get("currentAlloc", {}).get("numReplicas") and
            page["%s/%s" % (o["metadata"]["namespace"], o["metadata"]["name"])]["desired"] ==
            o.get("status", {}).get("desiredOptimizedAlloc", {}).get("numReplicas") for o in cluster)
    assert until(same, 60), (page_state(run, "model"), run.kubectl("get", "va", "-A"))
    run.view("models")
    for name, v in page_state(run, "model").items():
        run.browser.until("%s.includes(%s)" % (ROWS, json.dumps(name.split("/")[1])))
        assert v["model"] == "qwen/qwen3-32b", v
    assert until(lambda: any(v["kv"] is not None for v in page_state(run, "model").values()), 60)


def schedules_are_those_of_kubectl(run):
    def same():
        page, (cluster,) = page_state(run, "schedule"), run.get("shpa", "-A")
        status = cluster["status"]
        one = page.get("shop/web") or {}
        return one.get("currentConfig") == status["currentConfig"] and one.get("source") == status["source"]
    assert until(same, 60)
    run.view("schedules")
    run.browser.until("document.querySelectorAll('#detail svg rect').length >= 7")
    assert "governs" in run.browser.run("document.querySelector('#detail pre').textContent")
    assert run.browser.run("document.querySelectorAll('#detail svg .now').length") == 1


def pods_are_those_of_kubectl(run):
    def same():
        page, cluster = page_state(run, "pod"), run.get("podallocations", "-A")
        return len(page) == len(cluster) > 0 and all(
            "%dm" % page["%s/%s" % (o["metadata"]["namespace"], o["metadata"]["name"])]["limit"] ==
            o["status"]["appliedCPULimit"] for o in cluster if "appliedCPULimit" in o.get("status", {}))
    assert until(same, 60), page_state(run, "pod")


def services_are_those_of_kubectl(run):
    def same():
        page, cluster = page_state(run, "service"), run.get("aimservices", "-A")
        return len(page) == len(cluster) > 0 and all(
            (page["%s/%s" % (o["metadata"]["namespace"], o["metadata"]["name"])]["routing"] or {}).get("path") ==
            o.get("status", {}).get("routing", {}).get("path") for o in cluster)
    assert until(same, 60), page_state(run, "service")
    used = page_state(run, "config")["ml-team/default"]["consumers"]["total"]
    assert used == run.get("aimruntimeconfigs", "-A")[0]["status"]["consumers"]["total"]


def a_killed_server_comes_back(run):
    epoch = run.browser.run("state.health.get('flyball').time")
    run.up.stop(signal.SIGKILL)
    run.browser.until("document.getElementById('live').textContent === 'reconnecting'")
    run.start()
    run.browser.until("document.getElementById('live').textContent.startsWith('live ·')")
    run.browser.until("state.pod.size > 0 && state.health.get('flyball').time > %s" % json.dumps(epoch))
    run.view("market")
    run.browser.until("%s.includes('market-1')" % ROWS)
    run.check()


def keys_are_enough(run):
    browser = run.browser
    run.view("health")
    for number, view in enumerate(VIEWS, 1):
        browser.press(str(number))
        browser.until("location.hash === '#%s'" % view)
    run.view("market")
    browser.until("document.querySelectorAll('[aria-label=Pods] .space .row').length > 2")
    browser.run("document.querySelector('[aria-label=Pods]').focus()")
    for _ in range(2):
        browser.press("ArrowDown")
    browser.press("Enter")
    browser.until("!document.getElementById('detail').hidden && document.querySelector('#detail svg')")
    assert browser.run("document.activeElement.id") == "detail"
    browser.press("Escape")
    browser.until("document.getElementById('detail').hidden")
    unnamed = browser.run("[...document.querySelectorAll('button,input,select,[role=grid]')].filter(e => "
                          "!e.textContent.trim() && !e.getAttribute('aria-label')).length")
    assert unnamed == 0, unnamed


def hostile_names_are_text(run):
    objects = []
    for i, text in enumerate(HOSTILE):
        objects.append({"apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling", "metadata": {
            "name": "evil-%d" % i, "namespace": "default", "labels": {"inference.optimization/acceleratorName": "A100"}},
            "spec": {"modelID": text, "scaleTargetRef": {"kind": "Deployment", "name": "none"}, "variantCost": "1"}})
        objects.append({"apiVersion": "autoscaling.sarabala.io/v1alpha1", "kind": "SmartHorizontalPodAutoscaler", "metadata": {
            "name": "evil-%d" % i, "namespace": "default"}, "spec": {"HPAObjectRef": {"name": "x", "namespace": "default"},
            "triggers": [{"name": text, "timezone": "UTC", "startTime": "00:00:00", "endTime": "23:59:59",
                          "interval": {"recurring": "M,TU,W,TH,F,SAT,SUN"}, "startHPAConfig": {"minReplicas": 1, "maxReplicas": 2}}]}})
        objects.append({"apiVersion": "allocation.mbcas.io/v1alpha1", "kind": "PodAllocation", "metadata": {
            "name": "evil-%d" % i, "namespace": "default"}, "spec": {"namespace": "default", "podName": text,
            "desiredCPURequest": "1m", "desiredCPULimit": "2m", "nodeName": text}})
    for one in objects:  # a schema may refuse some: those cannot do harm
        subprocess.run(["kubectl", "apply", "--validate=false", "-f", "-"], input=json.dumps(one), text=True, capture_output=True,
                       env=dict(os.environ, KUBECONFIG=run.up.kubeconfig, HOME=run.data), timeout=60)
    run.browser.until("[...state.model.keys()].filter(k => k.includes('evil')).length > 5")
    run.browser.until("[...state.pod.keys()].filter(k => k.includes('evil')).length > 5")
    for view in VIEWS:
        run.view(view)
        for _ in range(3):
            run.browser.run("(() => { const r = [...document.querySelectorAll('.space .row:not(.group)')]; "
                            "r[Math.floor(Math.random() * r.length)]?.click() })()")
            run.browser.until("document.getElementById('detail').hidden || document.querySelector('#detail h2')")
    run.view("models")
    run.browser.until("%s.includes(%s)" % (ROWS, json.dumps(HOSTILE[0])))
    run.picture("hostile")
    assert run.browser.run("typeof window.hacked") == "undefined"
    assert "\u202e" not in run.browser.run("document.body.innerText"), "text can be reordered"
    strange = run.browser.run("[...document.querySelectorAll('img,iframe,object,embed,script')].map(e => e.outerHTML)")
    assert strange == ['<script src="page.js" defer=""></script>'], strange
    assert run.browser.run("[...document.querySelectorAll('*')].filter(e => [...e.attributes].some(a => "
                           "a.name.startsWith('on'))).length") == 0
    run.check()


class ManyPods(http.server.BaseHTTPRequestHandler):
    """The page with a stream of ten thousand pods on a hundred nodes, made here."""

    protocol_version = "HTTP/1.1"
    PODS = [["pod", "ns-%02d/pod-%05d" % (i % 50, i), ["pod-%05d" % i, "node-%02d" % (i % 100), i % 900, 1000, 500, 1000, i % 800,
                                                       100, 0, 1, .5, "uncongested", "Applied", 0]] for i in range(10000)]
    NODES = [["node", "node-%02d" % i, {"used": 40000, "limit": 100000, "need": 41000, "price": .5, "pods": 100}]
             for i in range(100)]

    def do_GET(self):
        name = {"/": "page.html"}.get(self.path, self.path[1:])
        self.send_response(200)
        if self.path == "/events":
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            for at in range(0, 10000, 1000):
                self.wfile.write(b"data: %s\n\n" % json.dumps(self.PODS[at:at + 1000]).encode())
            self.wfile.write(b"data: %s\n\n" % json.dumps(self.NODES).encode())
            self.server.done.wait(120)
            self.close_connection = True
            return
        body = (TOP / "src/web/page" / name).read_bytes() if name.startswith("page.") else b"{}"
        self.send_header("content-type", {"html": "text/html", "css": "text/css", "js": "text/javascript"}.get(
            name.rsplit(".")[-1], "application/json"))
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def ten_thousand_pods_scroll(_):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ManyPods)
    server.done = threading.Event()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = driver.Browser()
    try:
        browser.look()
        browser.open("http://127.0.0.1:%d/#market" % server.server_port)
        browser.until("state.pod.size === 10000 && state.node.size === 100")
        # The page draws at most a few times a second: what is in its state is on the screen a moment later.
        browser.until("document.querySelector('[aria-label=Pods]')?.getAttribute('aria-rowcount') === '10001'")
        browser.until("document.querySelectorAll('[aria-label=Pods] .space .row').length > 5")
        rows = browser.run("document.querySelectorAll('.space .row').length")
        assert rows < 120, rows
        for pixels in (100000, 339000, 0, 170000):
            browser.run("document.querySelector('[aria-label=Pods]').scrollTop = %d" % pixels)
            keys = browser.run("[...state.pod.keys()].sort()")
            want = keys[min(pixels // 34 + 3, 9999)].split("/")[1]
            browser.until("%s.includes('%s')" % (ROWS, want))
        took = browser.run("(() => { const t = performance.now(); for (let i = 0; i < 20; i++) { views.Market.pods.element.scrollTop = "
                           "i * 15000; views.Market.pods.draw(); } return (performance.now() - t) / 20 })()")
        print("# %.1f ms to draw a screen of 10,000 pods" % took)
        rows = browser.run("document.querySelectorAll('.space .row').length")
        assert rows < 120, rows
        browser.run("document.querySelector('input[type=search]').value = 'pod-07777'; "
                    "document.querySelector('input[type=search]').dispatchEvent(new Event('input'))")
        browser.until("document.querySelector('[aria-label=Pods]').getAttribute('aria-rowcount') === '2'")
        if PICTURES:
            browser.run("document.querySelector('input[type=search]').value = ''; draw()")
            browser.until("document.querySelector('[aria-label=Pods]').getAttribute('aria-rowcount') === '10001'")
            browser.picture(PICTURES + "/many.png")
        assert not browser.errors, browser.errors
    finally:
        server.done.set()
        browser.close()
        server.shutdown()


def a_browser_without_a_session_sees_nothing(run):
    browser = driver.Browser()
    try:
        browser.open("http://127.0.0.1:%d/" % run.port)
        browser.until("document.body.innerText.includes('Log in')")
        run.picture("login")
        assert browser.run("state.pod.size + state.model.size + decisions.length") == 0
        assert "market-1" not in browser.run("document.documentElement.outerHTML")
    finally:
        browser.close()


def main():
    need("kubectl")
    if not driver.program():
        print("1..0 # SKIP there is no Chromium")
        sys.exit(0)
    more = {"llm": [models_are_those_of_kubectl], "schedule": [schedules_are_those_of_kubectl],
            "market": [pods_are_those_of_kubectl, keys_are_enough, a_browser_without_a_session_sees_nothing,
                       hostile_names_are_text, a_killed_server_comes_back],
            "routing": [services_are_those_of_kubectl]}
    tap = Tap()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        for scenario, cases in more.items():
            run = Run(folder, scenario, "--speed", "10")
            try:
                tap.run(show_every_view, run, scenario, name="every view shows the scenario " + scenario)
                for case in cases:
                    tap.run(case, run)
            finally:
                run.close()
        tap.run(ten_thousand_pods_scroll, None)
    tap.end()


main()
