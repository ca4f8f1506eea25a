"""What nobody should ask for is answered as PyTorch answers it: infinite and missing numbers, indices of nothing,
factors of another kind, sizes that are none."""

import math

import numpy as np
import pytest

import tinygrad_ext as tg

INF, NAN = math.inf, math.nan


def outcome(run):
    """Values and dtype, or the exception's type."""
    try:
        found = run()
    except Exception as error:
        return type(error).__name__
    return (found.tolist(), str(found.dtype).rpartition(".")[2]) if hasattr(found, "tolist") else found


def same(run):
    torch = pytest.importorskip("torch")
    np.testing.assert_equal(outcome(lambda: run(tg)), outcome(lambda: run(torch)))


# ---- an index without elements: of any rank and dtype, it writes nothing


NOTHING = {
    "scatter": lambda T, i: T.zeros(2, 2).scatter(0, i, T.ones(2, 2)),
    "scatter of a number": lambda T, i: T.zeros(2, 2).scatter(0, i, 3),
    "scatter_add": lambda T, i: T.zeros(2, 2).scatter_add(0, i, T.ones(2, 2)),
    "scatter_": lambda T, i: T.zeros(2, 2).scatter_(1, i, T.ones(3)),
    "another dtype": lambda T, i: T.zeros(2, 2).scatter(0, i, T.ones(2, 2, dtype=T.float64)),
    "another dimension": lambda T, i: T.zeros(2, 2).scatter(2, i, T.ones(2, 2)),
    "gather": lambda T, i: T.zeros(2, 2).gather(0, i),
}


@pytest.mark.parametrize("sizes", [(0,), (0, 5, 3), (2, 0)])
@pytest.mark.parametrize("dtype", ["int64", "int32", "float32"])
@pytest.mark.parametrize("name", NOTHING)
def test_an_index_of_nothing(name, dtype, sizes):
    same(lambda T: NOTHING[name](T, T.zeros(sizes, dtype=getattr(T, dtype))))


def test_an_index_of_nothing_with_reduce():
    assert tg.zeros(2, 2).scatter(0, tg.zeros(0), tg.ones(2, 2), reduce="add").tolist() == [[0.0, 0.0]] * 2


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_an_index_of_nothing_reduces_nothing(reduce, include_self):
    x = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    src = tg.ones(3, 2, requires_grad=True)
    found = x.scatter_reduce(0, tg.zeros(0, dtype=tg.int64), src, reduce, include_self=include_self)
    found.sum().backward()
    assert (
        found.tolist() == x.tolist() and x.grad.tolist() == [[1.0, 1.0]] * 2 and src.grad.tolist() == [[0.0, 0.0]] * 3
    )


# ---- infinite and missing numbers


@pytest.mark.parametrize("reduce", ["amax", "amin"])
def test_a_missing_number_is_the_extreme_that_has_the_gradient(reduce):
    x = tg.tensor([1.0, NAN, 3.0, 4.0, 5.0], requires_grad=True)
    found = tg.zeros(3).scatter_reduce(0, tg.tensor([0, 1, 1, 2, 2]), x, reduce, include_self=False)
    found.sum().backward()
    np.testing.assert_equal(found.tolist(), [1.0, NAN, 5.0 if reduce == "amax" else 4.0])
    assert x.grad.tolist() == [1.0, 1.0, 0.0, *([0.0, 1.0] if reduce == "amax" else [1.0, 0.0])]


def test_a_segments_missing_number_has_the_gradient():
    def run(T):
        x = T.tensor([1.0, NAN, 3.0, 4.0, 5.0, 5.0], requires_grad=True)
        T.segment_reduce(x, "max", lengths=T.tensor([1, 2, 3, 0]), initial=0).sum().backward()
        return x.grad

    same(run)


SLOPES = [2, -2, INF, INF, -INF, -INF, INF, 3, -INF, 2, NAN, NAN, 3, INF, NAN]


@pytest.mark.parametrize("spacing", [1.0, 2.0])
def test_a_slope_does_not_ask_for_the_element_between(spacing):
    np.testing.assert_equal(tg.gradient(tg.tensor(SLOPES), spacing=spacing)[0].numpy(), np.gradient(SLOPES, spacing))
    same(lambda T: T.gradient(T.tensor(SLOPES), spacing=spacing)[0])


LOGS = [
    [complex(INF, 0), 1 + 1j],
    [complex(-INF, 0), 1 + 1j],
    [complex(-INF, INF), 1 + 1j, complex(-INF, 2)],
    [complex(INF, NAN), 1 + 1j],
    [complex(NAN, 0), 1, 2],
    [1 + 1j, complex(0, NAN), 2],
    [complex(-INF, 3), complex(-INF, 1)],
    [complex(INF, 3), complex(INF, 1)],
    [complex(INF, 3), complex(-INF, 1)],
    [complex(INF, 0), complex(INF, 0), 1],
    [1, complex(INF, 3), 2, 1j],
]


@pytest.mark.parametrize("row", LOGS, ids=str)
def test_the_running_log_of_infinite_complex_numbers(row):
    same(lambda T: T.logcumsumexp(T.tensor(row, dtype=T.complex128), 0))


