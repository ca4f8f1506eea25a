"""Functions written in Python take part by `handle_torch_function` or `wrap_torch_function`."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import overrides


class Duck:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func, types, args, kwargs


class Shy:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


class Sub(tg.Tensor):
    pass


def double(a, *, times=2):
    if overrides.has_torch_function_unary(a):
        return overrides.handle_torch_function(double, (a,), a, times=times)
    return a * times


@overrides.wrap_torch_function(lambda a, b=None, **_: (a, b))
def either(a, b=None, **options):
    """A docstring."""
    return "plain"


@pytest.mark.parametrize(
    "value, wanted", [(Duck(), True), (3, False), (None, False), (tg.ones(1), False), (Duck, False)]
)
def test_has_torch_function_is_true_for_values_whose_type_overrides(value, wanted):
    assert overrides.has_torch_function((1, value)) is wanted
    assert overrides.has_torch_function([value]) is wanted
    assert overrides.has_torch_function_unary(value) is wanted
    assert overrides.has_torch_function_variadic(1.5, value) is wanted


def test_parameters_do_not_override_and_subclasses_do_unless_switched_off():
    assert not overrides.has_torch_function_unary(tg.nn.Parameter(tg.ones(1)))
    sub = tg.ones(1).as_subclass(Sub)
    assert overrides.has_torch_function_unary(sub)
    with overrides.DisableTorchFunctionSubclass():
        assert not overrides.has_torch_function_unary(sub)


def test_handlers_get_the_function_and_the_arguments_as_given():
    duck = Duck()
    assert double(tg.ones(1)).tolist() == [2.0]
    assert double(duck, times=3) == (double, (Duck,), (duck,), {"times": 3})


def test_subclasses_are_asked_before_superclasses_and_each_type_once():
    class Drake(Duck):
        pass

    func, types, _, _ = overrides.handle_torch_function(double, (Duck(), Drake(), Duck()), 1)
    assert (func, types) == (double, (Drake, Duck))


def test_who_declines_lets_the_next_answer():
    assert overrides.handle_torch_function(double, (Shy(), Duck()), 1)[1] == (Shy, Duck)
    with pytest.raises(TypeError, match=r"no implementation found for .*double.* on types that implement .*Shy"):
        double(Shy())


def test_a_wrapped_function_is_the_one_the_handler_sees():
    duck = Duck()
    assert either(1) == "plain"
    assert either(1, duck) == (either, (Duck,), (1, duck), {})
    assert either(b=duck, a=1, more=2) == (either, (Duck,), (), {"b": duck, "a": 1, "more": 2})
    assert (either.__name__, either.__doc__) == ("either", "A docstring.")


def test_wrapped_functions_are_overridable_for_the_tables():
    from tinygrad_ext.overrides import tables

    assert tables.reason_not_overridable(tg, "either", either) is None


def test_modes_see_python_functions_too_and_are_off_meanwhile():
    class Names(overrides.TorchFunctionMode):
        seen = []

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen.append(func)
            return func(*args, **(kwargs or {}))

    x = tg.ones(1)
    with Names() as names:
        double(x)
        either(1)
    assert names.seen == [double, either]


def test_tensor_like_is_what_has_the_method():
    assert overrides.is_tensor_like(tg.ones(1))
    assert overrides.is_tensor_like(Duck())
    assert overrides.is_tensor_like(Duck)
    assert not overrides.is_tensor_like(3)
    assert not overrides.is_tensor_like([tg.ones(1)])
