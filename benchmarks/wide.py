"""What `--wide` times: ops by size, dtype, layout and way; convolutions of known networks; whole workloads.

A `Spec` says which row, and `build(spec, library)` makes its operands and returns the callable for one library. Both
libraries get the same values in the same layout. Operands are the record's samples, every size but 0 and 1 multiplied
until the largest tensor has about as many elements as wanted.
"""

from dataclasses import dataclass

import numpy as np

from benchmarks.conv_shapes import SHAPES, title
from benchmarks.workloads import WORKLOADS

SIZES = {"8": 8, "10k": 10_000, "1M": 1 << 20}
DTYPES = ("float32", "float64", "int64", "complex64", "bfloat16", "bool")
FORWARD, BOTH = "fwd", "fwd+bwd"


@dataclass(frozen=True)
class Spec:
    """One row."""

    kind: str  # op, conv or workload
    family: str  # the file its record is in
    what: str  # name of the op, convolution or workload
    size: str = ""  # a name in SIZES, or the batch
    dtype: str = ""
    layout: str = ""
    way: str = ""
    sample: int = 0

    @property
    def name(self):
        """What the row is called; unique."""
        number = f"#{self.sample}" if self.sample else ""
        words = (self.what.removeprefix("aten::") + number, self.size, self.dtype, self.layout, self.way)
        return " ".join(w for w in words if w)


# ---- layouts, of tensors of either library --------------------------------------------------------------------------


def contiguous(t):
    """As it is."""
    return t


def transposed(t):
    """First and last dimension exchanged in memory."""
    return t.transpose(0, -1).contiguous().transpose(0, -1) if t.dim() > 1 else None


def broadcast(t):
    """The first slice, repeated with stride 0."""
    return t.narrow(0, 0, 1).expand(t.shape) if t.dim() and t.shape[0] > 1 else None


def strided(t):
    """Every second element of a longer tensor."""
    if not t.dim():
        return None
    room = t.new_zeros((*t.shape[:-1], 2 * t.shape[-1]))[..., ::2]
    room.copy_(t)
    return room


LAYOUTS = {f.__name__: f for f in (contiguous, transposed, broadcast, strided)}


# ---- the rows --------------------------------------------------------------------------------------------------------


def specs(sizes=tuple(SIZES), samples=1):
    """Every row, ops from small to large, so that what is slow when small is not tried large."""
    yield from (
        Spec("conv", "convolutions", title(s), f"batch {batch}", way=way)
        for s in SHAPES
        for batch in (1, 8)
        for way in (FORWARD, BOTH)
    )
    yield from (Spec("workload", "workloads", name) for name in WORKLOADS)
    yield from _of_ops(sizes, samples)


def _of_ops(sizes, samples):
    from tinygrad_ext.testing import layouts, sweep

    for op in sweep.ops():
        for dtype in (d for d in DTYPES if d in sweep.supported(op)):
            try:
                found = sweep.samples(op, dtype)[:samples]
            except Exception:  # a dtype that the samples cannot be made in
                continue
            for k, sample in enumerate(found):
                ways = (FORWARD, BOTH) if dtype in ("float32", "float64") and _derivable(op) else (FORWARD,)
                for size in sizes:
                    if size != "8" and layouts.growth(sample, SIZES[size]) == 1:
                        continue
                    for layout in LAYOUTS:
                        if layout == "contiguous" or _takes(sample, LAYOUTS[layout]):
                            for way in ways:
                                yield Spec("op", _family(op), op.name, size, dtype, layout, way, k)


def _takes(sample, layout):
    from tinygrad_ext.testing import layouts

    return layouts.laid_out(sample, layout) is not None


# ---- what is timed --------------------------------------------------------------------------------------------------


def build(spec, lib):
    """The callable of a row for a library; raises LookupError where the row makes no sense."""
    return {"op": _op, "conv": _conv, "workload": _workload}[spec.kind](spec, lib)


def _workload(spec, lib):
    lib.module.manual_seed(0)
    return WORKLOADS[spec.what](lib.module)


