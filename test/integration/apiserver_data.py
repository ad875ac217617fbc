#!/usr/bin/python3
"""The API server's data directory: who may read it, who owns it, and what a start finds out about it.

    apiserver_data.py FLYBALL [--trials N]
"""
import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import resource
import shutil
import signal
import stat
import subprocess
import tempfile
import threading
import urllib.parse

from harness import Skip, Tap

MAPS = "/api/v1/namespaces/default/configmaps"
FLYBALL, TRIALS = "", 4


class Refused(Exception):
    """The server did not start; its last words."""


class Run:
    """A server on a directory, by plain HTTP."""

    def __init__(self, data, umask=None, limit=None, flags=()):
        def prepare():
            if umask is not None:
                os.umask(umask)
            if limit:
                resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
                signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        self.process = subprocess.Popen(
            [FLYBALL, "apiserver", "--data", data, "--listen", "127.0.0.1:0", "--insecure-http", *flags],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=prepare)
        words = self.process.stdout.readline().split()
        if len(words) != 4:
            _, said = self.process.communicate()
            raise Refused(said.strip().splitlines()[-1] if said.strip() else "nothing")
        self.lines = []
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stderr))
        self.reader.start()
        self.address = urllib.parse.urlsplit(words[1]).netloc
        self.token = pathlib.Path(data, "admin.token").read_text()

    def ask(self, method, path, body=None, token=None):
        connection = http.client.HTTPConnection(self.address, timeout=30)
        try:
            connection.request(method, path, body and json.dumps(body),
                               {"Authorization": "Bearer " + (token or self.token),
                                "Content-Type": "application/json"})
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())
        finally:
            connection.close()

    def create(self, name, size=10):
        return self.ask("POST", MAPS, {"metadata": {"name": name}, "data": {"v": "x" * size}})[0]

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        code = self.process.wait(60)
        self.reader.join()
        self.process.stdout.close()
        self.process.stderr.close()
        return code

    def said(self):
        return "".join(self.lines)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()


def refusal(data, **more):
    try:
        Run(data, **more).stop(signal.SIGKILL)
    except Refused as why:
        return str(why)
    raise AssertionError("the server started")


def modes(data):
    found = {p.name: stat.S_IMODE(p.stat().st_mode) for p in pathlib.Path(data).iterdir()}
    return {name: "%04o" % mode for name, mode in found.items() if mode != 0o600}


def mode_of(data):
    return "%04o" % stat.S_IMODE(os.stat(data).st_mode)


# ---- cases; each gets an empty folder

def files_are_private_whatever_the_umask(folder):
    for umask in (0, 0o022, 0o077, 0o777):
        data = "%s/%o" % (folder, umask)
        with Run(data, umask) as run:
            assert run.create("a", 100000) == 201
            assert mode_of(data) == "0700" and not modes(data), (umask, mode_of(data), modes(data))
        assert not modes(data), (umask, modes(data))


def an_open_directory_is_closed_with_a_word(folder):
    data = folder + "/data"
    with Run(data) as run:
        assert run.create("a") == 201
        run.stop(signal.SIGKILL)
    os.chmod(data, 0o755)
    for name in ("state.db", "state.db-wal", "admin.token"):
        os.chmod(data + "/" + name, 0o644)
    with Run(data) as run:
        assert mode_of(data) == "0700" and not modes(data), (mode_of(data), modes(data))
        run.stop()
        assert "open to other users" in run.said(), run.said()


def a_directory_used_for_other_things_is_refused(folder):
    os.chmod(folder, 0o755)
    os.mkdir(folder + "/documents")
    assert "used for other things" in refusal(folder)
    assert mode_of(folder) == "0755" and os.listdir(folder) == ["documents"]
    os.rmdir(folder + "/documents")
    os.chmod(folder, 0o1777)
    assert "used for other things" in refusal(folder)


def a_directory_of_another_user_is_refused(folder):
    if os.geteuid() != 0:
        raise Skip("only root can give a directory away")
    data = folder + "/data"
    os.mkdir(data)
    os.chmod(data, 0o755)
    os.chown(data, 65534, 65534)
    assert "belongs to another user" in refusal(data)


