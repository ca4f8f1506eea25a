"""Under the alias: nodes and questions of `torch._C`, and models made as functions of their states."""

import importlib

import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd.graph import Node, disable_saved_tensors_hooks


@pytest.fixture
def compiled(as_torch):
    return importlib.import_module("torch")._C


def test_nodes_of_backward_graphs(compiled):
    nodes = compiled._functions
    x = tg.ones(2, requires_grad=True)
    assert isinstance((x * 2).grad_fn.next_functions[0][0], nodes.AccumulateGrad)
    assert all(issubclass(kind, Node) for kind in (nodes.AccumulateGrad, nodes.UndefinedGrad, nodes.DelayedError))
    passed = nodes.DelayedError("told", 1)(x)
    assert passed.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="^told$"):
        passed.sum().backward()
    with pytest.raises(RuntimeError, match="expected 2 tensors, got 1"):
        nodes.DelayedError("told", 2)(x)


def test_no_gradient_goes_through_an_undefined_one(compiled):
    seen = []

    class Seen(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            seen.append(grad.tolist())
            return grad

    compiled._functions.UndefinedGrad()(Seen.apply(tg.ones(1, requires_grad=True))).backward()
    assert seen == [[0]]


def test_whether_hooks_may_be_entered(compiled):
    asked = compiled._autograd._saved_tensors_hooks_is_enabled
    assert asked()
    with disable_saved_tensors_hooks("not now"):
        assert not asked()
    assert asked()


def test_models_as_functions_of_their_states(as_torch):
    place = importlib.import_module("torch._functorch.make_functional")
    x = as_torch.rand(4, 5, 3)
    weights, buffers, function, names, kept = place.functional_init_with_buffers(as_torch.nn.BatchNorm1d, [4])(3)
    assert [tuple(w.shape) for w in weights] == [(4, 3)] * 2 and names == ("weight", "bias") and len(kept) == 3
    assert as_torch.vmap(function)(weights, buffers, (x,)).shape == (4, 5, 3)
    weights, function, names = place.functional_init(as_torch.nn.Linear, [4])(3, 2)
    assert as_torch.vmap(function)(weights, (x,)).shape == (4, 5, 2) and names == ("weight", "bias")
    weights, function, _ = place.functional_init(as_torch.nn.Linear)(3, 2)
    assert function(weights, (x[0],)).shape == (5, 2)
    for shape, words in (([2, 2], "at most one number"), ([0], "should be > 0")):
        with pytest.raises(ValueError, match=words):
            place.functional_init(as_torch.nn.Linear, shape)(3, 2)


def test_devices_of_updates_of_lists(as_torch):
    place = importlib.import_module("torch.utils._foreach_utils")
    assert "cpu" not in place._get_foreach_kernels_supported_devices()
    assert "cpu" in place._get_fused_kernels_supported_devices()


def test_products_along_several_dimensions(as_torch):
    prod = importlib.import_module("torch._refs").prod
    x = tg.arange(1, 7).reshape(1, 2, 3)
    for dims in (None, [], (0, 1, 2), [-1, -2, -3]):
        assert prod(x, dims).item() == 720 and prod(x, dims, True).shape == (1, 1, 1)
    assert prod(x, (0, 2)).tolist() == [6, 120] and prod(x, 1, True).shape == (1, 1, 3) and prod(x, 0).shape == (2, 3)
    assert prod(x.int()).dtype is tg.int64 and prod(x.float(), dtype=tg.float64).dtype is tg.float64
    assert prod(tg.tensor(3.0)).item() == 3 and prod(tg.tensor(3.0), -1).item() == 3
    assert prod(x, (0, 2), out=tg.empty(0, dtype=tg.int64)).tolist() == [6, 120]
    with pytest.raises(RuntimeError, match="appears multiple times"):
        prod(x, (0, -3))
    with pytest.raises(IndexError, match="Dimension out of range"):
        prod(x, 3)


def test_views_are_tracked_in_one_way(as_torch):
    with as_torch.autograd._force_original_view_tracking(True):
        assert as_torch.ones(2)[:1]._base is not None
