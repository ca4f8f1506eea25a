"""Under the alias: names of PyTorch that are not here can be imported, and fail when they are used."""

import enum
import importlib
import os
import subprocess
import sys
import types
from pathlib import Path

import pytest

import tinygrad_ext
from tinygrad_ext.as_torch import absent_names

ROOT = str(Path(tinygrad_ext.__file__).parent.parent)
EIGHT_BITS = """
import sys
from tinygrad_ext import as_torch
as_torch.install()
torch = sys.modules["torch"]
x = torch.tensor([1.0, 2.6, -1000.0, 0.001, float("nan")])
assert torch.finfo(torch.float8_e4m3fn).max == 448 and torch.finfo(torch.float8_e5m2).max == 57344
assert x.to(torch.float8_e5m2).float()[:4].tolist() == [1.0, 2.5, -1024.0, 0.0009765625]
assert torch.zeros(2).to(torch.float8_e4m3fnuz).dtype is torch.float8_e4m3fnuz
"""


def test_what_is_not_here_is_imported_and_fails_at_use(as_torch):
    from torch.distributed.fsdp.fully_sharded_data_parallel import FullyShardedDataParallel
    from torch.package import PackageImporter

    for kind in (FullyShardedDataParallel, PackageImporter):
        assert not isinstance(as_torch.nn.Linear(1, 1), kind) and issubclass(type("Mine", (kind,), {}), kind)
        with pytest.raises(NotImplementedError, match=r"torch\..*: tinygrad_ext has none of this"):
            kind()
    with pytest.raises(NotImplementedError, match=r"torch\.quantize_per_tensor: "):
        as_torch.quantize_per_tensor(as_torch.ones(2), 1.0, 0, as_torch.qint8)
    with pytest.raises(ImportError, match="no_such_name"):
        from torch.nn.modules.batchnorm import no_such_name  # noqa: F401
    with pytest.raises(ModuleNotFoundError, match="has no no_such_module there"):
        importlib.import_module("torch.distributed.no_such_module")


def test_each_kind_of_name_can_be_named(as_torch):
    from torch.fx.node import Target
    from torch.jit.annotations import List

    assert List is __import__("typing").List and Target is __import__("typing").Any
    assert {as_torch.qint32: 1}[as_torch.qint32] == 1 and repr(as_torch.qint32) == "torch.qint32"
    assert as_torch._C.DispatchKey.AutocastCPU.name == "AutocastCPU"
    assert as_torch.Storage is as_torch.FloatStorage and as_torch.Storage([1, 2]).tolist() == [1, 2]
    kinds = as_torch.storage._dtype_to_storage_type_map()
    assert len(kinds) == 12 and all(getattr(as_torch, name).dtype == dtype for dtype, name in kinds.items())
    backend = as_torch._C._ConvBackend
    assert backend.Slow2d in backend and backend.Slow2d != backend.Slow3d
    assert issubclass(as_torch._dynamo.exc.TorchDynamoException, RuntimeError)
    assert not hasattr(as_torch, "no_such_name") and not hasattr(as_torch.ops.aten, "no_such_op")


def test_ranges_of_a_profiler_are_decorators_that_fail_when_they_are_entered(as_torch):
    from torch.cuda import nvtx

    @nvtx.range("step")
    def step():
        raise AssertionError("not reached")

    with pytest.raises(RuntimeError, match="no CUDA"):
        step()
    with pytest.raises(NotImplementedError, match=r"torch\.cuda\.nvtx\.mark: "):
        nvtx.mark("here")


def test_modules_answer_again_once_the_alias_is_back(as_torch):
    from tinygrad_ext.as_torch import install, installed, uninstall

    assert not as_torch.mtia.is_available()
    uninstall()
    try:
        assert not installed()
    finally:
        install(replace=True)
    assert not sys.modules["torch"].mtia.is_available()


@pytest.mark.parametrize("first", ["distributed._composable.fsdp", "distributed.fsdp"])
def test_places_of_one_module_answer_alike_whichever_is_imported_first(first):
    lines = (
        "from tinygrad_ext import as_torch",
        "as_torch.install()",
        f"__import__('torch.{first}')",
        "from torch.distributed.fsdp import CPUOffloadPolicy, FSDPModule",
        "from torch.distributed._composable.fsdp import CPUOffloadPolicy as same",
        "from torch.distributed.tensor.experimental import local_map",
        "assert CPUOffloadPolicy is same",
    )
    program = "; ".join(lines)
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_exceptions_of_modules_that_are_not_here_can_be_caught(as_torch):
    from torch._inductor import exc

    assert issubclass(exc.InductorError, RuntimeError) and issubclass(exc.SomeWarning, UserWarning)
    with pytest.raises(exc.InductorError):
        raise exc.InductorError("told")


