"""Factories, ranges, conversions and fills: what the sweep over the op table does not know."""

import numpy as np
import pytest

import tinygrad_ext as tg

# ---- factories


@pytest.mark.parametrize(
    "call, shape",
    [
        (lambda: tg.zeros(2, 3), (2, 3)),
        (lambda: tg.zeros((2, 3)), (2, 3)),
        (lambda: tg.ones([4]), (4,)),
        (lambda: tg.empty(()), ()),
        (lambda: tg.zeros(size=(1, 2)), (1, 2)),
        (lambda: tg.full((2,), 1.0), (2,)),
        (lambda: tg.zeros(0), (0,)),
    ],
)
def test_sizes_come_as_ints_or_as_a_sequence(call, shape):
    assert call().shape == shape


def test_full_takes_its_dtype_from_the_value():
    assert [tg.full((1,), v).dtype for v in (True, 3, 2.5, 1j)] == [tg.bool, tg.int64, tg.float32, tg.complex64]
    assert tg.full((1,), 3, dtype=tg.float64).dtype == tg.float64


def test_out_gives_the_dtype_and_is_resized():
    out = tg.empty(0, dtype=tg.int32)
    assert tg.arange(3, out=out) is out and out.tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="does not match dtype of out parameter"):
        tg.zeros(2, out=tg.empty(2), dtype=tg.int64)


@pytest.mark.parametrize("size", [(-1,), (2, -3), (2**62, 4), (2**40, 2**40)])
def test_impossible_sizes_are_refused(size):
    with pytest.raises((RuntimeError, MemoryError)):
        tg.empty(size)


def test_like_forms_keep_the_order_of_dimensions():
    t = tg.zeros(3, 4).t()
    assert tg.empty_like(t).stride() == (1, 4)
    assert tg.ones_like(t, memory_format=tg.contiguous_format).stride() == (3, 1)
    assert tg.zeros(2, 3, 4, 5).to(memory_format=tg.channels_last).stride() == (60, 1, 15, 3)


def test_factories_make_meta_tensors():
    for t in (
        tg.zeros(2, device="meta"),
        tg.arange(2, device="meta"),
        tg.eye(2, device="meta"),
        tg.rand(2, device="meta"),
        tg.ones_like(tg.zeros(2), device="meta"),
        tg.tensor([1.0, 2.0], device="meta"),
    ):
        assert t.is_meta and t.numel() in (2, 4)


def test_only_floating_dtypes_can_require_grad():
    assert tg.ones(2, requires_grad=True).requires_grad
    with pytest.raises(RuntimeError, match="floating point and complex dtype"):
        tg.ones(2, dtype=tg.int64, requires_grad=True)


# ---- ranges


@pytest.mark.parametrize("args", [(5,), (1, 4), (0, 10, 3), (5, 0, -2), (0.0, 1.0, 0.1), (-1.5, 2, 0.25), (3, 3)])
def test_arange_equals_numpy(args):
    want = np.arange(*args)
    got = tg.arange(*args)
    assert got.dtype == (tg.float32 if want.dtype.kind == "f" else tg.int64)
    np.testing.assert_array_equal(got.numpy(), want.astype(got.numpy().dtype))


def test_arange_does_not_add_up_rounding():
    assert tg.arange(0, 1, 1e-5, dtype=tg.float32)[-1].item() == np.float32(0.99999)


def test_arange_of_int64_is_exact_and_its_length_cannot_overflow():
    assert tg.arange(2**62, 2**62 + 3).tolist() == [2**62, 2**62 + 1, 2**62 + 2]
    with pytest.raises((RuntimeError, MemoryError)):
        tg.arange(-(2**63), 2**63 - 1)
    with pytest.raises(RuntimeError, match="unsupported range"):
        tg.arange(0, float("inf"))


def test_linspace_ends_at_its_end():
    for steps in (2, 3, 7, 50):
        t = tg.linspace(0.1, 0.7, steps)
        assert t[0].item() == np.float32(0.1) and t[-1].item() == np.float32(0.7)


def test_triangles_of_huge_matrices_neither_hang_nor_overflow():
    assert tg.triu_indices(2**60, 3).shape == (2, 6)
    assert tg.tril_indices(2**60, 3, -(2**60) + 2).tolist() == [[2**60 - 2, 2**60 - 1, 2**60 - 1], [0, 0, 1]]
    with pytest.raises((MemoryError, RuntimeError)):
        tg.tril_indices(2**40, 2**20)


# ---- tensor()


