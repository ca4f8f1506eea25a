"""A layer beside PyTorch's: made from one seed, and compared in everything."""

import copy
from functools import partial

import numpy as np

import tinygrad_ext as tg


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype("float32")


def close(ours, theirs, what="", rtol=2e-5, atol=2e-6):
    ours, theirs = (x.detach().numpy() if hasattr(x, "detach") else x for x in (ours, theirs))
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol, err_msg=what)


def close_or_nearer(ours, theirs, exact, what):
    """Sums that cancel differ by more on some processors: they have to be as near to `exact()` as PyTorch's."""
    try:
        close(ours, theirs, what)
    except AssertionError:
        ours, theirs, exact = (x.detach().numpy() for x in (ours, theirs, exact()))
        if abs(ours - exact).max() > abs(theirs - exact).max():
            raise


def seeded(library, name, args, kwargs):
    library.manual_seed(5)
    return getattr(library.nn, name)(*args, **kwargs)


def exact_gradient(double, key, inputs, weights, torch):
    given = [torch.from_numpy(x.copy()) for x in inputs]
    result = double(*(x.double() if x.is_floating_point() else x for x in given))
    result = result[0] if isinstance(result, tuple) else result
    double.zero_grad()
    (result * torch.from_numpy(weights)).sum().backward()
    return dict(double.named_parameters())[key].grad


def compare(ours, theirs, inputs, torch, what):
    """Outputs, gradients of inputs and parameters, and the state afterwards."""
    double = copy.deepcopy(theirs).double()
    pairs = [(tg.from_numpy(x.copy()), torch.from_numpy(x.copy())) for x in inputs]
    for pair in pairs:
        if pair[1].is_floating_point():
            for x in pair:
                x.requires_grad_()
    results = [layer(*given) for layer, given in zip((ours, theirs), zip(*pairs))]
    results = [list(result) if isinstance(result, tuple) else [result] for result in results]
    assert len(results[0]) == len(results[1])
    for mine, reference in zip(*results):
        assert tuple(mine.shape) == tuple(reference.shape)
        close(mine, reference, f"{what}: output")
    weights = numbers(*results[1][0].shape, seed=1)
    (results[0][0] * tg.from_numpy(weights)).sum().backward()
    (results[1][0] * torch.from_numpy(weights)).sum().backward()
    if what != "CrossMapLRN2d":  # PyTorch's gradient is not the derivative; see below
        for mine, reference in pairs:
            if reference.grad is not None:
                close(mine.grad, reference.grad, f"{what}: gradient of the input")
    for (key, mine), (reference_key, reference) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        assert key == reference_key
        assert (mine.grad is None) == (reference.grad is None), key
        if reference.grad is not None:
            exact = partial(exact_gradient, double, key, inputs, weights, torch)
            close_or_nearer(mine.grad, reference.grad, exact, f"{what}: gradient of {key}")
    state, reference_state = ours.state_dict(), theirs.state_dict()
    assert list(state) == list(reference_state)
    for key in state:
        close(state[key], reference_state[key], key)
