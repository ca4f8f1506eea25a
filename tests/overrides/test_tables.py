"""Every public callable is overridable or ignored with a reason, and the testing API tells which."""

import inspect

import pytest
from tinygrad_ext.core.call.callables import OpFunction

import tinygrad_ext as tg
from tinygrad_ext import nn, overrides, registry
from tinygrad_ext.ops.record import Owner
from tinygrad_ext.overrides import tables
from tinygrad_ext.registry import scope
from tinygrad_ext.registry.op_registrar import OpRegistrar

NAMESPACES = [tg, nn.functional, tg.linalg, tg.Tensor]
TABLE = overrides.get_overridable_functions()


@pytest.mark.parametrize("namespace", NAMESPACES, ids=lambda n: n.__name__)
def test_every_callable_is_overridable_or_ignored_with_a_reason(namespace):
    ignored = overrides.ignored_functions()
    missing = [
        name
        for name, value in tables.public_callables(namespace)
        if value not in TABLE[namespace] and not ignored.get(value)
    ]
    assert not missing, "let them ask the types of their arguments, or say why not in overrides/tables.py"


def test_no_callable_is_both():
    both = {f for functions in TABLE.values() for f in functions} & overrides.get_ignored_functions()
    assert not both


def test_every_ignored_name_exists():
    paths = {tables._path(namespace, name) for namespace, name, _ in tables._walk()}
    assert set(tables._NOT_OVERRIDABLE) <= paths


def test_the_walk_leaves_no_function_of_a_record_out():
    walked = {f for functions in TABLE.values() for f in functions} | overrides.get_ignored_functions()
    public = {f for path, f in registry.functions.items() if not path.startswith(("_", "nn.functional._"))}
    names = [name for name in registry.methods if not name.startswith("_") or name.endswith("__")]
    public |= {getattr(tg.Tensor, name) for name in names}
    assert public <= walked


class Asked(Exception):
    """Raised by the probe below."""


class Probe:
    def __torch_function__(self, func, types, args=(), kwargs=None):
        raise Asked


@pytest.mark.parametrize("namespace", TABLE, ids=lambda n: n.__name__)
def test_overridable_functions_do_ask(namespace):
    """Each is called with probes for all arguments that must be given."""
    silent = []
    for f in TABLE[namespace]:
        if not isinstance(f, OpFunction):
            continue
        required = [a for a in f.candidates[0].schema.args if not a.has_default]
        values = [Probe() if a.type in ("Tensor", "Any") else _value(a) for a in required] or [Probe()]
        try:
            f(*values)
        except Asked:
            continue
        except TypeError as error:
            silent.append((f, str(error)))
        else:
            silent.append((f, "returned"))
    assert not silent


def _value(argument):
    plain = {"int": 1, "float": 1.0, "bool": True, "Scalar": 1, "str": "x", "ScalarType": tg.float32, "SymInt": 1}
    value = plain.get(argument.type, 1)
    return [value] if argument.is_list else value


# ---- the testing API -----------------------------------------------------------------------------------------------


def test_functions_come_by_namespace_sorted_by_name():
    assert [f.__name__ for f in TABLE[nn.functional][:5]] == [
        "adaptive_avg_pool1d",
        "adaptive_avg_pool2d",
        "adaptive_avg_pool3d",
        "adaptive_max_pool1d",
        "adaptive_max_pool1d_with_indices",
    ]
    assert list(TABLE)[:2] == [tg, nn.functional]
    assert {tg, nn.functional, tg.linalg, tg.Tensor} <= set(TABLE)
    assert tg.add in TABLE[tg]
    assert tg.Tensor.add in TABLE[tg.Tensor]
    assert all(len(functions) == len(set(functions)) for functions in TABLE.values())


def test_a_dummy_has_the_signature_and_returns_minus_one():
    dummies = overrides.get_testing_overrides()
    assert set(dummies) == {f for functions in TABLE.values() for f in functions}
    for f, dummy in dummies.items():
        if isinstance(f, OpFunction):
            assert [str(p) for p in inspect.signature(dummy).parameters.values()] == [
                str(p) for p in inspect.signature(f).parameters.values()
            ], f
    assert str(inspect.signature(dummies[tg.add])) == "(input, other, *, alpha=1, out=None)"
    assert dummies[tg.add](1, 2, alpha=3) == -1
    assert dummies[tg.Tensor.add](1, 2) == -1
    with pytest.raises(TypeError):
        dummies[tg.add](1, 2, beta=3)


