"""The Tensor object: constructors, Python's protocols, copies, pickles, Parameters, memory."""

import copy
import pickle
import sys

import pytest

import tinygrad_ext as tg
from tinygrad_ext import Parameter, Tensor


class Tagged(Tensor):
    """A subclass, for what must survive copying."""


# ---- old-style constructors


@pytest.mark.parametrize(
    "make, want",
    [
        (lambda: Tensor(3, 4).shape, (3, 4)),
        (lambda: Tensor(tg.Size([2])).shape, (2,)),
        (lambda: Tensor().shape, (0,)),
        (lambda: Tensor([1, 2]).tolist(), [1.0, 2.0]),
        (lambda: Tensor((2, 3)).tolist(), [2.0, 3.0]),
        (lambda: tg.LongTensor([1, 2]).dtype, tg.int64),
        (lambda: tg.LongTensor(2, 3).shape, (2, 3)),
        (lambda: tg.BoolTensor([1, 0]).tolist(), [True, False]),
        (lambda: tg.zeros(1, dtype=tg.int8).new([1, 2]).dtype, tg.int8),
        (lambda: tg.ones(1).new(2, 3).shape, (2, 3)),
        (lambda: tg.ones(1).new_tensor([1, 2]).dtype, tg.float32),
    ],
)
def test_old_constructors(make, want):
    assert make() == want


def test_typed_constructors_are_types_for_isinstance_and_type():
    t = tg.ones(2)
    assert isinstance(t, tg.FloatTensor) and not isinstance(t, tg.LongTensor)
    assert t.type() == "torch.FloatTensor"
    assert t.type("torch.DoubleTensor").dtype == t.type(tg.DoubleTensor).dtype == t.type(tg.float64).dtype == tg.float64


@pytest.mark.parametrize(
    "make, error, fragment",
    [
        (lambda: Tensor(1.5), TypeError, "data must be a sequence (got float)"),
        (lambda: Tensor("a"), TypeError, "invalid data type 'str'"),
        (lambda: Tensor([1], [2]), TypeError, "new() takes sizes or one sequence"),
        (lambda: Tensor([1], dtype=tg.float64), TypeError, "unexpected keyword argument 'dtype'"),
        (lambda: tg.FloatTensor(tg.ones(1).double()), TypeError, "expected torch.FloatTensor"),
        (lambda: tg.ones(1).type("Float"), ValueError, "invalid type: 'Float'"),
        (lambda: Tensor([1], device="meta"), RuntimeError, "legacy constructor expects device type: cpu"),
    ],
)
def test_old_constructors_refuse(make, error, fragment):
    with pytest.raises(error) as raised:
        make()
    assert fragment in str(raised.value)


# ---- Python's protocols


def test_len_iter_contains_format():
    t = tg.tensor([[1, 2], [3, 4]])
    assert len(t) == 2 and [row.tolist() for row in t] == [[1, 2], [3, 4]]
    assert 3 in t and 5 not in t and tg.tensor(3) in t
    assert format(tg.tensor(1.5), ".2f") == "1.50" and f"{tg.tensor(2)}" == "2" and f"{t}" == str(t)
    a, b = t
    assert b.tolist() == [3, 4]


