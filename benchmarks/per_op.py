"""A row for each op of the table, a plugin's included, from the samples its record carries.

The small row times the record's first sample. The large row enlarges the sample's tensors, every size but 0 and 1
by the same factor, to about a million elements, where op and PyTorch both accept that.
"""

from benchmarks.cases import Case, Variant

LARGE = 1 << 20
GROWN = "ops, enlarged samples"  # a row is left out where the op refuses the larger operands


def cases(threshold=LARGE):
    """The small cases of every op that has samples, then the large ones."""
    from tinygrad_ext.testing import layouts, sweep

    small, large = [], []
    for op in sweep.ops():
        names = sweep.supported(op)
        dtype = next((d for d in ("float32", "int64") if d in names), names[0])
        samples = sweep.samples(op, dtype)
        if not samples:
            continue
        title, variants = op.name.removeprefix("aten::"), [Variant(dtype, False)]
        small.append(Case(f"{title} small", "ops", None, _builder(op, samples[0], 1), variants))
        factor = layouts.growth(samples[0], threshold)
        if factor > 1:
            large.append(Case(f"{title} large", GROWN, None, _builder(op, samples[0], factor), variants))
    return small + large


def _builder(op, sample, factor):
    def build(lib, draw):
        from tinygrad_ext.testing import beside_torch, layouts, sweep

        args = layouts.map_tensors(sample.args, lambda t: layouts.enlarge(t, factor))
        kwargs = layouts.map_tensors(sample.kwargs, lambda t: layouts.enlarge(t, factor))
        fn = sweep.function(op)
        if lib.name == "torch":
            fn = beside_torch.torch_function(op, lib.module)
            if fn is None:
                raise LookupError("no such function")
            args, kwargs = beside_torch.to_torch(args, lib.module), beside_torch.to_torch(kwargs, lib.module)
        return lambda: fn(*args, **kwargs)

    return build
