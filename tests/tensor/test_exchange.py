"""`__dlpack_c_exchange_api__`: DLPack's table of functions, called as another library's C code does."""

import ctypes
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    byref,
    c_char_p,
    c_int,
    c_int32,
    c_int64,
    c_uint32,
    c_uint64,
    c_void_p,
    py_object,
)

import pytest
from collecting import collect

import tinygrad_ext as tg


class DLTensor(Structure):
    _fields_ = [
        ("data", c_void_p), ("device_type", c_int32), ("device_id", c_int32), ("ndim", c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64),
    ]  # fmt: skip


class Managed(Structure):
    pass


Managed._fields_ = [
    ("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", CFUNCTYPE(None, POINTER(Managed))),
    ("flags", c_uint64), ("tensor", DLTensor),
]  # fmt: skip
SET_ERROR = CFUNCTYPE(None, c_void_p, c_char_p, c_char_p)


class Exchange(Structure):
    _fields_ = [
        ("major", c_uint32), ("minor", c_uint32), ("previous", c_void_p),
        ("allocate", CFUNCTYPE(c_int, POINTER(DLTensor), POINTER(POINTER(Managed)), c_void_p, SET_ERROR)),
        ("lend", ctypes.PYFUNCTYPE(c_int, py_object, POINTER(POINTER(Managed)))),
        ("take", ctypes.PYFUNCTYPE(c_int, POINTER(Managed), POINTER(c_void_p))),
        ("look", ctypes.PYFUNCTYPE(c_int, py_object, POINTER(DLTensor))),
        ("stream", ctypes.PYFUNCTYPE(c_int, c_int, c_int32, POINTER(c_void_p))),
    ]  # fmt: skip


@pytest.fixture(scope="module")
def api():
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = c_void_p, [py_object, c_char_p]
    return Exchange.from_address(get(tg.Tensor.__dlpack_c_exchange_api__, b"dlpack_exchange_api"))


def taken(api, lent):
    """The tensor that a lent one becomes."""
    found = c_void_p()
    assert api.take(lent, byref(found)) == 0
    made = ctypes.cast(found, py_object).value
    ctypes.pythonapi.Py_DecRef(py_object(made))
    return made


def test_it_says_which_version_it_is(api):
    assert (api.major, api.minor, api.previous) == (1, 3, None)


def test_a_look_borrows(api):
    x, d = tg.arange(6.0, dtype=tg.float64).reshape(2, 3).t(), DLTensor()
    assert api.look(x, byref(d)) == 0
    assert (d.data, d.device_type, d.ndim, d.code, d.bits, d.lanes) == (x.data_ptr(), 1, 2, 2, 64, 1)
    assert d.shape[:2] == [3, 2] and d.strides[:2] == [1, 3]


def test_what_is_lent_lives_until_it_is_given_back(api):
    collect()
    x, lent = tg.ones(1000), POINTER(Managed)()
    assert api.lend(x, byref(lent)) == 0
    before = tg.memory_stats()["allocated"]
    address = x.data_ptr()
    del x
    collect()
    assert tg.memory_stats()["allocated"] == before and lent.contents.tensor.data == address
    lent.contents.deleter(lent)
    assert tg.memory_stats()["allocated"] < before


def test_there_and_back_is_the_same_memory(api):
    x, lent = tg.arange(4), POINTER(Managed)()
    assert api.lend(x[1:], byref(lent)) == 0
    y = taken(api, lent)
    y[0] = 7
    assert x.tolist() == [0, 7, 2, 3] and y.dtype is tg.int64


def test_a_result_is_made_for_others(api):
    shape = (c_int64 * 2)(2, 5)
    like, lent = DLTensor(None, 1, 0, 2, 2, 32, 1, shape, None, 0), POINTER(Managed)()
    assert api.allocate(byref(like), byref(lent), None, SET_ERROR(lambda *_: None)) == 0
    y = taken(api, lent)
    assert y.shape == (2, 5) and y.dtype is tg.float32


