"""Malformed and hostile HTTP/2. Frames are made by hand: a library would refuse to."""
import struct
import time

from target import ANSWER_DURING_S, UNREAD_MIB, at_most, attack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, HAS_PRIORITY = 1, 1, 4, 8, 32
INITIAL_WINDOW, MAX_FRAME, HEADER_TABLE = 4, 5, 1
BIG = "/api/v1/namespaces/a/configmaps"
MAY_BE_IGNORED = "stream numbers go back"  # a frame of a stream that was closed by a later one


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + struct.pack(">I", stream) + payload


def number(value, prefix, first=0):
    """HPACK's integers."""
    most = (1 << prefix) - 1
    if value < most:
        return bytes((first | value,))
    out, value = bytearray((first | most,)), value - most
    while value >= 128:
        out.append(value % 128 | 128)
        value //= 128
    return bytes(out) + bytes((value,))


def text(value):
    value = value if isinstance(value, bytes) else value.encode()
    return number(len(value), 7) + value


def literal(name, value, index=False):
    """A header written out; `index`: both sides are to remember it."""
    return (b"\x40" if index else b"\x00") + text(name) + text(value)


def block(path="/version", token=None, method="GET", more=()):
    fields = [(":method", method), (":scheme", "https"), (":path", path), (":authority", "127.0.0.1")]
    if token:
        fields.append(("authorization", "Bearer " + token))
    return b"".join(literal(*field) for field in [*fields, *more])


def settings(**values):
    known = {"table": HEADER_TABLE, "window": INITIAL_WINDOW, "frame": MAX_FRAME}
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", known[k], v) for k, v in values.items()))


class Connection:
    def __init__(self, target, preface=True, timeout=15, receive_bytes=None, **values):
        self.socket = target.socket("h2", timeout, receive_bytes)
        self.stream, self.ended = -1, False
        if preface:
            self.send(PREFACE + settings(**values))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        """False when the server has closed."""
        try:
            self.socket.sendall(data)
            return True
        except OSError:
            self.ended = True
            return False

    def ask(self, path="/version", token=None, flags=END_STREAM | END_HEADERS, **more):
        self.stream += 2
        return self.send(frame(HEADERS, flags, self.stream, block(path, token, **more)))

    def read(self, seconds=1.0):
        """(kind, flags, stream, payload) of all frames that come until it is silent, closes, or time is over."""
        got, frames = b"", []
        end = time.monotonic() + seconds
        self.socket.settimeout(0.2)
        while time.monotonic() < end:
            try:
                part = self.socket.recv(1 << 16)
            except TimeoutError:
                if frames:
                    break
                continue
            except OSError:
                self.ended = True
                break
            if not part:
                self.ended = True
                break
            got += part
            while len(got) >= 9 and len(got) >= 9 + int.from_bytes(got[:3], "big"):
                n = int.from_bytes(got[:3], "big")
                frames.append((got[3], got[4], int.from_bytes(got[5:9], "big"), got[9:9 + n]))
                got = got[9 + n:]
        self.socket.settimeout(15)
        return frames


def answered(frames, stream=1):
    return any(kind == HEADERS and at == stream for kind, _, at, _ in frames)


def refused(connection, frames):
    """The stream or the connection was ended by the server."""
    return connection.ended or any(kind in (GOAWAY, RST_STREAM) for kind, _, _, _ in frames)


def status_is_200(payload):
    return payload[:1] == b"\x88"  # the indexed field :status 200


@attack("HTTP/2 works")
def works(target, choose, long):
    """The tool itself: a plain request is answered, so what is refused below is refused for its fault."""
    with Connection(target) as c:
        c.ask()
        frames = c.read(5)
        assert any(kind == HEADERS and at == 1 and status_is_200(p) for kind, _, at, p in frames), frames[:5]
    return 1


