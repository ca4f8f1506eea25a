"""What the pickle of PyTorch's files may make besides tensors: numbers, bytes, sets, counters, ordered dicts."""

import pickle
from collections import Counter, OrderedDict


def complex_of(real, imag):
    """A complex number of two floats."""
    if type(real) is not float or type(imag) is not float:
        raise pickle.UnpicklingError(f"a complex number of {real!r} and {imag!r}")
    return complex(real, imag)


def ordered_dict():
    """An empty one; its items come one by one, and are charged."""
    return OrderedDict()


def text_bytes(text, encoding):
    """What older pickles write for bytes."""
    if encoding != "latin1":
        raise pickle.UnpicklingError(f"bytes in the encoding {encoding!r}")
    return text.encode("latin1")


def set_of(items=()):
    """A set of a list."""
    return set(_of_type(list, items) if items else ())


def counter(items=()):
    """A Counter of a dict."""
    return Counter(_of_type(dict, items) if items else {})


def _of_type(kind, items):
    if type(items) is not kind:
        raise pickle.UnpicklingError(f"a set or counter is made of a {type(items).__name__}")
    return items


def bytes_of(text="", encoding="latin-1"):
    """A bytearray of bytes, or of text as older pickles write it."""
    return bytearray(text if type(text) is bytes else text_bytes(text, encoding.replace("-", "")))
