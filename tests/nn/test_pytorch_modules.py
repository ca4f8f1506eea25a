"""PyTorch's own table of modules (`module_db`), run on ours: each sample builds the module in both libraries.

The state is carried over and must have the same names and sizes; outputs, gradients of inputs and parameters, and
gradients of those gradients must agree, in training and in evaluation; and a pickled module must go on as it was.
What the table says is refused is refused with the same exception and words, and every class has PyTorch's bases.
"""

import importlib.util
import pickle
import re

import numpy as np
import pytest

import tinygrad_ext as tg

if importlib.util.find_spec("torch") is None or importlib.util.find_spec("expecttest") is None:
    pytest.skip(
        "PyTorch and expecttest, which its table of modules imports, are not installed", allow_module_level=True
    )

import torch

from tests.helpers.pytorchs_tables import module_db

AT_MOST = 50  # samples of one entry, dtype and mode, more or less: every so many of them


def ours(value, made=None):
    """A PyTorch value as ours, sharing no memory; one tensor given twice stays one."""
    made = {} if made is None else made
    if isinstance(value, torch.Tensor):
        if id(value) not in made:
            made[id(value)] = _tensor(value)
        return made[id(value)]
    if isinstance(value, torch.dtype):
        return getattr(tg, str(value)[6:])
    if isinstance(value, torch.nn.TransformerEncoderLayer):
        return _encoder_layer(value)
    if isinstance(value, torch.nn.LinearCrossEntropyOptions):
        return tg.nn.LinearCrossEntropyOptions(**{k: ours(getattr(value, k)) for k in value.__slots__})
    if callable(value) and (getattr(value, "__module__", "") or "").startswith("torch"):
        return getattr(tg.nn.functional, value.__name__)
    if type(value) in (list, tuple):
        return type(value)(ours(v, made) for v in value)
    if isinstance(value, dict):
        return {k: ours(v, made) for k, v in value.items()}
    return value


def _tensor(value):
    return tg.from_numpy(value.numpy(force=True).copy(order="K")).requires_grad_(value.requires_grad)


def _encoder_layer(layer):
    attention = layer.self_attn
    return tg.nn.TransformerEncoderLayer(
        attention.embed_dim,
        attention.num_heads,
        layer.linear1.out_features,
        layer.dropout.p,
        ours(layer.activation),
        layer.norm1.eps,
        attention.batch_first,
        layer.norm_first,
        layer.linear1.bias is not None,
        dtype=ours(layer.linear1.weight.dtype),
    )


def _run(module, call):
    args, kwargs = call
    library = tg if isinstance(module, tg.nn.Module) else torch
    library.manual_seed(7)
    return module(*args, **kwargs)


def _flat(value):
    """All that a nest of containers holds."""
    if isinstance(value, dict):
        value = list(value.values())
    return [x for v in value for x in _flat(v)] if isinstance(value, (list, tuple)) else [value]


def _floats(value, kind):
    return [v for v in _flat(value) if isinstance(v, kind) and v.requires_grad]


def _same(got, want, what, coarse):
    got, want = _flat(got), _flat(want)
    assert len(got) == len(want), what
    for k, (g, w) in enumerate(zip(got, want)):
        if isinstance(w, torch.Tensor):
            assert (str(g.dtype), tuple(g.shape)) == (str(w.dtype), tuple(w.shape)), what
            assert g.requires_grad == w.requires_grad, f"{what}: requires_grad of {k} is {g.requires_grad}"
            g, w = g.detach().numpy(), w.detach().numpy()
            np.testing.assert_allclose(g, w, 1e-9 * coarse, 1e-10 * coarse, err_msg=f"{what} {k}")
        elif w is not None:
            assert g == w, what


def _grads(results, sources, kind, library, what):
    """Gradients of the sources, and the gradients of their squares' sum, for one set of random seeds."""
    outs = _floats(results, kind)
    if not outs or not sources:
        return [None] * len(sources), [None] * len(sources)
    rng = np.random.default_rng(0)
    seeds = [library.from_numpy(np.array(rng.standard_normal(tuple(o.shape)))).to(o.dtype) for o in outs]
    first = library.autograd.grad(outs, sources, seeds, create_graph=True, allow_unused=True)
    curved = [g for g in first if g is not None and g.requires_grad]
    second = [None] * len(sources)
    if curved:
        total = sum((g * g).sum() for g in curved)
        try:
            second = library.autograd.grad(total, sources, allow_unused=True)
        except RuntimeError as error:
            if library is tg or "is not implemented" not in str(error):
                raise
            second = None
    return first, second


def _zeros_for_none(grads, sources):
    return [np.zeros(tuple(s.shape)) if g is None else g.detach().numpy(force=True) for g, s in zip(grads, sources)]


