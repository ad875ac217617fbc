#!/usr/bin/python3
"""The documents hold: every manifest in them is accepted and every command in them works, page by page and
in order, as a reader would do it. Usage: docs.py FLYBALL. Speaks TAP.

What is looked at, in README.md and docs/*.md:
  ```yaml with apiVersion   applied; also kept as NAME.yaml for the commands that follow
  ```yaml otherwise         part of the page's last manifest: merged into it and tried on the server. A list
                            needs a comment before it with the field it belongs to: <!-- spec.triggers -->
  ```sh                     run line by line in a folder with those files and examples/
  ```  with "$ command"     run as well; what the page shows of its output is only an example

The server is `flyball up`, so the controllers are at work on what a page applies. `./dev VERB` is looked up in
`./dev help`: the tests do not start themselves. A command that goes on until it is stopped passes when it is
still at work after a while.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

from harness import Skip, TOP, Tap, Up, need

FENCE = re.compile(r"^(?:<!-- (?P<place>[\w.]+) -->\n+)?```(?P<kind>\w*)\n(?P<text>.*?)^```$",
                   re.MULTILINE | re.DOTALL)
ENDLESS = re.compile(r"flyball (up|operator|agent|apiserver)\b(?!.*--(help|for))|kubectl .*(--watch|-w)\b")
ABSENT = ("helm", "podman", "docker")  # tools that readers have and Debian does not


class World:
    """One `flyball up`, and a home in which commands are run."""

    def __init__(self, flyball, folder):
        self.folder = pathlib.Path(folder)
        self.work = self.folder / "work"
        self.work.mkdir()
        shutil.copytree(TOP / "examples", self.work / "examples")
        (self.folder / "bin").mkdir()
        os.symlink(flyball, self.folder / "bin/flyball")
        self.up = Up(flyball, self.folder / "data", "--listen", "127.0.0.1:0")
        home = self.folder / "home/.kube"
        home.mkdir(parents=True)
        shutil.copy(self.up.kubeconfig, home / "config")
        self.env = {**os.environ, "KUBECONFIG": self.up.kubeconfig, "HOME": str(home.parent),
                    "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}

    def run(self, command, text=None, seconds=120):
        done = subprocess.run(["timeout", "-s", "INT", "-k", "10", str(seconds), "bash", "-c", command],
                              input=text, capture_output=True, text=True, cwd=self.work, env=self.env)
        return done

    def ends_well(self):
        assert self.up.stop() == 0, "".join(self.up.said[-20:])


class Page:
    def __init__(self, path, world):
        self.name, self.text, self.world = str(path.relative_to(TOP)), path.read_text(), world
        self.manifest = None

    def steps(self):
        """(title, function) of everything on the page, in order."""
        for fence in FENCE.finditer(self.text):
            line = self.text.count("\n", 0, fence.start("text"))
            where = f"{self.name}:{line + 1}"
            if fence["kind"] == "yaml":
                yield f"{where} manifest", lambda f=fence: self.apply(f["text"], f["place"])
            elif fence["kind"] == "sh":
                for command in fence["text"].replace("\\\n", " ").splitlines():
                    if command.strip() and not command.startswith("#"):
                        yield f"{where} {command}", lambda c=command: self.command(c)
            elif fence["text"].startswith("$ "):
                command = fence["text"].replace("\\\n", " ").splitlines()[0][2:]
                yield f"{where} {command}", lambda c=command: self.command(c)

    def apply(self, text, place):
        documents = [d for d in yaml.safe_load_all(text) if d]
        whole = all(isinstance(d, dict) and "apiVersion" in d for d in documents)
        if not whole:
            self.try_part(documents, place)
            return
        for document in documents:
            self.manifest = document
            ns = document["metadata"].get("namespace")
            if ns:
                self.world.run(f"kubectl create namespace {ns}")
            (self.world.work / f"{document['metadata']['name']}.yaml").write_text(yaml.safe_dump(document))
            self.kubectl_apply(document, "")

    def try_part(self, documents, place):
        assert self.manifest, "a part of a manifest, but the page has none before it"
        assert len(documents) == 1, "a part of a manifest is one document"
        part = documents[0]
        for key in reversed(place.split(".") if place else []):
            part = {key: part}
        assert isinstance(part, dict), "a list needs a comment that says where it belongs"
        whole = json.loads(json.dumps(self.manifest))
        merge(whole, part)
        self.kubectl_apply(whole, "--dry-run=server")

    def kubectl_apply(self, document, flags):
        done = self.world.run(f"kubectl apply --server-side --force-conflicts {flags} -f -", json.dumps(document, default=str))
        assert done.returncode == 0, done.stderr

    def command(self, command):
        words = command.split()
        if words[0] == "./dev":
            known = subprocess.run([TOP / "dev", "help"], capture_output=True, text=True, check=True).stdout
            assert re.search(rf"^ *\./dev {words[1]}\b", known, re.MULTILINE), f"./dev has no verb {words[1]}"
            return
        for tool in ABSENT:
            if tool in words and not shutil.which(tool):
                raise Skip(f"{tool} is not installed")
        command = command.replace("build/flyball", "flyball")
        endless = ENDLESS.search(command)
        done = self.world.run(command, seconds=5 if endless else 120)
        allowed = (0, 124) if endless else (0,)
        assert done.returncode in allowed, f"ended with {done.returncode}: {done.stdout[-500:]}{done.stderr[-500:]}"


def merge(into, part):
    for key, value in part.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            merge(into[key], value)
        else:
            into[key] = value


def main(flyball):
    need("kubectl")
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        world = World(os.path.abspath(flyball), folder)
        for path in [TOP / "README.md", *sorted((TOP / "docs").glob("*.md"))]:
            for title, step in Page(path, world).steps():
                tap.run(step, name=title.replace("#", ""))
        tap.run(world.ends_well, name="flyball up ends well")
    tap.end()


main(sys.argv[1])