@pytest.mark.parametrize(
    "data, dtype",
    [
        ([True, False], "bool"),
        ([True, 2], "int64"),
        ([1, 2.5], "float32"),
        ([1j, 2], "complex64"),
        ([], "float32"),
        (range(3), "int64"),
        (np.float64(2), "float64"),
        ([np.float64(2), 1.0], "float64"),
        ([np.float32(1)], "float32"),
        (np.array([1], "i2"), "int16"),
        ([np.uint8(1), np.int8(-2)], "int16"),
        ([np.complex64(1), np.float64(2)], "complex128"),
    ],
)
def test_tensor_infers_the_dtype(data, dtype):
    assert tg.tensor(data).dtype.name == dtype


@pytest.mark.parametrize(
    "make, error, fragment",
    [
        (lambda: tg.tensor([[1], [2, 3]]), ValueError, "expected sequence of length 1 at dim 1 (got 2)"),
        (lambda: tg.tensor("a"), TypeError, "invalid data type 'str'"),
        (lambda: tg.tensor(None), RuntimeError, "Could not infer dtype of NoneType"),
        (lambda: tg.tensor(300, dtype=tg.uint8), RuntimeError, "cannot be converted to type uint8 without overflow"),
        (lambda: tg.tensor(float("nan"), dtype=tg.int64), RuntimeError, "without overflow"),
        (lambda: tg.tensor(2**64), ValueError, "Overflow when unpacking long long"),
        (lambda: tg.tensor(1j, dtype=tg.float32), TypeError, "must be real number, not complex"),
        (lambda: tg.tensor([tg.ones(2)]), ValueError, "only one element tensors"),
        (lambda: tg.tensor([1, [2]]), TypeError, "'list' object"),
        (lambda: tg.zeros(1, dtype=tg.int8).fill_(128), RuntimeError, "without overflow"),
        (lambda: tg.zeros(1).fill_(1j), RuntimeError, "without overflow"),
        (lambda: tg.ones(2).copy_(tg.ones(3)), RuntimeError, "must match the size of tensor b (3)"),
        (lambda: tg.ones(2).fill_(tg.ones(2)), RuntimeError, "0-dimension value tensor"),
        (lambda: tg.ones(2).copy_(tg.ones(2, device="meta")), NotImplementedError, "no data"),
    ],
)
def test_values_that_do_not_fit_are_refused(make, error, fragment):
    with pytest.raises(error) as raised:
        make()
    assert fragment in str(raised.value)


def test_a_list_whose_length_lies_is_refused():
    class Lying(list):
        def __len__(self):
            return 3

    for items in ([1], range(1000)):
        with pytest.raises(ValueError, match="expected sequence of length 3"):
            tg.tensor([[1, 2, 3], Lying(items)])


def test_a_list_that_grows_while_it_is_read_is_refused():
    data = [1.0, 2.0]

    class Growing:
        def __float__(self):
            data.extend([3.0] * 1000)
            return 0.5

    data[0] = Growing()
    with pytest.raises(ValueError, match="expected sequence of length 2"):
        tg.tensor(data)


# ---- conversions


def test_to_returns_the_tensor_itself_when_nothing_changes():
    t = tg.ones(2, 3)
    assert t.to(tg.float32) is t and t.to("cpu") is t and t.float() is t and t.to(tg.zeros(1)) is t and t.to() is t
    assert t.to(tg.float32, copy=True) is not t
    assert t.t().to(memory_format=tg.contiguous_format).is_contiguous()


def test_conversion_carries_the_gradient_in_the_source_dtype():
    t = tg.ones(3, requires_grad=True)
    (t.double() * 2).sum().backward()
    assert t.grad.dtype == tg.float32 and t.grad.tolist() == [2, 2, 2]
    assert t.half().grad_fn.name() == "ToCopyBackward0"


def test_floats_outside_an_integer_dtype_convert_without_a_crash():
    tg.tensor([float("nan"), float("inf"), 1e30, -1e30]).to(tg.int32)
    tg.tensor([1e30]).long()


def test_cuda_is_refused_with_a_way_out():
    with pytest.raises(AssertionError, match="not compiled with CUDA"):
        tg.ones(1).cuda()


def test_complex_parts_share_memory():
    t = tg.tensor([1 + 2j, 3 - 1j])
    t.real.fill_(7)
    t.imag = tg.tensor([0.5, 0.25])
    assert t.tolist() == [7 + 0.5j, 7 + 0.25j] and t.conj().tolist() == [7 - 0.5j, 7 - 0.25j]
    assert tg.complex(tg.ones(2), tg.zeros(2)).tolist() == [1, 1]


def test_complex_gradients_follow_pytorch():
    re, im = tg.tensor([1.0, 2.0], requires_grad=True), tg.tensor([3.0, 4.0], requires_grad=True)
    z = tg.complex(re, im)
    (z.real * 2 + z.imag * 3).sum().backward()
    assert re.grad.tolist() == [2, 2] and im.grad.tolist() == [3, 3]


