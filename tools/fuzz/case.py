"""What a case is, and what counts as a fault.

A case is made from a random generator alone, so that target, seed and number name it for ever.
"""

import importlib
import random

# what the public contract lets bad input raise; a subclass is as good
PERMITTED = (RuntimeError, TypeError, ValueError, IndexError, OverflowError, BufferError)
FORBIDDEN = (SystemError, RecursionError, UnicodeDecodeError)  # subclasses of a permitted one, or what Cython raises
# where PyTorch itself asserts, for an index of padding and for a device that the build lacks
ASSERTIONS = ("Padding_idx must be within", "not compiled with CUDA")
# where PyTorch divides Python's numbers
DIVISIONS = ("norm_type is 0",)


class Fault(Exception):
    """The engine did what it must never do; the message says what."""


class Case:
    """One case of a target. Subclasses are made from a `random.Random` and draw nothing after that."""

    def run(self):
        """Carry it out; returns how many calls were made. Raises Fault."""
        raise NotImplementedError

    def text(self):
        """The case as Python that can be pasted, or as a description. Asked before or instead of `run`."""
        return ""


def module_of(target):
    """The module of a target: one of this folder, or any by its dotted name. It has `case(rng)` and BLOCK."""
    return importlib.import_module(target if "." in target else f"tools.fuzz.{target}")


def generator(target, seed, number):
    """The random generator of a case."""
    return random.Random(f"{target} {seed} {number}")


def refused(error, small=True):
    """Pass over an exception that bad input may cause. Raises Fault for any other.

    small: whether no number in the input was large, so that there must be memory for all of it.
    """
    if isinstance(error, MemoryError):
        if small:
            raise Fault(f"MemoryError for small input: {error}") from error
        return
    if isinstance(error, AssertionError) and any(words in str(error) for words in ASSERTIONS):
        return
    if isinstance(error, ZeroDivisionError) and any(words in str(error) for words in DIVISIONS):
        return
    if isinstance(error, FORBIDDEN) or not isinstance(error, PERMITTED):
        raise Fault(f"{type(error).__name__}: {error}") from error
    if not str(error).strip():
        raise Fault(f"{type(error).__name__} without a message") from error
    if "internal" in str(error).lower():
        raise Fault(f"an internal matter reached the user: {type(error).__name__}: {error}") from error