def bad_frames():
    """(name, bytes): each a violation; must be answered with GOAWAY, RST_STREAM, 4xx or the end."""
    good = block()
    head = frame(HEADERS, END_STREAM | END_HEADERS, 1, good)
    opened = frame(HEADERS, END_HEADERS, 1, block(method="POST"))
    yield "DATA on stream 0", frame(DATA, END_STREAM, 0, b"x")
    yield "DATA on an idle stream", frame(DATA, END_STREAM, 5, b"x")
    yield "DATA after the end", head + frame(DATA, END_STREAM, 1, b"x")
    yield "HEADERS on stream 0", frame(HEADERS, END_STREAM | END_HEADERS, 0, good)
    yield "HEADERS on an even stream", frame(HEADERS, END_STREAM | END_HEADERS, 2, good)
    yield MAY_BE_IGNORED, frame(HEADERS, END_STREAM | END_HEADERS, 9, good) + head
    yield "CONTINUATION alone", frame(CONTINUATION, END_HEADERS, 1, good)
    yield "another frame inside a header block", frame(HEADERS, END_STREAM, 1, good) + frame(PING, 0, 0, bytes(8))
    yield "PUSH_PROMISE by a client", opened + frame(PUSH_PROMISE, END_HEADERS, 1, struct.pack(">I", 2) + good)
    yield "a frame too large", frame(DATA, 0, 1, bytes((1 << 14) + 1))
    yield "padding beyond the frame", opened + frame(DATA, PADDED, 1, b"\xff" + b"x" * 10)
    yield "SETTINGS with a wrong length", frame(SETTINGS, 0, 0, b"12345")
    yield "SETTINGS on a stream", frame(SETTINGS, 0, 1, b"")
    yield "SETTINGS ACK with a body", frame(SETTINGS, ACK, 0, bytes(6))
    yield "window setting too large", frame(SETTINGS, 0, 0, struct.pack(">HI", INITIAL_WINDOW, 1 << 31))
    yield "frame setting too small", frame(SETTINGS, 0, 0, struct.pack(">HI", MAX_FRAME, 1))
    yield "PING with a wrong length", frame(PING, 0, 0, b"1")
    yield "PING on a stream", frame(PING, 0, 1, bytes(8))
    yield "window update of nothing", frame(WINDOW_UPDATE, 0, 0, bytes(4))
    yield "window beyond its limit", frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", (1 << 31) - 1)) * 2
    yield "window update on an idle stream", frame(WINDOW_UPDATE, 0, 7, struct.pack(">I", 1))
    yield "RST_STREAM on an idle stream", frame(RST_STREAM, 0, 7, bytes(4))
    yield "RST_STREAM on stream 0", frame(RST_STREAM, 0, 0, bytes(4))
    yield "PRIORITY with a wrong length", frame(PRIORITY, 0, 1, bytes(4))
    yield "HPACK index 0", frame(HEADERS, END_STREAM | END_HEADERS, 1, b"\x80")
    yield "HPACK index that is not there", frame(HEADERS, END_STREAM | END_HEADERS, 1, good + number(5000, 7, 0x80))
    yield "HPACK integer without an end", frame(HEADERS, END_STREAM | END_HEADERS, 1, b"\xff" + b"\xff" * 50)
    yield "HPACK text longer than the block", frame(HEADERS, END_STREAM | END_HEADERS, 1, b"\x00\x7f\xff\x7fabc")
    yield "HPACK bad Huffman code", frame(HEADERS, END_STREAM | END_HEADERS, 1, b"\x00\x84\xff\xff\xff\xff\x01a")
    yield "HPACK table too large", frame(HEADERS, END_STREAM | END_HEADERS, 1, number(1 << 30, 5, 0x20) + good)
    for name, fields in {
            "no path": [(":method", "GET"), (":scheme", "https")], "no method": [(":path", "/version"), (":scheme", "https")],
            "two paths": [(":method", "GET"), (":scheme", "https"), (":path", "/version"), (":path", "/")],
            "unknown pseudo header": [(":method", "GET"), (":scheme", "https"), (":path", "/version"), (":odd", "1")],
            "pseudo header after others": [(":method", "GET"), ("a", "b"), (":scheme", "https"), (":path", "/version")],
            "upper case": [(":method", "GET"), (":scheme", "https"), (":path", "/version"), ("X-A", "b")],
            "connection header": [(":method", "GET"), (":scheme", "https"), (":path", "/version"), ("connection", "close")],
            "transfer-encoding": [(":method", "GET"), (":scheme", "https"), (":path", "/version"), ("transfer-encoding", "chunked")],
            "line break in a value": [(":method", "GET"), (":scheme", "https"), (":path", "/version"), ("a", b"b\r\nc: d")],
            "NUL in a value": [(":method", "GET"), (":scheme", "https"), (":path", "/version"), ("a", b"b\x00")],
            "empty path": [(":method", "GET"), (":scheme", "https"), (":path", "")]}.items():
        yield name, frame(HEADERS, END_STREAM | END_HEADERS, 1, b"".join(literal(*f) for f in fields))
    yield "body longer than its content-length", frame(HEADERS, END_HEADERS, 1, block(method="POST", more=[("content-length", "1")])) + \
        frame(DATA, END_STREAM, 1, b"12345")


