"""A row for each op of the table, a plugin's included, from the samples its record carries.

The small row times the record's first sample. The large row enlarges the sample's tensors, every size but 0 and 1
by the same factor, to about a million elements, where op and PyTorch both accept that.
"""

import numpy as np

from benchmarks.cases import Case, Variant

LARGE = 1 << 20
GROWN = "ops, enlarged samples"  # a row is left out where the op refuses the larger operands


def cases(threshold=LARGE):
    """The small cases of every op that has samples, then the large ones."""
    from tinygrad_ext.testing import sweep

    small, large = [], []
    for op in sweep.ops():
        names = sweep.supported(op)
        dtype = next((d for d in ("float32", "int64") if d in names), names[0])
        samples = sweep.samples(op, dtype)
        if not samples:
            continue
        title, variants = op.name.removeprefix("aten::"), [Variant(dtype, False)]
        small.append(Case(f"{title} small", "ops", None, _builder(op, samples[0], 1), variants))
        factor = _factor(samples[0], threshold)
        if factor > 1:
            large.append(Case(f"{title} large", GROWN, None, _builder(op, samples[0], factor), variants))
    return small + large


def _factor(sample, threshold):
    """By what to multiply sizes so that the largest tensor has about `threshold` elements; 1 for what cannot grow."""
    import tinygrad_ext as tg

    tensors = [v for v in [*sample.args, *sample.kwargs.values()] if isinstance(v, tg.Tensor) and v.numel() > 1]
    if not tensors:
        return 1
    largest = max(tensors, key=lambda t: t.numel())
    growing = sum(s > 1 for s in largest.shape)
    return max(1, int((threshold / largest.numel()) ** (1 / growing)))


def _builder(op, sample, factor):
    def build(lib, draw):
        from tinygrad_ext.testing import layouts, sweep

        args = layouts.map_tensors(sample.args, lambda t: _enlarge(t, factor))
        kwargs = layouts.map_tensors(sample.kwargs, lambda t: _enlarge(t, factor))
        fn = sweep.function(op)
        if lib.name == "torch":
            fn = sweep.torch_function(op, lib.module)
            if fn is None:
                raise LookupError("no such function")
            args, kwargs = sweep.to_torch(args, lib.module), sweep.to_torch(kwargs, lib.module)
        return lambda: fn(*args, **kwargs)

    return build


def _enlarge(t, factor):
    """A tensor of the same kind of values, each size but 0 and 1 multiplied."""
    if factor == 1:
        return t
    import tinygrad_ext as tg

    shape = [s * factor if s > 1 else s for s in t.shape]
    return tg.tensor(np.resize(np.array(t.tolist()), shape), dtype=t.dtype)
