#!/usr/bin/python3
"""Draws what a command printed as a picture of a terminal: terminal.py TITLE < TEXT > PICTURE.svg"""
import html
import sys

COLUMNS, LINE, CHARACTER, MARGIN, TOP = 112, 18, 7.83, 16, 44
NO_BREAK = "&#160;"  # browsers collapse runs of other spaces
COLOURS = {"MODELS": "#7ee787", "SCHEDULES": "#79c0ff", "MARKET": "#ffa657", "SERVICES": "#d2a8ff", "DECISIONS": "#e6edf3"}


def coloured(line):
    """A heading is drawn in the colour of its feature; a row that changes is bright."""
    word = line.split(" ")[0]
    if word in COLOURS:
        return COLOURS[word]
    return "#ffffff" if "→" in line else "#8b949e" if line.startswith("  ") else "#e6edf3"


def main(title):
    lines = [line.rstrip().expandtabs() for line in sys.stdin]
    lines = [line if len(line) <= COLUMNS else line[: COLUMNS - 1] + "…" for line in lines]
    width, height = int(COLUMNS * CHARACTER) + 2 * MARGIN, TOP + LINE * len(lines) + MARGIN
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
          f'viewBox="0 0 {width} {height}" role="img" aria-label="{html.escape(title)}">')
    print(f'<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>')
    for at, colour in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        print(f'<circle cx="{MARGIN + 6 + 20 * at}" cy="20" r="6" fill="{colour}"/>')
    print(f'<text x="{width / 2:.0f}" y="25" fill="#8b949e" text-anchor="middle" '
          f'font-family="sans-serif" font-size="13">{html.escape(title)}</text>')
    print('<g font-family="ui-monospace,Menlo,Consolas,DejaVu Sans Mono,monospace" font-size="13" '
          'xml:space="preserve">')
    for at, line in enumerate(lines):
        if line:
            print(f'<text x="{MARGIN}" y="{TOP + LINE * at + 13}" fill="{coloured(line)}" '
                  f'textLength="{len(line) * CHARACTER:.1f}">{html.escape(line).replace(" ", NO_BREAK)}</text>')
    print("</g>\n</svg>")


main(sys.argv[1])
