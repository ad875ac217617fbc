#!/usr/bin/python3
"""Kills the API server in the middle of its work, again and again, and looks for broken promises.

    apiserver_crash.py FLYBALL [--rounds N] [--seed N]

Writers create, change and delete configmaps of their own, of 100 bytes to 1.3 MB and with pauses, and note what was
acknowledged. At a random moment the server is ended with SIGKILL or SIGTERM and started again on the same directory.
Then:

  * every acknowledged write is there; what was under way when the server died may or may not be, but nothing
    else is (no phantom);
  * resource versions have not gone back;
  * a watch from any acknowledged version that is not too old replays exactly what came after it, in order;
  * SQLite's integrity check finds nothing in what the server left behind.
"""
import argparse
import http.client
import json
import os
import random
import shutil
import signal
import sqlite3
import tempfile
import threading
import time
import urllib.parse

from harness import Server, Tap

WRITERS, KEYS = 6, 4
WINDOW_BYTES = 4 << 20  # of 16 MiB: deletions and what was under way count there too
DATA_MAX = 1040000  # bytes of a configmap's data
WINDOW = 16000  # events the server keeps for watches; it has a few more
HERE = "/api/v1/namespaces/default/configmaps"
BROKEN = (OSError, http.client.HTTPException, ValueError)


class Gone(Exception):
    """The server died before it answered."""


class Client:
    def __init__(self, server):
        url = urllib.parse.urlsplit(server.url)
        self.connection = http.client.HTTPConnection(url.hostname, url.port, timeout=20)
        self.headers = {"Authorization": "Bearer " + server.token, "Content-Type": "application/json"}

    def ask(self, method, path, body=None, kind=None):
        headers = {**self.headers, "Content-Type": kind} if kind else self.headers
        try:
            self.connection.request(method, path, None if body is None else json.dumps(body), headers)
            reply = self.connection.getresponse()
            return reply.status, json.loads(reply.read())
        except BROKEN as e:
            raise Gone from e

    def events(self, rev):
        """Events of our configmaps after version rev, as they come."""
        self.connection.request("GET", HERE + "?watch=true&resourceVersion=%s&timeoutSeconds=20" % rev,
                                headers=self.headers)
        reply = self.connection.getresponse()
        while line := reply.readline():
            yield json.loads(line)


class Writer:
    """Owns a few names. `known` is what was acknowledged last, `perhaps` what an unanswered write would make
    of it; `acks` is the whole history: (version, name, value or None)."""

    def __init__(self, number, seed):
        self.random = random.Random(seed * 1000 + number)
        self.known = {"w%d-%d" % (number, i): None for i in range(KEYS)}
        self.perhaps, self.acks, self.counter = {}, [], 0
        self.refused = None
        self.doubtful = set()  # names whose write a kill cut off, once

    def size(self):
        """Mostly small; now and then up to what the server takes."""
        chance = self.random.random()
        if chance < 0.9:
            return self.random.randrange(100, 4000)
        return self.random.randrange(4000, 60000) if chance < 0.98 else self.random.randrange(200000, 1300000)

    def step(self, client):
        name = self.random.choice(list(self.known))
        self.counter += 1
        size = self.size()
        value = "%s.%d.%d" % (name, self.counter, size)
        made = content(value, size)
        old = self.known[name]
        if old is None:
            request = ("POST", HERE, {**made, "metadata": {"name": name, **made["metadata"]}})
        elif self.random.random() < 0.3:
            request, value = ("DELETE", HERE + "/" + name), None
        else:
            request = ("PATCH", HERE + "/" + name, made, "application/merge-patch+json")
        self.perhaps = {name: value}
        status, body = client.ask(*request)
        if status == 503:
            raise Gone  # it is shutting down
        if status >= 300:
            raise AssertionError("%s %s was refused: %s" % (*request[:2], str(body)[:500]))
        self.known[name], self.perhaps = value, {}
        # a delete is answered without a version; the watch reports it
        self.acks.append((None if value is None else int(body["metadata"]["resourceVersion"]), name, value))

    def work(self, server, stop):
        client = Client(server)
        try:
            while not stop.is_set():
                self.step(client)
                if self.random.random() < 0.05:
                    stop.wait(self.random.uniform(0, 0.15))  # long enough for maintenance, at times
        except Gone:
            pass
        except AssertionError as why:
            self.refused = str(why)


