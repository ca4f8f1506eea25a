"""What a failure does: strict mode, another try, files and names that are gone."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import ops, plugins
from tinygrad_ext.plugins import PluginWarning

HEAD = "from tinygrad_ext import hookimpl, nn\nimport tinygrad_ext as tg\n\n"


REGISTERS = (
    'register("demo::a(Tensor self) -> Tensor", compose=lambda self: self)',
    'register("demo::a.int(Tensor self, int n) -> Tensor", compose=lambda self, n: self)',
    'register("demo::b(Tensor self) -> Tensor", compose=lambda self: self, variants="function method inplace out")',
    'register("demo::c(Tensor self) -> Tensor", kernel=lambda self: self, grad={"self": "mul(grad, self)"})',
    'register("demo::d(Tensor self) -> Tensor", compose=lambda self: self, aliases="dd ddd")',
)


def hook(*lines, name="ops"):
    body = "".join(f"    {line}\n" for line in lines)
    return f"@hookimpl\ndef tgx_register_{name}(register):\n{body}\n"


def test_strict_raises_what_the_plugin_raised(site, tables, monkeypatch):
    before = tables()
    site.plugin(text=HEAD + hook(REGISTERS[0], "raise LookupError('mine')"))
    monkeypatch.setenv("TINYGRAD_EXT_STRICT_PLUGINS", "1")
    with pytest.raises(LookupError, match="mine"):
        ops.demo.double
    assert tables() == before


def test_load_says_what_happened_and_reload_tries_again(site):
    site.plugin(text="1 / 0\n")
    with pytest.raises(plugins.PluginError, match="plugin 'demo' of tgx-demo 1.0 was not loaded: ZeroDivisionError"):
        plugins.load("demo")
    with pytest.raises(plugins.PluginError, match="is failed: ZeroDivisionError"):
        plugins.load("demo")
    site.write("tgx_demo/plugin.py", HEAD + hook(REGISTERS[0]))
    plugins.reload("demo")
    assert plugins.failed() == []
    assert ops.demo.a(tg.ones(1)).item() == 1


def test_a_class_is_no_plugin_and_an_attribute_may_be_missing(site):
    site.install(
        "tgx-demo",
        files={"tgx_demo.py": "class P:\n    pass\n"},
        entry_points="[tinygrad_ext.plugins]\na = tgx_demo:P\nb = tgx_demo:Q\n",
    )
    with pytest.warns(PluginWarning, match="and <class 'tgx_demo.P'> is a class"), pytest.raises(AttributeError):
        ops.a.double
    with pytest.warns(PluginWarning, match="module 'tgx_demo' has no attribute 'Q'"), pytest.raises(AttributeError):
        ops.b.double


def test_files_that_are_gone_are_told(site):
    site.install("tgx-gone", entry_points="[tinygrad_ext.plugins]\ngone = tgx_gone.plugin\n", record=False)
    told = "its files are gone: pip install --force-reinstall tgx-gone.*misspells the module"
    with pytest.warns(PluginWarning, match=told):
        with pytest.raises(AttributeError):
            ops.gone.double


def test_a_warning_turned_into_an_error_leaves_the_tables_in_order(site, tables):
    before = tables()
    site.plugin(text=HEAD + hook(REGISTERS[0], "1 / 0"))
    with pytest.raises(PluginWarning):  # the test run makes errors of warnings
        ops.demo.double
    assert tables() == before
    with pytest.raises(AttributeError, match="installed and failed"):
        ops.demo.double


@pytest.mark.parametrize("module", ["tgx_dmeo", "tgx_dmeo.plugin", "tgx_demo.plguin"])
def test_a_misspelt_entry_point_is_told_from_a_missing_requirement(site, module):
    files = {"tgx_demo/__init__.py": "", "tgx_demo/plugin.py": HEAD}
    site.install("tgx-demo", files=files, entry_points=f"[tinygrad_ext.plugins]\ndemo = {module}\n")
    told = rf"Way out: the entry point leads to '{module}', and tgx-demo has no such module: .*pyproject.toml"
    with pytest.warns(PluginWarning, match=told), pytest.raises(AttributeError):
        _ = tg.ops.demo.double
