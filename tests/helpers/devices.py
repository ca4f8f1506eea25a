"""A device for tests: memory at addresses that mean nothing in this process, and kernels that compute on the cpu."""

import weakref

import pytest

import tinygrad_ext as tg
from tinygrad_ext import library


class Memory:
    """Blocks at invented addresses: whoever read behind one would end the process."""

    def __init__(self):
        self.blocks, self.next = weakref.WeakValueDictionary(), 4096

    def allocate(self, nbytes):
        address, block = self.next, Block(nbytes)
        self.next += nbytes + 4096
        self.blocks[address] = block
        return address, block

    def _window(self, address, count):
        start = max(a for a in self.blocks if a <= address)
        return memoryview(self.blocks[start].bytes)[address - start :][:count]

    def read(self, address, into):
        into[:] = self._window(address, len(into))

    def write(self, address, data):
        self._window(address, len(data))[:] = data


class Block:
    def __init__(self, nbytes):
        self.bytes = bytearray(nbytes)


@pytest.fixture
def lib():
    """What is registered through it is taken back after the test."""
    with library.Library("aten", "IMPL") as made:
        yield made


@pytest.fixture
def memory(lib):
    made = Memory()
    library.register_device("example", made, lib=lib)
    return made


def on(*values, **kwargs):
    """A tensor on the device 'example'."""
    return tg.tensor(*values, **kwargs).to("example")


def by_cpu(op):
    """A kernel that computes on the cpu and says how often it ran."""

    def kernel(*args, **kwargs):
        kernel.calls += 1
        host = [a.cpu() if isinstance(a, tg.Tensor) else a for a in args]
        return op(*host, **kwargs).to("example")

    kernel.calls = 0
    return kernel