def test_overloads_of_pytorchs_write_to_out(as_torch):
    aten, x = as_torch.ops.aten, as_torch.tensor([1.0, float("inf")])
    target = as_torch.empty(2, dtype=as_torch.bool)
    assert aten.isinf.out(x, out=target) is target and target.tolist() == [False, True]
    assert aten.masked_fill.Scalar_out(x, target, 3, out=as_torch.empty(0)).tolist() == [1, 3]
    both = as_torch.empty(()), as_torch.empty(())
    aten.var_mean.correction_out(as_torch.tensor([1.0, 3.0]), out0=both[0], out1=both[1])
    assert [t.item() for t in both] == [2, 2]
    rows = [as_torch.empty(()), as_torch.empty(())]
    assert aten.unbind_copy.int_out(x, out=rows) is None and rows[0] == 1
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype bool, but got float"):
        aten.isinf.out(x, out=as_torch.empty(2))
    with pytest.raises(RuntimeError, match="missing value for argument 'out'"):
        aten.isinf.out(x)
    with pytest.raises(RuntimeError, match="has 2 results, not 1"):
        aten.var_mean.correction_out(x, out=both[0])


def test_overloads_of_pytorchs_call_the_op(as_torch):
    aten, x = as_torch.ops.aten, as_torch.tensor([3.0, 1.0])
    values = aten.sort.values_stable
    assert values is aten.sort.values_stable and values.overloadpacket is aten.sort
    assert values.name() == "aten::sort.values_stable" and values.namespace == "aten"
    assert aten.floor_divide.Scalar(x, 2).tolist() == [1, 0]
    with pytest.raises(AttributeError, match="has no overload 'no_such'"):
        aten.sort.no_such


def test_classes_and_ops_of_compiled_parts_fail_at_use(as_torch):
    with pytest.raises(NotImplementedError, match=r"torch\.ops\.quantized\.linear\.default: "):
        as_torch.ops.quantized.linear.default(as_torch.ones(2))
    assert not hasattr(as_torch.ops, "_no_such_namespace") and not hasattr(as_torch.ops.quantized, "__path__")
    with pytest.raises(RuntimeError, match=r"torch\.classes\.mine\.Thing: there is no such class"):
        as_torch.classes.mine.Thing()
    with pytest.raises(OSError):
        as_torch.classes.load_library("no_such_library.so")
    assert not as_torch.classes.loaded_libraries
    with as_torch.library.Library("symm_mem", "DEF") as library:
        library.define("mine(Tensor x) -> Tensor")
        library.impl("mine", lambda x: x + 1, "CompositeExplicitAutograd")
        assert as_torch.ops.symm_mem.mine(as_torch.ones(1)).item() == 2


def test_ops_that_are_not_here_are_keys_of_tables(as_torch):
    lift_fresh = as_torch.ops.aten.lift_fresh
    assert (
        lift_fresh.default is as_torch.ops.aten.lift_fresh.default
        and {lift_fresh.default: 1}
        and lift_fresh.default.name() == "aten::lift_fresh.default"
    )
    with pytest.raises(NotImplementedError, match=r"torch\.ops\.aten\.lift_fresh\.default: "):
        lift_fresh.default(as_torch.ones(1))


