"""custom_op: definition, kernels, meta tensors, pickling, overrides."""

import copy
import functools
import pickle
import threading

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import Tensor, library, ops, overrides, registry
from tinygrad_ext.describe import op_facts


def make_sin(**more):
    @library.custom_op("t::sin", mutates_args=(), **more)
    def numpy_sin(x: Tensor) -> Tensor:
        """Sine of each element."""
        return tg.from_numpy(np.sin(x.numpy()))

    return numpy_sin


def test_an_op_is_called_like_its_function():
    f, x = make_sin(), tg.randn(3)
    wanted = tg.from_numpy(np.sin(x.numpy()))  # whose last bit may be another than that of x.sin()
    for call in (f, ops.t.sin, ops.t.sin.default):
        assert call(x).equal(wanted) and call(x=x).equal(wanted)
    assert repr(f) == "<CustomOpDef(t::sin)>" and f.__name__ == "numpy_sin" and f.__doc__ == "Sine of each element."
    assert str(f._schema) == "t::sin(Tensor x) -> Tensor"
    assert f._opoverload is ops.t.sin.default


def test_the_call_form_and_a_schema_by_hand():
    f = library.custom_op("t::scale", lambda x, k: x * k, mutates_args=(), schema="(Tensor x, float k=2.0) -> Tensor")
    assert f(tg.ones(2)).tolist() == [2, 2] and f(tg.ones(2), k=3).tolist() == [3, 3]
    assert str(f._schema) == "t::scale(Tensor x, float k=2.0) -> Tensor"


def test_a_schema_and_mutates_args_must_agree():
    with pytest.raises(ValueError, match="says that x is mutated, and mutates_args that nothing is"):
        library.custom_op("t::f", lambda x: None, mutates_args=(), schema="(Tensor(a!) x) -> ()")
    assert "t::f" not in registry.ops


