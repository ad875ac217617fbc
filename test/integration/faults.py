"""A proxy that makes trouble between flyball and its API server, so that trouble is real: other processes, sockets
and answers than those of a good day.

It listens without TLS and speaks TLS to the server, whose authority it knows; clients are authenticated by the server, by the
token that passes through. Of what passes it reads the requests alone. Answers go back as they come, byte by byte, so
watches are not held up.

    storm(share)   that share of all writes gets 409 Conflict, 429 Too Many Requests with Retry-After, or is carried out
                   and its answer lost; 0 ends it
    cut()          all connections are gone, and new ones are refused until
    mend()

`seen` counts what was made up and what the server itself answered.
"""
import asyncio
import collections
import json
import random
import re
import ssl
import threading
import urllib.parse

from harness import free_port

BROKEN = (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError)
OBJECT = re.compile(r"/(?P<plural>[a-z]+)/(?P<name>[^/?]+)(?:/(?:resize|status))?(?:\?|$)")
AGREED = {409: ("Conflict", "Operation cannot be fulfilled on %s \"%s\": the object has been modified; please apply "
                            "your changes to the latest version and try again"),
          429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later")}
RETRY_AFTER_S = 1


def refusal(code, path):
    """What a server answers, as a whole: head and Status."""
    reason, message = AGREED[code]
    about = OBJECT.search(path)
    kind, name = (about["plural"], about["name"]) if about else ("", "")
    details = {"name": name, "kind": kind}
    if code == 429:
        details["retryAfterSeconds"] = RETRY_AFTER_S
    body = json.dumps({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": code,
                       "reason": reason, "message": message % (kind, name) if "%" in message else message,
                       "details": details}).encode()
    more = "Retry-After: %d\r\n" % RETRY_AFTER_S if code == 429 else ""
    return ("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n"
            % (code, reason, more, len(body))).encode() + body


class Link:
    """One client's connection. HTTP/1.1 without pipelining: when a request comes, all earlier answers are through."""

    def __init__(self, proxy, reader, writer):
        self.proxy, self.reader, self.writer = proxy, reader, writer
        self.asked, self.lose = False, False  # an answer is due; it shall not arrive

    async def serve(self):
        url = self.proxy.server
        up_reader, up_writer = await asyncio.open_connection(url.hostname, url.port, ssl=self.proxy.tls)
        answers = asyncio.create_task(self.answer(up_reader))
        try:
            while True:
                await self.ask(up_writer)
        finally:
            answers.cancel()
            up_writer.transport.abort()

    async def ask(self, up):
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        body = await self.reader.readexactly(int(length[1])) if length else b""
        method, path = head.split(b" ", 2)[:2]
        fault = self.proxy.fault_for(method.decode(), path.decode())
        if fault in AGREED:
            self.writer.write(refusal(fault, path.decode()))
            return
        self.asked, self.lose = True, fault == "lost"
        up.write(head + body)

    async def answer(self, up):
        try:
            while data := await up.read(1 << 16):
                if self.asked:
                    self.asked = False
                    self.proxy.seen[int(data[9:12])] += 1
                if self.lose:
                    break
                self.writer.write(data)
                await self.writer.drain()
        except BROKEN:
            pass
        self.writer.transport.abort()


class Faults(threading.Thread):
    def __init__(self, url, authority):
        super().__init__(daemon=True)
        self.server, self.tls = urllib.parse.urlsplit(url), ssl.create_default_context(cafile=authority)
        self.port, self.links, self.listener = free_port(), set(), None
        self.url = "http://127.0.0.1:%d" % self.port
        self.share, self.random, self.seen = 0, random.Random(1), collections.Counter()
        self.loop = asyncio.new_event_loop()
        self.start()
        self.mend()

    def run(self):
        self.loop.run_forever()

    def fault_for(self, method, path):
        concerned = method in ("PATCH", "PUT", "POST") and re.search("/pods/|/podallocations|/status", path)
        if not concerned or self.random.random() >= self.share:
            return None
        faults = [429, 429, "lost"] if method == "POST" else [409, 409, 429, 429, "lost"]
        fault = self.random.choice(faults)
        self.seen["%s made" % fault] += 1
        return fault

    async def serve(self, reader, writer):
        self.links.add(writer)
        try:
            await Link(self, reader, writer).serve()
        except BROKEN:
            pass
        finally:
            self.links.discard(writer)
            writer.transport.abort()

    def do(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(60)

    # --- for tests

    def storm(self, share):
        self.share = share

    def cut(self):
        async def cut():
            self.listener.close()
            for writer in list(self.links):
                writer.transport.abort()

        self.do(cut())

    def mend(self):
        async def listen():
            self.listener = await asyncio.start_server(self.serve, "127.0.0.1", self.port, limit=1 << 22)

        self.do(listen())

    def end(self):
        self.cut()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.join()
