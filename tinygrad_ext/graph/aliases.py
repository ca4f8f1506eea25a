"""Tensors of a captured program that share memory, told without memory.

A `Root` is memory: its value in the graph is what all of it holds now. A `Traced` is a window on a root, reached by
view ops. Writing to a window makes a new value of the root, in which the part is replaced (`put_back`); other windows
on that root are stale then, and made again from it when they are next read.
"""

from collections import namedtuple

from tinygrad_ext.core.call.interop import storage_of

# op: name of a view op; args: its arguments behind the tensor, as in a node; index: which of several results, or None
Step = namedtuple("Step", "op args index")
Argument = namedtuple("Argument", "shown tensor name")  # the carried tensor, and what it stands for

SAME_MEMORY = {  # views of all elements, whose inverse is a reshape to the sizes before
    "aten::view", "aten::reshape", "aten::flatten.using_ints", "aten::ravel", "aten::unflatten.int", "aten::squeeze",
    "aten::squeeze.dim", "aten::squeeze.dims", "aten::unsqueeze", "aten::view_as", "aten::reshape_as",
}  # fmt: skip
IDENTITY = {"aten::detach", "aten::contiguous", "aten::expand", "aten::_alias", "aten::broadcast_to", "aten::expand_as"}
# views that read the same memory otherwise, and what a graph computes in their place: each is its own inverse
COMPUTED = {"aten::_conj": "aten::_conj_physical", "aten::_neg_view": "aten::neg"}
PARTS = {
    "aten::select.int": "aten::select_scatter",
    "aten::slice.Tensor": "aten::slice_scatter",
    "aten::diagonal": "aten::diagonal_scatter",
}


class CaptureError(RuntimeError):
    """The program does something that a graph cannot hold."""


class SharedMemoryError(CaptureError):
    """The program writes to memory that two of the tensors lie in which it is given."""


class Root:
    """Attributes: value (in the graph, now), example (the same as a tensor), version, leaf (the Leaf that gradients of
    it go to, or None), awake (the value that it has again when it is a leaf again), state (the State it is, or None),
    tensor (what it stands for outside, or None), lent (the name of a Function that shows its memory under another
    history, or None)."""

    __slots__ = ("awake", "example", "leaf", "lent", "state", "tensor", "value", "version")

    def __init__(self, value, example, leaf=None, state=None, tensor=None):
        self.value, self.example, self.version = value, example, 0
        self.leaf, self.state, self.tensor, self.awake, self.lent = leaf, state, tensor, None, None


class Traced:
    """A window. Attributes: root, path (tuple of Steps), value and example as of `version` of the root, leaf (of a
    tensor that requires_grad_() made one)."""

    __slots__ = ("example", "path", "root", "value", "version")

    def __init__(self, root, path=(), value=None, example=None):
        self.root, self.path, self.version = root, path, root.version
        self.value = root.value if value is None else value
        self.example = root.example if example is None else example


def put_back(capture, step, whole, part):
    """The value of `whole` (a Carried) with what `step` shows of it replaced by `part`."""
    record = capture.call
    if step.index is not None:
        return _put_back_piece(capture, step, whole, part)
    if step.op in PARTS:
        return record(PARTS[step.op], whole, part, *step.args)
    if step.op in SAME_MEMORY:
        return record("aten::reshape", part, tuple(whole.shape))
    if step.op in ("aten::transpose.int", "aten::t"):
        return record(step.op, part, *step.args)
    if step.op == "aten::permute":
        dims = [d % len(step.args[0]) for d in step.args[0]]
        return record("aten::permute", part, tuple(dims.index(i) for i in range(len(dims))))
    if step.op in ("aten::movedim.int", "aten::movedim.intlist"):
        return record(step.op, part, step.args[1], step.args[0])
    if step.op == "aten::narrow":
        dim, start, length = step.args
        return record("aten::slice_scatter", whole, part, dim, start, start + length, 1)
    if step.op in COMPUTED:
        return record(COMPUTED[step.op], part)
    if step.op == "aten::view_as_real":
        return record("aten::view_as_complex", part)
    if step.op == "aten::view_as_complex":
        return record("aten::view_as_real", part)
    if step.op in IDENTITY and tuple(whole.shape) == tuple(part.shape):
        return part
    raise CaptureError(
        f"writing to the result of {step.op} is not captured yet: write to a clone() of it, or build the result with "
        "an op such as where or scatter"
    )


def _put_back_piece(capture, step, whole, part):
    """Of split, chunk and unbind: the piece as the slice or the index that it is."""
    dim = step.args[-1]
    if step.op == "aten::unbind.int":
        return capture.call("aten::select_scatter", whole, part, dim, step.index)
    size = part.shape[dim]
    if step.op in ("aten::split.Tensor", "aten::chunk"):
        full = capture.call(step.op, whole, *step.args)[0].shape[dim]
        start = full * step.index
    else:
        start = sum(step.args[0][: step.index])
    return capture.call("aten::slice_scatter", whole, part, dim, start, start + size, 1)


def share(a, b):
    """Whether two tensors lie in the same memory."""
    if a is b:
        return True
    memory = storage_of(a)
    return memory is not None and memory is storage_of(b) and a.numel() > 0