@pytest.mark.parametrize("name", ["sin", "::sin", "t::", ""])
def test_a_name_needs_a_namespace(name):
    with pytest.raises(ValueError, match=r"must be a name with a namespace, '<namespace>::<name>', such as 'mylib::"):
        library.custom_op(name, lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor")


def test_reserved_namespaces_are_refused():
    with pytest.raises(RuntimeError, match="'aten' belongs to tinygrad_ext"):
        library.custom_op("aten::sin2", lambda x: x, mutates_args=(), schema="(Tensor x) -> Tensor")


def test_a_second_definition_names_both_places_and_undefine_frees_the_name():
    make_sin()
    with pytest.raises(
        RuntimeError, match=r"t::sin is registered already, by this program at .*test_custom_op.py:\d+"
    ) as e:
        make_sin()
    assert "library.undefine('t::sin')" in str(e.value) and str(e.value).count("test_custom_op.py") == 2
    old = ops.t.sin
    library.undefine("t::sin")
    assert not hasattr(ops.t, "sin") and "t::sin" not in registry.ops
    make_sin()
    assert ops.t.sin is not old
    with pytest.raises(RuntimeError, match="'t::cos' does not exist"):
        library.undefine("t::cos")


def test_who_holds_an_op_goes_on_calling_it_when_it_is_gone():
    f = make_sin()
    f.register_autograd(lambda ctx, g: g * 7)
    packet, overload, x = ops.t.sin, ops.t.sin.default, tg.ones(1, requires_grad=True)
    y = f(x)
    library.undefine("t::sin")
    make_sin().register_autograd(lambda ctx, g: g)
    (f(x) + packet(x) + overload(x) + y).backward()
    assert x.grad.item() == 28
    with library.Library("u", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x * 2, "CPU")
        held = ops.u.f
    assert held(tg.ones(1)).item() == 2


def test_ops_are_listed_and_owned():
    f = make_sin()
    assert dir(ops.t) == ["sin"] and ops.t.sin.overloads() == ["default"]
    assert ops.t.sin.default.name() == "t::sin" and str(ops.t.sin.default) == "t.sin.default"
    assert f.owner == ops.t.sin.owner == ("this program", None)
    assert ops.t.sin in overrides.get_overridable_functions()[ops.t]
    assert overrides.resolve_name(ops.t.sin) == "tinygrad_ext.ops.t.sin"


def test_builtin_packets_list_their_overloads():
    assert ops.aten.add.overloads()[0] == "Tensor" and ops.aten.exp.overloads() == ["default"]
    assert ops.aten.add.Tensor.name() == "aten::add.Tensor"
    assert str(ops.aten.add.Tensor._schema).startswith("aten::add.Tensor(Tensor self")


def test_overrides_see_the_overload_whichever_way_it_is_called():
    f, seen = make_sin(), []

    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            seen.append(func)
            return cls

    assert f(Duck()) is Duck and ops.t.sin(Duck()) is Duck and ops.t.sin.default(Duck()) is Duck
    assert seen == [ops.t.sin.default, ops.t.sin, ops.t.sin.default]


def test_a_mode_sees_the_op_and_nothing_inside():
    f, seen = make_sin(), []

    class Names(overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    x = tg.ones(2)
    with Names():
        f(x)
    assert seen == [ops.t.sin.default]


def test_pickling_goes_by_name():
    f = make_sin()
    for thing in (f, ops.t.sin, ops.t.sin.default):
        assert pickle.loads(pickle.dumps(thing)) is thing and copy.deepcopy(thing) is thing


def test_kernels_by_device():
    f = make_sin(device_types="cuda")
    with pytest.raises(
        NotImplementedError, match=r"t::sin: there is no kernel for the device 'cpu'; there are kernels for cuda"
    ):
        f(tg.ones(1))
    f.register_kernel("cpu", lambda x: x.sin())
    assert f(tg.ones(2)).equal(tg.ones(2).sin())
    with pytest.raises(RuntimeError, match="a kernel for the device 'cpu' already, from .*test_custom_op.py"):
        f.register_kernel("cpu")(lambda x: x)
    with pytest.raises(ValueError, match="for 'meta' use register_fake"):
        f.register_kernel("meta", lambda x: x)


def test_a_kernel_can_be_switched_off():
    f = make_sin()
    f.register_kernel("cpu", lambda x: x + 100)
    assert f(tg.zeros(1)).item() == 100
    with f.set_kernel_enabled("cpu", enabled=False):
        assert f(tg.zeros(1)).item() == 0
        with f.set_kernel_enabled("cpu"):
            assert f(tg.zeros(1)).item() == 100
        assert f(tg.zeros(1)).item() == 0
    assert f(tg.zeros(1)).item() == 100
    with pytest.warns(UserWarning, match="no kernel for the device 'xpu'"):
        with f.set_kernel_enabled("xpu"):
            pass


def test_an_op_without_tensors_goes_by_its_device():
    with pytest.raises(
        ValueError, match="Functions without tensor inputs are required to have a `device: torch.device`"
    ):

        @library.custom_op("t::made", mutates_args=(), device_types="cpu")
        def made(n: int) -> Tensor:
            return tg.ones(n)

    @library.custom_op("t::made", mutates_args=(), device_types="cpu")
    def made_on(n: int, device: tg.device) -> Tensor:
        return tg.ones(n)

    made_on.register_fake(lambda n, device: tg.ones(n, device="meta"))
    assert made_on(3, "cpu").tolist() == [1, 1, 1] and made_on(3, tg.device("meta")).is_meta
    with pytest.raises(
        NotImplementedError, match="there is no kernel for the device 'cuda'; there are kernels for cpu"
    ):
        made_on(3, "cuda")


def test_meta_tensors_go_by_the_fake_kernel():
    f, x = make_sin(), tg.ones(2, device="meta")
    with pytest.raises(NotImplementedError, match="t::sin: there is no fake kernel.*register_fake"):
        f(x)
    f.register_fake(lambda x: x.new_empty(x.shape))
    assert f(x).is_meta and f(x).shape == (2,)
    library.register_fake("t::sin", lambda x: tg.empty(1), allow_override=True)
    with pytest.raises(RuntimeError, match="returned a tensor on cpu"):
        f(x)


def test_a_fake_kernel_has_no_sizes_that_depend_on_data():
    f = make_sin()

    @f.register_fake
    def _(x):
        return x.new_empty(library.get_ctx().new_dynamic_size())

    with pytest.raises(RuntimeError, match="the size of the result depends on the data"):
        f(tg.ones(2, device="meta"))
    with pytest.raises(RuntimeError, match="there is no fake kernel running"):
        library.get_ctx()


def test_values_come_as_their_type():
    got = []

    @library.custom_op("t::values", mutates_args=())
    def values(x: Tensor, a: float, b: tg.device, c: list[int], *, d: bool = False, e: tg.dtype = tg.int32) -> Tensor:
        got.append((a, b, c, d, e))
        return x.clone()

    values(tg.ones(1), 2, "cpu", (1, 2))
    assert got == [(2.0, tg.device("cpu"), (1, 2), False, tg.int32)] and type(got[0][0]) is float
    f = library.custom_op(
        "t::pair", lambda x, k: x * k[0] + k[1], mutates_args=(), schema="(Tensor x, int[2] k=3) -> Tensor"
    )
    assert f(tg.ones(1)).item() == 6 and f(tg.ones(1), 4).item() == 8


def test_wrong_arguments_are_told_with_the_owner():
    with pytest.raises(
        TypeError, match=r"argument 'x' \(position 1\) must be Tensor, not int \[t::sin \(this program\)\]"
    ):
        make_sin()(3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'y'. Its arguments are x"):
        ops.t.sin(tg.ones(1), y=3)


def test_unknown_keywords_name_the_near_one():
    f = library.custom_op("t::f", lambda x, factor: x, mutates_args=(), schema="(Tensor x, float factor=1.0) -> Tensor")
    with pytest.raises(TypeError, match="unexpected keyword argument 'factr'. Did you mean 'factor'?"):
        f(tg.ones(1), factr=2.0)


def scaled(x: Tensor, k: int) -> Tensor:
    return x * k


class Scaler:
    """A callable object."""

    def __call__(self, x: Tensor, k: int) -> Tensor:
        return x * k


@pytest.mark.parametrize(
    "fn, schema",
    [
        (functools.partial(scaled, k=3), "(Tensor x, *, SymInt k=3) -> Tensor"),
        (Scaler(), "(Tensor x, SymInt k) -> Tensor"),
        (Scaler().__call__, "(Tensor x, SymInt k) -> Tensor"),
        (
            functools.wraps(scaled)(lambda *args, **keywords: scaled(*args, **keywords)),
            "(Tensor x, SymInt k) -> Tensor",
        ),
    ],
)
def test_whatever_is_called_can_be_an_op(fn, schema):
    f = library.custom_op("t::f", fn, mutates_args=())
    assert str(f._schema) == f"t::f{schema}" and f(tg.ones(1), k=3).item() == 3
    assert f.candidates[0].record.source == __file__


def test_an_op_is_described_by_its_functions():
    f = make_sin()
    op = f.candidates[0]
    assert op_facts.computed_by(op).startswith("python, Python function numpy_sin at test_custom_op.py:")
    assert op_facts.derivative(op) == "no"
    f.register_autograd(lambda ctx, g: g)
    assert op_facts.derivative(op).startswith("yes, by the backward at test_custom_op.py:")


# ---- threads -------------------------------------------------------------------------------------------------------


def test_threads_register_at_once():
    start, errors = threading.Barrier(8), []

    def register(k):
        start.wait()
        for i in range(20):
            library.custom_op(f"t::own{k}_{i}", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
            try:
                library.custom_op(f"t::shared{i}", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor")
            except RuntimeError as error:
                errors.append(str(error))

    threads = [threading.Thread(target=register, args=(k,)) for k in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert len(dir(ops.t)) == 8 * 20 + 20
    assert len(errors) == 7 * 20 and all("registered already" in e for e in errors)
    assert ops.t.shared3(tg.ones(1)).item() == 2
