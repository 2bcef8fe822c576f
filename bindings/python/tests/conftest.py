"""Shared by the tests: bytes as buffers of many kinds, a thread beside a call, and Ctrl-C."""

import mmap
import signal
import sys
import threading

import pytest


def _mapped(data: bytes):
    """The bytes in an anonymous map, which is never empty."""
    made = mmap.mmap(-1, max(len(data), 1))
    made[: len(data)] = data
    return memoryview(made)[: len(data)]


def _numpy(data: bytes):
    return pytest.importorskip("numpy").frombuffer(data, dtype="uint8")


def _arrow(data: bytes):
    return pytest.importorskip("pyarrow").py_buffer(data)


BUFFERS = {
    "bytes": bytes,
    "bytearray": bytearray,
    "memoryview": memoryview,
    "mmap": _mapped,
    "numpy": _numpy,
    "arrow": _arrow,
}


@pytest.fixture(params=BUFFERS)
def buffer(request):
    """A function that puts bytes into an object of one kind."""
    return BUFFERS[request.param]


@pytest.fixture
def overlapped():
    """Whether another thread runs between a call's entry and its return.

    Python never takes the GIL away here, so the thread runs only if the call gives it up. The call gets twice as much
    work each time, until the system has run the thread: the answer does not depend on speed.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(1_000_000)

    def run(call, work, doublings=12):
        for i in range(doublings + 1):
            gate, ran = threading.Lock(), []
            gate.acquire()
            thread = threading.Thread(target=lambda: (gate.acquire(), ran.append(True)))
            thread.start()
            gate.release()
            call(work << i)
            seen = bool(ran)
            thread.join()
            if seen:
                return True
        return False

    yield run
    sys.setswitchinterval(before)


@pytest.fixture
def interruptible():
    """Ctrl-C raises KeyboardInterrupt. Python sets no handler where SIGINT is ignored, as in a script's background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
