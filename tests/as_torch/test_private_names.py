"""Under the alias: private names of PyTorch's that tests and libraries take at module level, and what they do."""

import base64
import importlib
import io
import pickle
import subprocess
import sys
import typing
import zipfile
import zlib

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
    modes = importlib.import_module("torch.utils._mode_utils").no_dispatch, lambda: as_torch.device("cpu")
    for mode in (
        *modes,
        importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode,
        as_torch.inference_mode,
    ):
        with mode():  # which is no transform
            assert inside(1) == 1
    with pytest.raises(NotImplementedError, match="a transform cannot be left"):
        as_torch.func.vmap(inside)(as_torch.ones(2))


def test_what_is_not_here_fails_where_a_scripted_function_calls_it(as_torch):
    made = as_torch.jit.CompilationUnit("def f(x: Tensor, run: bool):\n    return torch._cast_Byte(x) if run else x")
    assert made.f(as_torch.ones(1), False).tolist() == [1]
    with pytest.raises(NotImplementedError, match=r"torch\._cast_Byte: tinygrad_ext has none of this"):
        made.f(as_torch.ones(1), True)


# pickle.dumps of PyTorch's, compressed: a transposed tensor, an integer one, a parameter and a conjugate view
PICKLED = (
    "eNrVk01v0zAYx+PUo1LKYOLGjWO4VKULXTkxbdMkFF7HJRdkZYlZMrlx/JKJTaqUy6BDuWFufAC+Gh8BCQkepx0aaINda8WPE+efx8/z0z81/v"
    "xkxWnH1PgN0qa5qblMsj6pdM6Uae4QSfernKVE00JxSY6G5hNIV+cyBUt8QE2zRhiPU/JW8gnZP9ZUgWqrhxyndj967MeX3e/3Dr++vNuv3Wff"
    "OhCnwvGjNTi3lFzzhDNyRKXKeSEQCKJVeMNyrRkltEjzuBDuLPJgUx+XlKj8hCrRmQrsR7Z8lXGpxUroRh14ygstboQ4wjYHLw5EN8RVBWf6Ud"
    "eK5yULJ2lb8HahcP16vukJFN0CzaNgNHgwGK+PNsbDYSDmeZOyEp0QP9cCv4Jsb4RzmRbFfeycj/oxhE24YNab5tTsmdAJ3dB9b0Jk41nTg94Z"
    "TTS0Drh7L2RKJU138kQDwft7RsM3DcpNhv2su+UuA9GnILka6Ppo/AdQ9A+gVgtA0QJnd7Geg0Snxs6z7PZvUKXJ3AumLWMZT6imEmC2BLd/Lr"
    "UhN4bjYDC4Hr+F9gI/a8gr2c3auw8txWRhN28Z7LbNJyWj7/6D7WEQXBub1f6Fzf7Hl6KbmgYnvDg0M2UpVv1fcWaF5A=="
)


WRITTEN_BY_PYTORCH = """
import pickle, sys, torch
plain, parameter = torch.ones(2), torch.nn.Parameter(torch.ones(1))
plain.told, parameter.told = "a", [1]
coo = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))
rows = torch.eye(2).to_sparse_csr()
made = [plain, parameter, torch.empty(3, device="meta"), coo, rows, torch.Generator().manual_seed(3), torch.strided]
sys.stdout.buffer.write(pickle.dumps([*made, torch.ones(2).untyped_storage(), torch.ones(2, dtype=torch.uint16)]))
"""


