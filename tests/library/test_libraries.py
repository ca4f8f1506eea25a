"""Library and the functions that go by an op's name: definition, kernels, ownership, what is refused."""

import pickle

import pytest

import tinygrad_ext as tg
from tinygrad_ext import Tensor, library, ops, registry
from tinygrad_ext.autograd import gradcheck
from tinygrad_ext.library import Library, Tag

try:
    import torch
except ImportError:
    torch = None


def test_define_and_impl():
    lib = Library("t", "DEF")
    assert lib.define("scale(Tensor x, *, float k=2.0) -> Tensor") == "scale"
    with pytest.raises(NotImplementedError, match="t::scale: there is no kernel for .*; the op has been declared only"):
        ops.t.scale(tg.ones(1))
    lib.impl("scale", lambda x, *, k: x * k, "CPU")
    assert ops.t.scale(tg.ones(1)).item() == 2 and ops.t.scale(tg.ones(1), k=5).item() == 5
    assert repr(lib) == "Library(kind=DEF, ns=t)"


def test_a_composite_is_differentiated_by_its_ops_and_runs_on_meta():
    lib = Library("t", "FRAGMENT")
    lib.define("row(Tensor(a) x) -> Tensor(a)")
    lib.impl("row", lambda x: x[0])
    x = tg.ones(2, 3, dtype=tg.float64, requires_grad=True)
    assert ops.t.row(x)._is_view() and gradcheck(ops.t.row, (x,))
    assert ops.t.row(tg.ones(2, 3, device="meta")).shape == (3,)


@pytest.mark.parametrize("key", ["CompositeExplicitAutograd", "CPU", "cpu", "default"])
def test_kernels_go_by_pytorchs_keys(key):
    lib = Library("t", "FRAGMENT")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x * 2, key)
    lib.impl(ops.t.twice.default, lambda x: tg.empty_like(x), "Meta")
    assert ops.t.twice(tg.ones(1)).item() == 2 and ops.t.twice(tg.ones(1, device="meta")).is_meta
    x = tg.ones(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="no autograd formula"):
        ops.t.twice(x).backward()


def test_a_kernel_for_the_device_comes_before_a_composite():
    lib = Library("t", "FRAGMENT")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x * 2)
    lib.impl("twice", lambda x: x * 200, "CPU")
    assert ops.t.twice(tg.ones(1)).item() == 200


@pytest.mark.parametrize(
    "key, message",
    [
        ("Autograd", "library.register_autograd"),
        ("AutogradCPU", "library.register_autograd"),
        ("ADInplaceOrView", "library.register_autograd"),
        ("FuncTorchBatched", "Known are"),
        ("SparseCPU", "Known are"),
        ("CUDAish", "Known are"),
    ],
)
def test_keys_without_a_meaning_are_refused(key, message):
    lib = Library("t", "FRAGMENT")
    lib.define("twice(Tensor x) -> Tensor")
    with pytest.raises(NotImplementedError, match=f"no dispatch key '{key}' here.*{message}"):
        lib.impl("twice", lambda x: x, key)


@pytest.mark.parametrize(
    "key",
    [
        "AutocastCUDA",
        "AutogradCUDA",
        "AutogradXPU",
        "SparseCUDA",
        "SparseCsrCUDA",
        "QuantizedCPU",
        "NestedTensorCPU",
        "HIP",
    ],
)
def test_kernels_for_tensors_that_are_not_here_are_never_called(key):
    lib = Library("t", "FRAGMENT")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x * 2, "CPU")
    lib.impl("twice", lambda x: x * 200, key)
    library.impl("t::twice", key, lambda x: x * 300) if not key.startswith("Autocast") else None
    with tg.autocast("cpu"):
        assert ops.t.twice(tg.ones(1)).item() == 2
    assert ops.t.twice(tg.ones(1)).item() == 2


