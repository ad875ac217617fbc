"""Who may do what: a matrix of users, verbs, resources and namespaces beside a model of RBAC in a few lines, and
credentials that are not what they claim to be."""
import base64
import hashlib
import hmac
import json
import pathlib
import subprocess
import time

from target import BROKEN, SECRET_VALUE, Client, attack

CORE, APPS, RBAC = "", "apps", "rbac.authorization.k8s.io"
# resource: (group, version, plural, subresource, body of a create)
RESOURCES = {
    "configmaps": (CORE, "v1", {"data": {"a": "b"}}),
    "secrets": (CORE, "v1", {"stringData": {"a": "b"}}),
    "pods": (CORE, "v1", {"spec": {"containers": [{"name": "a", "image": "a"}]}}),
    "services": (CORE, "v1", {"spec": {"ports": [{"port": 80}]}}),
    "serviceaccounts": (CORE, "v1", {}),
    "deployments": (APPS, "v1", {"spec": {"selector": {"matchLabels": {"a": "b"}}, "template": {
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "a"}]}}}}),
    "roles": (RBAC, "v1", {"rules": []}),
}
SUBRESOURCES = [("pods", "status"), ("pods", "resize"), ("pods", "eviction"), ("pods", "binding"),
                ("deployments", "scale"), ("deployments", "status"), ("serviceaccounts", "token")]
NAMESPACES = ("a", "b", "kube-system")
VERBS = ("get", "list", "create", "update", "patch", "delete", "deletecollection")
ALL = "*"
# name: (namespace or None for all, [(groups, resources, verbs, names)])
RULES = {
    "bob": [("a", [CORE], ["configmaps"], ["get", "list"], None)],
    "carol": [(None, [CORE, APPS], ["pods", "deployments"], ["get", "list", "watch"], None)],
    "dave": [("a", [ALL], [ALL], [ALL], None)],
    "erin": [("b", [CORE], ["secrets"], ["get"], ["only"]), ("b", [APPS], ["deployments/scale"], ["patch", "get"], None)],
    "patcher": [("a", [CORE], ["configmaps"], ["patch", "update", "get"], None),
                ("a", ["coordination.k8s.io"], ["leases"], ["patch", "update"], None)],
    "system:serviceaccount:a:robot": [("a", [CORE], ["pods"], ["get", "list", "create"], None)],
}
RAW = "application/apply-patch+yaml"


def base_of(group, version):
    return "/api/" + version if not group else "/apis/%s/%s" % (group, version)


def path_of(plural, ns, name=None, sub=None):
    group, version, _ = RESOURCES[plural]
    return "%s/namespaces/%s/%s%s%s" % (base_of(group, version), ns, plural, "/" + name if name else "",
                                        "/" + sub if sub else "")


def prepare(target):
    """Namespaces, roles and bindings of the matrix; a secret whose value must never be in a log."""
    admin = target.admin
    for ns in ("a", "b"):
        admin.must("POST", "/api/v1/namespaces", {"metadata": {"name": ns}})
        admin.must("POST", path_of("secrets", ns), {"metadata": {"name": "only"}, "stringData": {"v": SECRET_VALUE}})
        admin.must("POST", path_of("configmaps", ns), {"metadata": {"name": "there"}, "data": {"v": "1"}})
    admin.must("POST", path_of("serviceaccounts", "a"), {"metadata": {"name": "robot"}})
    for user, rules in RULES.items():
        for number, (ns, groups, resources, verbs, names) in enumerate(rules):
            bind(admin, user, number, ns, {"apiGroups": groups, "resources": resources, "verbs": verbs,
                                           **({"resourceNames": names} if names else {})})
    bind(admin, "alice", 0, None, {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"],
                                   "resourceNames": ["bob"]})
    token = admin.must("POST", path_of("serviceaccounts", "a", "robot", "token"),
                       {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})
    target.robot = token["status"]["token"]
    target.secrets.add(target.robot)


