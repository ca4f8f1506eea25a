"""A name that nobody could write, or that would hide what Python or the package asks for, is refused where it comes."""

import keyword

import pytest

import tinygrad_ext as tg
from tinygrad_ext import library, nn, ops, plugins

BAD = ["__class__", "__getattr__", "__dict__", "__x", "import", "None", "lambda", "True"]
# machinery -> names of attributes that its objects have
OP_HELD = ["_tgx_find", "_tgx_name"]
OVERLOAD_HELD = ["candidates", "overloads", "name", "tags", "_schema"]
TELLING = r"keyword of Python|begins with two underscores|is an attribute that every"


def by_record(schema, aliases=None):
    class Hooks:
        @tg.hookimpl
        def tgx_register_ops(self, register):
            register(schema, compose=lambda self: self, aliases=aliases)

    plugins.register("demo", Hooks())


def by_library(schema):
    with library.Library("demo", "FRAGMENT") as lib:
        lib.define(schema.removeprefix("demo::"))


def by_define(schema):
    name, bracket, rest = schema.partition("(")
    library.define(name, bracket + rest)


def by_custom_op(schema):
    name, bracket, rest = schema.partition("(")
    library.custom_op(name, lambda self: self, mutates_args=(), schema=bracket + rest)


WAYS = {f.__name__: f for f in (by_record, by_library, by_define, by_custom_op)}


def refuse(way, schema):
    with pytest.raises((RuntimeError, ValueError), match=TELLING) as caught:
        WAYS[way](schema)
    assert "Choose another name" in str(caught.value)
    assert "demo" not in tg.registry.namespaces


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [*BAD, *OP_HELD])
def test_an_op_is_not_called_so(isolated_plugins, way, name):
    refuse(way, f"demo::{name}(Tensor self) -> Tensor")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [*BAD, *OVERLOAD_HELD])
def test_an_overload_is_not_called_so(isolated_plugins, way, name):
    refuse(way, f"demo::f.{name}(Tensor self) -> Tensor")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", BAD)
def test_an_argument_is_not_called_so(isolated_plugins, way, name):
    refuse(way, f"demo::f(Tensor {name}) -> Tensor")
    refuse(way, f"demo::f(Tensor self, *, int {name}=1) -> Tensor")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", [*BAD, "count", "index"])
def test_a_result_is_not_called_so(isolated_plugins, way, name):
    refuse(way, f"demo::f(Tensor self) -> (Tensor {name}, Tensor other)")


@pytest.mark.parametrize("name", [*BAD, *OP_HELD])
def test_an_alias_is_no_better_than_a_name(isolated_plugins, name):
    with pytest.raises(plugins.PluginError, match=TELLING):
        by_record("demo::f(Tensor self) -> Tensor", aliases=name)


@pytest.mark.parametrize("name", BAD)
def test_a_namespace_is_not_called_so(isolated_plugins, name):
    for define in (library.define, lambda n, s: library.custom_op(n, abs, mutates_args=(), schema=s)):
        with pytest.raises(RuntimeError, match=TELLING):
            define(f"{name}::f", "(Tensor self) -> Tensor")
    with pytest.raises((ValueError, RuntimeError), match=f"keyword|{TELLING}"):
        with library.Library(name, "DEF") as lib:
            lib.define("f(Tensor self) -> Tensor")
    assert name not in tg.registry.namespaces


@pytest.mark.parametrize("name", [*BAD, "_name"])
def test_a_module_is_not_called_so(isolated_plugins, name):
    class Hooks:
        @tg.hookimpl
        def tgx_register_modules(self, register):
            register(f"demo::{name}", type("Own", (nn.Module,), {}))

    with pytest.raises(plugins.PluginError, match=TELLING):
        plugins.register("demo", Hooks())


@pytest.mark.parametrize("name", ["create", "module_class", "registry"])
def test_a_namespace_of_modules_hides_no_part_of_nn_plugins(isolated_plugins, name):
    class Hooks:
        @tg.hookimpl
        def tgx_register_modules(self, register):
            register(f"{name}::Own", type("Own", (nn.Module,), {}))

    with pytest.raises(plugins.PluginError, match=f"nn.plugins.{name} is a part of tinygrad_ext"):
        plugins.register(name, Hooks())


@pytest.mark.parametrize("name", ["import", "class.more", "None"])
def test_an_entry_point_is_not_called_so(site, name):
    site.install("tgx-demo", entry_points=f"[tinygrad_ext.plugins]\n{name} = tgx_none\n")
    (info,) = plugins.list()
    assert info.state == "failed" and f"'{name}' is no namespace" in info.reason


def test_every_attribute_of_what_holds_ops_is_refused(isolated_plugins):
    """Whoever adds an attribute to these classes need not think of the names of ops."""
    library.define("demo::f", "(Tensor self) -> Tensor")
    try:
        held = {n for n in dir(type(ops.demo)) if not n.startswith("__")}
        shown = {n for thing in (ops.demo.f, ops.demo.f.default) for n in dir(type(thing)) if not n.startswith("__")}
        for spelled in [*held, *(f"g.{n}" for n in shown)]:
            with pytest.raises(RuntimeError, match="is an attribute that every"):
                library.define(f"demo::{spelled}", "(Tensor self) -> Tensor")
    finally:
        library.undefine("demo::f")


def test_soft_keywords_and_names_like_a_built_in_function_are_fine(isolated_plugins):
    for name in ("match", "type", "len", "_private"):
        assert not keyword.iskeyword(name)
        library.define(f"demo::{name}", "(Tensor self) -> Tensor")
        assert getattr(ops.demo, name).overloads() == ["default"]
        library.undefine(f"demo::{name}")
