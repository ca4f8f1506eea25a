"""`torch._prims_common`: what PyTorch's tables of samples and tests ask about dtypes, sizes and strides."""

import importlib

import pytest

import tinygrad_ext as tg


@pytest.fixture
def prims(as_torch):
    return importlib.import_module("torch._prims_common")


def test_it_is_the_utils_of_prims_too(prims):
    assert (
        importlib.import_module("torch._prims").utils is prims
        and importlib.import_module("torch._prims_common.wrappers") is prims
    )


def test_dtypes_of_pointwise_functions(prims):
    kind = prims.ELEMENTWISE_TYPE_PROMOTION_KIND
    half, whole, single = tg.ones(2, dtype=tg.float16), tg.ones(2, dtype=tg.int32), tg.tensor(1.0)
    rows = [
        ((half, whole, None), kind.DEFAULT, (tg.float32, tg.float16)),
        ((half,), kind.NO_OPMATH, (tg.float16, tg.float16)),
        ((whole, single), kind.DEFAULT, (tg.float32, tg.float32)),
        ((half, single), kind.DEFAULT, (tg.float32, tg.float16)),
        ((half, 1j), kind.DEFAULT, (tg.complex64, tg.complex32)),
        ((half, 1j), kind.COMPLEX_TO_FLOAT, (tg.complex64, tg.float16)),
        ((whole, 2), kind.INT_TO_FLOAT, (tg.float32, tg.float32)),
        ((whole, 2), kind.ALWAYS_BOOL, (tg.int32, tg.bool)),
        ((True, tg.tensor(True)), kind.BOOL_TO_LONG, (tg.int64, tg.int64)),
        ((2, 3.0), kind.DEFAULT, (tg.float32, tg.float32)),
    ]
    for values, how, expected in rows:
        assert prims.elementwise_dtypes(*values, type_promotion_kind=how) == expected
    with pytest.raises(ValueError, match="expected tensors and numbers, got str"):
        prims.elementwise_dtypes("x", type_promotion_kind=kind.DEFAULT)


def test_dtypes_of_reductions(prims):
    kind, x = prims.REDUCTION_OUTPUT_TYPE_KIND, tg.ones(2, dtype=tg.complex64)
    assert prims.reduction_dtypes(x, kind.SAME) == (tg.complex64, tg.complex64)
    assert prims.reduction_dtypes(x, kind.COMPLEX_TO_FLOAT) == (tg.complex64, tg.float32)
    assert prims.reduction_dtypes(x, kind.ALWAYS_BOOL) == (tg.complex64, tg.bool)
    assert prims.reduction_dtypes(x, kind.KEEP_PROMOTED_TYPE, tg.float16) == (tg.float32, None)


def test_kinds_of_dtypes_and_numbers(prims):
    types = {tg.bool: bool, tg.uint16: int, tg.int8: int, tg.bfloat16: float, tg.complex32: complex}
    assert {dtype: prims.dtype_to_type(dtype) for dtype in types} == types
    assert [prims.type_to_dtype(t) for t in (bool, int, float, complex)] == [
        tg.bool,
        tg.int64,
        tg.float32,
        tg.complex64,
    ]
    assert prims.is_integer_dtype(tg.uint32) and not prims.is_integer_dtype(tg.bool)
    assert prims.get_higher_type(float, int) is float and prims.get_higher_dtype(None, tg.int8) is tg.int8
    assert prims.get_higher_dtype(tg.int8, tg.ones(1)) is tg.float32
    assert prims.corresponding_complex_dtype(prims.corresponding_real_dtype(tg.complex128)) is tg.complex128
    with pytest.raises(AssertionError, match="expected a dtype, got int"):
        prims.dtype_to_type(3)
    with pytest.raises(ValueError, match="expected bool, int, float or complex"):
        prims.type_to_dtype(str)


def test_dimensions_and_strides(prims):
    assert prims.canonicalize_dim(3, -1) == 2 and prims.canonicalize_dims(2, (0, -1)) == (0, 1)
    assert prims.canonicalize_dim(0, -1) == 0
    with pytest.raises(IndexError, match="Dimension out of range"):
        prims.canonicalize_dim(2, 2)
    with pytest.raises(IndexError, match="tensor has no dimensions"):
        prims.canonicalize_dim(0, 0, wrap_scalar=False)
    with pytest.raises(IndexError, match="Rank cannot be negative"):
        prims.canonicalize_dim(-1, 0)
    assert prims.make_contiguous_strides_for((2, 0, 4)) == tg.empty(2, 0, 4).stride()
    assert prims.make_contiguous_strides_for((5, 2, 3), row_major=False) == (6, 1, 2)


def test_two_tensors_are_compared_without_their_elements(prims):
    x = tg.ones(2, 3)
    prims.compare_tensor_meta(x, tg.zeros(2, 3), check_strides=True)
    prims.compare_tensor_meta(x, tg.zeros(3), check_sizes=False)
    turned = tg.ones(3, 2).t()
    others = (tg.ones(3), tg.ones(2, 3, dtype=tg.float64), x.to("meta"), turned, tg.ones(9)[3:].reshape(2, 3))
    for other in others:
        with pytest.raises(RuntimeError):
            prims.compare_tensor_meta(x, other, check_strides=True)
    z = x + 0j
    with pytest.raises(RuntimeError, match="is_conj of the two is False and True"):
        prims.compare_tensor_meta(z, z.conj())
    prims.compare_tensor_meta(z, z.conj(), check_conj=False)


def test_a_function_without_a_wrapper_for_out_is_itself(prims):
    def inside(x):
        return x

    def outside(x, out=None):
        return inside(x)

    assert prims._maybe_remove_out_wrapper(inside) is inside
    outside.__wrapped__, outside._torch_decompositions_out_wrapper = inside, "out"
    assert prims._maybe_remove_out_wrapper(outside) is inside


def test_in_the_mode_of_references_functions_are_themselves(as_torch):
    mode = importlib.import_module("torch._prims.context").TorchRefsMode
    with mode(strict=True):
        assert as_torch.add(as_torch.ones(2), 1).tolist() == [2, 2]
    leaves = importlib.import_module("torch.utils._pytree").arg_tree_leaves
    assert leaves((1, [2]), a={"b": 3}) == [1, 2, 3]
