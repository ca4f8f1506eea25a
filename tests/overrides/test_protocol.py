"""`__torch_function__`: which handler gets a call, with which func, types and arguments, and what declining means."""

import operator

import pytest

import tinygrad_ext as tg
from tinygrad_ext import Tensor, nn
from tinygrad_ext.nn import functional as F


class Seen:
    """A type unrelated to Tensor that notes what it is asked and answers with its own name."""

    def __init__(self):
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append((func, types, args, kwargs))
        return "seen"


def last(fn):
    """What a Seen object was asked by fn(object)."""
    seen = Seen()
    assert fn(seen) == "seen"
    (call,) = seen.calls
    return call


# ---- how a type may define it


def test_a_classmethod_gets_the_class():
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return cls, func, types, args, kwargs

    duck = Duck()
    assert tg.add(duck, 1, alpha=2) == (Duck, tg.add, (Duck,), (duck, 1), {"alpha": 2})


def test_an_instance_method_gets_the_instance():
    class Duck:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return self

    duck = Duck()
    assert tg.add(1, duck) is duck


def test_a_static_method_gets_the_call_alone():
    class Duck:
        @staticmethod
        def __torch_function__(func, types, args=(), kwargs=None):
            return func

    assert tg.mul(Duck(), 2) is tg.mul


def test_an_attribute_of_the_instance_or_of_the_metaclass_is_no_override():
    class Anything:
        def __getattr__(self, name):
            return lambda *args: "caught"

    with pytest.raises(TypeError, match="argument 'input'.*Anything"):
        tg.exp(Anything())
    with pytest.raises(TypeError, match="type"):
        tg.exp(Seen)  # the class itself is no operand


def test_none_in_the_class_means_no_override():
    class Duck(Seen):
        __torch_function__ = None

    with pytest.raises(TypeError, match="Duck"):
        tg.exp(Duck())


# ---- what func is


