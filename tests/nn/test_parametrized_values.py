"""nn.utils.parametrize: what a parametrization may return, and what is assigned through one."""

import pytest

import tinygrad_ext as tg
from tests.nn.test_parametrize import Doubled, Halved, Symmetric
from tinygrad_ext import nn
from tinygrad_ext.nn.utils import parametrizations, parametrize
from tinygrad_ext.nn.utils.weight_norm import WeightNorm


class Giving(nn.Module):
    def __init__(self, value, inverse=None):
        super().__init__()
        self.value, self.inverse = value, inverse

    def forward(self, *x):
        return self.value

    def right_inverse(self, x):
        return x if self.inverse is None else self.inverse


SQUARE = tg.ones(2, 2)
WRONG = {
    "no tensor": (Giving(3), "A parametrization must return a tensor. Got int"),
    "dtype": (Giving(SQUARE.double()), "may not change the dtype of the tensor, unless unsafe=True"),
    "shape": (Giving(tg.ones(3)), "may not change the shape of the tensor, unless unsafe=True"),
}
WRONG_BACK = {
    "no tensor back": (Giving(SQUARE, 3), "right_inverse must return a tensor. Got int"),
    "dtype back": (Giving(SQUARE, SQUARE.double()), "right_inverse must have the same dtype"),
    "shape back": (Giving(SQUARE, tg.ones(3)), "right_inverse must have the same shape"),
}


@pytest.mark.parametrize("case", WRONG | WRONG_BACK)
def test_further_parametrizations_keep_shape_and_dtype(case):
    wrong, text = (WRONG | WRONG_BACK)[case]
    layer = parametrize.register_parametrization(nn.Linear(2, 2), "weight", Doubled())
    with pytest.raises(ValueError, match=text):
        parametrize.register_parametrization(layer, "weight", wrong)
    assert len(layer.parametrizations.weight) == 1
    assert len(parametrize.register_parametrization(layer, "weight", wrong, unsafe=True).parametrizations.weight) == 2


@pytest.mark.parametrize("case", WRONG)
def test_first_parametrizations_keep_shape_and_dtype(case):
    wrong, text = WRONG[case]
    layer = nn.Linear(2, 2)
    with pytest.raises(ValueError, match=text):
        parametrize.register_parametrization(layer, "weight", wrong)
    assert not parametrize.is_parametrized(layer)
    with pytest.raises(ValueError, match="Got element 0 of the sequence with type NoneType"):
        parametrize.register_parametrization(layer, "weight", Giving(SQUARE, (None, SQUARE)))


def test_parametrizations_with_a_right_inverse_of_few_are_transferred():
    source = nn.Linear(2, 2)
    for part in (Symmetric(), Doubled(), Halved()):
        parametrize.register_parametrization(source, "weight", part)
    target = parametrize.transfer_parametrizations_and_params(source, nn.Linear(2, 2))
    assert tg.equal(target.weight, source.weight) and len(target.parametrizations.weight) == 3


def test_weight_norm_reads_what_its_hook_saved():
    hooked, layer = nn.Linear(2, 3), parametrizations.weight_norm(nn.Linear(2, 3))
    WeightNorm.apply(hooked, "weight", 0)
    layer.load_state_dict(hooked.state_dict())
    assert tg.allclose(layer.weight, hooked.weight)
    layer.load_state_dict(parametrizations.weight_norm(nn.Linear(2, 3)).state_dict())


@pytest.mark.parametrize("shape", [(3, 3), (5, 3), (3, 5), (4, 1), (1, 1), (2, 4, 3)])
def test_an_orthogonal_matrix_is_assigned_as_reflections(shape):
    tg.manual_seed(0)
    module = nn.Module()
    module.weight = nn.Parameter(tg.randn(shape, dtype=tg.float64))
    parametrizations.orthogonal(module, "weight", "householder", use_trivialization=False)
    tall = tg.randn(shape, dtype=tg.float64)
    wanted = tg.linalg.qr(tall.mT if shape[-2] < shape[-1] else tall)[0]
    wanted = wanted.mT if shape[-2] < shape[-1] else wanted
    for matrix in (wanted, -wanted):
        module.weight = matrix
        assert tg.allclose(module.weight, matrix)
    with pytest.raises(ValueError, match="of shape .* Got a tensor of shape"):
        module.weight = tg.ones(7, 7, dtype=tg.float64)


@pytest.mark.parametrize("name", ["matrix_exp", "cayley"])
def test_other_maps_are_assigned_to_with_a_base_alone(name):
    layer = parametrizations.orthogonal(nn.Linear(3, 3), "weight", name, use_trivialization=False)
    assert tg.allclose(layer.weight @ layer.weight.mT, tg.eye(3), atol=1e-5)
    with pytest.raises(NotImplementedError, match="not possible to assign to the matrix exponential or the Cayley"):
        layer.weight = tg.eye(3)
    with pytest.raises(ValueError, match="householder parametrization does not support complex"):
        parametrizations.orthogonal(nn.Linear(3, 3, dtype=tg.complex64), "weight", "householder")
