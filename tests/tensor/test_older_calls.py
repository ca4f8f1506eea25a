"""Deprecated orders of arguments are understood, give what the present ones give, and the first is told."""

import warnings

import pytest

import tinygrad_ext as tg
from tinygrad_ext.tensor import older_calls

# (name, the tensors, the older order, the numbers); None stands where self's tensor goes
FORMS = [
    ("add", ((2,), (2,)), "self alpha other"),
    ("sub", ((2,), (2,)), "self alpha other"),
    ("addcmul", ((2,), (2,), (2,)), "self value tensor1 tensor2"),
    ("addcdiv", ((2,), (2,), (2,)), "self value tensor1 tensor2"),
    ("addmm", ((2, 2), (2, 2), (2, 2)), "beta self alpha mat1 mat2"),
    ("addmm", ((2, 2), (2, 2), (2, 2)), "beta self mat1 mat2"),
    ("addmv", ((2,), (2, 2), (2,)), "beta self alpha mat vec"),
    ("addmv", ((2,), (2, 2), (2,)), "beta self mat vec"),
    ("addr", ((2, 2), (2,), (2,)), "beta self alpha vec1 vec2"),
    ("addr", ((2, 2), (2,), (2,)), "beta self vec1 vec2"),
    ("baddbmm", ((1, 2, 2), (1, 2, 2), (1, 2, 2)), "beta self alpha batch1 batch2"),
    ("baddbmm", ((1, 2, 2), (1, 2, 2), (1, 2, 2)), "beta self batch1 batch2"),
]
NUMBERS = {"alpha": 3, "beta": 2, "value": 0.5}
each_form = pytest.mark.parametrize(("name", "shapes", "order"), FORMS, ids=lambda v: v if isinstance(v, str) else "")


def arguments(lib, shapes, order):
    tensors = iter([lib.arange(1.0, 1 + lib.ones(s).numel()).reshape(s) + k for k, s in enumerate(shapes)])
    return [NUMBERS[word] if word in NUMBERS else next(tensors) for word in order.split()]


def calls(lib, name, shapes, order):
    """The results as a function, as a method, in place, with a keyword and with out=."""
    args, words = arguments(lib, shapes, order), order.split()
    at = words.index("self")
    own, rest = args[at], [a for i, a in enumerate(args) if i != at]
    yield getattr(lib, name)(*args)
    yield getattr(own, name)(*rest)
    yield getattr(own.clone(), name + "_")(*rest)
    yield getattr(own, name)(*rest[:-1], **{words[-1]: rest[-1]})
    out = lib.empty(own.shape)
    assert getattr(lib, name)(*args, out=out) is out
    yield out


@pytest.fixture(autouse=True)
def quiet(monkeypatch):
    monkeypatch.setattr(older_calls, "_warned", {"told"})


@each_form
def test_an_older_order_means_the_present_one(name, shapes, order):
    args, words = arguments(tg, shapes, order), order.split()
    tensors = [a for a in args if isinstance(a, tg.Tensor)]
    want = getattr(tg, name)(*tensors, **{w: a for w, a in zip(words, args) if w in NUMBERS})
    assert all(got.equal(want) for got in calls(tg, name, shapes, order))


@each_form
def test_it_is_pytorchs(name, shapes, order):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = [t.tolist() for t in calls(torch, name, shapes, order)]
    assert [t.tolist() for t in calls(tg, name, shapes, order)] == wanted


def test_the_gradient_is_that_of_the_present_order():
    x, y = tg.ones(2, requires_grad=True), tg.ones(2, requires_grad=True)
    tg.add(x, 3, y).sum().backward()
    assert x.grad.tolist() == [1, 1] and y.grad.tolist() == [3, 3]


def test_the_first_deprecated_call_of_a_process_is_told(monkeypatch):
    monkeypatch.setattr(older_calls, "_warned", set())
    with pytest.warns(UserWarning, match=r"addcmul_ is deprecated: addcmul_\(self, value, tensor1, tensor2\)"):
        tg.ones(2).addcmul_(0.5, tg.ones(2), tg.ones(2))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tg.add(tg.ones(2), 2, tg.ones(2))


def test_a_flag_stands_where_a_later_argument_was():
    x = tg.eye(3)
    assert tg.nuclear_norm(x, True).shape == (1, 1)
    for keepdim in (tg.tensor(True), "yes"):
        with pytest.raises(TypeError, match="keepdim"):
            tg.nuclear_norm(x, keepdim=keepdim)


def test_what_fits_no_order_is_still_refused():
    x = tg.ones(2, 2)
    for call in (
        lambda: tg.add(x, x, x),
        lambda: tg.addmm(x, x, x, x),
        lambda: x.addmm(2, x),
        lambda: x.add(2, x, alpha=3),
        lambda: x.add(x, 2),
        lambda: x.add(2, x, x),
        lambda: tg.ops.aten.add(x, 2, x),
        lambda: tg.mul(x, 2, x),
    ):
        with pytest.raises(TypeError):
            call()


