"""Values that stand for others under a level: what they show, who answers for them, and how they end."""

import weakref

import numpy as np
import pytest
from collecting import collect
from levels import Box, Cube

import tinygrad_ext as tg


def test_a_carried_value_shows_the_shape_that_the_level_says():
    with Box() as level:
        x = level.carry("anything", (2, 3), tg.float64)
        assert isinstance(x, tg.Tensor)
        assert (x.shape, x.dtype, x.dim(), len(x), x.size(1), x.numel()) == ((2, 3), tg.float64, 2, 2, 3, 6)
        assert x.device == tg.device("cpu")
        assert x.value == "anything"
        assert repr(x) == "<Box value, shape [2, 3], torch.float64>"


@pytest.mark.parametrize(
    "read",
    [
        bool, int, float, complex, list, np.asarray,
        lambda x: [0, 1][x], lambda x: x.item(), lambda x: x.tolist(), lambda x: x.numpy(), lambda x: x.data_ptr(),
        lambda x: 1 in x, lambda x: tg.equal(x, x), lambda x: memoryview(x), lambda x: tg.from_dlpack(x),
    ],
    ids=["bool", "int", "float", "complex", "list", "asarray", "index", "item", "tolist", "numpy", "data_ptr", "in",
         "equal", "memoryview", "dlpack"],
)  # fmt: skip
def test_reading_the_elements_of_a_carried_value_is_refused_by_its_level(read):
    with Box() as level:
        x = level.wrap(tg.tensor(1))
        with pytest.raises((RuntimeError, TypeError, BufferError)) as refusal:
            read(x)
    assert not isinstance(refusal.value, AssertionError)


def test_a_level_may_answer_what_is_read():
    class Open(Box):
        def read(self, value, name, args):
            if name in ("__bool__", "__float__", "item"):
                return {"__bool__": bool, "__float__": float, "item": lambda t: t.item()}[name](value.value)
            if name == "shape":
                return (7,)
            return super().read(value, name, args)

    with Open() as level:
        x = level.wrap(tg.tensor(3.0))
        assert (bool(x), float(x), x.item(), x.shape) == (True, 3.0, 3.0, (7,))


def test_setting_an_attribute_of_a_carried_value_goes_to_the_level():
    with Box() as level:
        x = level.wrap(tg.ones(1))
        with pytest.raises(RuntimeError, match="cannot set 'grad' of a value that <level Box> carries"):
            x.grad = tg.ones(1)
        with pytest.raises(RuntimeError, match="cannot set 'data' of a tensor to a value that <level Box> carries"):
            tg.ones(1).data = x


def test_operations_go_to_the_level_of_the_value_alone():
    a = tg.ones(2)
    with Box() as outer, Box() as inner:
        x, y = outer.wrap(a), inner.wrap(a)
        assert (x + a).level is outer
        both = x + y
        assert both.level is inner
        assert both.value.level is outer
        assert type(a + a) is tg.Tensor
        lists = tg.stack([a, y])
        assert lists.level is inner


def test_a_value_outlives_its_level_as_an_error_only():
    with Box() as level:
        x = level.wrap(tg.ones(2))
    for use in (lambda: x + 1, lambda: tg.stack([x]), lambda: x.shape, lambda: x[0], lambda: Cube.apply(x).sum()):
        with pytest.raises(RuntimeError, match="after that level ended"):
            use()
    assert repr(x) == "<value of <level Box>, which ended>"
    with pytest.raises(TypeError, match="carry"):
        type(x)(1)
    blank = type(x).__new__(type(x))
    with pytest.raises(RuntimeError):
        blank + 1


def test_a_value_that_was_not_unwrapped_is_told_from_one_that_leaked():
    class Forgets(Box):
        def process(self, operation, args):
            return operation(*args)

    with Forgets() as level:
        x = level.wrap(tg.ones(2))
        with pytest.raises(RuntimeError, match=r"reached an operation below that level: process\(\) has to pass on"):
            x + 1


def test_a_transform_without_a_rule_says_so():
    class Empty(Box):
        def process(self, operation, args):
            return NotImplemented

    with Empty() as level:
        x = level.wrap(tg.ones(2))
        with pytest.raises(NotImplementedError, match="aten::exp: <level Empty> has no rule for it"):
            x.exp()
        with pytest.raises(NotImplementedError, match="function::Cube"):
            Cube.apply(x)


def test_a_circle_through_a_carried_value_is_collected():
    class Thing:
        pass

    with Box() as level:
        thing = Thing()
        thing.value = level.carry(thing, (2,), tg.float32)
        alive = weakref.ref(thing)
        del thing
        collect()
    assert alive() is None


def test_carry_refuses_shapes_that_are_none():
    with Box() as level:
        for shape in [(-1,), (2**62, 4), ("a",), (0.5,)]:
            with pytest.raises((RuntimeError, TypeError)):
                level.carry(None, shape, tg.float32)
        with pytest.raises(RuntimeError, match="too many"):
            level.carry(None, (1,) * 65, tg.float32)
        with pytest.raises(TypeError, match="dtype"):
            level.carry(None, (1,), "float32")