def test_pickles_of_pytorchs_other_tensors_are_read(as_torch):
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", WRITTEN_BY_PYTORCH], capture_output=True)
    if b"No module named 'torch'" in run.stderr:
        pytest.skip("PyTorch is not here")
    assert not run.returncode, run.stderr
    plain, parameter, meta, coo, rows, generator, layout, held, wide = pickle.loads(run.stdout)
    assert (plain.told, parameter.told, type(parameter), meta.is_meta) == ("a", [1], as_torch.nn.Parameter, True)
    assert coo.to_dense().tolist() == [[0, 1], [2, 0]] and rows.layout is as_torch.sparse_csr
    drawn = as_torch.rand(2, generator=as_torch.Generator().manual_seed(3))
    assert as_torch.rand(2, generator=generator).tolist() == drawn.tolist()
    assert layout is as_torch.strided and held.nbytes() == 8 and wide.tolist() == [1, 1]


@pytest.mark.parametrize("state", [(), (1, None), [1, None, 2], None])
def test_a_generators_pickle_of_another_kind_is_refused(state):
    with pytest.raises(TypeError, match="expected \\(seed, None, state\\)"):
        tg.Generator().__setstate__(state)


def test_pickles_of_tensors_are_read(as_torch):
    found = pickle.loads(zlib.decompress(base64.b64decode(PICKLED)))
    assert found["t"].tolist() == [[1, 3], [2, 4]] and found["t"].stride() == (1, 2)
    assert found["i"].tolist() == [7] and found["i"].dtype is as_torch.int64 and found["c"].tolist() == [1 - 2j]
    assert type(found["p"]) is as_torch.nn.Parameter and found["p"].requires_grad
    storage = importlib.import_module("torch.storage")
    with pytest.raises(RuntimeError, match="load"):
        storage._load_from_bytes(b"no such thing")


def _valley(torch, x, t, d):
    at = (x + t * d).detach().requires_grad_()
    loss = (1 - at[0]) ** 2 + 100 * (at[1] - at[0] ** 2) ** 2
    loss.backward()
    return loss.detach(), at.grad


def test_minimisers_find_the_line_search(as_torch):
    lbfgs = importlib.import_module("torch.optim.lbfgs")
    x = as_torch.tensor([-1.2, 1.0], dtype=as_torch.float64)
    loss, grad = _valley(as_torch, x, 0.0, x)
    d, slope = -grad, -grad.dot(grad)
    found = lbfgs._strong_wolfe(lambda *given: _valley(as_torch, *given), x, 1.0, d, loss, grad, slope)
    # the numbers that PyTorch's gives
    assert found[3] == 8 and abs(found[0].item() - 4.1281) < 1e-4 and abs(float(found[2]) - 0.0008) < 1e-4
    further, there = _valley(as_torch, x, 0.001, d)
    points = (0.0, loss, slope, 0.001, further, there.dot(d))
    assert abs(float(lbfgs._cubic_interpolate(*points)) - 0.0008) < 1e-4
    assert float(lbfgs._cubic_interpolate(*points, (0.0001, 0.0005))) == 0.0005
    with pytest.raises(TypeError, match="max_tries"):
        lbfgs._strong_wolfe(None, x, 1.0, d, loss, grad, slope, max_tries=3)
    assert lbfgs._strong_wolfe(lambda *given: _valley(as_torch, *given), x, 1.0, d, loss, grad, slope, max_ls=2)[3] == 3


def test_vmap_has_its_older_name(as_torch):
    old = importlib.import_module("torch._vmap_internals")
    x = as_torch.arange(6.0).view(2, 3)
    assert old._vmap(lambda row: row.sum())(x).tolist() == [3, 12] and old.vmap is as_torch.vmap
    first, none = old._vmap(lambda row: (row * 2, None), allow_none_pass_through=True)(x)
    assert first.tolist() == (x * 2).tolist() and none is None
    assert old._vmap(lambda row: row.sum(), allow_none_pass_through=True)(x).tolist() == [3, 12]
    assert old._vmap(lambda row: None, allow_none_pass_through=True)(x) is None
    with pytest.raises(NotImplementedError, match="expected one int"):
        old._vmap(lambda row: (row, None), 0, (0, 0), allow_none_pass_through=True)(x)


