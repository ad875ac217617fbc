#!/usr/bin/python3
"""Images in real registries, inspected by a real operator: docker-registry from packages, images pushed with skopeo. Without
authentication, with Basic, with tokens, over TLS; an index of platforms; missing images, a registry that is down.

    registry.py FLYBALL                     on the embedded API server
    registry.py FLYBALL --cluster DIR       on the control plane that test/kube/cluster started in DIR

Speaks TAP. Skipped where there is no kubectl, docker-registry or skopeo.
"""
import base64
import gzip
import hashlib
import http.server
import io
import json
import pathlib
import subprocess
import tarfile
import threading
import time
import urllib.parse

import harness
from harness import TOP, free_port, need, until

GROUP = "aim.silogen.ai"
NS = "registry-test"
USER, PASSWORD = "bob", "secret"
LABELS = {"com.amd.aim.model.canonicalName": "acme/tiny",
          "com.amd.aim.model.recommendedDeployments":
              "[{'gpuModel': 'MI300X', 'gpuCount': 1, 'metric': 'latency', 'precision': 'fp8'}]"}


def aim(kind, name, spec):
    return {"apiVersion": GROUP + "/v1alpha1", "kind": kind, "metadata": {"name": name, "namespace": NS}, "spec": spec}


# ---- images


class Layout:
    """An OCI image layout: a folder of blobs and an index."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        (self.folder / "blobs/sha256").mkdir(parents=True)
        (self.folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')

    def put(self, data, media_type):
        digest = hashlib.sha256(data).hexdigest()
        (self.folder / "blobs/sha256" / digest).write_bytes(data)
        return {"mediaType": media_type, "digest": "sha256:" + digest, "size": len(data)}

    def image(self, labels, architecture="amd64"):
        tar = io.BytesIO()
        with tarfile.open(fileobj=tar, mode="w"):
            pass
        layer = self.put(gzip.compress(tar.getvalue(), mtime=0), "application/vnd.oci.image.layer.v1.tar+gzip")
        config = {"architecture": architecture, "os": "linux", "config": {"Labels": labels},
                  "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(tar.getvalue()).hexdigest()]}}
        manifest = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
                    "config": self.put(json.dumps(config).encode(), "application/vnd.oci.image.config.v1+json"),
                    "layers": [layer]}
        return {**self.put(json.dumps(manifest).encode(), manifest["mediaType"]),
                "platform": {"os": "linux", "architecture": architecture}}

    def end(self, *entries):
        (self.folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": list(entries)}))
        return self


def make_single(folder):
    layout = Layout(folder)
    entry = layout.image(LABELS)
    return layout.end({k: v for k, v in entry.items() if k != "platform"})


def make_index(folder):
    """arm64 first, so that taking the first one is wrong."""
    layout = Layout(folder)
    entries = [layout.image({"com.amd.aim.model.canonicalName": "acme/arm"}, "arm64"), layout.image(LABELS)]
    index = {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": entries}
    return layout.end(layout.put(json.dumps(index).encode(), index["mediaType"]))


# ---- registries


def openssl(*words, text=None):
    return subprocess.run(["openssl", *words], input=text, capture_output=True, check=True, timeout=60).stdout


def make_certificate(folder, name):
    """A certificate for 127.0.0.1 that is its own authority."""
    key, cert = folder / (name + ".key"), folder / (name + ".crt")
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(cert), "-days", "2",
            "-subj", "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1")
    return key, cert


def unpadded(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


class Tokens:
    """A token server: Basic in, a signed token out."""

    def __init__(self, folder):
        self.key, self.cert = make_certificate(folder, "tokens")
        self.asked = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                query = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)
                known = self.headers.get("Authorization") == "Basic " + base64.b64encode(
                    f"{USER}:{PASSWORD}".encode()).decode()
                outer.asked.append(query)
                body = json.dumps({"token": outer.sign(query)}).encode() if known else b"{}"
                self.send_response(200 if known else 401)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = "http://127.0.0.1:%d/token" % self.server.server_address[1]

    def sign(self, query):
        access = []
        for scope in query.get("scope", []):
            kind, name, actions = scope.split(":")
            access.append({"type": kind, "name": name, "actions": actions.split(",")})
        der = base64.b64encode(openssl("x509", "-in", str(self.cert), "-outform", "DER")).decode()
        now = int(time.time())
        head = unpadded(json.dumps({"typ": "JWT", "alg": "RS256", "x5c": [der]}).encode())
        claims = unpadded(json.dumps({"iss": "test", "sub": USER, "aud": query["service"][0], "nbf": now - 60,
                                      "iat": now, "exp": now + 300, "jti": "1", "access": access}).encode())
        signed = openssl("dgst", "-sha256", "-sign", str(self.key), text=head + b"." + claims)
        return (head + b"." + claims + b"." + unpadded(signed)).decode()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Registry:
    def __init__(self, folder, name, **more):
        self.port = free_port()
        self.host = "127.0.0.1:%d" % self.port
        self.secure = "tls" in more.get("http", {})
        config = {"version": 0.1, "log": {"level": "error"}, "storage": {"filesystem": {"rootdirectory": f"{folder}/{name}"}},
                  **more, "http": {"addr": self.host, **more.get("http", {})}}
        self.config = pathlib.Path(folder, name + ".json")
        self.config.write_text(json.dumps(config))
        self.log = open(f"{folder}/{name}.log", "w", encoding="utf-8")
        self.process = None
        self.start()

    def start(self):
        self.process = subprocess.Popen(["docker-registry", "serve", str(self.config)], stdout=self.log,
                                        stderr=self.log)

    def stop(self):
        self.process.terminate()
        self.process.wait(30)

    def push(self, layout, name, credentials=False):
        login = ["--dest-creds", f"{USER}:{PASSWORD}"] if credentials else []
        done = subprocess.run(["skopeo", "--insecure-policy", "copy", "--all", "--retry-times", "10", *login,
                               "--dest-tls-verify=false", f"oci:{layout.folder}", f"docker://{self.host}/{name}"],
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr


def password_file(folder):
    """bcrypt, which docker-registry demands; perl's crypt() has it."""
    line = subprocess.run(["perl", "-e", "print crypt($ARGV[0], q($2y$05$abcdefghijklmnopqrstuu))", PASSWORD],
                          capture_output=True, text=True, check=True).stdout
    assert line.startswith("$2y$"), line
    path = pathlib.Path(folder, "passwords")
    path.write_text(f"{USER}:{line}\n")
    return str(path)


