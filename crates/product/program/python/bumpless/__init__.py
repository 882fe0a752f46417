"""A control program in Python that a Bumpless pair runs in a process of its own.

    import ctypes
    import bumpless

    class State(ctypes.Structure):
        _fields_ = [("integral", ctypes.c_double)]

    def step(cycle, inputs, outputs, state):
        state.integral += inputs[0] * cycle.period
        outputs[0] = state.integral

    bumpless.run(step, inputs=1, outputs=1, state=State)

All that the program keeps from one cycle to the next must stand in its state: then it goes on on another computer as
if nothing had happened. Nothing may hang on global variables, a clock, random numbers, files or sockets.

The protocol is that of spec/sidecar.md. Licensed under Apache-2.0 or MIT at your choice.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import sys

__all__ = ["Cycle", "numpy_view", "run"]

PROTOCOL = 1
_HEADER_SIZE, _STATE_ALIGNMENT, _MESSAGE_MAX = 4096, 65536, 320
_EXECUTE, _END, _CONVERT = 2, 3, 4
_DONE, _FAILED, _OTHER_VERSION, _MISFIT = 0, 1, 2, 3
_CANNOT_BEGIN = 64

_FUTEX_CALLS = {
    8: {"x86_64": 202, "aarch64": 98, "riscv64": 98},
    # A process of 32 bits has the calls of its own processor, whatever the kernel has.
    4: dict.fromkeys(("armv6l", "armv7l", "armv8l", "aarch64", "i386", "i486", "i586", "i686", "x86_64"), 240),
}


def _futex_call(machine, pointer):
    """The number of the call on this processor for pointers of so many bytes, if it is known."""
    return _FUTEX_CALLS.get(pointer, {}).get(machine)


_FUTEX_CALL = _futex_call(os.uname().machine, ctypes.sizeof(ctypes.c_void_p))
_FUTEX_WAIT, _FUTEX_WAKE_OP = 0, 5
_ADD_ONE = 1 << 28 | 1 << 12  # FUTEX_OP(FUTEX_OP_ADD, 1, FUTEX_OP_CMP_EQ, 0)
_ALL = 2**31 - 1


class _Header(ctypes.Structure):
    _fields_ = [
        ("magic", ctypes.c_char * 8),
        ("version", ctypes.c_uint32),
        ("program_version", ctypes.c_uint32),
        ("total", ctypes.c_uint64),
        ("inputs", ctypes.c_uint32),
        ("outputs", ctypes.c_uint32),
        ("inputs_at", ctypes.c_uint64),
        ("outputs_at", ctypes.c_uint64),
        ("state_at", ctypes.c_uint64),
        ("state_max", ctypes.c_uint64),
        ("request", ctypes.c_uint32),
        ("command", ctypes.c_uint32),
        ("cycle", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
        ("track", ctypes.c_uint32),
        ("unused_host", ctypes.c_uint32),
        ("old_version", ctypes.c_uint64),
        ("old_len", ctypes.c_uint64),
        ("unused_host_end", ctypes.c_uint32 * 4),
        ("answer", ctypes.c_uint32),
        ("result", ctypes.c_uint32),
        ("state_len", ctypes.c_uint64),
        ("state_version", ctypes.c_uint64),
        ("program_inputs", ctypes.c_uint32),
        ("program_outputs", ctypes.c_uint32),
        ("program_period", ctypes.c_uint64),
        ("tracked", ctypes.c_uint64),
        ("message_len", ctypes.c_uint32),
        ("changes", ctypes.c_uint32),
        ("converts", ctypes.c_uint32),
        ("unused_program", ctypes.c_uint32),
        ("message", ctypes.c_char * _MESSAGE_MAX),
    ]


class Cycle:
    """The circumstances of one cycle. There is no other clock that a program may read."""

    __slots__ = ("number", "period_ns")

    #: 1 at a cold start; it goes on counting where a predecessor stopped.
    number: int
    #: The application's period in nanoseconds.
    period_ns: int

    @property
    def period(self):
        """The application's period in seconds."""
        return self.period_ns / 1e9

    @property
    def time(self):
        """The time that has passed for the program in seconds: number times period."""
        return self.number * self.period_ns / 1e9


class _CannotBegin(Exception):
    pass


