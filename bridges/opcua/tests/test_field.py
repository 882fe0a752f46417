"""What the field driver promises (spec/field-driver.md, J-40 and further), held with real pairs against a server that shares no
code with it."""

import asyncio
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import unittest
from pathlib import Path

from asyncua.crypto.cert_gen import setup_self_signed_certificate
from cryptography.x509.oid import ExtendedKeyUsageOID

from pair_on_loopback import BUMPLESS, NODES, Pair, until

BRIDGE = os.environ["BUMPLESS_BRIDGE"]
PAIR = "field-test"
ROOT = Path(__file__).resolve().parents[3]

# The log of the event loop tells of slow steps, which a busy machine has.
logging.disable(logging.CRITICAL)

PROGRAM = """
import ctypes
import bumpless


class State(ctypes.Structure):
    _fields_ = [("count", ctypes.c_double)]


def step(cycle, inputs, outputs, state):
    state.count += 1
    outputs[0] = state.count
    outputs[1] = inputs[0] * 10


bumpless.run(step, inputs=4, outputs=2, state=State, state_version=1)
"""

APPLICATION = """
[[application]]
name = "furnace"
group = "tank"
kind = "process"
channel = 1
period_ms = 50
file = "{folder}/program.py"
command = ["env", "PYTHONPATH={root}/crates/product/program/python", "{python}"]
state_max = 4096
[application.field]
timeout_ms = 20
[[application.field.device]]
name = "furnace"
kind = "opcua"
address = "{server}"
driver = "{driver}"
{security}
[[application.input]]
name = "level"
device = "furnace"
point = "{space};s=level"
[[application.input]]
name = "quality"
device = "furnace"
area = "quality"
point = "{space};s=level"
[[application.input]]
name = "age"
device = "furnace"
area = "age"
point = "{space};s=level"
[[application.input]]
name = "there"
device = "furnace"
area = "answers"
[[application.output]]
name = "count"
device = "furnace"
point = "{space};s=count"
[[application.output]]
name = "echo"
device = "furnace"
point = "{space};s=echo"
type = "i16"
scale = 0.5
"""


