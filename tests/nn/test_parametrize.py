"""nn.utils: parametrizations, weight and spectral norms, pruning, fusion, beside PyTorch's."""

import copy
import warnings

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn
from tinygrad_ext.nn.utils import parametrizations, parametrize, prune

LIBRARIES = [("ours", tg)]
try:
    import torch

    LIBRARIES.append(("PyTorch's", torch))
except ImportError:
    torch = None
needs_torch = pytest.mark.skipif(torch is None, reason="compares with PyTorch: pip install torch==2.13.0")


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, x):
        return x.triu()


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x


def test_a_parametrized_weight_is_computed_and_trained():
    layer = parametrize.register_parametrization(nn.Linear(3, 3), "weight", Symmetric())
    assert parametrize.is_parametrized(layer) and parametrize.is_parametrized(layer, "weight")
    assert not parametrize.is_parametrized(layer, "bias") and not parametrize.is_parametrized(nn.Linear(1, 1))
    assert tg.equal(layer.weight, layer.weight.mT)
    assert sorted(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    assert type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, nn.Linear)
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    layer(tg.ones(2, 3)).sum().backward()
    assert layer.parametrizations.weight.original.grad is not None
    layer.weight = tg.arange(9.0).view(3, 3)
    assert layer.weight.tolist() == [[0, 1, 2], [1, 4, 5], [2, 5, 8]]
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert layer.weight[0, 1].item() == 2 and len(layer.parametrizations["weight"]) == 2
    with parametrize.cached():
        assert layer.weight is layer.weight
    assert layer.weight is not layer.weight
    twin = copy.deepcopy(layer)
    assert tg.equal(twin.weight, layer.weight) and twin.parametrizations is not layer.parametrizations
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and layer.weight[0, 1].item() == 2 and isinstance(layer.weight, nn.Parameter)
    assert parametrize.is_parametrized(twin)


def test_nothing_is_kept_of_what_is_traced():
    layer, x = nn.Linear(3, 3), tg.ones(2, 3)
    parametrize.register_parametrization(layer, "weight", Doubled())
    expected, traced, compiled = layer(x), jit.trace(layer, (x,)), tg.compile(layer)
    with parametrize.cached():
        assert traced(x).equal(expected)
        with pytest.raises(RuntimeError, match="Cannot trace a model while caching"):
            jit.trace(layer, (x,))
        assert compiled(x).equal(expected) and layer(x).equal(expected)
    assert compiled(x).equal(expected) and jit.trace(layer, (x,))(x).equal(expected)


def test_parametrizations_that_do_not_fit_are_refused():
    class Longer(nn.Module):
        def forward(self, x):
            return tg.cat([x, x])

    with pytest.raises(ValueError, match="may not change the shape"):
        parametrize.register_parametrization(nn.Linear(2, 2), "weight", Longer())
    longer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Longer(), unsafe=True)
    assert tuple(longer.weight.shape) == (4, 2)
    with pytest.raises(RuntimeError, match="right_inverse"):
        longer.weight = tg.ones(4, 2)
    with pytest.raises(ValueError, match="does not have a parameter"):
        parametrize.register_parametrization(nn.Linear(2, 2), "wait", Doubled())
    with pytest.raises(ValueError, match="does not have a parametrization"):
        parametrize.remove_parametrizations(nn.Linear(2, 2), "weight")
    with pytest.raises(RuntimeError, match="only supported through state_dict"):
        longer.__getstate__()


def test_parametrizations_can_be_handed_over():
    source = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Symmetric())
    target = parametrize.transfer_parametrizations_and_params(source, nn.Linear(2, 2))
    assert tg.equal(target.weight, source.weight) and parametrize.is_parametrized(target, "weight")


