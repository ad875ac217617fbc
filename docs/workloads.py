#!/usr/bin/python3
"""Nine workloads for docs/decisions.py that no constant of a policy was chosen by: other shapes, lengths, seeds and hardware
than the development traces.

    workloads.py FOLDER     writes NAME.csv.gz for each of WORKLOADS, and other.yaml

The same bytes on every run.
"""
import gzip
import math
import pathlib
import random
import sys

# name, variants, ITL target, what it is
WORKLOADS = [
    ("sine", "p1", "60ms", "sine, 22 min"),
    ("walk", "p1", "60ms", "random walk"),
    ("prompts", "p1", "60ms", "long prompts, short answers"),
    ("answers", "p2", "120ms", "answers grow threefold"),
    ("stairs", "p1", "45ms", "stairs"),
    ("pulse", "p1", "60ms", "8 and 22 in turn, 4 min"),
    ("hill", "other", "60ms", "hill, other hardware"),
    ("steady", "p1", "60ms", "steady"),
    ("noisy", "p1", "60ms", "noisy day"),
]
OTHER = """- name: h100
  cost: 82
  max: 64
  profile: {baseMs: 7, perSeqMs: 0.025, perPromptTokenMs: 0.045, perCachedTokenMs: 0.00005,
            kvBlocks: 32000, blockTokens: 16, maxSeqs: 256, maxBatchedTokens: 1024}
- name: a10
  cost: 9
  max: 128
  profile: {baseMs: 28, perSeqMs: 0.07, perPromptTokenMs: 0.22, perCachedTokenMs: 0.0003,
            kvBlocks: 4200, blockTokens: 16, maxSeqs: 128, maxBatchedTokens: 512}
"""
STAIRS = [8, 16, 28, 20, 36, 14]


def draw_walk():
    points, draw = [18.0], random.Random(7)
    for _ in range(400):
        points.append(min(45, max(6, points[-1] + draw.gauss(0, 1.1) + 0.02 * (20 - points[-1]))))
    return points


WALK = draw_walk()


def walk(t):
    at = int(t / 15)
    return WALK[at] + (WALK[at + 1] - WALK[at]) * (t % 15 / 15)


def noisy(t):
    return (20 + 14 * math.sin(2 * math.pi * t / 7200 - 1.5)) * (1 + 0.12 * math.sin(t / 97) + 0.08 * math.sin(t / 41))


# name: seconds, requests per second, mean tokens of prompt and answer, spread of both, seed
SHAPES = {
    "sine": (3600, lambda t: 22 + 10 * math.sin(2 * math.pi * t / 1300), lambda t: (1150, 210), (1.0, 0.8), 101),
    "walk": (5400, walk, lambda t: (1150, 210), (1.0, 0.8), 102),
    "prompts": (3600, lambda t: 7 + 3 * math.sin(2 * math.pi * t / 1700) + (5 if t % 900 > 780 else 0),
                lambda t: (2600, 32), (0.7, 0.6), 103),
    "answers": (3600, lambda t: 9, lambda t: (600, 120 + 260 * t / 3600), (1.0, 0.8), 104),
    "stairs": (4200, lambda t: STAIRS[int(t / 700) % 6], lambda t: (1150, 210), (1.0, 0.8), 105),
    "pulse": (3600, lambda t: 8 if int(t / 240) % 2 == 0 else 22, lambda t: (1150, 210), (1.0, 0.8), 106),
    "hill": (3000, lambda t: 10 + 40 * max(0, 1 - abs(t - 1400) / 900), lambda t: (1150, 210), (1.0, 0.8), 107),
    "steady": (3600, lambda t: 25, lambda t: (1150, 210), (1.0, 0.8), 108),
    "noisy": (7200, noisy, lambda t: (900 + 300 * math.sin(t / 1500), 250), (1.0, 0.8), 109),
}


def tokens(draw, mean, spread, least, most):
    """Log-normal with that mean."""
    return int(min(most, max(least, draw.lognormvariate(math.log(mean) - spread * spread / 2, spread))))


def write(folder, name):
    seconds, rate, means, spreads, seed = SHAPES[name]
    draw, t, lines = random.Random(seed), 0.0, ["seconds,in,out\n"]
    peak = max(rate(seconds * i / 2000) for i in range(2001)) * 1.3 + 1
    while True:
        t += draw.expovariate(peak)
        if t >= seconds:
            break
        if draw.random() * peak <= rate(t):  # a Poisson process, thinned
            prompt, answer = means(t)
            lines.append("%.3f,%d,%d\n" % (t, tokens(draw, prompt, spreads[0], 8, 16000),
                                           tokens(draw, answer, spreads[1], 2, 2000)))
    with gzip.GzipFile(folder / (name + ".csv.gz"), "wb", mtime=0) as out:
        out.write("".join(lines).encode())


def main(folder):
    for name in SHAPES:
        write(folder, name)
    (folder / "other.yaml").write_text(OTHER)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
