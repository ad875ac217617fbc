#!/usr/bin/python3
"""flyball in the place of the Workload-Variant-Autoscaler: its Deployment's arguments and environment behind
`flyball operator --wva`, on the embedded API server, or on a real one that reviews tokens.

    saturation_flags.py FLYBALL
    saturation_flags.py FLYBALL --cluster DIR       on the control plane that test/kube/cluster started in DIR

Speaks TAP. Skipped where there is no kubectl.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOME = "workload-variant-autoscaler-system"
LEASE = "72dd1cf1.llm-d.ai"
DEADLINE_SECONDS = 90


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def until(question):
    """Until the question is answered with something true; it may fail on the way."""
    end, last = time.monotonic() + DEADLINE_SECONDS, None
    while time.monotonic() < end:
        try:
            if answer := question():
                return answer
        except OSError as error:  # not there yet
            last = error
        time.sleep(0.1)
    raise AssertionError("it did not come within %d s (%s)" % (DEADLINE_SECONDS, last))


def get(url, token=None, context=None):
    """Status and text."""
    request = urllib.request.Request(url, headers={"Authorization": "Bearer " + token} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


ANYBODY = ssl.create_default_context()
ANYBODY.check_hostname = False
ANYBODY.verify_mode = ssl.CERT_NONE


class World:
    def __init__(self, flyball, folder, kubeconfig):
        self.flyball, self.folder, self.kubeconfig = flyball, pathlib.Path(folder), kubeconfig
        self.operator = None

    def kubectl(self, *words, text=None):
        done = subprocess.run(["kubectl", *words], input=text, capture_output=True, text=True, timeout=60,
                              env=dict(os.environ, KUBECONFIG=self.kubeconfig, HOME=str(self.folder)))
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, *flags, kubeconfig=None, **env):
        """The original's Deployment, but for image and command. Its ports are free ones."""
        self.stop()
        self.probes, self.metrics = free_port(), free_port()
        token = self.folder / "token"
        token.write_text("of the service account")
        words = [self.flyball, "operator", "--wva", "--kubeconfig", kubeconfig or self.kubeconfig,
                 "--leader-elect=true", "--health-probe-bind-address=:%d" % self.probes,
                 "--metrics-bind-address=:%d" % self.metrics, *flags]
        settings = {"LOG_LEVEL": "debug", "POD_NAMESPACE": HOME,
                    "PROMETHEUS_BASE_URL": "https://127.0.0.1:9", "PROMETHEUS_TLS_INSECURE_SKIP_VERIFY": "true",
                    "PROMETHEUS_TOKEN_PATH": str(token), "WVA_SCALE_TO_ZERO": "false", **env}
        self.log = open(self.folder / "operator.log", "w+", encoding="utf-8")
        self.operator = subprocess.Popen(words, stdout=self.log, stderr=self.log,
                                         env={**os.environ, **settings, "HOME": str(self.folder)})

    def said(self):
        return (self.folder / "operator.log").read_text()

    def lease(self):
        leases = json.loads(self.kubectl("get", "leases", "-A", "-o", "json"))["items"]
        return next((one for one in leases if one["metadata"]["name"] == LEASE), None)

    def stop(self):
        if self.operator and self.operator.poll() is None:
            self.operator.terminate()
            self.operator.wait(60)
        if self.operator:
            self.log.close()


def its_deployment_starts_and_is_ready(world):
    world.start("--metrics-secure=true", "-v=4", "--zap-time-encoding=iso8601", "--webhook-cert-path=")
    probes = "http://127.0.0.1:%d" % world.probes
    until(lambda: get(probes + "/readyz")[0] == 200)
    assert get(probes + "/healthz")[0] == 200
    assert get(probes + "/metrics")[0] == 404, "metrics are only where they were asked for"
    spec = until(world.lease)["spec"]
    assert spec["leaseDurationSeconds"] == 60, spec
    said = world.said()
    assert "this process leads" in until(lambda: "this process leads" in world.said() and world.said())
    assert re.search(r"have no meaning here and are ignored settings=\"[^\"]*--zap-time-encoding[^\"]*LOG_LEVEL",
                     said), said
    assert " debug " in said and "port=8080" not in said, said
    assert "CAPACITY-ONLY" in said and "feature=schedule" not in said, said


