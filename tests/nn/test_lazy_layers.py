"""Layers that take the size of their input from the first batch, and the parameters without a shape that they have."""

import copy
import pickle
import sys
import weakref

import pytest
from collecting import collect

import tinygrad_ext as tg
from tinygrad_ext import jit, nn
from tinygrad_ext.nn.modules.lazy import LazyModuleMixin
from tinygrad_ext.nn.parameter import is_lazy
from tinygrad_ext.nn.utils import parametrizations
from tinygrad_ext.nn.utils.weight_norm import WeightNorm

IMAGE = (2, 4, 6, 5)
# name, arguments, keywords, the size that is inferred, shape of the input
CASES = [
    ("Linear", (3,), {}, 5, (2, 5)),
    ("Linear", (3, False), {"dtype": tg.float64}, 5, (5,)),
    ("Conv1d", (6, 3), {"stride": 2}, 4, (2, 4, 9)),
    ("Conv2d", (6, 3, 1, "same"), {"groups": 2}, 4, IMAGE),
    ("Conv2d", (6, 3), {"bias": False, "padding": 1, "padding_mode": "circular"}, 4, IMAGE[1:]),
    ("Conv3d", (2, (1, 2, 3)), {"dilation": 2}, 3, (1, 3, 5, 6, 7)),
    ("ConvTranspose1d", (6, 3), {}, 4, (4, 9)),
    ("ConvTranspose2d", (6, 3, 2, 1, 1, 2), {}, 4, IMAGE),
    ("ConvTranspose3d", (2, 2), {"bias": False, "dilation": 2}, 3, (1, 3, 2, 3, 4)),
    ("BatchNorm1d", (), {}, 5, (3, 5)),
    ("BatchNorm2d", (1e-3, None), {"bias": False}, 4, IMAGE),
    ("BatchNorm3d", (), {"affine": False}, 3, (2, 3, 2, 2, 2)),
    ("InstanceNorm1d", (), {"track_running_stats": False}, 4, (2, 4, 5)),
    ("InstanceNorm2d", (), {}, 4, IMAGE),
    ("InstanceNorm3d", (), {"affine": False}, 3, (3, 2, 2, 3)),
]
each_case = pytest.mark.parametrize(("name", "args", "kwargs", "size", "shape"), CASES)


def made(name, args, kwargs):
    tg.manual_seed(3)
    return getattr(nn, f"Lazy{name}")(*args, **kwargs)


def ordinary(name, args, kwargs, size):
    if name.startswith("InstanceNorm"):  # whose lazy form has other defaults
        kwargs = {"affine": True, "track_running_stats": True} | kwargs
    tg.manual_seed(3)
    return getattr(nn, name)(size, *args, **kwargs)


def input_of(shape, kwargs):
    return tg.randn(shape, generator=tg.Generator().manual_seed(1), dtype=kwargs.get("dtype", tg.float32))


def same_state(one, other):
    one, other = one.state_dict(), other.state_dict()
    return list(one) == list(other) and all(tg.equal(one[key], other[key]) for key in one)


@each_case
def test_the_first_call_makes_the_ordinary_layer(name, args, kwargs, size, shape):
    lazy, plain, x = made(name, args, kwargs), ordinary(name, args, kwargs, size), input_of(shape, kwargs)
    tg.manual_seed(3)
    before = dict(lazy.named_parameters())
    assert lazy.has_uninitialized_params() and all(map(is_lazy, before.values()))
    result = lazy(x)
    assert type(lazy) is type(plain) and repr(lazy) == repr(plain) and vars(lazy).keys() == vars(plain).keys()
    assert tg.equal(result, plain(x)) and same_state(lazy, plain)
    for key, parameter in lazy.named_parameters():
        assert before[key] is parameter and type(parameter) is nn.Parameter and parameter.is_leaf
    x.requires_grad_()
    (lazy(x) ** 2).sum().backward()
    (plain(x) ** 2).sum().backward()
    for mine, reference in zip(lazy.parameters(), plain.parameters(), strict=True):
        assert tg.equal(mine.grad, reference.grad)
    traced = jit.trace(lazy.eval(), x)
    assert tg.equal(traced(x), plain.eval()(x))


@each_case
def test_it_prints_as_pytorchs(name, args, kwargs, size, shape):
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    theirs = dict(kwargs, **({"dtype": torch.float64} if "dtype" in kwargs else {}))
    lazy, reference = made(name, args, kwargs), getattr(torch.nn, f"Lazy{name}")(*args, **theirs)
    assert repr(lazy) == repr(reference)
    assert repr(list(lazy.state_dict().items())) == repr(list(reference.state_dict().items()))
    lazy(input_of(shape, kwargs))
    if not (name.startswith("Instance") and len(shape) == int(name[-2]) + 1):  # PyTorch reads the wrong size there
        reference(torch.from_numpy(input_of(shape, kwargs).numpy()))
        assert repr(lazy) == repr(reference) and list(lazy.state_dict()) == list(reference.state_dict())
        for key, value in reference.state_dict().items():
            assert tuple(lazy.state_dict()[key].shape) == tuple(value.shape)


