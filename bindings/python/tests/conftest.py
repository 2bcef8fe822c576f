"""Shared by the tests: other objects' bytes as buffers, and a counter that runs while the GIL is free."""

import mmap
import sys
import threading
import time

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


class Counter:
    """Counts in another thread for as long as the context lasts: it stands still while the GIL is held."""

    def __enter__(self):
        self.count, self._stop = 0, False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        return self

    def _run(self):
        while not self._stop:
            self.count += 1
            time.sleep(0.001)

    def __exit__(self, *_):
        self._stop = True
        self._thread.join()


@pytest.fixture
def counting():
    """Whether the other thread counts during a call, with switches of the GIL on request out of the way."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1000)

    def count(call):
        with Counter() as counter:
            start = counter.count
            call()
            return counter.count - start

    yield count
    sys.setswitchinterval(before)
