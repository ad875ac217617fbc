#!/usr/bin/python3
"""Who may do what on the embedded API server, tried by an attacker: creating without the right to,
certificates against tokens, impersonation, tokens that are forged, early, late or of another user, and what the
server speaks. Usage: rights.py FLYBALL. Speaks TAP.
"""
import base64
import hashlib
import hmac
import http.client
import json
import pathlib
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.parse
import warnings

from harness import Server, Tap, free_port, need, until

FLYBALL = sys.argv[1]
warnings.simplefilter("ignore", DeprecationWarning)  # of TLS 1.1, which is tried to see it refused
MAPS, RBAC = "/api/v1/namespaces/default/configmaps", "/apis/rbac.authorization.k8s.io/v1"
APPLY, MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
WHO = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
CASES = []


def case(function):
    CASES.append(function)
    return function


class World:
    """A server, an authority for client certificates, and users with a token each."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        users = self.folder / "tokens.csv"
        users.write_text("".join(f'token-of-{name},{name},uid-{name},"team"\n' for name in ("alice", "bob", "carol")))
        self.server = Server(FLYBALL, ["--token-file", str(users)]).start()
        self.url = urllib.parse.urlsplit(self.server.url)
        self.made = 0

    def context(self, certificate=None, **more):
        tls = ssl.create_default_context(cafile=str(self.server.data / "ca.crt"))
        for key, value in more.items():
            setattr(tls, key, value)
        if certificate:
            tls.load_cert_chain(certificate + ".crt", certificate + ".key")
        return tls

    def ask(self, method, path, body=None, token=None, kind="application/json", certificate=None, headers=()):
        """(status, body). `headers` may have one name several times."""
        connection = http.client.HTTPSConnection(self.url.hostname, self.url.port, timeout=60,
                                                 context=self.context(certificate))
        connection.putrequest(method, path)
        text = json.dumps(body).encode() if body is not None else b""
        for name, value in [("Content-Type", kind), ("Content-Length", str(len(text))), *headers]:
            connection.putheader(name, value)
        if token:
            connection.putheader("Authorization", "Bearer " + token)
        connection.endheaders(text)
        answer = connection.getresponse()
        said = answer.read()
        connection.close()
        try:
            return answer.status, json.loads(said)
        except ValueError:
            return answer.status, {}

    def admin(self, method, path, body=None, want=(200, 201), **more):
        status, said = self.ask(method, path, body, self.server.token, **more)
        assert status in want, (method, path, status, said)
        return said

    def allow(self, user, rules, namespace="default", name=None):
        """A role with these rules, bound to the user; cluster-wide without a namespace."""
        self.made += 1
        name = name or f"r{self.made}"
        kind = "Role" if namespace else "ClusterRole"
        at = RBAC + (f"/namespaces/{namespace}/roles" if namespace else "/clusterroles")
        self.admin("POST", at, {"metadata": {"name": name}, "rules": rules})
        self.admin("POST", at.replace("roles", "rolebindings"), {
            "metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name},
            "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}]})
        return at + "/" + name, at.replace("roles", "rolebindings") + "/" + name

    def take(self, granted):
        for path in granted:
            self.admin("DELETE", path)

    def certificate(self, name, subject, usage="clientAuth", own=False):
        """Files NAME.crt and NAME.key, signed by the server's authority, or only by itself."""
        at = str(self.folder / name)
        sign = [] if own else ["-CA", str(self.server.data / "ca.crt"), "-CAkey", str(self.server.data / "ca.key")]
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", subject,
                        "-keyout", at + ".key", "-out", at + ".crt", "-addext", "extendedKeyUsage=" + usage,
                        "-addext", "basicConstraints=critical,CA:FALSE", *sign],
                       check=True, capture_output=True)
        return at

    def who(self, **more):
        status, said = self.ask("POST", WHO, {}, **more)
        return said["status"]["userInfo"] if status == 201 else status


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


# ---- certificate requests

CSRS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"


def certificate_request(w, name, subject, **status):
    """A request of that name; its key is NAME.key."""
    at = str(w.folder / name)
    subprocess.run(["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", subject, "-keyout", at + ".key",
                    "-out", at + ".csr"], check=True, capture_output=True)
    text = base64.b64encode(pathlib.Path(at + ".csr").read_bytes()).decode()
    return {"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
            "spec": {"request": text, "signerName": "kubernetes.io/kube-apiserver-client", "usages": ["client auth"]},
            **({"status": status} if status else {})}