@each_case
def test_a_state_dict_gives_the_shapes(name, args, kwargs, size, shape):
    plain, x = ordinary(name, args, kwargs, size).eval(), input_of(shape, kwargs)
    for assign in (False, True):
        lazy = made(name, args, kwargs).eval()
        assert str(lazy.load_state_dict(plain.state_dict(), assign=assign)) == "<All keys matched successfully>"
        assert not lazy.has_uninitialized_params() and type(lazy).__name__ == f"Lazy{name}"
        assert tg.equal(lazy(x), plain(x)) and repr(lazy) == repr(plain) and same_state(lazy, plain)


@each_case
def test_copies_and_pickles_stay_lazy(name, args, kwargs, size, shape):
    lazy, plain, x = made(name, args, kwargs), ordinary(name, args, kwargs, size), input_of(shape, kwargs)
    for other in (copy.deepcopy(lazy), pickle.loads(pickle.dumps(lazy))):
        assert repr(other) == repr(lazy) and other.has_uninitialized_params()
        assert not set(map(id, other.parameters())) & set(map(id, lazy.parameters()))
        tg.manual_seed(3)
        assert tg.equal(other(x), plain(x)) and type(other) is type(plain)
    assert lazy.has_uninitialized_params()
    assert not lazy.load_state_dict(made(name, args, kwargs).state_dict()).missing_keys
    lazy(x)


def test_a_model_is_converted_and_optimised_before_its_first_batch():
    model = nn.Sequential(nn.LazyConv2d(3, 3), nn.LazyBatchNorm2d(), nn.Flatten(), nn.LazyLinear(2))
    model.double().train()
    assert {tensor.dtype for tensor in model.state_dict().values()} == {tg.float64, tg.int64}
    optimizer = tg.optim.Adam(model.parameters(), lr=0.1)
    x = input_of((4, 2, 6, 6), {"dtype": tg.float64})
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 2
    assert [type(layer).__name__ for layer in model] == ["Conv2d", "BatchNorm2d", "Flatten", "Linear"]
    frozen = nn.LazyLinear(2).requires_grad_(False)
    frozen(tg.ones(2, 3))
    assert not frozen.weight.requires_grad