def test_a_fallthrough_kernel_is_none():
    lib = Library("t", "FRAGMENT")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", library.fallthrough_kernel, "CPU")
    lib.impl("twice", library.fallthrough_kernel, "AutogradCPU")
    with pytest.raises(NotImplementedError, match="has been declared only"):
        ops.t.twice(tg.ones(1))
    lib.impl("twice", lambda x: x * 2, "CPU")
    assert ops.t.twice(tg.ones(1)).item() == 2
    with pytest.raises(NotImplementedError, match=r"fallthrough_kernel\(\) should never be called"):
        library.fallthrough_kernel()


def test_a_kernel_for_an_unknown_op_is_refused():
    lib = Library("t", "IMPL")
    lib2 = Library("t", "FRAGMENT")
    with pytest.raises(RuntimeError, match="Library.impl: there is no op 't::twice'. Define it first"):
        lib.impl("twice", lambda x: x)
    lib2.define("twices(Tensor x) -> Tensor")
    for register in (library.register_kernel, library.impl):
        with pytest.raises(RuntimeError, match=r"there is no op 't::twice'. Did you mean 't::twices'\?"):
            register("t::twice", "cpu", lambda x: x)
    with pytest.raises(RuntimeError, match="there is no op"):
        library.register_autograd("t::twice", lambda ctx, g: g)
    with pytest.raises(ValueError, match="register_fake: 'twice' must be a name with a namespace"):
        library.register_fake("twice", lambda x: x)


def test_a_second_kernel_is_refused_unless_meant():
    lib = Library("t", "FRAGMENT")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: x * 2, "CPU")
    with pytest.raises(RuntimeError, match=r"kernel for the device 'cpu' already, from .*py:\d+; .* brings another"):
        lib.impl("twice", lambda x: x * 3, "CPU")
    assert ops.t.twice(tg.ones(1)).item() == 2
    lib.impl("twice", lambda x: x * 3, "CPU", allow_override=True)
    assert ops.t.twice(tg.ones(1)).item() == 3


