"""Under the alias: what libraries and scripts write at the top of their files, and calls that change nothing here."""

import pytest

STATEMENTS = [
    "import torch.onnx; torch.onnx.is_in_onnx_export()",
    "import torch.onnx.symbolic_helper as sh; sh._get_tensor_rank",
    'from torch.onnx import register_custom_op_symbolic; register_custom_op_symbolic("my::op", lambda g,x: x, 9)',
    "from torch.onnx import symbolic_opset9, utils",
    "@torch.jit.ignore\ndef f(x): return x",
    "from torch.jit import _overload_method",
    "@torch.jit.script_if_tracing\ndef f(x): return x",
    "torch.fx.wrap('len')",
    "import torch._dynamo; torch._dynamo.config.cache_size_limit=64",
    "torch._dynamo.config.suppress_errors=True; torch._dynamo.reset()",
    "@torch._dynamo.disable\ndef f(x): return x",
    "@torch.compiler.disable(recursive=False)\ndef f(x): return x",
    "@torch._dynamo.allow_in_graph\ndef f(x): return x",
    "import torch._inductor.config as c; c.triton.cudagraphs=True",
    "import torch._inductor.config; torch._inductor.config.coordinate_descent_tuning=True",
    "torch.backends.cudnn.benchmark=True; torch.backends.cuda.matmul.allow_tf32=True",
    "torch.backends.cudnn.deterministic=True; torch.backends.cudnn.allow_tf32=True",
    "torch.backends.cuda.enable_flash_sdp(True); torch.backends.cuda.sdp_kernel",
    "with torch.backends.cuda.sdp_kernel(enable_flash=True): pass",
    "with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH): pass",
    "from torch.autograd.function import once_differentiable, InplaceFunction, FunctionCtx, NestedIOFunction",
    "from torch.library import impl_abstract, register_fake, register_autograd, register_kernel, Library",
    "from torch.library import define, impl, triton_op, wrap_triton, custom_op, infer_schema",
    "from torch.utils.data import functional_datapipe, IterDataPipe, MapDataPipe",
    "from torch.utils.data import IterDataPipe\nclass D(IterDataPipe):\n    def __iter__(self): yield 1",
    '@torch.profiler.record_function("x")\ndef f(x): return x\nf(1)',
    '@torch.autograd.profiler.record_function("x")\ndef f(x): return x\nf(1)',
    'torch._C._log_api_usage_once("x")',
    'torch.multiprocessing.set_sharing_strategy("file_system")',
    "torch.ops.load_library",
    "from torch.overrides import wrap_torch_function, get_testing_overrides, get_ignored_functions",
    "from torch.overrides import is_tensor_method_or_property, resolve_name",
    "from torch.testing import make_tensor, assert_close",
    "from torch.distributed import ReduceOp, init_process_group, is_available, barrier",
    "from torch.distributed.optim import ZeroRedundancyOptimizer",
    "from torch.distributed.fsdp import FullyShardedDataParallel",
    "from torch.distributed.algorithms.join import Join",
    "from torch.nn.parallel import DistributedDataParallel",
    "from torch.nn.parallel.distributed import DistributedDataParallel",
    "from torch.nn.parallel.data_parallel import DataParallel",
    "from torch.nn.parallel.replicate import replicate",
    "from torch.nn.parallel.parallel_apply import parallel_apply",
    "from torch.nn.parallel._functions import Scatter, Gather, Broadcast",
    "from torch.nn.modules.batchnorm import _BatchNorm, _NormBase, SyncBatchNorm",
    "from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd, _ConvTransposeMixin",
    "from torch.nn.modules.utils import _pair, _ntuple, _reverse_repeat_tuple, _list_with_default",
    "from torch.nn.modules.module import _addindent, _global_forward_hooks, _EXTRA_STATE_KEY_SUFFIX",
    "from torch.nn.modules.module import _IncompatibleKeys",
    "from torch.nn.modules.linear import NonDynamicallyQuantizableLinear",
    "from torch.nn.modules.transformer import _get_activation_fn, _get_clones",
    "from torch.nn.init import _calculate_correct_fan, _calculate_fan_in_and_fan_out, _no_grad_trunc_normal_",
    "from torch.nn.utils import clip_grad_norm_, fuse_conv_bn_eval, parametrize",
    "from torch.nn.utils.rnn import PackedSequence, pad_sequence, unpad_sequence",
    "from torch.nn.utils.fusion import fuse_linear_bn_eval",
    "from torch.optim._functional import adam as F_adam",
    "from torch.optim.swa_utils import AveragedModel, SWALR, update_bn",
    "from torch._utils import _unflatten_dense_tensors, _flatten_dense_tensors, _take_tensors",
    "from torch.utils._pytree import tree_map, tree_flatten, tree_map_only, _register_pytree_node",
    "from torch.utils._pytree import register_pytree_node, TreeSpec, LeafSpec, tree_iter, tree_leaves",
    "from torch.utils._pytree import tree_all_only",
    "from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode",
    "from torch.utils.weak import WeakTensorKeyDictionary, WeakIdKeyDictionary",
    "from torch.utils.hooks import RemovableHandle",
    "from torch.utils.checkpoint import checkpoint, checkpoint_sequential",
    "from torch.utils.checkpoint import create_selective_checkpoint_contexts, CheckpointPolicy",
    "from torch.utils.checkpoint import noop_context_fn, get_device_states, set_device_states",
    "from torch.hub import load_state_dict_from_url, download_url_to_file, get_dir, tqdm",
    "from torch.cuda.amp import autocast, GradScaler",
    "@torch.cuda.amp.autocast(enabled=False)\ndef f(x): return x\nf(1)",
    '@torch.autocast("cuda",enabled=False)\ndef f(x): return x\nf(1)',
    "from torch.cuda import nvtx, Stream, Event, synchronize",
    'torch.set_float32_matmul_precision("high"); torch.use_deterministic_algorithms(False)',
    "torch.autograd.set_detect_anomaly(False)",
    'torch.set_printoptions(precision=3, sci_mode=False); torch.set_printoptions(profile="default")',
    "from torch.func import functional_call, vmap, grad, jacrev, jacfwd, hessian, stack_module_state",
    "from torch.func import linearize, functionalize",
    "from torch.export import export, Dim, ExportedProgram, ShapesCollection, save, load, register_dataclass",
    "from torch.ao.quantization import QuantStub, DeQuantStub, fuse_modules, get_default_qconfig, prepare, convert",
    "nn.Sequential(torch.ao.quantization.QuantStub(), nn.Linear(1,1))",
    "torch.quantization.quantize_dynamic",
    "from torch.nn.quantized import FloatFunctional\nFloatFunctional().add(torch.ones(1),torch.ones(1))",
    "from torch.ao.nn.quantized import FloatFunctional",
    "nn.quantized.FloatFunctional().add(torch.ones(1),torch.ones(1))",
    "from torch.fx import Tracer, GraphModule, Node, Proxy, Interpreter, symbolic_trace",
    "from torch.fx.experimental.optimization import fuse",
    "from torch.fx.experimental.proxy_tensor import make_fx",
    "from torch.fx.passes.shape_prop import ShapeProp",
    "from torch.fx.passes.split_module import split_module",
    "from torch.futures import Future, wait_all, collect_all",
    "from torch.package import PackageExporter",
    "from torch.special import expit",
    "from torch.types import Number, Device, _dtype, _size, _int, _float",
    "from torch import Tensor, BoolTensor, LongTensor, FloatTensor, ByteTensor",
    "from torch.storage import _StorageBase, UntypedStorage, TypedStorage",
    "from torch import device, dtype, Size, memory_format, layout",
    'from torch.torch_version import TorchVersion\nTorchVersion("2.1")>(1,10)',
    "torch.__version__ >= (1,10)",
    "torch.version.cuda; torch.version.git_version; torch.version.hip; torch.version.debug",
    "torch.get_num_interop_threads(); torch.get_num_threads(); torch.__config__.show()",
    "torch.__config__.parallel_info()",
    "torch._C._get_privateuse1_backend_name()",
    "torch._C._jit_set_profiling_mode(False); torch._C._jit_set_profiling_executor(False)",
    "torch._C._jit_override_can_fuse_on_cpu(True)",
    "torch._C._set_graph_executor_optimize(False)",
    'torch.jit.set_fusion_strategy([("STATIC",2)]); torch.jit.enable_onednn_fusion(True)',
    'torch.jit.fuser("fuser1")',
    "with torch.jit.optimized_execution(True): pass",
    'torch._assert(True,"x"); torch._check(True, lambda: "x"); torch._check_is_size(3)',
    "torch._foreach_norm([torch.ones(2)]); torch._foreach_add_([torch.ones(2)],1)",
    "torch._foreach_mul([torch.ones(2)],2.)",
    'torch.is_autocast_enabled("cuda"); torch.get_autocast_gpu_dtype(); torch.is_autocast_cpu_enabled()',
    'torch.get_autocast_dtype("cuda")',
    'torch.amp.is_autocast_available("cuda")',
    "torch.autograd.graph.save_on_cpu(); torch.autograd.graph.saved_tensors_hooks(lambda x:x, lambda x:x)",
    "torch.autograd.graph.Node; torch.autograd.graph.GradientEdge",
    "torch.autograd.graph.get_gradient_edge(torch.ones(1,requires_grad=True)*2)",
    'torch.autograd.graph.increment_version(torch.ones(1)); torch.autograd.graph.disable_saved_tensors_hooks("x")',
    "torch.autograd.functional.jacobian(lambda x:x, torch.ones(2)); torch.autograd.functional.hvp",
    "from torch.autograd.profiler_util import FunctionEvent, EventList",
    "with torch.profiler.profile(schedule=torch.profiler.schedule(wait=1,warmup=1,active=1)) as p: p.step()",
    "torch.profiler.ProfilerActivity.CPU; torch.profiler.tensorboard_trace_handler",
    "torch.manual_seed(0); torch.random.fork_rng(); torch.get_rng_state(); torch.default_generator.initial_seed()",
    "torch.compiler.is_compiling(); torch.compiler.is_dynamo_compiling(); torch.compiler.reset()",
    'torch.compiler.cudagraph_mark_step_begin(); torch.compiler.set_stance("default")',
    '@torch.compile(mode="reduce-overhead",dynamic=True)\ndef f(x): return x+1\nf(torch.ones(2))',
    "torch._dynamo.mark_dynamic(torch.ones(2),0); torch._dynamo.mark_static(torch.ones(2))",
    "torch._dynamo.graph_break(); torch._dynamo.is_compiling()",
    'torch._dynamo.optimize("eager")(lambda x:x)(torch.ones(1))',
    "torch._dynamo.explain(lambda x: x+1)(torch.ones(2))",
    "torch._logging.set_logs(dynamo=10)",
    'with torch.device("meta"): nn.Linear(2,2)',
    "torch.nn.utils.skip_init(nn.Linear,2,2)",
    'nn.Module().to_empty(device="cpu"); nn.Module().compile()',
    "nn.Linear(2,2).register_full_backward_pre_hook(lambda *a:None)",
    "nn.modules.module.register_module_full_backward_hook(lambda *a:None).remove()",
    "nn.Linear(2,2).register_state_dict_pre_hook(lambda *a:None)",
    "nn.Linear(2,2).register_load_state_dict_post_hook(lambda *a:None)",
    "nn.Linear(2,2)._register_load_state_dict_pre_hook(lambda *a:None, with_module=True)",
    "nn.Linear(2,2)._register_state_dict_hook(lambda *a:None)",
    "nn.Linear(2,2)._replicate_for_data_parallel(); nn.Linear(2,2)._get_name(); nn.Linear(2,2)._apply(lambda t:t)",
    "from torch.optim.lr_scheduler import EPOCH_DEPRECATION_WARNING, LRScheduler",
    "from torch.utils.flop_counter import FlopCounterMode, register_flop_formula, flop_registry",
    "from torch._library.infer_schema import infer_schema; infer_schema.__call__",
    "from torch._library.custom_ops import custom_op, CustomOpDef",
    "from torch._inductor.decomposition import register_decomposition\n@register_decomposition([])\ndef f(x): return x",
    "from torch.jit._state import _enabled\nassert bool(_enabled) and _enabled.enabled",
    "from torch.utils._triton import has_triton; assert has_triton() is False",
    "assert not torch.mtia.is_available() and torch.mtia.device_count() == 0",
    "torch.classes.loaded_libraries; torch.classes.my_classes",
    "{torch.ops.aten.to.dtype_layout: 1, torch.ops.quantized.linear.default: 2, torch.ops.c10d.scatter_.default: 3}",
    "try: pass\nexcept (torch._inductor.exc.InductorError, torch._dynamo.exc.Unsupported): pass",
    "import torch.utils.data.dataloader as d; d._BaseDataLoaderIter, d._MultiProcessingDataLoaderIter",
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("statement", STATEMENTS)
def test_runs(as_torch, switches_put_back, statement):
    exec(compile(statement, "a_library.py", "exec"), {"torch": as_torch, "nn": as_torch.nn})


def test_models_that_are_prepared_for_quantization_run_in_floats(as_torch):
    from torch.ao.quantization import DeQuantStub, QuantStub, QuantWrapper
    from torch.nn.quantized import FloatFunctional

    x, y = as_torch.tensor([-1.0, 2.0]), as_torch.tensor([3.0, -4.0])
    model = as_torch.nn.Sequential(QuantStub(), as_torch.nn.ReLU(), DeQuantStub())
    assert model(x).tolist() == [0, 2] == QuantWrapper(as_torch.nn.ReLU())(x).tolist()
    calls = FloatFunctional()
    assert calls.add(x, y).tolist() == [2, -2] and calls.add_relu(x, y).tolist() == [2, 0]
    assert calls.mul_scalar(x, 2).tolist() == [-2, 4] and calls.cat([x, y]).tolist() == [-1, 2, 3, -4]
    assert calls.matmul(x, y).item() == -11 and [*calls.state_dict()] == []
    with pytest.raises(RuntimeError, match="not intended to use the 'forward'"):
        calls(x)


def test_switches_of_attention_are_put_back(as_torch):
    switches = as_torch.backends.cuda
    with switches.sdp_kernel(enable_flash=False, enable_math=False):
        assert not switches.flash_sdp_enabled() and switches.mem_efficient_sdp_enabled()
    assert switches.flash_sdp_enabled() and switches.math_sdp_enabled()


def test_modules_say_what_a_star_brings(as_torch):
    from torch.nn import init
    from torch.optim import optimizer

    assert {"ones", "tensor", "float32", "FloatTensor", "no_grad"} <= set(as_torch.__all__)
    assert not {"nn", "linalg", "sys"} & set(as_torch.__all__) and not any(n.startswith("_") for n in as_torch.__all__)
    assert "kaiming_uniform_" in init.__all__ and "Optimizer" in optimizer.__all__
    held = {}
    exec("from torch import *", held)
    assert held["FloatTensor"] is as_torch.FloatTensor and "nn" not in held


def test_limits_of_captures_are_lifted_in_a_block(as_torch):
    from torch._dynamo.utils import disable_cache_limit

    kept = as_torch._dynamo.config.recompile_limit
    with disable_cache_limit():
        assert as_torch._dynamo.config.recompile_limit > kept
    assert as_torch._dynamo.config.recompile_limit == kept


def test_options_of_printing_hold_for_a_block(as_torch):
    from torch._tensor_str import printoptions

    with printoptions(precision=2):
        assert repr(as_torch.tensor([0.12345])) == "tensor([0.12])"
    assert repr(as_torch.tensor([0.12345])) == "tensor([0.1235])"


def test_older_questions_for_parts_are_answered(as_torch):
    assert [getattr(as_torch, f"has_{part}") for part in ("cuda", "cudnn", "mkldnn", "mps")] == [False] * 4
