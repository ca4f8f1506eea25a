"""Rules of tensor[index] and its writing form that the sweep over the op table cannot know."""

import numpy as np
import pytest

import tinygrad_ext as tg


def arange(*shape, dtype=None):
    """0, 1, 2, ... in a shape, in memory of its own."""
    count = 1
    for s in shape:
        count *= s
    return tg.arange(count, dtype=dtype or tg.float64).reshape(shape).clone()


# ---- reading -------------------------------------------------------------------------------------------------------

WINDOWS = [
    0,
    -1,
    slice(None),
    slice(1, None, 2),
    None,
    ...,
    (),
    (0, 1),
    (..., 0),
    (slice(None), None, 1),
    (0, ..., None),
    slice(5, 9),
    (slice(-9, 9), slice(None, None, 1 << 40)),
    np.int64(1),
]
PICKS = [
    [0, 1],
    ([0, 1], [1, 0]),
    (slice(None), [0, 2]),
    ([0, 1], slice(None), [0, 1]),
    [True, False],
    np.array([True, False]),
    (..., np.array([1, 1])),
    (None, [1, 0], None),
    (True, [0]),
    False,
]


@pytest.mark.parametrize("index", WINDOWS, ids=str)
def test_ints_slices_none_and_ellipsis_give_a_view(index):
    x = arange(2, 3, 4)
    part = x[index]
    np.testing.assert_array_equal(part.numpy(), x.numpy()[index])
    assert part._base is x and (part.data_ptr() == 0 or part.storage_offset() < x.numel())


@pytest.mark.parametrize("index", PICKS, ids=str)
def test_tensors_sequences_and_arrays_give_a_copy(index):
    x = arange(2, 3, 4)
    part = x[index]
    np.testing.assert_array_equal(part.numpy(), x.numpy()[index])
    assert part._base is None


def test_an_int_does_not_part_index_tensors_from_a_slice():
    """NumPy counts the int as an index array and moves the result's dimension to the front; here it is a select."""
    assert tuple(arange(2, 3, 4)[0, :, [3, 1]].shape) == (3, 2)


def test_an_integer_tensor_of_no_dimensions_is_an_int():
    x = arange(3, 4)
    part = x[tg.tensor(1)]
    assert part._base is x and part.tolist() == x[1].tolist()


def test_a_short_list_with_a_slice_or_a_list_in_it_is_a_tuple():
    x = arange(3, 4)
    assert x[[[0, 1], [1, 0]]].tolist() == [1.0, 4.0]
    assert x[[0, slice(1, 3)]].tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("index", "error", "fragment"),
    [
        (3, IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
        ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
        (slice(None, None, -1), ValueError, "step must be greater than zero"),
        (slice(None, None, 0), ValueError, "slice step cannot be zero"),
        (slice(0, 1.5), TypeError, "slice indices must be integers"),
        (1.5, IndexError, "only integers, slices"),
        ({1}, IndexError, "only integers, slices"),
        ("a", TypeError, "invalid data type 'str'"),
        (2**70, ValueError, "Overflow when unpacking long"),
        ([0, 9], IndexError, "index 9 is out of bounds for dimension 0 with size 3"),
        (
            [True, False],
            IndexError,
            "The shape of the mask [2] at index 0 does not match the shape of the indexed tensor [3, 4]",
        ),
        (([0, 1], [0, 1, 2]), IndexError, "could not be broadcast together with shapes [2], [3]"),
    ],
    ids=str,
)
def test_wrong_indices_raise(index, error, fragment):
    with pytest.raises(error) as raised:
        arange(3, 4)[index]
    assert fragment in str(raised.value)


@pytest.mark.parametrize("dtype", ["float32", "int16", "int8"])
def test_index_tensors_are_int_long_byte_or_bool(dtype):
    with pytest.raises(IndexError, match="tensors used as indices must be long, int, byte or bool tensors"):
        arange(3)[tg.tensor([1], dtype=getattr(tg, dtype))]


def test_a_0_dim_tensor_has_no_items():
    with pytest.raises(IndexError, match="invalid index of a 0-dim tensor"):
        tg.tensor(1.0)[0]


