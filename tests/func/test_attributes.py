"""Whatever a tensor can be asked, a value inside a transform answers as one of its own shape, or refuses."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.func import jvp, vmap

NAMES = [n for n in dir(tg.Tensor) if not n.startswith("__")]


def told(value):
    """What does not depend on the numbers."""
    if isinstance(value, tg.Tensor):
        return tuple(value.shape), value.dtype, value.device
    if isinstance(value, (tuple, list)):
        return [told(v) for v in value]
    return type(value)


def asked(tensor, name):
    found = getattr(tensor, name)
    return told(found() if callable(found) and not isinstance(found, tg.Tensor) else found)


def in_vmap(f, x):
    vmap(f, randomness="different")(x)


def in_jvp(f, x):
    jvp(f, (x[0],), (x[1],))


@pytest.mark.parametrize("level", [in_vmap, in_jvp])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_values_answer_as_tensors_do(name, level):
    x, answers = tg.rand(3, 4, 4), []

    def ask(tensor):
        total = tensor.sum()
        try:
            answers.append(asked(tensor, name))
        except (AssertionError, TypeError, ValueError, AttributeError, RuntimeError, IndexError, NotImplementedError):
            answers.append("refused")
        return total

    ask(x[0].clone())
    level(ask, x.clone())
    alone, inside = answers
    assert inside in (alone, "refused")


def test_a_stride_is_asked_of_a_dimension_that_there_is():
    for given in ((0,), (-1,), (None,), ()):
        assert vmap(lambda t, given=given: t * tg.tensor(t.stride(*given)).sum())(tg.ones(2, 3, 4)).shape == (2, 3, 4)
    with pytest.raises(IndexError, match=r"\[-2, 1\], but got 7"):
        vmap(lambda t: t.stride(7))(tg.ones(2, 3, 4))


def test_a_value_keeps_its_shape():
    for transform in (lambda f: vmap(f)(tg.ones(2, 3)), lambda f: jvp(f, (tg.ones(3),), (tg.ones(3),))):
        with pytest.raises(RuntimeError, match="keeps its shape"):
            transform(lambda t: t.clone().resize_(2).sum())
