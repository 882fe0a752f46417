"""An OPC UA server with a furnace, for tests of the field driver: python3 field_server.py URL [FOLDER]

Each write of a client is a line of JSON on standard output. A line `VALUE STATUS` on standard input sets the level, as
`12.5 Good`; `state N` sets the server's state. With FOLDER, which has certificate.der and key.pem, it takes clients with
security alone."""

import asyncio
import json
import sys

from asyncua import Server, ua
from asyncua.common.callback import CallbackType

URI = "urn:test:furnace"


def tell(**line):
    print(json.dumps(line), flush=True)


async def obey(server, level):
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        first, second = line.decode().split()
        if first == "state":
            node = server.get_node(ua.ObjectIds.Server_ServerStatus_State)
            await node.write_value(ua.Variant(int(second), ua.VariantType.Int32))
        else:
            status = ua.StatusCode(getattr(ua.StatusCodes, second))
            value = ua.Variant(float(first), ua.VariantType.Double)
            await server.write_attribute_value(level.nodeid, ua.DataValue(value, status))
        tell(event="done")


async def main(url, folder=None):
    server = Server()
    await server.init()
    server.set_endpoint(url)
    await server.set_application_uri(URI)
    if folder:
        policies = [ua.SecurityPolicyType.Basic256Sha256_SignAndEncrypt,
                    ua.SecurityPolicyType.Aes256Sha256RsaPss_SignAndEncrypt]
        await server.load_certificate(f"{folder}/certificate.der")
        await server.load_private_key(f"{folder}/key.pem")
    else:
        policies = [ua.SecurityPolicyType.NoSecurity]
    server.set_security_policy(policies)
    namespace = await server.register_namespace(f"{URI}:values")
    assert namespace == 2
    furnace = await server.nodes.objects.add_object("ns=2;s=furnace", "2:Furnace")

    async def variable(name, value, kind):
        node = await furnace.add_variable(f"ns=2;s={name}", f"2:{name}", value, varianttype=kind)
        await node.set_writable()
        return node
    level = await variable("level", 10.0, ua.VariantType.Double)
    await variable("count", 0.0, ua.VariantType.Double)
    await variable("echo", 0, ua.VariantType.Int16)

    def written(event, _dispatcher):
        if not event.is_external:
            return
        for it in event.request_params.NodesToWrite:
            value = it.Value.Value
            tell(event="write", node=it.NodeId.Identifier, value=value.Value, type=value.VariantType.name)
    server.subscribe_server_callback(CallbackType.PreWrite, written)
    async with server:
        tell(event="listening")
        await obey(server, level)


asyncio.run(main(*sys.argv[1:]))
