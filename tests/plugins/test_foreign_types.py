"""A plugin for types it does not own is loaded when the first of them reaches an op."""

import importlib
import sys

import pytest

import tinygrad_ext as tg
from tinygrad_ext import overrides, plugins
from tinygrad_ext.plugins import PluginWarning

THEIRS = """
class Array:
    def __init__(self, values):
        self.values = values

class Row(Array):
    pass
"""
HANDLES = """
from tinygrad_ext import hookimpl
import tinygrad_ext as tg

def handle(func, types, args, kwargs):
    if func is not tg.add:
        return NotImplemented
    args = [a if isinstance(a, tg.Tensor) or not hasattr(a, "values") else tg.tensor(a.values) for a in args]
    return func(*args, **kwargs)

@hookimpl
def tgx_register_overrides(register):
    register("tgx_theirs.arrays", handle)
"""


@pytest.fixture
def theirs(site):
    """The module of types, and a plugin that declares it; the plugin's text may be replaced before the first use."""
    (site.folder / "tgx_theirs").mkdir()
    (site.folder / "tgx_theirs/__init__.py").write_text("")
    (site.folder / "tgx_theirs/arrays.py").write_text(THEIRS)
    site.install(
        "tgx-handler",
        files={"tgx_handler.py": HANDLES},
        entry_points="[tinygrad_ext.overrides]\ntgx_theirs = tgx_handler\n",
    )
    return importlib.import_module("tgx_theirs.arrays")


def test_it_is_loaded_by_the_first_value_of_the_type_and_not_before(theirs):
    assert tg.add(tg.ones(2), 1).tolist() == [2, 2]
    with pytest.raises(TypeError):
        tg.add(tg.ones(2), "text")
    assert "tgx_handler" not in sys.modules
    assert tg.add(tg.ones(2), theirs.Array([1.0, 2.0])).tolist() == [2, 3]
    info = plugins.info("tgx-handler")
    assert (info.state, info.prefixes, info.overrides) == ("active", ("tgx_theirs",), ("tgx_theirs.arrays",))
    assert tg.add(theirs.Row([1.0]), tg.ones(1)).item() == 2


def test_a_type_of_the_program_that_inherits_from_a_declared_one_loads_it_too(theirs):
    mine = type("Mine", (theirs.Array,), {})
    assert tg.add(tg.ones(1), mine([1.0])).item() == 2


def test_explain_names_the_owner(theirs):
    tg.add(tg.ones(1), theirs.Array([1.0]))
    assert "by tgx-handler 1.0" in str(overrides.explain(tg.add, tg.ones(1), theirs.Array([1.0])))


def test_disable_takes_the_handler_away_and_the_error_says_so(theirs, tables):
    before = tables()
    tg.add(tg.ones(1), theirs.Array([1.0]))
    plugins.disable("tgx-handler")
    assert tables() == before
    with pytest.raises(TypeError, match=r"must be Tensor, not Array.*plugin 'tgx_theirs' of tgx-handler .*disabled"):
        tg.neg(theirs.Array([1.0]))
    plugins.enable("tgx-handler")
    assert tg.add(tg.ones(1), theirs.Array([1.0])).item() == 2


def test_a_failing_one_is_left_out_and_the_error_of_the_call_says_why(theirs, site, tables):
    before = tables()
    site.write("tgx_handler.py", HANDLES + "    1 / 0\n")
    with pytest.warns(PluginWarning, match="in its hook tgx_register_overrides"):
        with pytest.raises(TypeError, match="must be Tensor, not Array.*failed: ZeroDivisionError"):
            tg.neg(theirs.Array([1.0]))
    assert tables() == before
    with pytest.raises(TypeError, match="failed: ZeroDivisionError"):  # told again, tried no more
        tg.neg(theirs.Array([1.0]))


def test_two_owners_of_one_prefix_collide_loudly(theirs, site):
    site.install(
        "tgx-rival",
        files={"tgx_rival.py": HANDLES},
        entry_points="[tinygrad_ext.overrides]\ntgx_theirs = tgx_rival\n",
    )
    with pytest.warns(PluginWarning, match="tgx_theirs.arrays are handled by tgx-handler 1.0 already; tgx-rival 1.0"):
        assert tg.add(tg.ones(1), theirs.Array([1.0])).item() == 2


def test_a_plugin_of_overrides_alone_has_no_namespace_for_ops(theirs, site):
    hook = """
@hookimpl
def tgx_register_ops(register):
    register("sparse::x(Tensor self) -> Tensor", compose=len)
"""
    site.write("tgx_handler.py", HANDLES + hook)
    with pytest.raises(plugins.PluginError, match="foreign namespace 'sparse'; its own is none"):
        plugins.load("tgx-handler")


def test_ops_and_overrides_of_one_module_are_one_plugin(theirs, site):
    hook = """
@hookimpl
def tgx_register_ops(register):
    register("both::x(Tensor self) -> Tensor", compose=lambda self: self)
"""
    site.install(
        "tgx-both",
        files={"tgx_both.py": HANDLES.replace("tgx_theirs.arrays", "tgx_other") + hook},
        entry_points="[tinygrad_ext.plugins]\nboth = tgx_both\n[tinygrad_ext.overrides]\ntgx_other = tgx_both\n",
    )
    tg.ops.both.x(tg.ones(1))
    info = plugins.info("both")
    assert (info.namespaces, info.prefixes) == (("both",), ("tgx_other",))
    assert (info.ops, info.overrides) == (("both::x",), ("tgx_other",))


@pytest.mark.parametrize(
    "call, message",
    [
        ("register('builtins', print)", "taken by the ops themselves"),
        ("register(int, print)", "taken by the ops themselves"),
        ("register('not a prefix', print)", "is no module prefix"),
        ("register(5, print)", "must be a type or the prefix"),
        ("register('tgx_theirs', 5)", "must be callable"),
        ("register(__import__('tinygrad_ext').Tensor, print)", "defines __torch_function__"),
    ],
)
def test_what_cannot_be_handled_is_refused(theirs, site, call, message):
    text = f"from tinygrad_ext import hookimpl\n@hookimpl\ndef tgx_register_overrides(register):\n    {call}\n"
    site.write("tgx_handler.py", text)
    with pytest.raises(plugins.PluginError, match=message):
        plugins.load("tgx-handler")
