"""`explain` shows the handlers of a call in the order in which they are asked, and what each answered."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import overrides


class Shy:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


class Bold:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        plain = [tg.ones(2) if isinstance(a, (Bold, Shy)) else a for a in args]
        return func(*plain, **(kwargs or {}))


class Broken:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        raise ValueError("no")


def ladder(explanation):
    return [(rung.kind, rung.who, rung.depth) for rung in explanation.rungs]


def test_a_plain_call_reaches_the_engine():
    found = overrides.explain(tg.add, tg.ones(2), 1, alpha=2)
    assert ladder(found) == [("engine", None, 0)]
    assert found.result.tolist() == [3.0, 3.0]
    assert found.error is None
    assert str(found).splitlines() == [
        "tinygrad_ext.add(Tensor, int, alpha=int)",
        "  1. engine tinygrad_ext: returned Tensor",
        "  => returns Tensor",
    ]


def test_types_stand_in_order_with_their_answers():
    found = overrides.explain(tg.add, Shy(), Bold())
    assert ladder(found) == [("type", Shy, 0), ("type", Bold, 0), ("engine", None, 1)]
    assert found.rungs[0].returned is NotImplemented
    assert str(found).splitlines() == [
        "tinygrad_ext.add(Shy, Bold)",
        f"  1. type Shy of {__name__}: returned NotImplemented",
        f"  2. type Bold of {__name__}: returned Tensor",
        "  3.   engine tinygrad_ext: returned Tensor",
        "  => returns Tensor",
    ]


def test_a_default_subclass_is_a_rung_too():
    class Sub(tg.Tensor):
        pass

    found = overrides.explain(tg.Tensor.mul, tg.ones(2).as_subclass(Sub), 2)
    assert ladder(found) == [("type", Sub, 0), ("engine", None, 1)]
    assert type(found.result) is Sub


def test_a_method_bound_to_its_tensor_is_explained_as_the_method():
    assert ladder(overrides.explain(tg.ones(2).exp)) == [("engine", None, 0)]


def test_who_was_not_needed_is_shown_as_not_asked():
    found = overrides.explain(tg.add, Bold(), Shy())
    assert ladder(found) == [("type", Bold, 0), ("engine", None, 1), ("type", Shy, 0)]
    assert "type Shy of" in str(found)
    assert str(found).splitlines()[3].endswith("not asked")


def test_errors_are_kept_and_shown():
    found = overrides.explain(tg.neg, Broken())
    assert isinstance(found.error, ValueError)
    assert "raised ValueError: no" in str(found)
    found = overrides.explain(tg.neg, Shy())
    assert isinstance(found.error, TypeError)
    assert "no implementation found for 'tinygrad_ext.neg'" in str(found).splitlines()[-1]
    found = overrides.explain(tg.neg, "text")
    assert found.rungs == []
    assert "must be Tensor, not str" in str(found)


def test_registered_handlers_are_shown_with_their_owner():
    class Theirs:
        pass

    with overrides.register(Theirs, lambda *a: "answer", owner="tgx-theirs 1.0"):
        found = overrides.explain(tg.neg, Theirs())
    assert ladder(found) == [("registered handler", Theirs, 0)]
    assert "Theirs by tgx-theirs 1.0: returned str" in str(found)


def test_a_common_type_is_the_last_rung_that_is_asked():
    class Left(tg.Tensor):
        pass

    class Right(tg.Tensor):
        pass

    with overrides.register_common_type(Left, Right, to=Right):
        found = overrides.explain(tg.add, tg.ones(1).as_subclass(Left), tg.ones(1).as_subclass(Right))
    assert ladder(found)[:3] == [("type", Left, 0), ("type", Right, 0), ("common type", Right, 0)]
    assert type(found.result) is Right


def test_a_python_function_that_asks_takes_part():
    @overrides.wrap_torch_function(lambda a: (a,))
    def double(a):
        return a + a

    assert ladder(overrides.explain(double, Bold()))[0] == ("type", Bold, 0)
    assert ladder(overrides.explain(double, tg.ones(2))) == [("engine", None, 0)]


def test_modes_come_first_innermost_first():
    class Passing(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with Passing() as outer, Passing() as inner:
        found = overrides.explain(tg.add, Bold(), 1)
    assert ladder(found) == [("mode", inner, 0), ("mode", outer, 1), ("type", Bold, 2), ("engine", None, 3)]
    assert f"mode Passing of {__name__}" in str(found)


def test_all_calls_inside_a_callable_of_ones_own_are_shown():
    found = overrides.explain(lambda x: x + tg.exp(Bold()), tg.ones(2))
    names = [getattr(rung.func, "name", None) for rung in found.rungs]
    assert names == ["exp", "aten::ones", "aten::exp", "aten::add.Tensor"]
    assert str(found).splitlines()[1:3] == [
        f"  1. tinygrad_ext.exp, type Bold of {__name__}: returned Tensor",
        "  2.   aten::ones, engine tinygrad_ext: returned Tensor",
    ]
    assert isinstance(overrides.explain(3).error, TypeError)


def test_explaining_leaves_nothing_behind():
    from tinygrad_ext.overrides import watch

    with pytest.raises(KeyboardInterrupt):
        overrides.explain(_interrupted, 1)
    assert watch._watching == 0
    assert watch._local.watch is None
    overrides.explain(tg.neg, Bold())
    assert tg.neg(tg.ones(1)).item() == -1


def _interrupted(x):
    raise KeyboardInterrupt