class Site(Pair):
    """The pair, with the furnace behind an OPC UA server."""

    def __init__(self, security, space="ns=2"):
        super().__init__(PAIR)
        self.server_address = f"{self.net}.0.10:4840"
        (self.folder / "program.py").write_text(textwrap.dedent(PROGRAM))
        config = self.folder / "pair.toml"
        head, _ = config.read_text().split("[[application]]", 1)
        config.write_text(head + APPLICATION.format(
            folder=self.folder, root=ROOT, python=sys.executable, server=self.server_address, driver=BRIDGE,
            security=security, space=space))
        self.run(BUMPLESS, "key", "new", self.key())

    async def certificates(self):
        """Of the server, and of both nodes."""
        self.server_files = self.folder / "server"
        self.server_files.mkdir()
        await setup_self_signed_certificate(self.server_files / "key.pem", self.server_files / "certificate.der",
                                            "urn:test:furnace", "localhost", [ExtendedKeyUsageOID.SERVER_AUTH],
                                            {"commonName": "furnace"})
        (self.folder / "opcua" / "servers").mkdir(parents=True)
        shutil.copy(self.server_files / "certificate.der", self.folder / "opcua" / "servers" / "furnace.der")
        for node in NODES:
            self.run(BRIDGE, "certificate", "--uri", f"urn:bumpless:{PAIR}:{node}", "--host", self.hosts[node],
                     "--files", self.folder / "opcua" / f"{node}.{PAIR}")

    def start_server(self, *more):
        log = open(self.folder / "server.log", "ab")
        script = Path(__file__).with_name("field_server.py")
        command = [sys.executable, script, f"opc.tcp://{self.server_address}/", *more]
        self.processes["server"] = subprocess.Popen([str(it) for it in command], stdin=subprocess.PIPE, stdout=log,
                                                    stderr=log)
        log.close()

    async def serve(self, *server):
        """Starts a server, in the place of one that is killed if there is one."""
        before = self.processes.pop("server", None)
        if before:
            before.kill()
            before.wait()
            before.stdin.close()
        listening = len(self.told("listening"))
        self.start_server(*server)

        async def listens():
            return len(self.told("listening")) > listening
        await until("the server", listens)

    def told(self, event):
        """What the server has told of it, if there has been one."""
        log = self.folder / "server.log"
        return [it for it in self.events("server") if it["event"] == event] if log.exists() else []

    async def start_all(self, *server):
        await self.serve(*server)
        self.start("witness", BUMPLESS, "witness", "--key", self.key(), "--listen", f"{self.paths['a']}.9:4710",
                   "--listen", f"{self.paths['b']}.9:4710")
        for node in NODES:
            self.start_node(node)

    def end(self):
        if "server" in self.processes:
            self.processes["server"].stdin.close()
        super().end()

    async def set(self, line):
        before = len(self.told("done"))
        server = self.processes["server"]
        server.stdin.write(f"{line}\n".encode())
        server.stdin.flush()

        async def done():
            return len(self.told("done")) > before
        await until(f"the server's {line}", done)

    def counts(self):
        return [it["value"] for it in self.events("server") if it["event"] == "write" and it["node"] == "count"]

    async def more(self, count=5):
        before = len(self.counts())

        async def written():
            return len(self.counts()) >= before + count
        await until("outputs", written)

    def device(self, node):
        field = self.status(node)["applications"][0]["field"]
        return field["devices"][0]

    async def answers(self, node):
        """The device as `node` shows it, when it answers there."""
        async def found():
            device = self.device(node)
            return device if device["answers"] else None
        return await until(f"the device answers {node}", found)

    def inputs(self, node):
        done = subprocess.run([BUMPLESS, "values", "--json", str(self.folder / "pair.toml"), "--node", node],
                              capture_output=True, text=True, timeout=30)
        values = json.loads(done.stdout)["applications"][0]["inputs"]["values"]
        return {it["name"]: it["value"] for it in values}

    async def roles(self):
        """Primary and backup of a redundant pair."""
        async def found():
            groups = {node: self.status(node).get("groups") for node in NODES}
            if not all(groups.values()):
                return None
            roles = {groups[node][0]["role"]: node for node in NODES}
            redundant = any(groups[node][0]["redundancy"] == "ok" for node in NODES)
            return roles if redundant and set(roles) == {"primary", "backup"} else None
        roles = await until("a redundant pair", found)
        return roles["primary"], roles["backup"]

    async def says(self, node, *words):
        async def said():
            weaknesses = self.status(node).get("weaknesses", [])
            return next((it for it in weaknesses if all(word in it for word in words)), None)
        return await until(f"{words} in the status of {node}", said)


class Secure(unittest.IsolatedAsyncioTestCase):
    policy = "Basic256Sha256"

    async def asyncSetUp(self):
        self.site = Site(f'files = "opcua"\npolicy = "{self.policy}"')
        self.addCleanup(self.site.end)
        await self.site.certificates()
        await self.site.start_all(self.site.server_files)

    def no_output_is_older(self):
        counts = self.site.counts()
        self.assertEqual(counts, sorted(counts))
        steps = [after - before for before, after in zip(counts, counts[1:])]
        self.assertTrue(all(step >= 0 for step in steps), steps)

    async def test_outputs_go_on_from_the_last_through_kills_of_the_primary(self):
        primary, backup = await self.site.roles()
        await self.site.more(10)
        for _ in range(2):
            self.site.kill(primary)
            await self.site.more(10)
            self.site.start_node(primary)
            primary, backup = await self.site.roles()
        await self.site.more(10)
        self.no_output_is_older()
        for node in NODES:
            device = await self.site.answers(node)
            self.assertEqual((device["kind"], device["security"]), ("opcua", self.policy))
            self.assertIn("bumpless-opcua", device["driver"]["what"])
        writes = [it for it in self.site.events("server") if it["event"] == "write"]
        self.assertEqual({(it["node"], it["type"]) for it in writes}, {("count", "Double"), ("echo", "Int16")})
        echoed = [it["value"] for it in writes if it["node"] == "echo"]
        self.assertEqual(echoed[-1], 200, "10.0, times ten, in halves")
        weaknesses = " ".join(self.site.status(backup)["weaknesses"])
        self.assertIn('device "furnace": compares no epochs', weaknesses)
        self.assertNotIn("policy", weaknesses)


