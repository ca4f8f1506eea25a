"""A number that only a meta tensor has is unknown: nothing on the cpu is computed with a zero in its place."""

import pytest

import tinygrad_ext as tg

CALLS = {
    "fill_": lambda x, n: x.fill_(n),
    "full": lambda x, n: tg.full((2,), n),
    "full_like": lambda x, n: tg.full_like(x, n),
    "new_full": lambda x, n: x.new_full((2,), n),
    "scalar_tensor": lambda x, n: tg.scalar_tensor(n),
    "arange": lambda x, n: tg.arange(n),
    "arange with a step": lambda x, n: tg.arange(0, 5, n),
    "linspace on the cpu": lambda x, n: tg.linspace(n, 2, 3, device="cpu"),
    "addmm": lambda x, n: tg.addmm(x, x, x, alpha=n),
    "norm": lambda x, n: tg.linalg.vector_norm(x, n),
    "masked_fill": lambda x, n: x.masked_fill(x > 0, n),
    "index_fill": lambda x, n: x.index_fill(0, tg.tensor([0]), n),
    "pad": lambda x, n: tg.nn.functional.pad(x, (1, 1), value=n),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_op_on_the_cpu_refuses_a_number_of_meta(name):
    x = tg.ones(3, 3)
    with pytest.raises((RuntimeError, TypeError, NotImplementedError), match="meta|must be"):
        CALLS[name](x, tg.tensor(1.0, device="meta"))
    assert x.tolist() == [[1, 1, 1]] * 3


def test_on_meta_the_number_need_not_be_known():
    number = tg.tensor(1.0, device="meta")
    assert tg.full((2,), number, device="meta").shape == (2,)
    assert tg.linspace(number, 2, 3).is_meta
    assert tg.ones(2, device="meta").fill_(number).is_meta