def content(value, size):
    """A configmap's parts of so many bytes; what its data may not hold is in an annotation."""
    more = max(0, size - DATA_MAX)
    return {"metadata": {"annotations": {"filler": "x" * more}},
            "data": {"v": value, "filler": "x" * (size - more)}}


def whole(item):
    """The value, if its fillers are as long as declared."""
    value, size = item["data"]["v"], int(item["data"]["v"].rsplit(".", 1)[1])
    there = len(item["data"]["filler"]) + len(item["metadata"]["annotations"]["filler"])
    return value if there == size else "%s with %d bytes" % (value, there)


def damage(server):
    """What SQLite finds in a copy of what the server left; the server's own files stay as they are."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("state.db", "state.db-wal"):
            if os.path.exists(server.data / name):
                shutil.copy(server.data / name, folder)
        found = sqlite3.connect(folder + "/state.db").execute("pragma integrity_check").fetchone()[0]
        return [] if found == "ok" else ["SQLite found damage: " + found]


def state_of(client):
    status, body = client.ask("GET", HERE)
    assert status == 200, body
    items = {i["metadata"]["name"]: whole(i) for i in body["items"] if "v" in i.get("data", {})}
    return items, int(body["metadata"]["resourceVersion"])


def check_state(writers, client, highest):
    """Settles what was under way; returns the complaints."""
    items, rev = state_of(client)
    found = ["version went back: %d after %d" % (rev, highest)] if rev < highest else []
    for writer in writers:
        for name, value in writer.known.items():
            there = items.pop(name, None)
            if there == value:
                continue
            if name in writer.perhaps and there == writer.perhaps[name]:
                writer.known[name] = there
            else:
                found.append("%s is %r, but %r was acknowledged" % (name, there, value))
        writer.perhaps = {}
    return found + ["phantom %s = %s" % pair for pair in items.items()]


def recent(acks):
    """Those whose events the server still keeps: it bounds their number and their bytes."""
    kept, total = [], 0
    for ack in reversed(acks):
        total += int(ack[2].rsplit(".", 1)[1])
        if kept and (ack[0] <= acks[-1][0] - WINDOW or total > WINDOW_BYTES):
            break
        kept.append(ack)
    return kept


def check_replay(writers, client, server, choose):
    """Watches from an acknowledged version up to a marker written now."""
    acks = sorted(a for w in writers for a in w.acks if a[0])
    if not acks:
        return []
    rev = choose.choice(recent(acks))[0]
    status, marker = client.ask("POST", HERE, {"metadata": {"generateName": "marker-"}})
    assert status == 201, marker
    end, seen, last = marker["metadata"]["name"], [], rev
    found = []
    for event in Client(server).events(rev):
        if event["type"] == "ERROR":
            return ["the watch from %d was refused: %s" % (rev, event["object"])]
        meta = event["object"]["metadata"]
        if int(meta["resourceVersion"]) <= last:
            found.append("event %s is not after %d" % (meta["resourceVersion"], last))
        last = int(meta["resourceVersion"])
        if meta["name"] == end:
            break
        if not meta["name"].startswith("marker-"):
            value = None if event["type"] == "DELETED" else whole(event["object"])
            seen.append((last, meta["name"], value))
    return found + compare_history(acks, writers, rev, seen)


def compare_history(acks, writers, rev, seen):
    found, replayed = [], {(r, n, v) for r, n, v in seen if v is not None}
    for ack in acks:
        if ack[0] > rev and ack not in replayed:
            found.append("the watch from %d did not tell of %r" % (rev, ack))
    acknowledged = {(n, v) for w in writers for _, n, v in w.acks}
    for _, name, value in seen:  # what was under way at a kill may be reported, but is then the state since
        if value is not None and (name, value) not in acknowledged and name not in unsettled(writers):
            found.append("the watch told of %s = %s, which nobody wrote" % (name, value))
    state = {}
    for _, name, value in seen:
        state[name] = value
    for name, value in state.items():
        for writer in writers:
            if name in writer.known and writer.known[name] != value:
                found.append("the watch ends with %s = %r, the list with %r" % (name, value,
                                                                               writer.known[name]))
    return found


def unsettled(writers):
    return {name for w in writers for name in w.doubtful}


def run_round(server, writers, choose):
    stop = threading.Event()
    threads = [threading.Thread(target=w.work, args=(server, stop)) for w in writers]
    for thread in threads:
        thread.start()
    time.sleep(choose.uniform(0.02, 0.4))
    server.stop(signal.SIGTERM if choose.random() < 0.25 else signal.SIGKILL)
    stop.set()
    for thread in threads:
        thread.join()
    for writer in writers:
        writer.doubtful |= set(writer.perhaps)
    highest = max([a[0] for w in writers for a in w.acks if a[0]] or [0])
    found = damage(server) + [w.refused for w in writers if w.refused]
    server.start()
    client = Client(server)
    found = found or check_state(writers, client, highest)
    return found or check_replay(writers, client, server, choose)


# ---- what once lost everything

def large_first(server, client):
    """A large object right after the start, then small ones."""
    for name, size in (("large", 200000), ("small-1", 100), ("small-2", 100), ("small-3", 100)):
        yield name, client.ask("POST", HERE, {"metadata": {"name": name}, "data": {"v": "x" * size}})[0]


def small_and_large(server, client):
    """50 small writes a second, and three large ones among them."""
    for i in range(50):
        size = 300000 if i in (10, 25, 40) else 100
        yield "m%d" % i, client.ask("POST", HERE, {"metadata": {"name": "m%d" % i}, "data": {"v": "x" * size}})[0]
        time.sleep(0.02)


def lost_after(flyball, scenario, how):
    """Names that were acknowledged and are not there after a restart."""
    server = Server(flyball, ["--insecure-http"])
    with server:
        made = list(scenario(server, Client(server)))
        server.stop(how)
        found = damage(server)
        server.start()
        _, body = Client(server).ask("GET", HERE)
        there = {i["metadata"]["name"] for i in body["items"]}
    return found + ["%s was answered with %d and is gone" % (n, code) for n, code in made if n not in there]


def check_scenarios(tap, flyball):
    for scenario in (large_first, small_and_large):
        for how in (signal.SIGKILL, signal.SIGTERM):
            try:
                lost = lost_after(flyball, scenario, how)
            except RuntimeError as why:
                lost = [str(why)]
            tap.say(not lost, "%s, then %s" % (scenario.__doc__.rstrip("."), how.name), "\n".join(lost[:5]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("flyball")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    choose = random.Random(args.seed)
    writers = [Writer(i, args.seed) for i in range(WRITERS)]
    print("# seed %d" % args.seed, flush=True)
    tap, found = Tap(), []
    with Server(args.flyball, ["--insecure-http"]) as server:
        for number in range(args.rounds):
            found = ["round %d: %s" % (number, one) for one in run_round(server, writers, choose)]
            if found:
                break
    total = sum(len(w.acks) for w in writers)
    tap.say(not found, "%d acknowledged writes survive %d kills" % (total, args.rounds), "\n".join(found[:5]))
    check_scenarios(tap, args.flyball)
    tap.say(not server.complaints(), "the server ends well", server.complaints())
    tap.end()


main()