def test_a_library_takes_back_what_it_registered():
    before = dict(registry.ops)
    with Library("t", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        with Library("t", "IMPL") as kernels:
            kernels.impl("f", lambda x: x * 2, "CPU")
            library.register_autograd("t::f", lambda ctx, g: g * 2, lib=kernels)
            library.register_fake("t::f", lambda x: tg.empty_like(x), lib=kernels)
            x = tg.ones(1, requires_grad=True)
            ops.t.f(x).backward()
            assert x.grad.item() == 2
        with pytest.raises(NotImplementedError, match="no kernel"):
            ops.t.f(tg.ones(1))
        with pytest.raises(NotImplementedError, match="no fake kernel"):
            ops.t.f(tg.ones(1, device="meta"))
    assert registry.ops == before and "t" not in registry.namespaces
    with pytest.raises(AssertionError, match="Library object has been destroyed"):
        lib.define("g(Tensor x) -> Tensor")
    assert repr(lib) == "Library(kind=DEF, ns=t) (destroyed)"
    Library("t", "DEF")._destroy()  # the namespace is free again


def test_what_is_registered_in_isolation_goes_with_it():
    from tinygrad_ext.testing.isolation import isolated

    f = library.custom_op("t::f", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")
    with isolated():
        f.register_kernel("cpu", lambda x: x * 3)
        library.register_autograd(f, lambda ctx, g: g)
        assert f(tg.ones(1)).item() == 3
    assert f(tg.ones(1)).item() == 2
    f.register_autograd(lambda ctx, g: g * 2)


def test_dropping_a_library_leaves_its_ops():
    Library("t", "FRAGMENT").define("kept(Tensor x) -> Tensor")
    assert dir(ops.t) == ["kept"]


def test_kinds_and_namespaces_of_a_library():
    with pytest.raises(ValueError, match="Unsupported kind: 'NEW'. It is one of DEF, IMPL, FRAGMENT"):
        Library("t", "NEW")
    with pytest.raises(ValueError, match="'prim' is reserved"):
        Library("prim", "DEF")
    with pytest.raises(ValueError, match="must be an identifier"):
        Library("a::b", "DEF")
    Library("t", "DEF")
    with pytest.raises(RuntimeError, match=r"has a 'DEF' already, at .*test_libraries.py:\d+. Only a single one"):
        Library("t", "DEF")
    with pytest.raises(RuntimeError, match="'IMPL' adds kernels only"):
        Library("t", "IMPL").define("f(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="aten::g: .*belongs to tinygrad_ext|'aten' belongs to tinygrad_ext"):
        Library("aten", "FRAGMENT").define("g(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="aten::add.Tensor: a built-in op, to which nothing can be registered but"):
        Library("aten", "IMPL").impl("add.Tensor", lambda x: x, "CPU")
    with pytest.raises(NotImplementedError, match="use a TorchFunctionMode"):
        Library("t", "IMPL").fallback(lambda *args: None)


def test_a_wrong_schema_defines_nothing():
    lib = Library("t", "FRAGMENT")
    with pytest.raises(RuntimeError, match="duplicate argument name 'x'"):
        lib.define("f(Tensor x, int x) -> Tensor")
    with pytest.raises(RuntimeError, match="is not optional"):
        lib.define("f(Tensor x, int n=None) -> Tensor")
    with pytest.raises(RuntimeError, match="Invalid alias_analysis"):
        lib.define("f(Tensor x) -> Tensor", "SOME")
    assert "t" not in registry.namespaces


def test_the_function_forms():
    library.define("t::sin", "(Tensor x) -> Tensor", tags=Tag.pointwise)

    @library.impl("t::sin", "cpu")
    def kernel(x):
        return x.sin()

    @library.register_fake("t::sin")
    def fake(x):
        return tg.empty_like(x)

    library.register_autograd("t::sin", lambda ctx, g: g * ctx.saved_tensors[0].cos(), setup_context=_save)
    assert kernel(tg.ones(1)) == fake(tg.ones(1)) * 0 + tg.ones(1).sin()
    x = tg.ones(2, dtype=tg.float64, requires_grad=True)
    assert gradcheck(ops.t.sin, (x,)) and ops.t.sin(x.detach().to("meta")).is_meta
    assert ops.t.sin.default.tags == [Tag.pointwise]
    with pytest.raises(ValueError, match="the schema must begin after the name"):
        library.define("t::cos", "cos(Tensor x) -> Tensor")


def _save(ctx, inputs, output):
    ctx.save_for_backward(*inputs)


def test_the_forms_with_a_library():
    lib = Library("t", "FRAGMENT")

    @library.define(lib, "twice(Tensor x) -> Tensor")
    def twice(x):
        return x + x

    lib.define("thrice(Tensor x) -> Tensor")

    @library.impl(lib, "thrice", "CPU")
    def thrice(x):
        return x * 3

    assert ops.t.twice(tg.ones(1)).item() == 2 and ops.t.thrice(tg.ones(1)).item() == 3
    lib._destroy()
    assert "t" not in registry.namespaces


def test_overloads_of_one_op():
    lib = Library("t", "FRAGMENT")
    lib.define("f(Tensor x) -> Tensor")
    lib.define("f.scaled(Tensor x, float k) -> Tensor")
    lib.impl("f", lambda x: x * 2, "CPU")
    lib.impl("f.scaled", lambda x, k: x * k, "CPU")
    assert ops.t.f.overloads() == ["default", "scaled"]
    assert ops.t.f(tg.ones(1)).item() == 2 and ops.t.f(tg.ones(1), 5).item() == 5
    assert ops.t.f.scaled(tg.ones(1), 7).item() == 7 and ops.t.f.scaled.name() == "t::f.scaled"
    assert pickle.loads(pickle.dumps(ops.t.f.scaled)) is ops.t.f.scaled
    with pytest.raises(AttributeError, match="has no overload 'other'; it has default, scaled"):
        ops.t.f.other
    library.register_autograd(ops.t.f.scaled, lambda ctx, g: (g, None))
    with pytest.raises(ValueError, match="register_autograd: expected the name of an op or an overload"):
        library.register_autograd(ops.t.f, lambda ctx, g: g)


def test_an_unknown_op_of_a_namespace_names_the_near_ones():
    Library("t", "FRAGMENT").define("roi_align(Tensor x) -> Tensor")
    with pytest.raises(AttributeError, match="has no op 'roi_aling'. Near: roi_align"):
        ops.t.roi_aling


@pytest.mark.parametrize("name", ["register_torch_dispatch"])
def test_what_is_absent_says_so(name):
    with pytest.raises(NotImplementedError, match=f"library.{name}: there "):
        getattr(library, name)()


def test_functions_of_kernels_for_gpus_are_ops_and_fail_where_they_call_one():
    def kernel():
        pass

    @library.triton_op("t::doubled", mutates_args=())
    def doubled(x: tg.Tensor, on_gpu: bool = False) -> tg.Tensor:
        if on_gpu:
            library.wrap_triton(kernel)[(1,)](x)
        return x * 2

    assert doubled(tg.ones(2)).tolist() == [2, 2] and ops.t.doubled(tg.ones(1)).item() == 2
    with pytest.raises(NotImplementedError, match="library.wrap_triton: there are no GPUs here to call kernel on"):
        doubled(tg.ones(2), True)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "eq", "lt", "fmod", "remainder", "bitwise_and"])
def test_overloads_of_a_number_are_those_of_a_tensor(name):
    packet, x = getattr(ops.aten, name), tg.tensor([5, 3])
    assert tg.equal(packet.Scalar(x, 2), getattr(tg, name)(x, 2)) and packet.Scalar is packet.Tensor


def test_overloads_of_other_names_in_pytorch():
    assert ops.aten.empty.memory_format is ops.aten.empty.default
    mask, x = tg.tensor([True, False]), tg.ones(2)
    assert ops.aten.where.ScalarOther(mask, x, 3.0).tolist() == [1, 3]


def test_a_mode_of_rounding_with_a_number():
    assert ops.aten.div.Scalar_mode(tg.tensor([5.0]), 2, rounding_mode="floor").item() == 2
    with pytest.raises(AttributeError, match="has no overload 'Scalar'"):
        ops.aten.exp.Scalar


def test_rules_for_transforms_are_kept():
    f = library.custom_op("t::f", lambda x: x * 2, mutates_args=(), schema="(Tensor x) -> Tensor")

    @f.register_vmap
    def rule(info, in_dims, x):
        return f(x), in_dims[0]

    assert f._state.get("vmap rule") is rule
    with pytest.raises(RuntimeError, match="there is a vmap rule already"):
        library.register_vmap("t::f", rule)
    with pytest.raises(NotImplementedError, match="a TorchDispatchMode see custom ops"):
        f.register_torch_dispatch(Tensor, rule)


def test_the_module_is_loaded_when_it_is_asked_for():
    import subprocess
    import sys

    code = (
        "import sys, tinygrad_ext as tg; assert 'tinygrad_ext.library' not in sys.modules;"
        "tg.library.custom_op; assert 'tinygrad_ext.library' in sys.modules and 'pluggy' not in sys.modules;"
        "assert tg.Tag is tg.library.Tag"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="has no attribute 'custom_ops'"):
        library.custom_ops
    assert library.opcheck.__name__ == "opcheck"


@pytest.mark.skipif(torch is None, reason="needs PyTorch")
def test_tags_have_pytorchs_names():
    theirs = {name for name in dir(torch.Tag) if isinstance(getattr(torch.Tag, name), torch.Tag)}
    assert theirs <= set(Tag.__members__)
    with pytest.raises(TypeError, match="'pointwise' is no Tag; they are library.Tag.core, "):
        library.define("t::f", "(Tensor x) -> Tensor", tags="pointwise")
