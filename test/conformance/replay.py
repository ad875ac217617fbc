#!/usr/bin/python3
"""Asks the API server what a real kube-apiserver was asked once, and compares the answers.

    replay.py FLYBALL [--only PART] [--disk]

Speaks TAP, one case per transcript; steps that differ are listed below it. Starts its own server, in memory
unless --disk is given; scenarios run side by side, each in a namespace of its own, and those with nodes or with the users
of tokens.csv in sequence: some expect to see only theirs. What is compared, and how
closely, is defined in each step: "exact" the whole body, "subset" the values at its pointers, "status" kind and
reason. Steps with "prose" also compare
messages.
"""
import argparse
import base64
import concurrent.futures
import contextlib
import http.client
import json
import pathlib
import random
import ssl
import sys
import threading
import time
import urllib.parse

import compare
from compare import NOTHING, fill, point
from running import Server
from webhook import Webhook

HERE = pathlib.Path(__file__).resolve().parent
BROKEN = (OSError, http.client.HTTPException)
NODES = "/api/v1/nodes"
with_nodes, with_users = threading.Lock(), threading.Lock()
UNTESTED = {}


def impersonation_of(user):
    """Headers to act as another user; groups and extras are lists, sent once for each value."""
    out = {"Impersonate-" + k.capitalize(): v for k, v in user.items() if k in ("user", "uid")}
    if user.get("groups"):
        out["Impersonate-Group"] = user["groups"]
    for key, values in user.get("extra", {}).items():
        out["Impersonate-Extra-" + key] = values  # percent-encoded already
    return out


def send(connection, method, target, body, headers):
    connection.putrequest(method, target, skip_accept_encoding=True)
    for name, value in headers.items():
        for each in value if isinstance(value, list) else [value]:
            connection.putheader(name, each)
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)


def request_of(step, token):
    headers = {"User-Agent": "conformance/1", "Accept": "application/json"}
    token = step.get("token", token)
    if token:
        headers["Authorization"] = "Bearer " + token
    body = None
    if "base64" in step:
        body = base64.b64decode(step["base64"])
    elif "raw" in step:
        body = step["raw"].encode()
    elif "body" in step:
        body = json.dumps(step["body"]).encode()
    if body is not None:
        headers["Content-Type"] = "application/json"
    headers.update(step.get("headers", {}))
    headers.update(impersonation_of(step.get("as", {})))
    target = urllib.parse.quote(step["path"], safe="/:%~")
    if step.get("query"):
        target += "?" + urllib.parse.urlencode(step["query"], quote_via=urllib.parse.quote)
    return step.get("method", "GET"), target, body, {k: v for k, v in headers.items() if v is not None}


def answer_of(reply, data):
    got = {"status": reply.status, "type": reply.headers.get_content_type() if data else ""}
    if reply.headers.get_all("Warning"):
        got["warnings"] = reply.headers.get_all("Warning")
    if data:
        try:
            got["body"] = json.loads(data)
        except ValueError:
            got["body"] = data.decode(errors="replace")
    return got


class Client:
    def __init__(self, url, token):
        self.url, self.token = urllib.parse.urlsplit(url), token

    def connect(self):
        if self.url.scheme == "http":
            return http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=60)
        return http.client.HTTPSConnection(self.url.hostname, self.url.port, timeout=60,
                                           context=ssl._create_unverified_context())

    def ask(self, step):
        connection = self.connect()
        try:
            send(connection, *request_of(step, self.token))
            reply = connection.getresponse()
            return answer_of(reply, reply.read())
        finally:
            connection.close()


class Watch:
    """Reads events in the background until the stream ends or is shut."""

    def __init__(self, client, step):
        self.connection = client.connect()
        self.events, self.ended, self.refused = [], False, None
        self.news = threading.Condition()
        self.opened = threading.Event()
        threading.Thread(target=self._read, args=(request_of(step, client.token),), daemon=True).start()
        self.opened.wait(5)

    def _read(self, request):
        try:
            send(self.connection, *request)
            reply = self.connection.getresponse()
            if reply.status != 200:
                self.refused = answer_of(reply, reply.read())
            self.opened.set()
            while self.refused is None and (line := reply.readline()):
                with self.news:
                    self.events.append(json.loads(line))
                    self.news.notify()
        except (*BROKEN, ValueError, AttributeError):
            pass  # shut from our side, or cut: what came counts
        with self.news:
            self.ended = True
            self.news.notify()
        self.opened.set()

    def take(self, count, timeout, quiet, bookmarks):
        end_mark = "/object/metadata/annotations/k8s.io~1initial-events-end"

        def wanted():
            return [e for e in self.events if e.get("type") != "BOOKMARK" or bookmarks == "all" or
                    bookmarks == "end" and point(e, end_mark) == "true"]
        with self.news:
            self.news.wait_for(lambda: self.ended or count is not None and len(wanted()) >= count, timeout)
            if count is not None:  # and nothing beyond what was asked for
                self.news.wait_for(lambda: self.ended or len(wanted()) > count, quiet)
            taken, self.events = wanted(), []
        return {"status": 200, "type": "watch", "body": {"events": taken, "closed": self.ended}}

    def shut(self):
        try:
            self.connection.sock.shutdown(2)
        except (OSError, AttributeError):
            pass


