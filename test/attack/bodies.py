"""Bodies: objects of every kind with thousands of mutations, and texts made to exhaust a parser.

No body may end the server, make it answer 500, or keep others waiting."""
import copy
import gzip
import json

import yaml

from target import BROKEN, TOP, Client, Scale, attack

MERGE, JSON_PATCH, STRATEGIC, APPLY = ("application/merge-patch+json", "application/json-patch+json",
                                       "application/strategic-merge-patch+json", "application/apply-patch+yaml")
MAPS = "/api/v1/namespaces/a/configmaps"
PODS = "/api/v1/namespaces/a/pods"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
POD = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a", "image": "a"}]}}
SEEDS = [
    {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}, "finalizers": ["a.b/c"]}, "spec": {
        "containers": [{"name": "a", "image": "i", "env": [{"name": "A", "value": "b"}], "ports": [{"containerPort": 80}],
                        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}, "livenessProbe": {"httpGet": {"port": 80}}}],
        "volumes": [{"name": "v", "emptyDir": {}}], "tolerations": [{"operator": "Exists"}], "securityContext": {},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}]}}}}},
    {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80, "name": "a"}],
                                                                              "selector": {"a": "b"}}},
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "YQ=="}, "type": "Opaque"},
    {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"kind": "Pod", "name": "p",
                                                                                     "namespace": "a"}, "reason": "r"},
    {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
    {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]}}}},
    {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {
        "holderIdentity": "a", "leaseDurationSeconds": 10, "renewTime": "2026-01-01T00:00:00.000000Z"}},
    {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "r"}, "rules": [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]},
    {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "as.x.io"}, "spec": {
        "group": "x.io", "scope": "Namespaced", "names": {"plural": "as", "kind": "A"}, "versions": [
            {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": {"type": "object", "properties": {
                    "a": {"type": "string", "pattern": "^a+$"}, "n": {"type": "integer", "minimum": 1}}}}}}}]}},
]
VALUES = [None, True, 0, -1, 1 << 63, -(1 << 63), 1.5, 1e308, "", "x", "x" * 300, "x" * 70000, "\x00", "\ud83d\ude00", "../..",
          "a/b/c", "2026-13-45T99:99:99Z", "1e999", "-5Gi", "9" * 400, [], {}, [[]], [{}], [None], {"": ""}, {"a": None},
          {"$patch": "delete"}, {"$retainKeys": [1]}, ["a", "a"], [1, "a", None], "{{.}}", "%s%n%n", "a\nb", "A" * 64]
MUTATIONS = 400
TYPED_PATCH = "failed to create typed patch object"  # kube-apiserver answers this with 500 too


def seeds(target):
    """Objects of every kind: those above, and the examples and definitions of this repository."""
    found = copy.deepcopy(SEEDS)
    for path in [*sorted((TOP / "examples").glob("*.yaml")), *sorted((TOP / "deploy/crds").glob("*.yaml"))[:3]]:
        if path.stat().st_size < 60000:
            found += [d for d in yaml.safe_load_all(path.read_text()) if d and "testbed" not in d.get("apiVersion", "")]
    return found


def plurals(target):
    """(apiVersion, kind): (path of the collection, namespaced), from discovery."""
    found = {}
    groups = target.admin.must("GET", "/apis")["groups"]
    for version in ["v1"] + [v["groupVersion"] for g in groups for v in g["versions"]]:
        base = "/api/v1" if version == "v1" else "/apis/" + version
        for one in target.admin.must("GET", base)["resources"]:
            if "/" not in one["name"] and "create" in one["verbs"]:
                found[version, one["kind"]] = base + ("/namespaces/a/" if one["namespaced"] else "/") + one["name"]
    return found


