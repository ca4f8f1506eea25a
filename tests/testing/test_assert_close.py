"""`testing.assert_close` agrees with PyTorch's: what passes, the type of the error, and its text."""

import numpy as np
import pytest

import tinygrad_ext as tg

NAN, INF = float("nan"), float("inf")
# calls of assert_close(lib, check): each gives its arguments to `check`
CALLS = [
    lambda t, check: check(t.ones(3), t.tensor([1.0, 2, 1])),
    lambda t, check: check(t.ones(2, 2), t.tensor([[1.0, 2], [1, 1]])),
    lambda t, check: check(t.tensor(1.0), t.tensor(2.0)),
    lambda t, check: check(1.0, 2.0),
    lambda t, check: check(1, 2),
    lambda t, check: check(1, 1.0),
    lambda t, check: check(1, 1.0, check_dtype=False),
    lambda t, check: check(1 + 1j, 1 + 2j),
    lambda t, check: check(np.float32(1), 1.0),
    lambda t, check: check(True, False),
    lambda t, check: check("a", "a"),
    lambda t, check: check(None, None),
    lambda t, check: check(None, 1),
    lambda t, check: check([t.ones(2), t.ones(2)], [t.ones(2), t.zeros(2)]),
    lambda t, check: check([t.ones(2)], [t.ones(2), t.zeros(2)]),
    lambda t, check: check((1, 2), [1, 2]),
    lambda t, check: check([t.ones(1)], t.ones(1)),
    lambda t, check: check({"a": t.ones(2)}, {"a": t.zeros(2)}),
    lambda t, check: check({"a": t.ones(2)}, {"b": t.zeros(2)}),
    lambda t, check: check({"a": [t.ones(2), 1]}, {"a": [t.ones(2), 2]}),
    lambda t, check: check([{"a": (1.0, 2.0)}], [{"a": (1.0, 3.0)}]),
    lambda t, check: check({1: 2}, {1: 3}),
    lambda t, check: check([], []),
    lambda t, check: check(t.ones(2), t.ones(3)),
    lambda t, check: check(t.ones(2), t.ones(2, dtype=t.float64)),
    lambda t, check: check(t.ones(2), t.ones(2, dtype=t.float64), check_dtype=False),
    lambda t, check: check(t.tensor([1, 2]), t.tensor([1.0, 2.0]), check_dtype=False),
    lambda t, check: check(t.tensor([1]), t.tensor([1], dtype=t.int32)),
    lambda t, check: check(t.ones(2), t.ones(2, device="meta")),
    lambda t, check: check(t.ones(2, device="meta"), t.ones(2, device="meta")),
    lambda t, check: check(t.ones(2), [1.0, 1.0]),
    lambda t, check: check(t.ones(2), 1.0),
    lambda t, check: check(np.ones(2), np.zeros(2)),
    lambda t, check: check(np.ones(2), t.ones(2)),
    lambda t, check: check(t.tensor([NAN]), t.tensor([NAN])),
    lambda t, check: check(t.tensor([NAN]), t.tensor([NAN]), equal_nan=True),
    lambda t, check: check(t.tensor([NAN, 1]), t.tensor([1.0, NAN])),
    lambda t, check: check(NAN, NAN),
    lambda t, check: check(NAN, NAN, equal_nan=True),
    lambda t, check: check(t.tensor([INF, 1.0]), t.tensor([INF, 2.0])),
    lambda t, check: check(t.ones(2), t.zeros(2), rtol=0.1),
    lambda t, check: check(t.ones(2), t.zeros(2), atol=0.1),
    lambda t, check: check(t.ones(2), t.zeros(2), rtol=0.1, atol=0.5),
    lambda t, check: check(t.ones(2, 3), t.zeros(2, 3), rtol=0, atol=0),
    lambda t, check: check(1, 5, rtol=0.1, atol=1),
    lambda t, check: check(t.ones(2), t.zeros(2), msg="told"),
    lambda t, check: check([1, 2], [1, 3], msg=lambda text: "told: " + text),
    lambda t, check: check(t.tensor([1, 2]), t.tensor([1, 3])),
    lambda t, check: check(t.tensor([1], dtype=t.uint8), t.tensor([2], dtype=t.uint8)),
    lambda t, check: check(t.tensor([True]), t.tensor([False])),
    lambda t, check: check(t.tensor([1j]), t.tensor([2j])),
    lambda t, check: check(t.ones(2, 2).t(), t.ones(2, 2)),
    lambda t, check: check(t.ones(2, 2).t(), t.ones(2, 2), check_stride=True),
    lambda t, check: check(t.ones(2), t.nn.Parameter(t.ones(2))),
    lambda t, check: check(t.ones(2), t.nn.Parameter(t.ones(2)), allow_subclasses=False),
    lambda t, check: check(t.ones(2).half(), t.ones(2).half() * 1.1),
    lambda t, check: check(t.ones(2).bfloat16(), t.ones(2).bfloat16() * 1.02),
    lambda t, check: check(t.tensor([0.0], dtype=t.float64), t.tensor([2e-7], dtype=t.float64)),
    lambda t, check: check(t.empty(0), t.empty(0)),
    lambda t, check: check(t.ones(2, requires_grad=True), t.ones(2) * 2),
]