@pytest.mark.parametrize(
    "like, words",
    [
        ((None, 2, 0, 0, 2, 32, 1, None, None, 0), b"device of type 2"),
        ((None, 1, 0, -1, 2, 32, 1, None, None, 0), b"-1 dimensions"),
        ((None, 1, 0, 1, 2, 32, 1, None, None, 0), b"1 dimensions"),
        ((None, 1, 0, 0, 9, 32, 1, None, None, 0), b"have no dtype here"),
    ],
)
def test_what_cannot_be_made_is_told_to_the_asker(api, like, words):
    told, lent = [], POINTER(Managed)()
    code = api.allocate(byref(DLTensor(*like)), byref(lent), None, SET_ERROR(lambda _, k, t: told.append((k, t))))
    assert code == -1 and told[0][0] == b"BufferError" and words in told[0][1]


@pytest.mark.parametrize(
    "make, error, words",
    [
        (lambda: tg.ones(2, requires_grad=True), BufferError, "require gradient"),
        (lambda: tg.ones(2, device="meta"), BufferError, "meta tensor"),
        (lambda: 3, TypeError, "expected a Tensor, got int"),
    ],
)
def test_what_cannot_be_lent_is_an_error(api, make, error, words):
    for function, into in ((api.lend, POINTER(Managed)()), (api.look, DLTensor())):
        with pytest.raises(error, match=words):
            function(make(), byref(into))


def test_the_work_of_the_cpu_has_no_stream(api):
    found = c_void_p(5)
    assert api.stream(1, 0, byref(found)) == 0 and found.value is None


def test_from_dlpack_goes_by_the_table_of_a_type():
    class Lender:
        __dlpack_c_exchange_api__ = tg.Tensor.__dlpack_c_exchange_api__

    with pytest.raises(TypeError, match="expected a Tensor, got Lender"):  # so it was asked
        tg.from_dlpack(Lender())
    x = tg.ones(3)
    tg.from_dlpack(x)[1] = 5
    assert x.tolist() == [1, 5, 1]
    with pytest.raises(BufferError, match="require gradient"):
        tg.from_dlpack(tg.ones(2, requires_grad=True))


def test_a_table_that_is_none_is_passed_over():
    class Lender:
        __dlpack_c_exchange_api__ = "no capsule"

        def __dlpack__(self, **_):
            return tg.ones(2).__dlpack__()

    assert tg.from_dlpack(Lender()).tolist() == [1, 1]


def test_with_pytorch_both_ways():
    torch = pytest.importorskip("torch")
    t = torch.arange(3.0)
    tg.from_dlpack(t)[0] = 8
    assert t.tolist() == [8, 1, 2]
    with pytest.raises((BufferError, RuntimeError), match="require"):
        tg.from_dlpack(torch.ones(2, requires_grad=True))
    x = tg.ones(2)
    torch.from_dlpack(x)[0] = 3
    assert x.tolist() == [3, 1]


def test_functions_of_tvm_ffi_take_and_give_our_tensors():
    tvm_ffi = pytest.importorskip("tvm_ffi")
    seen = []
    tvm_ffi.register_global_func("tests.exchange", lambda t: seen.append(tuple(t.shape)) or t, override=True)
    x = tg.zeros(2, 3)
    y = tvm_ffi.get_global_func("tests.exchange")(x)
    y[0, 0] = 4
    assert type(y) is tg.Tensor and x[0, 0].item() == 4 and seen == [(2, 3)]


class Lender:
    """An object of another library that has DLPack's methods and no others."""

    def __init__(self, t):
        self.__dlpack__, self.__dlpack_device__ = t.__dlpack__, t.__dlpack_device__


def test_tensor_copies_what_is_lent_and_as_tensor_shares_it():
    t = tg.arange(3.0)
    assert tg.tensor(Lender(t)).tolist() == [0, 1, 2] and tg.tensor(Lender(t[1])).item() == 1
    made = tg.tensor(Lender(t), dtype=tg.int64, requires_grad=False)
    assert made.dtype == tg.int64 and made.tolist() == [0, 1, 2]
    assert tg.tensor(Lender(t), requires_grad=True).requires_grad
    tg.tensor(Lender(t)).zero_()
    t.new_tensor(Lender(t)).zero_()
    assert t.tolist() == [0, 1, 2]
    tg.as_tensor(Lender(t)).zero_()
    assert t.tolist() == [0, 0, 0]
    assert t.__dlpack__(stream=-1) is not None
    with pytest.raises(RuntimeError, match="Could not infer dtype of Lender"):
        tg.tensor([Lender(t)])