def bind(admin, user, number, ns, rule):
    name = "%s-%d" % (user.replace(":", "-"), number)
    where = "/apis/%s/v1/%s" % (RBAC, "namespaces/%s/" % ns if ns else "")
    kind = "Role" if ns else "ClusterRole"
    subject = {"kind": "User", "name": user, "apiGroup": RBAC}
    if user.startswith("system:serviceaccount:"):
        subject = {"kind": "ServiceAccount", "namespace": user.split(":")[2], "name": user.split(":")[3]}
    admin.must("POST", where + kind.lower() + "s", {"metadata": {"name": name}, "rules": [rule]})
    admin.must("POST", where + kind.lower() + "bindings", {
        "metadata": {"name": name}, "roleRef": {"apiGroup": RBAC, "kind": kind, "name": name}, "subjects": [subject]})


def allowed(user, verb, plural, ns, name, sub=None):
    """The model."""
    group = RESOURCES[plural][0]
    what = plural + ("/" + sub if sub else "")
    if user == "admin":
        return True
    if user == "reader":
        return verb in ("get", "list", "watch") and plural != "secrets"
    for where, groups, resources, verbs, names in RULES.get(user, []):
        if (where in (None, ns) and (ALL in groups or group in groups) and (ALL in resources or what in resources)
                and (ALL in verbs or verb in verbs) and (not names or name in names)):
            return True
    return False


def users_of(target):
    tokens = {"alice": "alice-token-0001", "bob": "bob-token-000001", "carol": "carol-token-0001",
              "dave": "dave-token-00001", "erin": "erin-token-00001", "patcher": "patcher-token-01"}
    made = {name: Client(target, token) for name, token in tokens.items()}
    made.update(admin=Client(target, target.admin_token), reader=Client(target, target.reader_token),
                anonymous=Client(target))
    made["system:serviceaccount:a:robot"] = Client(target, target.robot)
    return made


def request(client, verb, plural, ns, name, sub=None):
    group, version, body = RESOURCES[plural]
    made = {"apiVersion": (group + "/" if group else "") + version, "metadata": {"name": name}, **body}
    one, many, dry = path_of(plural, ns, name, sub), path_of(plural, ns), "?dryRun=All"
    if verb == "get":
        return client.ask("GET", one)
    if verb == "list":
        return client.ask("GET", many)
    if verb == "create":
        return client.ask("POST", (one if sub else many) + dry, made)
    if verb == "update":
        return client.ask("PUT", one + dry, made)
    if verb == "patch":
        return client.ask("PATCH", one + dry, {"metadata": {"labels": {"a": "b"}}},
                          {"Content-Type": "application/merge-patch+json"})
    return client.ask("DELETE", (one if verb == "delete" else many) + dry)


@attack("auth matrix")
def matrix(target, choose, long):
    """A request is refused with 403 exactly where the model denies it."""
    wrong, count = [], 0
    users = users_of(target)
    cells = [(plural, None) for plural in RESOURCES] + SUBRESOURCES
    for user, client in users.items():
        for plural, sub in cells:
            for ns in NAMESPACES:
                for verb in VERBS:
                    if sub and verb in ("list", "deletecollection", "delete"):
                        continue
                    name = choose.choice(["only", "none"])
                    status, _ = request(client, verb, plural, ns, name, sub)
                    count += 1
                    may = allowed(user, verb, plural, ns, "" if verb in ("create", "list", "deletecollection") and
                                  not sub else name, sub)
                    if (status in (401, 403)) == may:
                        wrong.append("%s %s %s%s in %s: %s, expected %s" % (
                            user, verb, plural, "/" + sub if sub else "", ns, status, "yes" if may else "403"))
    for client in users.values():
        client.close()
    assert not wrong, "%d of %d: %s" % (len(wrong), count, "; ".join(wrong[:5]))
    return count