# ---- the world


class World(harness.World):
    NAMESPACE = NS
    FEATURE = "runtimeconfig"

    def prepare(self):
        folder = pathlib.Path(self.folder)
        self.single, self.index = make_single(folder / "single"), make_index(folder / "index")
        key, cert = make_certificate(folder, "trusted")
        odd_key, odd_cert = make_certificate(folder, "unknown")
        self.tokens = Tokens(folder)
        self.open = Registry(folder, "open")
        self.basic = Registry(folder, "basic", auth={"htpasswd": {"realm": "r", "path": password_file(folder)}})
        self.bearer = Registry(folder, "bearer", auth={"token": {
            "realm": self.tokens.url, "service": "registry", "issuer": "test",
            "rootcertbundle": str(self.tokens.cert)}})
        self.tls = Registry(folder, "tls", http={"tls": {"certificate": str(cert), "key": str(key)}})
        self.odd = Registry(folder, "odd", http={"tls": {"certificate": str(odd_cert), "key": str(odd_key)}})
        self.registries = [self.open, self.basic, self.bearer, self.tls, self.odd]
        for one in self.registries:
            one.push(self.single, "acme/tiny:1", one in (self.basic, self.bearer))
        self.open.push(self.index, "acme/many:1")
        self.define(*(TOP / "deploy/crds").glob("aim*.yaml"), *(TOP / "examples/crds").glob("*.yaml"))
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NS}})
        plain = ",".join(one.host for one in self.registries if not one.secure) + f",localhost:{self.open.port}"
        self.run_operator("--registry-plain-http", plain, "--registry-allow-private", "127.0.0.1:*",
                          "--registry-ca-file", str(cert))

    def stop(self):
        super().stop()
        for one in self.registries:
            one.stop()
        self.tokens.stop()

    def model(self, name, image, **spec):
        self.apply(aim("AIMModel", name, {"image": image, **spec}))

    def reason(self, name):
        return (self.condition("aimmodel", name, "MetadataExtracted") or (None, None))[1]

    def ends_with(self, name, reason):
        assert until(lambda: self.reason(name) == reason, 60), (self.reason(name), self.get("aimmodel", name))

    def is_inspected(self, name):
        self.ends_with(name, "MetadataExtracted")
        metadata = self.get("aimmodel", name)["status"]["imageMetadata"]
        assert metadata["model"]["canonicalName"] == "acme/tiny", metadata
        assert until(lambda: any(one["spec"]["modelName"] == name for one in self.get("aimservicetemplates")["items"]))


def an_image_is_inspected_without_authentication(world):
    world.model("open", f"{world.open.host}/acme/tiny:1")
    world.is_inspected("open")


def of_an_index_the_image_of_the_nodes_is_read(world):
    world.model("many", f"{world.open.host}/acme/many:1")
    world.is_inspected("many")


def a_missing_image_is_reported(world):
    world.model("missing", f"{world.open.host}/acme/tiny:9")
    world.ends_with("missing", "ImageNotFound")
    assert world.get("aimmodel", "missing")["status"]["status"] == "Failed"


