"""What the bridge promises (spec/opcua.md), held against real pairs with a client that shares no code with it."""

import asyncio
import contextlib
import json
import logging
import random
import signal
import socket
import time
import unittest

from asyncua import Client, ua
from asyncua.crypto.security_policies import SecurityPolicyAes256Sha256RsaPss, SecurityPolicyBasic256Sha256

from site_of_pair import BRIDGE, BUMPLESS, NODES, PATIENCE_S, Site, all_below, level, shown, until

HEALTHY, NO_DATA = 200, 1
# What the client says of refusals is what the tests are about.
logging.disable(logging.CRITICAL)


def other(node):
    return NODES[1 - NODES.index(node)]


class Pair(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.site = Site()
        self.addCleanup(self.site.end)
        await self.site.prepare()
        self.site.start_surroundings()
        for node in NODES:
            self.site.start_node(node)
            self.site.start_bridge(node)

    async def connected(self, node, **how):
        """A session with a bridge that may be starting still."""
        async def attempt():
            with contextlib.suppress(OSError):
                return await self.site.connect(self.site.url(node), **how)
        client = await until(f"the bridge of {node}", attempt)
        self.addAsyncCleanup(self.close, client)
        return client

    @staticmethod
    async def close(client):
        with contextlib.suppress(Exception):
            await asyncio.wait_for(client.disconnect(), 5)

    async def redundant(self):
        """Primary and backup, by what both bridges show, and a session with each."""
        clients = {node: await self.connected(node) for node in NODES}

        async def both():
            levels = {node: await level(clients[node]) for node in NODES}
            if sorted(levels.values()) == [220, 255]:
                return max(levels, key=levels.get)
        primary = await until("a redundant pair in both ServiceLevels", both)
        return primary, other(primary), clients


class Redundancy(Pair):
    async def test_both_servers_show_the_pair_as_hot_redundancy_with_the_primary_above(self):
        primary, backup, clients = await self.redundant()
        for node, role in ((primary, "primary"), (backup, "backup")):
            client = clients[node]
            self.assertEqual(await shown(client, "Groups/tank/Role"), role)
            self.assertEqual(await shown(client, "Applications/levels/Role"), role)
            self.assertEqual(await shown(client, "Node"), node)
            self.assertGreaterEqual(await level(client), HEALTHY)
            self.assertEqual(await client.get_node(3709).read_value(), ua.RedundancySupport.Hot)
            uris = await client.get_node(11314).read_value()
            self.assertEqual(uris, sorted(self.site.uri(it) for it in NODES))
            redundancy = client.get_node(ua.ObjectIds.Server_ServerRedundancy)
            self.assertEqual((await redundancy.read_type_definition()).Identifier,
                             ua.ObjectIds.NonTransparentRedundancyType)
            names = [(await child.read_browse_name()).Name for child in await redundancy.get_children()]
            self.assertEqual(sorted(names), ["RedundancySupport", "ServerUriArray"])
            status = await client.get_node(ua.ObjectIds.Server_ServerStatus).read_value()
            self.assertEqual(status.State, ua.ServerState.Running)
            said = self.site.status(node)
            self.assertEqual(await shown(client, "Session"), said["session"])
            self.assertEqual(await shown(client, "Groups/tank/Epoch"), said["groups"][0]["epoch"])
            self.assertEqual(await shown(client, "Weaknesses"), said["weaknesses"])
            self.assertEqual(await shown(client, "Links/A/Partner"), other(node))
            self.assertGreater(await shown(client, "Counters/heartbeats_received"), 0)
        below = [await all_below(await clients[node].nodes.objects.get_child("2:Bumpless")) for node in NODES]
        self.assertGreater(len(below[0]), 80)
        self.assertEqual(below[0], below[1], "both servers have the same nodes (OPC 10000-4, 6.6.2.2)")

    async def test_inputs_and_outputs_are_good_at_the_primary_alone(self):
        primary, backup, clients = await self.redundant()
        level_1, pump_1 = "Applications/levels/Inputs/level_1", "Applications/levels/Outputs/pump_1"

        async def has(node, path, status):
            node = clients[node].get_node(f"ns=2;s={path}")
            value = await node.read_data_value(raise_on_bad_status=False)
            return value if value.StatusCode.value == status else None

        for path in (level_1, pump_1):
            good = await until(f"{path} of {primary}", lambda: has(primary, path, ua.StatusCodes.Good))
            self.assertGreater(good.Value.Value, 0)
            self.assertEqual(good.Value.VariantType, ua.VariantType.Double)
            never = await has(backup, path, ua.StatusCodes.BadWaitingForInitialData)
            self.assertIsNotNone(never, "a backup reads no inputs and writes no outputs")
        self.site.run(BUMPLESS, "switchover", self.site.folder / "pair.toml", "--node", primary)
        for path in (level_1, pump_1):
            await until(f"{path} of {backup}", lambda: has(backup, path, ua.StatusCodes.Good))
            old = await until(f"{path} of {primary} as old",
                              lambda: has(primary, path, ua.StatusCodes.UncertainLastUsableValue))
            self.assertGreater(old.Value.Value, 0)
        self.site.kill("plant")
        for path in (level_1, pump_1):
            await until(f"{path} of {backup} as old",
                        lambda: has(backup, path, ua.StatusCodes.UncertainLastUsableValue))
        with self.assertRaises(ua.uaerrors.BadUserAccessDenied):
            await clients[backup].get_node(f"ns=2;s={pump_1}").write_value(1.0)

    async def test_a_killed_primary_falls_to_no_data_and_the_backup_rises_above(self):
        primary, backup, clients = await self.redundant()
        heard = asyncio.Queue()

        class Handler:
            def datachange_notification(self, _node, value, _data):
                heard.put_nowait((time.monotonic(), value))

        subscription = await clients[primary].create_subscription(100, Handler())
        await subscription.subscribe_data_change(clients[primary].get_node(ua.ObjectIds.Server_ServiceLevel))
        role = clients[primary].get_node("ns=2;s=Groups/tank/Role")
        killed = time.monotonic()
        self.site.kill(primary)
        while True:
            at, value = await asyncio.wait_for(heard.get(), PATIENCE_S)
            if value <= NO_DATA:
                print(f"a subscriber heard of the dead node after {1000 * (at - killed):.0f} ms", flush=True)
                break
        lost = await role.read_data_value(raise_on_bad_status=False)
        self.assertEqual(lost.StatusCode.value, ua.StatusCodes.BadNoCommunication)
        state = await clients[primary].get_node(ua.ObjectIds.Server_ServerStatus_State).read_value()
        self.assertEqual(state, ua.ServerState.CommunicationFault)

        async def taken_over():
            return await level(clients[backup]) == 255
        await until("the backup's level of a primary", taken_over)
        self.assertEqual(await shown(clients[backup], "Groups/tank/Role"), "primary")
        # The node comes back; the same session, the same bridge.
        self.site.start_node(primary)

        async def returned():
            return await level(clients[primary]) == 220
        await until("the level of a backup", returned)
        self.assertEqual(await role.read_value(), "backup")

    async def test_a_node_that_stands_still_has_no_data_until_it_goes_on(self):
        _, backup, clients = await self.redundant()
        self.site.send(backup, signal.SIGSTOP)

        async def is_lost():
            return await level(clients[backup]) == NO_DATA
        await until("no data", is_lost)
        self.site.send(backup, signal.SIGCONT)

        async def is_back():
            return await level(clients[backup]) >= HEALTHY
        await until("a healthy node", is_back)
        # A bridge that stands still or dies is nothing to its node.
        before = self.site.status(backup)["session"]
        self.site.send(f"bridge-{backup}", signal.SIGSTOP)
        self.site.kill(f"bridge-{other(backup)}")
        executed = self.site.status(other(backup))["counters"]["outputs_written"]

        async def goes_on():
            return self.site.status(other(backup))["counters"]["outputs_written"] > executed + 3
        await until("outputs", goes_on)
        self.assertEqual(self.site.status(backup)["session"], before)

    async def test_an_interrupted_bridge_says_maintenance_before_it_ends(self):
        primary, _, clients = await self.redundant()
        heard = asyncio.Queue()

        class Handler:
            def datachange_notification(self, _node, value, _data):
                heard.put_nowait(value)

        subscription = await clients[primary].create_subscription(100, Handler())
        await subscription.subscribe_data_change(clients[primary].get_node(ua.ObjectIds.Server_ServiceLevel))
        self.assertEqual(await asyncio.wait_for(heard.get(), PATIENCE_S), 255)
        bridge = self.site.processes[f"bridge-{primary}"]
        bridge.send_signal(signal.SIGINT)
        self.assertEqual(await asyncio.wait_for(heard.get(), PATIENCE_S), 0)
        self.assertEqual(await asyncio.to_thread(bridge.wait, PATIENCE_S), 0)
        self.assertEqual(self.site.events(f"bridge-{primary}")[-2]["event"], "stopping")


class Strangers(Pair):
    """One pair for all that those who may not, or who mean harm, try; after each a good client is served."""

    async def test_strangers_get_nothing_and_stop_nothing(self):
        self.node, _, self.clients = await self.redundant()
        for attempt in (self.writes, self.unknown_certificate, self.without_security, self.garbage,
                        self.bytes_changed_on_the_way, self.too_many_connections, self.too_many_subscriptions,
                        self.foreign_key, self.trust_taken_back):
            with self.subTest(attempt.__name__):
                await attempt()
                async with self.site.session(self.node, policy=SecurityPolicyAes256Sha256RsaPss) as good:
                    self.assertEqual(await shown(good, "Groups/tank/Role"), "primary")
        self.assertIsNone(self.site.processes[f"bridge-{self.node}"].poll())

    async def writes(self):
        client = self.clients[self.node]
        before = await shown(client, "Groups/tank/Role")
        for path in ("Groups/tank/Role", "Pair"):
            with self.assertRaises(ua.uaerrors.BadUserAccessDenied):
                await client.get_node(f"ns=2;s={path}").write_value("backup")
        with self.assertRaises(ua.UaError):
            await client.get_node(ua.ObjectIds.Server_ServiceLevel).write_value(ua.Variant(3, ua.VariantType.Byte))
        for attribute in (ua.AttributeIds.BrowseName, ua.AttributeIds.AccessLevel):
            value = ua.DataValue(ua.Variant(3, ua.VariantType.Byte))
            with self.assertRaises(ua.uaerrors.BadNotWritable):
                await client.get_node("ns=2;s=Pair").write_attribute(attribute, value)
        with self.assertRaises(ua.UaError):
            await client.nodes.objects.add_variable("ns=2;s=Mine", "2:Mine", 3)
        _, deleted = await client.delete_nodes([client.get_node("ns=2;s=Pair")])
        self.assertFalse(deleted[0].is_good(), deleted)
        self.assertEqual(await shown(client, "Groups/tank/Role"), before)
        self.assertNotEqual(await level(client), 3)

    async def unknown_certificate(self):
        stranger = await self.site.new_client("stranger")
        with self.assertRaises((ua.UaError, OSError, TimeoutError)):
            await self.site.connect(self.site.url(self.node), folder=stranger)
        await self.refused("certificate_not_trusted")
        kept = list((self.site.files(self.node) / "rejected").iterdir())
        self.assertEqual(len(kept), 1)
        # Whoever is responsible may let it in, by the certificate that was kept.
        self.site.run(BRIDGE, "trust", "--files", self.site.files(self.node), kept[0])
        async with self.site.session(self.node, folder=stranger) as client:
            self.assertEqual(await shown(client, "Node"), self.node)

    async def foreign_key(self):
        """The certificate of a trusted client, which is no secret, with another key."""
        thief = await self.site.new_client("thief")
        (thief / "certificate.der").write_bytes((self.site.client / "certificate.der").read_bytes())
        with self.assertRaises((ua.UaError, OSError, TimeoutError)):
            await self.site.connect(self.site.url(self.node), folder=thief)

    async def without_security(self):
        endpoints = await Client(self.site.url(self.node)).connect_and_get_server_endpoints()
        offered = {(it.SecurityMode, it.SecurityPolicyUri.split("#")[1], it.EndpointUrl) for it in endpoints}
        secure = ua.MessageSecurityMode.SignAndEncrypt
        url = self.site.url(self.node)
        self.assertEqual(offered, {(secure, "Basic256Sha256", url), (secure, "Aes256_Sha256_RsaPss", url)})
        with self.assertRaises((ua.UaError, OSError, TimeoutError)):
            await self.site.connect(url, folder=False)
        await self.refused("request_without_security")

    async def garbage(self):
        luck = random.Random(7)
        pieces = [b"GET / HTTP/1.1\r\n\r\n", b"\0" * 4096, b"HELF\xff\xff\xff\xff", b"OPNF\x20\0\0\0" + b"\xff" * 24,
                  b"MSGF\x18\0\0\0" + b"\0" * 16, b"HEL"]
        pieces += [luck.randbytes(luck.randrange(1, 3000)) for _ in range(30)]
        for piece in pieces:
            # From an address of its own: what is being closed takes nobody else's share of connections.
            to, from_address = (self.site.hosts[self.node], 4840), ("127.0.0.78", 0)
            with contextlib.suppress(OSError), socket.create_connection(to, 5, from_address) as it:
                it.sendall(piece)
        await self.refused("no_opc_ua")

    async def bytes_changed_on_the_way(self):
        """Somebody between client and server changes a byte now and then; nobody is fooled and nobody falls."""
        luck = random.Random(11)

        async def pass_on(reader, writer, broken_at):
            passed = 0
            with contextlib.suppress(OSError):
                while data := await reader.read(4096):
                    data = bytearray(data)
                    if passed <= broken_at < passed + len(data):
                        data[broken_at - passed] ^= 1 << luck.randrange(8)
                    passed += len(data)
                    writer.write(data)
                    await writer.drain()
            writer.close()

        async def between(reader, writer):
            far_reader, far_writer = await asyncio.open_connection(self.site.hosts[self.node], 4840)
            await asyncio.gather(pass_on(reader, far_writer, luck.randrange(60, 4000)),
                                 pass_on(far_reader, writer, 1 << 40))

        way = await asyncio.start_server(between, "127.0.0.1", 0)
        port = way.sockets[0].getsockname()[1]
        fooled = 0
        for _ in range(12):
            with contextlib.suppress(ua.UaError, OSError, TimeoutError, asyncio.IncompleteReadError):
                client = Client(f"opc.tcp://127.0.0.1:{port}/", timeout=1)
                client.application_uri = "urn:test:client"
                certificate, key = self.site.client / "certificate.der", self.site.client / "key.pem"
                await client.set_security(SecurityPolicyBasic256Sha256, certificate, key, mode=ua.MessageSecurityMode.SignAndEncrypt,
                                          server_certificate=self.site.files(self.node) / "certificate.der")
                await asyncio.wait_for(client.connect(), 2)
                fooled += await shown(client, "Groups/tank/Role") != "primary"
                with contextlib.suppress(Exception):
                    client.disconnect_socket()
        way.close()
        self.assertEqual(fooled, 0)

    async def too_many_connections(self):
        """A flood from one address is held to its share; another address is served meanwhile."""
        held = []
        for _ in range(200):
            it = socket.create_connection((self.site.hosts[self.node], 4840), 5, ("127.0.0.77", 0))
            held.append(it)
        await self.refused("too_many_connections_of_one_address")
        async with self.site.session(self.node) as meanwhile:
            self.assertEqual(await shown(meanwhile, "Node"), self.node)
        open_still = 0
        for it in held:
            it.setblocking(False)
            try:
                open_still += it.recv(1) != b""
            except BlockingIOError:
                open_still += 1
            except ConnectionError:
                pass
            it.close()
        self.assertLessEqual(open_still, 16)

    async def too_many_subscriptions(self):
        client = self.clients[self.node]
        made = []
        with self.assertRaises(ua.uaerrors.BadTooManySubscriptions):
            for _ in range(12):
                made.append(await client.create_subscription(1000, self))
        self.assertLessEqual(len(made), 10)
        node = client.get_node("ns=2;s=UptimeS")
        with self.assertRaises(ua.uaerrors.BadTooManyMonitoredItems):
            for _ in range(3):
                await made[0].subscribe_data_change([node] * 500)
        for subscription in made:
            await subscription.delete()

    async def trust_taken_back(self):
        client = await self.site.new_client("former")
        self.site.run(BRIDGE, "trust", "--files", self.site.files(self.node), client / "certificate.der")
        async with self.site.session(self.node, folder=client) as session:
            self.assertEqual(await shown(session, "Node"), self.node)
        kept = [it for it in (self.site.files(self.node) / "trusted").iterdir() if "former" in it.name]
        self.assertEqual(len(kept), 1)
        kept[0].unlink()
        with self.assertRaises((ua.UaError, OSError, TimeoutError)):
            await self.site.connect(self.site.url(self.node), folder=client)

    def datachange_notification(self, *_):
        pass

    async def refused(self, cause):
        """Waits until the bridge has told of such a refusal; it tells one of a cause in a second, and counts the others."""
        async def told():
            events = self.site.events(f"bridge-{self.node}")
            return any(it["event"] == "refused_client" and it["cause"] == cause for it in events)
        await until(f"a refusal: {cause}", told)


class Alone(unittest.IsolatedAsyncioTestCase):
    """Bridges without a node."""

    async def asyncSetUp(self):
        self.site = Site()
        self.addCleanup(self.site.end)

    async def test_without_security_it_says_so_in_its_output_and_to_every_client(self):
        url = f"opc.tcp://{self.site.hosts['left']}:4840/"
        self.site.start("bridge-left", *self.site.bridge_command("left", "--insecure", "--listen",
                                                                 f"{self.site.hosts['left']}:4840"))

        async def connected():
            with contextlib.suppress(OSError):
                return await self.site.connect(url, folder=False)
        client = await until("the bridge", connected)
        build = await client.get_node(ua.ObjectIds.Server_ServerStatus_BuildInfo).read_value()
        self.assertIn("WITHOUT SECURITY", build.ProductName)
        self.assertEqual(await level(client), NO_DATA, "there is no node")
        self.assertEqual(await client.get_node(3709).read_value(), ua.RedundancySupport.Hot)
        await client.disconnect()
        told = [it for it in self.site.events("bridge-left") if it["event"] == "insecure"]
        self.assertEqual(len(told), 1)
        self.assertIn("without security", told[0]["weakness"])

    async def test_what_is_gone_from_the_status_is_gone_and_a_reply_that_is_none_is_no_data(self):
        status = {"schema": "bumpless.status/1", "snapshot_age_ms": 5, "pair": "p", "weaknesses": [], "applications": [
            {"name": name, "group": "g", "period_ms": 10} for name in ("stays", "goes")],
            "groups": [{"name": "g", "role": "backup", "synced": True}]}
        reply = [json.dumps(status)]

        async def node(reader, writer):
            await reader.readline()
            writer.write(reply[0].encode() + b"\n")
            writer.close()
        server = await asyncio.start_unix_server(node, self.site.folder / "left.sock")
        self.site.start("bridge-left", *self.site.bridge_command("left", "--insecure", "--listen",
                                                                 f"{self.site.hosts['left']}:4840"))

        async def connected():
            with contextlib.suppress(OSError):
                return await self.site.connect(self.site.url("left"), folder=False)
        client = await until("the bridge", connected)

        async def is_at(wanted):
            return await level(client) == wanted
        await until("a backup", lambda: is_at(220))
        self.assertEqual(await shown(client, "Applications/goes/PeriodMs"), 10)
        status["applications"].pop()
        status["groups"][0]["role"] = "primary"
        status["groups"][0]["writes_outputs"] = True
        reply[0] = json.dumps(status)
        await until("a primary", lambda: is_at(255))
        self.assertEqual(await shown(client, "Applications/stays/PeriodMs"), 10)
        with self.assertRaises(ua.uaerrors.BadNodeIdUnknown):
            await shown(client, "Applications/goes/PeriodMs")
        for broken in ("{}", "[]", "rubbish", '{"schema":"bumpless.error/1","error":"no"}', '{"schema":'):
            reply[0] = broken
            await until(f"no data from {broken}", lambda: is_at(NO_DATA))
            reply[0] = json.dumps(status)
            await until("a primary again", lambda: is_at(255))
        await client.disconnect()
        server.close()

    async def test_what_is_wrong_is_told_at_once_and_an_exposed_key_is_refused(self):
        await self.site.prepare()
        files = self.site.files("left")
        (files / "key.pem").chmod(0o644)
        (files / "trusted").chmod(0o777)
        command = self.site.bridge_command("right", "--files", files, "--listen", "0.0.0.0:4840")
        told = self.site.run(*command, code=2)
        for wrong in ("key.pem may be read", "trusted may be written", "does not say how clients call",
                      "certificate.der does not say --uri"):
            self.assertIn(wrong, told)
        for secret in (files / "key.pem").read_text().splitlines()[1:3]:
            self.assertNotIn(secret, told)


if __name__ == "__main__":
    unittest.main(verbosity=2)