@pytest.mark.parametrize(
    ("elements", "texts"),
    [
        ([1.0], ["1.", "3."]),
        ([0.001], ["0.0010", "3.0000"]),
        ([123456.789], ["123456.7890", "     3.0000"]),
        ([1e-8, 1.0], ["1.0000e-08", "1.0000e+00", "3.0000e+00"]),
        ([1, 200], ["  1", "200", "  3"]),
        ([float("nan"), 1.5], ["   nan", "1.5000", "3.0000"]),
    ],
)
def test_numbers_are_written_as_the_elements_of_a_tensor(as_torch, elements, texts):
    formatter = importlib.import_module("torch._tensor_str")._Formatter(as_torch.tensor(elements))
    assert [formatter.format(value) for value in [*elements, 3]] == texts and formatter.width() == len(texts[0])


def test_transforms_that_carry_values_can_be_told(as_torch):
    _C, told = importlib.import_module("torch._C"), []

    def f(x):
        told.append(_C._are_functorch_transforms_active())
        return x.sum()

    x = as_torch.ones(2, 3)
    f(x), as_torch.vmap(f)(x), as_torch.func.jvp(f, (x,), (x,)), as_torch.jit.trace(f, x)
    assert told[:3] == [False, True, True] and not any(told[3:]) and len(told) > 3


def test_compile_says_which_devices_it_takes(as_torch):
    supported = importlib.import_module("torch._dynamo.utils").is_compile_supported
    assert supported("cpu") and supported(as_torch.device("cpu")) and not supported("cuda")