@attack("auth reviews")
def reviews(target, choose, long):
    """SelfSubjectAccessReview agrees with the model."""
    count, wrong = 0, []
    users = users_of(target)
    del users["anonymous"]  # may not create reviews
    for user, client in users.items():
        for plural in RESOURCES:
            for ns in NAMESPACES:
                for verb in (*VERBS, "watch", "impersonate", "escalate", "bind"):
                    body = client.must("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", {
                        "spec": {"resourceAttributes": {"namespace": ns, "verb": verb, "resource": plural,
                                                        "group": RESOURCES[plural][0], "name": "none"}}})
                    count += 1
                    if body["status"]["allowed"] != allowed(user, verb, plural, ns, "none"):
                        wrong.append("%s %s %s in %s: %s" % (user, verb, plural, ns, body["status"]["allowed"]))
        client.close()
    assert not wrong, "%d of %d: %s" % (len(wrong), count, "; ".join(wrong[:5]))
    return count


@attack("auth creates in disguise")
def disguise(target, choose, long):
    """Apply and PUT that would create need the right to create."""
    patcher, count = Client(target, "patcher-token-01"), 0
    lease = "/apis/coordination.k8s.io/v1/namespaces/a/leases/new-%d" % choose.randrange(10 ** 9)
    tries = [("PATCH", path_of("configmaps", "a", "new-%d" % choose.randrange(10 ** 9)) + "?fieldManager=x&force=true",
              "v1", "ConfigMap", RAW),
             ("PATCH", lease + "?fieldManager=x", "coordination.k8s.io/v1", "Lease", RAW),
             ("PUT", lease, "coordination.k8s.io/v1", "Lease", "application/json")]
    for method, path, version, kind, content in tries:
        name = path.split("/")[-1].split("?")[0]
        status, _ = patcher.ask(method, path, {"apiVersion": version, "kind": kind, "metadata": {"name": name}},
                                   {"Content-Type": content})
        count += 1
        assert status in (403, 404), "%s %s by a user without create: %s" % (method, path, status)
        assert target.admin.ask("GET", path.split("?")[0])[0] == 404, "%s made %s" % (method, path)
    patcher.close()
    return count


@attack("auth escalation")
def escalation(target, choose, long):
    """Users cannot grant rights they do not have, nor impersonate without the right to."""
    count, wrong = 0, []
    dave, alice = Client(target, "dave-token-00001"), Client(target, "alice-token-0001")
    rule = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    where = "/apis/%s/v1" % RBAC
    roleref = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
    subject = [{"kind": "User", "name": "alice", "apiGroup": RBAC}]
    tries = [
        (alice, "POST", where + "/namespaces/a/rolebindings", {"metadata": {"name": "x"}, "roleRef": roleref,
                                                               "subjects": subject}, {}),
        (dave, "POST", where + "/clusterroles", {"metadata": {"name": "x"}, "rules": rule}, {}),
        (dave, "POST", where + "/clusterrolebindings", {"metadata": {"name": "x"}, "roleRef": roleref,
                                                        "subjects": subject}, {}),
        (dave, "POST", where + "/namespaces/b/roles", {"metadata": {"name": "x"}, "rules": rule}, {}),
    ]
    for header in ({"Impersonate-User": "admin"}, {"Impersonate-User": "system:admin"},
                   {"Impersonate-User": "bob", "Impersonate-Group": "system:masters"},
                   {"Impersonate-User": "bob", "Impersonate-Uid": "0"},
                   {"Impersonate-User": "bob", "Impersonate-Extra-Scopes": "all"},
                   {"Impersonate-User": "system:serviceaccount:a:robot"}, {"Impersonate-Group": "system:masters"},
                   {"Impersonate-User": "BOB"}, {"Impersonate-User": "bob\tadmin"}, {"Impersonate-User": "bob,admin"},
                   {"Impersonate-Group": "x", "Impersonate-User": ""}):
        for client in (alice, dave):
            tries.append((client, "GET", path_of("secrets", "b", "only"), None, header))
    for client, method, path, body, header in tries:
        try:
            status, _ = client.ask(method, path, body, header)
        except BROKEN:
            continue
        count += 1
        if status not in (400, 401, 403):
            wrong.append("%s %s with %s: %s" % (method, path, header, status))
    status, _ = alice.ask("GET", path_of("configmaps", "a", "there"), None, {"Impersonate-User": "bob"})
    if status != 200:
        wrong.append("alice may be bob, but got %s" % status)
    alice.close()
    dave.close()
    assert not wrong, "; ".join(wrong[:5])
    return count + 1


