"""A real KEDA beside a real control plane: the operator and its metrics adapter, built by test/kube/build_keda.

    keda = Keda(world)          # raises Skip where it cannot be built
    keda.define()               # its CRDs
    keda.start()                # the operator; start(adapter=True) also serves external.metrics.k8s.io
    keda.stop()

Both run on this machine with the administrator's kubeconfig; the API server reaches the adapter as localhost.
"""
import base64
import os
import pathlib
import signal
import subprocess
import urllib.request

from harness import Skip, TOP, free_port, until

NAMESPACE = "keda"


class Keda:
    def __init__(self, world):
        seconds = os.environ.get("KEDA_BUILD_SECONDS", "240")
        built = subprocess.run([TOP / "test/kube/build_keda", seconds], capture_output=True, text=True)
        if built.returncode:
            raise Skip("KEDA cannot be built: " + built.stderr.strip().splitlines()[-1])
        self.world, self.programs = world, pathlib.Path(built.stdout.strip())
        self.folder = pathlib.Path(world.folder, "keda")
        self.folder.mkdir(exist_ok=True)
        self.ports = {name: free_port() for name in ("probe", "service", "adapter", "metrics")}
        self.running = {}
        self.make_keys()

    def make_keys(self):
        """One certificate of the cluster's authority for both ends of the connection between operator and adapter."""
        cluster, own = pathlib.Path(self.world.server.folder), self.folder
        (own / "ext").write_text("subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:keda-metrics-apiserver.keda.svc\n"
                                 "extendedKeyUsage=serverAuth,clientAuth\n")
        request = subprocess.run(["openssl", "req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", own / "tls.key",
                                  "-subj", "/CN=keda"], check=True, capture_output=True).stdout
        subprocess.run(["openssl", "x509", "-req", "-CA", cluster / "ca.crt", "-CAkey", cluster / "ca.key",
                        "-set_serial", "77", "-days", "7", "-extfile", own / "ext", "-out", own / "tls.crt"], check=True,
                       input=request, capture_output=True)
        (own / "ca.crt").write_bytes((cluster / "ca.crt").read_bytes())

    def define(self):
        files = sorted((self.programs / "crds").glob("*.yaml"))
        self.world.define(*files)

    def launch(self, name, *flags):
        log = open(self.folder / (name + ".log"), "ab")
        env = dict(self.world.env, KUBECONFIG=self.world.server.kubeconfig, WATCH_NAMESPACE="", POD_NAMESPACE=NAMESPACE,
                   KEDA_CLUSTER_OBJECT_NAMESPACE=NAMESPACE)
        self.running[name] = subprocess.Popen([self.programs / name, *flags], stdout=log, stderr=log, env=env,
                                              cwd=self.folder)
        log.close()

    def text(self, name="keda-operator"):
        return (self.folder / (name + ".log")).read_text()

    def start(self, adapter=False):
        self.world.kubectl("create", "namespace", NAMESPACE, check=False)
        self.launch("keda-operator", "--metrics-bind-address=127.0.0.1:0",
                    "--health-probe-bind-address=127.0.0.1:%d" % self.ports["probe"],
                    "--metrics-service-bind-address=127.0.0.1:%d" % self.ports["service"],
                    "--cert-dir=%s" % self.folder, "--leader-elect=false", "--zap-log-level=info")
        if not until(self.is_ready, 60):
            raise RuntimeError("KEDA did not get ready: " + self.text()[-2000:])
        if adapter:
            self.start_adapter()

    def is_ready(self):
        try:
            url = "http://127.0.0.1:%d/readyz" % self.ports["probe"]
            return urllib.request.urlopen(url, timeout=5).status == 200
        except OSError:
            return False

    def start_adapter(self):
        port = self.ports["adapter"]
        self.launch("keda-adapter", "--secure-port=%d" % port, "--bind-address=127.0.0.1",
                    "--port=%d" % self.ports["metrics"],
                    "--client-ca-file=%s/ca.crt" % self.folder, "--tls-cert-file=%s/tls.crt" % self.folder,
                    "--tls-private-key-file=%s/tls.key" % self.folder, "--cert-dir=%s" % self.folder,
                    "--metrics-service-address=127.0.0.1:%d" % self.ports["service"],
                    "--authentication-kubeconfig=%s" % self.world.server.kubeconfig,
                    "--authorization-kubeconfig=%s" % self.world.server.kubeconfig,
                    "--lister-kubeconfig=%s" % self.world.server.kubeconfig, "--zap-log-level=error")
        authority = base64.b64encode((self.folder / "ca.crt").read_bytes()).decode()
        self.world.apply({"apiVersion": "v1", "kind": "Service",
                          "metadata": {"name": "keda-metrics-apiserver", "namespace": NAMESPACE},
                          "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]}},
                         {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
                          "metadata": {"name": "v1beta1.external.metrics.k8s.io"},
                          "spec": {"group": "external.metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": 100,
                                   "versionPriority": 100, "caBundle": authority,
                                   "service": {"name": "keda-metrics-apiserver", "namespace": NAMESPACE, "port": port}}})
        self.world.kubectl("wait", "--for=condition=Available", "--timeout=90s", "apiservice",
                           "v1beta1.external.metrics.k8s.io")

    def restart(self):
        """As after a crash: the operator of KEDA starts again and reconciles everything."""
        process = self.running.pop("keda-operator")
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        self.start()

    def stop(self):
        for process in self.running.values():
            process.kill()
            process.wait(30)
        self.running = {}


def scaled_object(name, low, high, **more):
    """One whose trigger needs no network: a cron line that is active all day."""
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name},
            "spec": {"scaleTargetRef": {"name": name}, "minReplicaCount": low, "maxReplicaCount": high,
                     "pollingInterval": 5, "triggers": [{"type": "cron", "metadata": {
                         "timezone": "Etc/UTC", "start": "0 0 * * *", "end": "59 23 * * *",
                         "desiredReplicas": "2"}}], **more}}
