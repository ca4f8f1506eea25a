"""Handlers for types one does not own: found by type, base or module, undone by their handle, loaded when needed."""

import decimal
import weakref

import numpy as np
import pytest
from collecting import collect

import tinygrad_ext as tg
from tinygrad_ext import overrides
from tinygrad_ext.registry import foreign


class Theirs:
    """A type of some other package."""

    def __init__(self, value=1.0):
        self.value = value


class Derived(Theirs):
    pass


def answer(func, types, args, kwargs):
    return "answer", func, types, args, kwargs


def declines(func, types, args, kwargs):
    return NotImplemented


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert not foreign._registered


def test_a_handler_gets_function_types_and_arguments():
    x, theirs = tg.ones(2), Theirs()
    with overrides.register(Theirs, answer):
        assert tg.add(x, theirs, alpha=2) == ("answer", tg.add, (Theirs,), (x, theirs), {"alpha": 2})
        assert tg.cat([x, theirs])[1:3] == (tg.cat, (Theirs,))
        assert tg.nn.functional.relu(theirs)[1] is tg.nn.functional.relu
        assert (x + theirs)[0] == "answer"
        assert tg.Tensor.add(x, theirs)[0] == "answer"
        assert tg.add(x, x, out=theirs)[0] == "answer"


def test_without_a_handler_the_call_is_refused_before_and_after():
    handle = overrides.register(Theirs, answer)
    handle.remove()
    handle.remove()
    with pytest.raises(TypeError, match=r"add\(\): argument 'other' \(position 2\) must be Tensor, not Theirs"):
        tg.add(tg.ones(2), Theirs())


def test_a_subclass_is_handled_as_its_base_unless_it_has_a_handler_of_its_own():
    with overrides.register(Theirs, answer):
        assert tg.neg(Derived())[2] == (Derived,)
        with overrides.register(Derived, lambda *a: "derived"):
            assert tg.neg(Derived()) == "derived"
            assert tg.neg(Theirs())[0] == "answer"
        assert tg.neg(Derived())[0] == "answer"


def test_a_module_prefix_stands_for_the_modules_below_it():
    m = np.ma.masked_array([1.0, 2.0], [False, True])
    with overrides.register("numpy.ma", answer):
        assert type(m).__module__.startswith("numpy.ma")
        assert tg.add(tg.ones(2), m)[2] == (np.ma.MaskedArray,)
        with pytest.raises(TypeError, match="must be Tensor, not numpy.ndarray"):
            tg.add(tg.ones(2), np.ones(2))
    with overrides.register("nump", answer), pytest.raises(TypeError):
        tg.add(tg.ones(2), np.ones(2))


def test_the_longest_prefix_and_the_type_itself_come_first():
    m = np.ma.masked_array([1.0])
    with overrides.register("numpy", lambda *a: "numpy"):
        assert tg.neg(np.ones(2)) == tg.neg(m) == "numpy"
        with overrides.register("numpy.ma", lambda *a: "numpy.ma"):
            assert (tg.neg(np.ones(2)), tg.neg(m)) == ("numpy", "numpy.ma")
            with overrides.register(np.ma.MaskedArray, lambda *a: "type"):
                assert tg.neg(m) == "type"


def test_handlers_take_turns_with_types_that_override():
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "duck", types

    with overrides.register(Theirs, declines):
        assert tg.add(Theirs(), Duck()) == ("duck", (Theirs, Duck))
        with pytest.raises(TypeError, match=r"must be Tensor, not Theirs\. The handler of \S+ for \S+Theirs declined"):
            tg.neg(Theirs())
    with overrides.register(Theirs, answer):
        assert tg.add(Theirs(), Duck())[0] == "answer"
        assert tg.add(Duck(), Theirs())[0] == "duck"


def test_tensors_of_pytorch_can_have_a_handler():
    torch = pytest.importorskip("torch")

    def bring_over(func, types, args, kwargs):
        return func(*[tg.from_dlpack(a) if isinstance(a, torch.Tensor) else a for a in args], **kwargs)

    with pytest.raises(TypeError, match="from_dlpack"):
        tg.add(tg.ones(2), torch.ones(2))
    with overrides.register("torch", bring_over):
        assert tg.add(tg.ones(2), torch.ones(2)).tolist() == [2.0, 2.0]


