"""`torch._foreach_*` and `torch._check*`, beside PyTorch where it is installed."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.tensor import foreach

CALLS = {
    "add": [(2.0,), ([1.0, 2.0],), ("same",)], "sub": [("same",)], "mul": [(3.0,), ("same",), ("scalar",)],
    "div": [([2.0, 4.0],)], "addcdiv": [("same", "same", 2.0), ("same", "same", [1.0, 2.0])],
    "addcmul": [("same", "same", 0.5)],
    "lerp": [("same", 0.25), ("same", "same"), ("same", [0.1, 0.2])], "pow": [(2.0,), ("same",)], "copy": [("same",)],
    "clamp_min": [(0.5,), ("same",)], "clamp_max": [(0.5,)], "maximum": [("same",), (0.4,)], "minimum": [([0.4, 0.5],)],
    "norm": [(), (float("inf"),), (1,)], "powsum": [(2,)],
}  # fmt: skip


def called(module, name, args):
    lists = [module.tensor([0.5, 0.25]), module.tensor([[0.75]])]
    other = [module.tensor([0.3, 0.6]), module.tensor([[0.9]])]
    known = {"same": other, "scalar": module.tensor(3.0)}
    found = getattr(module, name)(lists, *(known.get(a, a) if isinstance(a, str) else a for a in args))
    assert not name.endswith("_") or found is None or found[0] is lists[0]
    return [t.flatten().tolist() for t in (lists if found is None else found)]


@pytest.mark.parametrize("name", [n for n in foreach.names() if n != "_foreach_mm"])
def test_each_tensor_of_a_list_is_treated_as_in_pytorch(name):
    torch = pytest.importorskip("torch")
    for args in CALLS.get(name[len(foreach.PREFIX) :].rstrip("_"), [()]):
        wanted = called(torch, name, args)
        for ours, theirs in zip(called(tg, name, args), wanted, strict=True):
            assert ours == pytest.approx(theirs, rel=1e-6, nan_ok=True), args


def test_all_of_pytorchs_are_here():
    torch = pytest.importorskip("torch")
    assert [n for n in dir(torch) if n.startswith(foreach.PREFIX) and not hasattr(tg, n)] == []
    assert tg._foreach_mm([tg.eye(2)], [tg.ones(2, 2)])[0].tolist() == [[1, 1], [1, 1]]
    assert [t.tolist() for t in tg._foreach_pow(2.0, [tg.tensor(3.0)])] == [8.0]


def test_the_factor_of_a_sum_is_an_argument_by_name():
    a, b = [tg.ones(2)], [tg.full((2,), 3.0)]
    assert tg._foreach_add(a, b, alpha=2)[0].tolist() == [7.0, 7.0]
    tg._foreach_sub_(a, b, alpha=2)
    assert a[0].tolist() == [-5.0, -5.0]


def test_lists_that_do_not_fit_are_refused():
    a = [tg.ones(2), tg.ones(1)]
    for args, text in (
        (([], 1), "at least one tensor"),
        ((a, [1]), "same number of elements as scalar list"),
        ((a, a[:1]), "must have the same number of tensors, got 2 and 1"),
    ):
        with pytest.raises(RuntimeError, match=text):
            tg._foreach_add(*args)
    with pytest.raises(TypeError, match="must be a list of tensors"):
        tg._foreach_add(a[0], 1)


def test_conditions_raise_what_their_names_say():
    tg._check(True)
    tg._check_is_size(3, max=3)
    for check, kind in (
        (tg._check, RuntimeError),
        (tg._check_index, IndexError),
        (tg._check_value, ValueError),
        (tg._check_type, TypeError),
        (tg._check_not_implemented, NotImplementedError),
    ):
        with pytest.raises(kind, match="told"):
            check(False, lambda: "told")
    with pytest.raises(RuntimeError, match="Expected cond to be True"):
        tg._check(False)
    with pytest.raises(RuntimeError):
        tg._check_is_size(-1)
    with pytest.raises(TypeError, match="cond must be a bool"):
        tg._check_with(ValueError, tg.ones(1))
    with pytest.raises(TypeError, match=r"dtype torch\.bool"):
        tg._check_tensor_all(tg.ones(2))
    with pytest.raises(TypeError, match="cond must be a tensor"):
        tg._check_tensor_all_with(ValueError, True)
    with pytest.raises(RuntimeError, match="Expected cond"):
        tg._check_tensor_all(tg.tensor([True, False]))
    with pytest.raises(RuntimeError, match="told"):
        tg._assert_async(tg.zeros(1), "told")


@pytest.mark.parametrize("name", ["_foreach_addcdiv", "_foreach_addcmul"])
def test_a_tensor_holds_a_factor_for_each(name):
    tensors, run = [tg.ones(2), tg.full((3,), 2.0)], getattr(tg, name)
    expected = run(tensors, tensors, tensors, [0.5, 2.0])
    for factors in ({"scalars": tg.tensor([0.5, 2.0])}, {"scalars": [0.5, 2.0]}):
        assert all(map(tg.equal, run(tensors, tensors, tensors, **factors), expected))
    assert all(map(tg.equal, run(tensors, tensors, tensors, tg.tensor([0.5, 2.0], dtype=tg.float64)), expected))
    for factors, text in ((tg.tensor(0.5), "of dimension 1. Got 0"), (tg.ones(3), "of length 2 but got 3 instead")):
        with pytest.raises(RuntimeError, match=text):
            run(tensors, tensors, tensors, factors)