def check(info, sample, dtype, training, what):
    """One sample through both libraries."""
    build, call = sample.constructor_input, sample.forward_input
    theirs = info.module_cls(*build.args, **build.kwargs).to(dtype).train(training)
    cls = tg.nn
    for part in info.name.split(".")[1:]:
        cls = getattr(cls, part)
    module = cls(*ours(build.args), **ours(build.kwargs)).to(ours(dtype)).train(training)
    if call is None:
        return
    if info.is_lazy:
        with torch.no_grad():
            theirs(*call.args, **call.kwargs)
    state = theirs.state_dict()
    assert info.is_lazy or list(module.state_dict()) == list(state), f"{what}: {list(module.state_dict())}"
    module.load_state_dict(type(state)((k, ours(v.detach())) for k, v in state.items()))
    given = [(call.args, call.kwargs), ours((call.args, call.kwargs))]
    coarse = 1 if dtype is torch.float64 else 1e5
    copied = pickle.loads(pickle.dumps(module))
    want, got = _run(theirs, given[0]), _run(module, given[1])
    _same(got, want, f"{what}: output", coarse)
    _same(_run(copied, given[1]), want, f"{what}: output of the pickled module", coarse)
    assert [k for k, _ in module.named_parameters()] == [k for k, _ in theirs.named_parameters()], what
    if dtype is torch.float64:
        sources = [_floats(list(given[0]), torch.Tensor) + list(theirs.parameters())]
        sources.append(_floats(list(given[1]), tg.Tensor) + list(module.parameters()))
        results = [
            _grads(r, s, k, library, what)
            for r, s, k, library in zip((want, got), sources, (torch.Tensor, tg.Tensor), (torch, tg))
        ]
        # with options PyTorch's gradient is a constant
        for order in range(2 if info.supports_gradgrad and build.kwargs.get("options") is None else 1):
            if results[0][order] is None:  # PyTorch has no derivative of this one
                continue
            w, g = (_zeros_for_none(r[order], s) for r, s in zip(results, sources))
            assert len(w) == len(g), f"{what}: derivatives of order {order + 1}"
            for k in range(len(w)):
                np.testing.assert_allclose(g[k], w[k], 1e-7, 1e-8, err_msg=f"{what}: derivative {order + 1} of {k}")
    _same(module.state_dict(), theirs.state_dict(), f"{what}: state afterwards", coarse)
    assert list(module.state_dict()) == list(theirs.state_dict()), what


@pytest.mark.parametrize("info", module_db, ids=lambda info: info.name)
@pytest.mark.filterwarnings("ignore")
def test_agrees_on_pytorchs_own_samples(info):
    for dtype in (torch.float32, torch.float64):
        for training in (True, False):
            torch.manual_seed(0)
            samples = info.module_inputs_func(
                info, device="cpu", dtype=dtype, requires_grad=dtype is torch.float64, training=training
            )
            for number, sample in list(enumerate(samples))[:: max(1, len(samples) // AT_MOST)]:
                what = f"{info.name}: {dtype}, training {training}, sample {number} {sample.desc}"
                check(info, sample, dtype, training, what)


@pytest.mark.parametrize("info", [i for i in module_db if i.module_error_inputs_func], ids=lambda info: info.name)
@pytest.mark.filterwarnings("ignore")
def test_refuses_what_pytorch_refuses(info):
    for wrong in info.module_error_inputs_func(
        info, device="cpu", dtype=torch.float64, requires_grad=False, training=True
    ):
        build, call = wrong.module_error_input.constructor_input, wrong.module_error_input.forward_input
        cls = getattr(tg.nn, info.name.split(".")[1])
        error = getattr(tg, wrong.error_type.__name__, wrong.error_type)
        with pytest.raises(error, match=re.compile(wrong.error_regex, re.DOTALL)):
            module = cls(*ours(build.args), **ours(build.kwargs))
            assert call is not None, f"{build.args} {build.kwargs} were taken"
            module(*ours(call.args), **ours(call.kwargs))


def _layers():
    for name in dir(torch.nn.modules):
        family = getattr(torch.nn.modules, name)
        for cls in vars(family).values() if type(family) is type(torch) else ():
            if isinstance(cls, type) and issubclass(cls, torch.nn.Module) and not cls.__name__.startswith("_"):
                yield cls


def test_layers_have_pytorchs_bases():
    seen = 0
    for cls in _layers():
        mine = getattr(tg.nn, cls.__name__, None)
        if mine is None or cls.__module__.startswith("torch.ao"):
            continue
        wanted = {base.__name__ for base in cls.__mro__ if base.__module__.startswith("torch.nn")}
        assert wanted <= {base.__name__ for base in mine.__mro__}, cls
        seen += 1
    assert seen > 150
