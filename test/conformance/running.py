"""A flyball apiserver of our own for the length of a test."""
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile


class Server:
    """Starts on a free port in a new directory; `url`, `token` and `kubeconfig` are how to reach it."""

    def __init__(self, flyball, flags=(), data=None):
        self.flyball, self.flags = os.path.abspath(flyball), list(flags)
        self.own = data is None
        self.data = pathlib.Path(data or tempfile.mkdtemp(prefix="flyball-"))
        self.process, self.errors = None, self.data / "stderr"

    def start(self):
        with open(self.errors, "ab") as errors:
            self.process = subprocess.Popen(
                [self.flyball, "apiserver", "--data", self.data, "--listen", "127.0.0.1:0", *self.flags],
                stdout=subprocess.PIPE, stderr=errors, text=True)
        words = self.process.stdout.readline().split()  # "serving URL kubeconfig PATH"
        if len(words) != 4 or words[0] != "serving":
            raise RuntimeError("the server did not start: " + self.errors.read_text()[-2000:])
        self.url, self.kubeconfig = words[1], words[3]
        self.token = (self.data / "admin.token").read_text()
        return self

    def stop(self, how=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(how)
        self.process.stdout.close()
        return self.process.wait(30)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.status = self.stop()
        self.said = self.errors.read_text()
        if self.own:
            shutil.rmtree(self.data, ignore_errors=True)

    def complaints(self):
        """The output of a sanitizer or of an abnormal exit; "" otherwise."""
        if self.status == 0 and "ERROR" not in self.said and "runtime error" not in self.said:
            return ""
        return "the server ended with %s: %s" % (self.status, self.said[-3000:].replace("\n", "\n# "))