APPROVED = [{"type": "Approved", "status": "True", "reason": "r", "message": "m"}]


@case
def only_an_approved_request_is_signed(w):
    part = {"apiGroups": ["certificates.k8s.io"], "resources": [
        "certificatesigningrequests", "certificatesigningrequests/approval", "certificatesigningrequests/status"],
        "verbs": ["create", "get", "update", "patch"]}
    granted = w.allow("alice", [part], namespace=None)
    mine = certificate_request(w, "csr-alice", "/CN=root/O=devs", conditions=APPROVED)
    status, said = w.ask("POST", CSRS, mine, "token-of-alice")
    assert status == 201 and not said.get("status") and said["spec"]["username"] == "alice", said
    for path in ("", "/approval", "/status"):
        w.ask("PUT", f"{CSRS}/csr-alice{path}", mine, "token-of-alice")
        w.ask("PATCH", f"{CSRS}/csr-alice{path}", {"status": {"conditions": APPROVED}}, "token-of-alice", MERGE)
        got = w.admin("GET", CSRS + "/csr-alice").get("status") or {}
        assert "certificate" not in got and not got.get("conditions"), (path, got)
    status, said = w.ask("POST", CSRS, certificate_request(w, "csr-masters", "/CN=x/O=system:masters"), "token-of-alice")
    assert status == 403 and "system:masters" in said["message"], said
    w.admin("PUT", CSRS + "/csr-alice/approval", mine)
    def certificate():
        return (w.admin("GET", CSRS + "/csr-alice").get("status") or {}).get("certificate")
    assert until(certificate)
    (w.folder / "csr-alice.crt").write_bytes(base64.b64decode(certificate()))
    user = w.who(certificate=str(w.folder / "csr-alice"))
    assert user["username"] == "root" and "devs" in user["groups"], user
    w.take(granted)
    w.admin("DELETE", CSRS + "/csr-alice")


# ---- creating


@case
def apply_that_creates_needs_create(w):
    granted = w.allow("alice", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch", "get"]}])
    status, said = w.ask("PATCH", MAPS + "/n?fieldManager=x", config_map("n"), "token-of-alice", APPLY)
    assert status == 403 and said["message"] == (
        'configmaps "n" is forbidden: User "alice" cannot create resource "configmaps" in API group "" in the namespace '
        '"default"'), said
    assert w.ask("PATCH", MAPS + "/n?fieldManager=x&dryRun=All", config_map("n"), "token-of-alice", APPLY)[0] == 403
    # a version, a force or another spelling of the same object is no way around it
    odd = config_map("n")
    odd["metadata"]["resourceVersion"] = "1"
    assert w.ask("PATCH", MAPS + "/n?fieldManager=x&force=true", odd, "token-of-alice", APPLY)[0] in (403, 409)
    odd["metadata"]["resourceVersion"] = "0"
    assert w.ask("PATCH", MAPS + "/n?fieldManager=x", odd, "token-of-alice", APPLY)[0] in (403, 409)
    assert w.ask("GET", MAPS + "/n", token=w.server.token)[0] == 404
    w.admin("POST", MAPS, config_map("n"))
    assert w.ask("PATCH", MAPS + "/n?fieldManager=x", config_map("n", a="b"), "token-of-alice", APPLY)[0] == 200
    w.take(granted)
    w.admin("DELETE", MAPS + "/n")


@case
def apply_with_create_by_name_creates_that_one(w):
    granted = w.allow("alice", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]},
                                {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"],
                                 "resourceNames": ["mine"]}])
    assert w.ask("PATCH", MAPS + "/yours?fieldManager=x", config_map("yours"), "token-of-alice", APPLY)[0] == 403
    assert w.ask("PATCH", MAPS + "/mine?fieldManager=x", config_map("yours"), "token-of-alice", APPLY)[0] == 400
    assert w.ask("POST", MAPS, config_map("mine"), "token-of-alice")[0] == 403, "a POST has no name to go by"
    assert w.ask("PATCH", MAPS + "/mine?fieldManager=x", config_map("mine"), "token-of-alice", APPLY)[0] == 201
    w.take(granted)
    w.admin("DELETE", MAPS + "/mine")


