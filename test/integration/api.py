"""The API without kubectl, for tests that ask much of it: requests on a kept connection, and a watch."""
import http.client
import json
import ssl
import threading
import time
import urllib.parse

IDLE_SECONDS = 20  # a server may close a connection that was idle for longer, just when it is used again
BROKEN = (OSError, http.client.HTTPException, ValueError)
PATCH = {"merge": "application/merge-patch+json", "strategic": "application/strategic-merge-patch+json"}


class Refused(Exception):
    def __init__(self, status):
        super().__init__(status.get("message"))
        self.code = status.get("code")


class Api:
    """For one thread. Who asks is an administrator."""

    def __init__(self, server):
        self.server, self.connection, self.used = server, None, 0.0

    def open(self, method, path, body=None, kind="application/json"):
        url = urllib.parse.urlsplit(self.server.url)
        if time.monotonic() - self.used > IDLE_SECONDS:
            self.close()
        self.used = time.monotonic()
        if not self.connection:
            tls = ssl.create_default_context(cafile=self.server.authority)
            self.connection = http.client.HTTPSConnection(url.hostname, url.port, timeout=60, context=tls)
        self.connection.request(method, path, body and json.dumps(body), {
            "Authorization": "Bearer " + self.server.token, "Content-Type": kind})
        return self.connection.getresponse()

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None

    def ask(self, method, path, body=None, kind="application/json"):
        try:
            answer = self.open(method, path, body, kind)
            said = json.loads(answer.read())
        except BROKEN:
            self.close()
            raise
        if answer.status >= 300:
            raise Refused(said)
        return said

    def get(self, path):
        return self.ask("GET", path)

    def create(self, path, made):
        return self.ask("POST", path, made)

    def patch(self, path, change, kind="merge"):
        return self.ask("PATCH", path, change, PATCH[kind])

    def delete(self, path):
        return self.ask("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})


class Watch(threading.Thread):
    """Keeps `objects` (by namespace/name) as the server has them and calls changed(key, old, new) for every event, in
    this thread. A server that dies is found again, and the watch goes on where it ended."""

    def __init__(self, server, path, changed=lambda key, old, new: None):
        super().__init__(daemon=True)
        self.api, self.path, self.changed = Api(server), path, changed
        self.objects, self.version, self.lists = {}, None, 0
        self.lock, self.ended = threading.Lock(), threading.Event()

    def run(self):
        while not self.ended.is_set():
            try:
                if not self.version:
                    self.list()
                self.follow()
            except (*BROKEN, Refused, AttributeError):  # the last one: closed from outside, by end()
                self.api.close()
                self.ended.wait(0.2)

    def put(self, one, gone=False):
        key = one["metadata"]["namespace"] + "/" + one["metadata"]["name"]
        with self.lock:
            old = self.objects.get(key)
            if gone:
                self.objects.pop(key, None)
            else:
                self.objects[key] = one
        self.changed(key, old, None if gone else one)

    def list(self):
        said = self.api.get(self.path)
        self.lists += 1
        have = {one["metadata"]["uid"] for one in said["items"]}
        for one in list(self.objects.values()):
            if one["metadata"]["uid"] not in have:
                self.put(one, gone=True)
        for one in said["items"]:
            self.put(one)
        self.version = said["metadata"]["resourceVersion"]

    def follow(self):
        answer = self.api.open("GET", self.path + "?watch=true&allowWatchBookmarks=true&resourceVersion=" + self.version)
        for line in answer:
            event = json.loads(line)
            if answer.status != 200 or event["type"] == "ERROR":  # that version is history
                self.version = None
                break
            self.version = event["object"]["metadata"]["resourceVersion"]
            if event["type"] != "BOOKMARK":
                self.put(event["object"], gone=event["type"] == "DELETED")
        self.api.close()

    def all(self):
        with self.lock:
            return list(self.objects.values())

    def end(self):
        self.ended.set()
        connection = self.api.connection
        if connection and connection.sock:
            connection.sock.shutdown(2)
        self.join(60)
