"""Under the alias: private names of PyTorch's that tests and libraries take at module level, and what they do."""

import importlib

import pytest

import tinygrad_ext as tg


def test_references_are_the_ops(as_torch):
    refs = importlib.import_module("torch._refs")
    assert refs.sum is as_torch.sum and refs.linalg.vector_norm is as_torch.linalg.vector_norm
    assert refs._conversions.double(as_torch.ones(1)).dtype is as_torch.float64
    assert refs.rpow(as_torch.tensor(2.0), 3).item() == 9 and refs.add_ is as_torch.Tensor.add_
    assert refs.special.i0 is as_torch.special.i0 and refs.nn.functional.relu is as_torch.nn.functional.relu
    assert not hasattr(importlib.import_module("torch"), "no_such_name")


def test_functions_of_the_compiled_half(as_torch):
    _C = importlib.import_module("torch._C")
    assert _C._linalg.linalg_svd is as_torch.linalg.svd and _C._fft.fft_fft is as_torch.fft.fft
    assert _C._special.special_i0 is as_torch.special.i0
    assert _C._nn.silu_(as_torch.zeros(2)).tolist() == [0, 0]
    assert as_torch._conj_physical(as_torch.tensor([1 + 1j])).tolist() == [1 - 1j]
    for absent in (as_torch._cast_Byte, _C._nn.slow_conv3d):
        with pytest.raises(NotImplementedError, match="tinygrad_ext has none of this"):
            absent(as_torch.ones(1))
    for room in (_C._linalg, _C._nn):
        with pytest.raises(AttributeError, match=r"torch\._C\._\w+' has no attribute 'no_such_name'"):
            room.no_such_name
    assert not as_torch._nnpack_available()


def test_dtypes_whose_numbers_are_not_here_are_dtypes(as_torch):
    assert isinstance(as_torch.quint8, as_torch.dtype) and not as_torch.qint8.is_floating_point
    assert not isinstance(as_torch.per_tensor_affine, as_torch.dtype)
    with pytest.raises(RuntimeError, match="not supported for quantized"):
        as_torch.qint32.is_signed


def test_products_of_eight_bit_integers_are_summed_in_32(as_torch):
    a = as_torch.full((2, 3), 127, dtype=as_torch.int8)
    result = as_torch._int_mm(a, a.t())
    assert result.dtype is as_torch.int32 and result.tolist() == [[48387, 48387]] * 2
    with pytest.raises(RuntimeError, match="Expected mat2 to be a matrix of int8"):
        as_torch._int_mm(a, a.t().int())


def test_settings_hold_for_a_block(as_torch):
    for place, name in (("torch._inductor.config", "freezing"), ("torch._dynamo.config", "verbose")):
        config = importlib.import_module(place)

        @config.patch({name: True}, brought=1)
        def inside(config=config, name=name):
            return getattr(config, name), config.brought

        assert inside() == (True, 1) and getattr(config, name) is False and not hasattr(config, "brought")
        with config.patch(name, 3):
            assert getattr(config, name) == 3


def test_vmap_in_chunks_and_dimensions_put_into_others(as_torch):
    from functorch.experimental import chunk_vmap

    x = as_torch.arange(10.0).reshape(5, 2)
    for chunks in (1, 2, 3):
        assert chunk_vmap(lambda row: row.sum(), chunks=chunks)(x).tolist() == [1, 5, 9, 13, 17]
    functorch = importlib.import_module("torch._C._functorch")
    assert functorch is importlib.import_module("torch._C")._functorch
    into = functorch.reshape_dim_into(1, 0, x)
    assert into.tolist() == x.t().flatten().tolist()
    assert functorch.reshape_dim_outof(0, 2, into).tolist() == x.t().tolist()
    with pytest.raises(RuntimeError, match="not 3 equal parts"):
        functorch.reshape_dim_outof(0, 3, into)


def test_switches_of_vmap_are_kept(as_torch):
    functorch = importlib.import_module("torch._C._functorch")
    assert functorch._is_vmap_fallback_enabled()
    functorch._set_vmap_fallback_enabled(False)
    assert not functorch._is_vmap_fallback_enabled()
    functorch._set_vmap_fallback_enabled(True)


def test_masks_of_masked_ops(as_torch):
    masked = importlib.import_module("torch.masked")
    x, mask = as_torch.ones(2, 3), as_torch.tensor([[True, False, False], [False] * 3])
    assert masked._reduction_identity("amax", x).item() == -float("inf")
    assert masked._reduction_identity("prod", x.int()).item() == 1 and masked._reduction_identity("mean", x) is None
    assert masked._output_mask(masked.sum, x, 1, mask=mask).tolist() == [True, False]
    assert masked._output_mask(masked.softmax, x, 1, mask=mask[0]).shape == x.shape
    assert masked._canonical_dim((-1, 0), 3) == (0, 2)
    with pytest.raises(RuntimeError, match="multiple times"):
        masked._canonical_dim((0, -3), 3)


def test_metadata_of_two_tensors_are_compared(as_torch):
    compare = importlib.import_module("torch._subclasses.meta_utils").assert_metadata_eq

    def equal(a, b):
        assert a == b

    compare(equal, tg.ones(2, 3, device="meta"), tg.zeros(2, 3))
    compare(equal, tg.ones(2, 3)[0], tg.zeros(2, 3)[0])
    for other in (tg.ones(2, 3, dtype=tg.int64), tg.ones(2, 3, requires_grad=True), tg.ones(3, 2).t()):
        with pytest.raises(AssertionError):
            compare(equal, tg.ones(2, 3, device="meta"), other)


def test_a_transform_cannot_be_left(as_torch):
    leave = importlib.import_module("torch._C")._DisableFuncTorch

    def inside(x):
        with leave():
            return x

    assert inside(1) == 1
    with pytest.raises(NotImplementedError, match="a transform cannot be left"):
        as_torch.func.vmap(inside)(as_torch.ones(2))


def test_what_is_not_here_fails_where_a_scripted_function_calls_it(as_torch):
    made = as_torch.jit.CompilationUnit("def f(x: Tensor, run: bool):\n    return torch._cast_Byte(x) if run else x")
    assert made.f(as_torch.ones(1), False).tolist() == [1]
    with pytest.raises(NotImplementedError, match=r"torch\._cast_Byte: tinygrad_ext has none of this"):
        made.f(as_torch.ones(1), True)
