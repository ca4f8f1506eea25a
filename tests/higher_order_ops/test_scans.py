"""`associative_scan` and `scan`, against loops."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext._higher_order_ops import associative_scan, scan


def _linear(a, b):
    """Of two steps x -> m * x + k the one that does both."""
    return a[0] * b[0], a[1] * b[0] + b[1]


def _looped(combine, xs, dim, reverse):
    rows = list(zip(*(x.unbind(dim) for x in xs)))
    rows = rows[::-1] if reverse else rows
    made = [rows[0]]
    for row in rows[1:]:
        made.append(combine(made[-1], row))
    made = made[::-1] if reverse else made
    return tuple(tg.stack(parts, dim) for parts in zip(*made))


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 8, 13])
@pytest.mark.parametrize("dim, reverse", [(0, False), (1, True), (-1, False)])
def test_all_that_lies_before_is_combined(count, dim, reverse):
    tg.manual_seed(0)
    shape = [2, 3]
    shape[dim] = count
    xs = tuple(tg.randn(shape, dtype=tg.float64).requires_grad_() for _ in range(2))
    got = associative_scan(_linear, xs, dim, reverse, combine_mode="generic")
    expected = _looped(_linear, xs, dim, reverse)
    for a, b in zip(got, expected):
        assert tg.allclose(a, b)
    grads = [tg.autograd.grad(sum(p.sin().sum() for p in parts), xs) for parts in (got, expected)]
    for a, b in zip(*grads):
        assert tg.allclose(a, b)


def test_it_sees_elements_and_not_batches():
    x = tg.randn(6, 3, 3, dtype=tg.float64)
    got = associative_scan(lambda a, b: {"m": a["m"] @ b["m"]}, {"m": x}, 0, combine_mode="generic")["m"]
    assert tg.allclose(got[3], x[0] @ x[1] @ x[2] @ x[3])


@pytest.mark.parametrize(
    "call, kind, message",
    [
        (lambda x: associative_scan(3, x, 0, combine_mode="generic"), ValueError, "must be a callable"),
        (lambda x: associative_scan(tg.add, x, "a", combine_mode="generic"), ValueError, "Dim must be an int"),
        (lambda x: associative_scan(tg.add, x, 0, 1, combine_mode="generic"), RuntimeError, "Reverse must be a bool"),
        (lambda x: associative_scan(tg.add, x, 0, combine_mode="no"), ValueError, "'pointwise' or 'generic'"),
        (
            lambda x: associative_scan(tg.add, x, 0),
            ValueError,
            "need to be on CUDA or XPU: pass combine_mode='generic'",
        ),
        (lambda x: associative_scan(tg.add, [], 0, combine_mode="generic"), ValueError, "at least 1 xs leaf"),
        (lambda x: associative_scan(tg.add, 3.0, 0, combine_mode="generic"), ValueError, "must be a Tensor, not float"),
        (lambda x: associative_scan(tg.add, x, 1, combine_mode="generic"), ValueError, r"the shape \(3,\) and dim 1"),
        (
            lambda x: associative_scan(_linear, (x, x[:2]), 0, combine_mode="generic"),
            ValueError,
            "one size along dim 0",
        ),
        (
            lambda x: associative_scan(lambda a, b: (a, b), x, 0, combine_mode="generic"),
            RuntimeError,
            "must return what",
        ),
        (lambda x: scan(3, x, x), RuntimeError, "must be a callable"),
        (lambda x: scan(_counted, [], x), RuntimeError, "requires init leaves"),
        (lambda x: scan(_counted, 3.0, x), RuntimeError, "All init leaves must be a Tensor but got 3.0"),
        (lambda x: scan(_counted, x, [x, 2]), RuntimeError, "All xs leaves must be a Tensor but got 2"),
        (lambda x: scan(_counted, x, x, dim=1), RuntimeError, r"the shape \(3,\) and dim 1"),
        (lambda x: scan(_counted, x, x, dim=True), RuntimeError, "Dim must be an int"),
        (lambda x: scan(_counted, x, x, reverse=1), RuntimeError, "Reverse must be a bool"),
        (lambda x: scan(lambda c, e: ((c, c), e), x, x), RuntimeError, "must be a tree .* as init is"),
        (lambda x: scan(lambda c, e: (c[:1], e), x, x), RuntimeError, r"\(3,\) of torch.float32, and became \(1,\)"),
    ],
)
def test_what_is_refused(call, kind, message):
    with pytest.raises(kind, match=message):
        call(tg.ones(3))


def _counted(carried, element):
    return carried + element, (carried * element, element.exp())


@pytest.mark.parametrize("dim, reverse", [(0, False), (0, True), (1, False)])
def test_what_is_carried_goes_from_element_to_element(dim, reverse):
    x = tg.randn(4, 3, dtype=tg.float64).requires_grad_()
    carried, (products, exps) = scan(
        _counted, tg.zeros(x.shape[1 - dim], dtype=tg.float64), x, dim=dim, reverse=reverse
    )
    rows, before, expected = list(x.unbind(dim)), tg.zeros(x.shape[1 - dim], dtype=tg.float64), []
    for row in rows[::-1] if reverse else rows:
        expected.append(before * row)
        before = before + row
    assert tg.allclose(carried, before) and tg.allclose(exps, x.exp())
    assert tg.allclose(products, tg.stack(expected[::-1] if reverse else expected, dim))
    assert tg.autograd.grad(products.sum(), x)[0].shape == x.shape


@pytest.mark.parametrize(
    ("dim", "result", "shape"),
    [(2, lambda v: v.sum(0), (4, 3)), (-1, lambda v: v.sum(0), (4, 3)), (-1, lambda v: v[None], (1, 2, 4, 3)),
     (1, lambda v: v, (2, 3, 4)), (-2, lambda v: v.sum(), (3,))],
)  # fmt: skip
def test_results_of_a_scan_lie_along_its_dimension_where_they_have_it(dim, result, shape):
    xs = tg.arange(24.0).reshape(2, 3, 4)
    _, found = scan(lambda c, v: (c, result(v)), tg.zeros(1), xs, dim=dim)
    at = dim % 3 if dim % 3 <= result(xs.select(dim, 0)).dim() else 0
    assert tuple(found.shape) == shape and tg.equal(found, tg.stack([result(v) for v in xs.unbind(dim)], at))
