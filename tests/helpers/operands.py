"""Operands of products: drawn, laid out in several ways, and at the edge of memory that may be read."""

import ctypes
import mmap

import numpy as np

import tinygrad_ext as tg

LAYOUTS = ["rows", "columns", "apart"]


def drawn(*shape, dtype=tg.float32, seed=0):
    return tg.tensor(np.random.default_rng(seed).standard_normal(shape), dtype=dtype)


def laid(x, kind):
    if kind == "columns":
        return x.mT.contiguous().mT
    if kind == "apart":
        room = tg.full((*x.shape[:-2], 2 * x.shape[-2], 3 * x.shape[-1]), float("nan"), dtype=x.dtype)
        return room[..., ::2, ::3].copy_(x)
    return x


def guarded(array):
    """A copy that ends where memory may not be read."""
    page = mmap.PAGESIZE
    size = -(-array.nbytes // page) * page
    room = mmap.mmap(-1, size + page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(room))
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + size), page, 0) == 0
    copy = np.frombuffer(room, array.dtype, array.size, size - array.nbytes).reshape(array.shape)
    copy[...] = array
    return copy
