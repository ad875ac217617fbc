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
import time
import urllib.parse

from harness import Skip, Tap

MAPS = "/api/v1/namespaces/default/configmaps"
FLYBALL, TRIALS = "", 4


class Refused(Exception):
    """The server did not start; its last lines of output."""


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

    def ask(self, method, path, body=None, token=None, kind="application/json"):
        connection = http.client.HTTPConnection(self.address, timeout=30)
        try:
            connection.request(method, path, body and json.dumps(body),
                               {"Authorization": "Bearer " + (token or self.token),
                                "Content-Type": kind})
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
    with Run(folder + "/link") as run:
        assert run.create("a") == 201


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
    os.unlink(data + "/state.db-mark")  # as the message instructs, to accept the loss
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


def a_refused_start_keeps_the_log(folder):
    """A row of the database is damaged: the log, which has later writes, is needed when the file is restored."""
    data = folder + "/data"
    with Run(data) as run:
        for i in range(40):  # the log is moved into the file, so that the rows are there
            assert run.create("k%d" % i, 50000) == 201
        run.stop()
    killed_with(data, ["a", "b"])
    good = pathlib.Path(data, "state.db").read_bytes()
    shutil.copytree(data, folder + "/good")
    bad = bytearray(good)
    bad[good.index(b"x" * 100, good.index(b'"k20"')) + 50] ^= 1
    pathlib.Path(data, "state.db").write_bytes(bad)
    before = sums(data)
    assert "wrong checksum" in refusal(data)
    assert sums(data) == before, "the refused start changed %s" % data
    pathlib.Path(data, "state.db").write_bytes(good)
    with Run(data) as run:
        assert run.ask("GET", MAPS + "/b")[0] == 200


def an_empty_mark_is_refused(folder):
    data = folder + "/data"
    with Run(data) as run:
        assert run.create("a") == 201
        run.stop()
    for content in (b"", bytes(4144)):
        pathlib.Path(data, "state.db-mark").write_bytes(content)
        assert "is empty, but the database has revision" in refusal(data)


def a_small_limit_on_file_sizes_leaves_room_for_deletions(folder):
    data, limit = folder + "/data", 3 << 20
    with Run(data, limit=limit) as run:
        codes = [run.create("k%d" % i, 200000) for i in range(40)]
        kept = ["k%d" % i for i in range(40) if codes[i] == 201]
        assert set(codes) == {201, 507} and len(kept) >= 6, codes
        assert run.ask("DELETE", MAPS + "/" + kept[0])[0] == 200
        assert run.ask("PATCH", MAPS + "/" + kept[1], {"data": {"v": "small"}}, kind="application/merge-patch+json")[0] == 200
        run.stop(signal.SIGKILL)
    with Run(data, limit=limit) as run:
        for name in kept[1:]:
            assert run.ask("DELETE", MAPS + "/" + name)[0] == 200, name
        assert run.create("new", 200000) == 201


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
            assert run.create("e", 500000) == 507  # more than was deleted
            assert run.ask("GET", MAPS + "/c15")[0] == 200
            run.stop(signal.SIGKILL)
        disk.fill()
        with Run(data) as run:  # a start on a full disk
            assert run.ask("GET", MAPS + "/c15")[0] == 200
            assert run.ask("GET", MAPS + "/c5")[0] == 404
            assert run.create("e", 500000) == 507
            os.unlink(disk.path + "/filler")
            assert run.create("e", 1000) == 201
        assert check(data) == "ok"


def fill_with_objects(run, disk, round_):
    """Creates objects of mixed sizes until the disk is full, then lets another process take what is left of it."""
    names = []
    for i in range(2000):
        name = "r%d-%d" % (round_, i)
        code, answer = run.ask("POST", MAPS, {"metadata": {"name": name},
                                              "data": {"v": "x" * (100, 20000, 100000, 900000)[i % 4]}})
        if code == 507:
            assert answer["reason"] == "InsufficientStorage" and answer["code"] == 507, answer
            assert "is full: nothing was changed; delete objects or make room" in answer["message"], answer
            break
        assert code == 201, answer
        names.append(name)
    assert len(names) > 20, len(names)
    disk.fill()
    return names


