"""What the tests of this folder have in common: the servers they run on, kubectl, an operator, waiting, and TAP.

A case is a function: it returns when all is well, raises Skip where it cannot run, and anything else when it failed.
A test that runs on the embedded API server and on a real control plane subclasses World and ends with main().
"""
import argparse
import http.server
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

import yaml

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "test/conformance"))
from running import Server  # noqa: E402


class Handler(http.server.BaseHTTPRequestHandler):
    """Of a server that a test plays: answers without a log."""

    def answer(self, text, kind="text/plain"):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


class Skip(Exception):
    """The case cannot run here."""


class Tap:
    """One line per case; the plan comes last."""

    def __init__(self):
        self.number = self.failed = 0

    def say(self, good, name, why=""):
        self.number += 1
        self.failed += not good
        print("%s %d - %s" % ("ok" if good else "not ok", self.number, name))
        if why:
            print("# " + str(why).replace("\n", "\n# "))
        sys.stdout.flush()

    def run(self, case, *given, name=None):
        name = name or case.__name__.replace("_", " ")
        try:
            case(*given)
            self.say(True, name)
        except Skip as why:
            self.say(True, "%s # SKIP %s" % (name, why))
        except Exception as why:  # whatever it is, the next case is still worth a try
            self.say(False, name, "%s: %s" % (type(why).__name__, why))

    def end(self):
        print("1..%d" % self.number, flush=True)
        sys.exit(self.failed > 0)


def need(program):
    """Ends a test that is nothing without the program."""
    if not shutil.which(program):
        print("1..0 # SKIP there is no %s" % program)
        sys.exit(0)


def until(question, seconds=120):
    """How long it may take is no part of any case, so that a busy machine fails none."""
    end = time.monotonic() + seconds
    while not question():
        if time.monotonic() > end:
            return False
        time.sleep(0.1)  # asked from outside: there is no event to wait for
    return True


