"""A pair on loopback addresses with an OPC UA bridge beside each node, and an OPC UA client."""

import asyncio
import contextlib
import os

from asyncua import Client, ua
from asyncua.crypto.cert_gen import setup_self_signed_certificate
from asyncua.crypto.security_policies import SecurityPolicyBasic256Sha256
from cryptography.x509.oid import ExtendedKeyUsageOID

from pair_on_loopback import BUMPLESS, NODES, PATIENCE_S, Pair, until

BRIDGE = os.environ["BUMPLESS_BRIDGE"]
PAIR = "opcua-test"


class Site(Pair):
    def __init__(self):
        super().__init__(PAIR)

    async def prepare(self):
        """Keys and certificates; a client that both bridges trust."""
        self.run(BUMPLESS, "key", "new", self.key())
        self.client = await self.new_client("client")
        for node in NODES:
            self.run(BRIDGE, "certificate", "--uri", self.uri(node), "--host", self.hosts[node],
                     "--files", self.files(node))
            self.run(BRIDGE, "trust", "--files", self.files(node), self.client / "certificate.der")

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

    def bridge_command(self, node, *more):
        other = NODES[1 - NODES.index(node)]
        return [BRIDGE, "run", "--json", "--control", self.folder / f"{node}.sock", "--uri", self.uri(node),
                "--partner-uri", self.uri(other), *more]

    def start_bridge(self, node):
        self.start(f"bridge-{node}", *self.bridge_command(node, "--listen", f"{self.hosts[node]}:4840", "--files",
                                                          self.files(node)))

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
