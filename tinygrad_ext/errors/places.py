"""Modules of one place of functions: `linalg`, `special` and `fft` show what the records put there."""

import sys

from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.op_tables import functions
from tinygrad_ext.errors import no_attribute


def attributes(module, place, others=()):
    """`__getattr__` and `__dir__` of a module of the functions of a place. What was asked for becomes its attribute."""
    start = place + "."

    @boundary
    def find(name):
        if name == "__all__":
            return [listed for listed in names() if listed[0] != "_"]
        found = functions.get(start + name)
        if found is None:
            raise no_attribute(module, name, names())
        setattr(sys.modules[module], name, found)
        return found

    def names():
        return sorted([*others, *(key[len(start) :] for key in functions if key.startswith(start))])

    return find, names
