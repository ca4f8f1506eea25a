"""Cases of compiled extensions. Importing it adds them to the table.

The op of eight numbers is compiled for each library by its own means: `load_inline` of ours and of PyTorch (which takes
a minute, once), a plain library for tvm-ffi. roi_align is timed beside the same loops in plain C, a pointwise op of a
plugin beside the built-in one with the same formula.
"""

import functools
import importlib.util
import subprocess
import tempfile
from pathlib import Path

from benchmarks.cases import case

HERE = Path(__file__).parent
OURS = """
static int twice(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    tgx_view x, y;
    if (tgx->view(c, in[0].u.t, &x) || (out[0].u.t = tgx->empty_like(c, in[0].u.t, 0)) == NULL) return -1;
    out[0].tag = TGX_TENSOR;
    if (tgx->view_mut(c, out[0].u.t, &y)) return -1;
    for (int64_t i = 0, count = tgx_count(&x); i < count; i++) ((float *)y.data)[i] = 2 * ((float *)x.data)[i];
    return 0;
}
static int back(tgx_ctx *c, tgx_node *node, void *s, tgx_tensor *const *grads, int32_t n, tgx_tensor **inputs,
                int32_t m) {
    tgx_value in = tgx_of_tensor(grads[0]), out = {TGX_NONE, 0, {0}};
    if (twice(c, NULL, &in, 1, &out, 1)) return -1;
    inputs[0] = out.u.t;
    return 0;
}
static int init(tgx_ctx *c) {
    return tgx->register_op(c, &TGX_OP(.schema = "bench_c::twice(Tensor x) -> Tensor", .kernel = twice,
                                       .backward = back));
}
TGX_EXTENSION("bench_c", "1", init)
"""
TORCH = """
#include <torch/extension.h>
static torch::Tensor loop(const torch::Tensor &x) {
    torch::Tensor y = torch::empty_like(x);
    const float *from = x.data_ptr<float>();
    float *to = y.data_ptr<float>();
    for (int64_t i = 0, count = x.numel(); i < count; i++) to[i] = 2 * from[i];
    return y;
}
struct Twice : public torch::autograd::Function<Twice> {
    static torch::Tensor forward(torch::autograd::AutogradContext *, torch::Tensor x) { return loop(x); }
    static torch::autograd::variable_list backward(torch::autograd::AutogradContext *,
                                                   torch::autograd::variable_list grads) {
        return {loop(grads[0])};
    }
};
static torch::Tensor recorded(const torch::Tensor &x) { return Twice::apply(x); }
TORCH_LIBRARY(bench_c, m) { m.def("twice(Tensor x) -> Tensor"); }
TORCH_LIBRARY_IMPL(bench_c, CPU, m) { m.impl("twice", &loop); }
TORCH_LIBRARY_IMPL(bench_c, Autograd, m) { m.impl("twice", &recorded); }
"""
TVM = """
#include <tvm/ffi/c_api.h>
static DLTensor *tensor(const TVMFFIAny *a) {
    if (a->type_index == kTVMFFIDLTensorPtr) return (DLTensor *)a->v_ptr;
    return (DLTensor *)((char *)a->v_obj + sizeof(TVMFFIObject));
}
TVM_FFI_DLL_EXPORT int __tvm_ffi_twice(void *self, const TVMFFIAny *args, int32_t n, TVMFFIAny *result) {
    DLTensor *x = tensor(&args[0]), *y = tensor(&args[1]);
    for (int64_t i = 0; i < x->shape[0]; i++) ((float *)y->data)[i] = 2 * ((float *)x->data)[i];
    result->type_index = kTVMFFINone;
    return 0;
}
"""
LOOPS = """
def register_all(register):
    register(
        "bench_loops::add(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        scalar={"alpha == 1": "x + y", "else": "x + alpha * y"},
        types="int float half complex",
    )
"""


@functools.cache
def _folder():
    return Path(tempfile.mkdtemp(prefix="tinygrad_ext-bench-"))


