"""Under the alias: paths of PyTorch without a file here, private modules, and what libraries touch at import."""

import importlib

import pytest

import tinygrad_ext
from tinygrad_ext import as_torch as alias


def test_files_of_pytorch_that_have_another_name_here_are_found(as_torch):
    from torch.distributions.normal import Normal
    from torch.nn.modules.distance import CosineSimilarity

    assert as_torch.distributions.normal.Normal is Normal
    assert Normal is tinygrad_ext.distributions.Normal and CosineSimilarity is tinygrad_ext.nn.CosineSimilarity


def test_files_below_what_is_one_file_here_are_found(as_torch):
    from torch.cuda.amp.autocast_mode import autocast, custom_fwd
    from torch.cuda.amp.grad_scaler import GradScaler
    from torch.signal.windows.windows import hann

    assert (autocast, custom_fwd) == (as_torch.cuda.amp.autocast, as_torch.cuda.amp.custom_fwd)
    assert GradScaler is as_torch.cuda.amp.GradScaler and hann is as_torch.signal.windows.hann
    with pytest.raises(ModuleNotFoundError, match="has no no_such_file there"):
        importlib.import_module("torch.cuda.amp.no_such_file")


@pytest.mark.parametrize("name", sorted(alias.places.STAND_INS))
def test_modules_that_libraries_import_exist_and_refuse_at_use(as_torch, name):
    module = importlib.import_module("torch." + name)
    for key, value in vars(module).items():
        if (getattr(value, "__doc__", None) or "").startswith(("Refused with NotImplementedError", "There is none:")):
            with pytest.raises(NotImplementedError, match=rf"torch\.{name}\.{key}: "):
                value()


def test_private_modules_are_attributes_too(as_torch):
    assert as_torch._C._get_tracing_state() is None and as_torch.version.cuda is None
    assert as_torch._C.add is as_torch.add and not as_torch.distributed.is_initialized()
    with pytest.raises(AttributeError, match="_no_such_name"):
        as_torch._C._no_such_name
    wrapped = as_torch._utils.ExceptionWrapper((ValueError, ValueError("told"), None), "in a worker")
    with pytest.raises(ValueError, match="Caught ValueError in a worker"):
        wrapped.reraise()
    assert as_torch._utils._rebuild_parameter(as_torch.ones(1), False, {}).requires_grad is False
    assert [as_torch._utils._element_size(d) for d in (as_torch.bool, as_torch.complex64)] == [1, 8]
    flat = as_torch._utils._flatten_dense_tensors([as_torch.ones(2), as_torch.zeros(1, 2)])
    assert [t.shape for t in as_torch._utils._unflatten_dense_tensors(flat, [as_torch.ones(2), as_torch.ones(1, 2)])]


def test_devices_that_are_not_here_can_be_asked(as_torch):
    for kind in ("mps", "xpu", "accelerator"):
        module = getattr(as_torch, kind)
        assert module.is_available() is False and module.device_count() == 0 and module.synchronize() is None
    with pytest.raises(RuntimeError, match="there is no xpu here"):
        as_torch.xpu.current_device()
    assert as_torch.accelerator.current_accelerator() is None
    assert as_torch.cpu.is_available() and as_torch.cpu.device_count() == 1 and as_torch.cpu.current_device() == "cpu"
    with as_torch.cpu.stream(as_torch.cpu.current_stream()):
        as_torch.cpu.current_stream().wait_stream(as_torch.cpu.Stream())


def test_the_way_of_attention_can_be_allowed(as_torch):
    from torch.nn.attention import SDPBackend, sdpa_kernel

    q = as_torch.ones(1, 1, 2, 4)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.CUDNN_ATTENTION]):
        assert as_torch.nn.functional.scaled_dot_product_attention(q, q, q).shape == q.shape
    sdpa_kernel(SDPBackend.FLASH_ATTENTION)(lambda: None)()
    with (
        pytest.raises(RuntimeError, match="run.* on the cpu: CUDNN_ATTENTION;"),
        sdpa_kernel(SDPBackend.CUDNN_ATTENTION),
    ):
        pass
    with pytest.raises(AssertionError, match="takes an SDPBackend"), sdpa_kernel("math"):
        pass


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_the_gradients_of_a_convolution_can_be_asked_for(as_torch, rank):
    from torch.nn import grad

    conv = getattr(as_torch.nn.functional, f"conv{rank}d")
    x = as_torch.randn(2, 4, *[6] * rank, dtype=as_torch.float64, requires_grad=True)
    w = as_torch.randn(6, 2, *[3] * rank, dtype=as_torch.float64, requires_grad=True)
    y = conv(x, w, None, 2, 1, 1, 2)
    g = as_torch.randn(*y.shape, dtype=as_torch.float64)
    wanted = as_torch.autograd.grad(y, (x, w), g)
    found = getattr(grad, f"conv{rank}d_input")(x.shape, w, g, 2, 1, 1, 2)
    assert as_torch.allclose(found, wanted[0]) and found.requires_grad
    with as_torch.no_grad():
        found = getattr(grad, f"conv{rank}d_weight")(x, w.shape, g, stride=2, padding=1, groups=2)
    assert as_torch.allclose(found, wanted[1]) and not found.requires_grad


