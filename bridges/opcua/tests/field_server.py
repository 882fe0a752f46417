"""An OPC UA server with a furnace, for tests of the field driver: python3 field_server.py URL [FOLDER] [OPTION...]

Each write of a client is a line of JSON on standard output. A line `VALUE STATUS` on standard input sets the level, as
`12.5 Good`; `state N` sets the server's state; `deny NAME` takes from users the right to write a value. With FOLDER, which
has certificate.der and key.pem, it takes clients with security alone."""

import argparse
import asyncio
import json
import sys

from asyncua import Server, ua
from asyncua.common.callback import CallbackType
from asyncua.crypto.permission_rules import User, UserRole

URI = "urn:test:furnace"


def tell(**line):
    print(json.dumps(line), flush=True)


async def obey(server, values):
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        first, second = line.decode().split()
        if first == "deny":
            await values[second].set_read_only()
        elif first == "state":
            node = server.get_node(ua.ObjectIds.Server_ServerStatus_State)
            await node.write_value(ua.Variant(int(second), ua.VariantType.Int32))
        else:
            status = ua.StatusCode(getattr(ua.StatusCodes, second))
            value = ua.Variant(float(first), ua.VariantType.Double)
            await server.write_attribute_value(values["level"].nodeid, ua.DataValue(value, status))
        tell(event="done")


class Users:
    """Lets in nobody but the one user, as far as one is given."""

    def __init__(self, only):
        self.only = only

    def get_user(self, iserver, username=None, password=None, certificate=None):
        if self.only and [username, password] != self.only:
            tell(event="refused", user=username)
            return None
        return User(role=UserRole.User, name=username)


def tell_logins(server):
    """Who logs in, and by what the password is protected of itself."""
    decrypt = server.iserver.decrypt_user_token

    def told(session, token):
        tell(event="login", user=token.UserName, cipher=token.EncryptionAlgorithm)
        return decrypt(session, token)
    server.iserver.decrypt_user_token = told


async def secure(server, given):
    encrypting = [ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt,
                  ua.SecurityPolicyType.Aes256Sha256RsaPss_SignAndEncrypt]
    if given.folder:
        await server.load_certificate(f"{given.folder}/certificate.der")
        await server.load_private_key(f"{given.folder}/key.pem")
    policies = encrypting if given.folder else []
    if given.open or not given.folder:
        policies = [ua.SecurityPolicyType.NoSecurity, *policies]
    server.set_security_policy(policies)
    if given.login:
        server.set_identity_tokens([ua.UserNameIdentityToken])


async def furnace(server, space):
    """A furnace with all values, in the namespace with the URI `space`."""
    at = await server.register_namespace(space)
    furnace = await server.nodes.objects.add_object(f"ns={at};s=furnace", f"{at}:Furnace")

    async def variable(name, value, kind):
        node = await furnace.add_variable(f"ns={at};s={name}", f"{at}:{name}", value, varianttype=kind)
        await node.set_writable()
        return node
    return {"level": await variable("level", 10.0, ua.VariantType.Double),
            "count": await variable("count", 0.0, ua.VariantType.Double),
            "echo": await variable("echo", 0, ua.VariantType.Int16)}


async def main(given):
    server = Server(user_manager=Users(given.login))
    await server.init()
    tell_logins(server)
    server.set_endpoint(given.url)
    await server.set_application_uri(URI)
    await secure(server, given)
    if given.one_write:
        most = server.get_node(ua.ObjectIds.Server_ServerCapabilities_OperationLimits_MaxNodesPerWrite)
        await most.write_value(ua.Variant(1, ua.VariantType.UInt32))
    for space in given.before:
        await furnace(server, space)
    values = await furnace(server, given.space)
    spaces = await server.get_namespace_array()

    def written(event, _dispatcher):
        if not event.is_external:
            return
        for it in event.request_params.NodesToWrite:
            value = it.Value.Value
            tell(event="write", node=it.NodeId.Identifier, value=value.Value, type=value.VariantType.name,
                 space=spaces[it.NodeId.NamespaceIndex])
    server.subscribe_server_callback(CallbackType.PreWrite, written)
    async with server:
        tell(event="listening")
        await obey(server, values)


options = argparse.ArgumentParser()
options.add_argument("url")
options.add_argument("folder", nargs="?")
options.add_argument("--open", action="store_true", help="clients without security, too")
options.add_argument("--login", nargs=2, metavar=("USER", "PASSWORD"), help="the only user")
options.add_argument("--one-write", action="store_true", help="one node in each request to write")
options.add_argument("--space", default=f"{URI}:values", help="URI of the furnace's namespace")
options.add_argument("--before", action="append", default=[], help="another furnace in a namespace before that")
asyncio.run(main(options.parse_args()))