def metrics_are_not_for_everybody(world):
    url = "https://127.0.0.1:%d/metrics" % world.metrics
    assert get(url, context=ANYBODY)[0] == 401
    assert get(url.replace("/metrics", "/readyz"), context=ANYBODY)[0] == 404
    status = get(url, "made-up", ANYBODY)[0]
    assert status == (401 if world.real else 500), status  # the embedded server reviews no tokens
    try:
        get(url)
    except urllib.error.URLError as why:
        assert "CERTIFICATE_VERIFY_FAILED" in str(why), why
    else:
        raise AssertionError("a certificate that nobody signed was accepted")


def the_given_certificate_is_shown(world):
    names = ["-keyout", str(world.folder / "k.pem"), "-out", str(world.folder / "c.pem")]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "1", "-subj", "/CN=metrics", "-addext", "subjectAltName=IP:127.0.0.1", *names],
                   check=True, capture_output=True)
    world.start("--metrics-cert-path", str(world.folder), "--metrics-cert-name=c.pem", "--metrics-cert-key=k.pem")
    trusted = ssl.create_default_context(cafile=str(world.folder / "c.pem"))
    url = "https://127.0.0.1:%d/metrics" % world.metrics
    assert until(lambda: get(url, context=trusted))[0] == 401


def plain_metrics_are_for_everybody(world):
    world.start("--metrics-secure=false")
    text = until(lambda: get("http://127.0.0.1:%d/metrics" % world.metrics)[1])
    assert "leader_election_master_status" in text, text


def environment_and_file_count_after_flags(world):
    port = free_port()
    config = world.folder / "config.yaml"
    config.write_text("METRICS_SECURE: true\nHEALTH_PROBE_BIND_ADDRESS: \":1\"\nLEADER_ELECTION_LEASE_DURATION: 40s\n"
                      "LEADER_ELECTION_RENEW_DEADLINE: 30s\nGLOBAL_OPT_INTERVAL: 7s\n")
    world.start("--config-file", str(config), "--metrics-bind-address=:%d" % port, METRICS_SECURE="false",
                METRICS_BIND_ADDRESS=":2", LEADER_ELECTION_RENEW_DEADLINE="35s")
    until(lambda: get("http://127.0.0.1:%d/metrics" % port)[0] == 200)
    until(lambda: world.lease()["spec"]["leaseDurationSeconds"] == 40)
    until(lambda: get("http://127.0.0.1:%d/readyz" % world.probes)[0] == 200)


def what_cannot_be_is_refused(world):
    table = [([], {"PROMETHEUS_BASE_URL": "http://prometheus:9090", "PROMETHEUS_TOKEN_PATH": ""}, 1,
              "PROMETHEUS_ALLOW_HTTP"),
             ([], {"PROMETHEUS_BASE_URL": "http://prometheus:9090", "PROMETHEUS_ALLOW_HTTP": "true"}, 1, "token"),
             ([], {"GLOBAL_OPT_INTERVAL": "abc"}, 1, "GLOBAL_OPT_INTERVAL"),
             ([], {"METRICS_SECURE": "perhaps"}, 2, "METRICS_SECURE"),
             (["--metrics-bind-address=8443"], {}, 1, "--metrics-bind-address"),
             (["--metrics-cert-path=/nowhere"], {}, 1, "/nowhere/tls.crt"),
             (["--config-file=/nowhere"], {}, 2, "/nowhere"),
             (["--no-such-flag"], {}, 2, "--no-such-flag")]
    for flags, env, code, word in table:
        world.start(*flags, **env)
        assert world.operator.wait(60) == code, (flags, env, world.said())
        assert word in world.said(), (word, world.said())