def test_a_type_that_overrides_gets_the_call_as_it_was_made():
    class Seen:
        @staticmethod
        def __torch_function__(func, types, args=(), kwargs=None):
            return func, len(args)

    assert tg.add(Seen(), 2, tg.ones(2)) == (tg.add, 3)


def test_max_and_min_of_two_tensors_write_one_out():
    a, b, out = tg.tensor([1.0, 5]), tg.tensor([3.0, 2]), tg.empty(2)
    assert tg.max(a, b, out=out) is out and out.tolist() == [3, 5]
    assert tg.min(a, b, out=out) is out and out.tolist() == [1, 2]
    values, places = tg.empty(()), tg.empty((), dtype=tg.int64)
    assert tg.max(a, 0, out=(values, places))[1].item() == 1 and values.item() == 5


def test_tensordot_takes_axes_as_array_libraries_do():
    a, b = tg.arange(6.0).reshape(2, 3), tg.arange(12.0).reshape(3, 4)
    for axes in (1, ([1], [0]), ((-1,), (0,))):
        assert tg.tensordot(a, b, axes=axes).equal(a @ b)
    with pytest.raises(TypeError, match="tensordot"):
        tg.tensordot(a, b, dims=1, axes=1)


def test_grad_takes_only_inputs_in_its_place():
    x = tg.ones(2, requires_grad=True)
    assert tg.autograd.grad(x.sum(), x, only_inputs=True)[0].tolist() == [1, 1]
    assert tg.autograd.grad(x.sum(), x, None, None, False, True, False, False, False)[0].tolist() == [1, 1]
    with pytest.warns(FutureWarning, match="only_inputs argument is deprecated"):
        tg.autograd.grad(x.sum(), x, only_inputs=False)


@pytest.mark.filterwarnings("ignore:This overload")
@pytest.mark.parametrize("out", [3, [None], (None,)])
def test_a_call_with_another_mistake_is_not_understood_as_itself(out):
    with pytest.raises(TypeError, match="'out' must be Tensor"):
        tg.nuclear_norm(tg.ones(3, 3), keepdim=False, out=out)
    with pytest.raises(TypeError, match="'out' must be Tensor"):
        tg.nuclear_norm(input=tg.ones(3, 3), keepdim=False, out=out)


def test_shapes_broadcast_without_tensors():
    assert tg.broadcast_shapes((2, 1), (3,), 1) == (2, 3) and type(tg.broadcast_shapes()) is tg.Size
    assert tg.broadcast_shapes((0,), (1,)) == (0,) and tg.broadcast_shapes(tg.Size([4]), [2, 1]) == (2, 4)
    with pytest.raises(RuntimeError, match=r"length 3 at -1! Mismatching argument at index 1 had \(3,\)"):
        tg.broadcast_shapes((2,), (3,))


def test_complex_and_half_numbers_are_finite_or_not():
    nan, inf = float("nan"), float("inf")
    t = tg.tensor([1j, complex(nan, 0), complex(0, inf), complex(-inf, 1)])
    assert t.isfinite().tolist() == [True, False, False, False] and t.isinf().tolist() == [False, False, True, True]
    assert tg.tensor([1.0, inf, nan]).half().isfinite().tolist() == [True, False, False]


def test_the_advice_for_complex_numbers_keeps_the_imaginary_part():
    with pytest.raises(NotImplementedError, match=r"'ComplexFloat': compute with .real and .imag") as told:
        tg.floor(tg.tensor([1j]))
    assert ".float()" not in str(told.value)


def test_split_takes_the_names_of_its_function_too():
    x = tg.arange(4)
    assert [t.tolist() for t in tg.split(tensor=x, split_size_or_sections=3, dim=0)] == [[0, 1, 2], [3]]
    assert [t.tolist() for t in tg.split(x, split_size_or_sections=[1, 3])] == [[0], [1, 2, 3]]
    with pytest.raises(TypeError, match="split"):
        tg.split(x, 2, split_size_or_sections=2)


def test_each_is_told_where_all_warnings_are_wanted():
    x = tg.ones(2)
    tg.set_warn_always(True)
    try:
        for _ in range(2):
            with pytest.warns(UserWarning, match="This overload of add is deprecated"):
                tg.add(x, 2, x)
            with pytest.warns(UserWarning, match="This overload of add_ is deprecated"):
                tg.ones(2).add_(2, x)
    finally:
        tg.set_warn_always(False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tg.add(x, 2, x)
    with pytest.raises(TypeError, match="expected a bool, but got int"):
        tg.set_warn_always(1)