def test_the_norms_of_a_singular_matrix_have_an_infinite_condition():
    x = tg.tensor([[1.0, 2.0, 0.0], [2.0, 4.0, 0.0], [0.0, 0.0, 1.0]])
    x[1] = 0
    assert all(tg.linalg.cond(x, p).item() == INF for p in ("nuc", "fro", 1, -1, INF, -INF))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_gradient_of_a_complex_power_of_negative_numbers(dtype):
    base, exponent = np.array([-1.5, -0.7, 2.0], dtype), np.array([0.3 + 0.2j, -0.4 + 1j, 1j], "c16")
    e = tg.tensor(exponent).to(tg.complex64 if dtype == "float32" else tg.complex128).requires_grad_()
    b = tg.tensor(base, requires_grad=True)
    tg.pow(b, e).sum().real.backward()
    wide = base.astype("c16")
    np.testing.assert_allclose(e.grad.numpy(), np.conj(wide**exponent * np.log(wide)), rtol=1e-4)
    np.testing.assert_allclose(b.grad.numpy(), np.real(exponent * wide ** (exponent - 1)), rtol=1e-4)


# ---- factors and operands of another kind


KINDS = {
    "a float for integers": lambda T: T.addr(*_ones(T, T.int16), beta=2.0),
    "a true for floats": lambda T: T.addr(*_ones(T, T.float32), beta=True),
    "a true for alpha": lambda T: T.addr(*_ones(T, T.float32), alpha=True),
    "a complex for floats": lambda T: T.addr(*_ones(T, T.float32), beta=2j),
    "a complex for alpha": lambda T: T.addr(*_ones(T, T.float32), alpha=2j),
    "a float for truths": lambda T: T.addr(*_ones(T, T.bool), alpha=1.0),
    "a true for truths": lambda T: T.addr(*_ones(T, T.bool), beta=True, alpha=True),
    "an integer": lambda T: T.addr(*_ones(T, T.int16), beta=2, alpha=3),
    "a float where one operand has floats": lambda T: T.addr(
        T.ones(2, 2, dtype=T.int32), T.ones(2), T.ones(2), beta=2.0
    ),
    "einsum without operands": lambda T: T.einsum("", []),
    "einsum of an equation alone": lambda T: T.einsum("i->i"),
    "a row outside of the table of bags": lambda T: _bags(T, [[-1, 1]]),
    "a row beyond the table of bags": lambda T: _bags(T, [[11, 1]], padding_idx=0, mode="max"),
}


def _ones(T, dtype):
    return T.ones(2, 2, dtype=dtype), T.ones(2, dtype=dtype), T.ones(2, dtype=dtype)


def _bags(T, rows, **kwargs):
    return T.nn.functional.embedding_bag(T.tensor(rows), T.ones(10, 2), **kwargs)


@pytest.mark.parametrize("name", KINDS)
def test_operands_of_another_kind(name):
    same(KINDS[name])


# ---- names of arguments, sizes


NAMED = {
    "x1 and x2": lambda T: T.add(x1=T.ones(2), x2=T.ones(2)),
    "a": lambda T: T.sum(a=T.ones(2)),
    "x": lambda T: T.sum(x=T.ones(2), axis=0, keepdims=True),
    "a of a matrix": lambda T: T.linalg.norm(a=T.ones(2)),
    "none of them": lambda T: T.sum(y=T.ones(2)),
    "no dimension": lambda T: T.hash_tensor(T.ones(3), dim=None).long(),
    "no dimension, kept": lambda T: T.hash_tensor(T.ones(3), dim=None, keepdim=True).long(),
}


@pytest.mark.parametrize("name", NAMED)
def test_arguments_by_the_names_of_numpy(name):
    same(NAMED[name])


SIZES = {
    "numbers": lambda T: [1, 2],
    "a generator": lambda T: (n for n in (1, 2)),
    "true": lambda T: [True],
    "tensors": lambda T: [T.tensor(2), T.tensor([3])],
    "a tensor": lambda T: T.tensor([2, 3]),
    "an integer of NumPy's": lambda T: [np.int32(2)],
    "floats": lambda T: [1.0],
    "a tensor of floats": lambda T: T.ones(3),
    "a text": lambda T: "ab",
    "none": lambda T: [None],
    "a number": lambda T: 3,
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_integers(name):
    same(lambda T: list(T.Size(SIZES[name](T))))
    assert outcome(lambda: {type(n) for n in tg.Size(SIZES[name](tg))}) in ({int}, "TypeError")


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
def test_whole_numbers_without_a_sign_are_close(dtype):
    def run(T):
        x, y = T.tensor([1, 3, 60000, 5]).to(getattr(T, dtype)), T.tensor([1, 2, 59999, 4]).to(getattr(T, dtype))
        return T.isclose(x, y), T.isclose(x, y, atol=1), T.isclose(y, x, atol=1), T.isclose(x, y, rtol=1e-4)

    torch = pytest.importorskip("torch")
    assert [t.tolist() for t in run(tg)] == [t.tolist() for t in run(torch)]
    assert tg.allclose(tg.tensor([1], dtype=getattr(tg, dtype)), tg.tensor([1], dtype=getattr(tg, dtype)))