class _Host:
    """The memory that the host gave to this process."""

    def __init__(self):
        told = os.environ.get("BUMPLESS_MEMORY")
        if told is None:
            raise _CannotBegin(
                "this is a control program: a Bumpless host starts it and gives it memory (BUMPLESS_MEMORY is not "
                "set); try it with `bumpless program test`"
            )
        if _FUTEX_CALL is None:
            raise _CannotBegin(f"this package does not know the processor {os.uname().machine}")
        if not (told.isascii() and told.isdigit() and int(told) > 2):
            raise _CannotBegin("BUMPLESS_MEMORY is no descriptor's number")
        memory = int(told)
        try:
            # What this program starts itself has no business with it.
            fcntl.fcntl(memory, fcntl.F_SETFD, fcntl.FD_CLOEXEC)
            size = os.fstat(memory).st_size
            if size < _HEADER_SIZE:
                raise _CannotBegin("the memory is none of a Bumpless host")
            self.memory = mmap.mmap(memory, size)
        except OSError as error:
            raise _CannotBegin(f"the memory cannot be used: {error}") from None
        os.close(memory)
        self.call = ctypes.CDLL(None, use_errno=True).syscall
        self.call.restype = ctypes.c_long
        self.call.argtypes = [ctypes.c_long, ctypes.c_void_p, ctypes.c_long, ctypes.c_long]
        self.call.argtypes += [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long]
        self.header = header = _Header.from_buffer(self.memory)
        self.request_at = ctypes.addressof(header) + _Header.request.offset
        self.answer_at = ctypes.addressof(header) + _Header.answer.offset
        self._check(size)

    def _check(self, size):
        header = self.header
        if self.memory[:8] != b"bumpless":
            raise _CannotBegin("the memory is none of a Bumpless host")
        header.program_version = PROTOCOL
        if header.version != PROTOCOL:
            self.answer(_OTHER_VERSION)
            raise _CannotBegin(
                f"the host speaks version {header.version} of the protocol and this package version {PROTOCOL}: use "
                "the package of the host's release"
            )
        outputs_at = _rounded(_HEADER_SIZE + 8 * header.inputs, 64)
        state_at = _rounded(outputs_at + 8 * header.outputs, _STATE_ALIGNMENT)
        total = state_at + _rounded(header.state_max, _STATE_ALIGNMENT)
        found = (header.total, header.inputs_at, header.outputs_at, header.state_at, total)
        if found != (size, _HEADER_SIZE, outputs_at, state_at, size):
            raise _CannotBegin("the sizes in the memory contradict one another")

    def values(self, at, count):
        """So many binary64 from this offset on."""
        if not count:
            return ()
        return memoryview(self.memory)[at : at + 8 * count].cast("d")

    def answer(self, result):
        """Says what came of the request, and that it is answered; the kernel counts, wakes and orders memory."""
        self.header.result = result
        self._futex(self.answer_at, _FUTEX_WAKE_OP, _ALL, 0, self.answer_at, _ADD_ONE)

    def next_command(self):
        """Waits for a request that is not answered."""
        header = self.header
        while True:
            answered = header.answer
            # It ends at once where the request is another number. Its end orders memory.
            number = self._futex(self.request_at, _FUTEX_WAIT, answered, 0, 0, 0)
            if number == errno.EAGAIN:
                return header.command

    def say(self, why):
        """Leaves a message for the host, cut to what there is room for."""
        why = why.encode("utf-8", "replace")[:_MESSAGE_MAX]
        ctypes.memmove(ctypes.addressof(self.header) + _Header.message.offset, why, len(why))
        self.header.message_len = len(why)

    def _futex(self, at, operation, value, other, second, third):
        value = ctypes.c_int32(value).value
        if self.call(_FUTEX_CALL, at, operation, value, other, second, third) == -1:
            return ctypes.get_errno()
        return 0


def _rounded(value, to):
    return (value + to - 1) // to * to


def numpy_view(values):
    """A numpy array over inputs, outputs or a state, without copying."""
    import numpy

    if isinstance(values, tuple):
        # There are none, and Python has no view of no numbers.
        return numpy.zeros(0)
    kind = values.format if isinstance(values, memoryview) else numpy.uint8
    if not memoryview(values).nbytes:
        return numpy.zeros(0, dtype=kind)
    return numpy.frombuffer(values, dtype=kind)


