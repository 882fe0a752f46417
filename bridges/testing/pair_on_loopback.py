"""A pair on loopback addresses with bridges beside its nodes, as processes of their own: what tests of all bridges share."""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

BUMPLESS = os.environ["BUMPLESS_BINARY"]
NODES = ("left", "right")
# Nothing is judged by how long it took; this only ends what would never come.
PATIENCE_S = 40

CONFIGURATION = """
[pair]
name = "{pair}"
[timing]
heartbeat_ms = 20
lease_ms = 200
[security]
keys = ["{folder}/{pair}.key"]
[[network]]
name = "A"
[[network]]
name = "B"
[[node]]
name = "left"
addresses = {{ A = "{a}.1:4700", B = "{b}.1:4700" }}
control = "{folder}/left.sock"
[[node]]
name = "right"
addresses = {{ A = "{a}.2:4700", B = "{b}.2:4700" }}
control = "{folder}/right.sock"
[[reference]]
name = "witness-a"
kind = "witness"
network = "A"
address = "{a}.9:4710"
[[reference]]
name = "witness-b"
kind = "witness"
network = "B"
address = "{b}.9:4710"
[[group]]
name = "tank"
nodes = ["left", "right"]
references = ["witness-a", "witness-b"]
[[application]]
name = "levels"
group = "tank"
kind = "quadruple_tank"
channel = 1
period_ms = 50
[application.field]
address = "{plant}:5502"
"""


def free_network():
    """The second number of 127.N.0.0/16 that nobody else uses."""
    for n in range(100 + os.getpid() % 100, 250):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            with contextlib.suppress(OSError):
                probe.bind((f"127.{n}.1.1", 4700))
                return n
    raise RuntimeError("no network of the loopback interface is free")


async def until(what, condition):
    """Waits until `condition()` holds; returns what it gave."""
    end = time.monotonic() + PATIENCE_S
    while True:
        last = await condition()
        if last:
            return last
        if time.monotonic() > end:
            raise AssertionError(f"never came: {what}")
        await asyncio.sleep(0.05)


class Pair:
    """Processes in a folder of their own. `name` is the pair's."""

    def __init__(self, name):
        self.name = name
        self.folder = Path(tempfile.mkdtemp(prefix=f"bumpless-{name}-"))
        self.net = f"127.{free_network()}"
        self.hosts = {"left": f"{self.net}.0.1", "right": f"{self.net}.0.2"}
        self.processes = {}
        self.paths = {"a": f"{self.net}.1", "b": f"{self.net}.2", "plant": f"{self.net}.0.10"}
        text = CONFIGURATION.format(pair=name, folder=self.folder, **self.paths)
        (self.folder / "pair.toml").write_text(text)

    def key(self):
        return self.folder / f"{self.name}.key"

    def run(self, *command, code=0):
        done = subprocess.run([str(it) for it in command], capture_output=True, text=True, timeout=60)
        assert done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
        return done.stdout + done.stderr

    def start(self, name, *command):
        log = open(self.folder / f"{name}.log", "ab")
        self.processes[name] = subprocess.Popen([str(it) for it in command], stdout=log, stderr=log,
                                                stdin=subprocess.DEVNULL)
        log.close()

    def start_surroundings(self):
        self.start("plant", BUMPLESS, "plant", "--listen", f"{self.paths['plant']}:5502", "--check-epoch")
        self.start("witness", BUMPLESS, "witness", "--key", self.key(), "--listen", f"{self.paths['a']}.9:4710",
                   "--listen", f"{self.paths['b']}.9:4710")

    def start_node(self, node):
        self.start(node, BUMPLESS, "run", self.folder / "pair.toml", "--node", node)

    def send(self, name, number):
        self.processes[name].send_signal(number)

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def events(self, name):
        """What a bridge has told."""
        lines = (self.folder / f"{name}.log").read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def status(self, node):
        done = subprocess.run([BUMPLESS, "status", "--json", self.folder / "pair.toml", "--node", node],
                              capture_output=True, text=True, timeout=30)
        return json.loads(done.stdout)

    def end(self):
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder)
