"""Payloads of Sparkplug B (Sparkplug 3.0, 6.4) read and written by hand: nothing of the library under test is in here."""

import struct

# Data types (6.4.16) to the field that has their value.
UINT64, BOOLEAN, STRING, DOUBLE, STRING_ARRAY = 8, 11, 12, 10, 33


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def fields(data):
    """Each field of a message of Protocol Buffers: number and value."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = varint(data, at)
        elif kind == 2:
            length, at = varint(data, at)
            value, at = data[at:at + length], at + length
            assert len(value) == length
        else:
            size = {1: 8, 5: 4}[kind]
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def metric(data):
    """Name, data type (births only) and value; None: null."""
    name = kind = value = None
    for number, content in fields(data):
        if number == 1:
            name = content.decode()
        elif number == 4:
            kind = content
        elif number == 7:
            assert content in (0, 1)
        elif number in (10, 11):
            value = content
        elif number == 13:
            value = struct.unpack("<d", content)[0]
        elif number == 14:
            value = bool(content)
        elif number == 15:
            value = content.decode()
        elif number == 16:
            value = [it.decode() for it in content.split(b"\0")[:-1]]
        elif number == 3:
            assert content > 1_600_000_000_000, "milliseconds since 1970"
    return name, kind, value


def payload(data):
    """Timestamp, sequence number and metrics."""
    timestamp = seq = None
    metrics = []
    for number, content in fields(data):
        if number == 1:
            timestamp = content
        elif number == 2:
            metrics.append(metric(content))
        elif number == 3:
            seq = content
    return timestamp, seq, metrics


def boolean_command(name, timestamp):
    """A payload with one metric of type Boolean that is true."""
    def number(value):
        out = bytearray()
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes(out + bytes([value]))
    one = b"\x0a" + number(len(name)) + name.encode() + b"\x20" + number(BOOLEAN) + b"\x70\x01"
    return b"\x08" + number(timestamp) + b"\x12" + number(len(one)) + one