@pytest.mark.parametrize(
    "call, func",
    [
        (lambda s: tg.add(s, 1), tg.add),
        (lambda s: tg.add(1, other=s), tg.add),
        (lambda s: tg.exp(tg.ones(2), out=s), tg.exp),
        (lambda s: tg.relu_(s), tg.relu_),
        (lambda s: F.softmax(s, dim=0), F.softmax),
        (lambda s: F.linear(tg.ones(2), s), F.linear),
        (lambda s: tg.cat([tg.ones(2), s]), tg.cat),
        (lambda s: tg.stack((s, s), dim=1), tg.stack),
        (lambda s: tg.where(tg.ones(2) > 0, s, 1.0), tg.where),
        (lambda s: tg.zeros_like(s), tg.zeros_like),
        (lambda s: tg.numel(s), tg.numel),
        (lambda s: tg.is_floating_point(s), tg.is_floating_point),
        (lambda s: tg.is_complex(s), tg.is_complex),
        (lambda s: tg.result_type(s, 1), tg.result_type),
        (lambda s: tg.linalg.vector_norm(s), tg.linalg.vector_norm),
        (lambda s: nn.init.normal_(s), nn.init.normal_),
        (lambda s: tg.autograd.grad(s, tg.ones(2)), tg.autograd.grad),
        (lambda s: tg.autograd.backward([s]), tg.autograd.backward),
        (lambda s: nn.ReLU()(s), F.relu),
        (lambda s: Tensor.add(s, 1), Tensor.add),
        (lambda s: Tensor.dim(s), Tensor.dim),
        (lambda s: tg.ones(2) + s, Tensor.add),
        (lambda s: s + tg.ones(2), Tensor.add),
        (lambda s: tg.ones(2) - s, Tensor.sub),
        (lambda s: s - tg.ones(2), Tensor.__rsub__),
        (lambda s: s / tg.ones(2), Tensor.__rdiv__),
        (lambda s: s // tg.ones(2), Tensor.__rfloordiv__),
        (lambda s: s % tg.ones(2), Tensor.__rmod__),
        (lambda s: s ** tg.ones(2), Tensor.__rpow__),
        (lambda s: tg.ones(2) // s, Tensor.__floordiv__),
        (lambda s: tg.ones(2) & s, Tensor.__and__),
        (lambda s: tg.ones(2) == s, Tensor.__eq__),
        (lambda s: tg.ones(2) < s, Tensor.lt),
        (lambda s: operator.iadd(tg.ones(2), s), Tensor.add_),
        (lambda s: tg.ones(2)[s], Tensor.__getitem__),
        (lambda s: tg.ones(2, 2)[0, s], Tensor.__getitem__),
        (lambda s: tg.ones(2).mul(s), Tensor.mul),
        (lambda s: tg.ones(2).copy_(s), Tensor.copy_),
    ],
)
def test_func_is_the_public_callable(call, func):
    got, types, args, kwargs = last(call)
    assert got == func
    assert types == (Seen,)
    assert type(args) is tuple and type(kwargs) is dict


def test_setting_an_item_is_asked_too():
    index, value = Seen(), Seen()
    t = tg.zeros(2)
    t[index] = 1.0
    t[0] = value
    assert [c[0] for s in (index, value) for c in s.calls] == [Tensor.__setitem__] * 2
    assert t.tolist() == [0, 0]


def test_a_function_apply_is_asked_as_the_method_bound_to_its_class():
    class Cube(tg.autograd.Function):
        @staticmethod
        def forward(ctx, x, power=3):
            return x**power

        @staticmethod
        def backward(ctx, grad):
            return grad

    func, types, args, kwargs = last(lambda s: Cube.apply(s, power=2))
    assert func == Cube.apply and func.__self__ is Cube
    assert len(args) == 1 and kwargs == {"power": 2}

    class Decline:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError, match=r"no implementation found for '.*Cube\.apply'"):
        Cube.apply(Decline())


# ---- which arguments count, and in which order


class Named:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        asked.append(cls.__name__)
        return NotImplemented


asked = []
A, B = type("A", (Named,), {}), type("B", (Named,), {})
AA = type("AA", (A,), {})


@pytest.mark.parametrize(
    "args, kwargs, order",
    [
        ((A(), B()), {}, ["A", "B"]),
        ((B(), A()), {}, ["B", "A"]),
        ((A(), AA()), {}, ["AA", "A"]),
        ((AA(), A()), {}, ["AA", "A"]),
        ((B(), A()), {"out": AA()}, ["B", "AA", "A"]),
        ((A(), A()), {}, ["A"]),
        ((1,), {"other": B()}, ["B"]),
    ],
)
def test_types_are_asked_left_to_right_subclasses_first_and_once(args, kwargs, order):
    asked.clear()
    with pytest.raises(TypeError) as refusal:
        tg.add(*args, **kwargs)
    assert asked == order
    assert "no implementation found for 'tinygrad_ext.add' on types that implement __torch_function__: [" in str(
        refusal.value
    )
    assert all(name in str(refusal.value) for name in order)


def test_members_of_a_list_count_but_not_of_a_list_within():
    asked.clear()
    with pytest.raises(TypeError, match="no implementation"):
        tg.cat([tg.ones(2), B(), A(), B()])
    assert asked == ["B", "A"]
    asked.clear()
    with pytest.raises(TypeError, match="expected Tensor as element 0"):
        tg.cat([[A()]])
    assert asked == []


def test_the_first_answer_counts():
    class Yes:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return types

    asked.clear()
    assert tg.add(A(), Yes()) == (A, Yes)
    assert asked == ["A"]


def test_none_is_an_answer():
    class Nothing:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return None

    assert tg.add(Nothing(), A()) is None


def test_the_documented_error_names_function_and_types():
    class ScalarTensor:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

    with pytest.raises(TypeError) as refusal:
        tg.mul(ScalarTensor(), 3)
    assert type(refusal.value) is TypeError
    assert str(refusal.value).startswith(
        f"no implementation found for 'tinygrad_ext.mul' on types that implement __torch_function__: [{ScalarTensor!r}]"
    )
    with pytest.raises(TypeError, match=r"'tinygrad_ext\.Tensor\.shape\.__get__'"):
        Tensor.shape.__get__(ScalarTensor())


def test_a_declined_operator_lets_the_other_side_answer():
    class Right:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return NotImplemented

        def __radd__(self, other):
            return "radd"

    assert tg.ones(2) + Right() == "radd"
    with pytest.raises(TypeError, match="unsupported operand"):
        tg.ones(2) * Right()
    assert (tg.ones(2) == Right()) is False


def test_a_type_error_of_a_handler_leaves_an_operator_to_the_method_on_the_right():
    class Right:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise TypeError("the handler's own words")

        def __radd__(self, other):
            return "radd"

        def __gt__(self, other):
            return "gt"

        def __eq__(self, other):
            return "eq"

        __hash__ = None

    assert tg.ones(2) + Right() == "radd"
    assert (tg.ones(2) < Right()) == "gt" and (tg.ones(2) == Right()) == "eq" and (tg.ones(2) != Right()) is False
    x = tg.ones(2)
    x += Right()
    assert x == "radd"
    for nobody_left in (lambda: tg.ones(2) * Right(), lambda: tg.ones(2) >= Right(), lambda: Right() + tg.ones(2)):
        with pytest.raises(TypeError, match="the handler's own words"):
            nobody_left()


def test_an_unknown_keyword_is_refused_by_the_override_itself():
    def mean(input):
        return input

    class Duck:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return mean(*args, **kwargs)

    with pytest.raises(TypeError, match=r"mean\(\) got an unexpected keyword argument 'keepdim'"):
        tg.mean(Duck(), keepdim=True)
    with pytest.raises(TypeError, match=r"mean\(\) got an unexpected keyword argument 'nonsense'"):
        tg.mean(Duck(), nonsense=1)


def test_an_error_of_a_handler_in_an_operator_is_not_hidden():
    class Duck:
        def __torch_function__(self, func, types, args=(), kwargs=None):
            raise TypeError("a fault of the handler")

    with pytest.raises(TypeError, match="a fault of the handler"):
        tg.ones(2) + Duck()


# ---- functions of one's own


def test_a_function_in_python_takes_part_by_has_and_handle():
    from tinygrad_ext import overrides

    def twice(x):
        if overrides.has_torch_function_unary(x):
            return overrides.handle_torch_function(twice, (x,), x)
        return x + x

    func, types, args, kwargs = last(twice)
    assert (func, types, kwargs) == (twice, (Seen,), {})
    assert twice(tg.ones(2)).tolist() == [2, 2]
    with pytest.raises(TypeError, match=r"no implementation found for '.*twice'"):
        twice(A())


def test_plain_tensors_parameters_and_numbers_bring_no_override():
    from tinygrad_ext.overrides import has_torch_function

    assert not has_torch_function((tg.ones(2), nn.Parameter(tg.ones(2)), 1, "text", None, [Seen()]))
    assert has_torch_function((tg.ones(2), Seen()))


def test_a_decorated_function_takes_part():
    from tinygrad_ext.overrides import overridable

    @overridable
    def twice(x):
        """Twice x."""
        return x + x

    assert last(twice)[0] is twice
    assert twice.__doc__ == "Twice x." and twice.__name__ == "twice"
    assert twice(tg.ones(1)).tolist() == [2]
