#!/usr/bin/python3
"""flyball up on a terminal: what it shows at 80x24 and 120x40, its keys, and what it leaves behind.

    terminal.py FLYBALL

The terminal is tmux, so what is compared is what a user sees. Speaks TAP. Skipped where there is no tmux.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import harness

FLYBALL = str(pathlib.Path(sys.argv[1]).resolve())


class Terminal:
    """A shell in tmux, with a server of its own."""

    def __init__(self, folder, columns, rows, command, **environment):
        self.base = ["tmux", "-S", folder + "/tmux", "-f", "/dev/null"]
        self.env = {**os.environ, **environment, "LC_ALL": "C.UTF-8"}
        self.env.pop("NO_COLOR", None)
        self.env.pop("TMUX", None)
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), "sh")
        self.type(command + "; echo exit code $?")

    def tmux(self, *words):
        return subprocess.run([*self.base, *words], env=self.env, capture_output=True, text=True, timeout=60,
                              check=True).stdout

    def type(self, text):
        self.tmux("send-keys", "-l", text)
        self.tmux("send-keys", "Enter")

    def press(self, *keys):
        self.tmux("send-keys", *keys)

    def lines(self, *words):
        return self.tmux("capture-pane", "-p", *words).splitlines()

    def shows(self, pattern, *words):
        """Waits until the screen matches."""
        seen = lambda: re.search(pattern, "\n".join(self.lines(*words)), re.MULTILINE)
        assert harness.until(seen, 150), "no %r on the screen:\n%s" % (pattern, "\n".join(self.lines()))
        return self.lines(*words)

    def close(self):
        subprocess.run([*self.base, "kill-server"], env=self.env, capture_output=True, timeout=60)


def on(columns, rows, words):
    """Runs a case on a terminal of this size with `flyball up WORDS`."""
    def decorate(case):
        def run(folder):
            terminal = Terminal(folder, columns, rows, "%s up --data %s/data %s" % (FLYBALL, folder, words))
            try:
                case(terminal, folder)
            finally:
                terminal.press("C-c")
                ended = harness.until(lambda: re.search(r"^exit code", "\n".join(terminal.lines()), re.MULTILINE), 60)
                terminal.close()
            assert ended, "it does not end"
        run.__name__ = case.__name__
        return run
    return decorate


HEADINGS = ("MODELS", "SCHEDULES", "MARKET", "SERVICES", "DECISIONS")


@on(80, 24, "")
def every_feature_fits_80x24(terminal, folder):
    terminal.shows(r"^  llm/chat-\S+ +\d+.*%")
    screen = terminal.shows(r"^  \d\d:\d\d:\d\d \S+/\S+ +\S")
    assert len(screen) == 24, screen
    assert screen[0].startswith("flyball up ") and " errors" in screen[0], screen
    assert screen[1] == "export KUBECONFIG=%s/data/kubeconfig" % folder, screen
    assert screen[2].startswith("page   http://127.0.0.1:"), screen
    assert screen[3].startswith("MODELS"), "a banner has three lines: %s" % screen
    for heading in HEADINGS:
        assert any(line.startswith(heading) for line in screen), (heading, screen)
    assert screen[-1].startswith("q quit"), screen
    terminal.shows(r"^  shop/web +\d+ to \d+ +\S+ +.*in \d+")
    terminal.shows(r"^  node market-1 \(\d+ pods\) +\d")
    terminal.shows(r"^  ml-team/llama-chat +Running +default +/ml/")


@on(80, 24, "")
def numbers_move(terminal, folder):
    """The load of the scenario is above what two replicas can serve."""
    terminal.shows(r"^  llm/chat-\S+ +\d+ → \d+")
    terminal.shows(r"^  \d\d:\d\d:\d\d llm/chat-\S+ +\d+ -> \d+ replicas")


@on(120, 40, "")
def a_larger_terminal_shows_more(terminal, folder):
    screen = terminal.shows(r"^MODELS .*DEMAND +COST$")
    screen = terminal.shows(r"^  market/checkout-\S+ .*\d +\w+$")
    assert len(screen) == 40 and screen[-1].startswith("q quit"), screen
    terminal.tmux("resize-window", "-x", "80", "-y", "24")
    screen = terminal.shows(r"^MODELS .*SLO$")
    assert len(screen) == 24 and screen[-1].startswith("q quit"), screen


@on(80, 24, "--testbed schedule")
def business_hours_begin_within_seconds(terminal, folder):
    screen = terminal.shows(r"^  shop/web +2 to 6 +always +(07|08):00Z in [1-9]m")  # Berlin in summer or winter
    assert re.search(r"T0[67]:5\d:\d\dZ \(60x\)", screen[0]), screen
    for absent in ("MODELS", "MARKET", "SERVICES"):
        assert not any(line.startswith(absent) for line in screen), screen
    terminal.shows(r"^  shop/web +5 to 20 +business-hours")
    terminal.shows(r"^  \d\d:\d\d:\d\d shop/web +minReplicas 2 -> 5")


@on(80, 24, "--testbed schedule")
def keys_select_and_explain(terminal, folder):
    terminal.shows(r"^  shop/web +\d")
    terminal.press("Down")
    terminal.shows(r"^> shop/web")
    terminal.press("Enter")
    screen = terminal.shows(r"^flyball explain shpa web -n shop$")
    assert "business-hours" in "\n".join(screen), screen
    assert screen[0].startswith("flyball up ") and screen[-1].startswith("q quit"), screen
    terminal.press("Escape")
    terminal.shows(r"^> shop/web")
    terminal.shows(r"^  \d\d:\d\d:\d\d shop/web")
    terminal.press("Down", "Enter")  # a decision
    terminal.shows(r"^flyball explain smarthorizontalpodautoscaler web -n shop$")
    terminal.press("Enter", "Up")
    terminal.shows(r"^> shop/web")


@on(80, 24, "--testbed schedule")
def q_gives_the_terminal_back(terminal, folder):
    terminal.shows(r"^  shop/web +\d")
    terminal.press("q")
    screen = terminal.shows(r"^exit code 0$", "-S", "-100")
    assert any("flyball is up: https://" in line for line in screen), screen  # from before, maybe behind a prompt
    assert "All state is kept in %s/data" % folder in screen, screen
    terminal.type("echo it is | tr a-z A-Z")  # echoed, and read as lines
    terminal.shows(r"^IT IS$")


@on(80, 24, "--testbed schedule")
def it_can_be_suspended(terminal, folder):
    terminal.shows(r"^  shop/web +\d")
    terminal.press("C-z")
    terminal.shows(r"(?i)stopped|suspended")
    terminal.type("echo it is | tr a-z A-Z")
    terminal.shows(r"^IT IS$")
    terminal.type("fg")
    terminal.shows(r"^  shop/web +\d")
    terminal.press("q")
    terminal.shows(r"^exit code \d+$")  # of what the shell waited for first


@on(80, 24, "--testbed schedule --web-listen none")
def without_a_page_it_shows_the_same(terminal, folder):
    screen = terminal.shows(r"^  shop/web +\d")
    assert not any(line.startswith("page ") for line in screen), screen
    assert screen[2].startswith("SCHEDULES"), screen


def open_starts_a_browser(folder):
    os.mkdir(folder + "/bin")
    with open(folder + "/bin/xdg-open", "w") as file:
        file.write('#!/bin/sh\nprintf "%%s" "$1" >%s/opened.new\nmv %s/opened.new %s/opened\n' % ((folder,) * 3))
    os.chmod(folder + "/bin/xdg-open", 0o755)
    env = {**os.environ, "PATH": folder + "/bin:" + os.environ["PATH"]}
    words = [FLYBALL, "up", "--data", folder + "/data", "--testbed", "empty"]
    with subprocess.Popen([*words, "--open"], env=env, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert harness.until(lambda: os.path.exists(folder + "/opened"), 120), "nothing was opened"
        finally:
            process.terminate()
        said = process.communicate(timeout=120)[0]
    assert "Page:    " + pathlib.Path(folder + "/opened").read_text() in said, said
    run = subprocess.run([*words, "--open", "--web-listen", "none"], capture_output=True, text=True, timeout=60)
    assert run.returncode != 0 and "--web-listen is none" in run.stderr, run


def without_a_terminal_decisions_are_lines(folder):
    words = [FLYBALL, "up", "--data", folder + "/data", "--testbed", "schedule", "--for", "150s"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        said = ""
        for line in process.stdout:
            said += line
            if re.match(r"\S+Z schedule shop/web HPAUpdated: minReplicas", line):
                break
        process.terminate()
        said += process.communicate(timeout=120)[0]
    assert process.returncode == 0 and "HPAUpdated: minReplicas" in said and "\033" not in said, said


CASES = [every_feature_fits_80x24, numbers_move, a_larger_terminal_shows_more, business_hours_begin_within_seconds,
         keys_select_and_explain, q_gives_the_terminal_back, it_can_be_suspended, without_a_page_it_shows_the_same,
         open_starts_a_browser, without_a_terminal_decisions_are_lines]


def main():
    harness.need("tmux")
    tap = harness.Tap()
    for case in CASES:
        with tempfile.TemporaryDirectory(prefix="flyball-tty-", ignore_cleanup_errors=True) as folder:
            tap.run(case, folder)
    tap.end()


main()