@attack("auth paths")
def paths(target, choose, long):
    """Pages and odd spellings of paths: what a client may not read is never returned."""
    anonymous, count, wrong = Client(target), 0, []
    for path in ("/healthz", "/livez", "/readyz", "/version"):
        if anonymous.ask("GET", path)[0] != 200:
            wrong.append(path + " is closed")
        count += 1
    secret = "/api/v1/namespaces/b/secrets/only"
    odd = [secret, "/" + secret, secret + "/", secret + "/.", "/healthz/.." + secret, "/healthz/%2e%2e" + secret,
           "/healthz%2f.." + secret, secret.replace("/secrets", "/%73ecrets"), secret.replace("/b/", "/b%2f"),
           secret + "?x=/healthz", secret + "#", secret + "%00", secret + ";a=b", "/api/v1/secrets", "/api/v1//secrets",
           "/version" + secret, "/readyz" + secret, "/api/v1/namespaces/b/secrets?fieldSelector=metadata.name=only",
           "/api/v1/namespaces/b/secrets?watch=1&timeoutSeconds=1", "/api/v1/watch/secrets", "/metrics", "/debug/pprof",
           "/logs", "/apis", "/openapi/v2", "/openapi/v3", "/api", "/api/v1/namespaces/b/configmaps/../secrets/only"]
    for path in odd:
        for client in (anonymous, Client(target, "alice-token-0001")):
            try:
                status, _ = client.ask("GET", path)
            except BROKEN:
                client.close()
                continue
            count += 1
            if status == 200 and ("secret" in path or "metrics" in path or client is anonymous):
                wrong.append("%s by %s: 200" % (path, "anonymous" if client is anonymous else "alice"))
            if client is not anonymous:
                client.close()
    anonymous.close()
    assert not wrong, "; ".join(wrong[:5])
    return count


# ---- credentials


def encode(part):
    return base64.urlsafe_b64encode(part if isinstance(part, bytes) else json.dumps(part).encode()).rstrip(b"=").decode()


def sign(key, header, claims):
    text = encode(header) + "." + encode(claims)
    return text + "." + encode(hmac.new(key, text.encode(), hashlib.sha256).digest())


def decode(token):
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def forged(target, choose):
    """Tokens that look right; where the key can be read, also some that are signed with it."""
    good, header = target.robot, {"alg": "HS256", "typ": "JWT"}
    head, body, signature = good.split(".")
    claims, now = decode(good), int(time.time())
    for name in ("none", "None", "NONE", "", "RS256", "HS512"):
        yield "alg " + (name or "empty"), "%s.%s." % (encode({"alg": name}), body)
    yield "no signature", head + "." + body
    yield "empty signature", head + "." + body + "."
    yield "short signature", good[:-8]
    yield "other claims", head + "." + encode({**claims, "sub": "system:serviceaccount:kube-system:admin"}) + "." + signature
    yield "other key", sign(b"0" * 32, header, claims)
    yield "empty key", sign(b"", header, claims)
    yield "four parts", good + ".x"
    yield "no base64", "!!!.???.###"
    yield "long", "a" * 40000
    yield "many dots", "." * 5000
    for _ in range(50):
        at = choose.randrange(len(good) - 1)
        letter = choose.choice([c for c in "ABCabc019-_" if c != good[at]])
        if at < len(good) - 4:  # the last letters may decode to the same bytes
            yield "flipped at %d" % at, good[:at] + letter + good[at + 1:]
    key = find_key(target, good)
    if key:
        yield "expired", sign(key, header, {**claims, "exp": now - 60})
        yield "expired long ago", sign(key, header, {**claims, "exp": 0})
        yield "no expiry", sign(key, header, {k: v for k, v in claims.items() if k != "exp"})
        yield "expiry is text", sign(key, header, {**claims, "exp": "never"})
        yield "not yet valid", sign(key, header, {**claims, "nbf": now + 3600})
        yield "other issuer", sign(key, header, {**claims, "iss": "https://elsewhere"})
        yield "other audience", sign(key, header, {**claims, "aud": ["elsewhere"]})
        yield "no such account", sign(key, header, change(claims, name="ghost"))
        yield "other uid", sign(key, header, change(claims, uid="0"))
        yield "claims are a list", sign(key, header, [claims])
        yield "claims are nothing", sign(key, header, None)


