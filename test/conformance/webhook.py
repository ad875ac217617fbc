"""A webhook on loopback that answers reviews by script, and remembers what it was asked.

An answer is chosen by path and by values in the review; without one, everything is allowed and objects are converted
by their apiVersion alone. See Webhook.reply() for what an answer can have.
"""
import base64
import copy
import functools
import http.server
import json
import os
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.parse

from compare import NOTHING, point


@functools.lru_cache(maxsize=None)
def certificate(names="IP:127.0.0.1"):
    """TLS context and base64 of the authority, which is the certificate itself."""
    with tempfile.TemporaryDirectory() as folder:
        key, cert = os.path.join(folder, "key"), os.path.join(folder, "cert")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-days", "2", "-subj", "/CN=webhook", "-addext", "subjectAltName=" + names, "-keyout", key,
                        "-out", cert], check=True, stdin=subprocess.DEVNULL, capture_output=True)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        with open(cert, "rb") as file:
            return context, base64.b64encode(file.read()).decode()


def move(thing, old, new):
    """Moves the value at one pointer to another; null as a target removes it."""
    value = point(thing, old)
    if value == NOTHING:
        return
    where, _, last = old.rpartition("/")
    del (point(thing, where) if where else thing)[last]
    if new:
        *path, last = new.split("/")[1:]
        for step in path:
            thing = thing.setdefault(step, {})
        thing[last] = value


class Webhook:
    def __init__(self, answers=(), names="IP:127.0.0.1"):
        self.answers, self.asked, self.lock = list(answers), [], threading.Lock()
        self.open = threading.Event()  # answers with "held" wait for it
        hook, (context, self.ca) = self, certificate(names)

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                hook.answer(self, urllib.parse.urlsplit(self.path), text)

            def log_message(self, *_):
                pass

        class Quiet(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, *_):
                pass

        self.server = Quiet(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server.server_address[1]
        self.url = "https://127.0.0.1:%d" % self.port
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self):
        self.open.set()
        self.server.shutdown()
        self.server.server_close()

    def answer(self, handler, url, text):
        try:
            review = json.loads(text)
        except ValueError:
            review = text.decode(errors="replace")
        with self.lock:
            self.asked.append({"path": url.path, "query": dict(urllib.parse.parse_qsl(url.query)), "review": review})
        status, headers, body = self.reply(url.path, review)
        if not status:
            handler.close_connection = True
            return
        handler.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def reply(self, path, review):
        """Status, headers and body. Status 0: the connection is closed without an answer."""
        chosen = next((a for a in self.answers if a.get("path", path) == path and all(
            point(review, at) == value for at, value in a.get("when", {}).items())), {})
        time.sleep(chosen.get("delay", 0))
        if chosen.get("held"):
            self.open.wait(60)
        headers = chosen.get("headers", {})
        if chosen.get("drop"):
            return 0, headers, b""
        if "raw" in chosen:
            return chosen.get("http", 200), headers, chosen["raw"].encode()
        request = review["request"]
        out = {"uid": request["uid"]}
        if review["kind"] == "ConversionReview":
            out["result"] = {"status": "Success"}
            out["convertedObjects"] = [self.convert(o, request["desiredAPIVersion"], chosen.get("convert", {}))
                                       for o in request["objects"]]
        else:
            out["allowed"] = True
        if "patch" in chosen:
            out["patchType"] = "JSONPatch"
            out["patch"] = base64.b64encode(json.dumps(chosen["patch"]).encode()).decode()
        out.update(chosen.get("response", {}))
        whole = {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": out}
        return chosen.get("http", 200), headers, json.dumps({**whole, **chosen.get("review", {})}).encode()

    @staticmethod
    def convert(thing, version, moves):
        thing = {**copy.deepcopy(thing), "apiVersion": version}
        for old, new in moves.get(version.split("/")[-1], []):
            move(thing, old, new)
        return thing

    def take(self, where=None, keep=False):
        """What was asked so far, or those of it with the given values; all of it is forgotten unless kept."""
        with self.lock:
            found = [r for r in self.asked if all(point(r, at) == value for at, value in (where or {}).items())]
            if not keep:
                self.asked.clear()
        return found
