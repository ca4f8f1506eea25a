"""The function under test: its arguments with their names, and its outputs."""

import inspect

import numpy as np

from tinygrad_ext.autograd.function import Function
from tinygrad_ext.core.call.construct import from_numpy
from tinygrad_ext.core.data.tensor import Tensor

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def leaves(value, label):
    """(label, tensor) of every tensor in nested tuples, lists and dicts; (label, None) of anything else."""
    if isinstance(value, Tensor):
        yield label, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{label}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            yield from leaves(inner, f"{label}[{i}]")
    else:
        yield label, None


def _replaced(value, instead):
    """Nested tuples, lists and dicts with other tensors in place of some."""
    if isinstance(value, dict):
        return {key: _replaced(v, instead) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        row = [_replaced(v, instead) for v in value]
        return type(value)(*row) if hasattr(value, "_fields") else type(value)(row)
    return instead.get(id(value), value)


def as_tuple(value):
    """Several things as a tuple, one as a tuple of one."""
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


def _parameters(func):
    """Parameters of what func runs in the end: a Function's or a module's forward, else func itself."""
    owner = getattr(func, "__self__", func)
    cls = owner if isinstance(owner, type) else type(owner)
    if not issubclass(cls, Function):
        return list(inspect.signature(getattr(func, "forward", func)).parameters.values())
    takes_context = cls.setup_context is Function.setup_context  # or self, in the legacy style
    return list(inspect.signature(cls.forward).parameters.values())[takes_context:]


def argument_names(func, args, names=None):
    """A name for each positional argument: the given ones, else those of func's signature, else 'inputs[i]'."""
    if names is not None:
        names = [names] if isinstance(names, str) else list(names)
        if len(names) != len(args):
            raise ValueError(f"gradcheck: names has {len(names)} entries for {len(args)} inputs; give one for each")
        return names
    found = []
    try:
        parameters = _parameters(func)
    except (TypeError, ValueError):
        parameters = []
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            found += [f"{p.name}[{i}]" for i in range(len(args) - len(found))]
        elif p.kind in _POSITIONAL:
            found.append(p.name)
    return [*found, *(f"inputs[{i}]" for i in range(len(found), len(args)))][: len(args)]


class Subject:
    """A function with its arguments; `inputs` are the (name, tensor) whose derivatives are checked."""

    def __init__(self, func, args, kwargs=None, names=None):
        self.func, self.args, self.kwargs = func, args, dict(kwargs or {})
        self.tensors = self._named(names)
        bits = {id(t): _plain(t) for _, t in self.tensors if t.is_conj() or t.is_neg()}
        if bits:  # differences are written to memory that holds the numbers themselves
            self.args, self.kwargs = _replaced((args, self.kwargs), bits)
            self.tensors = self._named(names)
        self.inputs = [(name, t) for name, t in self.tensors if t.requires_grad]

    def _named(self, names):
        """(name, tensor) of each tensor among the arguments."""
        named = [*zip(argument_names(self.func, self.args, names), self.args), *self.kwargs.items()]
        return [found for name, value in named for found in leaves(value, name) if found[1] is not None]

    def outputs(self, instead=None):
        """(name, tensor) of each floating output of one call; instead: {id of an input: what is given for it}."""
        args, kwargs = (self.args, self.kwargs) if not instead else _replaced((self.args, self.kwargs), instead)
        result = self.func(*args, **kwargs)
        if isinstance(result, Tensor):
            return [("output", result)] if _is_floating(result) else []
        found = [*leaves(result, "output")]
        if found and all(t is None for _, t in found):
            raise TypeError(
                f"gradcheck: func returned {type(result).__name__} without a tensor in it; it must return a tensor, or "
                "tuples, lists and dicts of tensors"
            )
        return [(label, t) for label, t in found if t is not None and _is_floating(t)]

    def differentiable(self):
        """The outputs of one call that require grad."""
        return [t for _, t in self.outputs() if t.requires_grad]

    def values(self):
        """The floating outputs of one call as arrays of their own."""
        return [array(t).copy() for _, t in self.outputs()]


def _plain(t):
    """The same numbers without the conjugate and the negative bit."""
    return t.detach().resolve_conj().resolve_neg().requires_grad_(t.requires_grad)


def _is_floating(t):
    return t.dtype.is_floating_point or t.dtype.is_complex


def array(t):
    """A tensor's memory as an array; bfloat16 as float32, which is a copy, as is that of a wrapper."""
    if _wraps(t):
        return np.array(t.detach().tolist(), t.dtype.name)
    return (t if t.dtype.name != "bfloat16" else t.detach().float()).numpy(force=True)


def _wraps(t):
    """Whether a tensor is of a class that carries its operations out itself: its memory need not be its elements."""
    return type(t).__torch_dispatch__ is not Tensor.__torch_dispatch__


class _Wrapped:
    """What is asked of the array through which a wrapper is written to: by its own `copy_`, as a whole."""

    def __init__(self, t):
        self.tensor, self.cells = t, array(t)
        self.shape, self.size, self.dtype = self.cells.shape, self.cells.size, self.cells.dtype

    def __getitem__(self, where):
        return self.cells[where]

    def __setitem__(self, where, values):
        self.cells[where] = values
        self.tensor.detach().copy_(from_numpy(self.cells.copy()))


def memory(name, t):
    """An array through which an input is written to."""
    if t.dtype.name == "bfloat16":
        raise TypeError(f"gradcheck: {name} is bfloat16, too coarse for differences; pass it as .double()")
    if _wraps(t):
        return _Wrapped(t)
    found = t.detach().numpy()
    if not found.flags.writeable:
        raise ValueError(f"gradcheck: the memory of {name} is read-only; pass a copy of it: {name}.clone()")
    return found


def overlaps(t):
    """Whether two elements of a tensor share their memory."""
    steps = [(size, abs(stride)) for size, stride in zip(t.shape, t.stride()) if size > 1]
    if t.numel() == 0:
        return False
    reach = 0
    for size, stride in sorted(steps, key=lambda step: step[1]):
        if stride <= reach:
            break
        reach += (size - 1) * stride
    else:
        return False  # each dimension steps over everything inside it
    if any(stride == 0 for _, stride in steps):
        return True
    places = np.zeros(1, np.int64)
    for size, stride in steps:
        places = (places[:, None] + np.arange(size) * stride).reshape(-1)
    return np.unique(places).size < places.size