def test_a_library_may_decorate_with_them_while_it_is_imported(as_torch, tmp_path, monkeypatch):
    (tmp_path / "tgx_decorates.py").write_text(
        "import torch\nKEYS = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU) | torch._C.DispatchKeySet(1)\n"
        "@torch.utils.data.functional_datapipe('mine')\nclass Mine:\n    pass\n"
        "@torch.onnx.symbolic_helper.parse_args('v')\ndef symbolic(x):\n    return x\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    made = importlib.import_module("tgx_decorates")
    del sys.modules["tgx_decorates"]
    assert isinstance(made.Mine, type) and made.symbolic(2) == 2
    with pytest.raises(NotImplementedError, match=r"torch\._C\.DispatchKeySet: "):
        made.KEYS()


def test_floats_of_eight_bits_come_when_they_are_asked_for():
    """In a process of its own: a process has room for so many dtypes that are brought."""
    done = subprocess.run(
        [sys.executable, "-c", EIGHT_BITS],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHONPATH": ROOT},
    )
    assert done.returncode == 0, done.stderr


def test_nothing_of_it_is_left_without_the_alias():
    assert not hasattr(tinygrad_ext, "qint32") and not hasattr(tinygrad_ext.ops.aten, "lift_fresh")
    assert not absent_names._filled


def test_the_list_names_nothing_that_is_here(as_torch):
    def is_made(place, name):
        value = getattr(importlib.import_module(f"torch.{place}".rstrip(".")), name)
        return isinstance(value, types.ModuleType) or value is absent_names.make(place, name) or value is None

    for place in ("", "nn", "nn.functional", "optim", "utils.data", "distributions", "linalg"):
        assert all(is_made(place, name) for name in absent_names._listed(place) if not name.startswith("float8")), place


def test_what_stands_in_another_file_here_is_found(as_torch):
    from torch.nn.modules.container import ParameterList
    from torch.nn.modules.loss import TripletMarginLoss
    from torch.utils.data.dataloader import get_worker_info

    assert TripletMarginLoss is as_torch.nn.TripletMarginLoss and ParameterList is as_torch.nn.ParameterList
    assert get_worker_info is as_torch.utils.data.get_worker_info


def test_private_functions_that_libraries_call_do_what_they_say(as_torch):
    from torch.nn.modules.transformer import _get_activation_fn, _get_clones
    from torch.nn.modules.utils import _list_with_default, _ntuple, _reverse_repeat_tuple
    from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present as consume
    from torch.optim import optimizer
    from torch.utils.checkpoint import get_device_states, set_device_states

    assert (
        len(_get_clones(as_torch.nn.Linear(1, 1), 2)) == 2 and _get_activation_fn("relu") is as_torch.nn.functional.relu
    )
    with pytest.raises(RuntimeError, match="relu/gelu"):
        _get_activation_fn("tanh")
    assert _ntuple(2)(3) == (3, 3) and _ntuple(2)([1, 2]) == (1, 2) and _reverse_repeat_tuple((1, 2), 2) == (2, 2, 1, 1)
    assert _list_with_default([None, 3], [1, 2, 5, 6]) == [5, 3] and _list_with_default(4, [1]) == 4
    with pytest.raises(ValueError, match="at least 3"):
        _list_with_default([None, 3], [1, 2])
    state = {"module.a": 1, "b": 2}
    consume(state, "module.")
    assert state == {"a": 1, "b": 2} and set_device_states(*get_device_states(as_torch.ones(1))) is None

    w = as_torch.ones(2, requires_grad=True)
    assert optimizer._default_to_fused_or_foreach([w], False) == (False, False)
    assert optimizer._get_value(as_torch.tensor(2.0)) == 2.0 and optimizer._get_value(3) == 3
    assert optimizer._to_scalar(as_torch.ones(1)).shape == () and optimizer._stack_if_compiling(w) is w
    assert optimizer._get_scalar_dtype() is as_torch.float32 and "cuda" in optimizer._get_capturable_supported_devices()
    pair = [as_torch.ones(2, dtype=as_torch.complex64)]
    optimizer._view_as_real(pair)
    assert pair[0].shape == (2, 2) and optimizer._disable_dynamo_if_unsupported()(consume) is consume
    with pytest.raises(RuntimeError, match="floating point"):
        optimizer._device_dtype_check_for_fused(as_torch.ones(1, dtype=as_torch.int64))

    class Holder:
        defaults = {"differentiable": False}

        @optimizer._use_grad_for_differentiable
        def step(self):
            return as_torch.is_grad_enabled()

    assert not Holder().step()


def test_what_a_module_of_pytorchs_has_from_another_is_found_there(as_torch):
    import warnings

    from torch.fx._symbolic_trace import FunctionType, Tracer, compatibility
    from torch.nn import functional, init
    from torch.nn.modules.conv import _pair, _size_2_t
    from torch.optim import adam, optimizer
    from torch.utils.data import dataloader

    assert init.torch is as_torch and functional.torch is as_torch and functional.warnings is warnings
    assert functional.Tensor is as_torch.Tensor and functional._pair is _pair and _pair(3) == (3, 3) and _size_2_t
    assert adam._get_value is optimizer._get_value and Tracer is as_torch.fx.Tracer
    assert compatibility(is_backward_compatible=True)(len) is len and FunctionType is types.FunctionType
    assert not isinstance(3, dataloader._MultiProcessingDataLoaderIter)


def test_what_modules_have_of_the_overrides_is_theirs(as_torch):
    from torch.functional import has_torch_function

    assert has_torch_function is as_torch.overrides.has_torch_function is as_torch.nn.functional.has_torch_function
    assert as_torch.autograd.handle_torch_function is as_torch.overrides.handle_torch_function
    assert as_torch.nn.parameter._disabled_torch_function_impl is as_torch._C._disabled_torch_function_impl
    assert as_torch.DisableTorchFunctionSubclass is as_torch._C.DisableTorchFunctionSubclass


def test_arguments_of_to_are_read_as_there(as_torch):
    from torch._C import _nn

    read, cpu = _nn._parse_to, as_torch.device("cpu")
    assert read("cpu") == (cpu, None, False, None) and read() == (None, None, False, None)
    assert read(as_torch.ones(1, dtype=as_torch.float64)) == (cpu, as_torch.float64, False, None)
    assert read(as_torch.float16, True) == (None, as_torch.float16, True, None)
    assert read(memory_format=as_torch.channels_last) == (None, None, False, as_torch.channels_last)
    assert _nn.gelu is as_torch.nn.functional.gelu and as_torch._C._nn is _nn
    with pytest.raises(AttributeError, match=r"torch\._C\._nn"):
        _nn.nothing_of_this_name


def test_what_compile_makes_is_an_optimized_module(as_torch):
    from torch._dynamo.eval_frame import OptimizedModule

    assert isinstance(as_torch.compile(as_torch.nn.Linear(2, 2)), OptimizedModule)
    assert not isinstance(as_torch.nn.Linear(2, 2), as_torch._dynamo.OptimizedModule)


def test_a_subclass_that_switches_overrides_off_is_used_as_a_tensor(as_torch):
    class Plain(as_torch.Tensor):
        __torch_function__ = as_torch._C._disabled_torch_function_impl

    t = as_torch.ones(2, 3).as_subclass(Plain)
    assert t.numel() == 6 and t.size() == (2, 3) and t.device.type == "cpu"
    results = [t + 1, t[0], as_torch.cat([t, t]), t.sum(), as_torch.ones(2, 3) + t, as_torch.nn.functional.linear(t, t)]
    assert all(type(result) is as_torch.Tensor for result in results)


def test_a_private_class_can_be_changed_while_a_library_is_imported(as_torch, tmp_path, monkeypatch):
    (tmp_path / "changes_a_class.py").write_text(
        "from torch._dynamo.variables.higher_order_ops import TorchHigherOrderOperatorVariable as V\n"
        "before = V.make\n"
        "V.make = classmethod(lambda cls: 3)\n"
        "made = V.make()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import changes_a_class

    assert changes_a_class.made == 3
    with pytest.raises(AttributeError, match="type object 'TorchHigherOrderOperatorVariable' has no attribute 'other'"):
        changes_a_class.V.other
    with pytest.raises(NotImplementedError):
        changes_a_class.before(1)
    monkeypatch.delitem(sys.modules, "changes_a_class")


def test_absent_functions_that_ask_say_no_of_nothing_alone(as_torch):
    from tinygrad_ext.as_torch.stand_ins import absent

    for name in ("has_triton", "_has_part", "is_available", "part_available"):
        assert absent.function(name, "it is not here")() is False
    for call in (
        lambda: absent.function("_has_storage", "no")(3),
        lambda: absent.function("raise_if_unavailable", "no")(),
    ):
        with pytest.raises(NotImplementedError):
            call()


@pytest.mark.parametrize("name", ("BackwardPrefetch", "ShardingStrategy", "StateDictType"))
def test_an_enumeration_is_one_under_all_its_paths(as_torch, name):
    import torch.distributed.fsdp as package
    from torch.distributed.fsdp import api, fully_sharded_data_parallel

    found = getattr(package, name)
    assert found is getattr(api, name) is getattr(fully_sharded_data_parallel, name)
    assert list(found) and issubclass(found, enum.Enum)
