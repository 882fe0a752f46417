"""Unmodified programs of a power grid, at many substations and in a control centre: IEC 60870-5-104 by c104, Modbus TCP by
pymodbus. `grid.py WHAT SITES`: WHAT is one of the functions below, SITES a file of JSON (spec/wan.md, U-96).

Whoever serves is one process for each substation, in its network namespace; whoever calls is one process for all of them, and
prints a line for each thing that it sees, with nanoseconds of CLOCK_BOOTTIME:

    q SITE SENT DONE OK     a question or an order was sent, and was answered (1), or given up (0)
    r SITE AT               a value came that the substation reports by itself
    s SITE AT UP            a connection is there (1), or is gone (0)
    x AT SIGNAL             the library crashed, with all connections; it begins again after a second
"""

import asyncio
import ctypes
import itertools
import json
import os
import resource
import signal
import sys
import threading
import time

CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
# What kills a process by a fault of its own: a library's in compiled code.
CRASHES = (signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS)


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def tell(*words):
    # One call for a line: threads do not mix them.
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def at_each_site(given, serve):
    """Does `serve` in a process of its own at each site; they end with this one."""
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()
    for site in given["sites"]:
        if os.fork():
            continue
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        namespace = os.open(site["namespace"], os.O_RDONLY)
        if libc.setns(namespace, CLONE_NEWNET):
            sys.exit(f"cannot enter {site['namespace']}: {os.strerror(ctypes.get_errno())}")
        if os.getppid() != parent:
            sys.exit("nobody wants this any more")
        serve(site)
        os._exit(0)
    while True:
        ended, status = os.wait()
        sys.exit(f"the server with process number {ended} has ended with status {status}")


def supervised(call, given):
    """Does `call` in a process of its own, which ends with this one, and again where it crashed: that says nothing of the network,
    and must be told."""
    libc = ctypes.CDLL(None, use_errno=True)
    parent = os.getpid()
    while True:
        child = os.fork()
        if not child:
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:
                sys.exit("nobody wants this any more")
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            call(given)
            sys.exit("nothing is left to call")
        _, status = os.waitpid(child, 0)
        ended_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        if ended_by not in CRASHES:
            sys.exit(f"what calls has ended with status {status}")
        tell("x", now(), int(ended_by))
        time.sleep(1)


def paced(place, of, every_ns):
    """When the one at this place is due, again and again: all of them spread over the time between two."""
    due = now() + every_ns * (of + place) // of
    while True:
        yield due
        due += every_ns


def wait_until(due):
    time.sleep(max(0, due - now()) / 1e9)


def serve_104(given):
    import c104

    def measured(point: c104.Point) -> None:
        # Another one each time, as a measured value is.
        point.value = float(now() // 1_000_000 % 1000)

    def ordered(point: c104.Point, previous_info: c104.Information, message: c104.IncomingMessage) -> c104.ResponseState:
        return c104.ResponseState.SUCCESS

    def serve(site):
        server = c104.Server(ip=site["address"], port=2404)
        station = server.add_station(common_address=site["number"])
        point = station.add_point(io_address=11, type=c104.Type.M_ME_TF_1, report_ms=given["every_ms"])
        point.on_before_auto_transmit(callable=measured)
        station.add_point(io_address=12, type=c104.Type.C_SC_NA_1).on_receive(callable=ordered)
        server.start()
        while True:
            signal.pause()

    at_each_site(given, serve)


def call_104(given):
    import c104

    client = c104.Client(tick_rate_ms=100, command_timeout_ms=given["timeout_ms"])
    sites = given["sites"]

    def call(place, connection, point):
        # The library gives up tasks of its own that had to wait for 100 ms, and with one a connection that was to come.
        for waited in itertools.count(1):
            if connection.state == c104.ConnectionState.OPEN:
                break
            time.sleep(0.05)
            if waited % 100 == 0:
                connection.connect()
        for due in paced(place, len(sites), given["every_ms"] * 1_000_000):
            wait_until(due)
            sent = now()
            point.value = not point.value
            confirmed = connection.is_connected and point.transmit(cause=c104.Cot.ACTIVATION)
            tell("q", place, sent, now(), int(confirmed))

    def heard(place):
        def value(point: c104.Point, previous_info: c104.Information, message: c104.IncomingMessage) -> c104.ResponseState:
            tell("r", place, now())
            return c104.ResponseState.SUCCESS

        return value

    def changed(place):
        def state(connection: c104.Connection, state: c104.ConnectionState) -> None:
            if state in (c104.ConnectionState.OPEN, c104.ConnectionState.CLOSED_AWAIT_RECONNECT):
                tell("s", place, now(), int(state == c104.ConnectionState.OPEN))

        return state

    threads, kept = [], []
    for place, site in enumerate(sites):
        connection = client.add_connection(ip=site["address"], port=2404, init=c104.Init.NONE)
        station = connection.add_station(common_address=site["number"])
        value = station.add_point(io_address=11, type=c104.Type.M_ME_TF_1)
        order = station.add_point(io_address=12, type=c104.Type.C_SC_NA_1)
        callbacks = heard(place), changed(place)
        value.on_receive(callable=callbacks[0])
        connection.on_state_change(callable=callbacks[1])
        kept.append(callbacks)
        threads.append(threading.Thread(target=call, args=(place, connection, order)))
    client.start()
    for thread in threads:
        thread.start()
    # What is not held by a variable ends.
    for thread in threads:
        thread.join()


def serve_modbus(given):
    from pymodbus.server import ModbusTcpServer
    from pymodbus.simulator import DataType, SimData, SimDevice

    def serve(site):
        registers = SimData(0, values=list(range(100)), datatype=DataType.REGISTERS)
        device = SimDevice(1, simdata=[registers])

        async def run():
            await ModbusTcpServer(device, address=(site["address"], 502)).serve_forever()

        asyncio.run(run())

    at_each_site(given, serve)


def call_modbus(given):
    from pymodbus.client import AsyncModbusTcpClient
    from pymodbus.exceptions import ModbusException

    async def call(place, of, address):
        def changed(connected):
            tell("s", place, now(), int(connected))

        client = AsyncModbusTcpClient(
            address, port=502, timeout=given["timeout_ms"] / 1000, retries=0, reconnect_delay=0.5, reconnect_delay_max=2,
            trace_connect=changed,
        )
        # It comes back by itself only once it has been there.
        while not await client.connect():
            await asyncio.sleep(0.2)
        for due in paced(place, of, given["every_ms"] * 1_000_000):
            await asyncio.sleep(max(0, due - now()) / 1e9)
            sent, answered = now(), False
            try:
                if client.connected:
                    answered = not (await client.read_holding_registers(1, count=10)).isError()
            except ModbusException:
                pass
            tell("q", place, sent, now(), int(answered))

    async def call_all():
        sites = given["sites"]
        await asyncio.gather(*(call(place, len(sites), site["address"]) for place, site in enumerate(sites)))

    asyncio.run(call_all())


def have_104():
    from importlib.metadata import version

    import c104  # noqa: F401

    print(f"c104 {version('c104')}")


def have_modbus():
    import pymodbus

    print(f"pymodbus {pymodbus.__version__}")


def main():
    what, *files = sys.argv[1:]
    if not files:
        return {"have-104": have_104, "have-modbus": have_modbus}[what]()
    with open(files[0], encoding="utf-8") as file:
        given = json.load(file)
    if what.startswith("call-"):
        return supervised({"call-104": call_104, "call-modbus": call_modbus}[what], given)
    {"serve-104": serve_104, "serve-modbus": serve_modbus}[what](given)


if __name__ == "__main__":
    main()
