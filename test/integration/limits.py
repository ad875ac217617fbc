#!/usr/bin/python3
"""What one client can cost the API server: bodies made to be slow, answers that are never read, watches that
are never followed. Prints what each attack took; the limits are far above what a busy machine needs for honest
work and far below what the attack cost without them.

    limits.py FLYBALL [--large]
"""
import json
import socket
import ssl
import struct
import sys
import tempfile
import time

from api import Api, Refused
from harness import Embedded, Tap

LARGE = "--large" in sys.argv
DATA, HEADERS, SETTINGS, WINDOW_UPDATE, GOAWAY = 0, 1, 4, 8, 7


def status_of(server):
    pid = server.process.pid
    with open("/proc/%d/status" % pid) as file:
        rss = next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
    with open("/proc/%d/stat" % pid) as file:
        words = file.read().rsplit(")", 1)[1].split()
    return rss / 1024, (int(words[11]) + int(words[12])) / 100


class Http2:
    """A client that opens a window only on request."""

    def __init__(self, server, window=0):
        host, port = server.url.split("//")[1].split(":")
        tls = ssl.create_default_context(cafile=server.authority)
        tls.set_alpn_protocols(["h2"])
        self.token, self.stream, self.window = server.token, 1, window
        self.socket = tls.wrap_socket(socket.create_connection((host, int(port))), server_hostname=host)
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        self.frame(SETTINGS, 0, 0, struct.pack(">HI", 4, window))

    def frame(self, kind, flags, stream, payload=b""):
        self.socket.sendall(struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream)
                            + payload)

    @staticmethod
    def text(value):
        value = value.encode()
        if len(value) < 127:
            return bytes([len(value)]) + value
        rest, out = len(value) - 127, b"\x7f"
        while rest >= 128:
            out, rest = out + bytes([rest % 128 + 128]), rest // 128
        return out + bytes([rest]) + value

    def get(self, path):
        block = b"\x82\x87\x04" + self.text(path) + b"\x01" + self.text("x") + b"\x00" + self.text("authorization") \
            + self.text("Bearer " + self.token)
        self.frame(HEADERS, 5, self.stream, block)
        self.stream += 2

    def close(self):
        self.socket.close()


def slow_bodies(server, api, tap):
    """A pod of 1.6 MB with 96,000 environment variables took 8.9 s of CPU."""
    per, containers = (16000, 6) if LARGE else (8000, 4)
    env = [{"name": "V%d" % i} for i in range(per)]
    same = [{"name": "V"} for i in range(per)]
    paths = [{"name": "v", "mountPath": "/%d" % i} for i in range(per // 2)]  # a body has 3 MiB at most
    bodies = {
        "%d env" % (per * containers): {"env": env},
        "%d equal env" % (per * containers): {"env": same},
        "%d ports" % (per * containers): {"ports": [{"containerPort": 1 + i % 65535} for i in range(per)]},
        "%d mounts" % (per // 2 * containers): {"volumeMounts": paths},
    }
    for name, part in bodies.items():
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "slow"}, "spec": {"containers": [
            dict(part, name="c%d" % i, image="i") for i in range(containers)]}}
        _, before = status_of(server)
        try:
            api.create("/api/v1/namespaces/default/pods", pod)
            api.delete("/api/v1/namespaces/default/pods/slow")
            said = 201
        except Refused as refused:
            said = refused.code
        _, after = status_of(server)
        tap.say(after - before < (3 if LARGE else 2), "%s: %s, %.2f s of CPU" % (name, said, after - before))


def long_warnings(server, api, tap):
    """Names of unknown fields are repeated in Warning headers; http.client refuses a line of 64 KiB."""
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "warned"}, "short": 1}
    for field in ("x" * 100000, "\u00e9" * 3000, "y" * 3000):
        body[field] = 1
    answer = api.open("POST", "/api/v1/namespaces/default/configmaps?dryRun=All&fieldValidation=Warn", body)
    answer.read()
    texts = answer.headers.get_all("Warning") or []
    tap.say(answer.status == 201 and len(texts) == 4 and all(len(text) < 600 for text in texts),
            "warnings about long names are cut", "%d: %s" % (answer.status, [len(text) for text in texts]))


def unread_answers(server, api, tap):
    """One reader pinned 229 MB by asking and opening no window."""
    size = 900 * 1024
    api.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "big"}, "data": {"k": "v" * size}})
    before, _ = status_of(server)
    streams = 900 if LARGE else 200
    client = Http2(server)
    for _ in range(streams):
        client.get("/api/v1/namespaces/default/configmaps/big")
    time.sleep(3)
    during, _ = status_of(server)
    client.close()
    tap.say(during - before < 110, "%d unread answers of %d KB on one connection: %.0f MB more (%.0f asked for)"
            % (streams, size // 1024, during - before, streams * size / 1e6))
    clients = [Http2(server) for _ in range(12 if LARGE else 6)]
    for client in clients:
        for _ in range(80):
            client.get("/api/v1/namespaces/default/configmaps/big")
    time.sleep(3)
    during, _ = status_of(server)
    alive = api.get("/api/v1/namespaces/default/configmaps/big")["metadata"]["name"]
    for client in clients:
        client.close()
    deadline = time.time() + 30
    while time.time() < deadline and status_of(server)[0] - before > 40:
        time.sleep(0.2)
    after, _ = status_of(server)
    tap.say(during - before < 260 and alive == "big", "%d such connections: %.0f MB more, others are served"
            % (len(clients), during - before))
    tap.say(after - before < 60, "the memory is given back: %.0f MB more once they have gone" % (after - before))


def stuck_watches(server, api, tap):
    """300 watches that were never read held 345 MB."""
    n = 300 if LARGE else 120
    before, _ = status_of(server)
    client = Http2(server, window=20000)
    for _ in range(n):
        client.get("/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=0")
    for i in range(3):
        api.patch("/api/v1/namespaces/default/configmaps/big", {"data": {"more": str(i)}})
    time.sleep(3)
    during, _ = status_of(server)
    client.close()
    deadline = time.time() + 30
    while time.time() < deadline and status_of(server)[0] - before > 40:
        time.sleep(0.2)
    after, _ = status_of(server)
    tap.say(during - before < 260, "%d stuck watches of 900 KB objects: %.0f MB more" % (n, during - before))
    tap.say(after - before < 60, "… and %.0f MB more after they have gone" % (after - before))


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        server = Embedded(sys.argv[1], folder)
        api = Api(server)
        try:
            for case in (slow_bodies, long_warnings, unread_answers, stuck_watches):
                try:
                    case(server, api, tap)
                except Exception as error:  # the next attack still counts
                    tap.say(False, case.__name__, repr(error))
            rss, _ = status_of(server)
            print("# %.0f MB at the end" % rss)
        finally:
            server.stop()
    return tap.end()


if __name__ == "__main__":
    sys.exit(main())