# ---- writing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", WINDOWS + PICKS, ids=str)
def test_a_number_is_written_where_it_would_be_read(index):
    x = arange(2, 3, 4)
    want = x.numpy().copy()
    want[index] = -1
    x[index] = -1
    np.testing.assert_array_equal(x.numpy(), want)


def test_values_broadcast_and_may_have_leading_ones():
    x = arange(2, 3)
    x[1] = tg.tensor([[[7.0, 8.0, 9.0]]], dtype=tg.float64)
    x[:, [0]] = tg.tensor([5.0], dtype=tg.float64)
    assert x.tolist() == [[5, 1, 2], [5, 8, 9]]


def test_a_window_converts_the_dtype_and_an_index_tensor_does_not():
    x = arange(3, 2)
    x[0] = tg.tensor([7, 8])
    x[x > 4] = tg.tensor(1)  # one value under a mask converts too
    assert x.tolist() == [[1, 1], [2, 3], [4, 1]]
    with pytest.raises(
        RuntimeError, match="source and destination dtypes match, got Double for the destination and Long"
    ):
        x[[0, 1]] = tg.tensor([1, 2])


def test_overlapping_source_is_read_before_it_is_written_and_refused_at_index_tensors():
    x = arange(6)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    with pytest.raises(RuntimeError, match="some elements of the input tensor and the written-to tensor"):
        x[[0, 1, 2]] = x[2:5]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("value", "error"), [("a", TypeError), ([1], TypeError), (None, TypeError), (1j, RuntimeError), (2**70, ValueError)]
)
def test_what_no_number_is_cannot_be_written(value, error):
    with pytest.raises(error):
        arange(3)[0] = value


def test_items_cannot_be_deleted():
    with pytest.raises(TypeError, match="does not support deleting items"):
        del arange(3)[0]


def test_read_only_memory_is_not_written():
    array = np.zeros(3)
    array.flags.writeable = False
    with pytest.warns(UserWarning):
        t = tg.from_numpy(array)
    for index in (0, [0], slice(None), np.array([True, False, False])):
        with pytest.raises(RuntimeError, match="read-only"):
            t[index] = 1.0
    assert array.sum() == 0


# ---- derivatives ---------------------------------------------------------------------------------------------------


def test_a_leaf_and_its_views_are_not_written_in_grad_mode():
    x = arange(3).requires_grad_()
    with pytest.raises(
        RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place operation"
    ):
        x[0] = 1.0
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x[:] = 1.0
    with tg.no_grad():
        x[0] = 1.0
    assert x[0].item() == 1.0


def test_writing_cuts_the_old_gradient_and_gives_one_to_the_value():
    a, v = arange(4).requires_grad_(), tg.tensor(2.0, dtype=tg.float64).requires_grad_()
    b = a * 3
    b[1:3] = v
    b.sum().backward()
    assert a.grad.tolist() == [3, 0, 0, 3] and v.grad.item() == 2


def test_a_view_taken_before_sees_what_is_written_to_its_base():
    a = arange(4).requires_grad_()
    b = a * 1
    view = b[1:]
    b[2] = 7.0
    assert view.tolist() == [1, 7, 3]
    view.sum().backward()
    assert a.grad.tolist() == [0, 1, 0, 1]


def test_writing_to_a_view_of_a_view_reaches_the_base():
    a = arange(2, 3).requires_grad_()
    b = a * 2
    b[1][1:][0] = 0.0
    (b * b).sum().backward()
    assert a.grad.tolist() == [[0, 8, 16], [24, 0, 40]]


def test_a_saved_tensor_may_not_be_written():
    a = arange(3).requires_grad_()
    b = a * 1
    c = b * b
    b[0] = 1.0
    with pytest.raises(RuntimeError, match="has been modified by an inplace operation"):
        c.sum().backward()


def test_values_put_at_index_tensors_that_stand_apart_get_the_gradient_in_their_own_shape():
    number, row = tg.tensor(1), tg.tensor([0, 2])
    values = tg.rand(2, 3, 4, requires_grad=True)  # the common shape (2,) comes first
    tg.zeros(3, 3, 4, 2).index_put([None, row, None, number], values, accumulate=True)[1].sum().backward()
    assert values.grad.shape == (2, 3, 4) and values.grad[:, 1].eq(1).all() and values.grad.sum() == 8


