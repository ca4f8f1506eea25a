"""The switch of checks of sparse tensors: kept, put back, and on or off no wrong tensor is made."""

import pytest

import tinygrad_ext as tg

check = tg.sparse.check_sparse_tensor_invariants


def test_the_switch_is_kept_and_put_back():
    assert not check.is_enabled()
    with check():
        assert check.is_enabled()
        with check(False):
            assert not check.is_enabled()
        assert check.is_enabled()
    assert not check.is_enabled()
    check.enable()
    assert check(False)(check.is_enabled)() is False and check.is_enabled()
    check.disable()
    with check() as nothing:
        assert nothing is None


def test_a_context_is_entered_once():
    one = check()
    with one:
        with pytest.raises(RuntimeError, match="already activated"):
            one.__enter__()
    assert not check.is_enabled()


def test_wrong_places_are_refused_in_any_case():
    for on in (True, False):
        with check(on), pytest.raises(RuntimeError):
            tg.sparse_coo_tensor([[5]], [1.0], (2,))


def test_requires_grad_of_a_sparse_tensor_is_set():
    x = tg.eye(2).to_sparse()
    x.requires_grad = True
    (x @ tg.ones(2, 1)).sum().backward()
    assert x.requires_grad and x.grad.to_dense().tolist() == [[1, 0], [0, 1]]
    x.requires_grad = False
    assert not x.requires_grad
