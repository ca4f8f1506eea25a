"""NumPy, DLPack and the buffer protocol: memory is shared, limits are said."""

import contextlib
import operator
import warnings

import numpy as np
import pytest
from collecting import collect

import tinygrad_ext as tg


@contextlib.contextmanager
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


ALL = [
    getattr(tg, n)
    for n in (
        "bool",
        "uint8",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    )
]


# ---- NumPy


@pytest.mark.parametrize("dtype", ALL, ids=repr)
def test_numpy_arrays_share_memory_both_ways(dtype):
    t = tg.zeros(2, 3, dtype=dtype).t()
    array = t.numpy()
    assert array.shape == (3, 2) and array.dtype.name == dtype.name
    array[1, 0] = 1
    assert t[1, 0].item() == 1
    back = tg.from_numpy(array)
    back[2, 1] = 1
    assert t[2, 1].item() == 1 and back.stride() == t.stride()


def test_the_memory_outlives_the_tensor_and_the_array():
    array = tg.arange(1000.0).numpy()
    t = tg.from_numpy(np.arange(1000.0))
    collect()
    tg.zeros(1000).fill_(7), np.full(1000, 7.0)
    assert array[999] == 999 and t[999].item() == 999


@pytest.mark.parametrize(
    "make", [lambda t: np.asarray(t), lambda t: np.array(t), lambda t: memoryview(t), lambda t: t.__array__()]
)
def test_every_way_into_numpy_gives_the_values(make):
    assert np.asarray(make(tg.arange(4).reshape(2, 2)[:, 1])).tolist() == [1, 3]


def test_numpy_asks_for_a_dtype_or_a_copy():
    t = tg.ones(3)
    assert np.asarray(t, dtype="f8").dtype == np.float64
    array = np.array(t, copy=True)
    array[0] = 5
    assert t[0].item() == 1


def of_torch(name):
    torch = pytest.importorskip("torch")
    return torch.zeros(3, dtype=torch.uint8).view(getattr(torch, name))


def test_tensors_that_require_grad_do_not_lend_their_memory():
    t = tg.ones(2, requires_grad=True)
    for call in (t.numpy, lambda: np.asarray(t), lambda: t * np.ones(2)):
        with pytest.raises(RuntimeError, match="Can't call numpy"):
            call()
    with pytest.raises(BufferError):
        memoryview(t)
    assert t.numpy(force=True).tolist() == [1, 1]


@pytest.mark.parametrize(
    "make, error, fragment",
    [
        (lambda: tg.ones(2, dtype=tg.bfloat16).numpy(), TypeError, "Got unsupported ScalarType BFloat16"),
        (lambda: np.asarray(tg.ones(2, dtype=tg.bfloat16)), TypeError, "BFloat16"),
        (lambda: tg.ones(2, device="meta").numpy(), TypeError, "can't convert meta device type tensor to numpy"),
        (lambda: tg.from_numpy([1]), TypeError, "expected np.ndarray (got list)"),
        (lambda: tg.from_numpy(np.array(["a"])), TypeError, "The only supported types are"),
        (lambda: tg.from_numpy(np.array([1], "g")), TypeError, "The only supported types are"),
        (lambda: tg.from_numpy(np.ones(3)[::-1]), ValueError, "negative"),
        (lambda: tg.from_numpy(np.ones(3, ">f4")), ValueError, "byte order"),
        (lambda: tg.from_numpy(np.zeros(3, "i1,f4")["f1"]), ValueError, "not a multiple of the element byte size"),
    ],
)
def test_what_cannot_be_shared_is_refused(make, error, fragment):
    with pytest.raises(error) as raised:
        make()
    assert fragment in str(raised.value)


def test_a_read_only_array_gives_a_read_only_tensor():
    array = np.ones(3)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="not writable"):
        t = tg.from_numpy(array)
    for write in (
        lambda: t.add_(1),
        lambda: t.fill_(2),
        lambda: t.zero_(),
        lambda: t.copy_(tg.zeros(3)),
        lambda: t.uniform_(),
        lambda: t[0].fill_(3),
        lambda: t.view(3, 1).mul_(2),
    ):
        with pytest.raises(RuntimeError, match="read-only"):
            write()
    assert array.tolist() == [1, 1, 1] and (t + 1).tolist() == [2, 2, 2]
    assert not t.numpy().flags.writeable and memoryview(t).contiguous is not False and memoryview(t).readonly
    t.clone().add_(1)


