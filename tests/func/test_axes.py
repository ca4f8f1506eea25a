"""func.rearrange: dimensions by their names."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext.func import rearrange

X = tg.arange(24).reshape(2, 3, 4)
SAME = {
    "a b c -> c a b": lambda x: x.transpose(2, 0, 1),
    "a b c -> c (a b)": lambda x: x.transpose(2, 0, 1).reshape(4, 6),
    "a b c->a 1 b () c": lambda x: x[:, None, :, None, :],
    "a ... -> ... a": lambda x: x.transpose(1, 2, 0),
    "... -> ...": lambda x: x,
    "a b c ... -> ... (c b a)": lambda x: x.transpose(2, 1, 0).ravel(),
    "a ... -> (... a)": lambda x: x.transpose(1, 2, 0).ravel(),
    "...c a->c...a": lambda x: x.transpose(1, 0, 2),
    "a b c -> (a b c)": lambda x: x.ravel(),
    "a b c -> a (b 1 c) ()": lambda x: x.reshape(2, 12, 1),
}


@pytest.mark.parametrize("pattern", SAME)
def test_dimensions_are_ordered_and_joined(pattern):
    np.testing.assert_array_equal(rearrange(X, pattern).numpy(), SAME[pattern](X.numpy()))


def test_dimensions_are_split_by_the_sizes_that_are_given():
    image = tg.arange(96).reshape(2, 4, 4, 3)
    found = rearrange(image, "b (h h1) (w w1) c -> b h w (c h1 w1)", h1=2, w1=2)
    want = image.numpy().reshape(2, 2, 2, 2, 2, 3).transpose(0, 1, 3, 5, 2, 4).reshape(2, 2, 2, 12)
    np.testing.assert_array_equal(found.numpy(), want)
    assert rearrange(X, "a b c -> a b c", b=3) is X


def test_several_tensors_are_stacked():
    assert rearrange([X, X + 1], "n a b c -> a b (n c)").shape == (2, 3, 8)


def test_views_share_memory_and_gradients_go_back():
    assert rearrange(X, "a b c -> c a b").data_ptr() == X.data_ptr()
    x = tg.ones(2, 6, requires_grad=True)
    rearrange(x, "a (b c) -> c (a b)", c=3).sum().backward()
    assert x.grad.tolist() == [[1.0] * 6] * 2


def test_it_goes_through_vmap_and_into_graphs():
    x = tg.arange(24.0).reshape(2, 3, 4)
    found = tg.func.vmap(lambda y: rearrange(y, "(a b) c -> b (a c)", a=3))(x)
    assert found.tolist() == rearrange(x, "n (a b) c -> n b (a c)", a=3).tolist()
    assert tg.compile(lambda y: rearrange(y, "a b c -> (c a) b"))(x).shape == (8, 3)


WRONG = {
    "a b c": (ValueError, "expected one '->', got 0"),
    "a b c -> a -> b": (ValueError, "expected one '->', got 2"),
    "a b c -> a b": (ValueError, "c must stand on both sides"),
    "a b c -> a b c d": (ValueError, "d must stand on both sides"),
    "a b b -> a b": (ValueError, "b stand\\(s\\) twice on one side"),
    "a b c d -> d c b a": (ValueError, "names 4 dimension\\(s\\), but the tensor has 3"),
    "a b c d ... -> a b c d ...": (ValueError, "names 4 dimension\\(s\\), but the tensor has 3"),
    "a b c -> (a b c": (ValueError, "not closed"),
    "a b c -> a b) c": (ValueError, "stand alone or within others"),
    "a b c -> ((a b) c)": (ValueError, "stand alone or within others"),
    "a b c -> a ... b c": (ValueError, "... must stand on both sides"),
    "... a ... -> a ...": (ValueError, "... stand\\(s\\) twice on one side"),
    "a .. c -> a .. c": (ValueError, "only by three"),
    "(... a) -> a ...": (ValueError, "in parentheses on the left side"),
    "_a b c -> b c _a": (ValueError, "without underscores at its ends"),
    "1a b c -> b c 1a": (ValueError, "as a Python variable is"),
    "a b c -> a b c 3": (ValueError, "only axes of size 1 go without a name"),
    "(a d) b c -> a d b c": (RuntimeError, "cannot infer the sizes of a and d at once"),
    "a 1 b c -> a b c": (ValueError, "names 4 dimension"),
    "a () c -> a c": (RuntimeError, "has the size 1, got 3"),
}


@pytest.mark.parametrize("pattern", WRONG)
def test_patterns_that_do_not_fit_are_told(pattern):
    error, told = WRONG[pattern]
    with pytest.raises(error, match=told):
        rearrange(X, pattern)


def test_sizes_that_do_not_fit_are_told():
    for sizes, error, told in (
        ({"d": 5}, RuntimeError, "is no multiple of 5"),
        ({"d": 0}, RuntimeError, "is no multiple of 0"),
        ({"z": 2}, ValueError, "sizes are given for z"),
        ({"d": 1.5}, TypeError, "the size of d must be an int"),
        ({"b": 2, "d": 2}, RuntimeError, "got 3"),
    ):
        with pytest.raises(error, match=told):
            rearrange(X, "a (d b) c -> a d b c", **sizes)
    with pytest.raises(TypeError, match="pattern must be a str"):
        rearrange(X, 3)