def stripped(value, keep_managed):
    """Without what is never compared; managedFields, where they count, without times and in order."""
    if isinstance(value, list):
        return [stripped(v, keep_managed) for v in value]
    if not isinstance(value, dict):
        return value
    out = {k: stripped(v, keep_managed) for k, v in value.items()
           if k != "selfLink" and (keep_managed or k != "managedFields")}
    if isinstance(out.get("managedFields"), list):
        order = ("manager", "operation", "subresource", "apiVersion", "fieldsType", "fieldsV1")
        out["managedFields"] = sorted(({k: entry[k] for k in order if k in entry}
                                       for entry in out["managedFields"]), key=str)
    return out


def gist(status, prose=False):
    """Of a Status, everything but its messages, unless those count."""
    out = {k: status[k] for k in ("kind", "apiVersion", "status", "reason", "code") if k in status}
    details = status.get("details") or {}
    kept = {k: details[k] for k in ("name", "group", "kind", "uid") if k in details}
    causes = [[c.get("field", ""), c.get("reason", "")] + [c.get("message", "")] * prose
              for c in details.get("causes") or []
              if c.get("field") != "<nil>" or prose and "rules were not checked" not in c.get("message", "")]
    if details.get("causes"):
        kept["causes"] = sorted(causes)
    if prose and len(details.get("causes") or []) < 2:  # several errors have no order
        out["message"] = status.get("message", "")
    return {**out, "details": kept} if kept else out


