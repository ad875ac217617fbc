#!/usr/bin/python3
"""flyball in the place of the Workload-Variant-Autoscaler: its Deployment's arguments and environment behind
`flyball operator --wva`, on the embedded API server, or on a real one.

    saturation_flags.py FLYBALL
    saturation_flags.py FLYBALL --cluster DIR       on the control plane that test/kube/cluster started in DIR

Speaks TAP. Skipped where there is no kubectl.
"""
import http.server
import os
import pathlib
import re
import signal
import ssl
import subprocess
import threading
import urllib.error
import urllib.request

import harness
from harness import TOP, free_port, until

HOME = "workload-variant-autoscaler-system"
LEASE = "72dd1cf1.llm-d.ai"


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


def answers(url, wanted, **more):
    """Does it, by and by, answer so?"""
    def question():
        try:
            return get(url, **more)[0] == wanted
        except OSError:  # not listening yet
            return False
    return until(question)


class Prometheus(harness.Handler):
    """Knows nothing, by HTTPS; remembers who asked."""
    asked = []

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        certificate = self.connection.getpeercert()
        name = dict(part[0] for part in certificate["subject"])["commonName"] if certificate else None
        Prometheus.asked.append((self.headers.get("Authorization"), name))
        text = b'{"status":"success","data":{"resultType":"vector","result":[]}}'
        self.answer(text, "application/json")


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """Who hangs up has its reasons."""


def openssl(world, *words):
    subprocess.run(["openssl", *words], cwd=world.folder, check=True, capture_output=True)


def certify(world, name, authority):
    """NAME.pem and NAME.key, signed by an authority of that name, which is made where there is none."""
    if not pathlib.Path(world.folder, authority + ".pem").exists():
        openssl(world, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "1",
                "-subj", "/CN=" + authority, "-keyout", authority + ".key", "-out", authority + ".pem")
    openssl(world, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=" + name,
            "-addext", "subjectAltName=DNS:" + name, "-keyout", name + ".key", "-out", name + ".csr")
    openssl(world, "x509", "-req", "-in", name + ".csr", "-CA", authority + ".pem", "-CAkey", authority + ".key",
            "-CAcreateserial", "-days", "1", "-copy_extensions", "copy", "-out", name + ".pem")


def serve_prometheus(world, name, authority=None, port=0):
    """With the certificate of that name; who comes with one of the authority's is known by it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(world.folder + "/%s.pem" % name, world.folder + "/%s.key" % name)
    if authority:
        context.load_verify_locations(world.folder + "/%s.pem" % authority)
        context.verify_mode = ssl.CERT_OPTIONAL
    server = Server(("127.0.0.1", port), Prometheus)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class World(harness.World):
    FEATURE = "saturation"
    OWN = HOME

    def prepare(self):
        self.define(TOP / "deploy/crds/llmd.ai_variantautoscalings.yaml")
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
        certify(self, "prometheus.example", "ours")
        self.prometheus = serve_prometheus(self, "prometheus.example", "ours")

    def start(self, *flags, kubeconfig=None, **env):
        """The original's Deployment, but for image and command. Its ports are free ones."""
        self.stop_operator()
        self.launch(*flags, kubeconfig=kubeconfig, **env)

    def launch(self, *flags, kubeconfig=None, **env):
        self.probes, self.metrics = free_port(), free_port()
        token = pathlib.Path(self.folder, "token")
        token.write_text("of the service account")
        words = [self.flyball, "operator", "--wva", "--kubeconfig", kubeconfig or self.server.kubeconfig,
                 "--leader-elect=true", "--health-probe-bind-address=:%d" % self.probes,
                 "--metrics-bind-address=:%d" % self.metrics, *flags]
        settings = {"LOG_LEVEL": "debug", "POD_NAMESPACE": HOME,
                    "PROMETHEUS_BASE_URL": "https://127.0.0.1:%d" % self.prometheus.server_port,
                    "PROMETHEUS_TLS_INSECURE_SKIP_VERIFY": "true",
                    "PROMETHEUS_TOKEN_PATH": str(token), "WVA_SCALE_TO_ZERO": "false", **env}
        self.log = open(self.folder + "/operator.log", "w+")
        self.operator = subprocess.Popen(words, stdout=self.log, stderr=self.log,
                                         env={**os.environ, **settings, "HOME": self.folder})

    def said(self):
        return pathlib.Path(self.folder, "operator.log").read_text()

    def lease(self):
        leases = self.get("leases", "-A")["items"]
        return next((one["spec"] for one in leases if one["metadata"]["name"] == LEASE), {})


