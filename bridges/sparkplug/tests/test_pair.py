"""The bridge's promises (spec/sparkplug.md), with real pairs, a broker, and a host application of its own."""

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import time
import unittest

from host import Host
from pair_on_loopback import BUMPLESS, NODES, Pair, until
from payload import boolean_command

BRIDGE = os.environ["BUMPLESS_BRIDGE"]
PAIR = "sparkplug-test"
DEVICE = "levels"
# That the machine was slow is no matter of these tests.
logging.disable(logging.CRITICAL)


class Site(Pair):
    def __init__(self):
        super().__init__(PAIR)
        self.broker = (f"{self.net}.0.20", 18830)

    def start_broker(self, *more):
        lines = [f"listener {self.broker[1]} {self.broker[0]}", "allow_anonymous true", "persistence false",
                 f"user {'root' if os.getuid() == 0 else 'nobody'}", *more]
        config = self.folder / "broker.conf"
        config.write_text("\n".join(lines) + "\n")
        self.start("broker", "mosquitto", "-c", config)

    async def broker_listens(self, port=None):
        host, usual = self.broker

        async def attempt():
            with socket.socket() as probe:
                return probe.connect_ex((host, port or usual)) == 0
        await until("the broker", attempt)

    def bridge_command(self, node, *more):
        host, port = self.broker
        return [BRIDGE, "--json", "--control", self.folder / f"{node}.sock", "--broker", f"{host}:{port}", "--group", PAIR,
                "--node", node, *more]

    def start_bridge(self, node, *more):
        self.start(f"bridge-{node}", *self.bridge_command(node, *(more or ("--insecure",))))


