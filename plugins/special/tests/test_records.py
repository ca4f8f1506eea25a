"""Every op of tgx-special over the samples of its record: against SciPy, its derivatives, layouts, shapes, errors."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import ops, registry
from tinygrad_ext.testing import compare, sweep

pytest.importorskip("tgx_special", reason="tgx-special is not installed: pip install ./plugins/special")

BESSEL = ["j0", "j1", "jv", "spherical_jn", "y0", "y1", "yv", "airy"]
MODIFIED = ["i0", "i0e", "i1", "i1e", "iv", "ive", "k0", "k0e", "k1", "k1e", "kv"]
GAMMA = ["gammainc", "gammaincc", "betainc", "zeta", "lambertw"]
ERRORS = ["erfcx", "erfinv", "dawsn", "fresnel", "ndtr", "log_ndtr", "ndtri"]
INTEGRALS = ["expi", "exp1", "expn", "si", "ci"]
NAMES = BESSEL + MODIFIED + GAMMA + ERRORS + INTEGRALS
every_op = pytest.mark.parametrize("name", NAMES)


def samples(name, dtypes, requires_grad=False):
    """(op, sample, dtype) of a record; asking for the op loads the plugin."""
    op = getattr(ops.special, name).candidates[0]
    return [(op, s, d) for d in dtypes for s in sweep.samples(op, d, requires_grad)]


def test_these_are_all():
    ops.special.j0
    assert sorted(n for n in registry.ops if n.startswith("special::")) == sorted(f"special::{n}" for n in NAMES)


@every_op
def test_equals_scipy_and_has_the_dtype_of_its_arguments(name):
    for op, sample, dtype in samples(name, ("float32", "float64", "float16", "int64")):
        arrays = [compare.to_numpy(a) if isinstance(a, tg.Tensor) else a for a in sample.args]
        got = sweep.call(op, sample.args, {})
        assert {str(r.dtype) for r in compare.flatten(got)} == {"torch." + dtype.replace("int64", "float32")}
        want = op.record.reference(*[a.astype("f8") if isinstance(a, np.ndarray) else a for a in arrays])
        compare.assert_close(got, want, dtype, f"{name} {sample} in {dtype}", check_dtype=False)


@every_op
def test_every_layout_gives_the_same_bits(name):
    for op, sample, dtype in samples(name, ("float32",)):
        sweep.layout_independent(op, sample, dtype)


@every_op
def test_the_shape_rule_tells_the_truth(name):
    for op, sample, dtype in samples(name, ("float32", "float64", "int32")):
        sweep.shape_rule_agrees(op, sample, dtype)


@every_op
@pytest.mark.parametrize("order", [1, 2])
def test_derivatives(name, order):
    for op, sample, _ in samples(name, ("float64",), True):
        sweep.derivatives_check(op, sample, order)


@every_op
def test_what_is_wrong_is_refused_with_a_word_on_it(name):
    op = samples(name, ("float32",))[0][0]
    for call, error, words in op.record.errors or ():
        with pytest.raises(error) as refusal:
            call()
        assert words in str(refusal.value)
    with pytest.raises(NotImplementedError, match="the arguments must be real"):
        sweep.call(op, [a.to(tg.complex64) if isinstance(a, tg.Tensor) else a for a in first(name).args], {})


def first(name):
    return samples(name, ("float32",))[0][1]