def change(claims, name=None, uid=None):
    changed = json.loads(json.dumps(claims))
    account = changed["kubernetes.io"]["serviceaccount"]
    account["name"], account["uid"] = name or account["name"], uid or account["uid"]
    if name:
        changed["sub"] = "system:serviceaccount:a:" + name
    return changed


def find_key(target, good):
    """The server's own key, from its data directory, proved by the token that it signed."""
    text, signature = good.rsplit(".", 1)
    path = pathlib.Path(target.data, "accounts.key")
    if not path.exists():
        return None
    raw = path.read_bytes()
    for key in (raw, raw.strip()):
        if encode(hmac.new(key, text.encode(), hashlib.sha256).digest()) == signature:
            return key
    return None


@attack("auth tokens")
def tokens(target, choose, long):
    count, wrong = 0, []
    client = Client(target)
    assert client.ask("GET", path_of("pods", "a"), None, {"Authorization": "Bearer " + target.robot})[0] == 200
    assert find_key(target, target.robot), "the key of the accounts was not found: half of the tokens cannot be made"
    for what, token in forged(target, choose):
        try:
            status, _ = client.ask("GET", path_of("pods", "a"), None, {"Authorization": "Bearer " + token})
        except BROKEN:
            status = 400
        count += 1
        if status not in (400, 401, 431):
            wrong.append("%s: %s" % (what, status))
    for header in ("Basic YWRtaW46YWRtaW4=", "Bearer", "Bearer ", "bearer\t", "Negotiate x", target.robot,
                   "Bearer %s %s" % (target.robot, target.robot), "Bearer " + target.robot[:20] + " " + target.robot[20:]):
        status, _ = client.ask("GET", path_of("pods", "a"), None, {"Authorization": header})
        count += 1
        if status not in (400, 401, 403):
            wrong.append("%s...: %s" % (header[:10], status))
    client.close()
    assert not wrong, "; ".join(wrong[:8])
    return count


def openssl(*words):
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=60)


def make_certificate(folder, name, subject, authority=None, days="1", use="clientAuth"):
    """(certificate, key); signed by `authority`, a pair, or by itself."""
    base = str(pathlib.Path(folder, name))
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", base + ".key", "-out",
            base + ".csr", "-subj", subject)
    pathlib.Path(base + ".ext").write_text("extendedKeyUsage=%s\n" % use)
    signer = ["-CA", authority[0], "-CAkey", authority[1], "-CAcreateserial"] if authority else ["-signkey", base + ".key"]
    openssl("x509", "-req", "-in", base + ".csr", "-out", base + ".crt", "-days", days, "-extfile", base + ".ext", *signer)
    return base + ".crt", base + ".key"


@attack("auth certificates")
def certificates(target, choose, long):
    """Certificates of another CA, or without the usage clientAuth, authenticate no user."""
    folder, wrong = str(target.folder), []
    own = (target.authority, str(target.data / "ca.key"))
    subject = "/O=system:masters/CN=mallory"
    foreign = make_certificate(folder, "ca", "/CN=other")
    good = make_certificate(folder, "good", subject, own)
    bad = {"itself": make_certificate(folder, "self", subject),
           "another authority": make_certificate(folder, "other", subject, foreign),
           "for servers": make_certificate(folder, "server", subject, own, use="serverAuth")}
    client = Client(target, cert=good)
    if client.ask("GET", path_of("secrets", "a", "only"))[0] != 200:
        wrong.append("a good certificate is refused")
    client.close()
    for what, pair in bad.items():
        client = Client(target, cert=pair)
        try:
            status, _ = client.ask("GET", path_of("secrets", "a", "only"))
            if status not in (401, 403):
                wrong.append("signed by %s: %s" % (what, status))
        except BROKEN:
            pass  # the handshake failed
        client.close()
    assert not wrong, "; ".join(wrong)
    return 1 + len(bad)