class Scenario:
    def __init__(self, client, transcript):
        self.client, self.transcript, self.watches, self.hooks = client, transcript, {}, {}
        ident = "c" + "".join(random.choices("bcdfghjklmnpqrstvwxz2456789", k=7))
        self.names = {"id": ident, "ns": "conf-" + ident}
        self.comparison = compare.Comparison(self.names)

    def begin(self):
        if not self.transcript.get("namespace", True):
            return
        self.client.ask({"method": "POST", "path": "/api/v1/namespaces",
                         "body": {"metadata": {"name": self.names["ns"]}}})
        account = "/api/v1/namespaces/%s/serviceaccounts/default" % self.names["ns"]
        until = time.time() + (5 if self.transcript.get("wait_sa") else 0)
        while time.time() < until and self.client.ask({"path": account})["status"] != 200:
            time.sleep(0.02)

    def finish(self):
        for watch in self.watches.values():
            watch.shut()
        paths = list(self.transcript.get("cleanup", []))
        if self.transcript.get("namespace", True):
            paths.append("/api/v1/namespaces/${ns}")
        for path in paths:
            try:
                self.client.ask({"method": "DELETE", "path": fill(path, self.names)})
            except BROKEN:
                pass
        for hook in self.hooks.values():
            hook.close()

    def perform(self, step):
        live = fill({k: v for k, v in step.items() if k not in ("got", "save")}, self.names)
        if "webhook" in live or "requests" in live:
            got = self.use_webhook(live)
        elif "pause" in live:  # for the original, whose policies take effect after a second
            got = {"status": 200, "type": ""}
        elif "watch" in live:
            watch = self.watches[live["watch"]] = Watch(self.client, live)
            got = watch.refused or {"status": 200 if watch.opened.is_set() else 0, "type": "watch"}
        elif "collect" in live:
            got = self.watches[live["collect"]].take(live.get("events"), live.get("timeout", 10),
                                                     live.get("quiet", 0.3), live.get("bookmarks"))
        else:
            got = self.ask_until(live)
        got = stripped(got, self.transcript.get("managedFields"))
        for name, pointer in step.get("save", {}).items():
            value = point(got.get("body"), pointer)
            if value != NOTHING:
                self.names[name] = value
        return got

    def use_webhook(self, step):
        """Starts a webhook, or reports what it was asked."""
        if "webhook" in step:
            hook = self.hooks[step["webhook"]] = Webhook(step.get("answers", []))
            self.names.update({step["webhook"] + "_url": hook.url, step["webhook"] + "_ca": hook.ca})
            return {"status": 200, "type": "webhook"}
        hook, where = self.hooks[step["requests"]], step.get("where", {})
        give_up = time.time() + step.get("timeout", 5)
        while time.time() < give_up and len(hook.take(where, keep=True)) < step.get("count", 0):
            time.sleep(0.02)
        found = hook.take(where, step.get("keep", False))
        hook.answers = step.get("set", hook.answers)
        return {"status": 200, "type": "webhook", "body": {"requests": found[-step.get("last", len(found) or 1):]}}

    def ask_until(self, step):
        give_up = time.time() + step.get("timeout", 15)
        while True:
            got = self.client.ask(step)
            there = all((got["status"] if at == "status" else point(got.get("body"), at)) == value
                        for at, value in step.get("until", {}).items())
            if there or time.time() > give_up:
                return got
            time.sleep(0.05)

    def judge(self, step, got):
        want, level, found = step["got"], step.get("expect", "exact"), []
        body = got.get("body", NOTHING)
        if got["status"] not in [want["status"], *step.get("also", [])]:
            found.append("status: want %s, got %s %s" % (want["status"], got["status"],
                                                        point(body, "/message")))
        for pointer, pattern in step.get("match", {}).items():
            value = point(body, fill(pointer, self.names))
            if not compare.re.search(pattern, str(value)):
                found.append("%s: %.100r does not match %s" % (pointer, value, pattern))
        if step.get("warnings"):
            found += self.comparison.differences(want.get("warnings", []), got.get("warnings", []),
                                                 "warnings")
        if level != "status" and want["type"] != got["type"]:
            found.append("content type: want %s, got %s" % (want["type"], got["type"]))
        return found + self.judge_body(step, level, body)

    def judge_body(self, step, level, body):
        want = step["got"].get("body", NOTHING)
        ignored = [*step.get("ignore", []), *step.get("match", {})]
        if level == "exact":
            if point(want, "/kind") == point(body, "/kind") == "Status":
                prose = bool(step.get("prose"))
                want, body = gist(want, prose), gist(body, prose)
            return self.comparison.differences(want, body, ignored=ignored)
        found = []
        for pointer in step["fields"] if level == "subset" else ["/kind", "/reason"]:
            value = step["got"]["values"][pointer] if "values" in step["got"] else point(want, pointer)
            if level == "subset" or value != NOTHING:
                found += self.comparison.differences(value, point(body, fill(pointer, self.names)), pointer,
                                                     ignored)
        return found

    def run(self):
        """Problems by step name."""
        alone = with_users if "users" in self.transcript.get("needs", []) else None
        if any(step.get("path", "").startswith(NODES) for step in self.transcript["steps"]):
            alone = with_nodes
        with alone or contextlib.nullcontext():
            return self.run_now()

    def run_now(self):
        problems, lost = {}, None
        try:
            self.begin()
            for step in self.transcript["steps"]:
                if lost:
                    problems[step["name"]] = ["not tried, as %s failed" % lost]
                    continue
                try:
                    found = self.judge(step, self.perform(step))
                except BROKEN as e:
                    found = ["no answer: %r" % e]
                except (KeyError, TypeError, ValueError, AttributeError) as e:
                    found = ["cannot be compared: %r" % e]
                if found:
                    problems[step["name"]] = found
                    lost = step["name"] if step.get("vital") else None
        finally:
            self.finish()
        return problems


def reason_to_skip(name):
    return next((why for prefix, why in UNTESTED.items() if name.startswith(prefix)), None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("flyball")
    parser.add_argument("--only", default="")
    parser.add_argument("--disk", action="store_true")
    args = parser.parse_args()
    transcripts = [json.loads(f.read_text()) for f in sorted((HERE / "transcripts").glob("*.json"))]
    transcripts = [t for t in transcripts if args.only in t["name"]]
    print("1..%d" % len(transcripts), flush=True)
    failed = 0
    flags = ["--token-file", HERE / "tokens.csv"] + ([] if args.disk else ["--in-memory"])
    # wire-* were recorded without the controller that publishes a certificate in each namespace; plain HTTP has none
    with Server(args.flyball, flags) as server, Server(args.flyball, flags + ["--insecure-http"]) as plain, \
            concurrent.futures.ThreadPoolExecutor(12) as pool:
        clients = [Client(s.url, s.token) for s in (server, plain)]
        runs = [None if reason_to_skip(t["name"]) else
                pool.submit(Scenario(clients[t["name"].startswith("wire-")], t).run) for t in transcripts]
        for number, (transcript, run) in enumerate(zip(transcripts, runs), 1):
            problems = run.result() if run else {}
            failed += bool(problems)
            for step, found in problems.items():
                print("# %s: %s" % (step, "; ".join(found[:4])))
            print("%s %d - %s (%d steps)%s" % ("not ok" if problems else "ok", number, transcript["name"],
                                              len(transcript["steps"]),
                                              "" if run else " # SKIP " + reason_to_skip(transcript["name"])),
                  flush=True)
    complaints = server.complaints() + plain.complaints()
    if complaints:
        print("# " + complaints)
    sys.exit(failed > 0 or bool(complaints))


if __name__ == "__main__":
    main()
