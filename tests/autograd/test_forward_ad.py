"""Dual tensors: forward mode for programs that are no single function."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd import forward_ad as fw

X = tg.tensor([0.3, -0.7, 1.2], dtype=tg.float64)
V = tg.tensor([1.0, 2.0, -1.0], dtype=tg.float64)


def close(got, want):
    tg.testing.assert_close(got, want)


def test_a_dual_tensor_takes_its_tangent_through_the_program():
    with fw.dual_level():
        dual = fw.make_dual(X, V)
        result = fw.unpack_dual(dual.exp() * 2)
        assert isinstance(result, fw.UnpackedDualTensor) and result._fields == ("primal", "tangent")
        assert "tangent=" in repr(dual)
    close(result.primal, X.exp() * 2)
    close(result.tangent, X.exp() * 2 * V)


def test_without_a_level_and_of_plain_tensors_there_is_no_tangent():
    assert fw.unpack_dual(X).tangent is None
    with fw.dual_level():
        assert fw.unpack_dual(X) == (X, None)
        result = fw.make_dual(X, V) * 2
    after = fw.unpack_dual(result)
    close(after.primal, X * 2)
    assert after.tangent is None


def test_the_level_decorates_functions():
    @fw.dual_level()
    def product():
        return fw.unpack_dual(fw.make_dual(X, V).sin()).tangent

    close(product(), X.cos() * V)


def test_tangents_are_differentiated_backward_by_what_they_depend_on():
    x, v = X.clone().requires_grad_(), V.clone().requires_grad_()
    with fw.dual_level():
        tangent = fw.unpack_dual(fw.make_dual(x, v).exp()).tangent
    by_x, by_v = tg.autograd.grad(tangent.sum(), (x, v))
    close(by_x, X.exp() * V)
    close(by_v, X.exp())


def test_parameters_take_tangents_in_modules():
    layer = tg.nn.Linear(3, 2).double()
    with fw.dual_level():
        weight, direction = layer.weight, tg.ones(2, 3, dtype=tg.float64)
        dual = fw.make_dual(weight.detach(), direction)
        tangent = fw.unpack_dual(tg.func.functional_call(layer, {"weight": dual}, (X,))).tangent
    close(tangent, X.sum().expand(2))


def test_a_jvp_may_run_inside_a_level():
    with fw.dual_level():
        dual = fw.make_dual(X, V)
        _, inner = tg.func.jvp(lambda x: x * dual, (X,), (V,))
        close(fw.unpack_dual(inner).tangent, V * V)


def test_an_error_inside_ends_the_level():
    with pytest.raises(ZeroDivisionError), fw.dual_level():
        raise ZeroDivisionError
    assert fw.enter_dual_level() == 0
    fw.exit_dual_level()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: fw.enter_dual_level(), RuntimeError, "Nested forward mode AD is not supported"),
        (lambda: fw.exit_dual_level(level=1), RuntimeError, "not the last one"),
        (lambda: fw.make_dual(X, V[:2]), RuntimeError, "different size"),
        (lambda: fw.make_dual(X.long(), V), ValueError, "Expected primal to be floating point"),
        (lambda: fw.make_dual(X, V.long()), ValueError, "Expected tangent to be floating point"),
        (lambda: fw.make_dual(fw.make_dual(X, V), V), RuntimeError, "has a forward gradient at this level already"),
        (lambda: fw.make_dual(X, V, level=1), RuntimeError, "no level exists"),
    ],
)
def test_bad_calls_inside_a_level_are_refused(call, error, words):
    with fw.dual_level(), pytest.raises(error, match=words):
        call()


def test_bad_calls_outside_a_level_are_refused():
    with pytest.raises(RuntimeError, match="no level exists"):
        fw.make_dual(X, V)
    with pytest.raises(RuntimeError, match="Trying to exit"):
        fw.exit_dual_level()
