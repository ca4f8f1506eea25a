"""Calls that no schema fits and that are understood all the same; other calls pay nothing for them.

These are the deprecated orders of arguments that a record lists in its field `older`, `add(x, 2, y)` for
`add(x, y, alpha=2)`, other names of arguments, and NumPy's calls of methods (numpy_calls.py).
"""

import warnings

from tinygrad_ext.core.call.callables import OpFunction, OpMethod
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.tensor import numpy_calls

# Names of arguments that PyTorch's function has and neither its method nor its schema.
_OTHER_NAMES = {"split": {"tensor": "input", "split_size_or_sections": "split_size"}}

_warned = set()  # the first deprecated call of a process is told, as PyTorch does
always = [False]  # whether each is, see `set_warn_always`


def understand(f, args, kwargs):
    """A function of no arguments that carries out a call of f that no schema fits; None for a call that is wrong."""
    if type(f) not in (OpFunction, OpMethod):  # `ops.aten.add` takes what its schemas say
        return None
    if type(f) is OpMethod and "out" in kwargs:
        return numpy_calls.answer(f, args, kwargs)
    renamed = _OTHER_NAMES.get(f.__name__, {})
    if type(f) is OpFunction and kwargs.keys() & renamed.keys():
        keywords = {renamed.get(name, name): value for name, value in kwargs.items()}
        return (lambda: f(*args, **keywords)) if len(keywords) == len(kwargs) else None
    for op in f.candidates:
        for order in (op.record.older or "").split("|"):
            found = _named(op, order.split(), args, kwargs, isinstance(f, OpMethod))
            if found is not None:
                positional, keywords = found
                if len(positional) == len(args) and keywords.keys() == kwargs.keys():
                    return None  # the call itself, which something else is wrong with
                _warn(op, order.split(), f.__name__)
                return lambda: f(*positional, **keywords)
    return None


def _named(op, names, args, kwargs, method):
    """The arguments by the schema's names, if they are all there, once and of the right kind."""
    if not names or len(args) > len(names):
        return None
    if method:
        names = ["self", *(n for n in names if n != "self")]
    given = dict(zip(names, args))
    for name, value in kwargs.items():
        name = "self" if name == "input" else name
        if name in given or name not in (*names, "out"):
            return None
        given[name] = value
    if not given.keys() >= set(names) or not all(_fits(a, given[a.name]) for a in op.schema.args if a.name in given):
        return None
    return [given.pop("self")], given


def _fits(arg, value):
    """Numbers and tensors may not change places: add(x, y, z) is a mistake."""
    if arg.type == "bool":
        return isinstance(value, bool)
    if not arg.kwarg_only:
        return isinstance(value, Tensor)
    return isinstance(value, (int, float, complex)) or (isinstance(value, Tensor) and value.dim() == 0)


def _warn(op, names, name):
    if _warned and not always[0]:
        return
    _warned.add(op.name)
    order = ", ".join(names)
    now = ", ".join(f"{a.name}={a.name}" if a.kwarg_only else a.name for a in op.schema.args)
    warnings.warn(
        f"This overload of {name} is deprecated: {name}({order}). Write {name}({now}).", UserWarning, stacklevel=3
    )
