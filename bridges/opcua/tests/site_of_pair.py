"""A pair on loopback addresses with a bridge beside each node, as processes of their own, and an OPC UA client."""

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

from asyncua import Client, ua
from asyncua.crypto.cert_gen import setup_self_signed_certificate
from asyncua.crypto.security_policies import SecurityPolicyBasic256Sha256
from cryptography.x509.oid import ExtendedKeyUsageOID

BUMPLESS = os.environ["BUMPLESS_BINARY"]
BRIDGE = os.environ["BUMPLESS_OPCUA_BINARY"]
NODES = ("left", "right")
PAIR = "opcua-test"
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


class Site:
    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="bumpless-opcua-"))
        net = f"127.{free_network()}"
        self.hosts = {"left": f"{net}.0.1", "right": f"{net}.0.2"}
        self.processes = {}
        self.paths = {"a": f"{net}.1", "b": f"{net}.2", "plant": f"{net}.0.10"}
        text = CONFIGURATION.format(pair=PAIR, folder=self.folder, **self.paths)
        (self.folder / "pair.toml").write_text(text)

    async def prepare(self):
        """Keys and certificates; a client that both bridges trust."""
        self.run(BUMPLESS, "key", "new", self.key())
        self.client = await self.new_client("client")
        for node in NODES:
            self.run(BRIDGE, "certificate", "--uri", self.uri(node), "--host", self.hosts[node],
                     "--files", self.files(node))
            self.run(BRIDGE, "trust", "--files", self.files(node), self.client / "certificate.der")

    def key(self):
        return self.folder / f"{PAIR}.key"

    def files(self, node):
        return self.folder / f"files-{node}"

    @staticmethod
    def uri(node):
        return f"urn:bumpless:{PAIR}:{node}"

    def url(self, node):
        return f"opc.tcp://{self.hosts[node]}:4840/"

    async def new_client(self, name):
        """A folder with certificate and key of a client."""
        folder = self.folder / name
        folder.mkdir()
        await setup_self_signed_certificate(folder / "key.pem", folder / "certificate.der", f"urn:test:{name}",
                                            "localhost", [ExtendedKeyUsageOID.CLIENT_AUTH], {"commonName": name})
        return folder

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

    def bridge_command(self, node, *more):
        other = NODES[1 - NODES.index(node)]
        return [BRIDGE, "run", "--json", "--control", self.folder / f"{node}.sock", "--uri", self.uri(node),
                "--partner-uri", self.uri(other), *more]

    def start_bridge(self, node):
        self.start(f"bridge-{node}", *self.bridge_command(node, "--listen", f"{self.hosts[node]}:4840", "--files",
                                                          self.files(node)))

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

    async def connect(self, url, folder=None, policy=SecurityPolicyBasic256Sha256):
        """A session, with the client's certificate in `folder`; `False`: without security."""
        client = Client(url, timeout=10)
        if folder is not False:
            folder = folder or self.client
            client.application_uri = f"urn:test:{folder.name}"
            await client.set_security(policy, folder / "certificate.der", folder / "key.pem",
                                      mode=ua.MessageSecurityMode.SignAndEncrypt)
        try:
            await client.connect()
        except BaseException:
            with contextlib.suppress(Exception):
                client.disconnect_socket()
            raise
        return client

    @contextlib.asynccontextmanager
    async def session(self, node, **how):
        client = await self.connect(self.url(node), **how)
        try:
            yield client
        finally:
            with contextlib.suppress(Exception):
                await asyncio.wait_for(client.disconnect(), 5)


async def level(client):
    return await client.get_node(ua.ObjectIds.Server_ServiceLevel).read_value()


async def shown(client, path):
    """The value of a node of ours."""
    return await client.get_node(f"ns=2;s={path}").read_value()


async def all_below(node, found=None):
    """Every node below `node`: identifier, with type for variables."""
    found = {} if found is None else found
    for child in await node.get_children():
        kind = await child.read_node_class()
        variable = kind == ua.NodeClass.Variable
        found[child.nodeid.to_string()] = (await child.read_data_type()).to_string() if variable else None
        await all_below(child, found)
    return found
