"""Parameter.__new__ can be replaced for a while, as tests do that count what a module makes."""

import copy
import pickle
from unittest import mock

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn


class Own(nn.Parameter):
    pass


def test_what_is_put_in_its_place_is_called_and_goes_again():
    made = nn.Parameter.__new__
    seen = []

    def counted(cls, *args, **kwargs):
        seen.append(cls)
        return made(cls, *args, **kwargs)

    for _ in range(2):
        with mock.patch.object(nn.Parameter, "__new__", counted):
            assert nn.Linear(2, 3).weight.shape == (3, 2)
        assert seen == [nn.Parameter] * 2
        seen.clear()
        assert nn.Parameter(tg.ones(2), requires_grad=False).tolist() == [1, 1]
        nn.Linear(2, 3)
        assert not seen
    for kind in (nn.Parameter, Own):
        p = kind(tg.ones(2))
        assert type(p) is kind and type(copy.deepcopy(p)) is kind and p.requires_grad
    assert pickle.loads(pickle.dumps(nn.Parameter(tg.ones(2)))).tolist() == [1, 1]
    assert nn.UninitializedParameter.__new__ is not nn.Parameter.__new__


@pytest.mark.parametrize("args", [(), (3,), (int, tg.ones(2)), (dict,), (object,), (tg.Tensor, tg.ones(2))])
def test_what_is_no_class_of_parameters_is_refused(args):
    with pytest.raises(TypeError, match=r"Parameter\.__new__"):
        nn.Parameter.__new__(*args)
    assert type(nn.Parameter.__new__(nn.Parameter, tg.ones(2))) is nn.Parameter