@pytest.mark.parametrize(
    "make, error, fragment",
    [
        (lambda: len(tg.tensor(1)), TypeError, "len() of a 0-d tensor"),
        (lambda: list(tg.tensor(1)), TypeError, "iteration over a 0-d tensor"),
        (lambda: "a" in tg.ones(1), RuntimeError, "only supports Tensor or scalar"),
        (lambda: format(tg.ones(1), ".2f"), TypeError, "unsupported format string"),
        (lambda: bool(tg.ones(2)), RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
        (lambda: int(tg.ones(2)), ValueError, "only one element tensors can be converted to Python scalars"),
        (lambda: tg.ones(2).item(), RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar"),
        (lambda: tg.ones(1, device="meta").item(), RuntimeError, "meta tensors"),
        (lambda: tg.ones(2, device="meta").tolist(), NotImplementedError, "no data"),
        (lambda: range(tg.tensor(1.0)), TypeError, "only integer tensors"),
    ],
)
def test_protocols_refuse(make, error, fragment):
    with pytest.raises(error) as raised:
        make()
    assert fragment in str(raised.value)


def test_gradients_flow_through_iteration():
    t = tg.ones(2, 3, requires_grad=True)
    for row in t:
        (row * 2).sum().backward()
    assert t.grad.tolist() == [[2] * 3] * 2


# ---- memory and windows


def test_data_shares_memory_but_no_version():
    t = tg.ones(2, requires_grad=True)
    version = t._version
    t.data.fill_(3)
    assert t.tolist() == [3, 3] and t._version == version


def test_assigning_data_replaces_memory_and_shape():
    t = tg.ones(2, requires_grad=True)
    t.data = tg.zeros(3)
    assert t.shape == (3,) and t.requires_grad and t.is_leaf


def test_detach_in_place():
    t = tg.ones(2, requires_grad=True) * 2
    assert t.detach_() is t and t.is_leaf and not t.requires_grad


def test_resize_keeps_the_elements_and_writes_only_its_own_memory():
    t = tg.arange(4)
    assert t.resize_(2, 2) is t and t.tolist() == [[0, 1], [2, 3]]
    assert t.resize_(8)[:4].tolist() == [0, 1, 2, 3]
    part = tg.arange(6)[2:4]
    assert part.resize_(3).tolist() == [2, 3, 4]
    part.resize_(100).fill_(9)
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        tg.ones(1, requires_grad=True).resize_(2)
    with pytest.raises(RuntimeError, match="negative"):
        tg.ones(1).resize_(-2)


def test_storages_are_equal_exactly_when_shared():
    t = tg.ones(2, 3)
    assert t.untyped_storage() == t.t().untyped_storage() != t.clone().untyped_storage()
    assert t.untyped_storage().nbytes() == 24 and t.untyped_storage().data_ptr() == t.data_ptr()


def test_contiguity_by_memory_format():
    t = tg.zeros(2, 3, 4, 5)
    assert t.is_contiguous() and not t.is_contiguous(memory_format=tg.channels_last)
    t = t.to(memory_format=tg.channels_last)
    assert t.is_contiguous(memory_format=tg.channels_last) and not t.is_contiguous()


def test_volumes_lie_with_their_channels_side_by_side():
    lain, last = (360, 1, 90, 18, 3), tg.channels_last_3d
    t = tg.arange(720.0).reshape(2, 3, 4, 5, 6)
    moved = t.contiguous(memory_format=last)
    assert moved.stride() == t.clone(memory_format=last).stride() == t.to(memory_format=last).stride() == lain
    assert tg.empty(2, 3, 4, 5, 6, memory_format=last).stride() == tg.empty_like(t, memory_format=last).stride() == lain
    assert (moved == t).all() and moved.is_contiguous(memory_format=last) and not moved.is_contiguous()
    assert moved.contiguous(memory_format=last) is moved and not t.is_contiguous(memory_format=last)
    assert not moved.is_contiguous(memory_format=tg.channels_last)
    for wrong in (lambda x: x.contiguous(memory_format=last), lambda x: x.clone(memory_format=last)):
        with pytest.raises(RuntimeError, match="required rank 5 tensor to use channels_last_3d format"):
            wrong(tg.zeros(2, 3, 4, 5))


def test_memory_is_counted():
    tg.empty_cache()
    before = tg.memory_stats()
    t = tg.zeros(1 << 20)
    assert tg.memory_stats()["allocated"] - before["allocated"] >= 1 << 22
    del t
    assert tg.memory_stats()["allocated"] == before["allocated"]
    assert tg.memory_stats()["peak"] >= before["allocated"] + (1 << 22)
    tg.reset_peak_memory_stats()
    assert tg.memory_stats()["peak"] == tg.memory_stats()["allocated"]
    tg.empty_cache()
    assert tg.memory_stats()["cached"] == 0


def test_show_config_names_what_runs():
    text = tg.show_config()
    assert tg.__version__ in text and all(word in text for word in ("instruction set", "BLAS", "threads", "allocator"))


# ---- Parameter


def test_parameter_shares_memory_and_is_a_leaf():
    data = tg.ones(2)
    p = Parameter(data)
    assert p.requires_grad and p.is_leaf and isinstance(p, Tensor) and type(p) is Parameter
    assert p.data_ptr() == data.data_ptr() and not data.requires_grad
    assert Parameter(tg.ones(1, dtype=tg.int64), requires_grad=False).dtype == tg.int64
    assert Parameter().shape == (0,)
    assert repr(p) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"


def test_parameter_refuses():
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        Parameter([1.0])
    with pytest.raises(RuntimeError, match="floating point and complex dtype"):
        Parameter(tg.ones(1, dtype=tg.int64))


def test_parameter_of_a_subclass_is_both():
    t = Tagged([1.0, 2.0])
    t.note = "kept"
    p = Parameter(t)
    assert isinstance(p, Tagged) and isinstance(p, Parameter) and p.requires_grad and p.note == "kept"
    for again in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert type(again) is type(p) and again.note == "kept" and again.tolist() == [1, 2]


def test_subclasses_that_define_parameter_children():
    class Mine(Parameter):
        pass

    p = Mine(tg.ones(2))
    assert type(p) is Mine and p.requires_grad and type(copy.deepcopy(p)) is Mine


def test_as_subclass_keeps_memory_and_gradient():
    t = tg.ones(2, requires_grad=True)
    s = t.as_subclass(Tagged)
    assert type(s) is Tagged and s.data_ptr() == t.data_ptr()
    (s * 3).sum().backward()
    assert t.grad.tolist() == [3, 3]
    assert Tensor._make_subclass(Tagged, t, True).is_leaf
    with pytest.raises(TypeError, match="subclass of Tensor"):
        t.as_subclass(int)


# ---- copies and pickles


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float16", "bfloat16", "float32", "complex128"])
@pytest.mark.parametrize(
    "again", [copy.deepcopy, copy.copy, lambda t: pickle.loads(pickle.dumps(t))], ids=["deepcopy", "copy", "pickle"]
)
def test_any_layout_survives(dtype, again):
    base = tg.ones(4, 6, dtype=getattr(tg, dtype))
    for t in (base, base.t(), base[1:3, ::2], base[0, 0], base[:0], base[:1].expand(3, 6)):
        made = again(t)
        assert (made.dtype, made.shape, made.stride(), made.tolist()) == (t.dtype, t.shape, t.stride(), t.tolist())


def test_shared_memory_stays_shared_within_one_copy_or_pickle():
    a = tg.arange(6.0).reshape(2, 3)
    for x, y in (copy.deepcopy([a, a.t()]), pickle.loads(pickle.dumps([a, a.t()]))):
        x[0, 1] = 9
        assert y[1, 0].item() == 9 and a[0, 1].item() == 1
    assert copy.copy(a).data_ptr() == a.data_ptr()


def test_deepcopy_takes_grad_and_attributes_and_respects_the_memo():
    t = Tagged([1.0]).requires_grad_()
    t.grad, t.note = tg.tensor([2.0]), [1]
    x, y = copy.deepcopy([t, t])
    assert x is y and type(x) is Tagged and x.grad.item() == 2 and x.requires_grad
    assert x.note == [1] and x.note is not t.note


def _copies(T):
    """What a deepcopy keeps, for either library."""
    parameter = T.nn.Parameter
    base = T.arange(12.0).reshape(3, 4)
    p, t = parameter(base.t()), T.ones(2, requires_grad=True)
    p.grad, p.tag, t.grad, t.tag = T.ones(4, 3), "x", T.ones(2), "x"
    row, own = parameter(base[0], requires_grad=False), type("Own", (parameter,), {})(T.ones(2))
    own.tag = "x"
    model = T.nn.Linear(2, 2)
    model(T.ones(1, 2)).sum().backward()
    q, again, alias, row, own, t, model = copy.deepcopy([p, p, p.detach(), row, own, t, model])
    return [
        (type(q).__name__, q.grad, hasattr(q, "tag"), q.stride(), q.requires_grad, q.tolist()),
        (again is q, alias.data_ptr() == q.data_ptr()),
        (row.storage_offset(), row.untyped_storage().nbytes(), row.requires_grad),
        (type(own).__name__, hasattr(own, "tag")),
        (t.grad.tolist(), t.tag, t.requires_grad),
        model.weight.grad,
    ]


def test_deepcopy_of_a_parameter_copies_its_numbers_alone():
    found = _copies(tg)
    assert found[0] == ("Parameter", None, False, (1, 4), True, tg.arange(12.0).reshape(3, 4).t().tolist())
    assert found[1:] == [(True, False), (0, 16, False), ("Own", False), ([1, 1], "x", True), None]


def test_deepcopy_keeps_what_pytorch_keeps():
    assert _copies(tg) == _copies(pytest.importorskip("torch"))


def test_deepcopy_of_a_computed_tensor_is_refused():
    with pytest.raises(RuntimeError, match=r"created explicitly by the user \(graph leaves\)"):
        copy.deepcopy(tg.ones(1, requires_grad=True) * 2)


@pytest.mark.parametrize(
    "value",
    [tg.Size([2, 3]), tg.float32, tg.device("cpu"), tg.device("meta"), tg.strided, tg.contiguous_format],
    ids=repr,
)
def test_small_values_pickle_and_copy(value):
    for again in (pickle.loads(pickle.dumps(value)), copy.deepcopy(value)):
        assert again == value and type(again) is type(value)


def test_functions_and_methods_pickle_by_reference():
    for f in (tg.relu, tg.Tensor.add):
        assert pickle.loads(pickle.dumps(f)) is f


def test_a_pickle_cannot_reach_outside_its_storage():
    from tinygrad_ext.core.call.interop import storage_of, window

    storage = storage_of(tg.ones(4))
    for shape, stride, offset in (
        ((5,), (1,), 0),
        ((4,), (1,), 1),
        ((2,), (2**62,), 0),
        ((2,), (-1,), 1),
        ((2**62, 4), (0, 1), 0),
        ((1,), (1,), -1),
        ((2,), (1, 1), 0),
    ):
        with pytest.raises(RuntimeError):
            window(storage, tg.float32, shape, stride, offset)


def test_a_tensor_is_of_no_kind_that_is_not_here():
    kinds = [
        "cuda",
        "ipu",
        "maia",
        "mkldnn",
        "mps",
        "mtia",
        "nested",
        "quantized",
        "sparse",
        "sparse_csr",
        "vulkan",
        "xla",
        "xpu",
    ]
    assert not any(getattr(tg.ones(2), f"is_{kind}") for kind in kinds)


def test_storage_gives_the_numbers_of_the_whole_memory():
    x = tg.arange(6.0).reshape(2, 3)
    memory = x[1].storage()
    assert len(memory) == 6 and memory[1] == 1.0 and memory[4:] == [4.0, 5.0] and memory.dtype is tg.float32
    memory[0] = 7
    assert x[0, 0] == 7 and memory.data_ptr() == x.data_ptr() and memory.nbytes() == 24
    assert not tg.empty(0).storage()


def test_a_storage_is_copied_filled_and_measured():
    t = tg.arange(4, dtype=tg.int16)
    held = t.untyped_storage()
    assert sys.getsizeof(held) >= 8 and sys.getsizeof(t.storage()) >= 8
    assert list(held) == [0, 0, 1, 0, 2, 0, 3, 0] and held.device == tg.device("cpu") and not held.is_cuda
    assert held.element_size() == 1 and held.cpu() is held and held.resize_(8) is held
    for other in (held.clone(), copy.copy(held), copy.deepcopy(held)):
        assert other.tolist() == held.tolist() and other.data_ptr() != held.data_ptr()
    assert held.copy_(tg.tensor([9, 8, 7, 6], dtype=tg.int16).storage()) is held and t.tolist() == [9, 8, 7, 6]
    assert held.fill_(0) is held and t.tolist() == [0, 0, 0, 0]
    assert tg.ones(2, device="meta").untyped_storage().device.type == "meta"
    with pytest.raises(RuntimeError, match="self was 8 bytes but src was 12 bytes"):
        held.copy_(tg.ones(3).untyped_storage())
    with pytest.raises(NotImplementedError, match="there are 8 bytes, and 1048576 are wanted"):
        held.resize_(1 << 20)


def test_gradients_have_their_private_names_too():
    t = tg.ones(2, requires_grad=True)
    assert t._grad is None and t._grad_fn is None and (t * 2)._grad_fn is not None
    t._grad = tg.full((2,), 3.0)
    assert t.grad.tolist() == [3.0, 3.0] and t._grad is t.grad


def test_a_deep_copy_keeps_what_shares_memory():
    t = tg.tensor([1.0, 2.0])
    found, memory, again = copy.deepcopy([t, t.untyped_storage(), t.untyped_storage()])
    assert found.data_ptr() == memory.data_ptr() == again.data_ptr() != t.data_ptr()
    memory.fill_(-1)
    assert memory[0] == 255 and memory.fill_(300)[7] == 44 and t.tolist() == [1, 2]