def test_a_parameter_named_like_a_keyword_of_python_gets_an_underscore():
    assert "from_" in inspect.signature(tg.Tensor.uniform_).parameters


def test_factories_are_ignored_because_they_take_no_tensor():
    reasons = overrides.ignored_functions()
    for f in (tg.zeros, tg.arange, tg.randn, tg.eye):
        assert "takes no tensor" in reasons[f]
    assert tg.zeros_like not in reasons
    assert reasons[tg.save] == "reads or writes a file"
    assert tg.save in overrides.get_ignored_functions()


def test_a_plugins_op_is_overridable_at_once():
    owned = scope.Scope(Owner("tgx-demo", "1.0"), ["tgxtables"])
    OpRegistrar(owned)("tgxtables::thrice(Tensor self) -> Tensor", compose=lambda self: self * 3, doc="Thrice.")
    try:
        thrice = tg.ops.tgxtables.thrice
        assert overrides.get_overridable_functions()[tg.ops.tgxtables] == [thrice]
        assert overrides.resolve_name(thrice) == "tinygrad_ext.ops.tgxtables.thrice"
        assert overrides.get_testing_overrides()[thrice](1) == -1
        assert thrice(Recorder()) is thrice
    finally:
        owned.undo()
    assert thrice not in overrides.get_testing_overrides()


class Recorder:
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func


@pytest.mark.parametrize(
    "get, name",
    [
        (lambda: tg.add, "tinygrad_ext.add"),
        (lambda: tg.Tensor.add, "tinygrad_ext.Tensor.add"),
        (lambda: tg.Tensor.add_, "tinygrad_ext.Tensor.add_"),
        (lambda: nn.functional.gelu, "tinygrad_ext.nn.functional.gelu"),
        (lambda: tg.Tensor.shape.__get__, "tinygrad_ext.Tensor.shape.__get__"),
        (lambda: tg.Tensor.grad.__set__, "tinygrad_ext.Tensor.grad.__set__"),
        (lambda: tg.Tensor.__getitem__, "tinygrad_ext.Tensor.__getitem__"),
        (lambda: tg.zeros, "tinygrad_ext.zeros"),
        (lambda: tg.save, "tinygrad_ext.save"),
        (lambda: {1: 2}, None),
        (lambda: len, None),
        (lambda: 3, None),
    ],
)
def test_resolve_name_says_where_a_function_stands(get, name):
    assert overrides.resolve_name(get()) == name


def test_every_overridable_function_has_a_name_that_leads_back_to_it():
    for namespace, functions in TABLE.items():
        for f in functions:
            name = overrides.resolve_name(f)
            assert name.startswith("tinygrad_ext.")
            found = tg
            for part in name.removeprefix("tinygrad_ext.").split("."):
                found = getattr(found, part)
            assert found == f, (namespace, f)


def test_methods_and_properties_are_told_from_functions():
    assert overrides.is_tensor_method_or_property(tg.Tensor.add)
    assert overrides.is_tensor_method_or_property(tg.Tensor.shape.__get__)
    assert overrides.is_tensor_method_or_property(tg.Tensor.__getitem__)
    assert not overrides.is_tensor_method_or_property(tg.add)
    assert not overrides.is_tensor_method_or_property(len)


def test_getters_that_do_not_wrap_are_those_of_base_and_grad():
    assert tg.Tensor.grad.__get__ in overrides.get_default_nowrap_functions()
    assert tg.Tensor.shape.__get__ not in overrides.get_default_nowrap_functions()


def test_only_attributes_that_can_be_set_have_a_setter_in_the_table():
    assert tg.Tensor.data.__set__ in TABLE[tg.Tensor]
    assert tg.Tensor.requires_grad.__set__ in TABLE[tg.Tensor]
    assert tg.Tensor.shape.__get__ in TABLE[tg.Tensor]
    assert tg.Tensor.shape.__set__ not in TABLE[tg.Tensor]
    assert tg.Tensor.T.__set__ not in TABLE[tg.Tensor]


def test_the_first_notes_name_of_the_module_is_the_same_module():
    from tinygrad_ext._overrides import get_overridable_functions

    assert get_overridable_functions is overrides.get_overridable_functions
    assert tg._overrides is overrides


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(AttributeError, match=r"no attribute 'explane'.*explain"):
        _ = overrides.explane