def _conv(spec, lib):
    shape = next(s for s in SHAPES if title(s) == spec.what)
    random, m = np.random.default_rng(0), lib.module
    batch, dims, grad = int(spec.size.split()[1]), len(shape.input) - 1, spec.way == BOTH
    channels = (
        (shape.input[0], shape.out // shape.groups) if shape.transposed else (shape.out, shape.input[0] // shape.groups)
    )
    x, w = (
        lib.tensor(random.uniform(-1, 1, s).astype("float32"), grad)
        for s in ((batch, *shape.input), (*channels, *[shape.kernel] * dims))
    )
    conv = getattr(m.nn.functional, f"conv{'_transpose' * shape.transposed}{dims}d")
    options = {k: getattr(shape, k) for k in ("stride", "padding", "dilation", "groups")}
    return _timed(lambda: conv(x, w, **options), [x, w], m, grad)


def _op(spec, lib):
    from tinygrad_ext.testing import beside_torch, layouts, sweep

    op = next(o for o in sweep.ops() if o.name == spec.what)
    sample = sweep.samples(op, spec.dtype, spec.way == BOTH)[spec.sample]
    factor = 1 if spec.size == "8" else layouts.growth(sample, SIZES[spec.size])
    leaves, theirs = [], lib.name == "torch"

    def made(t):
        grown = _grown(t, factor)
        grown = beside_torch.to_torch(grown, lib.module) if theirs else grown
        laid = LAYOUTS[spec.layout](grown)
        grown = grown if laid is None else laid
        if t.requires_grad:
            leaves.append(grown.requires_grad_())
        return grown

    args, kwargs = layouts.map_tensors(sample.args, made), layouts.map_tensors(sample.kwargs, made)
    fn = beside_torch.torch_function(op, lib.module) if theirs else sweep.function(op)
    if fn is None:
        fn = getattr(lib.module.nn.functional, op.schema.name, None)  # as elu
    if fn is None:
        raise LookupError("PyTorch has no such function")
    if theirs:
        args, kwargs = _foreign(args, lib.module), _foreign(kwargs, lib.module)
        if "varargs" in (op.record.tags or "") and isinstance(args[0], (list, tuple)):
            args = (*args[0], *args[1:])
    if op.record.valid:
        args = op.record.valid(*args)
    lib.module.manual_seed(0)
    return _timed(lambda: fn(*args, **kwargs), leaves, lib.module, spec.way == BOTH)


def _foreign(values, torch):
    """Our dtypes and the like as PyTorch's; its tensors stay what they are."""
    from tinygrad_ext.testing.beside_torch import to_torch

    if isinstance(values, dict):
        return {k: _foreign(v, torch) for k, v in values.items()}
    if isinstance(values, (list, tuple)):
        return type(values)([_foreign(v, torch) for v in values])
    return values if isinstance(values, torch.Tensor) else to_torch(values, torch)


def _grown(t, factor):
    import tinygrad_ext as tg

    t = t.detach()
    if factor == 1:
        return t.clone()
    shape = [s * factor if s > 1 else s for s in t.shape]
    values = (t.float() if t.dtype == tg.bfloat16 else t).numpy()
    count = int(np.prod(shape))
    # np.resize puts a million repetitions together one by one
    repeated = np.tile(values.ravel(), -(-count // max(values.size, 1)))[:count] if count else values.ravel()[:0]
    return tg.tensor(repeated.reshape(shape)).to(t.dtype)


def _timed(forward, leaves, m, grad):
    """The forward call, or forward and backward to the leaves from ones."""
    if not grad:
        return forward
    floating = [t for t in _tensors(forward(), m) if t.requires_grad]
    if not floating or not leaves:
        raise LookupError("no gradient")
    seeds, derive = [m.ones_like(t) for t in floating], m.autograd.grad

    def both():
        result = forward()
        outs = [result] if isinstance(result, m.Tensor) else [t for t in _tensors(result, m) if t.requires_grad]
        return derive(outs, leaves, seeds, allow_unused=True)

    return both


def _tensors(result, m):
    if isinstance(result, m.Tensor):
        return [result]
    return [t for r in result for t in _tensors(r, m)] if isinstance(result, (list, tuple)) else []


def _derivable(op):
    return op.record.grad is not None or op.record.compose is not None or op.record.view is not None


def _family(op):
    """The file of the op's record, or the plugin."""
    if not op.name.startswith("aten::"):
        return op.name.partition("::")[0]
    return (op.record.source or "").rpartition("/")[2].removesuffix(".py")