def one_of_six_first_starts_wins_and_owns_the_files(folder):
    for trial in range(TRIALS):
        data = "%s/%d" % (folder, trial)
        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            tries = [pool.submit(Run, data) for _ in range(6)]
        runs = [t.result() for t in tries if not t.exception()]
        refused = [str(t.exception()) for t in tries if t.exception()]
        try:
            assert len(runs) == 1, "%d of 6 servers run; %s" % (len(runs), refused)
            assert all("in use by another" in why for why in refused), refused
            config = pathlib.Path(data, "kubeconfig").read_text()
            assert runs[0].address in config, "the kubeconfig is another server's"
            token = pathlib.Path(data, "admin.token").read_text()
            assert token in config and runs[0].ask("GET", MAPS, token=token)[0] == 200
            reader = pathlib.Path(data, "reader.token").read_text()
            assert runs[0].ask("GET", MAPS, token=reader)[0] == 200
        finally:
            for run in runs:
                run.stop()


def another_path_to_the_directory_is_the_same_directory(folder):
    os.symlink("data", folder + "/link")
    with Run(folder + "/data"):
        assert "in use by another" in refusal(folder + "/link")
        assert "in use by another" in refusal(folder + "/data/../link/")


def killed_with(data, names):
    with Run(data) as run:
        for name in names:
            assert run.create(name) == 201
        run.stop(signal.SIGKILL)


def a_log_that_is_missing_cut_or_older_is_refused(folder):
    data = folder + "/data"
    log = data + "/state.db-wal"
    killed_with(data, ["a"])
    shutil.copy(log, folder + "/older")
    killed_with(data, ["b", "c"])
    shutil.copytree(data, folder + "/good")
    for harm in (lambda: os.unlink(log), lambda: os.truncate(log, os.path.getsize(folder + "/older")),
                 lambda: shutil.copy(folder + "/older", log), lambda: flip(log, folder)):
        shutil.rmtree(data)
        shutil.copytree(folder + "/good", data)
        harm()
        before = sums(data)
        why = refusal(data)
        assert "was acknowledged" in why or "does not continue" in why, why
        assert sums(data) == before, "the refused start changed %s" % data
    os.unlink(data + "/state.db-mark")  # as the message says, to accept the loss
    with Run(data) as run:
        assert run.ask("GET", MAPS)[0] == 200
        run.stop()
        assert "had no high-water mark" in run.said()


def flip(log, folder):
    """Damages the log where it had not been written yet when "b" and "c" came."""
    at = os.path.getsize(folder + "/older") if os.path.getsize(log) > os.path.getsize(folder + "/older") else 100
    with open(log, "r+b") as f:
        f.seek(at)
        byte = f.read(1)
        f.seek(at)
        f.write(bytes([byte[0] ^ 1]))


def sums(data):
    """What the database's files hold; SQLite makes an empty log where there is none."""
    paths = [pathlib.Path(data, "state.db" + suffix) for suffix in ("", "-wal", "-mark")]
    return {p.name: p.read_bytes() for p in paths if p.exists() and p.stat().st_size}


def an_older_database_is_refused(folder):
    data = folder + "/data"
    with Run(data) as run:
        assert run.create("a") == 201
    shutil.copy(data + "/state.db", folder + "/older")
    with Run(data) as run:
        assert run.create("b") == 201
    shutil.copy(folder + "/older", data + "/state.db")
    assert "was acknowledged" in refusal(data)
    os.unlink(data + "/state.db")
    assert "is missing although" in refusal(data)


def a_database_of_an_earlier_version_gets_a_mark(folder):
    data = folder + "/data"
    with Run(data) as run:
        assert run.create("a") == 201
        run.stop(signal.SIGKILL)
    for name in ("state.db-mark", "state.db-reserve"):
        os.unlink(data + "/" + name)
    with Run(data) as run:
        assert run.ask("GET", MAPS + "/a")[0] == 200
        assert os.path.exists(data + "/state.db-mark")