@functools.cache
def _twice(name):
    """The op of a library, compiled."""
    if name == "tinygrad_ext":
        import tinygrad_ext as tg
        from tinygrad_ext.utils import cpp_extension

        cpp_extension.load_inline("bench_c", c_sources=OURS)
        return tg.ops.bench_c.twice
    if name == "torch":
        import torch
        from torch.utils import cpp_extension

        cpp_extension.load_inline("bench_c", TORCH, is_python_module=False)
        return torch.ops.bench_c.twice
    import tvm_ffi
    from tvm_ffi import libinfo

    source, library = _folder() / "tvm.c", _folder() / "tvm.so"
    source.write_text(TVM)
    include = [f"-I{p}" for p in (libinfo.find_include_path(), libinfo.find_dlpack_include_path())]
    words = ["cc", "-O2", "-shared", "-fPIC", *include, str(source), str(libinfo.find_libtvm_ffi()), "-o", str(library)]
    subprocess.run(words, check=True)
    return tvm_ffi.load_module(str(library)).twice


@case("op of 8 floats in C", "extensions", 0.07, also=("tvm_ffi",))  # 0.20 us, where PyTorch's op takes 2.9
def _plain(lib, draw):
    f = _twice(lib.name)
    if lib.name == "tvm_ffi":  # it makes no results: a tensor of ours and one to fill
        import tinygrad_ext as tg

        x, y = tg.ones(8), tg.empty(8)
        return lambda: f(x, y)
    x = draw(lib, 8)
    return lambda: f(x)


@case("op of 8 floats in C, with grad", "extensions", 0.10)  # 0.35 us to 3.5
def _recorded(lib, draw):
    f, x = _twice(lib.name), draw(lib, 8, grad=True)
    return lambda: f(x)


@case("op of 8 floats in C, forward and backward", "extensions", 0.10)  # 1.2 us
def _both(lib, draw):
    f, x, grad = _twice(lib.name), draw(lib, 8, grad=True), lib.module.autograd.grad
    seed = draw(lib, 8)
    return lambda: grad(f(x), x, seed)


# ---- roi_align beside plain C --------------------------------------------------------------------------------------


@functools.cache
def _against_c():
    """plugins/vision/benchmarks/against_c.py, and its C compiled."""
    path = HERE.parent / "plugins" / "vision" / "benchmarks" / "against_c.py"
    spec = importlib.util.spec_from_file_location("against_c", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, module.compiled()


@functools.cache
def _regions():
    """{direction: (ours, plain C)}, both over the same memory, which stays as long as this is remembered."""
    module, library = _against_c()
    return module.calls(library, *module.CASES["a detector's head"])


def _region(direction):
    def build(lib, draw):
        if lib.name == "torch":
            raise NotImplementedError("roi_align is not PyTorch's own")
        return _regions()[direction][lib.name == "c"]

    return build


for direction in ("forward", "backward"):
    case(f"roi_align {direction}, 64 x 50 x 68, 100 regions, to C", "extensions", 1.05, also=("c",), beside="c")(
        _region(direction)
    )


# ---- a plugin's pointwise op in a graph ----------------------------------------------------------------------------


@functools.cache
def _add():
    """An op with the formula of add, as a plugin brings it."""
    import tinygrad_ext as tg
    from tinygrad_ext.registry import scope
    from tinygrad_ext.registry.op_registrar import OpRegistrar
    from tinygrad_ext.utils import cpp_extension

    source, path = _folder() / "bench_loops.py", _folder() / "_loops.so"
    source.write_text(LOOPS)
    e = cpp_extension.PointwiseExtension("_loops", [source], folder=_folder() / "loops")
    words = [
        "cc",
        "-shared",
        "-fPIC",
        *e.extra_compile_args,
        f"-I{e.include_dirs[0]}",
        *e.sources,
        "-lm",
        "-o",
        str(path),
    ]
    subprocess.run(words, check=True)
    register, names = OpRegistrar(scope.application), {}
    exec(LOOPS, names)
    register.loops(path)
    names["register_all"](register)
    register.finish()
    return tg.ops.bench_loops.add


def _chain(count):
    def build(lib, draw):
        tg, x = lib.module, draw(lib, count)
        add = _add() if lib.name == "tinygrad_ext" else tg.add
        step = tg.jit.trace(lambda x: add(add(x * x, x).exp(), x, alpha=2) * 2 - x, (x,))
        return lambda: step(x)

    return build


for count in (1000, 100_000):
    case(
        f"graph with a plugin's pointwise op, {count:,}, to built-in",
        "extensions",
        1.05,
        also=("built-in",),
        beside="built-in",
    )(_chain(count))
