#!/usr/bin/python3
"""The controller runtime against the embedded server: the cases of test/kube/cases/runtime that need neither etcd
nor priority and fairness.

    runtime.py FLYBALL MIRROR                run them
    runtime.py restart DIR kube-apiserver    what they call to kill the server and start it again

Speaks TAP. Skipped where there is no kubectl.
"""
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile

from harness import free_port, need

HERE = pathlib.Path(__file__).resolve()
CASES = ["lists_and_mirrors", "speaks_every_verb", "follows_changes", "survives_a_stopped_server",
         "survives_a_killed_server", "takes_a_new_token", "writes_events", "stops_in_order", "elects_a_leader",
         "a_frozen_leader_never_writes_again", "gives_the_lease_back"]


def start(folder, flyball):
    """The server outlives this process: the cases restart it through a process of their own."""
    port = (folder / "port").read_text()
    with open(folder / "server.log", "a") as log:
        server = subprocess.Popen([flyball, "apiserver", "--data", folder / "data", "--listen", "127.0.0.1:" + port,
                                   "--token-file", folder / "tokens.csv"],
                                  stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True)
    if "serving" not in server.stdout.readline():
        raise RuntimeError("the server did not start: " + (folder / "server.log").read_text()[-500:])
    (folder / "kube-apiserver.pid").write_text(str(server.pid))


def kill(folder):
    pid = int((folder / "kube-apiserver.pid").read_text())
    ended = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    select.select([ended], [], [], 60)
    os.close(ended)


def restart(folder):
    kill(folder)
    start(folder, (folder / "flyball").read_text())


def make(folder, flyball):
    """The files that test/kube/cluster makes, as far as the cases look at them."""
    port = free_port()
    (folder / "port").write_text(str(port))
    (folder / "flyball").write_text(flyball)
    (folder / "tokens.csv").write_text("")
    (folder / "server").write_text("https://127.0.0.1:%d" % port)
    start(folder, flyball)
    shutil.copy(folder / "data" / "ca.crt", folder / "ca.crt")


def main():
    if sys.argv[1] == "restart":
        restart(pathlib.Path(sys.argv[2]))
        return
    need("kubectl")
    flyball, mirror = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        make(folder, flyball)
        try:
            subprocess.run([HERE.parents[1] / "kube" / "cases" / "runtime", *CASES], check=True, env=dict(
                os.environ, CLUSTER_DIR=name, CLUSTER_SCRIPT=str(HERE), MIRROR=mirror, FLYBALL=flyball, HOME=name,
                KUBECONFIG=name + "/data/kubeconfig",
                MIRROR_GROUPS=",system:masters"))  # there is no binding of roles to users
        finally:
            kill(folder)


main()