def a_disk_that_objects_have_filled_is_emptied_by_deleting_them(folder):
    """All deletions succeed, also among writes that are refused, and make room for new objects; three times over."""
    with Disk(folder, 24) as disk:
        data = disk.path + "/data"
        counts = []
        for round_ in range(3):
            with Run(data) as run:
                held = {"metadata": {"name": "held", "finalizers": ["example.com/wait"]}, "data": {"v": "x" * 3000}}
                assert run.ask("POST", MAPS, held)[0] == 201
                names = fill_with_objects(run, disk, round_)
                counts.append(len(names))
                small = {"data": {"v": "y"}}
                assert run.ask("PUT", MAPS + "/" + names[1], {"metadata": {"name": names[1]}, **small})[0] == 200
                with concurrent.futures.ThreadPoolExecutor(8) as pool:
                    noise = [pool.submit(run.create, "n%d-%d" % (round_, i), 900000) for i in range(60)]
                    gone = list(pool.map(lambda name: run.ask("DELETE", MAPS + "/" + name), names))
                    noise = ["n%d-%d" % (round_, i) for i, done in enumerate(noise) if done.result() == 201]
                assert [code for code, _ in gone] == [200] * len(names), [a for code, a in gone if code != 200][:1]
                for name in noise:
                    assert run.ask("DELETE", MAPS + "/" + name)[0] == 200
                code, marked = run.ask("DELETE", MAPS + "/held")
                assert code == 200 and marked["metadata"]["deletionTimestamp"], marked
                marked["metadata"]["finalizers"] = []
                assert run.ask("PUT", MAPS + "/held", marked)[0] == 200
                run.stop(signal.SIGKILL if round_ % 2 else signal.SIGTERM)
            with Run(data) as run:  # the disk is still full: objects have room where others were
                left = [o["metadata"]["name"] for o in run.ask("GET", MAPS)[1]["items"]]
                assert not set(left) & {*names, *noise, "held"}, left
                assert run.create("new", 100000) == 201
                assert run.ask("DELETE", MAPS + "/new")[0] == 200
            if round_ == 1:
                os.unlink(disk.path + "/filler")
        assert min(counts) > max(counts) / 3, counts
        assert check(data) == "ok"


def deletions_succeed_while_the_disk_becomes_full(folder):
    """In the same transactions as the writes that fill it."""
    with Disk(folder, 16) as disk, Run(disk.path + "/data") as run:
        for i in range(150):
            assert run.create("s%d" % i, 500) == 201
        with concurrent.futures.ThreadPoolExecutor(12) as pool:
            made, gone = [], []
            for i in range(150):
                made.append(pool.submit(run.create, "m%d" % i, 100000))
                gone.append(pool.submit(run.ask, "DELETE", MAPS + "/s%d" % i))
            made, gone = [one.result() for one in made], [one.result() for one in gone]
        assert made.count(507) > 20 and set(made) == {201, 507}, made
        assert {code for code, _ in gone} == {200}, [answer for code, answer in gone if code != 200][:1]
        left = [o["metadata"]["name"] for o in run.ask("GET", MAPS)[1]["items"]]
        assert sorted(left) == sorted("m%d" % i for i, code in enumerate(made) if code == 201), left


def leases_are_renewed_on_a_full_disk(folder):
    """Thousands of renewals by several clients beside creations that are refused; also after a kill on the full disk."""
    leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"

    def lease(i, n):
        return {"metadata": {"name": "l%d" % i}, "spec": {"holderIdentity": "a", "renewTime":
                                                          "2026-01-01T00:00:00.%06dZ" % n}}

    def renew(i, times):
        return {run.ask("PATCH", leases + "/l%d" % i, lease(i, n), kind="application/merge-patch+json")[0] for n in range(times)}

    with Disk(folder, 24) as disk:
        data, room = disk.path + "/data", pathlib.Path(disk.path, "room")
        room.write_bytes(bytes(8 << 20))  # what is missing until the end
        with Run(data) as run:
            for i in range(8):
                assert run.ask("POST", leases, lease(i, 0))[0] == 201
            for i in range(9):
                assert run.create("s%d" % i, 3000) == 201
            fill_with_objects(run, disk, 0)
            for i in range(3):  # past a version with another digit
                with concurrent.futures.ThreadPoolExecutor(9) as pool:
                    refused = pool.submit(lambda: {run.create("n%d" % n, 900000) for n in range(40)})
                    codes = set().union(*pool.map(renew, range(8), [50] * 8))
                assert codes == {200}, codes
                assert refused.result() == {507}, refused.result()
                assert run.ask("DELETE", MAPS + "/s%d" % i)[0] == 200
            version = int(run.ask("GET", leases)[1]["metadata"]["resourceVersion"])
            assert version > 1000, version
            run.stop(signal.SIGKILL)
            assert run.said().count("disk is full: only deletions") == 1, run.said()
        disk.fill()  # another process takes what a released reserve has left
        with Run(data) as run:
            assert int(run.ask("GET", leases)[1]["metadata"]["resourceVersion"]) == version
            assert set().union(*map(renew, range(8), [20] * 8)) == {200}
            room.unlink()
            assert run.create("new", 100000) == 201
            run.stop()
            assert "disk has room again" in run.said(), run.said()
        assert check(data) == "ok"


