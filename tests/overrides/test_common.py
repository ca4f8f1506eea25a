"""Sibling subclasses of Tensor meet in a registered common type."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import overrides


class Left(tg.Tensor):
    pass


class Right(tg.Tensor):
    pass


class Far(tg.Tensor):
    pass


class Both(tg.Tensor):
    pass


def make(cls, value=1.0):
    return tg.full((2,), value).as_subclass(cls)


@pytest.fixture
def met():
    with overrides.register_common_type(Left, Right, to=Both) as handle:
        yield handle


def test_siblings_without_a_common_type_are_refused():
    with pytest.raises(TypeError, match=r"no implementation found for .*add.*Left.*Right"):
        tg.add(make(Left), make(Right))
    with pytest.raises(TypeError, match=r"unsupported operand type\(s\) for \+: 'Left' and 'Right'"):
        make(Left) + make(Right)


@pytest.mark.parametrize("a, b", [(Left, Right), (Right, Left)])
def test_results_are_of_the_common_type(met, a, b):
    for result in (
        make(a) + make(b),
        tg.cat([make(a), make(b)]),
        tg.maximum(make(a), make(b)),
        tg.add(make(a), make(b)),
    ):
        assert type(result) is Both
    assert type(make(a) + make(b) + make(a)) is Both
    assert type(make(a) + make(a)) is a
    met.remove()
    with pytest.raises(TypeError, match="no implementation found"):
        tg.add(make(a), make(b))


def test_subclasses_meet_where_their_bases_do(met):
    class Lefter(Left):
        pass

    assert type(make(Lefter) + make(Right)) is Both
    assert type(make(Lefter) + make(Left)) is Lefter


def test_three_types_meet_step_by_step(met):
    with pytest.raises(TypeError, match="no implementation found"):
        tg.cat([make(Left), make(Right), make(Far)])
    with overrides.register_common_type(Both, Far, to=tg.Tensor):
        assert type(tg.cat([make(Left), make(Right), make(Far)])) is tg.Tensor
        assert type(make(Left) + make(Right) + make(Far)) is tg.Tensor


def test_one_of_the_types_can_be_the_common_one():
    with overrides.register_common_type(Left, Right, to=Left):
        assert type(make(Left) + make(Right)) is Left


def test_more_than_two_types_meet_pairwise():
    with overrides.register_common_type(Left, Right, Far, to=Both):
        assert type(make(Right) + make(Far)) is Both
        assert type(tg.stack([make(Left), make(Right), make(Far)])) is Both


def test_gradients_flow_through(met):
    a = tg.ones(2, requires_grad=True)
    (a.as_subclass(Left) * make(Right, 3.0)).sum().backward()
    assert a.grad.tolist() == [3.0, 3.0]


def test_the_common_types_own_method_is_asked():
    class Loud(tg.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "loud", func, types

    with overrides.register_common_type(Left, Right, to=Loud):
        assert tg.add(make(Left), make(Right)) == ("loud", tg.add, (Loud,))


def test_wrong_types_and_a_second_registration_are_refused(met):
    with pytest.raises(RuntimeError, match="common type of Left, Right: Both"):
        overrides.register_common_type(Right, Left, to=Left)
    with pytest.raises(TypeError, match="is no subclass of Tensor"):
        overrides.register_common_type(Left, int, to=Both)
    with pytest.raises(TypeError, match="two or more different types"):
        overrides.register_common_type(Left, to=Both)
    with pytest.raises(TypeError, match="two or more different types"):
        overrides.register_common_type(Left, Left, to=Both)
