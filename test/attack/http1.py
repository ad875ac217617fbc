"""Malformed HTTP/1.1: bad request lines, bad headers, bodies of two lengths, requests in requests."""
import random
import socket
import time

from target import BROKEN, attack

HOST = b"Host: 127.0.0.1\r\n"
QUIET_S = 12  # the server's own timeout for headers is 10 s


def get(path=b"/healthz", more=b"", host=HOST):
    return b"GET " + path + b" HTTP/1.1\r\n" + host + more + b"\r\n"


def post(headers, body, path=b"/api/v1/namespaces/default/configmaps"):
    return b"POST " + path + b" HTTP/1.1\r\n" + HOST + headers + b"\r\n" + body


HIDDEN = get(b"/version", b"X-Hidden: 1\r\n")  # a request inside another's body: never answered


def bad_lines():
    """What is no request, or one that must be refused: any status of 400 and above, or a closed connection."""
    yield from (b"\r\n\r\n\r\n\x00", b"GET\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/1.1 \r\n" + HOST + b"\r\n",
                b"GET / HTTP/9.9\r\n" + HOST + b"\r\n", b"GET / HTTP/1.\r\n\r\n", b"GET / http/1.1\r\n" + HOST + b"\r\n",
                b"GET  / HTTP/1.1\r\n" + HOST + b"\r\n", b"G ET / HTTP/1.1\r\n" + HOST + b"\r\n",
                b"\x16\x03\x01\x02\x00" + bytes(200), b"FOO / HTTP/1.1\r\n" + HOST + b"\r\n",
                b"get / HTTP/1.1\r\n" + HOST + b"\r\n", b"GET /\x00 HTTP/1.1\r\n" + HOST + b"\r\n",
                b"GET /\x7f HTTP/1.1\r\n" + HOST + b"\r\n", b"GET / HTTP/1.1\nHost: a\n\n\x00", b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n",
                b"CONNECT 127.0.0.1:22 HTTP/1.1\r\n" + HOST + b"\r\n", b"TRACE / HTTP/1.1\r\n" + HOST + b"\r\n",
                get(b"/" + b"a" * 100000), get(b"/", b"X: " + b"a" * 100000 + b"\r\n"),
                get(b"/", b"".join(b"X-%d: a\r\n" % i for i in range(20000))), get(b"/%zz/%"), get(b"/..%2f..%2fetc/passwd"))


def bad_headers():
    yield from (get(b"/version", b"Host: other\r\n"), get(b"/version", b"Host: 127.0.0.1\r\n"), get(b"/version", b"", b""),
                get(b"/version", b"Host : a\r\n", b""), get(b"/version", b"No colon\r\n"), get(b"/version", b": empty\r\n"),
                get(b"/version", b"X Y: a\r\n"), get(b"/version", b"X\x00: a\r\n"), get(b"/version", b"X: a\x00b\r\n"),
                get(b"/version", b"X: a\rb: c\r\n"), get(b"/version", b" folded: a\r\n"), get(b"/version", b"X: a\r\n folded\r\n"),
                get(b"/version", b"Content-Length: -1\r\n"), get(b"/version", b"Content-Length: +0\r\n"),
                get(b"/version", b"Content-Length: 0x10\r\n"), get(b"/version", b"Content-Length: 1e3\r\n"),
                get(b"/version", b"Content-Length: 99999999999999999999999\r\n"),
                get(b"/version", b"Content-Length: \r\n"), get(b"/version", b"Expect: a-miracle\r\n\r\n"))


