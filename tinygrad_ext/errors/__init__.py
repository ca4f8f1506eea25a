"""Messages that several parts of the package build alike."""

import functools
import importlib
import sys

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.errors.moved_files import MOVED

PAGE = "docs/differences.md"


def no_attribute(module, name, known, more=""):
    """The AttributeError for a name that a public module lacks: does PyTorch have it, what is near, what to read."""
    if name.startswith("__"):  # Python's own questions, as `hasattr(module, "__wrapped__")`, load nothing
        return AttributeError(f"module '{module}' has no attribute '{name}'")
    more = _hint(module, name, frozenset(known)) + more
    return AttributeError(f"module '{module}' has no attribute '{name}'.{more} What differs from PyTorch: {PAGE}.")


@functools.lru_cache(1000)  # a library may ask by `hasattr` at every step
def _hint(module, name, known):
    import difflib

    from tinygrad_ext.errors.torch_names import hint  # lazy: json, for an error only

    near = difflib.get_close_matches(name, sorted(known), 3, cutoff=0.7)
    absent = hint(module, name, near)
    return f" Did you mean '{near[0]}'?" if near and not absent else absent


def stand_in(place):
    """What answers for a module or name of PyTorch's while `import torch` means this package, else None."""
    alias = sys.modules.get("tinygrad_ext.as_torch")
    if alias is None or not alias.installed():
        return None
    if place in {*alias.places.STAND_INS, *alias.places.ALIKE}:
        return importlib.import_module("torch." + place)
    return alias.absent_names.answer(place)


def refuse_unknown(module):
    """The `__getattr__` of a public module, which is asked for names that the module does not have.

    One that PyTorch has a file for (`distributions.normal.Normal`) is the file here in which its contents stand.
    """

    @boundary
    def __getattr__(name):
        place = f"{module}.{name}".partition(".")[2]
        if place in MOVED:
            return importlib.import_module(f"tinygrad_ext.{MOVED[place]}")
        answer = stand_in(place)
        if answer is not None:
            return answer
        raise no_attribute(module, name, [n for n in dir(sys.modules[module]) if not n.startswith("_")])

    return __getattr__