def outcome(lib, call):
    try:
        call(lib, lib.testing.assert_close)
    except Exception as error:
        return type(error), str(error).replace("tinygrad_ext", "torch")
    return None, ""


@pytest.mark.parametrize("call", CALLS, ids=range(len(CALLS)))
def test_type_and_text_of_the_error_are_pytorchs(call):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    (kind, text), (wanted, words) = outcome(tg, call), outcome(torch, call)
    assert kind is wanted
    assert text.startswith(words)  # a TypeError says what to do next as well
    assert kind is TypeError or text == words


def test_every_tolerance_of_a_dtype_holds_on_both_sides():
    for dtype, (rtol, atol) in {tg.float16: (1e-3, 1e-5), tg.float32: (1.3e-6, 1e-5), tg.float64: (1e-7, 1e-7)}.items():
        base = tg.full((1,), 8.0, dtype=tg.float64)
        for factor, passes in ((0.5, True), (2.0, False)):
            moved = base + factor * (atol + rtol * 8.0)
            if dtype == tg.float16:
                moved = base + (0.0078125 if passes else 0.03125)  # what a half can hold beside 8
            kind = outcome(tg, lambda t, check, moved=moved, d=dtype: check(moved.to(d), base.to(d)))[0]
            assert (kind is None) is passes, (dtype, factor)


def test_negative_tolerances_are_refused():
    with pytest.raises(ValueError, match="rtol and atol must not be negative, got rtol=1 and atol=-1"):
        tg.testing.assert_close(tg.ones(1), tg.ones(1), rtol=1, atol=-1)


def test_assert_allclose_takes_numbers_and_other_dtypes():
    with pytest.warns(FutureWarning, match="assert_close"):
        tg.testing.assert_allclose([1.0, NAN], np.array([1.0, NAN]))
    with pytest.warns(FutureWarning):
        tg.testing.assert_allclose(tg.ones(2), tg.ones(2, dtype=tg.float64) + 5e-5)
    with pytest.warns(FutureWarning), pytest.raises(AssertionError, match="here"):
        tg.testing.assert_allclose(tg.ones(2), 2, rtol=0.1, atol=0.0, msg="here")


def test_tolerances_are_the_largest_of_the_dtypes():
    from tinygrad_ext.testing.close import default_tolerances, get_tolerances

    x = tg.ones(2)
    assert get_tolerances(x, x.double(), rtol=None, atol=None) == default_tolerances(tg.float32) == (1.3e-6, 1e-5)
    assert get_tolerances(rtol=1.0, atol=2.0) == (1.0, 2.0) and default_tolerances(tg.int64) == (0.0, 0.0)
    assert default_tolerances(x, dtype_precisions={tg.float32: (1, 2)}) == (1, 2)
    with pytest.raises(ValueError, match="got no atol"):
        get_tolerances(x, rtol=1.0, atol=None)
    with pytest.raises(TypeError, match="Expected a torch.Tensor or a torch.dtype, but got <class 'int'>"):
        default_tolerances(3)
    with pytest.raises(ValueError, match="got none"):
        default_tolerances()


@pytest.mark.parametrize("layout", ["coo", "csr", "csc"])
def test_sparse_tensors_are_compared_by_their_parts(layout):
    def made(rows):
        table = tg.tensor(rows)
        return table.to_sparse() if layout == "coo" else getattr(table, f"to_sparse_{layout}")()

    one = made([[1.0, 0.0], [0.0, 2.0]])
    tg.testing.assert_close(one, made([[1.0, 0.0], [0.0, 2.0 + 1e-7]]))
    tg.testing.assert_close(one, one.to_dense(), check_layout=False)
    name = layout.upper()
    for other, words in (
        ([[1.0, 0.0], [0.0, 3.0]], f"Sparse {name} values are not close"),
        ([[0.0, 1.0], [2.0, 0.0]], f"Sparse {name} .*indices are not equal"),
        ([[1.0, 1.0], [1.0, 2.0]], f"specified values in sparse {name} tensors does not match: 2 != 4"),
    ):
        with pytest.raises(AssertionError, match=words):
            tg.testing.assert_close(one, made(other))
    with pytest.raises(AssertionError, match="attribute 'layout' do not match"):
        tg.testing.assert_close(one, one.to_dense())