def smuggled():
    """A second request hides in the body of a first that the server must not read in two ways."""
    body = HIDDEN
    size = b"Content-Length: %d\r\n" % len(body)
    chunked = b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n"
    yield from (
        post(size + b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n" + body),
        post(b"Transfer-Encoding: chunked\r\n" + size, b"0\r\n\r\n" + body),
        post(b"Content-Length: 0\r\n" + size, body), post(size + b"Content-Length: 0\r\n", body),
        post(b"Content-Length: 0, %d\r\n" % len(body), body),
        post(b"Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n" + body), post(b"Transfer-Encoding: chunked, identity\r\n", b"0\r\n\r\n" + body),
        post(b"Transfer-Encoding: identity\r\n" + size, body), post(b"Transfer-Encoding : chunked\r\n", b"0\r\n\r\n" + body),
        post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", b"0\r\n\r\n" + body),
        post(b"Transfer-Encoding:\x0bchunked\r\n", b"0\r\n\r\n" + body), post(b"transfer-encoding: CHUNKED\r\n" + size, chunked),
        post(b"Transfer-Encoding: chunked\r\n", b"-1\r\n" + body), post(b"Transfer-Encoding: chunked\r\n", b"0x5\r\n" + body),
        post(b"Transfer-Encoding: chunked\r\n", b"ffffffffffffffffff\r\n" + body),
        post(b"Transfer-Encoding: chunked\r\n", b"5;" + b"a" * 100000 + b"\r\nabcde\r\n0\r\n\r\n"),
        post(b"Transfer-Encoding: chunked\r\n", b"5\nabcde\n0\n\n" + body),
        b"GET /healthz HTTP/1.0\r\n" + HOST + b"Transfer-Encoding: chunked\r\nConnection: keep-alive\r\n\r\n0\r\n\r\n" + body)


def talk(target, data, seconds=QUIET_S):
    """All that comes back until the server closes or has been silent; half of the connection is closed at once."""
    try:
        with target.socket(timeout=seconds) as s:
            try:
                for at in range(0, len(data), 1 << 16):
                    s.sendall(data[at:at + (1 << 16)])
            except OSError:
                pass  # refused before it was all there
            got = b""
            s.settimeout(0.3)
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                try:
                    part = s.recv(1 << 16)
                except socket.timeout:
                    break
                except OSError:
                    break
                if not part:
                    break
                got += part
            return got
    except BROKEN:
        return b""


def statuses(answer):
    return [int(part[2:5]) for part in answer.split(b"HTTP/1.")[1:] if part[2:5].isdigit()]


@attack("HTTP/1 bad request lines")
def lines(target, choose, long):
    count = 0
    for data in [*bad_lines()]:
        got = statuses(talk(target, data))
        count += 1
        assert all(status >= 400 for status in got), "%r: %s" % (data[:60], got)
    return count


@attack("HTTP/1 bad headers")
def headers(target, choose, long):
    count, wrong = 0, []
    for data in bad_headers():
        got = statuses(talk(target, data))
        count += 1
        if any(status < 400 for status in got):
            wrong.append("%r: %s" % (data[22:90], got))
    assert not wrong, "; ".join(wrong[:5])
    return count


@attack("HTTP/1 smuggling")
def smuggling(target, choose, long):
    """What hides in a body is never answered as a request."""
    count, wrong = 0, []
    for data in smuggled():
        answer = talk(target, data)
        count += 1
        if b"gitVersion" in answer:
            wrong.append("%r: %s" % (data[60:160], statuses(answer)))
    assert not wrong, "; ".join(wrong[:5])
    return count


@attack("HTTP/1 mutated requests")
def mutated(target, choose, long):
    """Good requests with bytes changed, cut and doubled."""
    seeds = [get(b"/version"), get(b"/api/v1/pods?limit=5"), post(b"Content-Length: 2\r\n", b"{}"),
             post(b"Transfer-Encoding: chunked\r\n", b"2\r\n{}\r\n0\r\n\r\n"), *bad_headers(), *smuggled()]
    count = 600 if long else 60
    for _ in range(count):
        data = bytearray(choose.choice(seeds)[:4000])
        for _ in range(choose.randrange(1, 6)):
            at = choose.randrange(len(data))
            how = choose.randrange(4)
            if how == 0:
                data[at] = choose.randrange(256)
            elif how == 1:
                del data[at:at + choose.randrange(20)]
            elif how == 2:
                data[at:at] = data[at:at + 30] * 3
            else:
                data[at:at] = bytes(choose.randrange(256) for _ in range(5))
            data = data or bytearray(b"x")
        with target.socket(timeout=2) as s:
            try:
                s.sendall(bytes(data))
                s.settimeout(0.02)
                s.recv(4096)
            except OSError:
                pass
    return count


@attack("HTTP/1 pipelines")
def pipelines(target, choose, long):
    """A thousand requests at once on one connection: answered in order, or the connection is closed."""
    count = 1000
    with target.socket() as s:
        s.sendall(get(b"/version") * (count - 1) + get(b"/healthz", b"Connection: close\r\n"))
        got = b""
        try:
            while part := s.recv(1 << 16):
                got += part
        except BROKEN:
            pass
    answers = statuses(got)
    assert answers and set(answers) == {200}, answers[:5]
    return count


@attack("HTTP/1 half-closed")
def half_closed(target, choose, long):
    """Peers that end in the middle of everything."""
    whole = post(b"Content-Length: 1000\r\n", b"x" * 500)
    count = 300 if long else 60
    for number in range(count):
        raw = socket.create_connection(("127.0.0.1", target.port), 5)
        if number % 3 == 0:
            raw.sendall(whole[:choose.randrange(1, len(whole))])  # not even TLS
            raw.shutdown(socket.SHUT_WR)
            raw.close()
            continue
        raw.close()
        with target.socket() as s:
            s.sendall(whole[:choose.randrange(1, len(whole))])
            if number % 3 == 1:
                s.shutdown(socket.SHUT_RDWR)
    return count


@attack("HTTP/1 floods of connections")
def flood(target, choose, long):
    count = 2000 if long else 300
    opened = []
    for number in range(count):
        try:
            raw = socket.create_connection(("127.0.0.1", target.port), 5)
        except OSError:
            break
        opened.append(raw)
        if number % 2:
            raw.sendall(random.Random(number).randbytes(50))
    target.health(5)
    for raw in opened:
        raw.close()
    return count