def run(step, *, inputs, outputs, state, start=None, convert=None, state_version=0, period_ns=0):
    """Serves the host that started this process until that ends it; then leaves with the right exit status.

    step(cycle, inputs, outputs, state) runs one cycle: it fills `outputs`, which hold those of the cycle before, or
    returns all of them. An exception says that there are none: the host then ends this process and goes on from the
    state before this cycle. start(state) makes the initial state, from one that is all zeros.

    `inputs` and `outputs`: how many, as the configuration names them. `state`: a ctypes.Structure class without
    pointers, or the number of bytes; the step then gets a writable memoryview. `state_version` is to be changed
    whenever the layout of the state changes: scripts with the same one take over each other's states; 0: only the same
    file does. `period_ns`: the only period with which it can run, 0 if any.

    convert(version, old, state) makes the state, which is an initial one, from `old`, the bytes of a state of another
    version of this program, whose `state_version` is `version`. It has as long as a cycle may take. An exception says
    that nothing can be made of it: then the other version goes on.
    """
    try:
        host = _Host()
    except _CannotBegin as why:
        print(f"bumpless: {why}", file=sys.stderr)
        sys.exit(_CANNOT_BEGIN)
    sys.exit(_serve(host, step, inputs, outputs, state, (start, convert), (state_version, period_ns)))


def _serve(host, step, inputs, outputs, state, others, told):
    header, (start, convert) = host.header, others
    size = state if isinstance(state, int) else ctypes.sizeof(state)
    header.state_len, header.program_inputs, header.program_outputs = size, inputs, outputs
    header.state_version, header.program_period = told
    header.converts = convert is not None
    if size > header.state_max:
        return _refuse(host, f"its state has {size} bytes, and the configuration allows {header.state_max}")
    if (inputs, outputs) != (header.inputs, header.outputs):
        host.answer(_DONE)
        print("bumpless: the configuration names another number of inputs or outputs", file=sys.stderr)
        return _CANNOT_BEGIN
    if isinstance(state, int):
        held = memoryview(host.memory)[header.state_at : header.state_at + size]
    else:
        held = state.from_buffer(host.memory, header.state_at)
    cycle = Cycle()
    values, results = host.values(header.inputs_at, inputs), host.values(header.outputs_at, outputs)
    if start is not None:
        try:
            start(held)
        except Exception as error:
            return _refuse(host, _told(error))
    host.answer(_DONE)
    while (command := host.next_command()) != _END:
        if command == _CONVERT and convert is not None:
            host.answer(_converted(host, held, size, others))
            continue
        if command != _EXECUTE:
            host.say(f"the host's command {command} is unknown")
            host.answer(_FAILED)
            continue
        cycle.number, cycle.period_ns = header.cycle, header.period
        try:
            given = step(cycle, values, results, held)
            if given is not None:
                if len(given) != outputs:
                    raise ValueError(f"the step returned {len(given)} outputs instead of {outputs}")
                for at, value in enumerate(given):
                    results[at] = value
        except Exception as error:
            host.say(_told(error))
            host.answer(_FAILED)
        else:
            host.answer(_DONE)
    host.answer(_DONE)
    return 0


def _converted(host, held, size, others):
    """Makes the state from one of another version, which stands in its place."""
    header, (start, convert) = host.header, others
    host.header.message_len = 0
    old = bytes(host.memory[header.state_at : header.state_at + min(header.old_len, header.state_max)])
    host.memory[header.state_at : header.state_at + size] = bytes(size)
    try:
        if start is not None:
            start(held)
        convert(header.old_version, old, held)
    except Exception as error:
        host.say(_told(error))
        return _FAILED
    return _DONE


def _refuse(host, why):
    host.say(why)
    host.answer(_MISFIT)
    print(f"bumpless: {why}", file=sys.stderr)
    return _CANNOT_BEGIN


def _told(error):
    """An exception in one line, with the place where it was raised; all of it on standard error."""
    import traceback  # as long to load as all the rest, and most programs never need it

    traceback.print_exception(type(error), error, error.__traceback__)
    where = traceback.extract_tb(error.__traceback__)[-1]
    said = "".join(traceback.format_exception_only(type(error), error)).strip()
    return f"{said} ({os.path.basename(where.filename)}, line {where.lineno})"