@attack("HTTP/2 violations")
def violations(target, choose, long):
    count, wrong = 0, []
    for name, data in bad_frames():
        with Connection(target) as c:
            c.send(data)
            frames = c.read(3)
            good = [p for kind, _, at, p in frames if kind == HEADERS and at == 1 and status_is_200(p)]
            silent = not answered(frames) and name != MAY_BE_IGNORED
            if not refused(c, frames) and (good or silent):
                wrong.append(name)
        count += 1
    for junk in (b"\x00" * 200, b"PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n" + bytes(50), PREFACE + b"\xff" * 100, PREFACE[:10]):
        with Connection(target, preface=False) as c:
            c.send(junk)
            c.read(0.3)
        count += 1
    assert not wrong, "accepted: " + "; ".join(wrong)
    return count


@attack("HTTP/2 mutated frames")
def mutated(target, choose, long):
    seeds = [data for _, data in bad_frames()] + [frame(HEADERS, END_STREAM | END_HEADERS, 1, block())]
    count = 1500 if long else 100
    for _ in range(count):
        data = bytearray(choose.choice(seeds)[:2000] + choose.choice(seeds)[:2000])
        for _ in range(choose.randrange(1, 8)):
            data[choose.randrange(len(data))] = choose.randrange(256)
        with Connection(target, timeout=3) as c:
            c.send(bytes(data))
            c.socket.settimeout(0.01)
            try:
                c.socket.recv(4096)
            except OSError:
                pass
    return count


@attack("HTTP/2 HPACK bombs")
def hpack_bombs(target, choose, long):
    """One header of 4 KB is remembered once and named sixteen thousand times a frame: 64 MB of headers each."""
    count = 40 if long else 8
    begin = target.process.cpu_s()
    for _ in range(count):
        with Connection(target) as c:
            big = literal("x-bomb", "b" * 4000, index=True)
            c.send(frame(HEADERS, END_STREAM | END_HEADERS, 1, block() + big))
            bomb = block() + number(62, 7, 0x80) * 15000
            for stream in range(3, 23, 2):
                if not c.send(frame(HEADERS, END_STREAM | END_HEADERS, stream, bomb)):
                    break
            frames = c.read(3)
            bad = [at for kind, _, at, p in frames if kind == HEADERS and at > 1 and status_is_200(p)]
            assert not bad, "a request with 60 MB of headers was answered with 200"
    cpu = target.process.cpu_s() - begin
    at_most(cpu, 0.3 * count, "bombs of 150 KB cost %.1f s of CPU (bound %.1f)")
    return count


@attack("HTTP/2 CONTINUATION floods")
def continuation(target, choose, long):
    """A header block that never ends is cut off before it has cost much."""
    for part in (b"", literal("x", "y" * 1000), literal("x", b"") * 100):
        with Connection(target) as c:
            c.send(frame(HEADERS, END_STREAM, 1, block()))
            sent = 0
            while sent < 20000 and c.send(frame(CONTINUATION, 0, 1, part)):
                sent += 1
            c.read(0.5)
            assert c.ended or sent < 20000, "20,000 CONTINUATION frames were taken"
    return 3


