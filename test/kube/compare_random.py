#!/usr/bin/python3
"""Random creates and updates, asked of a real kube-apiserver and of flyball, and the answers compared.

    compare_random.py REAL TOKEN FLYBALL TOKEN [--creates N] [--updates N] [--seed N]

Bodies come from the recordings; each is changed in one to three places (a value of another type, out of bounds, removed,
doubled, a new field) and sent as a dry run. What is compared: the status code, the reason, and field and reason of each cause.
Prints each difference, and "N of M creates and N of M updates differ".
"""
import argparse
import copy
import http.client
import json
import pathlib
import random
import ssl
import time
import urllib.parse

TRANSCRIPTS = pathlib.Path(__file__).resolve().parent.parent / "conformance/transcripts"
VALUES = ["", "x", "A b", "a" * 70, "-1", "0", "10", "1.5", "100m", "true", "a/b", "a.b.c", "10.0.0.1", 0, 1, -1, 2**31, 2**40, 1.5, True, False, None, [], {}, ["a"], ["a", "a"], {"a": "b"}, [{}], "2020-01-01T00:00:00Z", "Never", "Always", "TCP"]

class Side:
    def __init__(self, url, token):
        self.at, self.token = urllib.parse.urlsplit(url), token
        self.connect()
    def connect(self):
        self.c = http.client.HTTPSConnection(self.at.hostname, self.at.port, context=ssl._create_unverified_context(), timeout=60)
    def ask(self, method, path, body=None, kind="application/json"):
        for again in (1, 0):
            try:
                self.c.request(method, path, None if body is None else json.dumps(body), {"Authorization": "Bearer " + self.token, "Content-Type": kind, "Accept": "application/json"})
                r = self.c.getresponse(); text = r.read()
                break
            except (OSError, http.client.HTTPException):
                self.connect()
                if not again: return 0, {}
        try: return r.status, json.loads(text)
        except ValueError: return r.status, {}

def places(tree, path=()):
    if isinstance(tree, dict):
        for k, v in tree.items():
            yield path + (k,)
            yield from places(v, path + (k,))
    elif isinstance(tree, list):
        for i, v in enumerate(tree):
            yield path + (i,)
            yield from places(v, path + (i,))

def change(rng, body):
    spots = [p for p in places(body) if p[0] not in ("apiVersion", "kind", "status") and p != ("metadata",) and p != ("metadata", "name")]
    spots.sort(key=str)
    if not spots: return
    p = rng.choice(spots); at = body
    for k in p[:-1]: at = at[k]
    what = rng.randrange(10)
    if what < 6: at[p[-1]] = copy.deepcopy(rng.choice(VALUES))
    elif what < 8: del at[p[-1]]
    elif isinstance(at, list): at.append(copy.deepcopy(at[p[-1]]))
    else: at["foo" if what == 8 else str(p[-1]) + "x"] = copy.deepcopy(at[p[-1]])

def essence(status, body):
    d = body.get("details") or {} if isinstance(body, dict) else {}
    causes = sorted((c.get("field", ""), c.get("reason", "")) for c in d.get("causes") or []) if status == 422 else []
    return status, body.get("reason") if status >= 400 else None, causes

def main():
    p = argparse.ArgumentParser()
    for w in ("real", "real_token", "ours", "our_token"): p.add_argument(w)
    p.add_argument("--creates", type=int, default=10000); p.add_argument("--updates", type=int, default=4000)
    p.add_argument("--seed", type=int, default=1)
    a = p.parse_args()
    rng = random.Random(a.seed)
    real, ours = Side(a.real, a.real_token), Side(a.ours, a.our_token)
    seen = {}
    for f in sorted(TRANSCRIPTS.glob("*.json")):
        for s in json.loads(f.read_text())["steps"]:
            b = s.get("body")
            text = json.dumps(b)
            path = s.get("path", "")
            if s.get("method") == "POST" and isinstance(b, dict) and "kind" in b and (s.get("got") or {}).get("status") == 201 and "example.com" not in path and "${" not in path.replace("${ns}", "") and "review" not in path and path.count("/") - (2 if "namespaces/" in path else 0) <= 4:
                seen.setdefault(path, set()).add(text.replace("conf-${id}", "rnd").replace("${ns}", "rnd").replace("${id}", "rnd"))
    paths = sorted(seen)
    for side in (real, ours):
        side.ask("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "rnd"}})
    time.sleep(2)  # service accounts
    good = []
    for path in paths:
        for text in sorted(seen[path]):
            b = json.loads(text); q = path.replace("${ns}", "rnd") + "?dryRun=All"
            if real.ask("POST", q, b)[0] == 201 and ours.ask("POST", q, b)[0] == 201: good.append((q, text))
    by = {}
    for q, t in good: by.setdefault(q, []).append(t)
    qs = sorted(by)
    print("%d bodies of %d resources" % (len(good), len(qs)), flush=True)
    def compare(n, make):
        differ = 0
        for _ in range(n):
            method, path, bodies = make()
            x, (status, body) = essence(*real.ask(method, path, bodies[0])), ours.ask(method, path, bodies[1])
            y = essence(status, body)
            if x != y:
                differ += 1
                print("# %s %s\n#   real %s\n#   ours %s %s" % (method, path, x, y, body.get("message", "")[:200] if status >= 400 else ""),
                      flush=True)
        return differ
    def create():
        q = rng.choice(qs); b = json.loads(rng.choice(by[q]))
        for _ in range(rng.randint(1, 2)): change(rng, b)
        return "POST", q, (b, b)
    c = compare(a.creates, create)
    stored = []
    for q in qs:
        b = json.loads(by[q][0]); b["metadata"] = dict(b["metadata"], name="upd%d" % (a.seed * 1000 + int(time.time()) % 1000)); b["metadata"].pop("generateName", None)
        path = q.split("?")[0]
        s1, o1 = real.ask("POST", path, b); s2, o2 = ours.ask("POST", path, b)
        if s1 == s2 == 201: stored.append((path + "/" + o1["metadata"]["name"] + "?dryRun=All", o1, o2))
    def update():
        path, *objects = rng.choice(stored)
        seed, bodies = rng.random(), []
        for b in copy.deepcopy(objects):  # the same change of what each server stored
            for k in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink"):
                b["metadata"].pop(k, None)
            b.pop("status", None)
            own = random.Random(seed)
            for _ in range(own.randint(1, 2)):
                change(own, b)
            bodies.append(b)
        return "PUT", path, bodies
    u = compare(a.updates, update) if stored else 0
    print("%d of %d creates and %d of %d updates differ" % (c, a.creates, u, a.updates))
main()