def the_api_server_says_who_may_read(world):
    """Three accounts: one may get /metrics, one may not, and the operator's own with just the roles it needs."""
    for account in ("operator", "reader", "stranger"):
        world.kubectl("create", "serviceaccount", account, "-n", HOME)
    world.kubectl("apply", "-f", str(ROOT / "deploy/rbac/saturation.yaml"))
    world.kubectl("create", "clusterrole", "metrics-reader", "--verb=get", "--non-resource-url=/metrics")
    for role, account in (("flyball-saturation", "operator"), ("system:auth-delegator", "operator"),
                          ("metrics-reader", "reader")):
        world.kubectl("create", "clusterrolebinding", role.replace(":", "-") + "-" + account, "--clusterrole", role,
                      "--serviceaccount", "%s:%s" % (HOME, account))
    tokens = {a: world.kubectl("create", "token", a, "-n", HOME).strip() for a in ("operator", "reader", "stranger")}
    config = json.loads(world.kubectl("config", "view", "--raw", "--flatten", "--minify", "-o", "json"))
    config["users"][0]["user"] = {"token": tokens["operator"]}
    path = world.folder / "operator.kubeconfig"
    path.write_text(json.dumps(config))
    world.start("--leader-elect=false", kubeconfig=str(path))
    url = "https://127.0.0.1:%d/metrics" % world.metrics
    status, text = until(lambda: get(url, tokens["reader"], ANYBODY))
    assert status == 200 and "rest_client_requests_total" in text, (status, text, world.said())
    assert get(url, tokens["stranger"], ANYBODY)[0] == 403
    assert get(url, "made-up", ANYBODY)[0] == 401
    assert get(url, context=ANYBODY)[0] == 401
    assert "orbidden" not in world.said(), world.said()


COMMON = [its_deployment_starts_and_is_ready, metrics_are_not_for_everybody, the_given_certificate_is_shown,
          plain_metrics_are_for_everybody, environment_and_file_count_after_flags, what_cannot_be_is_refused]


def run(number, case, world):
    name = case.__name__.replace("_", " ")
    try:
        case(world)
        print("ok %d - %s" % (number, name), flush=True)
    except Exception as why:  # every failure is one line of the answer
        print("not ok %d - %s" % (number, name))
        print("# " + repr(why).replace("\n", "\n# "), flush=True)


def serve_api(flyball, folder):
    server = subprocess.Popen([flyball, "apiserver", "--data", folder + "/data", "--listen", "127.0.0.1:0"],
                              stdout=subprocess.PIPE, stderr=open(folder + "/apiserver.log", "w"), text=True)
    assert "serving" in server.stdout.readline(), pathlib.Path(folder, "apiserver.log").read_text()
    return server


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("flyball")
    parser.add_argument("--cluster")
    given = parser.parse_args()
    if not shutil.which("kubectl"):
        print("1..0 # SKIP there is no kubectl")
        return
    flyball = str(pathlib.Path(given.flyball).resolve())
    cases = COMMON + [the_api_server_says_who_may_read] if given.cluster else COMMON
    print("1..%d" % len(cases), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        server = None if given.cluster else serve_api(flyball, folder)
        world = World(flyball, folder, given.cluster + "/kubeconfig" if given.cluster else folder + "/data/kubeconfig")
        world.real = bool(given.cluster)
        try:
            world.kubectl("apply", "-f", str(ROOT / "deploy/crds/llmd.ai_variantautoscalings.yaml"))
            world.kubectl("apply", "-f", "-", text=json.dumps(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}))
            for number, case in enumerate(cases, 1):
                run(number, case, world)
        finally:
            world.stop()
            if server:
                server.terminate()
                server.wait(60)


main()