OPERATORS = [operator.add, operator.sub, operator.mul, operator.truediv]


@pytest.mark.parametrize("op", OPERATORS)
def test_arrays_beside_tensors_compute_as_numpy_and_give_a_tensor(op):
    t, array = tg.tensor([1.0, 2.0]), np.array([4.0, 5.0])
    for got, want in ((op(t, array), op(t.numpy(), array)), (op(array, t), op(array, t.numpy()))):
        assert isinstance(got, tg.Tensor) and got.dtype == tg.float64 and got.tolist() == want.tolist()


@pytest.mark.parametrize("op", OPERATORS)
def test_numpy_scalars_are_numbers_and_keep_the_gradient(op):
    t = tg.tensor([1.0, 2.0], requires_grad=True)
    for got in (op(t, np.float64(3)), op(np.float64(3), t)):
        assert got.dtype == tg.float32 and got.requires_grad
    assert op(np.float64(3), t).tolist() == op(3.0, t).tolist()


@pytest.mark.parametrize(
    "value",
    [np.datetime64(1, "s"), np.timedelta64(1, "s"), np.str_("ab"), np.bytes_(b"ab"), np.void(b"abc"), np.array(b"abc")],
    ids=lambda v: f"{type(v).__name__} {v.dtype.name}",
)
def test_numpy_scalars_that_are_no_numbers_are_refused_as_operands(value):
    x = tg.ones(3)
    for use in (lambda: x + value, lambda: tg.add(x, value), lambda: tg.full((2,), value), lambda: x.clamp(value)):
        with pytest.raises(TypeError):
            use()


def test_numpy_functions_of_tensors_give_tensors():
    t = tg.tensor([0.0, 1.0])
    assert isinstance(np.sin(t), tg.Tensor) and np.sin(t).dtype == tg.float32
    array = np.zeros(2)
    array += t
    assert isinstance(array, np.ndarray) and array.tolist() == [0, 1]
    assert [x.tolist() for x in np.modf(tg.tensor([1.5]))] == [[0.5], [1.0]]


def test_as_tensor_and_asarray_share_what_they_can():
    array = np.ones(2)
    assert tg.as_tensor(array).data_ptr() == tg.asarray(array).data_ptr() == array.ctypes.data
    t = tg.ones(2)
    assert tg.as_tensor(t) is t and tg.as_tensor(t, dtype=tg.float64).dtype == tg.float64
    assert tg.asarray(array, copy=True).data_ptr() != array.ctypes.data
    assert tg.as_tensor([1, 2]).dtype == tg.int64 and tg.asarray(3).item() == 3
    assert tg.asarray(np.float32(2)).dtype == tg.float32
    with pytest.raises(ValueError, match="can't alias"):
        tg.asarray([1, 2], copy=False)
    with pytest.raises(ValueError, match="can't alias"):
        tg.asarray(array, dtype=tg.float32, copy=False)
    assert tg.asarray(array, dtype=tg.float32, requires_grad=True).requires_grad


# ---- buffers


def test_frombuffer_reads_a_window_of_the_memory():
    data = bytearray(range(16))
    t = tg.frombuffer(data, dtype=tg.int16, count=2, offset=4)
    data[4] = 255
    assert t.tolist() == [255 + 256 * 5, 6 + 256 * 7]


@pytest.mark.parametrize(
    "arguments, fragment",
    [
        ({"count": 0}, "must not be 0"),
        ({"offset": 16}, "no greater than buffer length"),
        ({"offset": -1}, "must be non-negative"),
        ({"offset": 2}, "multiple of element size"),
        ({"count": 5}, "must not be greater"),
        ({"count": 2, "offset": 2}, "not aligned"),
    ],
)
def test_frombuffer_refuses_what_does_not_fit(arguments, fragment):
    with pytest.raises(ValueError, match=fragment):
        tg.frombuffer(bytearray(16), dtype=tg.int32, **arguments)


