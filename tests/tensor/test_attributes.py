"""Attributes of tensors in pickles and copies."""

import copy
import pickle

import pytest

import tinygrad_ext as tg


class Slotted(tg.Tensor):
    __slots__ = ("place",)


@pytest.mark.parametrize("copied", [lambda t: pickle.loads(pickle.dumps(t)), copy.deepcopy])
@pytest.mark.parametrize("kind", [tg.Tensor, tg.nn.Parameter, Slotted])
def test_attributes_may_lead_back_to_their_tensor(kind, copied):
    t = tg.nn.Parameter(tg.ones(2)) if kind is tg.nn.Parameter else tg.ones(2).as_subclass(kind)
    t.me, t.held, t.plain = t, [{"a": t}], 3
    if isinstance(t, Slotted):
        t.place = (t, 1)
    if isinstance(t, tg.nn.Parameter) and copied is copy.deepcopy:
        return  # of a Parameter the numbers alone are copied
    found = copied(t)
    assert found is not t and found.me is found and found.held[0]["a"] is found and found.plain == 3
    assert type(found) is type(t) and found.tolist() == [1, 1]
    if isinstance(t, Slotted):
        assert found.place[0] is found and found.place[1] == 1


def test_a_class_that_adds_to_what_pickle_takes_gets_two_parts():
    class Told(tg.Tensor):
        def __reduce_ex__(self, protocol):
            function, arguments = super().__reduce_ex__(protocol)
            return function, arguments

    t = tg.ones(2).as_subclass(Told)
    t.plain = 3
    function, arguments = t.__reduce_ex__(4)
    assert function(*arguments).plain == 3
    plain = tg.ones(2)
    plain.plain = 3
    assert copy.copy(plain).plain == 3