def its_deployment_starts_and_is_ready(world):
    world.start("--metrics-secure=true", "-v=4", "--zap-time-encoding=iso8601", "--webhook-cert-path=")
    probes = "http://127.0.0.1:%d" % world.probes
    assert answers(probes + "/readyz", 200), world.said()
    assert get(probes + "/healthz")[0] == 200
    assert get(probes + "/metrics")[0] == 404, "metrics are only where they were asked for"
    assert until(lambda: world.lease().get("leaseDurationSeconds") == 60), world.lease()
    assert until(lambda: "became leader" in world.said()), world.said()
    said = world.said()
    assert re.search(r"settings without effect ignored settings=\"[^\"]*--zap-time-encoding[^\"]*LOG_LEVEL",
                     said), said
    assert " debug " in said and "port=8080" not in said, said
    assert "CAPACITY-ONLY" in said and "feature=schedule" not in said, said


def metrics_are_not_for_everybody(world):
    url = "https://127.0.0.1:%d/metrics" % world.metrics
    assert get(url, context=ANYBODY)[0] == 401
    assert get(url.replace("/metrics", "/readyz"), context=ANYBODY)[0] == 404
    assert get(url, "made-up", ANYBODY)[0] == 401
    try:
        get(url)
    except urllib.error.URLError as why:
        assert "CERTIFICATE_VERIFY_FAILED" in str(why), why
    else:
        raise AssertionError("a certificate that nobody signed was accepted")


def the_given_certificate_is_shown(world):
    names = ["-keyout", world.folder + "/k.pem", "-out", world.folder + "/c.pem"]
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "1", "-subj", "/CN=metrics", "-addext", "subjectAltName=IP:127.0.0.1", *names],
                   check=True, capture_output=True)
    world.start("--metrics-cert-path", world.folder, "--metrics-cert-name=c.pem", "--metrics-cert-key=k.pem")
    trusted = ssl.create_default_context(cafile=world.folder + "/c.pem")
    url = "https://127.0.0.1:%d/metrics" % world.metrics
    assert answers(url, 401, context=trusted), world.said()


def plain_metrics_are_for_everybody(world):
    world.start("--metrics-secure=false")
    url = "http://127.0.0.1:%d/metrics" % world.metrics
    assert answers(url, 200), world.said()
    assert "leader_election_master_status" in get(url)[1]


def environment_and_file_count_after_flags(world):
    port = free_port()
    config = pathlib.Path(world.folder, "config.yaml")
    config.write_text("METRICS_SECURE: true\nHEALTH_PROBE_BIND_ADDRESS: \":1\"\nLEADER_ELECTION_LEASE_DURATION: 40s\n"
                      "LEADER_ELECTION_RENEW_DEADLINE: 30s\nGLOBAL_OPT_INTERVAL: 7s\n")
    world.start("--config-file", str(config), "--metrics-bind-address=:%d" % port, METRICS_SECURE="false",
                METRICS_BIND_ADDRESS=":2", LEADER_ELECTION_RENEW_DEADLINE="35s")
    assert answers("http://127.0.0.1:%d/metrics" % port, 200), world.said()
    assert answers("http://127.0.0.1:%d/readyz" % world.probes, 200), world.said()
    assert until(lambda: world.lease().get("leaseDurationSeconds") == 40), world.lease()


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
        world.operator = None


def the_api_server_says_who_may_read(world):
    """Three accounts: one may get /metrics, one may not, and the operator's own with just the roles it needs."""
    world.kubectl("create", "clusterrole", "metrics-reader", "--verb=get", "--non-resource-url=/metrics")
    config = world.kubeconfig_of_role()
    for role, account in (("system:auth-delegator", "default:flyball-saturation"),
                          ("metrics-reader", HOME + ":reader")):
        world.kubectl("create", "clusterrolebinding", account.split(":")[1] + "-of-the-test", "--clusterrole", role,
                      "--serviceaccount", account)
    tokens = {}
    for account in ("reader", "stranger"):
        world.kubectl("create", "serviceaccount", account, "-n", HOME)
        tokens[account] = world.kubectl("create", "token", account, "-n", HOME).strip()
    world.start("--leader-elect=false", kubeconfig=config)
    url = "https://127.0.0.1:%d/metrics" % world.metrics
    assert answers(url, 200, token=tokens["reader"], context=ANYBODY), world.said()
    assert "rest_client_requests_total" in get(url, tokens["reader"], ANYBODY)[1]
    assert get(url, tokens["stranger"], ANYBODY)[0] == 403
    assert get(url, "made-up", ANYBODY)[0] == 401
    assert get(url, context=ANYBODY)[0] == 401
    assert "orbidden" not in world.said(), world.said()