def test_small_helpers_of_libraries(as_torch):
    from torch.nn.common_types import _ratio_2_t, _size_2_t
    from torch.torch_version import TorchVersion
    from torch.utils._contextlib import _DecoratorContextManager, context_decorator
    from torch.utils.data._utils.collate import default_collate
    from torch.utils.dlpack import DLDeviceType, from_dlpack, to_dlpack

    assert int in _size_2_t.__args__ and float in _ratio_2_t.__args__ and TorchVersion("2.10") > TorchVersion("2.9")
    assert default_collate([1, 2]).tolist() == [1, 2]
    t = as_torch.ones(2)
    assert from_dlpack(to_dlpack(t)).data_ptr() == t.data_ptr() and t.__dlpack_device__()[0] == DLDeviceType.kDLCPU

    class Once(_DecoratorContextManager):
        entered = 0

        def __enter__(self):
            Once.entered += 1

        def __exit__(self, *error):
            return None

    twice = Once()(lambda: Once.entered)
    assert (twice(), twice(), context_decorator(Once, lambda: Once.entered)()) == (1, 2, 3)
    with pytest.raises(RuntimeError, match="decorate the methods"):
        context_decorator(Once, Once)


def test_a_model_in_parallel_is_the_model(as_torch):
    from torch.nn.parallel import DataParallel, DistributedDataParallel

    layer = as_torch.nn.Linear(2, 3)
    assert as_torch.equal(DataParallel(layer)(as_torch.ones(1, 2)), layer(as_torch.ones(1, 2)))
    with pytest.raises(ValueError, match="Default process group"):
        DistributedDataParallel(layer)


def test_types_and_functions_that_need_a_gpu_can_be_named(as_torch):
    assert not isinstance(as_torch.ones(2), as_torch.cuda.FloatTensor)
    with pytest.raises(TypeError, match=r"torch\.cuda\.ByteTensor not available"):
        as_torch.cuda.ByteTensor(2)
    with pytest.raises(RuntimeError, match="not compiled with CUDA"):
        as_torch.cuda.Stream()
    with pytest.raises(AssertionError, match="is_available"):
        as_torch.cuda.get_device_properties(0)
    with as_torch.cuda.device(None), as_torch.cuda.stream(None):
        assert as_torch.cuda.get_rng_state_all() == []


def test_names_for_annotations_and_safe_names_are_there(as_torch):
    from torch.serialization import MAP_LOCATION, add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

    assert str in MAP_LOCATION.__args__
    add_safe_globals([dict])
    with safe_globals([list]):
        assert get_safe_globals() == [dict, list]
    assert get_safe_globals() == [dict]
    clear_safe_globals()


def test_a_tensor_takes_the_shape_of_another(as_torch):
    t = as_torch.zeros(2, 3).resize_as_(as_torch.ones(1, 4))
    assert tuple(t.shape) == (1, 4)

    @as_torch.jit.script
    def take(a, b):
        return a.resize_as_(b).copy_(b)

    target = as_torch.zeros(2)
    assert take(target, as_torch.ones(2)).tolist() == target.tolist() == [1, 1]


def test_going_through_the_names_of_optim_finds_every_optimizer(as_torch):
    """As libraries do, without a name being added meanwhile."""
    found = set()
    for name, value in as_torch.optim.__dict__.items():
        if isinstance(value, type) and issubclass(value, as_torch.optim.Optimizer):
            found.add(name if value is not as_torch.optim.LBFGS else "LBFGS")
    assert found >= {"Adam", "SGD", "LBFGS", "Rprop", "Adafactor"}


def test_what_answers_for_a_file_is_an_attribute_of_its_room(as_torch):
    assert as_torch.nn.parallel.DataParallel is as_torch.nn.DataParallel
    assert as_torch.nn.attention.SDPBackend.MATH.value == 0
    assert as_torch.distributions.normal.Normal is as_torch.distributions.Normal


