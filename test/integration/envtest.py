#!/usr/bin/python3
"""flyball envtest: the folder, and both faces started with the flags that controller-runtime's envtest passes, with
certificates made as it makes them. Go's own suites on it: ./dev kube envtest.

    envtest.py FLYBALL

Speaks TAP. Skipped where there is no kubectl or openssl.
"""
import base64
import http.client
import json
import os
import pathlib
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import time

from harness import TOP, Tap, free_port, need, until

FLYBALL = os.path.abspath(sys.argv[1])
QUIET = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}


def openssl(*words, folder):
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def make_ca(folder, name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "7", "-subj",
            "/CN=envtest-environment", "-keyout", name + ".key", "-out", name + ".crt", folder=folder)


def make_cert(folder, ca, name, subject, names):
    pathlib.Path(folder, name + ".ext").write_text("subjectAltName=" + names if names else "")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject, "-keyout",
            name + ".key", "-out", name + ".csr", folder=folder)
    openssl("x509", "-req", "-in", name + ".csr", "-CA", ca + ".crt", "-CAkey", ca + ".key", "-CAcreateserial", "-days", "7",
            "-extfile", name + ".ext", "-out", name + ".crt", folder=folder)


class Plane:
    """Both faces, as envtest starts them."""

    def __init__(self, assets, *more, health=200):
        self.folder = tempfile.TemporaryDirectory()
        at = self.folder.name
        make_ca(at, "serving-ca")
        make_ca(at, "client-cert-auth-ca")
        make_cert(at, "serving-ca", "apiserver", "/CN=localhost", "DNS:localhost,IP:127.0.0.1")
        make_cert(at, "client-cert-auth-ca", "admin", "/CN=admin/O=system:masters", "")
        make_cert(at, "client-cert-auth-ca", "nobody", "/CN=nobody", "")
        self.port, self.etcd_port = free_port(), free_port()
        self.etcd = subprocess.Popen(
            [assets + "/etcd", "--advertise-client-urls=http://127.0.0.1:%d" % self.etcd_port, "--data-dir=" + at + "/etcd",
             "--listen-client-urls=http://127.0.0.1:%d" % self.etcd_port, "--listen-peer-urls=http://127.0.0.1:%d" % free_port(),
             "--unsafe-no-fsync=true"], **QUIET)
        self.server = subprocess.Popen(
            [assets + "/kube-apiserver", "--allow-privileged=true", "--authorization-mode=RBAC", "--bind-address=127.0.0.1",
             "--cert-dir=" + at, "--client-ca-file=" + at + "/client-cert-auth-ca.crt",
             "--disable-admission-plugins=ServiceAccount", "--etcd-servers=http://127.0.0.1:%d" % self.etcd_port,
             "--secure-port=%d" % self.port, "--service-account-issuer=https://127.0.0.1:%d/" % self.port,
             "--service-account-key-file=" + at + "/sa-signer.crt", "--service-account-signing-key-file=" + at + "/sa-signer.key",
             "--service-cluster-ip-range=10.0.0.0/24", *more], **QUIET)
        assert until(lambda: self.get_etcd("/health") == 200, 60), "no etcd"
        assert until(lambda: self.get("/healthz") == health, 60), "no API server"

    def get_etcd(self, path):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.etcd_port, timeout=10)
            connection.request("GET", path)
            return connection.getresponse().status
        except OSError:
            return None

    def get(self, path):
        """As envtest polls: without a certificate, and without looking at the server's."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        try:
            connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=10, context=context)
            connection.request("GET", path)
            return connection.getresponse().status
        except OSError:
            return None

    def send(self, method, path, body, content="application/json"):
        """As the administrator; (status, answer)."""
        context = ssl.create_default_context(cafile=self.folder.name + "/serving-ca.crt")
        context.load_cert_chain(self.folder.name + "/admin.crt", self.folder.name + "/admin.key")
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=30, context=context)
        connection.request(method, path, json.dumps(body), {"Content-Type": content})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())

    def kubectl(self, user, *words, text=None):
        def data(name):
            return base64.b64encode(pathlib.Path(self.folder.name, name).read_bytes()).decode()
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "c",
                  "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:%d" % self.port,
                                                         "certificate-authority-data": data("serving-ca.crt")}}],
                  "users": [{"name": "u", "user": {"client-certificate-data": data(user + ".crt"),
                                                   "client-key-data": data(user + ".key")}}],
                  "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}
        path = pathlib.Path(self.folder.name, "kubeconfig")
        path.write_text(json.dumps(config))
        return subprocess.run(["kubectl", "--kubeconfig", str(path), *words], input=text, capture_output=True, text=True,
                              timeout=60)

    def stop(self):
        codes = []
        for one in (self.server, self.etcd):
            one.send_signal(signal.SIGTERM)
            codes.append(one.wait(20))
        self.said = self.server.stderr.read()
        return codes

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in (self.server, self.etcd):
            one.kill()
            one.wait()
        self.folder.cleanup()


def make_assets():
    folder = tempfile.mkdtemp()
    done = subprocess.run([FLYBALL, "envtest", folder + "/assets"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.strip() == folder + "/assets", done
    return done.stdout.strip()


def the_folder_is_made_again_but_no_file_replaced():
    assets = make_assets()
    try:
        for name in ("kube-apiserver", "etcd"):
            assert os.path.realpath(assets + "/" + name) == os.path.realpath(FLYBALL)
        pathlib.Path(assets, "kubectl").write_text("mine")
        again = subprocess.run([FLYBALL, "envtest", assets], capture_output=True, text=True, timeout=60)
        assert again.returncode == 0 and pathlib.Path(assets, "kubectl").read_text() == "mine", again
        os.unlink(assets + "/etcd")
        pathlib.Path(assets, "etcd").write_text("the real one")
        refused = subprocess.run([FLYBALL, "envtest", assets], capture_output=True, text=True, timeout=60)
        assert refused.returncode == 1 and "is not a link" in refused.stderr, refused
        assert pathlib.Path(assets, "etcd").read_text() == "the real one"
        with open("/dev/full", "w") as full:
            unsaid = subprocess.run([FLYBALL, "envtest", os.path.dirname(assets) + "/new"], stdout=full, stderr=subprocess.PIPE,
                                    text=True, timeout=60)
        assert unsaid.returncode == 1 and "standard output" in unsaid.stderr, unsaid
        for words in ((), ("--what",), ("a", "b")):
            assert subprocess.run([FLYBALL, "envtest", *words], capture_output=True, timeout=60).returncode == 2
    finally:
        shutil.rmtree(os.path.dirname(assets))


def help_is_searched_for_flags():
    """envtest passes --insecure-port only to servers whose help lists it, and --unsafe-no-fsync likewise."""
    assets = make_assets()
    try:
        for name, has, lacks in (("kube-apiserver", "--secure-port", "--insecure-port"), ("etcd", "--unsafe-no-fsync", "--foo")):
            done = subprocess.run([assets + "/" + name, "--help"], capture_output=True, text=True, timeout=60)
            lines = [line.strip() for line in done.stdout.splitlines()]
            assert done.returncode == 0 and any(line.startswith(has) for line in lines), done
            assert not any(line.startswith(lacks) for line in lines), done
    finally:
        shutil.rmtree(os.path.dirname(assets))


POD = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "team"},
                  "spec": {"containers": [{"name": "c", "image": "x"}]}})


def a_control_plane_starts_and_ends(assets):
    with Plane(assets, "--no-such-flag=1") as plane:
        assert plane.kubectl("admin", "create", "namespace", "team").returncode == 0
        created = plane.kubectl("admin", "create", "-f", "-", text=POD)
        assert created.returncode == 0, created  # there is no service account, and none is needed
        accounts = plane.kubectl("admin", "get", "serviceaccounts", "-A", "-o", "name")
        assert accounts.returncode == 0 and not accounts.stdout, accounts
        refused = plane.kubectl("nobody", "get", "pods", "-A")
        assert refused.returncode and 'User "nobody" cannot list resource "pods"' in refused.stderr, refused
        gone = plane.kubectl("admin", "delete", "namespace", "team", "--timeout=30s")
        assert gone.returncode == 0, gone
        assert plane.get("/api/v1/namespaces") == 403
        before = time.monotonic()
        assert plane.stop() == [0, 0]
        assert time.monotonic() - before < 10
        assert "ignores the unknown flag --no-such-flag" in plane.said and "etcd-servers" not in plane.said, plane.said


APPLY = "application/apply-patch+yaml"
HTTPROUTE = "/apis/gateway.networking.k8s.io/v1/namespaces/default/httproutes"


def corners_that_suites_found(assets):
    """Each failed in a suite of controller-runtime, or for a client written in Go."""
    with Plane(assets) as plane:
        own = plane.kubectl("admin", "get", "service", "kubernetes", "-o", "jsonpath={.spec.ports[0].port}")
        assert own.stdout == "443", own
        some = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "5"}}
        maps = "/api/v1/namespaces/default/configmaps"
        assert plane.send("POST", maps + "?dryRun=All", some)[0] == 201
        code, answer = plane.send("POST", maps, some)
        assert code == 500 and answer["message"] == "resourceVersion should not be set on objects to be created", answer
        code, answer = plane.send("POST", maps, dict(some, metadata={"name": "A b", "resourceVersion": "5"}))
        assert code == 422, answer  # what is invalid comes first
        labels = {"matchLabels": {"app": "d"}}
        deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
                      "spec": {"selector": labels, "template": {"metadata": {"labels": {"app": "d"}},
                                                                "spec": {"containers": [{"name": "c", "image": "x"}]}}}}
        assert plane.send("POST", "/apis/apps/v1/namespaces/default/deployments", deployment)[0] == 201
        code, answer = plane.send("PATCH", "/apis/apps/v1/namespaces/default/deployments/d/scale?fieldManager=m&force=true",
                                  {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 4}}, APPLY)
        assert code == 200 and answer["spec"]["replicas"] == 4, answer
        plane.kubectl("admin", "apply", "-f", str(TOP / "examples/crds/gateway.networking.k8s.io_httproutes.yaml"))
        assert until(lambda: plane.kubectl("admin", "get", "httproutes").returncode == 0)
        route = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute", "metadata": {"name": "r"},
                 "spec": {"rules": [{"backendRefs": [{"name": "x", "port": 80}]}]}, "status": {"parents": None}}
        for _ in range(2):
            code, answer = plane.send("PATCH", HTTPROUTE + "/r?fieldManager=m", route, APPLY)
            assert code in (200, 201) and "status" not in answer, answer
        code, answer = plane.send("PATCH", HTTPROUTE + "/r/status?fieldManager=m", route, APPLY)
        assert code == 422, answer  # here it would be stored


def modes_and_data_are_honored(assets):
    with Plane(assets, "--authorization-mode=AlwaysAllow") as plane:
        assert plane.kubectl("nobody", "get", "pods", "-A").returncode == 0
        assert plane.get("/api/v1/secrets") == 403, "anonymous is not part of everybody"
    with Plane(assets, "--anonymous-auth", "true") as plane:
        assert plane.get("/api/v1/secrets") == 403
    with Plane(assets, "--anonymous-auth=false", health=401) as plane:
        assert plane.get("/api/v1/secrets") == 401
        assert plane.kubectl("admin", "get", "secrets").returncode == 0
    with tempfile.TemporaryDirectory() as kept:
        for verb in ("create", "get"):
            with Plane(assets, "--data", kept + "/data") as plane:
                done = plane.kubectl("admin", verb, "namespace", "kept")
                assert done.returncode == 0, done
                plane.stop()


def bad_values_end_with_a_reason(assets):
    with tempfile.TemporaryDirectory() as folder:
        for flag in ("--secure-port=x", "--client-ca-file=/nowhere", "--secure-port=70000", "--authorization-mode=RBCA",
                     "--authorization-mode=Webhook"):
            done = subprocess.run([assets + "/kube-apiserver", "--cert-dir=" + folder, "--secure-port=0", flag],
                                  capture_output=True, text=True, timeout=60)
            assert done.returncode and (flag.split("=")[1] in done.stderr), (flag, done)


def a_word_without_a_flag_is_refused(assets):
    for name in ("kube-apiserver", "etcd"):
        done = subprocess.run([assets + "/" + name, "serve"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and 'does not take any arguments, got ["serve"]' in done.stderr, done


def what_a_cluster_needs_comes_back(assets):
    """After a client deleted it, without a restart. The flag that envtest passes would turn accounts off."""
    with Plane(assets, "--disable-admission-plugins=") as plane:
        assert plane.kubectl("admin", "create", "namespace", "team").returncode == 0
        for kind, name, space in (("service", "kubernetes", "default"), ("serviceaccount", "default", "team"),
                                  ("configmap", "kube-root-ca.crt", "team")):
            def uid():
                return plane.kubectl("admin", "get", kind, name, "-n", space, "-o", "jsonpath={.metadata.uid}").stdout
            assert until(uid), (kind, name)
            before = uid()
            assert plane.kubectl("admin", "delete", kind, name, "-n", space, "--wait=false").returncode == 0
            assert until(lambda: uid() not in ("", before)), (kind, name)
        pem = plane.kubectl("admin", "get", "configmap", "kube-root-ca.crt", "-n", "team", "-o", "jsonpath={.data}").stdout
        assert "BEGIN CERTIFICATE" in pem, pem
        gone = plane.kubectl("admin", "delete", "namespace", "team", "--timeout=30s")
        assert gone.returncode == 0, gone  # nothing is made in it again


def many_run_side_by_side(assets):
    """Memory is that of a release build, which test builds are not: only that they do not disturb each other."""
    planes = [Plane(assets) for _ in range(4)]
    try:
        for number, plane in enumerate(planes):
            assert plane.kubectl("admin", "create", "namespace", "n%d" % number).returncode == 0
        for number, plane in enumerate(planes):
            found = plane.kubectl("admin", "get", "namespaces", "-o", "name").stdout
            assert [line for line in found.split() if "/n" in line] == ["namespace/n%d" % number], found
    finally:
        for plane in planes:
            plane.__exit__()


def main():
    need("kubectl")
    need("openssl")
    tap = Tap()
    tap.run(the_folder_is_made_again_but_no_file_replaced)
    tap.run(help_is_searched_for_flags)
    assets = make_assets()
    try:
        for case in (a_control_plane_starts_and_ends, corners_that_suites_found, modes_and_data_are_honored, bad_values_end_with_a_reason,
                     a_word_without_a_flag_is_refused, what_a_cluster_needs_comes_back, many_run_side_by_side):
            tap.run(case, assets)
    finally:
        shutil.rmtree(os.path.dirname(assets))
    tap.end()


main()