def test_a_second_handler_for_the_same_target_is_refused_with_both_owners():
    with (
        overrides.register("numpy.ma", answer, owner="first"),
        pytest.raises(RuntimeError, match=r"'numpy.ma' is taken by first already; second cannot have it too"),
    ):
        overrides.register("numpy.ma", declines, owner="second")


def test_what_a_handler_raises_reaches_the_caller_and_the_engine_goes_on():
    def breaks(func, types, args, kwargs):
        raise ValueError("broken")

    with overrides.register(Theirs, breaks):
        with pytest.raises(ValueError, match="broken"):
            tg.neg(Theirs())
        assert tg.neg(tg.ones(1)).item() == -1
    with overrides.register(Theirs, lambda func, types, args, kwargs: func(*args, **kwargs)):
        with pytest.raises(RecursionError):
            tg.neg(Theirs())
        assert tg.neg(tg.ones(1)).item() == -1


def test_a_handler_may_remove_itself():
    def once(func, types, args, kwargs):
        handle.remove()
        return "once"

    handle = overrides.register(Theirs, once)
    assert tg.neg(Theirs()) == "once"
    with pytest.raises(TypeError, match="must be Tensor"):
        tg.neg(Theirs())


@pytest.mark.parametrize("target", [int, list, dict, tg.Tensor, tg.nn.Parameter, "builtins", "tinygrad_ext.nn"])
def test_what_the_ops_take_themselves_cannot_be_registered(target):
    with pytest.raises(TypeError, match="taken by the ops themselves"):
        overrides.register(target, answer)


def test_wrong_arguments_are_refused():
    class Duck:
        def __torch_function__(self, *args):
            return 1

    with pytest.raises(TypeError, match="has a __torch_function__ of its own"):
        overrides.register(Duck, answer)
    with pytest.raises(TypeError, match="must be a type or the prefix of a module, not int"):
        overrides.register(3, answer)
    for text in ("", "scipy.", "scipy sparse", "*"):
        with pytest.raises(TypeError, match="is no module prefix"):
            overrides.register(text, answer)
    with pytest.raises(TypeError, match=r"must be callable as handler\(func, types, args, kwargs\), not str"):
        overrides.register(Theirs, "handler")


def test_types_are_not_kept_alive_by_having_been_asked_about():
    def passing():
        class Passing:
            pass

        with pytest.raises(TypeError):
            tg.neg(Passing())
        return weakref.ref(Passing)

    with overrides.register(Theirs, answer):
        gone = passing()
        collect()
        assert gone() is None


def test_a_class_that_cannot_be_hashed_has_no_handler():
    class Meta(type):
        def __eq__(cls, other):
            return cls is other

        __hash__ = None

    class Odd(metaclass=Meta):
        pass

    with overrides.register(Theirs, answer), pytest.raises(TypeError, match="must be Tensor, not Odd"):
        tg.neg(Odd())


# ---- the loader ----------------------------------------------------------------------------------------------------


@pytest.fixture
def asked():
    """Types the loader was asked about; it registers nothing."""
    before, found = foreign._load, []
    foreign.set_loader(found.append)
    yield found
    foreign.set_loader(before)


def test_the_loader_is_asked_once_about_a_type_without_a_handler(asked):
    for _ in range(2):
        with pytest.raises(TypeError, match="must be Tensor"):
            tg.neg(decimal.Decimal(1))
    assert asked == [decimal.Decimal]


def test_the_loader_may_register_a_handler_for_the_call_that_asked():
    before, handles = foreign._load, []
    foreign.set_loader(lambda t: handles.append(overrides.register(t, answer)))
    try:
        assert tg.neg(decimal.Decimal(1))[0] == "answer"
        assert len(handles) == 1
    finally:
        foreign.set_loader(before)
        handles[0].remove()


def test_the_loader_is_not_asked_where_there_is_a_handler_nor_about_our_own_kinds_of_values(asked):
    with overrides.register("decimal", answer):
        assert tg.neg(decimal.Decimal(1))[0] == "answer"
    with pytest.raises(TypeError):
        tg.neg("text")
    with pytest.raises(TypeError):
        tg.neg(np.ones(2))
    tg.ones(3)[np.int64(1)]
    assert asked == []