def test_parts_of_stand_ins_are_attributes(as_torch):
    from torch.distributed import device_mesh
    from torch.nn.parallel import scatter_gather

    assert as_torch.distributed.device_mesh is device_mesh and as_torch.nn.parallel.scatter_gather is scatter_gather
    from torch.distributed._composable.fsdp import FSDPModule
    from torch.hub import HASH_REGEX
    from torch.quantization import ObserverBase

    assert as_torch.quantization.ObserverBase is ObserverBase and as_torch.distributed.fsdp.FSDPModule is FSDPModule
    assert HASH_REGEX.search("resnet18-f37072fd.pth").group(1) == "f37072fd"
    with pytest.raises(ModuleNotFoundError, match="no no_such there"):
        importlib.import_module("torch.distributed.fsdp.no_such")
    with pytest.raises(AttributeError, match="no attribute 'no_such'"):
        as_torch.distributed.no_such


def test_what_is_imported_below_a_stand_in_is_found(as_torch):
    from torch._dynamo import config
    from torch.distributed.nn.functional import all_reduce
    from torch.utils._python_dispatch import is_traceable_wrapper_subclass

    assert as_torch.distributed.nn.functional.all_reduce is all_reduce and as_torch._dynamo.config is config
    assert issubclass(as_torch.ao.quantization.ObserverBase, object) and not is_traceable_wrapper_subclass(None)
    assert not isinstance(as_torch.nn.Linear(1, 1), as_torch.ao.quantization.FakeQuantizeBase)


def test_what_a_transform_carries_can_be_told(as_torch):
    from torch._C._functorch import is_batchedtensor, is_functorch_wrapped_tensor

    told = []

    def f(x):
        told.append((is_batchedtensor(x), is_functorch_wrapped_tensor(x)))
        return x * 2

    x = as_torch.ones(2)
    as_torch.vmap(f)(x)
    as_torch.func.jvp(f, (x,), (x,))
    f(x)
    assert told == [(True, True), (False, True), (False, False)]


def test_singular_matrices_are_caught_by_the_private_name(as_torch):
    with pytest.raises(as_torch._C._LinAlgError):
        as_torch.linalg.inv(as_torch.zeros(2, 2))


def test_the_private_question_whether_a_program_is_traced(as_torch):
    told = []

    def f(x):
        told.append(as_torch._C._is_tracing())
        return x * 2

    f(as_torch.ones(2))
    as_torch.jit.trace(f, as_torch.ones(2), check_trace=False)
    assert told == [False, True]


def test_what_a_compiled_program_is_made_of_can_be_asked(as_torch):
    from torch._dynamo import explain

    whole = explain(lambda x: x.sin() + 1)(as_torch.ones(2))
    assert (whole.graph_count, whole.graph_break_count, whole.op_count) == (1, 0, 2)
    assert whole.ops_per_graph == [["aten::sin", "aten::add.Tensor"]] and "1 graph" in str(whole)
    broken = explain(lambda x: x.sin() if x.sum() > 0 else x, as_torch.ones(2))
    assert (broken.graph_count, broken.graph_break_count) == (0, 1)
    assert "reads the elements" in broken.break_reasons[0]
    assert explain(as_torch.nn.Linear(2, 2))(as_torch.ones(2)).op_count == 1


def test_ops_that_take_functions_are_found_by_either_path(as_torch):
    import torch._higher_order_ops as ops
    from torch._higher_order_ops.cond import cond
    from torch._higher_order_ops.while_loop import while_loop

    assert as_torch.cond is ops.cond is cond and as_torch.while_loop is ops.while_loop is while_loop
    assert cond(as_torch.tensor(True), lambda: 1, lambda: 2) == 1


def test_decompositions_are_found_by_ops_and_packets(as_torch):
    from torch import _decomp

    aten = as_torch.ops.aten
    found = _decomp.get_decompositions([aten.gelu, aten.linear.default, aten.sin])
    assert set(found) == {aten.gelu.default, aten.linear.default} <= set(_decomp.core_aten_decompositions())
    table = {}

    @_decomp.register_decomposition([aten.sin], table)
    def sine(self):
        return self.cos()

    assert table == {aten.sin: sine} and aten.sin not in _decomp.decomposition_table