def variant(name):
    return [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "default"},
             "spec": {"selector": {"matchLabels": {"app": name}},
                      "template": {"metadata": {"labels": {"app": name}},
                                   "spec": {"containers": [{"name": "vllm", "image": "example.invalid/vllm:1"}]}}}},
            {"apiVersion": "llmd.ai/v1alpha1", "kind": "VariantAutoscaling",
             "metadata": {"name": name, "namespace": "default",
                          "labels": {"inference.optimization/acceleratorName": "A100",
                                     "wva.llmd.ai/controller-instance": name}},
             "spec": {"modelID": "llama", "scaleTargetRef": {"kind": "Deployment", "name": name}}}]


def a_restart_keeps_the_last_good_configuration(world):
    """Killed, and started with its `default` entry broken, then with the ConfigMap gone."""
    name, state = "saturation-scaling-config", "flyball-saturation-state"

    def config(text):
        world.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": HOME},
                     "data": {"default": text}})

    def restart():
        world.stop_operator(signal.SIGKILL)
        world.launch("--metrics-secure=false", "--leader-elect=false")

    def stands_in(key):
        try:
            text = get("http://127.0.0.1:%d/metrics" % world.metrics)[1]
        except OSError:  # not listening yet
            return False
        return 'flyball_config_fallback{map="%s",key="%s"} 1' % (name, key) in text

    config("kvCacheThreshold: 0.7\n")
    world.start("--metrics-secure=false", "--leader-elect=false")
    assert until(lambda: any("kvCacheThreshold: 0.7" in text for text in
                             world.get("configmap", state, "-n", HOME).get("data", {}).values()), 120), world.said()
    config("kvCacheThreshold: [\n")
    restart()
    assert until(lambda: stands_in("default"), 120), world.said()
    assert "the last good value stays" in world.said(), world.said()
    world.kubectl("delete", "configmap", name, "-n", HOME)
    restart()
    assert until(lambda: stands_in(""), 120), world.said()
    assert "its last good entries stay in force" in world.said(), world.said()
    assert "not loaded yet" not in world.said(), world.said()
    world.stop_operator()
    world.kubectl("delete", "configmap", state, "-n", HOME)


def instances_leave_each_others_variants_alone(world):
    """Both at the same time, on variants of the same model; each leads, by a lease of its own."""
    def version(name):
        return world.get("va", name, "-n", "default")["metadata"]["resourceVersion"]

    def shows(name):
        """Is the variant in this instance's metrics, and no other?"""
        text = get("http://127.0.0.1:%d/metrics" % world.metrics)[1]
        return set(re.findall(r'^wva_desired_replicas\{variant_name="(\w+)".*controller_instance="(\w+)"', text,
                              re.MULTILINE)) == {(name, name)}

    def cycles():
        text = get("http://127.0.0.1:%d/metrics" % world.metrics)[1]
        return int(re.search(r"^saturation_cycle_seconds_count (\d+)", text, re.MULTILINE).group(1))

    def launch(name):
        world.launch("--metrics-secure=false", "--leader-election-id=" + name, CONTROLLER_INSTANCE=name,
                     PROMETHEUS_BASE_URL="", PROMETHEUS_TOKEN_PATH="", GLOBAL_OPT_INTERVAL="200ms")
        assert answers("http://127.0.0.1:%d/metrics" % world.metrics, 200), world.said()
        assert until(lambda: shows(name)), get("http://127.0.0.1:%d/metrics" % world.metrics)[1]
    world.stop_operator()
    world.apply({"apiVersion": "v1", "kind": "ConfigMap",
                 "metadata": {"name": "saturation-scaling-config", "namespace": HOME},
                 "data": {"default": "kvCacheThreshold: 0.8"}}, *variant("blue"), *variant("green"))
    untouched = version("green")
    launch("blue")
    end = cycles() + 10
    assert until(lambda: cycles() >= end and shows("blue"))
    assert version("green") == untouched, world.get("va", "green", "-n", "default")
    assert until(lambda: world.condition("va", "blue", "TargetResolved") == ("True", "TargetFound"))
    blue, world.operator = world.operator, None
    try:
        untouched = version("blue")
        launch("green")
        end = cycles() + 10
        assert until(lambda: cycles() >= end and shows("green"))
        assert until(lambda: world.condition("va", "green", "TargetResolved") == ("True", "TargetFound"))
        assert version("blue") == untouched, world.get("va", "blue", "-n", "default")
    finally:
        blue.terminate()
        assert blue.wait(60) == 0


