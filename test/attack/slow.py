"""Clients that take their time: headers letter by letter, answers and watches that are not read."""
import json
import socket
import time

from target import ANSWER_DURING_S, BROKEN, UNREAD_MIB, at_most, attack

MAPS = "/api/v1/namespaces/a/configmaps"
HEAD = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n"


def request(target, path):
    return HEAD % (path.encode(), target.admin_token.encode())


def close_all(sockets):
    for s in sockets:
        try:
            s.close()
        except OSError:
            pass


def fill(target, objects, size):
    for at in range(objects):
        target.admin.ask("POST", MAPS, {"metadata": {"name": "slow-%d" % at}, "data": {"v": "x" * size}})


def empty(target):
    for item in target.admin.must("GET", MAPS)["items"]:
        if item["metadata"]["name"].startswith("slow-"):
            target.admin.must("DELETE", MAPS + "/" + item["metadata"]["name"])


@attack("slow headers")
def slowloris(target, choose, long):
    """Two hundred requests that arrive a letter at a time; each is cut off by the server's own deadline."""
    count, sockets = 500 if long else 150, []
    try:
        for _ in range(count):
            s = target.socket()
            s.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX-")
            sockets.append(s)
        end = time.monotonic() + (14 if long else 2)
        while time.monotonic() < end:
            for s in sockets:
                try:
                    s.sendall(b"a")
                except OSError:
                    pass
            target.health(ANSWER_DURING_S)
        if long:
            sockets[0].settimeout(5)
            try:
                while sockets[0].recv(4096):
                    pass
            except TimeoutError:
                raise AssertionError("headers may take longer than 14 s")
            except OSError:
                pass
    finally:
        close_all(sockets)
    return count


@attack("slow handshakes")
def handshakes(target, choose, long):
    count = 1000 if long else 200
    sockets = [socket.create_connection(("127.0.0.1", target.port), 5) for _ in range(count)]
    try:
        for s in sockets[::2]:
            s.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")  # the beginning of a ClientHello
        target.health(ANSWER_DURING_S)
    finally:
        close_all(sockets)
    return count


@attack("slow bodies")
def bodies(target, choose, long):
    """Fifty bodies of 2 MB that stop before their last byte."""
    sockets, body = [], b"x" * 2000000
    try:
        for _ in range(50):
            s = target.socket()
            s.sendall(b"POST %s HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\nContent-Length: 2000001\r\n\r\n" % (
                MAPS.encode(), target.admin_token.encode()) + body)
            sockets.append(s)
        target.health(ANSWER_DURING_S)
    except BROKEN:
        pass  # refused: as good
    finally:
        close_all(sockets)
    return 50


@attack("slow readers")
def readers(target, choose, long):
    """Lists of 4 MB that are not read."""
    fill(target, 40, 100000)
    sockets = []
    try:
        for _ in range(200 if long else 60):
            s = target.socket(receive_bytes=4096)
            s.sendall(request(target, MAPS) * 5)
            sockets.append(s)
        target.health(ANSWER_DURING_S)
        time.sleep(0.5)
        peak = target.process.peak_mib()
    finally:
        close_all(sockets)
        empty(target)
    at_most(peak, UNREAD_MIB, "unread lists cost %d MiB (bound %d)")
    return len(sockets) * 5


@attack("300 stuck watchers")
def watchers(target, choose, long):
    """Watches that are opened and never read while large objects change."""
    sockets = []
    try:
        for _ in range(300):
            s = target.socket(receive_bytes=4096)
            s.sendall(request(target, MAPS + "?watch=1"))
            sockets.append(s)
        fill(target, 4, 900000)
        for number in range(60 if long else 12):
            target.admin.must("PATCH", MAPS + "/slow-%d" % (number % 4), json.dumps({"data": {"v": "%06d" % number * 150000}}),
                              {"Content-Type": "application/merge-patch+json"})
        target.health(ANSWER_DURING_S)
        peak = target.process.peak_mib()
    finally:
        close_all(sockets)
        empty(target)
    at_most(peak, UNREAD_MIB, "300 unread watches cost %d MiB (bound %d)")
    return 300


@attack("lists of versions that are gone")
def old_lists(target, choose, long):
    """Lists of 5 MB that are not read, each of another version: what they show is replaced behind them."""
    count, objects, sockets = 80 if long else 30, 6, []
    fill(target, objects, 900000)
    try:
        for number in range(count):
            s = target.socket(receive_bytes=4096)
            s.sendall(request(target, MAPS))
            sockets.append(s)
            for at in range(objects):
                target.admin.must("PATCH", MAPS + "/slow-%d" % at, json.dumps({"data": {"n": str(number)}}),
                                  {"Content-Type": "application/merge-patch+json"})
        target.health(ANSWER_DURING_S)
        peak = target.process.peak_mib()
    finally:
        close_all(sockets)
        empty(target)
    at_most(peak, UNREAD_MIB, "unread lists of old versions cost %d MiB (bound %d)")
    return count


@attack("watches opened and dropped")
def dropped(target, choose, long):
    count = 3000 if long else 300
    for number in range(count):
        s = target.socket()
        s.sendall(request(target, MAPS + "?watch=1"))
        if number % 3 == 0:
            s.recv(100)
        s.close()
    return count
