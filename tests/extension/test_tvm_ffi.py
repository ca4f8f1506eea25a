"""Kernels that were compiled for tvm-ffi take our tensors, and what those kernels give is ours to use."""

import subprocess

import pytest

import tinygrad_ext as tg

tvm_ffi = pytest.importorskip("tvm_ffi", reason="tvm-ffi is not installed: pip install apache-tvm-ffi")

KERNELS = """
#include <tvm/ffi/c_api.h>

static DLTensor *tensor(const TVMFFIAny *a) {
    if (a->type_index == kTVMFFIDLTensorPtr) return (DLTensor *)a->v_ptr;
    return (DLTensor *)((char *)a->v_obj + sizeof(TVMFFIObject));
}

/* y = x + by */
TVM_FFI_DLL_EXPORT int __tvm_ffi_shift(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result) {
    DLTensor *x = tensor(&args[0]), *y = tensor(&args[1]);
    (void)self;
    if (n != 3 || x->dtype.code != kDLFloat || x->dtype.bits != 32 || x->ndim != 2) {
        TVMFFIErrorSetRaisedFromCStr("TypeError", "two matrices of float32, and a number");
        return -1;
    }
    const float *from = (const float *)((char *)x->data + x->byte_offset);
    float *to = (float *)((char *)y->data + y->byte_offset);
    for (int64_t i = 0; i < x->shape[0]; i++)
        for (int64_t k = 0; k < x->shape[1]; k++)
            to[i * y->strides[0] + k * y->strides[1]] =
                from[i * x->strides[0] + k * x->strides[1]] + (float)args[2].v_float64;
    result->type_index = kTVMFFINone;
    return 0;
}
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """A library built with tvm-ffi's header, which knows nothing of us."""
    from tvm_ffi import libinfo

    folder = tmp_path_factory.mktemp("tvm")
    (folder / "k.c").write_text(KERNELS)
    include = [f"-I{p}" for p in (libinfo.find_include_path(), libinfo.find_dlpack_include_path())]
    link = [str(libinfo.find_libtvm_ffi())]
    words = ["cc", "-shared", "-fPIC", *include, str(folder / "k.c"), *link, "-o", str(folder / "k.so")]
    subprocess.run(words, check=True)
    return tvm_ffi.load_module(str(folder / "k.so"))


def test_a_kernel_reads_and_writes_tensors_of_ours(kernels):
    x, y = tg.arange(6.0).reshape(2, 3), tg.empty(2, 3)
    kernels.shift(x, y, 0.5)
    assert y.equal(x + 0.5)
    wide = tg.zeros(3, 4)
    kernels.shift(x, wide[:, ::2].t(), 2.0)  # windows, with their strides and offsets
    assert wide[:, ::2].t().equal(x + 2) and wide[:, 1::2].eq(0).all()
    with pytest.raises(TypeError, match="two matrices of float32"):
        kernels.shift(x.double(), y, 0.5)


def test_tensors_of_tvm_ffi_are_taken_without_a_copy(kernels):
    x = tg.arange(6.0).reshape(2, 3)
    theirs = tvm_ffi.from_dlpack(x)
    ours = tg.from_dlpack(theirs)
    assert ours.data_ptr() == x.data_ptr() and ours.equal(x)
    kernels.shift(x, theirs, 1.0)
    assert ours.tolist() == [[1, 2, 3], [4, 5, 6]]


def test_what_a_kernel_returns_comes_back_as_a_tensor_of_ours():
    same = tvm_ffi.convert(lambda t: t)
    x = tg.ones(2, 3)
    found = same(x)
    assert tg.from_dlpack(found).data_ptr() == x.data_ptr()


def test_a_tensor_that_requires_grad_is_refused_unless_detached(kernels):
    x, y = tg.ones(2, 3, requires_grad=True), tg.empty(2, 3)
    with pytest.raises((RuntimeError, BufferError, TypeError)):
        kernels.shift(x, y, 1.0)
    kernels.shift(x.detach(), y, 1.0)
    assert y.tolist() == [[2, 2, 2]] * 2