def prometheus_is_trusted_and_told_who_asks(world):
    def path(name):
        return world.folder + "/" + name
    certify(world, "flyball", "ours")
    certify(world, "nobody", "theirs")
    token = pathlib.Path(path("prometheus.token"))
    token.write_text("first\n")
    strict = {"GLOBAL_OPT_INTERVAL": "200ms", "PROMETHEUS_TLS_INSECURE_SKIP_VERIFY": "false",
              "PROMETHEUS_TOKEN_PATH": str(token)}
    named = {"PROMETHEUS_SERVER_NAME": "prometheus.example"}
    world.apply({"apiVersion": "v1", "kind": "ConfigMap",
                 "metadata": {"name": "saturation-scaling-config", "namespace": HOME},
                 "data": {"default": "kvCacheThreshold: 0.8"}}, *variant("asked"))

    def begin(*flags, **env):
        world.stop_operator()
        del Prometheus.asked[:]
        world.launch(*flags, **env)

    def asks(*who, **env):
        """Is it asked so, by and by?"""
        begin(**strict, **env)
        return until(lambda: who in Prometheus.asked)

    def refuses(word, **env):
        """Does it detect the servers that it must not ask, and report why?"""
        begin("--wva-prometheus-probe=false", **strict, **env)
        assert until(lambda: word in world.said()), world.said()
        return not Prometheus.asked
    ours, theirs = {"PROMETHEUS_CA_CERT_PATH": path("ours.pem")}, {"PROMETHEUS_CA_CERT_PATH": path("theirs.pem")}
    pair = {"PROMETHEUS_CLIENT_CERT_PATH": path("flyball.pem"), "PROMETHEUS_CLIENT_KEY_PATH": path("flyball.key")}
    assert asks("Bearer first", None, **ours, **named), world.said()
    token.write_text("second")
    assert until(lambda: ("Bearer second", None) in Prometheus.asked), "the token's file is read once only"
    assert asks("Bearer second", "flyball", **ours, **named, **pair), world.said()
    assert asks("Bearer inline", None, **ours, **named, PROMETHEUS_BEARER_TOKEN="inline"), world.said()
    assert refuses("reason=PrometheusError", **theirs, **named)
    assert refuses("reason=PrometheusError", **ours)  # for another name
    strict["PROMETHEUS_TLS_INSECURE_SKIP_VERIFY"] = "true"
    assert asks("Bearer second", None, **theirs), world.said()
    pathlib.Path(path("placeholder.pem")).write_text("# the authority's certificate goes here\n")
    assert asks("Bearer second", None, PROMETHEUS_CA_CERT_PATH=path("placeholder.pem")), world.said()


def the_start_waits_for_prometheus(world):
    """Alive, but neither ready nor a candidate."""
    port = free_port()
    world.start(PROMETHEUS_BASE_URL="https://127.0.0.1:%d" % port)
    probes = "http://127.0.0.1:%d" % world.probes
    assert answers(probes + "/healthz", 200), world.said()
    assert until(lambda: "Prometheus unreachable; waiting for it" in world.said()), world.said()
    assert until(lambda: get(probes + "/readyz") == (503, "waiting for Prometheus\n")), get(probes + "/readyz")
    assert "became leader" not in world.said(), world.said()
    server = serve_prometheus(world, "prometheus.example", port=port)
    assert answers(probes + "/readyz", 200), world.said()
    assert until(lambda: "became leader" in world.said()), world.said()
    server.shutdown()


harness.main(World, [
    its_deployment_starts_and_is_ready, metrics_are_not_for_everybody, the_given_certificate_is_shown,
    plain_metrics_are_for_everybody, environment_and_file_count_after_flags, what_cannot_be_is_refused,
    instances_leave_each_others_variants_alone, a_restart_keeps_the_last_good_configuration,
    prometheus_is_trusted_and_told_who_asks,
    the_start_waits_for_prometheus, the_api_server_says_who_may_read])
