"""What bench/sync.py and bench/scale.py share: client-go's informer, the made-up server, a measured run."""
import json
import os
import pathlib
import shutil
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAMS = pathlib.Path(os.environ.get("FLYBALL_BENCH", ROOT / "build" / "bench"))
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "flyball" / "bench"


def build_peer():
    """client-go's informer, built once; None where there is no Go."""
    if not shutil.which("go"):
        return None
    program = CACHE / "informer"
    CACHE.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(["nice", "-n", "19", "go", "build", "-p", "2", "-trimpath", "-buildvcs=false", "-o", program, "."],
                          cwd=ROOT / "bench" / "peers", capture_output=True, text=True)
    if done.returncode:
        print(f"client-go cannot be built here: {done.stderr.strip().splitlines()[-1:]}")
        return None
    return program


def run_once(command, config, **more):
    """What the program printed; None if it failed. `more` is added to its environment."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=3600,
                          env={**os.environ, "KUBECONFIG": str(config), **more})
    if done.returncode:
        print(f"  {command[0].name} failed: {done.stderr.strip()[-300:]}")
        return None
    return json.loads(done.stdout)


class Pods:
    """The made-up server; the words are those of podserver.c."""

    def __init__(self, *words):
        self.process = subprocess.Popen([PROGRAMS / "podserver", *map(str, words)], stdout=subprocess.PIPE, text=True)
        self.config = self.process.stdout.readline().strip()

    def __enter__(self):
        return self.config

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        os.unlink(self.config)