def places(node, found):
    """(container, key) of everything inside."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in list(items):
        found.append((node, key))
        places(value, found)
    return found


def mutate(one, choose):
    one = copy.deepcopy(one)
    for _ in range(choose.randrange(1, 4)):
        where, key = choose.choice(places(one, []))
        how = choose.randrange(5)
        try:
            if how == 0:
                del where[key]
            elif how == 1 and isinstance(where, dict):
                where[str(choose.choice(VALUES))[:50]] = copy.deepcopy(where[key])
            elif how == 2 and isinstance(where, list):
                where += copy.deepcopy(where)
            else:
                where[key] = copy.deepcopy(choose.choice(VALUES))
        except (KeyError, IndexError, TypeError):
            pass
        if not places(one, []):
            break
    return one


def spoil(text, choose):
    """Bytes instead of values: what JSON parsers dislike."""
    data = bytearray(text)
    for _ in range(choose.randrange(1, 5)):
        at = choose.randrange(len(data))
        data[at:at + choose.randrange(2)] = choose.choice([b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"\x00", b"[" * 50, b"{",
                                                          b"\"", b"\\u0000", b"\\ud800", b"1e99999", b"-", b",,", b"nan"])
    return bytes(data)


class Sender:
    """Sends, and keeps what was wrong with the answers."""

    def __init__(self, target):
        self.client, self.count, self.wrong, self.accepted = Client(target, target.admin_token), 0, [], 0

    def send(self, method, path, body, content="application/json", headers=None, seconds=3.0):
        begin = self.client.target.process.cpu_s()
        try:
            status, answer = self.client.ask(method, path, body, {"Content-Type": content, **(headers or {})})
        except BROKEN as why:
            status, answer = 0, repr(why)
        took = (self.client.target.process.cpu_s() - begin) / Scale.times
        self.count += 1
        self.accepted += 200 <= status < 300
        if status == 0 or (status >= 500 and status != 507 and TYPED_PATCH not in str(answer)):
            self.wrong.append("%s %s: %s %s; the body began %r" % (method, path, status, str(answer)[:200], (
                body if isinstance(body, bytes) else json.dumps(body).encode())[:200]))
        elif took > seconds:
            self.wrong.append("%s %s took %.1f s of CPU" % (method, path, took))
        return status, answer

    def end(self):
        self.client.close()
        assert not self.wrong, "%d of %d: %s" % (len(self.wrong), self.count, " | ".join(self.wrong[:3]))
        return self.count


@attack("bodies mutated")
def mutated(target, choose, long):
    s, paths, all_seeds = Sender(target), plurals(target), seeds(target)
    for _ in range(MUTATIONS * (15 if long else 1)):
        one = mutate(choose.choice(all_seeds), choose)
        seed = choose.choice(all_seeds)
        path = paths.get((one.get("apiVersion"), one.get("kind")) if isinstance(one.get("apiVersion"), str) and isinstance(
            one.get("kind"), str) else None) or paths.get((seed["apiVersion"], seed["kind"])) or MAPS
        body = json.dumps(one).encode()
        if choose.random() < 0.2:
            body = spoil(body, choose)
        method, name = choose.choice(["POST", "POST", "PUT", "PATCH"]), "/%s" % choose.choice(["p", "s", "web", "as.x.io"])
        if method == "POST":
            s.send(method, path + "?dryRun=All&fieldValidation=" + choose.choice(["Strict", "Warn", "Ignore"]), body)
        elif method == "PUT":
            s.send(method, path + name + "?dryRun=All", body)
        else:
            content = choose.choice([MERGE, STRATEGIC, APPLY, JSON_PATCH])
            s.send(method, path + name + "?dryRun=All&fieldManager=x", body, content)
    return s.end()


@attack("bodies stored and patched")
def stored(target, choose, long):
    """Mutated objects that are really kept, changed and deleted; then nothing of them is left."""
    s, paths = Sender(target), plurals(target)
    for at in range(300 if long else 60):
        one = mutate(choose.choice(SEEDS[:-1]), choose)
        seed = choose.choice(SEEDS[:-1])
        path = paths[seed["apiVersion"], seed["kind"]]
        one = {**seed, **{k: v for k, v in one.items() if k not in ("apiVersion", "kind", "metadata")},
               "metadata": {**seed["metadata"], "name": "m-%d" % at, "finalizers": None}}
        if s.send("POST", path, one)[0] != 201:
            continue
        for content in (MERGE, STRATEGIC, APPLY):
            s.send("PATCH", "%s/m-%d?fieldManager=x&force=true" % (path, at), mutate(seed, choose), content)
        s.send("PATCH", "%s/m-%d" % (path, at), [{"op": choose.choice(["add", "copy", "test", "move", "remove", "odd"]),
                                                 "path": "/metadata/labels", "from": "/spec",
                                                 "value": choose.choice(VALUES)}], JSON_PATCH)
        s.send("PUT", "%s/m-%d/status" % (path, at), one)
        s.send("PATCH", "%s/m-%d" % (path, at), {"metadata": {"finalizers": None}}, MERGE)
        s.send("DELETE", "%s/m-%d" % (path, at), {"gracePeriodSeconds": 0})
    return s.end()


def nested(depth, opening=b"[", closing=b"]"):
    return opening * depth + b"1" + closing * depth


def big_map(n):
    return json.dumps({"metadata": {"name": "x"}, "data": {"k%d" % i: "v" for i in range(n)}}).encode()


@attack("bodies to exhaust a parser")
def exhausting(target, choose, long):
    s = Sender(target)
    head = b'{"metadata":{"name":"x"},"data":{"a":"b"},"x":'
    laughs = b"a: &a [x,x,x,x,x,x,x,x,x,x]\n" + b"".join(
        b"%c: &%c [%s]\n" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 10)) for i in range(12))
    for body in (head + nested(100000) + b"}", nested(2000000), head + nested(100000, b'{"a":', b"}") + b"}",
                 head + b"9" * 1000000 + b"}", head + b"1e999999}", head + b"-0.0e-99999}", head + b"\xff\xfe\x00}",
                 b"\xef\xbb\xbf{}", b"", b" " * 1000000, b"\x00" * 1000, b'{"a":"' + b"\\u0041" * 300000 + b'"}',
                 b'{"metadata":{"name":"x","name":"y","name":"x"}}', b'{"a":1' + b',"a":1' * 200000 + b"}",
                 b'{"metadata":{"name":"x"},"data":{' + b",".join(b'"k":"%d"' % i for i in range(100000)) + b"}}",
                 b"x" * (4 << 20), b"[" + b"1," * 700000 + b"1]", big_map(100000)):
        for content in ("application/json", APPLY):
            path = MAPS + "?dryRun=All" if content == "application/json" else MAPS + "/x?dryRun=All&fieldManager=x"
            s.send("POST" if content == "application/json" else "PATCH", path, body, content)
    for content in ("application/yaml", APPLY):
        s.send("POST" if content != APPLY else "PATCH", MAPS + ("" if content != APPLY else "/x?fieldManager=x"), laughs, content)
        s.send("POST" if content != APPLY else "PATCH", MAPS + ("" if content != APPLY else "/x?fieldManager=x"),
               b"a: &a\n  b: *a\n", content)
    return s.end()


@attack("bodies of other types")
def types(target, choose, long):
    s = Sender(target)
    bomb = gzip.compress(b" " * (50 << 20))
    for encoding in ("gzip", "deflate", "br", "gzip, gzip"):
        status, _ = s.send("POST", MAPS, bomb, headers={"Content-Encoding": encoding})
        assert status >= 400, "a gzip bomb was taken"
    for content in ("", "text/plain", "application/xml", "multipart/form-data; boundary=x", "application/json; charset=utf-16",
                    "application/vnd.kubernetes.protobuf", "application/cbor", "a" * 5000, "*/*", JSON_PATCH, MERGE):
        for body in (b"{}", b"k8s\x00" + bytes(100), b"k8s\x00\x0a\xff\xff\xff\xff\x0f" + bytes(50), b"\xff" * 1000):
            s.send("POST", MAPS, body, content)
            s.send("PATCH", MAPS + "/there", body, content)
    for _ in range(2000 if long else 100):
        s.send("POST", MAPS + "?dryRun=All", b"k8s\x00" + bytes(choose.randrange(256) for _ in range(choose.randrange(200))),
               "application/vnd.kubernetes.protobuf")
    return s.end()


def twice(make, n):
    """(seconds for n, for 2 n), each the better of two."""
    def once(size):
        return min(make(size) for _ in range(2))
    return once(n), once(2 * n)


GROWING = {
    "env": lambda n: (PODS, {**POD, "spec": {"containers": [{"name": "a", "image": "a", "env": [
        {"name": "E%d" % i, "value": "v"} for i in range(n)]}]}}),
    "ports": lambda n: (PODS, {**POD, "spec": {"containers": [{"name": "a", "image": "a", "ports": [
        {"containerPort": 1 + i % 65535, "protocol": "TCP" if i < 65535 else "UDP"} for i in range(n)]}]}}),
    "volumes": lambda n: (PODS, {**POD, "spec": {"containers": POD["spec"]["containers"], "volumes": [
        {"name": "v%d" % i, "emptyDir": {}} for i in range(n)]}}),
    "containers": lambda n: (PODS, {**POD, "spec": {"containers": [{"name": "c%d" % i, "image": "a"} for i in range(n)]}}),
    "tolerations": lambda n: (PODS, {**POD, "spec": {**POD["spec"], "tolerations": [
        {"key": "k%d" % i, "operator": "Exists"} for i in range(n)]}}),
    "finalizers": lambda n: (MAPS, {"metadata": {"name": "x", "finalizers": ["a.b/f%d" % i for i in range(n)]}}),
    "owners": lambda n: (MAPS, {"metadata": {"name": "x", "ownerReferences": [
        {"apiVersion": "v1", "kind": "Pod", "name": "p%d" % i, "uid": "%d" % i} for i in range(n)]}}),
    "labels": lambda n: (MAPS, {"metadata": {"name": "x", "labels": {"l%d" % i: "v" for i in range(n)}}}),
    "keys": lambda n: (MAPS, {"metadata": {"name": "x"}, "data": {"k%d" % i: "v" for i in range(n)}}),
    "service ports": lambda n: ("/api/v1/namespaces/a/services", {"metadata": {"name": "x"}, "spec": {"ports": [
        {"name": "p%d" % i, "port": 1 + i} for i in range(n)]}}),
    "rules": lambda n: ("/apis/rbac.authorization.k8s.io/v1/namespaces/a/roles", {"metadata": {"name": "x"}, "rules": [
        {"apiGroups": [""], "resources": ["r%d" % i], "verbs": ["get"]} for i in range(n)]}),
    "subjects": lambda n: ("/apis/rbac.authorization.k8s.io/v1/namespaces/a/rolebindings", {
        "metadata": {"name": "x"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"},
        "subjects": [{"kind": "User", "name": "u%d" % i, "apiGroup": "rbac.authorization.k8s.io"} for i in range(n)]}),
}


@attack("bodies with giant lists")
def giant_lists(target, choose, long):
    """Megabytes of one list: the work per entry does not grow with the list. Seconds of the server's CPU are measured,
    so other processes do not count; the bound leaves room for n log n."""
    s, wrong, n = Sender(target), [], 8000 - choose.randrange(500)  # at most 16,384 entries are read
    for name, make in GROWING.items():
        def measure(size, make=make):
            path, body = make(size)
            text = json.dumps(body).encode()
            begin = target.process.cpu_s()
            status, answer = s.send("POST", path + "?dryRun=All", text, seconds=30)
            assert status in (201, 422), "%s with %d entries: %s" % (path, size, answer)
            return target.process.cpu_s() - begin
        small, large = twice(measure, n)
        if large > 0.5 * Scale.times or (large > 0.1 * Scale.times and large > 3.2 * small):
            wrong.append("%s: %.2f s of CPU for %d, %.2f s for %d" % (name, small, n, large, 2 * n))
    s.end()
    assert not wrong, "; ".join(wrong)
    return s.count


@attack("bodies of definitions")
def definitions(target, choose, long):
    """Schemas made to be expensive: patterns that explode, deep trees, rules without end."""
    s, count = Sender(target), 12 if long else 4
    deep = {"type": "string"}
    for _ in range(200):
        deep = {"type": "object", "properties": {"a": deep}}
    schemas = [{"type": "string", "pattern": p} for p in ("^(a+)+$", "(a|aa)*b", "^(([a-z])+.)+[A-Z]([a-z])+$", "(a{0,1000}){0,1000}")]
    schemas += [deep, {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
                {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": {
                    "type": "object", "required": ["k"], "properties": {"k": {"type": "string"}}}},
                {"type": "string", "x-kubernetes-validations": [{"rule": "self.matches('(a+)+$')"}] * 50},
                {"type": "object", "x-kubernetes-preserve-unknown-fields": True}]
    values = ["a" * 50000 + "!", ["v%d" % i for i in range(30000)], [{"k": "v%d" % i} for i in range(30000)], {"a": 1}, None, 5]
    for number in range(count):
        group = "g%d.attack.io" % number
        for kind, schema in enumerate(schemas):
            plural = "k%dn%ds" % (kind, number)
            made = s.send("POST", CRDS, {
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": {"name": "%s.%s" % (plural, group)}, "spec": {
                    "group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": "K%dN%d" % (kind, number)},
                    "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {
                        "type": "object", "properties": {"spec": schema}}}}]}})[0]
            if made != 201:
                continue
            for value in values:
                s.send("POST", "/apis/%s/v1/namespaces/a/%s" % (group, plural), {
                    "apiVersion": group + "/v1", "kind": "K%dN%d" % (kind, number), "metadata": {"generateName": "x-"},
                    "spec": value})
            s.send("DELETE", "%s/%s.%s" % (CRDS, plural, group), None)
    return s.end()


@attack("queries")
def queries(target, choose, long):
    """Selectors, pages and options out of range."""
    s = Sender(target)
    odd = ["limit=-1", "limit=99999999999999999999", "limit=a", "continue=" + "A" * 5000, "continue=e30", "resourceVersion=-1",
           "resourceVersion=99999999999999999999", "resourceVersion=a", "resourceVersionMatch=Odd", "labelSelector=" + "a," * 5000,
           "labelSelector=a%20in%20(" + "b," * 5000 + "b)", "labelSelector=!!!", "labelSelector=((((((", "fieldSelector=a=b",
           "fieldSelector=metadata.name=" + "x" * 10000, "fieldSelector=" + "metadata.name=x," * 2000,
           "timeoutSeconds=99999999999999999999", "watch=1&resourceVersion=99999999&timeoutSeconds=1", "%00=%00",
           "&" * 5000, "a=b&" * 5000, "pretty=true", "sendInitialEvents=true", "allowWatchBookmarks=%ff", "dryRun=Some"]
    for query in odd:
        for path in ("/api/v1/pods", MAPS, "/apis/apps/v1/deployments"):
            s.send("GET", path + "?" + query, None)
    for query in ("dryRun=None", "propagationPolicy=Odd", "gracePeriodSeconds=-9", "gracePeriodSeconds=99999999999999999999"):
        s.send("DELETE", MAPS + "/none?" + query, None)
    return s.end()