def test_fill_with_a_tensor_gives_it_the_sum_of_the_gradient():
    value = tg.tensor(2.0, requires_grad=True)
    t = tg.zeros(3)
    t.fill_(value)
    t.sum().backward()
    assert value.grad.item() == 3


def test_types_of_python_are_dtypes_wherever_one_is_taken():
    assert tg.hann_window(4, dtype=float).dtype == tg.float64 == tg.softmax(tg.ones(2), 0, float).dtype
    assert tg.zeros(2, dtype=int).dtype == tg.int64 and tg.logspace(0, 1, 2, dtype=complex).dtype == tg.complex128
    with pytest.raises(RuntimeError, match="expects floating point dtypes, got: dtype=torch.int64"):
        tg.kaiser_window(6, dtype=int)


def test_a_shape_too_long_for_its_message_is_cut():
    for count in range(1, 65):
        with pytest.raises(RuntimeError, match="negative dimension") as caught:
            tg.zeros([-(2**63)] * count)
        assert str(caught.value).count("-9223372036854775808") <= count + 1
    assert ", ...]" in str(caught.value)


ROWS = {
    "arange": lambda T, out: T.arange(6, out=out),
    "arange from": lambda T, out: T.arange(1, 7, out=out),
    "arange by": lambda T, out: T.arange(0, 12, 2, out=out),
    "linspace": lambda T, out: T.linspace(0, 5, 6, out=out),
    "logspace": lambda T, out: T.logspace(0, 5, 6, 2.0, out=out),
    "range": lambda T, out: T.range(0, 5, out=out),
}
TARGETS = {
    "a window": lambda T: (lambda x: (x, x[:, 1:]))(T.zeros(2, 4)),
    "a matrix": lambda T: (lambda x: (x, x))(T.zeros(3, 2)),
    "a turned matrix": lambda T: (lambda x: (x, x.t()))(T.zeros(3, 2)),
    "every second": lambda T: (lambda x: (x, x[::2]))(T.zeros(12)),
    "nothing": lambda T: (lambda x: (x, x))(T.zeros(0)),
}


@pytest.mark.filterwarnings("ignore:.*torch.range is deprecated")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ROWS)
def test_a_target_of_as_many_elements_keeps_its_shape(name, target):
    def run(T):
        whole, out = TARGETS[target](T)
        assert ROWS[name](T, out) is out
        return whole.tolist(), out.tolist(), out.stride()

    expected = np.array([1, 2, 4, 8, 16, 32] if name == "logspace" else ROWS[name](tg, tg.zeros(6)).numpy())
    np.testing.assert_allclose(np.ravel(run(tg)[1]), expected)
    torch = pytest.importorskip("torch")
    assert run(tg) == run(torch)


@pytest.mark.parametrize(
    "make",
    [
        lambda out: tg.empty(2, out=out),
        lambda out: tg.zeros(2, out=out),
        lambda out: tg.ones(2, out=out),
        lambda out: tg.full((2,), 1j, out=out),
        lambda out: tg.eye(2, out=out),
        lambda out: tg.rand(2, out=out),
        lambda out: tg.randn(2, out=out),
    ],
)
def test_a_factory_makes_pairs_of_halves_where_out_holds_them(make):
    out = tg.empty(0, dtype=tg.complex32)
    assert make(out) is out and out.dtype is tg.complex32 and out.numel() >= 2


@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies_are_of_the_dtype_of_out(name):
    find = getattr(tg.fft, name)
    for dtype in (tg.float16, tg.float64):
        out = tg.empty(0, dtype=dtype)
        assert tg.equal(find(7, 0.3, out=out), find(7, 0.3, dtype=dtype)) and out.dtype is dtype
    with pytest.raises(RuntimeError, match="floating point"):
        find(7, out=tg.empty(0, dtype=tg.int64))


def test_integers_beyond_64_bits_are_true_and_fit_no_integer_dtype():
    assert tg.tensor((2**64, 0, -(2**63) - 1), dtype=tg.bool).tolist() == [True, False, True]
    with pytest.raises(ValueError, match="Overflow when unpacking"):
        tg.tensor([2**64], dtype=tg.int32)


def test_the_old_constructor_takes_no_device_beside_a_tensor():
    x = tg.tensor([1.0])
    for make in (tg.Tensor, x.new):
        with pytest.raises(RuntimeError, match="Legacy tensor constructor"):
            make(x, device="cpu")
    assert tg.Tensor([1.0], device="cpu").tolist() == [1]


def test_numpy_scalars_have_no_memory_to_share():
    assert tg.asarray(np.float64(0.5)).item() == 0.5
    with pytest.raises(RuntimeError, match="can't alias NumPy scalars"):
        tg.asarray(np.float64(0.5), copy=False)