def test_hooks_and_classes_of_ones_own():
    class Scale(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.factor = nn.Parameter(tg.full((size,), 2.0))

        def forward(self, input, times=1):
            return input * self.factor * times

    class LazyScale(LazyModuleMixin, Scale):
        cls_to_become = Scale

        def __init__(self):
            super().__init__(0)
            self.factor = nn.UninitializedParameter()

        def initialize_parameters(self, input, times=1):
            self.factor.materialize(input.shape)
            nn.init.constant_(self.factor, times)

    layer, seen = LazyScale(), []
    layer.register_forward_hook(lambda module, args, result: seen.append(type(module).__name__))
    assert layer(tg.ones(3), times=3).tolist() == [9.0] * 3 and type(layer) is Scale
    assert layer(tg.ones(3)).tolist() == [3.0] * 3 and seen == ["Scale", "Scale"]

    class Forgetful(LazyScale):
        def initialize_parameters(self, input):
            pass

    class Undefined(LazyModuleMixin, nn.Linear):
        pass

    with pytest.raises(RuntimeError, match="Forgetful has not been fully initialized"):
        Forgetful()(tg.ones(2))
    with pytest.raises(NotImplementedError, match="initialize_parameters is not implemented for Undefined"):
        Undefined(2, 2)(tg.ones(2))


def test_what_has_no_shape_becomes_an_ordinary_tensor_in_place():
    for cls, kind in ((nn.UninitializedParameter, nn.Parameter), (nn.UninitializedBuffer, tg.Tensor)):
        part = cls(dtype=tg.float64)
        assert repr(part) == str(part) == f"<{cls.__name__}>" and isinstance(part, kind) and part.dtype == tg.float64
        assert isinstance(part, nn.Buffer) == (kind is tg.Tensor)
        same, alive, counted = part, weakref.ref(part), sys.getrefcount(cls)
        part.materialize((2, 3))
        assert sys.getrefcount(cls) == counted - 1
        assert same is part is alive() and type(part) is kind and part.shape == (2, 3) and part.dtype == tg.float64
        part.note = [part]  # a circle, for the garbage collector
        del part, same
        collect()
        assert alive() is None
    part = nn.UninitializedParameter()
    part.materialize((2,), device="meta", dtype=tg.float16)
    assert part.device.type == "meta" and part.dtype == tg.float16


def test_many_become_ordinary_and_are_freed():
    for _ in range(3000):
        part = nn.UninitializedParameter()
        part.materialize((3,))
        (part.sum() * 2).backward()
        assert part.grad.tolist() == [2.0] * 3


def test_only_what_is_laid_out_alike_becomes_another_class():
    class Wider(nn.Parameter):
        __slots__ = ("more",)

    class Kept(nn.UninitializedParameter):
        __slots__ = ()
        cls_to_become = Wider

    plain = tg.ones(2)
    for tensor, cls in ((plain, int), (plain, None), (Wider(plain), nn.Parameter), (plain, Wider)):
        kind = type(tensor)
        with pytest.raises(TypeError, match="__class__"):
            tensor.__class__ = cls
        with pytest.raises(TypeError, match="__class__"):
            del tensor.__class__
        assert type(tensor) is kind
    with pytest.raises(TypeError):
        Kept().materialize((2,))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.UninitializedParameter().shape, RuntimeError, "Can't access the shape of an uninitialized"),
        (lambda: nn.UninitializedBuffer().share_memory_(), RuntimeError, "Can't share memory on an uninitialized"),
        (lambda: nn.LazyLinear(3).share_memory(), RuntimeError, "Can't share memory on an uninitialized"),
        (lambda: nn.utils.spectral_norm(nn.LazyLinear(3)), ValueError, "SpectralNorm` can't have uninitialized"),
        (lambda: WeightNorm.apply(nn.LazyLinear(3), "weight", 0), ValueError, "WeightNorm` can't have uninitialized"),
        (lambda: parametrizations.weight_norm(nn.LazyLinear(3)), ValueError, "WeightNorm` can't have uninitialized"),
        (lambda: nn.UninitializedParameter() + 1, ValueError, "Attempted to use an uninitialized parameter"),
        (lambda: tg.add(nn.UninitializedBuffer(), 1), ValueError, "Call `forward` with a batch first"),
        (lambda: nn.init.zeros_(nn.UninitializedParameter()), ValueError, "uninitialized"),
        (lambda: sum(p.numel() for p in nn.LazyLinear(3).parameters()), ValueError, "numel"),
        (lambda: nn.LazyLinear(3).to_empty(device="cpu"), ValueError, "empty_like"),
        (lambda: nn.Linear(2, 3).load_state_dict(nn.LazyLinear(3).state_dict()), RuntimeError, "cannot be loaded"),
        (lambda: nn.LazyLinear(3).load_state_dict({}), RuntimeError, 'Missing key(s) in state_dict: "weight", "bias"'),
        (lambda: loaded(nn.LazyLinear(3))(tg.ones(5)), AssertionError, "inferred from input: 5 is not equal"),
        (lambda: nn.LazyConv2d(4, 3)(tg.ones(2, 3)), RuntimeError, "to LazyConv2d, but got input of size: [2, 3]"),
        (lambda: nn.LazyConv2d(4, 3, groups=2)(tg.ones(3, 4, 4)), ValueError, "in_channels must be divisible"),
        (lambda: nn.LazyConvTranspose1d(3, 3, padding_mode="reflect"), ValueError, 'Only "zeros"'),
        (lambda: nn.LazyBatchNorm2d()(tg.ones(2, 3)), ValueError, "expected 4D input (got 2D input)"),
        (lambda: nn.LazyInstanceNorm2d()(tg.ones(2, 3)), ValueError, "expected 3D or 4D input (got 2D input)"),
        (
            lambda: jit.trace(nn.LazyLinear(3), tg.ones(2)),
            RuntimeError,
            "has uninitialized parameters: weight has no shape: run a forward pass",
        ),
        (lambda: jit.script(nn.Sequential(nn.LazyLinear(3))), RuntimeError, "has uninitialized parameters: 0.weight"),
    ],
)
def test_wrong_uses_raise(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert text in str(caught.value)


def loaded(layer):
    layer.load_state_dict(nn.Linear(4, 3).state_dict())
    return layer


def test_lists_print_what_has_no_shape():
    assert "(0): Parameter containing: [torch.float32 of size 0]" in repr(
        nn.ParameterList([nn.UninitializedParameter()])
    )


def test_lazy_layers_stand_beside_the_ordinary_ones():
    for family, name in (
        ("linear", "LazyLinear"),
        ("conv", "LazyConv2d"),
        ("conv", "LazyConvTranspose1d"),
        ("batchnorm", "LazyBatchNorm3d"),
        ("instancenorm", "LazyInstanceNorm1d"),
    ):
        cls = getattr(tg.nn, name)
        assert getattr(getattr(tg.nn.modules, family), name) is cls
        assert cls.__module__ == f"tinygrad_ext.nn.modules.{family}"
