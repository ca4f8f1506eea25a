"""What conversions of a module and load_state_dict do with parameters, by the two switches."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.nn import conversion


@pytest.fixture(autouse=True)
def switched_back():
    yield
    conversion.set_swap_module_params_on_conversion(False)
    conversion.set_overwrite_module_params_on_conversion(False)


class Pair(tg.Tensor):
    """Two tensors behind one, as wrapper subclasses are."""

    @staticmethod
    def __new__(cls, a, b, requires_grad=False):
        return tg.Tensor._make_wrapper_subclass(cls, a.shape, dtype=a.dtype, requires_grad=requires_grad)

    def __init__(self, a, b, requires_grad=False):
        self.a, self.b = a, b

    def __tensor_flatten__(self):
        return ["a", "b"], None

    @classmethod
    def __tensor_unflatten__(cls, inner, meta, size, stride):
        return cls(inner["a"], inner["b"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        of = [tg.utils._pytree.tree_map(lambda v, n=n: getattr(v, n) if isinstance(v, cls) else v, args) for n in "ab"]
        a, b = (func(*each, **kwargs or {}) for each in of)
        return cls(a, b) if isinstance(a, tg.Tensor) else a


CONVERSIONS = {
    "double": (lambda m: m.double(), tg.float64),
    "half": (lambda m: m.half(), tg.float16),
    "to": (lambda m: m.to(tg.bfloat16), tg.bfloat16),
    "to_empty": (lambda m: m.to_empty(device="meta"), tg.float32),
}


@pytest.mark.parametrize("name", CONVERSIONS)
def test_swapped_parameters_and_gradients_stay_the_same_objects(name):
    conversion.set_swap_module_params_on_conversion(True)
    module = nn.Linear(2, 3)
    module(tg.ones(2)).sum().backward()
    held = [(p, p.grad) for p in module.parameters()]
    convert, dtype = CONVERSIONS[name]
    convert(module)
    assert [(id(p), id(p.grad)) for p in module.parameters()] == [(id(p), id(g)) for p, g in held]
    assert all(p.dtype == g.dtype == dtype and type(p) is nn.Parameter and p.requires_grad for p, g in held)
    assert all(p.device == g.device == module.weight.device for p, g in held)


def test_a_conversion_between_forward_and_backward_is_refused_by_the_backward():
    conversion.set_swap_module_params_on_conversion(True)
    module = nn.Linear(2, 3)
    out = module(tg.ones(2)).sum()
    module.double()
    with pytest.raises(RuntimeError, match="poisoned by swap_tensors"):
        out.backward()
    module(tg.ones(2, dtype=tg.float64)).sum().backward()
    assert module.bias.grad.dtype == tg.float64


def test_overwritten_parameters_are_new_and_old_ones_stay():
    conversion.set_overwrite_module_params_on_conversion(True)
    module = nn.Linear(2, 3)
    old = module.weight
    old.grad = tg.ones(3, 2)
    module.double()
    assert module.weight is not old and old.dtype == tg.float32 and old.grad.dtype == tg.float32
    assert module.weight.dtype == module.weight.grad.dtype == tg.float64


def test_the_default_keeps_the_objects():
    module = nn.Linear(2, 3)
    held = module.weight
    assert module.double().weight is held and held.dtype == tg.float64


def test_parameters_of_wrapper_subclasses_are_swapped_anyway():
    module = nn.Module()
    module.weight = held = nn.Parameter(Pair(tg.ones(2), tg.zeros(2)))
    assert held.device == tg.device("cpu") and type(held * 2) is Pair and (held * 2).a.tolist() == [2, 2]
    module.double()
    assert module.weight is held and held.device == held.a.device
    assert held.dtype == held.a.dtype == held.b.dtype == tg.float64


def test_a_parameter_that_cannot_be_swapped_is_named():
    import weakref

    conversion.set_swap_module_params_on_conversion(True)
    module = nn.Linear(2, 3)
    module.weight.grad = tg.ones(3, 2)
    reference = weakref.ref(module.weight)
    with pytest.raises(RuntimeError, match="Couldn't swap Linear.weight"):
        module.double()
    assert reference() is module.weight and module.weight.grad.tolist() == [[1, 1]] * 3


@pytest.mark.parametrize("assign", [False, True])
def test_load_state_dict_swaps(assign):
    conversion.set_swap_module_params_on_conversion(True)
    module, other = nn.BatchNorm1d(2), nn.BatchNorm1d(2).double()
    held = [*module.parameters(), *module.buffers()]
    other.weight.data.fill_(5)
    module.load_state_dict(other.state_dict(), assign=assign)
    assert all(a is b for a, b in zip([*module.parameters(), *module.buffers()], held))
    assert module.weight.tolist() == [5, 5] and type(module.weight) is nn.Parameter and module.weight.requires_grad
    assert module.weight.dtype == (tg.float64 if assign else tg.float32)
    assert (module.weight.data_ptr() == other.weight.data_ptr()) is assign


def test_a_class_says_what_is_loaded():
    class Doubled(tg.Tensor):
        def module_load(self, other, assign=False):
            return (other * 2).as_subclass(Doubled)

    class Itself(tg.Tensor):
        def module_load(self, other, assign=False):
            return other

    conversion.set_swap_module_params_on_conversion(True)
    module = nn.Module()
    module.weight = nn.Parameter(tg.zeros(2).as_subclass(Doubled))
    module.load_state_dict({"weight": tg.ones(2)})
    assert module.weight.tolist() == [2, 2] and isinstance(module.weight, Doubled)
    module.weight = nn.Parameter(tg.zeros(2).as_subclass(Itself))
    with pytest.raises(RuntimeError, match="While swapping the parameter named.*module_load returned one of self or"):
        module.load_state_dict({"weight": tg.ones(2)})
