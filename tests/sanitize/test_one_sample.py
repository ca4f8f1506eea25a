"""One sample of every op, forward and backward, in odd layouts: what runs under the sanitizers."""

import contextlib
import warnings

import pytest

import tinygrad_ext as tg
from tinygrad_ext.testing import compare, layouts, sweep

OPS = {op.name.removeprefix("aten::"): op for op in sweep.ops()}


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_runs_clean(op):
    for dtype in ("float32", "int64", "uint8", "bool", "float64"):
        if dtype not in sweep.supported(op):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for sample in sweep.samples(op, dtype, requires_grad=True)[:3]:
                for layout in layouts.KEEP_SHAPE.values():
                    changed = layouts.laid_out(sample, layout)
                    if changed is not None:
                        with contextlib.suppress(RuntimeError):  # a view may refuse a layout
                            sweep.call(op, *changed)
                result = None
                with contextlib.suppress(RuntimeError):  # a write to a leaf that requires grad
                    result = sweep.call(op, sample.args, sample.kwargs)
                roots = [r for r in compare.flatten(result) if isinstance(r, tg.Tensor) and r.requires_grad]
                if roots:
                    tg.autograd.backward(roots, [tg.ones_like(r) for r in roots])