def test_a_memoryview_tells_shape_and_strides():
    view = memoryview(tg.zeros(2, 3).t())
    assert (view.shape, view.strides, view.format, view.itemsize) == ((3, 2), (4, 12), "f", 4)


def test_a_lent_buffer_keeps_the_tensor_alive():
    view = memoryview(tg.arange(5))
    collect()
    assert view.tolist() == [0, 1, 2, 3, 4]


def test_lent_memory_lives_on_when_the_tensor_takes_other_memory():
    for change in (
        lambda t: setattr(t, "data", tg.zeros(1)),
        lambda t: t.resize_(100_000),
        lambda t: tg.add(tg.ones(9), 1, out=t),
    ):
        t = tg.arange(1000.0)
        lent = [t.numpy(), memoryview(t), np.from_dlpack(t), tg.from_dlpack(t)]
        with _quiet():
            change(t)
        del t
        again = [tg.full((1000,), 7.0) for _ in range(8)]
        assert [x[999] for x in lent] == [999] * 4, again


# ---- DLPack


@pytest.mark.parametrize("dtype", ALL, ids=repr)
def test_dlpack_goes_to_numpy_and_back_without_a_copy(dtype):
    t = tg.zeros(2, 3, dtype=dtype).t()
    array = np.from_dlpack(t)
    assert array.ctypes.data == t.data_ptr() and array.strides == tuple(s * t.itemsize for s in t.stride())
    back = tg.from_dlpack(array)
    assert back.data_ptr() == t.data_ptr() and back.dtype == dtype and back.stride() == t.stride()


def test_dlpack_says_that_memory_is_read_only_in_both_directions():
    array = np.ones(3)
    array.flags.writeable = False
    t = tg.from_dlpack(array)
    with pytest.raises(RuntimeError, match="read-only"):
        t.fill_(0)
    assert not np.from_dlpack(t).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        t.__dlpack__()


@pytest.mark.parametrize(
    "name", ["bool", "uint8", "int8", "int16", "int32", "int64", "uint64", "float32", "complex128"]
)
def test_arrays_have_the_types_that_numpy_calls_so(name):
    array = tg.ones(2, dtype=getattr(tg, name)).numpy()
    assert array.dtype.type is np.dtype(name).type and type(array[0]) is np.dtype(name).type
    assert np.asarray(memoryview(tg.ones(2, dtype=getattr(tg, name)))).dtype.type is np.dtype(name).type


def test_asarray_takes_a_dlpack_capsule():
    x = tg.arange(6.0).reshape(2, 3)
    shared = tg.asarray(x.__dlpack__())
    assert shared.data_ptr() == x.data_ptr() and shared.equal(x)
    assert tg.asarray(x.__dlpack__(), copy=False).data_ptr() == x.data_ptr()
    apart = tg.asarray(x.t().__dlpack__(), copy=True, dtype=tg.float64)
    assert apart.data_ptr() != x.data_ptr() and apart.tolist() == x.t().tolist()


def test_dlpack_capsules_of_both_protocols():
    t = tg.arange(3)
    for capsule, name in (
        (t.__dlpack__(), "dltensor"),
        (t.__dlpack__(max_version=(1, 1)), "dltensor_versioned"),
        (t.__dlpack__(max_version=(0, 8)), "dltensor"),
    ):
        assert f'"{name}"' in repr(capsule)
        assert tg.from_dlpack(capsule).tolist() == [0, 1, 2]
        with pytest.raises(RuntimeError, match="only once"):
            tg.from_dlpack(capsule)


def test_dlpack_of_a_version_without_numbers_is_refused():
    with pytest.raises(IndexError, match="tuple index out of range"):
        tg.ones(2).__dlpack__(max_version=())


def test_dlpack_frees_what_it_held():
    collect()
    start = tg.memory_stats()["allocated"]
    for _ in range(10):
        t = tg.zeros(1000)
        t.__dlpack__()  # never consumed
        t.__dlpack__(max_version=(1, 0))
        tg.from_dlpack(t.__dlpack__())
        tg.from_dlpack(np.from_dlpack(t))
        del t
    collect()
    assert tg.memory_stats()["allocated"] == start


