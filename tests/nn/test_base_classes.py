"""A base class of the package goes with other metaclasses and base classes, as PyTorch's does."""

import abc
import typing

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn

X = typing.TypeVar("X")


class Meta(type):
    def __call__(cls, *args, **kwargs):
        made = super().__call__(*args, **kwargs)
        made.tag = cls.__name__
        return made


@typing.runtime_checkable
class Named(typing.Protocol):
    def title(self) -> str: ...


def bases(kind):
    """Classes derived from kind under another metaclass."""
    other = {}
    exec(
        "class First(kind, abc.ABC): pass\n"
        "class Second(abc.ABC, kind): pass\n"
        "class Third(kind, Named):\n    def title(self): return 'third'\n"
        "class Fourth(kind, typing.Generic[X]): pass\n"
        "class Fifth(Fourth[int]): pass\n",
        {"kind": kind, "abc": abc, "Named": Named, "typing": typing, "X": X},
        other,
    )
    return other


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        (nn.Module, lambda c: c()),
        (nn.Sequential, lambda c: c(nn.Linear(1, 1))),
        (nn.ModuleList, lambda c: c([nn.Linear(1, 1)])),
        (nn.Linear, lambda c: c(1, 1)),
        (tg.Tensor, lambda c: tg.ones(1).as_subclass(c)),
        (tg.utils.data.Dataset, lambda c: c()),
        (tg.utils.data.IterableDataset, lambda c: c()),
        (tg.utils.data.Sampler, lambda c: c()),
        (tg.optim.Optimizer, lambda c: c([tg.ones(1, requires_grad=True)], {})),
        (tg.overrides.TorchFunctionMode, lambda c: c()),
    ],
    ids=lambda v: getattr(v, "__name__", ""),
)
def test_abstract_classes_protocols_and_generics_are_bases_too(kind, make):
    for name, cls in bases(kind).items():
        assert isinstance(make(cls), kind), name

    class Abstract(kind, abc.ABC):
        @abc.abstractmethod
        def missing(self): ...

    if not issubclass(kind, tg.Tensor):
        with pytest.raises(TypeError, match="abstract"):
            make(Abstract)


def test_datasets_take_an_abstract_base():
    class Numbers(tg.utils.data.Dataset, abc.ABC):
        def __len__(self):
            return 3

    assert len(Numbers()) == 3


def test_a_metaclass_of_the_programs_own_sees_the_call():
    class Layer(nn.Module, metaclass=Meta):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)

        def forward(self, x):
            return self.inner(x)

    made = Layer()
    assert made.tag == "Layer" and made(tg.ones(1, 2)).shape == (1, 2) and len(list(made.parameters())) == 2
    seen = []
    made.register_forward_hook(lambda *a: seen.append(1))
    made(tg.ones(1, 2))
    assert seen == [1]


def test_a_protocol_is_checked_at_run_time():
    class Layer(nn.Module, Named):
        def title(self):
            return "layer"

    assert isinstance(Layer(), Named) and not isinstance(nn.Linear(1, 1), Named)


def test_a_function_takes_a_metaclass_that_derives_from_its_own():
    class Meta(type(tg.autograd.Function)):
        pass

    class Twice(tg.autograd.Function, metaclass=Meta):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = tg.ones(1, requires_grad=True)
    Twice.apply(x).backward()
    assert type(Twice) is Meta and x.grad.item() == 2


def test_modules_stand_where_pytorch_has_them():
    from tinygrad_ext.nn.modules import Module
    from tinygrad_ext.nn.modules.batchnorm import BatchNorm1d, _BatchNorm
    from tinygrad_ext.nn.modules.normalization import LayerNorm
    from tinygrad_ext.nn.modules.sparse import Embedding

    assert Module is nn.Module and nn.modules.module.Module is nn.Module
    assert (BatchNorm1d, LayerNorm, Embedding) == (nn.BatchNorm1d, nn.LayerNorm, nn.Embedding)
    assert isinstance(nn.BatchNorm2d(1), _BatchNorm) and nn.modules.batchnorm._BatchNorm is _BatchNorm


def test_a_replica_has_the_attributes_and_buffers_and_no_parameters():
    norm = nn.BatchNorm1d(3)
    norm.shared = {}
    replica = norm._replicate_for_data_parallel()
    assert type(replica) is nn.BatchNorm1d and replica.shared is norm.shared
    assert replica.running_mean is norm.running_mean and not list(replica.parameters())
    replica.weight, replica.bias = norm.weight * 2, norm.bias.clone()
    replica.mine = nn.Linear(1, 1)
    assert not hasattr(norm, "mine") and len(list(norm.parameters())) == 2
    x = tg.randn(4, 3)
    replica(x).sum().backward()
    assert replica.eval()(x).shape == (4, 3) and norm.weight.grad is not None


def test_a_replica_is_made_without_asking_how_the_module_is_copied():
    class Itself(nn.Linear):
        def __copy__(self):
            return self

        def __getstate__(self):
            raise AssertionError("asked for its state")

        def __reduce_ex__(self, protocol):
            raise AssertionError("asked how it is pickled")

    module = Itself(2, 2)
    replica = module._replicate_for_data_parallel()
    assert replica is not module and type(replica) is Itself and replica._is_replica is True
    assert len(list(module.parameters())) == 2 and not list(replica.parameters())
    assert not hasattr(module, "_is_replica") and not hasattr(replica, "weight") and module.weight.shape == (2, 2)


def test_a_module_with_uninitialized_parameters_makes_no_replica():
    lazy = nn.LazyLinear(2)
    with pytest.raises(RuntimeError, match="uninitialized"):
        lazy._replicate_for_data_parallel()
    lazy(tg.ones(1, 3))
    assert not list(lazy._replicate_for_data_parallel().parameters())
