"""The two ops of tgx-sparse over the samples of their records, and the docstring of SparseTensor."""

import doctest

import pytest

import tinygrad_ext as tg
from tinygrad_ext import ops
from tinygrad_ext.testing import compare, sweep

pytest.importorskip("tgx_sparse", reason="tgx-sparse is not installed: pip install ./plugins/sparse")

both_ops = pytest.mark.parametrize("name", ["matmul", "sampled_matmul"])


def samples(name, requires_grad=False, dtypes=("float32", "float64")):
    op = getattr(ops.sparse, name).candidates[0]
    return [(op, s, d) for d in dtypes for s in sweep.samples(op, d, requires_grad)]


@both_ops
def test_equals_the_reference_in_every_layout_and_tells_its_shape(name):
    for op, sample, dtype in samples(name):
        arrays = [compare.to_numpy(a) if isinstance(a, tg.Tensor) else a for a in sample.args]
        compare.assert_close(sweep.call(op, sample.args, {}), op.record.reference(*arrays), dtype, name)
        sweep.shape_rule_agrees(op, sample, dtype)


@both_ops
@pytest.mark.parametrize("order", [1, 2])
def test_derivatives(name, order):
    for op, sample, _ in samples(name, True, ("float64",)):
        sweep.derivatives_check(op, sample, order)


def test_indices_from_elsewhere_are_not_followed():
    for call, error, words in ops.sparse.matmul.candidates[0].record.errors:
        with pytest.raises(error) as refusal:
            call()
        assert words in str(refusal.value)


def test_the_examples_of_docstrings_work():
    import tgx_sparse.tensor

    assert doctest.testmod(tgx_sparse.tensor) == (0, 4)