def quietly(function, *args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(*args, **kwargs)


def same(values):
    if len(values) == 2:
        for ours, theirs in zip(*values, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


def trained(library, wrap):
    """Output, gradients and state names of a wrapped layer after one step."""
    library.manual_seed(0)
    layer = wrap(library, library.nn.Linear(4, 3))
    x = library.linspace(-1, 1, 8).view(2, 4)
    layer(x).square().sum().backward()
    library.optim.SGD(layer.parameters(), lr=0.1).step()
    out = layer(x)
    return out, layer


@needs_torch
@pytest.mark.parametrize(
    "wrap",
    [
        lambda lib, m: lib.nn.utils.parametrizations.weight_norm(m),
        lambda lib, m: lib.nn.utils.parametrizations.weight_norm(m, dim=None),
        lambda lib, m: quietly(lib.nn.utils.weight_norm, m),
        lambda lib, m: quietly(lib.nn.utils.weight_norm, m, dim=1),
        lambda lib, m: lib.nn.utils.parametrizations.spectral_norm(m),
        lambda lib, m: lib.nn.utils.spectral_norm(m, n_power_iterations=3),
    ],
)
def test_norms_of_weights_are_pytorchs(wrap):
    results, names = [], []
    for _, library in LIBRARIES:
        out, layer = trained(library, wrap)
        results.append([out.detach().numpy(), *(v.detach().numpy() for v in layer.state_dict().values())])
        names.append(list(layer.state_dict()))
    same(results)
    assert names[0] == names[1]


def test_norms_can_be_taken_off():
    layer = nn.Linear(4, 3)
    weight = layer.weight.detach().clone()
    with pytest.warns(FutureWarning, match="parametrizations.weight_norm"):
        nn.utils.weight_norm(layer)
    nn.utils.remove_weight_norm(layer)
    np.testing.assert_allclose(layer.weight.detach().numpy(), weight.numpy(), rtol=1e-6)
    nn.utils.remove_spectral_norm(nn.utils.spectral_norm(layer))
    assert sorted(layer.state_dict()) == ["bias", "weight"] and not layer._forward_pre_hooks
    with pytest.raises(ValueError, match="weight_norm of 'weight' not found"):
        nn.utils.remove_weight_norm(layer)
    with pytest.raises(ValueError, match="spectral_norm of 'weight' not found"):
        nn.utils.remove_spectral_norm(layer)
    with pytest.raises(ValueError, match="to be positive"):
        parametrizations.spectral_norm(layer, n_power_iterations=0)
    with pytest.raises(ValueError, match="orthogonal_map has to be"):
        parametrizations.orthogonal(layer, orthogonal_map="cube")


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3)])
@pytest.mark.parametrize("kind", [None, "cayley", "householder"])
def test_orthogonal_weights_stay_so(shape, kind):
    layer = nn.Linear(*shape)
    try:
        parametrizations.orthogonal(layer, orthogonal_map=kind)
        layer(tg.ones(2, shape[0])).sum().backward()
        tg.optim.SGD(layer.parameters(), lr=0.5).step()
        weight = layer.weight.detach().numpy()
    except AttributeError as error:  # while ops of linalg are missing, the error names the one
        assert "does not (yet)" in str(error)
        return
    small = weight @ weight.T if weight.shape[0] <= weight.shape[1] else weight.T @ weight
    np.testing.assert_allclose(small, np.eye(len(small)), atol=1e-5)


@needs_torch
@pytest.mark.parametrize(
    "cut",
    [
        lambda p, m: p.l1_unstructured(m, "weight", 3),
        lambda p, m: p.l1_unstructured(p.l1_unstructured(m, "weight", 0.25), "weight", 0.5),
        lambda p, m: p.ln_structured(m, "weight", 1, n=2, dim=0),
        lambda p, m: p.ln_structured(p.l1_unstructured(m, "weight", 2), "weight", 1, n=1, dim=1),
        lambda p, m: p.random_unstructured(m, "weight", 0.3),
        lambda p, m: p.random_structured(m, "weight", 2, dim=1),
        lambda p, m: p.identity(m, "weight"),
        lambda p, m: p.global_unstructured([(m, "weight"), (m, "bias")], p.L1Unstructured, amount=4),
    ],
)
def test_pruned_weights_are_pytorchs(cut):
    results, names = [], []
    for _, library in LIBRARIES:
        library.manual_seed(0)
        layer = library.nn.Linear(4, 3)
        pruning = __import__(f"{library.__name__}.nn.utils.prune", fromlist=["prune"])
        library.manual_seed(1)
        cut(pruning, layer)
        out = layer(library.ones(2, 4))
        results.append([out.detach().numpy(), *(v.detach().numpy() for v in layer.state_dict().values())])
        names.append(list(layer.state_dict()))
        assert pruning.is_pruned(layer)
        pruning.remove(layer, "weight")
        results[-1].append(layer.weight.detach().numpy())
    same(results)
    assert sorted(names[0]) == sorted(names[1])


def test_what_cannot_be_pruned_is_refused():
    layer = nn.Linear(4, 3)
    with pytest.raises(ValueError, match="smaller than the number of parameters"):
        prune.l1_unstructured(layer, "weight", 100)
    assert sorted(layer.state_dict()) == ["bias", "weight"] and not prune.is_pruned(layer)
    with pytest.raises(TypeError, match="Must be int or float"):
        prune.l1_unstructured(layer, "weight", "half")
    with pytest.raises(ValueError, match="multidimensional"):
        prune.ln_structured(layer, "bias", 1, n=2, dim=0)
    with pytest.raises(ValueError, match="has to be pruned"):
        prune.remove(layer, "weight")
    prune.custom_from_mask(layer, "bias", tg.tensor([1, 0, 1]))
    assert layer.bias[1].item() == 0