class Aes256(Secure):
    policy = "Aes256_Sha256_RsaPss"


class Trouble(unittest.IsolatedAsyncioTestCase):
    """A pair without security; each trouble in its turn."""

    async def asyncSetUp(self):
        self.site = Site('policy = "None"')
        self.addCleanup(self.site.end)
        await self.site.start_all()
        self.primary, self.backup = await self.site.roles()
        await self.site.more()

    async def test_quality_of_values_and_state_of_the_server_reach_the_program(self):
        await self.site.says(self.primary, "furnace", "policy")

        async def has(**wanted):
            async def found():
                inputs = self.site.inputs(self.primary)
                return all(inputs[name] == value for name, value in wanted.items())
            await until(str(wanted), found)
        await has(level=10, quality=2, there=1)
        await self.site.set("12.5 UncertainLastUsableValue")
        await has(level=12.5, quality=1, there=1)
        await self.site.set("99.0 BadSensorFailure")
        await has(level=12.5, quality=0, there=1)
        await self.site.set("13.0 Good")
        await has(level=13, quality=2, there=1)
        self.assertLess(self.site.inputs(self.primary)["age"], 10_000)
        await self.site.set("state 3")
        await has(level=13, quality=0)
        await self.site.says(self.primary, "state 3")
        await self.site.set("state 0")
        await has(level=13, quality=2)

    async def test_a_server_that_stands_still_or_dies_is_named_and_used_again(self):
        for number in (signal.SIGSTOP, signal.SIGKILL):
            server = self.site.processes["server"]
            server.send_signal(number)
            await self.site.says(self.primary, "furnace", "does not answer this node")
            if number == signal.SIGSTOP:
                server.send_signal(signal.SIGCONT)
            else:
                server.wait()
                server.stdin.close()
                self.site.start_server()
            await self.site.more(10)

            for node in NODES:
                await self.site.answers(node)
            failed = self.site.device(self.primary)["driver"]["last_failure"]
            # What hangs is the server, and the driver says so, unless the machine keeps it from that.
            if failed:
                self.assertIn("has not answered an order", failed["cause"])

    async def test_a_driver_that_stands_still_sends_nothing_late_and_is_replaced(self):
        for pause in (0.2, 3):
            before = self.site.device(self.primary)["driver"]
            os.kill(before["pid"], signal.SIGSTOP)
            await asyncio.sleep(pause)
            try:
                os.kill(before["pid"], signal.SIGCONT)
            except ProcessLookupError:
                pass
            await self.site.more(10)
        after = self.site.device(self.primary)["driver"]
        self.assertNotEqual(after["pid"], before["pid"])
        self.assertIn("has not answered an order", after["last_failure"]["cause"])
        counts = self.site.counts()
        self.assertEqual(counts, sorted(counts))

    async def test_nothing_is_left_when_a_node_is_killed(self):
        pid = self.site.device(self.backup)["driver"]["pid"]
        os.kill(pid, signal.SIGSTOP)
        self.site.kill(self.backup)

        async def gone():
            return not Path(f"/proc/{pid}").exists()
        await until("the driver's end", gone)


class Refused(unittest.IsolatedAsyncioTestCase):
    async def test_another_servers_certificate_is_refused_and_said(self):
        site = Site('files = "opcua"')
        self.addCleanup(site.end)
        await site.certificates()
        other = site.folder / "other"
        other.mkdir()
        await setup_self_signed_certificate(other / "key.pem", other / "certificate.der", "urn:test:furnace",
                                            "localhost", [ExtendedKeyUsageOID.SERVER_AUTH], {"commonName": "furnace"})
        await site.start_all(other)
        for node in NODES:
            await site.says(node, "furnace", "another certificate than")
        self.assertEqual(site.counts(), [])

    async def test_all_that_is_wrong_with_files_is_said_by_status(self):
        site = Site('files = "opcua"')
        self.addCleanup(site.end)
        await site.start_all()
        told = await site.says("left", "it refuses", "certificate.der", "key.pem", "furnace.der")
        self.assertIn("started again in", told)


if __name__ == "__main__":
    unittest.main(verbosity=2)