def secrets_need_a_right_of_their_own(world):
    world.kubectl("create", "secret", "docker-registry", "pull", f"--docker-server={world.basic.host}",
                  f"--docker-username={USER}", f"--docker-password={PASSWORD}")
    world.kubectl("create", "secret", "docker-registry", "token", f"--docker-server={world.bearer.host}",
                  f"--docker-username={USER}", f"--docker-password={PASSWORD}")
    world.model("early", f"{world.basic.host}/acme/tiny:1", imagePullSecrets=[{"name": "pull"}])
    world.ends_with("early", "SecretForbidden")
    world.kubectl("apply", "-f", str(TOP / "deploy/rbac/pull-secrets.yaml"))
    world.kubectl("create", "rolebinding", "pull", "--clusterrole=flyball-pull-secrets",
                  "--serviceaccount=default:flyball-runtimeconfig")


def basic_authentication_works(world):
    world.model("basic", f"{world.basic.host}/acme/tiny:1", imagePullSecrets=[{"name": "pull"}])
    world.is_inspected("basic")
    world.model("anonymous", f"{world.basic.host}/acme/tiny:1")
    world.ends_with("anonymous", "ImagePullAuthFailure")
    world.model("wrong", f"{world.basic.host}/acme/tiny:1", imagePullSecrets=[{"name": "token"}])
    world.ends_with("wrong", "ImagePullAuthFailure")


def a_secret_of_the_service_account_works(world):
    world.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "puller", "namespace": NS},
                 "imagePullSecrets": [{"name": "pull"}]})
    world.model("account", f"{world.basic.host}/acme/tiny:1", serviceAccountName="puller")
    world.is_inspected("account")


def tokens_work(world):
    world.model("bearer", f"{world.bearer.host}/acme/tiny:1", imagePullSecrets=[{"name": "token"}])
    world.is_inspected("bearer")
    assert any(one.get("scope") == ["repository:acme/tiny:pull"] for one in world.tokens.asked), world.tokens.asked


def tls_is_verified(world):
    world.model("tls", f"{world.tls.host}/acme/tiny:1")
    world.is_inspected("tls")
    world.model("odd", f"{world.odd.host}/acme/tiny:1")
    world.ends_with("odd", "RegistryUnreachable")


def only_listed_registries_may_be_private(world):
    world.model("private", f"localhost:{world.open.port}/acme/tiny:1")
    world.ends_with("private", "MetadataExtractionFailed")
    conditions = json.dumps(world.get("aimmodel", "private")["status"]["conditions"])
    assert "--registry-allow-private" in conditions, conditions


def a_model_source_finds_what_the_registries_have(world):
    world.apply({"apiVersion": GROUP + "/v1alpha1", "kind": "AIMClusterModelSource", "metadata": {"name": "open"},
                 "spec": {"registry": world.open.host, "filters": [{"image": "acme/*"}]}},
                {"apiVersion": GROUP + "/v1alpha1", "kind": "AIMClusterModelSource", "metadata": {"name": "shut"},
                 "spec": {"registry": world.basic.host, "filters": [{"image": "acme/*"}]}})
    assert until(lambda: world.get("aimclsrc", "open").get("status", {}).get("status") == "Ready"), \
        world.get("aimclsrc", "open")
    images = {one["spec"]["image"] for one in world.get("aimclustermodels")["items"]}
    assert images == {world.open.host + "/acme/tiny:1", world.open.host + "/acme/many:1"}, images
    assert until(lambda: world.get("aimclsrc", "shut").get("status", {}).get("status") == "Failed")


def a_registry_that_was_down_is_asked_again(world):
    world.open.stop()
    world.model("down", f"{world.open.host}/acme/tiny:1@sha256:" + "0" * 64)
    world.ends_with("down", "RegistryUnreachable")
    world.open.start()
    world.ends_with("down", "ImageNotFound")


def no_secret_is_told(world):
    log = pathlib.Path(world.folder, "operator.log").read_text()
    everything = log + json.dumps(world.get("aimmodels")) + json.dumps(world.get("events"))
    coded = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    assert coded not in everything and f'"{PASSWORD}"' not in everything


if __name__ == "__main__":
    for program in ("docker-registry", "skopeo", "openssl", "perl"):
        need(program)
    harness.main(World, [an_image_is_inspected_without_authentication, of_an_index_the_image_of_the_nodes_is_read,
                         a_missing_image_is_reported, secrets_need_a_right_of_their_own, basic_authentication_works,
                         a_secret_of_the_service_account_works, tokens_work, tls_is_verified,
                         only_listed_registries_may_be_private, a_model_source_finds_what_the_registries_have,
                         a_registry_that_was_down_is_asked_again,
                         no_secret_is_told])