class WithPair(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.site = Site()
        self.addCleanup(self.site.end)
        self.site.start_broker()
        await self.site.broker_listens()
        self.host = Host(*self.site.broker, PAIR)
        self.addCleanup(self.host.end)
        self.site.run(BUMPLESS, "key", "new", self.site.key())
        self.site.start_surroundings()
        for node in NODES:
            self.site.start_node(node)
            self.site.start_bridge(node)

    async def until(self, what, look):
        async def condition():
            return self.host.seen(look)
        return await until(what, condition)

    async def in_hand(self, but=None):
        """The node under which the application's device lives, and the other one; both nodes answer, unless one is dead."""
        def look(edges):
            with_device = [node for node, edge in edges.items() if edge.alive and DEVICE in edge.devices]
            if len(with_device) != 1 or with_device == [but]:
                return None
            node = with_device[0]
            if edges[node].metrics.get("Groups/tank/Role") != "primary":
                return None
            return node, NODES[1 - NODES.index(node)]
        return await self.until("one device, at the primary", look)

    async def test_an_application_is_a_device_where_its_process_is_in_hand(self):
        primary, backup = await self.in_hand()
        device = self.host.seen(lambda edges: dict(edges[primary].devices[DEVICE]))
        self.assertEqual(sorted(device), ["Inputs/level_1", "Inputs/level_2", "Inputs/process_time", "Outputs/pump_1",
                                          "Outputs/pump_2"])
        self.assertTrue(all(value > 0 for name, value in device.items() if name != "Inputs/process_time"), device)
        at = device["Inputs/process_time"]
        await self.until("data", lambda edges: edges[primary].devices[DEVICE]["Inputs/process_time"] > at)
        await self.until("the backup's own metrics", lambda edges: edges[backup].metrics.get("Answers") is True
                         and edges[backup].metrics.get("Groups/tank/Role") == "backup")
        metrics = self.host.seen(lambda edges: dict(edges[primary].metrics))
        said = self.site.status(primary)
        self.assertEqual(metrics["Session"], said["session"])
        self.assertEqual(metrics["Groups/tank/Epoch"], said["groups"][0]["epoch"])
        self.assertEqual(metrics["Weaknesses"], said["weaknesses"])
        self.assertGreater(metrics["Counters/heartbeats_received"], 0)

        self.site.run(BUMPLESS, "switchover", self.site.folder / "pair.toml", "--node", primary)
        self.assertEqual(await self.in_hand(but=primary), (backup, primary))
        self.site.kill(backup)
        self.assertEqual(await self.in_hand(but=backup), (primary, backup))
        await self.until("the dead node's metrics end", lambda edges: edges[backup].alive
                         and edges[backup].metrics.get("Answers") is False and "Groups/tank/Role" not in edges[backup].metrics)

    async def test_a_killed_bridge_is_dead_and_an_interrupted_one_says_so_itself(self):
        primary, backup = await self.in_hand()
        self.site.kill(f"bridge-{primary}")
        await self.until("the will", lambda edges: not edges[primary].alive and edges[primary].deaths == 1)
        await self.until("the other one", lambda edges: edges[backup].alive)
        process = self.site.processes[f"bridge-{backup}"]
        process.send_signal(signal.SIGINT)
        await self.until("the last word", lambda edges: edges[backup].deaths >= 1 and not edges[backup].alive)
        self.assertEqual(process.wait(10), 0)
        self.assertEqual(self.site.events(f"bridge-{backup}")[-1]["event"], "stopping")

    async def test_a_host_that_asks_for_a_birth_gets_one_and_commands_nothing_else(self):
        primary, _ = await self.in_hand()
        births = self.host.seen(lambda edges: edges[primary].births)
        command = boolean_command("Node Control/Rebirth", int(time.time() * 1000))
        self.host.client.publish(f"spBv1.0/{PAIR}/NCMD/{primary}", command)
        await self.until("another birth, with the device", lambda edges: edges[primary].births > births
                         and DEVICE in edges[primary].devices)
        before = self.host.seen(lambda edges: edges[primary].devices[DEVICE]["Outputs/pump_1"])
        for junk in (b"", b"\xff" * 100, boolean_command("Outputs/pump_1", 1), os.urandom(2000)):
            self.host.client.publish(f"spBv1.0/{PAIR}/DCMD/{primary}/{DEVICE}", junk)
            self.host.client.publish(f"spBv1.0/{PAIR}/NCMD/{primary}", junk)
        at = self.host.seen(lambda edges: edges[primary].devices[DEVICE]["Inputs/process_time"])
        await self.until("it goes on", lambda edges: edges[primary].devices.get(DEVICE, {}).get("Inputs/process_time", 0)
                         > at)
        after = self.host.seen(lambda edges: edges[primary].devices[DEVICE]["Outputs/pump_1"])
        self.assertLess(abs(after - before), 1.0)

    async def test_a_broker_that_was_away_has_all_of_it_again(self):
        await self.in_hand()
        first = self.host.seen(lambda edges: {node: edge.births for node, edge in edges.items()})
        self.site.kill("broker")

        async def heard():
            return all(any(it["event"] == "disconnected" for it in self.site.events(f"bridge-{node}")) for node in NODES)
        await until("both bridges tell", heard)
        with self.host.lock:
            # The broker is dead, and told nobody of the wills that it had.
            for edge in self.host.edges.values():
                edge.alive, edge.devices = False, {}
        self.site.start_broker()
        await self.until("both are born again", lambda edges: all(edges[node].births > first[node] for node in NODES))
        await self.in_hand()


class Alone(unittest.IsolatedAsyncioTestCase):
    """A bridge beside what answers as a node would."""

    async def test_thousands_of_values_are_born_and_told_and_a_reply_that_is_none_is_no_data(self):
        site = Site()
        self.addCleanup(site.end)
        site.start_broker()
        await site.broker_listens()
        host = Host(*site.broker, PAIR)
        self.addCleanup(host.end)
        status = {"schema": "bumpless.status/1", "pair": "p", "weaknesses": [], "counters": {},
                  "groups": [{"name": "g", "role": "primary", "epoch": 1}], "applications": [{"name": "big", "group": "g"}]}
        listed = [{"name": f"input_{number}", "value": float(number), "answers": True} for number in range(3000)]
        values = {"schema": "bumpless.values/1", "applications": [{
            "name": "big", "inputs": {"age_ms": 1.0, "fresh": True, "values": listed},
            "outputs": {"age_ms": None, "fresh": False, "values": []}}]}
        broken = []

        async def node(reader, writer):
            asked = json.loads(await reader.readline())["command"]
            reply = broken[0] if broken else json.dumps({"status": status, "values": values}[asked])
            writer.write(reply.encode() + b"\n")
            writer.close()
        server = await asyncio.start_unix_server(node, site.folder / "left.sock")
        self.addCleanup(server.close)
        site.start_bridge("left")

        def big(edges):
            return edges.get("left") and edges["left"].devices.get("big")

        async def seen(look):
            return host.seen(look)
        device = await until("the device", lambda: seen(big))
        self.assertEqual(len(device), 3000)
        listed[2999]["value"] = 7.5
        await until("the change", lambda: seen(lambda edges: big(edges)["Inputs/input_2999"] == 7.5))
        listed.pop()
        await until("one fewer", lambda: seen(lambda edges: (count := big(edges)) and len(count) == 2999))
        for reply in ("{}", "rubbish", '{"schema":"bumpless.error/1","error":"no"}'):
            broken.append(reply)
            await until(f"no data from {reply}", lambda: seen(
                lambda edges: not big(edges) and edges["left"].metrics.get("Answers") is False))
            broken.clear()
            await until("data again", lambda: seen(lambda edges: big(edges) and edges["left"].metrics["Answers"]))


class Protected(unittest.IsolatedAsyncioTestCase):
    """A broker with TLS that lets in who shows a certificate. There is no node: what is published is that."""

    async def asyncSetUp(self):
        self.site = Site()
        self.addCleanup(self.site.end)
        for name in ("site", "other"):
            self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
                         f"/CN={name}", "-days", "2", "-keyout", self.file(f"{name}.key"), "-out", self.file(f"{name}.pem"))
        self.issue("broker", f"subjectAltName=IP:{self.site.broker[0]}")
        self.issue("left", "subjectAltName=DNS:left")
        self.site.start_broker(f"cafile {self.file('site.pem')}", f"certfile {self.file('broker.pem')}",
                               f"keyfile {self.file('broker.key')}", "require_certificate true",
                               f"listener {self.site.broker[1] + 1} {self.site.broker[0]}")
        await self.site.broker_listens()
        await self.site.broker_listens(self.site.broker[1] + 1)
        self.host = Host(self.site.broker[0], self.site.broker[1] + 1, PAIR)
        self.addCleanup(self.host.end)

    def file(self, name):
        return str(self.site.folder / name)

    def openssl(self, *arguments):
        done = subprocess.run(["openssl", *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def issue(self, name, extension):
        (self.site.folder / f"{name}.ext").write_text(f"{extension}\nbasicConstraints=CA:FALSE\n")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}",
                     "-keyout", self.file(f"{name}.key"), "-out", self.file(f"{name}.csr"))
        self.openssl("x509", "-req", "-in", self.file(f"{name}.csr"), "-CA", self.file("site.pem"), "-CAkey",
                     self.file("site.key"), "-CAcreateserial", "-days", "2", "-extfile", self.file(f"{name}.ext"), "-out",
                     self.file(f"{name}.pem"))
        (self.site.folder / f"{name}.key").chmod(0o600)

    def own(self):
        return ["--certificate", self.file("left.pem"), "--key", self.file("left.key")]

    async def refused(self, name):
        async def told():
            return [it for it in self.site.events(name) if it["event"] == "disconnected"]
        return (await until("it is told why there is no connection", told))[0]["cause"]

    async def test_who_shows_and_believes_a_certificate_publishes_and_nobody_else(self):
        self.site.start("stranger", *self.site.bridge_command("stranger", "--ca", self.file("site.pem")))
        self.site.start("misled", *self.site.bridge_command("misled", "--ca", self.file("other.pem"), *self.own()))
        self.site.start("open", *self.site.bridge_command("open", "--insecure"))
        self.assertIn("certificate", (await self.refused("misled")).lower())
        await self.refused("stranger")
        await self.refused("open")
        self.site.start("left", *self.site.bridge_command("left", "--ca", self.file("site.pem"), *self.own()))

        async def born():
            return self.host.seen(lambda edges: edges.get("left") and edges["left"].alive)
        await until("who may publishes", born)
        self.assertEqual(self.host.seen(lambda edges: sorted(edges)), ["left"])
        self.assertIs(self.host.seen(lambda edges: edges["left"].metrics["Answers"]), False, "there is no node")
        insecure = [it for it in self.site.events("open") if it["event"] == "insecure"]
        self.assertIn("without TLS", insecure[0]["weakness"])

    async def test_what_is_wrong_is_told_at_once_and_an_exposed_key_is_refused(self):
        (self.site.folder / "left.key").chmod(0o644)
        told = self.site.run(*self.site.bridge_command("a/b", "--ca", self.file("left.key"), *self.own()), code=2)
        for wrong in ("--node 'a/b'", "left.key: ", "has no certificate in PEM"):
            self.assertIn(wrong, told)
        for secret in (self.site.folder / "left.key").read_text().splitlines()[1:3]:
            self.assertNotIn(secret, told)


if __name__ == "__main__":
    unittest.main(verbosity=2)