def test_rooms_that_are_loaded_when_asked_for_answer_for_what_they_lack():
    program = (
        "from tinygrad_ext import as_torch; as_torch.install(); import torch;"
        "assert torch.serialization.pickle.__name__ == 'pickle' and torch.random.contextlib"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_lists_of_one_number_are_annotations_of_scripts(as_torch):
    internal = importlib.import_module("torch._jit_internal")
    unit = as_torch.jit.CompilationUnit(
        "def total(x: BroadcastingList2[float], y: _size_2_t) -> float:\n    return x[0] + x[1] + y[0] * y[1]\n"
    )
    assert unit.total(1.5, 2) == 7 and unit.total([1.0, 2.0], (2, 3)) == 9
    assert repr(internal.BroadcastingList2) == "BroadcastingList2"


def test_types_of_scripts_by_their_kinds(as_torch):
    _C = importlib.import_module("torch._C")
    text = _C.StringType.get()
    assert str(_C.DictType(text, _C.ListType(_C.IntType.get()))) == "Dict[str, List[int]]"
    assert _C.TupleType([text, _C.TensorType.get()]).str() == "(str, Tensor)" and str(_C.NoneType.get()) == "NoneType"
    assert _C.OptionalType(_C.FloatType.get()).str() == "float?" and _C.ListType.ofInts() is _C.ListType(_C.IntType())
    assert isinstance(text, _C.StringType) and not isinstance(text, _C.ListType) and isinstance(text, _C.Type)
    assert as_torch.ListType is _C.ListType and text.kind() == "StringType" and text.annotation_str == "str"
    assert text.isSubtypeOf(_C.OptionalType(text)) and not _C.OptionalType(text).isSubtypeOf(text)
    assert _C.DictType(text, _C.IntType()).getValueType() is _C.IntType.get()


def test_nests_of_tensors_are_gone_through(as_torch):
    function = importlib.import_module("torch.autograd.function")
    double = function._nested_map(lambda v: isinstance(v, as_torch.Tensor), lambda t: t * 2, "Tensors")
    assert [int(t) for t in double((as_torch.tensor(1), [as_torch.tensor(2)], {"a": as_torch.tensor(3)}))[:1]] == [2]
    assert double({"a": [None, as_torch.tensor(3)]})["a"][1] == 6
    with pytest.raises(ValueError, match="expected Tensors in tuples.* met a str"):
        double(["a"])
    assert list(function._iter_filter(lambda v: isinstance(v, int))([1, (2, {"a": 3}), None])) == [1, 2, 3]


def test_a_zip_file_is_told_by_how_it_begins(as_torch):
    is_zip = importlib.import_module("torch.serialization")._is_zipfile
    file = io.BytesIO()
    zipfile.ZipFile(file, "w").writestr("a", "b")
    file.seek(0)
    assert is_zip(file) and file.tell() == 0 and not is_zip(io.BytesIO(b"PK")) and not is_zip(io.BytesIO(b"xx" * 9))


def test_annotations_are_asked_what_they_are(as_torch):
    internal, old = importlib.import_module("torch._jit_internal"), vars(typing)  # by the names that programs have
    assert internal.is_list(old["List"][int]) and internal.is_list(list[int]) and not internal.is_list(int)
    assert internal.is_dict(old["Dict"][str, int]) and internal.is_tuple(old["Tuple"][int])
    assert not internal.is_tuple(old["List"][int]) and internal.is_final(typing.Final[int])
    for optional in (old["Optional"][int], old["Union"][None, str], int | None):
        assert internal.is_optional(optional) and internal.is_union(optional)
    assert internal.is_union(old["Union"][int, str]) and not internal.is_optional(old["Union"][int, str, None])
    with pytest.raises(RuntimeError, match="Attempted to use List without a contained type"):
        internal.is_list(old["List"])


def test_types_and_schemas_are_the_same_at_the_top(as_torch):
    _C = importlib.import_module("torch._C")
    for name in ("Type", "Argument", "FunctionSchema", "FileCheck", "IntType"):
        assert getattr(as_torch, name) is getattr(_C, name)
    assert isinstance(as_torch.jit.script(lambda x: x).schema, as_torch.FunctionSchema)


def test_names_of_parameters_that_are_given_by_place_or_name(as_torch):
    def f(a, /, b, *rest, c=1, **more):
        return a

    assert importlib.import_module("torch._jit_internal").get_callable_argument_names(f) == ["b"]


@pytest.mark.parametrize("name", ["eig", "lstsq", "matrix_rank", "solve", "symeig"])
def test_functions_that_were_taken_back_say_what_there_is(as_torch, name):
    with pytest.raises(RuntimeError, match=rf"torch\.{name}: This function was deprecated since .* Use linalg\."):
        getattr(as_torch, name)(as_torch.eye(2), as_torch.eye(2))


def test_marks_for_a_compiler_of_bytecode_leave_functions_alone(as_torch):
    assert as_torch._disable_dynamo(abs) is abs and as_torch._disable_dynamo(recursive=False)(abs) is abs
    assert importlib.import_module("torch._compile")._disable_dynamo is as_torch._disable_dynamo
    assert importlib.import_module("torch.ao.nn.qat.modules").__all__ == []  # a module of which there is nothing


def test_arguments_are_chosen_by_their_numbers(as_torch):
    choose = importlib.import_module("torch._functorch.eager_transforms")._slice_argnums
    args = ((0.1, 1.1), 2.0, [3.1])
    assert choose(args, 0) == args[:1] and choose(args, (1, -3)) == (2.0, args[0]) and choose(args, -1, False) == [3.1]
    for wrong, words in ((0.0, "int or Tuple"), ((0.0,), "must be int"), (3, "positional inputs"), ((0, -3), "unique")):
        with pytest.raises(RuntimeError, match=words):
            choose(args, wrong)


def test_where_a_program_stands(as_torch):
    asked = importlib.import_module("torch._C._profiler")
    (frames,) = asked.symbolize_tracebacks([asked.gather_traceback(True, False, False)])
    assert frames[0]["name"] == "test_where_a_program_stands" and frames[0]["filename"] == __file__
    assert frames[0]["line"] > 1 and asked.symbolize_tracebacks([asked.gather_traceback(False, True, True)]) == [[]]