def free_port():
    """For who listens, ends and listens there again: none that an outgoing connection may be given meanwhile."""
    lowest = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(min(20000, lowest // 2), lowest)
        try:
            socket.create_server(("127.0.0.1", port)).close()
            return port
        except OSError:
            continue


class Embedded(Server):
    """`flyball apiserver`, on one port for its whole life: who lost it finds it again."""

    killed = False

    def __init__(self, flyball, folder, flags=()):
        os.mkdir(folder + "/data")
        super().__init__(flyball, ["--listen", "127.0.0.1:%d" % free_port(), *flags], folder + "/data")
        self.start()
        self.authority = folder + "/data/ca.crt"

    def kill(self):
        self.stop(signal.SIGKILL)

    def text(self):
        return self.errors.read_text()


class Real:
    """kube-apiserver, etcd and kube-controller-manager, which test/kube/cluster starts and ends."""

    def __init__(self, folder):
        self.folder, self.kubeconfig, self.authority = folder, folder + "/kubeconfig", folder + "/ca.crt"
        self.url, self.token = (pathlib.Path(folder, file).read_text().strip() for file in ("server", "token"))
        self.killed = False

    def start(self):
        subprocess.run([TOP / "test/kube/cluster", "restart", self.folder, "kube-apiserver"], check=True,
                       stdout=subprocess.DEVNULL)

    def kill(self):
        self.killed = True
        os.kill(int(pathlib.Path(self.folder, "kube-apiserver.pid").read_text()), signal.SIGKILL)

    def stop(self):
        return 0


class Up:
    """One run of `flyball up`; ready when it has printed its URL. Its later output is kept."""

    def __init__(self, flyball, data, *more, env=None):
        self.kubeconfig = str(data) + "/kubeconfig"
        self.process = subprocess.Popen([flyball, "up", "--data", data, *more], stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env={**os.environ, **(env or {})})
        self.said = []
        self.ready = threading.Event()
        self.reader = threading.Thread(target=self.read)
        self.reader.start()
        if not self.ready.wait(120) or self.process.poll() is not None:
            self.stop(signal.SIGKILL)
            raise RuntimeError("it did not come up: " + self.text())

    def read(self):
        for line in self.process.stdout:
            self.said.append(line)
            if "Press Ctrl-C to stop" in line:
                self.ready.set()
        self.ready.set()

    def text(self):
        return "".join(self.said)

    def stop(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        code = self.process.wait(60)
        self.reader.join()
        return code

    def metrics(self):
        url = re.search(r"Metrics: (\S+)", self.text()).group(1)
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.read().decode()


class World:
    """A server, kubectl for it, and an operator of the test's own."""

    NAMESPACE = None  # default namespace of kubectl and explain
    FEATURE = None    # of the operator; where rights are checked, it has those of that role and no others
    OWN = "default"  # flyball's own namespace
    OPERATOR = []     # more flags

    def __init__(self, server, flyball, folder):
        self.server, self.flyball, self.folder = server, flyball, folder
        self.operator = None
        self.env = dict(os.environ, KUBECONFIG=server.kubeconfig, HOME=folder)
        if self.NAMESPACE:
            self.env["KUBECONFIG"] = self.kubeconfig("default", namespace=self.NAMESPACE)

    def run(self, *words, text=None, check=True):
        done = subprocess.run(words, env=self.env, input=text, capture_output=True, text=True, timeout=120)
        if check and done.returncode:
            raise RuntimeError("%s: %s%s" % (" ".join(words), done.stderr, done.stdout))
        return done.stdout

    def kubectl(self, *words, **more):
        return self.run("kubectl", *words, **more)

    def kubeconfig(self, name, namespace=None, token=None, url=None):
        """Another one for the same server, there or by another way."""
        config = json.loads(self.kubectl("config", "view", "--raw", "--flatten", "--minify", "-o", "json"))
        if namespace:
            config["contexts"][0]["context"]["namespace"] = namespace
        if token:
            config["users"][0]["user"] = {"token": token}
        if url:
            config["clusters"][0]["cluster"] = {"server": url}
        path = pathlib.Path(self.folder, name + ".kubeconfig")
        path.write_text(json.dumps(config))
        return str(path)

    def apply(self, *objects):
        self.kubectl("apply", "-f", "-", text="\n".join(json.dumps(o) for o in objects))

    def get(self, *words):
        answer = self.kubectl("get", *words, "-o", "json", check=False)
        return json.loads(answer) if answer else {}

    def define(self, *files):
        """Applies definitions, and waits until their kinds are served."""
        self.kubectl("apply", "--server-side", *(word for file in files for word in ("-f", str(file))))
        names = [".".join(file.stem.split("_")[::-1]) for file in files]
        self.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", *names)

    def patch_status(self, kind, name, status, *more):
        self.kubectl("patch", kind, name, *more, "--subresource=status", "--type=merge", "-p",
                     json.dumps({"status": status}))

    def condition(self, kind, name, condition):
        """(status, reason) of a condition; None where there is none."""
        for one in self.get(kind, name).get("status", {}).get("conditions", []):
            if one["type"] == condition:
                return one["status"], one.get("reason")
        return None

    def explain(self, *words):
        return self.run(self.flyball, "explain", *words)

    def token_of_role(self, feature, account=None, namespace=None):
        """Of a service account that may do what the feature's role allows, and nothing else."""
        role, namespace = "flyball-" + feature, namespace or "default"
        own = self.OWN if namespace == "default" else namespace
        account = account or role
        for one in yaml.safe_load_all((TOP / "deploy/rbac" / (feature + ".yaml")).read_text()):
            if "namespace" in one["metadata"]:  # of flyball's own namespace, which is another one here
                one["metadata"]["namespace"] = own
            for subject in one.get("subjects", []):
                subject.update(name=account, namespace=namespace)
            self.apply(one)
        self.apply({"apiVersion": "v1", "kind": "ServiceAccount",
                    "metadata": {"name": account, "namespace": namespace}},
                   {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
                    "metadata": {"name": role},
                    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                    "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}]})
        return self.kubectl("create", "token", account, "-n", namespace, "--duration=2h").strip()

    def kubeconfig_of_role(self):
        path = pathlib.Path(self.folder, "role.kubeconfig")
        return str(path) if path.exists() else self.kubeconfig("role", token=self.token_of_role(self.FEATURE))

    def run_operator(self, *flags):
        self.stop_operator()
        self.log = open(self.folder + "/operator.log", "a+")
        config = self.kubeconfig_of_role()
        self.operator = subprocess.Popen(
            [self.flyball, "operator", "--kubeconfig", config, "--leader-elect=false", "--listen", "none",
             "--controllers", self.FEATURE, *self.OPERATOR, *flags], stdout=self.log, stderr=subprocess.STDOUT)

    def stop_operator(self, how=signal.SIGTERM):
        if self.operator:
            operator, self.operator = self.operator, None
            operator.send_signal(how)
            code = operator.wait(30)
            self.log.seek(0)
            refused = [line for line in self.log if "forbidden" in line.lower()]
            self.log.close()
            # a real server that is starting forbids everything for a moment
            assert not refused or self.server.killed, "".join(refused[:5])
            assert how == signal.SIGKILL or code == 0, "the operator ended with %s" % code

    def stop(self):
        self.stop_operator()

    def prepare(self):
        """What all cases need."""


def main(make_world, cases, on_real=None, embedded=Embedded):
    """Runs the cases (or those named) in one world on one server; on a real control plane there may be others."""
    parser = argparse.ArgumentParser()
    parser.add_argument("flyball")
    parser.add_argument("--cluster", help="a folder of test/kube/cluster; an embedded server unless given")
    parser.add_argument("cases", nargs="*")
    given = parser.parse_args()
    need("kubectl")
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        flyball = str(pathlib.Path(given.flyball).resolve())
        server = Real(given.cluster) if given.cluster else embedded(flyball, folder)
        try:
            world = make_world(server, flyball, folder)
            try:
                world.prepare()
                for case in on_real if given.cluster and on_real else cases:
                    if not given.cases or case.__name__ in given.cases:
                        tap.run(case, world)
            finally:
                world.stop()
        finally:
            code = server.stop()
        if code != 0:
            tap.say(False, "the server ends well", "it ended with %s: %s" % (code, server.text()[-3000:]))
    tap.end()