@needs_torch
def test_fused_layers_are_pytorchs():
    results = []
    for _, library in LIBRARIES:
        library.manual_seed(0)
        conv, norm = library.nn.Conv2d(2, 3, 3, bias=False), library.nn.BatchNorm2d(3)
        linear, flat = library.nn.Linear(4, 3), library.nn.BatchNorm1d(3)
        x = library.linspace(-1, 1, 4 * 2 * 25).view(4, 2, 5, 5)
        rows = library.linspace(-2, 1, 20).view(5, 4)
        for _ in range(3):
            norm(conv(x)), flat(linear(rows))
        utils = library.nn.utils
        with pytest.raises(AssertionError, match="only for eval!"):
            utils.fuse_conv_bn_eval(conv, norm)
        for module in (conv, norm, linear, flat):
            module.eval()
        fused = utils.fuse_conv_bn_eval(conv, norm)(x), utils.fuse_linear_bn_eval(linear, flat)(rows)
        for got, expected in zip(fused, (norm(conv(x)), flat(linear(rows)))):
            np.testing.assert_allclose(got.detach().numpy(), expected.detach().numpy(), atol=1e-5)
        results.append([v.detach().numpy() for v in fused])
    same(results)


def test_skip_init_leaves_memory_as_it_is():
    layer = nn.utils.skip_init(nn.Linear, 3, 2, bias=False)
    assert tuple(layer.weight.shape) == (2, 3) and layer.bias is None and layer.weight.device.type == "cpu"
    with pytest.raises(RuntimeError, match="Expected a Module"):
        nn.utils.skip_init(int)
    with pytest.raises(RuntimeError, match="must support a 'device' arg"):
        nn.utils.skip_init(nn.ReLU)


def test_older_names_work_and_say_so():
    weight = nn.Parameter(tg.zeros(2, 2))
    with pytest.warns(FutureWarning, match=r"nn\.init\.constant_"):
        nn.init.constant(weight, 3.0)
    weight.sum().backward()
    with pytest.warns(FutureWarning, match="clip_grad_norm_"):
        nn.utils.clip_grad_norm([weight], 1.0)
    assert weight.sum().item() == 12 and weight.grad.norm().item() == pytest.approx(1)
    nn.utils.convert_conv2d_weight_memory_format(nn.Conv2d(2, 2, 3), tg.channels_last)


def test_pruning_counts_and_checks_amounts_under_the_names_that_libraries_import():
    prune = nn.utils.prune
    assert prune._compute_nparams_toprune(0.25, 10) == 2 and prune._compute_nparams_toprune(3, 10) == 3
    # as many as are asked for: what the amount may be is asked before, by the other two
    assert prune._compute_nparams_toprune(11, 10) == 11 and prune._compute_nparams_toprune(1.5, 10) == 15
    for amount in (10, -1, 1.5, 0.5):
        assert prune._validate_pruning_amount(amount, 10) is None
    with pytest.raises(ValueError, match="amount=11 should be smaller than the number of parameters to prune=10"):
        prune._validate_pruning_amount(11, 10)
    for amount in (1.5, -0.5, -1):
        with pytest.raises(ValueError, match=f"amount={amount} should either be a float"):
            prune._validate_pruning_amount_init(amount)
    for cut in (prune.l1_unstructured, prune.random_unstructured):
        with pytest.raises(ValueError, match="amount=5 should be smaller than the number of parameters to prune=4"):
            cut(nn.Linear(2, 2), "weight", 5)
    for cut, given in ((prune.random_structured, {}), (prune.ln_structured, {"n": 2})):
        with pytest.raises(ValueError, match="amount=3 should be smaller than the number of parameters to prune=2"):
            cut(nn.Linear(2, 2), "weight", 3, dim=0, **given)


def test_handles_show_the_tables_of_their_hooks():
    layer = nn.Linear(2, 2)
    handle = layer.register_forward_hook(print, with_kwargs=True)
    assert handle.hooks_dict_ref() is layer._forward_hooks and handle.id in layer._forward_hooks
    assert any(table() is layer._forward_hooks_with_kwargs for table in handle.extra_dict_ref)
    handle.remove()


class Halved(nn.Module):
    """Its right inverse is not its inverse, so that it shows when it was called."""

    def forward(self, x):
        return x / 2

    def right_inverse(self, x):
        return x + 100


class Quiet(Halved):
    def right_inverse(self, x):
        raise NotImplementedError


@pytest.mark.parametrize("kind", [Doubled, Halved, Quiet])
def test_a_further_parametrization_is_put_on_what_is_there(kind):
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Symmetric())
    before, original = layer.weight.detach().clone(), layer.parametrizations.weight.original
    kept = original.detach().clone()
    parametrize.register_parametrization(layer, "weight", kind())
    assert tg.equal(layer.weight, kind()(before)) and tg.equal(original, kept)


def test_a_right_inverse_that_is_not_implemented_leaves_the_tensor():
    layer = nn.Linear(2, 2)
    before = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Quiet())
    assert tg.equal(layer.parametrizations.weight.original, before)
