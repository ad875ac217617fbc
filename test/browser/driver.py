"""A headless Chromium, driven through its DevTools protocol: open a page, evaluate an expression, press keys, take a
picture, and collect everything that the console or the network reports as an error.

No other package is needed: the protocol is JSON over one WebSocket.
"""
import base64
import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time

import websocket

PROGRAMS = ("chromium-headless-shell", "chromium", "google-chrome")


def program():
    """The path of a Chromium; None: there is none."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    def __init__(self, width=1280, height=800):
        self.folder = tempfile.TemporaryDirectory(prefix="flyball-browser-", ignore_cleanup_errors=True)
        self.process = subprocess.Popen(
            [program(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--remote-debugging-port=0", "--remote-allow-origins=*", "--user-data-dir=" + self.folder.name,
             "--window-size=%d,%d" % (width, height), "--hide-scrollbars", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        port_file = pathlib.Path(self.folder.name, "DevToolsActivePort")
        end = time.monotonic() + 60
        while not port_file.exists() or port_file.read_text().count("\n") < 1:
            assert time.monotonic() < end and self.process.poll() is None, "Chromium did not start"
            time.sleep(0.05)  # another program's start: there is no event to wait for
        port, path = port_file.read_text().split("\n")[:2]
        self.socket = websocket.create_connection("ws://127.0.0.1:%s%s" % (port, path), timeout=60)
        self.number, self.session, self.errors = 0, None, []
        target = self.send("Target.createTarget", url="about:blank", width=width, height=height)["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(domain + ".enable")

    def send(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = json.loads(self.socket.recv())
            if answer.get("id") == self.number:
                assert "error" not in answer, "%s: %s" % (method, answer["error"])
                return answer["result"]
            self.note(answer)

    def note(self, event):
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"].get("exception", {}).get("description", "exception"))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "assert", "warning"):
            self.errors.append("console: " + json.dumps(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append("%s %s" % (params["entry"]["text"], params["entry"].get("url", "")))
        elif method == "Network.requestWillBeSent":
            self.requests = getattr(self, "requests", [])
            self.requests.append(params["request"]["url"])

    def open(self, url):
        self.send("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def run(self, expression):
        """The value of a JavaScript expression, which may be a promise."""
        answer = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True,
                           userGesture=True)
        assert "exceptionDetails" not in answer, "%s: %s" % (expression, answer["exceptionDetails"])
        return answer["result"].get("value")

    def until(self, expression, seconds=60):
        end = time.monotonic() + seconds
        while True:
            try:
                value = self.run("!!(%s)" % expression)
            except AssertionError:  # the page is being replaced
                value = None
            if value:
                return value
            assert time.monotonic() < end, "not in %d s: %s" % (seconds, expression)
            time.sleep(0.1)  # asked from outside

    def press(self, key, code=None):
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=code or key,
                      text=key if len(key) == 1 and kind == "keyDown" else "")

    def look(self, dark=False, width=1280, height=800, phone=False):
        self.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme",
                                                           "value": "dark" if dark else "light"}])
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def picture(self, path):
        data = self.send("Page.captureScreenshot", format="png")["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def close(self):
        self.socket.close()
        os.killpg(self.process.pid, signal.SIGKILL)  # the program is a script, which starts the browser
        self.process.wait()
        self.folder.cleanup()
