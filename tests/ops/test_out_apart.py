"""`out=` that shares memory with an input, of a dtype that is not the result's, and lists of tensors as `out=`."""

import pytest

import tinygrad_ext as tg


@pytest.mark.parametrize(
    "call",
    [
        lambda x, i: tg.index_select(x, 0, i, out=x),
        lambda x, i: tg.take(x, i, out=x[:2]),
        lambda x, i: tg.gather(x, 0, i, out=x[:2]),
        lambda x, i: tg.masked_select(x, x > 1, out=x),
        lambda x, i: tg.kthvalue(x, 1, out=(x[0], tg.tensor(0))),
        lambda x, i: tg.cat([x[:1], x[1:2]], out=x[:2]),
        lambda x, i: tg.nonzero(i, out=i),
        lambda x, i: x.index_add_(0, i, x[:2]),
        lambda x, i: x.index_copy_(0, i, x[:2]),
        lambda x, i: x.scatter_(0, i, x),
        lambda x, i: x.put_(i, x[:2]),
    ],
)
def test_writing_over_an_input_is_refused(call):
    with pytest.raises(RuntimeError, match="unsupported operation: some elements of the input"):
        call(tg.arange(4.0), tg.tensor([0, 1]))


@pytest.mark.parametrize(
    "call",
    [
        lambda x, one: x.index_add_(0, x, one),
        lambda x, one: x.index_copy_(0, x, one),
        lambda x, one: x.index_fill_(0, x, 1),
        lambda x, one: x.index_reduce_(0, x, one, "amax"),
        lambda x, one: x.index_put_((x,), one[0]),
        lambda x, one: x.__setitem__(x, 1),
        lambda x, one: x.scatter_(0, x, 1),
        lambda x, one: x.scatter_add_(0, x, one),
        lambda x, one: x.scatter_reduce_(0, x, one, "sum"),
        lambda x, one: x.put_(x, one),
        lambda x, one: tg.take(one, x, out=x),
        lambda x, one: tg.index_select(one, 0, x, out=x),
        lambda x, one: x.index_put_((x[:2],), one[0]),
        lambda x, one: x.__setitem__(one[:1], x[:1]),
    ],
)
def test_an_index_that_is_written_to_is_refused(call):
    x = tg.tensor([0, 1, 2])
    with pytest.raises(RuntimeError, match="unsupported operation: some elements of the input"):
        call(x, tg.ones(3, dtype=tg.int64))
    assert x.tolist() == [0, 1, 2]


def test_masks_over_themselves_and_values_beside_an_index_are_taken():
    mask = tg.tensor([True, False])
    assert mask.index_put_((mask,), tg.tensor(False)).tolist() == [False, False]
    x = tg.arange(3.0)
    assert x.index_fill_(0, tg.tensor([1]), x[0]).tolist() == [0, 0, 2]


def test_other_parts_of_the_same_memory_are_taken():
    x = tg.arange(8.0)
    assert tg.cat([x[:2], x[2:4]], out=x[4:]).tolist() == [0, 1, 2, 3]
    assert x.tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert tg.take(x[:4], tg.tensor([3, 1]), out=x[6:]).tolist() == [3, 1]
    i = tg.tensor([1, 0])
    assert tg.gather(tg.tensor([5, 6]), 0, i, out=i).tolist() == [6, 5]


def test_what_grows_over_an_input_is_refused():
    i = tg.tensor([1, 0, 1])
    with pytest.raises(RuntimeError, match="unsupported operation"):
        tg.gather(tg.tensor([5, 6]), 0, i[1:], out=i[:1])


@pytest.mark.parametrize("op", [tg.exp, lambda x, out: tg.index_select(x, 0, tg.tensor([0]), out=out)])
def test_a_target_whose_elements_share_memory_is_refused_whatever_its_shape(op):
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        op(tg.ones(2), out=tg.zeros(1).expand(3))


@pytest.mark.parametrize(
    "call",
    [
        lambda out: tg.gather(tg.ones(2), 0, tg.tensor([0]), out=out),
        lambda out: tg.aminmax(tg.ones(2), dim=0, out=(tg.ones(1), out)),
        lambda out: tg.multinomial(tg.ones(2), 1, out=out),
        lambda out: tg.complex(tg.ones(1), tg.ones(1), out=out.to(tg.complex128)),
        lambda out: tg.narrow_copy(tg.ones(2), 0, 0, 1, out=out),
    ],
)
def test_a_target_of_another_dtype_is_refused(call):
    with pytest.raises(RuntimeError, match="Expected (out tensor to have dtype|object of scalar type)"):
        call(tg.ones(1, dtype=tg.float64))


def test_lists_of_results_are_written_to_lists_of_tensors():
    x = tg.arange(6.0).reshape(2, 3)
    outs = [tg.empty(3), tg.empty(3)]
    assert tg.unbind_copy(x, out=outs) is None
    assert [o.tolist() for o in outs] == x.tolist()
    outs = (tg.empty(2, 1), tg.empty(2, 2))
    assert tg.split_with_sizes_copy(x, (1, 2), 1, out=outs) is None
    assert tg.equal(tg.cat(outs, 1), x)


def test_lists_that_do_not_fit_are_refused_before_anything_is_written():
    x, out = tg.ones(2, 3), tg.zeros(3)
    with pytest.raises(RuntimeError, match="Expected an out= argument of size 2, a tensor for each result, but got 1"):
        tg.unbind_copy(x, out=[out])
    with pytest.raises(RuntimeError, match="given as out refer to a single memory location"):
        tg.unbind_copy(x, out=[out, out])
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype"):
        tg.unbind_copy(x, out=[out, tg.zeros(3).double()])
    with pytest.raises(TypeError, match="'out' must be tuple of Tensors, not Tensor"):
        tg.unbind_copy(x, out=out)
    assert out.tolist() == [0, 0, 0]


def test_a_layout_that_is_not_strided_is_refused():
    assert tg.ones(1).layout is tg.strided is not tg.sparse_coo
    with pytest.raises(NotImplementedError, match="must be torch.strided, not torch.sparse_csr"):
        tg.zeros(2, layout=tg.sparse_csr)


def test_a_step_of_zero_is_refused():
    with pytest.raises(ValueError, match="step must be nonzero"):
        tg.arange(0, 64, 0.5, out=tg.empty(0, dtype=tg.int64))


def test_tensors_on_meta_have_nothing_in_common():
    x, i = tg.empty(3, device="meta"), tg.empty(3, device="meta", dtype=tg.int64)
    assert x.scatter_(0, i, tg.empty_like(x)) is x
    assert tg.take(x, i, out=tg.empty(3, device="meta")).shape == (3,)
    with pytest.raises(RuntimeError, match="single memory location"):
        x.scatter_(0, i, x)


@pytest.mark.parametrize("name", ["cat", "stack", "hstack", "vstack", "dstack", "column_stack"])
def test_what_joins_tensors_into_too_narrow_a_dtype_is_a_type_error(name):
    with pytest.raises(
        TypeError, match=rf"torch.{name}\(\): input types can't be cast to the desired output type Long"
    ):
        getattr(tg, name)([tg.ones(2), tg.ones(2)], out=tg.empty(0, dtype=tg.int64))
    assert getattr(tg, name)([tg.ones(2), tg.ones(2)], out=tg.empty(0, dtype=tg.float64)).dtype == tg.float64