@pytest.mark.parametrize(
    "make, error, fragment",
    [
        (lambda: tg.ones(1, requires_grad=True).__dlpack__(), BufferError, "use tensor.detach()"),
        (lambda: tg.ones(1, device="meta").__dlpack__(), BufferError, "no data"),
        (lambda: tg.ones(1).__dlpack__(stream=1), AssertionError, "stream should be None on cpu"),
        (lambda: tg.ones(1).__dlpack__(stream="a"), TypeError, "stream must be int or none, got str"),
        (lambda: tg.eye(2).to_sparse().__dlpack__(), BufferError, "layout other than torch.strided"),
        (lambda: tg.ones(1).__dlpack__(dl_device=(2, 0)), BufferError, "cpu"),
        (lambda: tg.from_dlpack(np.ones(3)[::-1]), RuntimeError, "negative strides"),
        (lambda: tg.from_dlpack(of_torch("float8_e5m2")), BufferError, "type code 128"),
        (lambda: tg.from_dlpack(3), TypeError, "__dlpack__"),
        (lambda: tg.from_dlpack(np.ones(1), device="meta"), BufferError, "device='cpu'"),
    ],
)
def test_dlpack_refusals(make, error, fragment):
    with pytest.raises(error) as raised:
        make()
    assert fragment in str(raised.value)


def test_dlpack_copies_when_asked():
    t = tg.ones(2)
    assert np.from_dlpack(t, copy=True).ctypes.data != t.data_ptr()
    assert tg.from_dlpack(t, copy=True).data_ptr() != t.data_ptr()
    assert t.__dlpack_device__() == (1, 0)


def test_an_old_lender_that_knows_no_arguments_is_understood():
    class Old:
        def __dlpack__(self):
            return tg.arange(2).__dlpack__()

    assert tg.from_dlpack(Old()).tolist() == [0, 1]


def test_torch_tensors_come_and_go_without_a_copy():
    torch = pytest.importorskip("torch")
    t = torch.arange(6.0).reshape(2, 3).t()
    assert tg.from_dlpack(t).data_ptr() == t.data_ptr()
    ours = tg.ones(2, dtype=tg.bfloat16)
    assert torch.from_dlpack(ours).data_ptr() == ours.data_ptr()
    assert tg.tensor(t).tolist() == t.tolist()
    with pytest.raises(TypeError, match="must be Tensor, not torch.Tensor.*from_dlpack"):
        tg.relu(t)


@pytest.mark.parametrize("copy", [None, True])
def test_asarray_asks_for_a_gradient_as_it_is_told_or_as_its_operand(copy):
    leaf, plain = tg.ones(2, requires_grad=True), tg.ones(2)
    inner = leaf * 2
    assert tg.asarray(inner, copy=copy).grad_fn is not None and tg.asarray(leaf, copy=copy).requires_grad
    assert tg.asarray(inner, copy=copy, requires_grad=True).grad_fn is not None
    for t in (leaf, inner):
        found = tg.asarray(t, copy=copy, requires_grad=False)
        assert not found.requires_grad and t.requires_grad
        assert (found.data_ptr() == t.data_ptr()) is (copy is None)
    assert not tg.asarray(plain, copy=copy).requires_grad and not tg.asarray([1.0]).requires_grad
    assert (
        tg.asarray(plain, copy=copy, requires_grad=True).is_leaf and tg.asarray([1.0], requires_grad=True).requires_grad
    )


@pytest.mark.parametrize("value", [[1], 1, "ab", None])
def test_what_is_no_buffer_is_told(value):
    with pytest.raises(ValueError, match="object does not implement Python buffer protocol"):
        tg.frombuffer(value, dtype=tg.int8)


@pytest.mark.parametrize("number", [np.complex128(1 + 2j) / 3, np.complex64(1), np.float64(0.1), np.float32(0.1)])
def test_numbers_of_numpy_keep_their_dtype(number):
    for t in (tg.tensor(number), tg.as_tensor(number), tg.tensor([number])[0]):
        assert str(t.dtype).split(".")[-1] == number.dtype.name and t.item() == number
