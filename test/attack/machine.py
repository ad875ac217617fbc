"""Machines that run out: of disk, descriptors, memory and time; and concurrent starts."""
import json
import os
import pathlib
import resource
import shutil
import signal
import socket
import stat
import subprocess
import time

from target import BROKEN, Client, Process, Scale, Skip, Target, at_most, attack, free_port, until

MAPS = "/api/v1/namespaces/default/configmaps"


def write(client, name, size):
    return client.ask("POST", MAPS, {"metadata": {"name": name}, "data": {"v": "x" * size}})[0]


def delete_some(target, kept):
    """A full disk takes every deletion."""
    for _ in range(len(kept) // 4):
        status = target.admin.ask("DELETE", MAPS + "/" + kept.pop())[0]
        assert status == 200, "a deletion on a full disk: %s" % status


@attack("disk full", fresh=True)
def disk_full(flyball, folder, choose, long):
    """Writes get 507 and nothing is lost; reads and deletions go on; so after a restart on the full disk."""
    if os.geteuid() != 0:
        raise Skip("only root can mount a small disk")
    data = pathlib.Path(folder, "data")
    data.mkdir(mode=0o700)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m,mode=0700", "tmpfs", data], capture_output=True).returncode:
        raise Skip("a small disk cannot be mounted here")
    target, room = Target(flyball, folder), data / "room"
    try:
        target.start()
        room.write_bytes(b"x" * (10 << 20))  # what is missing now, and there again at the end
        kept, count = [], 0
        for number in range(400):
            status = write(target.admin, "m-%d" % number, choose.choice([100, 5000, 100000, 300000]))
            count += 1
            if status == 201:
                kept.append("m-%d" % number)
            else:
                assert status == 507, "a write to a full disk: %s" % status
                break
        else:
            raise AssertionError("400 writes did not fill 14 MB")
        filler = data / "filler"
        fd = os.open(filler, os.O_WRONLY | os.O_CREAT)
        try:
            while os.write(fd, b"x" * 4096):
                pass
        except OSError:
            pass  # that was the last block
        os.close(fd)
        check_kept(target, kept)
        delete_some(target, kept)
        assert target.stop() == 0, "the server did not end well on a full disk"
        target.start()
        delete_some(target, kept)
        check_kept(target, kept)
        filler.unlink()
        room.unlink()
        assert until(lambda: target.admin.ask("DELETE", MAPS + "/" + kept[0])[0] == 200, 20), "nothing can be deleted"
        kept.pop(0)
        assert until(lambda: write(target.admin, "again", 100) in (201, 409), 20), "writes do not come back"
        check_kept(target, [*kept, "again"])
        target.check_log()
        return count
    finally:
        target.stop()
        subprocess.run(["umount", "-l", data], check=False)


def check_kept(target, kept):
    there = {item["metadata"]["name"] for item in target.admin.must("GET", MAPS)["items"]}
    lost = [name for name in kept if name not in there]
    assert not lost, "%d acknowledged objects are gone: %s" % (len(lost), lost[:3])


@attack("file size limit", fresh=True)
def file_size(flyball, folder, choose, long):
    """The same by RLIMIT_FSIZE, where the disk itself has room: SIGXFSZ must not end the server."""
    target = Target(flyball, folder, limits={resource.RLIMIT_FSIZE: 12 << 20})
    target.start()
    try:
        kept, count = [], 0
        for number in range(200):
            try:
                status = write(target.admin, "m-%d" % number, 200000)
            except BROKEN:
                target.process.child.wait(5)
                raise AssertionError("it ended with %s" % target.process.child.returncode) from None
            count += 1
            if status != 201:
                assert status in (500, 507), status
                break
            kept.append("m-%d" % number)
        else:
            raise AssertionError("200 writes of 200 KB fit into 12 MB")
        check_kept(target, kept)
    finally:
        target.stop()
    return count


@attack("few descriptors", fresh=True)
def descriptors(flyball, folder, choose, long):
    """64 descriptors and 200 clients: those who get in are served, and when the others go all is as before."""
    target = Target(flyball, folder, limits={resource.RLIMIT_NOFILE: 64})
    target.start()
    try:
        target.measure_base()
        sockets = []
        for _ in range(200):
            try:
                sockets.append(socket.create_connection(("127.0.0.1", target.port), 2))
            except OSError:
                break
        time.sleep(0.5)
        cpu = target.process.cpu_s()
        time.sleep(1)
        busy = target.process.cpu_s() - cpu
        for s in sockets:
            s.close()
        assert target.process.alive(), "it ended"
        assert busy < 0.7, "without descriptors it spins: %.1f s of CPU in a second" % busy
        assert until(lambda: answers(target), 20), "it does not come back"
        target.check()
    finally:
        target.stop()
    return 200


def answers(target):
    try:
        return target.latency() < 5
    except (*BROKEN, AssertionError):
        return False


@attack("little memory", fresh=True)
def memory(flyball, folder, choose, long):
    """768 MB of address space and 150 clients with bodies of 2.9 MB: refused or served, but not ended."""
    if Scale.sanitized:
        raise Skip("sanitizers need more address space than any limit")
    target = Target(flyball, folder, limits={resource.RLIMIT_AS: 768 << 20})
    target.start()
    sockets = []
    try:
        for _ in range(150):
            try:
                s = target.socket(timeout=5)
                s.sendall(b"POST %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Length: 2900001\r\n\r\n" % (
                    MAPS.encode(), target.admin_token.encode()) + b" " * 2900000)
                sockets.append(s)
            except BROKEN:
                continue
        for s in sockets:
            s.close()
        assert target.process.alive(), "it ended: " + target.process.text()[-500:]
        assert until(lambda: answers(target), 20), "it does not come back"
        target.check_log()
    finally:
        target.stop()
    return 150


@attack("concurrent starts", fresh=True)
def starts(flyball, folder, choose, long):
    """Six first starts on one directory: one serves, and the files there are those of the one that does."""
    rounds = 25 if long else 6
    for number in range(rounds):
        data = pathlib.Path(folder, "data-%d" % number)
        children = [Process([flyball, "apiserver", "--data", data, "--listen", "127.0.0.1:0"], "%s/log-%d" % (folder, i))
                    for i in range(6)]
        lines = [child.child.stdout.readline().split() for child in children]
        serving = [words[1] for words in lines if len(words) == 4]
        try:
            assert len(serving) == 1, "%d of 6 servers serve one directory" % len(serving)
            port = int(serving[0].rsplit(":", 1)[1])
            target = Target(flyball, folder)
            target.port, target.authority = port, str(data / "ca.crt")
            client = Client(target, (data / "admin.token").read_text().strip(), timeout=10)
            status, _ = client.ask("GET", "/api/v1/namespaces")
            assert status == 200, "the token in the directory is not that of the server: %s" % status
            config = (data / "kubeconfig").read_text()
            assert ":%d" % port in config, "the kubeconfig leads to another server"
            client.close()
        finally:
            for child in children:
                child.stop()
        shutil.rmtree(data)
    return rounds * 6


@attack("modes of files", fresh=True)
def modes(flyball, folder, choose, long):
    """Nothing in the data directory can be read by others, whatever the umask."""
    target = Target(flyball, folder, before=["sh", "-c", 'umask 0; exec "$@"', "sh"]).start()
    try:
        for number in range(5):
            write(target.admin, "m-%d" % number, 50000)
        wrong = ["%s %o" % (path.name, stat.S_IMODE(path.stat().st_mode)) for path in [target.data, *target.data.iterdir()]
                 if stat.S_IMODE(path.stat().st_mode) & 0o077]
        count = len(list(target.data.iterdir())) + 1
    finally:
        target.stop()
    assert not wrong, "others can read " + ", ".join(wrong)
    return count


@attack("kills and ends", fresh=True)
def kills(flyball, folder, choose, long):
    """Mixed sizes, pauses, then SIGKILL or SIGTERM: what was acknowledged is there, and no version goes back."""
    target, known, highest, count = Target(flyball, folder), {}, 0, 0
    try:
        for number in range(60 if long else 6):
            target.start()
            listed = target.admin.must("GET", MAPS)
            there = {item["metadata"]["name"]: len(item["data"]["v"]) for item in listed["items"]
                     if item["metadata"]["name"].startswith("m-")}  # kube-root-ca.crt is there as well
            wrong = [name for name in {*there, *known} if there.get(name) != known.get(name)]
            assert not wrong, "after %d ends %d objects differ: %s" % (number, len(wrong), wrong[:3])
            version = int(listed["metadata"]["resourceVersion"])
            assert version >= highest, "the resourceVersion went back from %d to %d" % (highest, version)
            steps = choose.randrange(1, 20)
            for step in range(steps):
                size = 200000 if step == 0 else choose.choice([100, 100, 2000, 40000, 200000, 300000, 900000])
                name = "m-%d" % choose.randrange(60)
                if name in known and choose.random() < 0.5:
                    target.admin.must("DELETE", MAPS + "/" + name)
                    del known[name]
                elif name not in known:
                    done = target.admin.must("POST", MAPS, {"metadata": {"name": name}, "data": {"v": "x" * size}})
                    known[name], highest = size, int(done["metadata"]["resourceVersion"])
                count += 1
                time.sleep(choose.choice([0, 0, 0, 0.01, 0.3]))
            code = target.stop(choose.choice([signal.SIGKILL, signal.SIGTERM]))
            assert code in (0, -9), "it ended with %s" % code
    finally:
        target.stop(signal.SIGKILL)
    return count


def find_faketime():
    found = sorted(pathlib.Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    return str(found[0]) if found else None


@attack("clock jumps", fresh=True)
def clock(flyball, folder, choose, long):
    """The wall clock jumps by years, both ways, under a server with leases, events and tokens."""
    library = find_faketime()
    if not library or Scale.sanitized:
        raise Skip("there is no libfaketime (package faketime)" if not library else "sanitizers allow no preloaded library")
    stamp = pathlib.Path(folder, "clock")
    stamp.write_text("+0")
    target = Target(flyball, folder, env={"LD_PRELOAD": library, "FAKETIME_TIMESTAMP_FILE": str(stamp), "FAKETIME_NO_CACHE": "1",
                                          "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"})
    target.start()
    jumps = ["-1h", "+1h", "+3650d", "-3650d", "+30d", "-1d", "+0", "-20000d", "+20000d", "+0"]
    try:
        count = 0
        for jump in jumps * (5 if long else 1):
            stamp.write_text(jump)
            count += 1
            made = target.admin.must("POST", MAPS, {"metadata": {"generateName": "t-"}, "data": {"v": "1"}})
            assert made["metadata"]["creationTimestamp"].endswith("Z"), made["metadata"]
            target.health()
            assert target.admin.must("GET", "/api/v1/events") is not None
        stamp.write_text("+0")
        there = target.admin.must("GET", MAPS)["items"]
        assert len(there) == count, "%d of %d objects are there" % (len(there), count)
        assert target.stop() == 0
        stamp.write_text("-30d")
        target.start()  # before anything in its files was written
        target.health()
        target.check_log()
    finally:
        target.stop()
    return count + 1


@attack("clock of everything", fresh=True)
def clock_up(flyball, folder, choose, long):
    """`flyball up` begins again at an earlier and at a later time, on the same data."""
    count = 0
    for when in ("2026-10-25T00:30:00Z", "2020-02-29T23:59:59Z", "2038-01-19T03:14:00Z", "1999-12-31T23:59:59Z"):
        done = subprocess.run([flyball, "up", "--data", folder + "/data", "--testbed", "schedule", "--speed", "600", "--clock",
                               when, "--for", "2s"], capture_output=True, text=True, timeout=120)
        count += 1
        assert done.returncode == 0, "at %s it ended with %s: %s" % (when, done.returncode, done.stderr[-500:])
    return count


@attack("everything under attack", fresh=True)
def up(flyball, folder, choose, long):
    """`flyball up` with its metrics page and its API server under junk, while its objects get odd shapes."""
    port, log = free_port(), folder + "/log"
    process = Process([flyball, "up", "--data", folder + "/data", "--listen", "127.0.0.1:%d" % port, "--speed", "60"], log)
    try:
        assert until(lambda: (pathlib.Path(folder, "data", "kubeconfig")).exists() and port_open(port), 60), "it did not come up"
        target = Target(flyball, folder)
        target.port, target.process, target.authority = port, process, folder + "/data/ca.crt"
        target.admin = Client(target, pathlib.Path(folder, "data/admin.token").read_text().strip())
        group = "/apis/autoscaling.sarabala.io/v1alpha1/namespaces/shop/smarthorizontalpodautoscalers"
        assert until(lambda: target.admin.ask("GET", group + "/web")[0] == 200, 60), "the scenario is not there"
        count = 0
        for status in ("x", 5, [], {}, {"conditions": "x"}, {"conditions": [1]}, None):
            for kind, path in (("shpa", group + "/web/status"),
                               ("va", "/apis/llmd.ai/v1alpha1/namespaces/llm/variantautoscalings/chat-l40s/status"),
                               ("svc", "/apis/aim.silogen.ai/v1alpha1/namespaces/ml-team/aimservices/llama-chat/status")):
                target.admin.ask("PATCH", path, json.dumps({"status": status}), {"Content-Type": "application/merge-patch+json"})
                count += 1
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", port), 5) as raw:
                raw.sendall(choose.randbytes(200))
            count += 1
        time.sleep(1)
        assert process.alive(), "it ended: " + process.text()[-1000:]
        assert target.admin.ask("GET", group + "/web")[0] == 200
        at_most(process.rss_mib(), 200, "RSS %d MiB (bound %d)")
    finally:
        code = process.stop()
    assert code == 0, "it ended with %s: %s" % (code, process.text()[-1000:])
    return count


def port_open(port):
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
        return True
    except OSError:
        return False