@attack("HTTP/2 rapid resets")
def rapid_reset(target, choose, long):
    count = 100000 if long else 10000
    made = 0
    while made < count:
        with Connection(target) as c:
            batch = b""
            for _ in range(500):
                c.stream += 2
                batch += frame(HEADERS, END_STREAM | END_HEADERS, c.stream, block("/api/v1/pods", target.admin_token)) + \
                    frame(RST_STREAM, 0, c.stream, struct.pack(">I", 8))
            made += 500
            if not c.send(batch):
                continue
    target.health(ANSWER_DURING_S)
    return count


@attack("HTTP/2 floods")
def floods(target, choose, long):
    """Pings, settings, empty data and unknown frames whose answers the client does not read."""
    rounds = 20 if long else 1
    kinds = {"PING": frame(PING, 0, 0, bytes(8)), "SETTINGS": frame(SETTINGS, 0, 0, struct.pack(">HI", HEADER_TABLE, 4096)),
             "unknown": frame(99, 0, 0, b"x" * 100), "PRIORITY": frame(PRIORITY, 0, 1, struct.pack(">IB", 3, 1)),
             "empty DATA": frame(HEADERS, END_HEADERS, 1, block(method="POST")) + frame(DATA, 0, 1, b"") * 100}
    count = 0
    for _ in range(rounds):
        for data in kinds.values():
            with Connection(target, timeout=3, receive_bytes=4096) as c:
                for _ in range(60):
                    count += 500
                    if not c.send(data * 500):
                        break
                    if data is kinds["empty DATA"]:
                        break
    target.health(ANSWER_DURING_S)
    return count


def fill(target, objects=40, size=100000):
    for at in range(objects):
        target.admin.ask("POST", BIG, {"metadata": {"name": "big-%d" % at}, "data": {"v": "x" * size}})


def empty(target):
    for item in target.admin.must("GET", BIG)["items"]:
        if item["metadata"]["name"].startswith("big-"):
            target.admin.must("DELETE", BIG + "/" + item["metadata"]["name"])


@attack("HTTP/2 closed windows")
def zero_windows(target, choose, long):
    """Clients that ask for megabytes many hundred times and take none of it: what waits for them is bounded, in lists
    (read as they are sent) and in single objects (made whole)."""
    fill(target)
    target.admin.ask("POST", BIG, {"metadata": {"name": "big-one"}, "data": {"v": "x" * 900000}})
    connections, count = [], 0
    try:
        for number_ in range(8 if long else 3):
            c = Connection(target, window=0)
            connections.append(c)
            try:
                for _ in range(300):
                    c.ask(BIG + ("/big-one" if number_ % 2 == 0 else ""), target.admin_token)
                    count += 1
            except OSError:
                pass  # the server has closed it to make room: as good
        target.health(ANSWER_DURING_S)
    finally:
        peak = target.process.peak_mib()
        for c in connections:
            c.__exit__()
        empty(target)
    at_most(peak, UNREAD_MIB, "answers to clients without a window cost %d MiB (bound %d)")
    return count


@attack("HTTP/2 many streams")
def many_streams(target, choose, long):
    """More streams than allowed, most of them never finished."""
    with Connection(target) as c:
        for _ in range(3000):
            c.stream += 2
            if not c.send(frame(HEADERS, END_HEADERS, c.stream, block("/api/v1/namespaces", target.admin_token, "POST"))):
                break
        frames = c.read(2)
        refusals = sum(kind in (RST_STREAM, GOAWAY) for kind, _, _, _ in frames)
        assert refusals or c.ended, "3,000 streams at a time were taken"
    target.health(ANSWER_DURING_S)
    return 3000


@attack("HTTP/2 half-closed")
def half_closed(target, choose, long):
    """Connections that end inside frames, and GOAWAY with requests behind it."""
    count = 300 if long else 50
    for at in range(count):
        with Connection(target) as c:
            data = frame(HEADERS, END_STREAM | END_HEADERS, 1, block(BIG, target.admin_token))
            if at % 2:
                c.send(frame(GOAWAY, 0, 0, bytes(8)) + data)
            else:
                c.send(data[:choose.randrange(1, len(data))])
    return count