def check(data):
    """SQLite's own check, on a copy: beside a log it needs room for a file of its own, which a full disk lacks."""
    if not shutil.which("sqlite3"):
        return "ok"
    with tempfile.TemporaryDirectory(prefix="flyball-check-") as copy:
        for part in ("state.db", "state.db-wal"):
            if os.path.exists(f"{data}/{part}"):
                shutil.copy(f"{data}/{part}", copy)
        return subprocess.run(["sqlite3", copy + "/state.db", "pragma integrity_check"], check=True,
                              stdout=subprocess.PIPE, text=True).stdout.strip()


def files_that_are_removed_or_moved_end_the_writes(folder):
    """The files are still open and take writes, but the next start would not find them."""
    def remove_all(data):
        shutil.rmtree(data)

    def remove_log(data):
        os.unlink(data + "/state.db-wal")

    def move(data):
        os.rename(data, data + "-elsewhere")

    def replace(name):
        def by_a_copy(data):  # as a restored backup does
            shutil.copy(data + name, data + "/copy")
            os.rename(data + "/copy", data + name)
        return by_a_copy

    for number, harm in enumerate((remove_all, remove_log, move, replace("/state.db"), replace("/state.db-wal"))):
        data = "%s/%d" % (folder, number)
        with Run(data) as run:
            assert run.create("a") == 201
            harm(data)
            status, said = run.ask("POST", MAPS, {"metadata": {"name": "b"}})
            assert status == 500 and "removed or moved while in use" in said["message"], (harm.__name__, status, said)
            assert run.ask("GET", MAPS + "/a")[0] == 200
            assert run.ask("GET", MAPS + "/b")[0] == 404


def keys_that_cannot_be_used_are_refused(folder):
    data = folder + "/data"
    with Run(data):
        pass
    for name in ("admin.token", "reader.token", "accounts.key", "kubeconfig"):
        at = pathlib.Path(data, name)
        good = at.read_text()
        for bad in ("", "x", "two words", "one-line-and\nanother") if name != "kubeconfig" else ():
            at.write_text(bad)
            assert str(at) in refusal(data), (name, bad)
        at.unlink()
        os.mkfifo(at)
        if name == "kubeconfig":  # it can be written again
            with Run(data):
                assert stat.S_ISREG(at.stat().st_mode)
            continue
        why = refusal(data)
        assert "not a regular file" in why, why
        at.unlink()
        at.write_text(good)
    users = folder + "/users"
    token = pathlib.Path(data, "admin.token").read_text()
    for text in (token + ",somebody\n", "12345678,a\n12345678,b\n"):
        pathlib.Path(users).write_text(text)
        why = refusal(data, flags=("--token-file", users))
        assert "already belongs to" in why, why


def closed_standard_streams_are_not_reused(folder):
    """A log written to descriptor 2 must not end up in a pipe or socket of the server."""
    data = folder + "/data"
    process = subprocess.Popen(["sh", "-c", 'exec "$0" apiserver --data "$1" --listen 127.0.0.1:0 <&- >&- 2>&-',
                                FLYBALL, data])
    try:
        until = time.monotonic() + 20
        while not os.path.exists(data + "/kubeconfig"):
            assert process.poll() is None and time.monotonic() < until
            time.sleep(0.02)
        found = [os.readlink("/proc/%d/fd/%d" % (process.pid, fd)) for fd in range(3)]
        assert found == ["/dev/null"] * 3, found
    finally:
        process.terminate()
        assert process.wait(20) == 0


def a_first_start_without_room_is_refused(folder):
    with Disk(folder, 1) as disk:
        why = refusal(disk.path + "/data")
        assert "no room for a first start" in why, why
        subprocess.run(["mount", "-o", "remount,size=64m", disk.path], check=True)
        with Run(disk.path + "/data") as run:
            assert run.create("a") == 201


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
         a_database_of_an_earlier_version_gets_a_mark, a_refused_start_keeps_the_log, an_empty_mark_is_refused,
         a_linked_database_is_refused, a_small_limit_on_file_sizes_leaves_room_for_deletions,
         a_limit_on_file_sizes_is_a_full_disk, a_full_disk_serves_reads_and_deletions,
         a_disk_that_objects_have_filled_is_emptied_by_deleting_them, deletions_succeed_while_the_disk_becomes_full,
         leases_are_renewed_on_a_full_disk,
         a_stop_during_maintenance_loses_nothing, files_that_are_removed_or_moved_end_the_writes,
         keys_that_cannot_be_used_are_refused, closed_standard_streams_are_not_reused,
         a_first_start_without_room_is_refused]


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