def test_repeated_indices_add_up_in_the_gradient():
    a = arange(3).requires_grad_()
    a[[0, 0, 2]].sum().backward()
    assert a.grad.tolist() == [2, 0, 1]


@pytest.mark.parametrize("index", [0, (slice(None), 1), [1, 1, 0], ([0, 1], [1, 1]), (..., [2, 2])], ids=str)
def test_second_derivatives(index):
    x = arange(2, 3).requires_grad_()
    tg.autograd.gradgradcheck(lambda x: (x * x)[index] ** 2, [x])


def test_the_graph_names_the_last_step():
    x = arange(3, 4).requires_grad_()
    names = [x[i].grad_fn.name() for i in (0, slice(1, 2), None, ..., (slice(None), 0), [0])]
    assert names == [
        "SelectBackward0",
        "SliceBackward0",
        "UnsqueezeBackward0",
        "AliasBackward0",
        "SelectBackward0",
        "IndexBackward0",
    ]


# ---- overriding ----------------------------------------------------------------------------------------------------


def test_a_handler_sees_one_call():
    calls = []

    class Mode(tg.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            calls.append(func)
            return func(*args, **(kwargs or {}))

    x = arange(3, 4)
    with Mode():
        x[0, [1, 2]]
        x[0, [1, 2]] = 1.0
    assert calls == [tg.Tensor.__getitem__, tg.Tensor.__setitem__]


def test_the_index_is_an_operand_of_the_override_protocol():
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func

    assert arange(3)[Duck()] is tg.Tensor.__getitem__
    assert arange(3, 4)[0, Duck()] is tg.Tensor.__getitem__


@pytest.mark.parametrize("indices", [(), (None,), (None, None)])
def test_an_index_of_no_tensor_has_one_shape_on_every_device(indices):
    x = arange(2, 3)
    assert tg.ops.aten.index.Tensor(x.to("meta"), indices).shape == tg.ops.aten.index.Tensor(x, indices).shape


@pytest.mark.parametrize("accumulate", [False, True])
def test_values_of_index_put_have_no_more_dimensions_than_what_is_picked(accumulate):
    with pytest.raises(RuntimeError, match="shape mismatch: value tensor of shape .1, 2, 3."):
        tg.zeros(3, 3).index_put([tg.tensor([0, 1])], tg.ones(1, 2, 3), accumulate)
    with pytest.raises(RuntimeError, match="shape mismatch"):
        tg.rand(()).index_put([], tg.ones(1), accumulate)
    with pytest.raises(RuntimeError, match="shape mismatch"):
        tg.zeros(3).index_put([tg.tensor([0])], tg.ones(1, 1), accumulate)


def test_what_is_assigned_may_have_more_dimensions_of_one_in_front():
    x = tg.zeros(3, 3)
    value = tg.ones(1, 1, 2, 3, requires_grad=True)
    x[tg.tensor([0, 2])] = value
    assert x.tolist() == [[1] * 3, [0] * 3, [1] * 3]
    x.sum().backward()
    assert value.grad.tolist() == tg.ones(1, 1, 2, 3).tolist()
    x = tg.zeros(3)
    x[tg.tensor([1])] = tg.full((1, 1, 1), 4.0)
    assert x.tolist() == [0, 4, 0]


@pytest.mark.parametrize("name", ["uint16", "uint32", "uint64"])
def test_rows_without_a_sign_are_selected_and_vectors_are_not(name):
    x = tg.tensor([[1, 2, 3], [4, 5, 6]], dtype=getattr(tg, name))
    assert x.index_select(0, tg.tensor([1, 1])).tolist() == [[4, 5, 6]] * 2
    assert x.index_select(1, tg.tensor([2, 0])).tolist() == [[3, 1], [6, 4]]
    with pytest.raises(NotImplementedError, match='"index_select" not implemented for \'UInt'):
        x[0].index_select(0, tg.tensor([1]))
