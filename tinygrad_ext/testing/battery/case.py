"""One call of an op: its size, copies of it, and how it is written down."""

import numpy as np

import tinygrad_ext as tg
from tinygrad_ext.ops.samples import Sample
from tinygrad_ext.testing import layouts

SHOWN = 24  # elements that are written out; larger tensors are shown by dtype and shape


class Case:
    """A sample in a dtype."""

    __slots__ = ("dtype", "sample")

    def __init__(self, sample, dtype):
        self.sample, self.dtype = sample, dtype

    @property
    def tensors(self):
        """All tensors, those in lists and dicts too."""
        found = []
        mapped(self.sample, found.append)
        return found

    @property
    def size(self):
        """What "smallest" means: few elements, then few dimensions, then few arguments.

        Cases without elements come last, because they tell little about what goes wrong in the others.
        """
        tensors = self.tensors
        elements, arguments = sum(t.numel() for t in tensors), len(self.sample.args) + len(self.sample.kwargs)
        return bool(tensors) and not elements, elements, sum(t.dim() for t in tensors), arguments

    def fresh(self):
        """The sample with tensors of its own, so that a check may do with them what it likes."""
        return mapped(self.sample, copied)

    def text(self, call):
        """The call as one would type it after `import tinygrad_ext as tg`; call is what stands before the (."""
        small = sum(t.numel() for t in self.tensors) <= SHOWN
        args = [_spelled(a, small) for a in self.sample.args]
        args += [f"{k}={_spelled(v, small)}" for k, v in self.sample.kwargs.items()]
        return f"{call}({', '.join(args)})"


def mapped(sample, fn):
    """The sample with fn applied to each tensor."""
    args, kwargs = layouts.map_tensors(sample.args, fn), layouts.map_tensors(sample.kwargs, fn)
    return Sample(*args, name=sample.name, **kwargs)


def copied(t):
    """A copy in the same memory layout that requires grad when t does."""
    if t.device.type == "meta":
        return t
    spread = t.numel() and any(n > 1 and s == 0 for n, s in zip(t.shape, t.stride()))
    with tg.no_grad():
        copy = t.detach().clone() if spread else tg.empty_strided(t.shape, t.stride(), dtype=t.dtype).copy_(t.detach())
    return copy.requires_grad_() if t.requires_grad else copy


def _spelled(v, small):
    if isinstance(v, tg.Tensor):
        return _tensor(v, small)
    if isinstance(v, tg.dtype):
        return f"tg.{v.name}"
    if isinstance(v, tg.device):
        return repr(str(v))
    if isinstance(v, (list, tuple)) and not hasattr(v, "numel"):
        inside = ", ".join(_spelled(x, small) for x in v)
        return f"[{inside}]" if isinstance(v, list) else f"({inside}{',' * (len(v) == 1)})"
    if isinstance(v, dict):
        return "{" + ", ".join(f"{k!r}: {_spelled(x, small)}" for k, x in v.items()) + "}"
    return repr(v)


def _tensor(t, small):
    grad = ", requires_grad=True" if t.requires_grad else ""
    if not t.numel() or not small:
        return f"tg.{'empty' if not t.numel() else 'rand'}({tuple(t.shape)}, dtype=tg.{t.dtype.name}{grad})"
    return f"tg.tensor({_numbers(t.detach().tolist(), t.dtype.name)}, dtype=tg.{t.dtype.name}{grad})"


def _numbers(v, dtype):
    if isinstance(v, list):
        return "[" + ", ".join(_numbers(x, dtype) for x in v) + "]"
    if isinstance(v, float) and v != v:
        return "tg.nan"
    if isinstance(v, float) and v in (float("inf"), -float("inf")):
        return "-tg.inf" if v < 0 else "tg.inf"
    if isinstance(v, float) and dtype != "float64":
        return repr(float(str(np.float32(v))))  # the fewest digits that mean the same number
    return repr(v)