def test_options_of_printing_are_those_of_now(as_torch):
    from torch._tensor_str import PRINT_OPTS

    before = as_torch.get_printoptions()
    as_torch.set_printoptions(precision=2)
    try:
        assert PRINT_OPTS.precision == 2 and PRINT_OPTS.linewidth == before["linewidth"]
        PRINT_OPTS.precision = 3
        assert repr(as_torch.tensor([1.23456])) == "tensor([1.235])"
        PRINT_OPTS.sci_mode = True
        PRINT_OPTS.precision = 1
        assert repr(as_torch.tensor([1.23456])) == "tensor([1.2e+00])"
    finally:
        as_torch.set_printoptions(**before)
    with pytest.raises(AttributeError, match="PRINT_OPTS has precision.*not colour"):
        PRINT_OPTS.colour
    with pytest.raises(AttributeError, match="not colour"):
        PRINT_OPTS.colour = 1


def test_what_a_collate_function_reads_is_there(as_torch):
    from torch.utils.data._utils.collate import default_collate_err_msg_format, np_str_obj_array_pattern

    assert np_str_obj_array_pattern.search("<U5") and not np_str_obj_array_pattern.search("<f4")
    assert default_collate_err_msg_format.format(set).endswith("found <class 'set'>")


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_a_module_gives_the_gradients_of_each_sample(as_torch, reduction):
    from torch.nn.utils._per_sample_grad import call_for_per_sample_grads

    nn = as_torch.nn
    as_torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(2, 4, 3), nn.GroupNorm(2, 4), nn.Flatten(), nn.Linear(16, 3))
    model[0].bias.requires_grad_(False)
    x = as_torch.randn(5, 2, 4, 4)
    result = call_for_per_sample_grads(model, loss_reduction=reduction)(x)
    as_torch.testing.assert_close(result, model(x))
    getattr(result.pow(2).sum(1), reduction)().backward()
    assert not hasattr(model[0].bias, "grad_sample") and model[3].weight.grad is None
    alone = [as_torch.autograd.grad(model(x[i : i + 1]).pow(2).sum(), model[3].weight)[0] for i in range(5)]
    as_torch.testing.assert_close(model[3].weight.grad_sample, as_torch.stack(alone))
    with pytest.raises(RuntimeError, match=r"0\.weight has a grad_sample"):
        call_for_per_sample_grads(model)


def test_samples_of_a_module_may_stand_in_the_second_dimension_and_are_counted(as_torch):
    from torch.nn.utils._per_sample_grad import call_for_per_sample_grads

    layer, x = as_torch.nn.Linear(4, 3), as_torch.randn(6, 5, 4)
    result = call_for_per_sample_grads(layer, batch_first=False)(x)
    as_torch.testing.assert_close(result, layer(x))
    result.sum().backward()
    as_torch.testing.assert_close(layer.weight.grad_sample, x.sum(0)[:, None].expand(5, 3, 4))
    layer = as_torch.nn.Bilinear(4, 4, 3)
    with pytest.raises(RuntimeError, match="batch size 5 and one with batch size 6"):
        call_for_per_sample_grads(layer)(x[0], x[:, 0])
    for bad in ({"batch_size": 0}, {"batch_size": 1.0}, {"loss_reduction": "none"}):
        with pytest.raises(RuntimeError, match="must be|Expected"):
            call_for_per_sample_grads(layer, **bad)
    with pytest.raises(RuntimeError, match="must be nn.Module"):
        call_for_per_sample_grads(x)
    with pytest.raises(RuntimeError, match="Unable to find a tensor"):
        call_for_per_sample_grads(as_torch.nn.Identity())(3)


def test_programs_ask_whether_they_are_written_down(as_torch):
    from torch import _dynamo, compiler

    class Net(as_torch.nn.Module):
        def forward(self, x):
            return x * (compiler.is_compiling() + 2 * compiler.is_exporting() + 4 * _dynamo.is_compiling())

    net, x = Net(), as_torch.ones(1)
    ways = (
        net,
        as_torch.compile(net),
        as_torch.export.export(net, (x,)).module(),
        as_torch.jit.trace(net, x, check_trace=False),
    )
    assert [way(x).item() for way in ways] == [0, 5, 7, 0]


def test_backends_are_functions_of_graph_modules(as_torch):
    from torch._dynamo import exc, list_backends, optimize, register_backend

    seen = []

    @register_backend
    def counting(gm, inputs):
        seen.append(len(inputs))
        return gm.forward

    assert "counting" in list_backends() and "inductor" in as_torch.compiler.list_backends()
    assert optimize("counting", nopython=True)(lambda x: x + 1)(as_torch.ones(1)) == 2 and seen == [1]
    with pytest.raises(exc.BackendCompilerFailed, match="division by zero"):
        as_torch.compile(lambda x: x + 1, backend=lambda gm, inputs: 1 / 0)(as_torch.ones(1))