@case
def put_that_creates_needs_create(w):
    """Leases are made by PUT; the status of something that is not there never is."""
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}}
    rule = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases", "leases/status"], "verbs": ["update"]}
    granted = w.allow("alice", [rule])
    status, said = w.ask("PUT", leases + "/l", lease, "token-of-alice")
    assert status == 403 and 'cannot create resource "leases"' in said["message"], said
    granted2 = w.allow("alice", [{**rule, "verbs": ["create"]}])
    assert w.ask("PUT", leases + "/l", lease, "token-of-alice")[0] == 201
    w.take(granted + granted2)
    both = w.allow("alice", [{"apiGroups": ["", "apps"], "resources": ["*/status", "pods", "deployments"],
                              "verbs": ["update", "patch"]}])
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}}
    for path in ("/api/v1/namespaces/default/pods/p", "/api/v1/namespaces/default/pods/p/status"):
        assert w.ask("PUT", path, pod, "token-of-alice")[0] in (403, 404)
    assert w.ask("PATCH", "/api/v1/namespaces/default/pods/p/status?fieldManager=x", pod, "token-of-alice",
                 APPLY)[0] == 404
    w.take(both)


@case
def a_label_grants_what_the_role_contains(w):
    """Aggregated roles select by label: with one, cluster-admin would become a part of `view`."""
    granted = w.allow("alice", [{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"],
                                 "verbs": ["get", "update", "patch"]},
                                {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}], namespace=None)
    label = {"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}}
    at = RBAC + "/clusterroles/cluster-admin"
    status, said = w.ask("PATCH", at, label, "token-of-alice", "application/merge-patch+json")
    assert status == 403 and "attempting to grant RBAC permissions not currently held" in said["message"], said
    whole = w.admin("GET", at)
    whole["metadata"]["labels"].update(label["metadata"]["labels"])
    assert w.ask("PUT", at, whole, "token-of-alice")[0] == 403
    assert w.ask("PATCH", at + "?fieldManager=x", {**label, "apiVersion": "rbac.authorization.k8s.io/v1",
                                                    "kind": "ClusterRole"}, "token-of-alice", APPLY)[0] in (400, 403)
    assert "rbac.authorization.k8s.io/aggregate-to-view" not in w.admin("GET", at)["metadata"]["labels"]
    # what every role may lose without a grant: its finalizers; and what alice holds, she may label
    assert w.ask("PATCH", at, {"metadata": {"finalizers": ["a.b/c"]}}, "token-of-alice",
                 "application/merge-patch+json")[0] == 200
    w.admin("PATCH", at, {"metadata": {"finalizers": None}}, kind="application/merge-patch+json")
    w.admin("POST", RBAC + "/clusterroles", {"metadata": {"name": "small"}, "rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}]})
    assert w.ask("PATCH", RBAC + "/clusterroles/small", label, "token-of-alice", "application/merge-patch+json")[0] == 200
    # an aggregated role cannot be taken out of aggregation and kept
    assert w.ask("PATCH", RBAC + "/clusterroles/edit", {"aggregationRule": None, "rules": []}, "token-of-alice",
                 "application/merge-patch+json")[0] == 403
    w.take((RBAC + "/clusterroles/small",) + granted)


@case
def a_dependent_in_another_namespace_holds_no_owner(w):
    w.admin("POST", "/api/v1/namespaces", {"metadata": {"name": "elsewhere"}})
    uid = w.admin("POST", MAPS, config_map("owner"))["metadata"]["uid"]
    held = config_map("held")
    held["metadata"].update({"finalizers": ["a.b/c"], "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "blockOwnerDeletion": True}]})
    there = "/api/v1/namespaces/elsewhere/configmaps"
    w.admin("POST", there, held)
    w.admin("DELETE", MAPS + "/owner", {"propagationPolicy": "Foreground"})
    until = time.monotonic() + 10
    while w.ask("GET", MAPS + "/owner", token=w.server.token)[0] != 404:
        assert time.monotonic() < until, "held by an object of another namespace"
        time.sleep(0.05)
    w.admin("PATCH", there + "/held", {"metadata": {"finalizers": None}}, kind="application/merge-patch+json")
    w.admin("DELETE", "/api/v1/namespaces/elsewhere")


@case
def a_collection_is_not_deleted_by_name(w):
    granted = w.allow("alice", [{"apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"],
                                 "verbs": ["deletecollection", "list", "watch"]}])
    w.admin("POST", MAPS, config_map("mine"))
    only = "?fieldSelector=metadata.name%3Dmine"
    assert w.ask("GET", MAPS + only, token="token-of-alice")[0] == 200
    assert w.ask("GET", MAPS, token="token-of-alice")[0] == 403
    for query in (only, "?fieldSelector=metadata.name%3D%3Dmine", ""):
        assert w.ask("DELETE", MAPS + query, token="token-of-alice")[0] == 403, query
    for query in ("?fieldSelector=metadata.name!%3Dmine", "?fieldSelector=metadata.namespace%3Dmine"):
        assert w.ask("GET", MAPS + query, token="token-of-alice")[0] == 403, query
    w.admin("DELETE", MAPS + "/mine")
    w.take(granted)


# ---- certificates


@case
def a_certificate_wins_over_a_token(w):
    jane = w.certificate("jane", "/O=devs/CN=jane")
    assert w.who(certificate=jane)["username"] == "jane"
    for token in ("token-of-alice", w.server.token, "nonsense"):
        who = w.who(certificate=jane, token=token)
        assert who["username"] == "jane" and who["groups"] == ["devs", "system:authenticated"], who
    assert who["extra"]["authentication.kubernetes.io/credential-id"][0].startswith("X509SHA256="), who


@case
def a_certificate_without_a_name_is_nobody(w):
    """Whatever organization it names."""
    nameless = w.certificate("nameless", "/O=system:masters")
    status, said = w.ask("GET", "/api/v1/nodes", certificate=nameless)
    assert status == 403 and 'User "system:anonymous"' in said["message"], said
    assert w.who(certificate=nameless, token="token-of-alice")["username"] == "alice"
    assert w.who(certificate=nameless, token="nonsense") == 401
    blank = w.certificate("blank", "/O=system:masters/OU=x")
    assert w.ask("GET", "/api/v1/nodes", certificate=blank)[0] == 403


@case
def a_certificate_of_a_stranger_is_refused(w):
    for number, certificate in enumerate((w.certificate("own", "/O=system:masters/CN=root", own=True),
                                          w.certificate("server", "/O=system:masters/CN=root", "serverAuth"))):
        assert w.ask("GET", "/api/v1/nodes", certificate=certificate)[0] == 401, number
        assert w.ask("GET", "/version", certificate=certificate)[0] == 401, number
        assert w.who(certificate=certificate, token="token-of-alice")["username"] == "alice"
        assert w.who(certificate=certificate, token="nonsense") == 401


# ---- impersonation


@case
def every_part_of_another_identity_needs_its_right(w):
    parts = {"user": ("users", "", "jane"), "group": ("groups", "", "good"),
             "extra": ("userextras/scopes", "authentication.k8s.io", "x"), "uid": ("uids", "authentication.k8s.io", "u-1")}
    headers = {"user": ("Impersonate-User", "jane"), "group": ("Impersonate-Group", "good"),
               "extra": ("Impersonate-Extra-Scopes", "x"), "uid": ("Impersonate-Uid", "u-1")}
    for left_out in (None, *parts):
        granted = w.allow("alice", [{"apiGroups": [group], "resources": [resource], "resourceNames": [name],
                                     "verbs": ["impersonate"]}
                                    for part, (resource, group, name) in parts.items() if part != left_out], None)
        who = w.who(token="token-of-alice", headers=headers.values())
        if left_out:
            status, said = w.ask("POST", WHO, {}, "token-of-alice", headers=headers.values())
            assert status == 403 and parts[left_out][0] in said["message"], (left_out, said)
        else:
            assert who == {"username": "jane", "uid": "u-1", "groups": ["good", "system:authenticated"],
                           "extra": {"scopes": ["x"]}}, who
            for name, value in (("Impersonate-User", "john"), ("Impersonate-Group", "system:masters"),
                                ("Impersonate-Extra-Scopes", "y"), ("Impersonate-Extra-Other", "x"),
                                ("Impersonate-Uid", "u-2")):
                more = [h for h in headers.values() if h[0] != name or "Extra" in name or "Group" in name]
                assert w.who(token="token-of-alice", headers=[*more, (name, value)]) == 403, (name, value)
        w.take(granted)


@case
def parts_without_a_user_are_refused(w):
    for header in (("Impersonate-Group", "a"), ("Impersonate-Uid", "1"), ("Impersonate-Extra-Scopes", "x"),
                   ("Impersonate-User", "")):
        assert w.ask("GET", MAPS, token=w.server.token, headers=[header])[0] == 400, header


@case
def extra_keys_are_decoded_and_without_case(w):
    who = w.who(token=w.server.token, headers=[("Impersonate-User", "jane"), ("Impersonate-Extra-Acme.Com%2fProject", "p"),
                                               ("Impersonate-Extra-acme.com%2Fproject", "q")])
    assert who["extra"] == {"acme.com/project": ["p", "q"]}, who


@case
def one_who_acts_as_another_has_no_more_than_they(w):
    """No way back to one's own rights, and no chain: the second hop needs the first one's right."""
    granted = w.allow("alice", [{"apiGroups": [""], "resources": ["users"], "resourceNames": ["bob"],
                                 "verbs": ["impersonate"]}], None)
    granted += w.allow("alice", [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}])
    granted += w.allow("bob", [{"apiGroups": [""], "resources": ["users"], "resourceNames": ["carol"],
                                "verbs": ["impersonate"]}], None)
    as_bob = [("Impersonate-User", "bob")]
    assert w.ask("GET", MAPS, token="token-of-alice")[0] == 200
    assert w.ask("GET", MAPS, token="token-of-alice", headers=as_bob)[0] == 403
    assert w.ask("GET", MAPS, token="token-of-alice", headers=[("Impersonate-User", "carol")])[0] == 403
    # of two names the first counts for both the question and the answer
    assert w.who(token="token-of-alice", headers=[*as_bob, ("Impersonate-User", "carol")])["username"] == "bob"
    assert w.who(token="token-of-alice", headers=[("Impersonate-User", "carol"), *as_bob]) == 403
    masters = [*as_bob, ("Impersonate-Group", "system:masters")]
    assert w.ask("GET", MAPS, token="token-of-alice", headers=masters)[0] == 403
    w.take(granted)


@case
def a_service_account_is_impersonated_as_such(w):
    name = "system:serviceaccount:default:robot"
    granted = w.allow("alice", [{"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]}], None)
    assert w.who(token="token-of-alice", headers=[("Impersonate-User", name)]) == 403, "a right to users is not one to accounts"
    w.take(granted)
    granted = w.allow("alice", [{"apiGroups": [""], "resources": ["serviceaccounts"], "resourceNames": ["robot"],
                                 "verbs": ["impersonate"]}])
    who = w.who(token="token-of-alice", headers=[("Impersonate-User", name)])
    assert who["groups"] == ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"], who
    for other in ("system:serviceaccount:kube-system:robot", "system:serviceaccount:default:other", "robot"):
        assert w.who(token="token-of-alice", headers=[("Impersonate-User", other)]) == 403, other
    w.take(granted)


@case
def nobody_may_impersonate_without_showing_who_they_are(w):
    for header in (("Impersonate-User", "alice"), ("Impersonate-User", "system:anonymous")):
        assert w.ask("GET", MAPS, headers=[header])[0] == 403, header


# ---- tokens of service accounts


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(text):
    return json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def forge(w, token, header=None, key=None, **claims):
    """The token with other claims, signed as the server does: by an attacker with its key."""
    parts = token.split(".")
    first = encode(json.dumps(header).encode()) if header else parts[0]
    text = first + "." + encode(json.dumps({**decode(parts[1]), **claims}).encode())
    key = key if key is not None else (w.server.data / "accounts.key").read_bytes().strip()
    return text + "." + encode(hmac.new(key, text.encode(), hashlib.sha256).digest())


def request_token(w, account, bound=None, want=(201,), **spec):
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    if bound:
        body["spec"]["boundObjectRef"] = {"apiVersion": "v1", **bound}
    said = w.admin("POST", f"/api/v1/namespaces/default/serviceaccounts/{account}/token", body, want)
    return said.get("status", {}).get("token") if 201 in want else said


@case
def tokens_are_not_good_early_or_late(w):
    token, now = request_token(w, "default"), int(time.time())
    assert w.who(token=forge(w, token))["username"] == "system:serviceaccount:default:default", "the key is the right one"
    assert w.who(token=forge(w, token, nbf=now + 30))["username"].endswith(":default"), "a clock may be behind a little"
    for claims in ({"iss": "https://elsewhere"}, {"nbf": now + 3600}, {"nbf": now + 120}, {"exp": now - 1}, {"exp": 0}, {"exp": now - 1, "nbf": now + 9999},
                   {"aud": []}, {"aud": ["somebody-else"]}):
        assert w.who(token=forge(w, token, **claims)) == 401, claims


@case
def forged_tokens_are_refused(w):
    token = request_token(w, "default")
    header, claims, signature = token.split(".")
    for bad in (forge(w, token, key=b""), forge(w, token, key=b"guess"), f"{header}.{claims}.", f"{header}.{claims}",
                f"{encode(b'{}')}.{claims}.{signature}", forge(w, token, {"alg": "none"}, b"guess"), token + "x", token[:-1],
                "." + token, token + "." + signature, "..", f"{header}..{signature}", "x" * 4000):
        assert w.who(token=bad) == 401, bad[:80]


@case
def a_pods_token_names_its_node_and_is_for_its_account(w):
    for name in ("n1", "a.b-c.example"):
        w.admin("POST", "/api/v1/nodes", {"metadata": {"name": name}})
    w.admin("POST", "/api/v1/namespaces/default/serviceaccounts", {"metadata": {"name": "robot"}})
    pods = "/api/v1/namespaces/default/pods"

    def pod(name, node=None, account="robot"):
        spec = {"serviceAccountName": account, "containers": [{"name": "c", "image": "i"}]}
        if node:
            spec["nodeName"] = node
        w.admin("POST", pods, {"metadata": {"name": name}, "spec": spec})
        return {"kind": "Pod", "name": name}

    def nodes_of(token):
        return w.who(token=token)["extra"].get("authentication.kubernetes.io/node-name")

    assert nodes_of(request_token(w, "robot", pod("p1", "n1"))) == ["n1"]
    assert nodes_of(request_token(w, "robot", pod("p2", "a.b-c.example"))) == ["a.b-c.example"]
    assert nodes_of(request_token(w, "robot", pod("p3"))) is None
    assert nodes_of(request_token(w, "robot")) is None
    said = request_token(w, "default", {"kind": "Pod", "name": "p1"}, want=(400,))
    assert "different serviceaccount" in said["message"], said
    token = request_token(w, "robot", {"kind": "Pod", "name": "p1"})
    w.admin("DELETE", "/api/v1/nodes/n1")
    assert nodes_of(token) == ["n1"], "it lives as long as its pod"
    w.admin("DELETE", pods + "/p1", {"gracePeriodSeconds": 0})
    assert w.who(token=token) == 401
    pod("p1", "a.b-c.example")
    assert w.who(token=token) == 401, "a pod of the same name is another pod"


# ---- subjects


@case
def a_subject_has_the_group_of_its_kind(w):
    path = RBAC + "/namespaces/default/rolebindings"
    body = {"metadata": {"name": "x"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "x"}}
    for subject in ({"kind": "ServiceAccount", "name": "a", "apiGroup": "rbac.authorization.k8s.io"},
                    {"kind": "User", "name": "a", "apiGroup": "v1"}, {"kind": "Group", "name": "a", "apiGroup": "x"}):
        said = w.admin("POST", path, {**body, "subjects": [subject]}, want=(422,))
        assert said["details"]["causes"][0]["field"] == "subjects[0].apiGroup", said


# ---- what is spoken


def offered(port, **settings):
    """The cipher that is agreed on, or None."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    tls.maximum_version = settings.get("most", ssl.TLSVersion.TLSv1_2)
    tls.minimum_version = settings.get("least", ssl.TLSVersion.TLSv1_2)
    tls.set_ciphers(settings.get("ciphers", "ALL:@SECLEVEL=0"))
    try:
        with socket.create_connection(("127.0.0.1", port), 30) as plain, tls.wrap_socket(plain) as secured:
            return secured.cipher()[0]
    except (ssl.SSLError, OSError):
        return None


@case
def only_authenticated_ciphers_are_spoken(w):
    port = w.url.port
    for ciphers in ("ECDHE-RSA-AES128-SHA:ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES256-SHA384:ECDHE-ECDSA-AES256-SHA384:"
                    "ECDHE-RSA-AES128-SHA256:ECDHE-ECDSA-AES128-SHA256:@SECLEVEL=0", "AES128-SHA:AES256-SHA:@SECLEVEL=0",
                    "AES128-GCM-SHA256:AES256-GCM-SHA384:@SECLEVEL=0", "aNULL:eNULL:@SECLEVEL=0"):
        assert offered(port, ciphers=ciphers) is None, ciphers
    assert "GCM" in offered(port, ciphers="ECDHE+AESGCM") and "CHACHA20" in offered(port, ciphers="ECDHE+CHACHA20")
    old = {"least": ssl.TLSVersion.TLSv1, "most": ssl.TLSVersion.TLSv1_1}
    assert offered(port, **old) is None, "TLS 1.1"


@case
def only_authenticated_ciphers_are_asked_for(w):
    """By our client, of a server that has no others: it is not spoken with."""
    pair = w.certificate("old", "/CN=127.0.0.1", "serverAuth", own=True)
    met = {}
    for name, ciphers in (("old", "ECDHE-RSA-AES128-SHA:ECDHE-RSA-AES256-SHA384:AES256-SHA:@SECLEVEL=0"), ("new", "ECDHE+AESGCM")):
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.maximum_version = ssl.TLSVersion.TLSv1_2
        tls.set_ciphers(ciphers)
        tls.load_cert_chain(pair + ".crt", pair + ".key")
        with socket.create_server(("127.0.0.1", 0)) as listening:
            listening.settimeout(60)
            config = w.folder / "old.kubeconfig"
            config.write_text(json.dumps({
                "clusters": [{"name": "x", "cluster": {"server": "https://127.0.0.1:%d" % listening.getsockname()[1],
                                                       "insecure-skip-tls-verify": True}}],
                "users": [{"name": "x", "user": {"token": "secret-token"}}], "current-context": "x",
                "contexts": [{"name": "x", "context": {"cluster": "x", "user": "x"}}]}))
            asking = subprocess.Popen([FLYBALL, "explain", "shpa", "x", "--kubeconfig", str(config)],
                                      stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                with listening.accept()[0] as plain_socket, tls.wrap_socket(plain_socket, server_side=True) as secured:
                    met[name] = secured.cipher()[0]
            except ssl.SSLError as why:
                met[name] = why.reason
            finally:
                asking.kill()
                asking.wait(60)
    assert met["old"] == "NO_SHARED_CIPHER" and "GCM" in met["new"], met


# ---- metrics


def plain(port, path):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except OSError:
        return 0, ""
    finally:
        connection.close()


@case
def metrics_are_closed_unless_asked_for(w):
    """At an address that others reach; probes are answered there all the same."""
    for program in (["operator", "--leader-elect=false"], ["agent", "--node-name", "n1"]):
        for address, more, want in (("0.0.0.0", [], 403), ("0.0.0.0", ["--open-metrics"], 200), ("127.0.0.1", [], 200)):
            port = free_port()
            with open(w.folder / "log", "w") as log:
                process = subprocess.Popen([FLYBALL, *program, "--kubeconfig", w.server.kubeconfig, "--listen",
                                            f"{address}:{port}", *more], stdout=log, stderr=log)
            try:
                assert until(lambda: plain(port, "/healthz")[0] == 200), (w.folder / "log").read_text()
                status, said = plain(port, "/metrics")
                assert status == want, (program, address, more, status)
                assert status == 200 or "--metrics-bind-address" in said, said
            finally:
                process.terminate()
                process.wait(60)


def main():
    need("openssl")
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder)
        with_it = world.server
        try:
            for each in CASES:
                tap.run(each, world)
        finally:
            with_it.__exit__()
    tap.say(not with_it.complaints(), "the server ended well", with_it.complaints())
    tap.end()


main()
