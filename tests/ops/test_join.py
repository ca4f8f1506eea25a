"""Rules of cat, stack and of copies that the sweep over the op table cannot know."""

import pytest

import tinygrad_ext as tg


def test_cat_passes_over_empty_vectors():
    x = tg.ones(2, 3)
    assert tg.cat([tg.zeros(0), x], 1).shape == (2, 3)
    assert tg.cat([tg.zeros(0), tg.zeros(0)], 1).shape == (0,)


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_any_dim_will_do_for_nothing_but_empty_vectors(device):
    assert tg.ops.aten.cat.default([tg.empty(0, device=device)], 5).shape == (0,)


def test_an_input_without_elements_may_lie_in_the_memory_of_out():
    out = tg.zeros(2)
    assert tg.cat([out[:0], tg.ones(2)], out=out).tolist() == [1.0, 1.0]


def test_an_empty_vector_among_the_inputs_still_promotes():
    assert tg.cat([tg.zeros(0, dtype=tg.float64), tg.ones(2, 3)], 1).dtype == tg.float64


def test_gradients_of_cat_have_each_input_s_dtype():
    x = tg.ones(2, requires_grad=True)
    y = tg.ones(2, dtype=tg.float64, requires_grad=True)
    tg.cat([x, y, x]).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0] and x.grad.dtype == tg.float32
    assert y.grad.dtype == tg.float64


def test_out_must_take_the_dtype_and_not_be_an_input():
    x = tg.ones(2)
    with pytest.raises(TypeError, match="input types can't be cast to the desired output type Long"):
        tg.cat([x, x], out=tg.empty(4, dtype=tg.int64))
    with pytest.raises(RuntimeError, match="refer to a single memory location"):
        tg.cat([x, x], out=x)
    with pytest.raises(RuntimeError, match="more than one element"):
        tg.cat([x, x], out=tg.zeros(1).expand(4))


def test_tensors_may_be_given_one_by_one_where_pytorch_takes_them_so():
    a, b = tg.zeros(3, 1), tg.zeros(4)
    assert [t.shape for t in tg.broadcast_tensors(a, b)] == [(3, 4), (3, 4)]
    assert [t.shape for t in tg.atleast_1d(tg.zeros(()), b)] == [(1,), (4,)]
    assert tg.meshgrid(b, b, indexing="ij")[0].shape == (4, 4)
    with pytest.raises(TypeError):
        tg.cat(a, b)


def test_meshgrid_without_indexing_warns():
    with pytest.warns(UserWarning, match="indexing"):
        tg.meshgrid(tg.zeros(2), tg.zeros(3))


@pytest.mark.parametrize("name", ["tril_", "triu_"])
def test_triangles_in_place_write_only_zeros(name):
    x = tg.ones(3, 3)
    plain = getattr(tg.ones(3, 3), name[:-1])()
    assert getattr(x, name)() is x and x.tolist() == plain.tolist()
    y = tg.ones(4, 3).t()
    assert getattr(y, name)(1).tolist() == getattr(tg.ones(3, 4), name[:-1])(1).tolist()


def test_huge_sizes_are_refused_and_not_wrapped_around():
    x = tg.ones(2, 3)
    for call in (
        lambda: x.repeat(2**62, 1),
        lambda: x.diag_embed(2**62),
        lambda: tg.constant_pad_nd(x, (2**62, 0)),
        lambda: x.repeat_interleave(2**62),
        lambda: tg.repeat_interleave(tg.tensor([2**61, 2**61])),
    ):
        with pytest.raises((RuntimeError, MemoryError)):
            call()


def test_repeat_interleave_checks_the_announced_size():
    with pytest.raises(RuntimeError, match="allocated size does not match required size"):
        tg.ones(2).repeat_interleave(tg.tensor([1, 2]), 0, output_size=4)


class Unsure(list):
    """A list of tensors that is neither true nor false, as libraries have them."""

    def __bool__(self):
        raise RuntimeError("neither")


def test_a_list_of_tensors_need_not_be_true_or_false():
    parts = Unsure([tg.ones(2), tg.zeros(2)])
    for name in ("cat", "stack", "hstack", "vstack", "dstack", "column_stack", "cartesian_prod", "block_diag"):
        assert getattr(tg, name)(parts).equal(getattr(tg, name)(list(parts)))
    assert len(tg.meshgrid(parts, indexing="ij")) == 2 and tg.einsum("i,i", parts).item() == 0
    assert tg._foreach_add(parts, Unsure([1.0, 2.0]))[1].tolist() == [2, 2]
    assert tg._foreach_mul_(parts, 2.0) is parts and parts[0].tolist() == [2, 2]
    for name in ("hstack", "column_stack", "cartesian_prod", "meshgrid", "_foreach_add"):
        with pytest.raises(RuntimeError, match="at least one|non-empty"):
            getattr(tg, name)(Unsure(), *[1] * (name == "_foreach_add"))
