"""Module paths of PyTorch that have no file here, and which module of ours answers for each.

The rooms have PyTorch's names themselves. Listed are single files of PyTorch whose contents stand in a file of another
name, and modules of which libraries touch a few names at import: those are in `stand_ins`.
"""

from tinygrad_ext.errors.moved_files import MOVED

STAND_INS = frozenset(
    [
        "__config__",
        "__future__",
        "_C",
        "_C._autograd",
        "_C._functions",
        "_C._functorch",
        "_C._nn",
        "_C._profiler",
        "_VF",
        "_decomp",
        "_dynamo",
        "_dynamo.config",
        "_dynamo.exc",
        "_guards",
        "_inductor",
        "_inductor.config",
        "_jit_internal",
        "_ops",
        "_prims.context",
        "_prims_common",
        "_tensor",
        "_tensor_str",
        "_utils",
        "_vmap_internals",
        "accelerator",
        "_logging",
        "ao",
        "ao.nn.quantized",
        "ao.quantization",
        "classes",
        "compiler",
        "cpu",
        "distributed",
        "distributed.device_mesh",
        "distributed.distributed_c10d",
        "distributed.fsdp",
        "distributed.nn",
        "distributed.nn.functional",
        "distributed.rpc",
        "distributed.tensor",
        "functional",
        "hub",
        "mps",
        "nn.common_types",
        "nn.grad",
        "nn.parallel",
        "nn.parallel.distributed",
        "nn.parallel.scatter_gather",
        "nn.utils._per_sample_grad",
        "onnx",
        "storage",
        "testing._comparison",
        "testing._internal.common_utils",
        "torch_version",
        "types",
        "utils._contextlib",
        "utils._import_utils",
        "utils._python_dispatch",
        "utils.data._utils",
        "utils.data._utils.collate",
        "utils.data._utils.worker",
        "utils.dlpack",
        "utils.model_zoo",
        "version",
        "xpu",
    ]
)


# further places in PyTorch of what stands in one
ALIKE = {
    "_inductor.decomposition": "_decomp",
    "_prims.utils": "_prims_common",
    "_prims_common.wrappers": "_prims_common",
    "testing._utils": "testing._internal.common_utils",
    "ao.nn.quantized.modules": "ao.nn.quantized",
    "ao.nn.quantized.modules.functional_modules": "ao.nn.quantized",
    "distributed._composable": "distributed.fsdp",
    "distributed._composable.fsdp": "distributed.fsdp",
    "distributed._tensor": "distributed.tensor",
    "distributed._tensor.experimental": "distributed.tensor",
    "distributed.tensor.experimental": "distributed.tensor",
    "nn.quantized": "ao.nn.quantized",
    "nn.quantized.modules": "ao.nn.quantized",
    "quantization": "ao.quantization",
}
# what an import asks for below a place makes that a package, though its answer is one file
PACKAGES = frozenset(name.rpartition(".")[0] for name in (*STAND_INS, *ALIKE, *MOVED))


def answers(name):
    """What stands for a module path, both without the package's name in front; None where nothing does."""
    name = ALIKE.get(name, name)
    if name in STAND_INS:
        return "as_torch.stand_ins." + name.replace(".", "_")
    return MOVED.get(name)