def a_linked_database_is_refused(folder):
    data = folder + "/data"
    with Run(data):
        pass
    os.rename(data + "/state.db", folder + "/elsewhere.db")
    os.symlink(folder + "/elsewhere.db", data + "/state.db")
    assert "symbolic link" in refusal(data)


def a_limit_on_file_sizes_is_a_full_disk(folder):
    with Run(folder + "/data", limit=10 << 20) as run:
        codes = [run.create("c%d" % i, 900000) for i in range(30)]
        assert codes[0] == 201 and codes[-1] == 507, codes
        assert run.ask("GET", MAPS + "/c0")[0] == 200


class Disk:
    """A small file system of its own; only root can mount one."""

    def __init__(self, folder, megabytes):
        self.path = folder + "/disk"
        os.mkdir(self.path)
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%dm,mode=700" % megabytes, "none", self.path],
                          stderr=subprocess.DEVNULL).returncode:
            raise Skip("nothing can be mounted here")

    def fill(self):
        with open(self.path + "/filler", "wb", buffering=0) as f:
            try:
                while True:
                    f.write(bytes(4096))
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.path], check=True)


def a_full_disk_serves_reads_and_deletions(folder):
    with Disk(folder, 24) as disk:
        data = disk.path + "/data"
        with Run(data) as run:
            for i in range(20):
                assert run.create("c%d" % i, 20000) == 201
            disk.fill()
            codes = [run.create("d%d" % i, 100000) for i in range(60)]
            assert codes[-1] == 507, codes
            gone = [run.ask("DELETE", MAPS + "/c%d" % i)[0] for i in range(10)]
            assert gone == [200] * 10, gone
            assert run.create("e", 1000) == 507  # the room that is left is for deletions
            assert run.ask("GET", MAPS + "/c15")[0] == 200
            run.stop(signal.SIGKILL)
        disk.fill()
        with Run(data) as run:  # a start on a full disk
            assert run.ask("GET", MAPS + "/c15")[0] == 200
            assert run.ask("GET", MAPS + "/c5")[0] == 404
            assert run.create("e", 1000) == 507
            os.unlink(disk.path + "/filler")
            assert run.create("e", 1000) == 201
        assert check(data) == "ok"


def check(data):
    return subprocess.run(["sqlite3", data + "/state.db", "pragma integrity_check"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout.strip() if shutil.which("sqlite3") else "ok"


def a_stop_during_maintenance_loses_nothing(folder):
    data = folder + "/data"
    for how in (signal.SIGTERM, signal.SIGKILL):
        with Run(data) as run:  # 2,000 frames of the log: it is moved while they come
            for i in range(9):
                assert run.create("%s-%d" % (how.name.lower(), i), 900000) == 201
            run.stop(how)
        with Run(data) as run:
            for i in range(9):
                assert run.ask("GET", MAPS + "/%s-%d" % (how.name.lower(), i))[0] == 200


CASES = [files_are_private_whatever_the_umask, an_open_directory_is_closed_with_a_word,
         a_directory_used_for_other_things_is_refused, a_directory_of_another_user_is_refused,
         one_of_six_first_starts_wins_and_owns_the_files, another_path_to_the_directory_is_the_same_directory,
         a_log_that_is_missing_cut_or_older_is_refused, an_older_database_is_refused,
         a_database_of_an_earlier_version_gets_a_mark, a_linked_database_is_refused,
         a_limit_on_file_sizes_is_a_full_disk, a_full_disk_serves_reads_and_deletions,
         a_stop_during_maintenance_loses_nothing]


def main():
    global FLYBALL, TRIALS
    parser = argparse.ArgumentParser()
    parser.add_argument("flyball")
    parser.add_argument("--trials", type=int, default=TRIALS, help="of six concurrent first starts")
    args = parser.parse_args()
    FLYBALL, TRIALS = os.path.abspath(args.flyball), args.trials
    tap = Tap()
    for case in CASES:
        with tempfile.TemporaryDirectory(prefix="flyball-data-") as folder:
            tap.run(case, folder)
    tap.end()


main()
