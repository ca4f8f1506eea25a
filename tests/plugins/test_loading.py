"""A plugin is found without being imported, and imported when something of it is first used."""

import importlib
import pickle
import subprocess
import sys

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn, ops, plugins, registry

MODULE = """
from tinygrad_ext import hookimpl, nn

class Double(nn.Module):
    def __init__(self, factor=2.0):
        super().__init__()
        self.weight = nn.Parameter(__import__("tinygrad_ext").ones(2))
        self.factor = factor

    def forward(self, input):
        return input * self.factor

@hookimpl
def tgx_register_ops(register):
    register("demo::double(Tensor self) -> Tensor", compose=lambda self: self + self)

@hookimpl
def tgx_register_modules(register):
    register("demo::Double", Double)
"""


def states():
    return {(p.name, p.distribution): p.state for p in plugins.list()}


def test_importing_the_package_imports_no_plugin_machinery(site):
    for k in range(3):
        site.plugin(f"demo{k}")
    code = (
        "import sys; before = set(sys.modules); import tinygrad_ext as tg; tg.ones(2) + 1; import tinygrad_ext.nn;"
        "new = set(sys.modules) - before;"
        "print(sorted(m for m in new if m.startswith(('importlib.metadata', 'pluggy', 'tgx_', 'tinygrad_ext.plugins',"
        "'tinygrad_ext.hookspecs'))))"
    )
    path = [str(site.folder), *sys.path]
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": ":".join(path)}, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_listing_imports_no_plugin(site):
    site.plugin()
    info = plugins.info("demo")
    assert (info.distribution, info.version, info.state) == ("tgx-demo", "1.0", "found")
    assert info.entry_points == ("tinygrad_ext.plugins: demo = tgx_demo.plugin",)
    assert "demo" in dir(ops)
    assert "tgx_demo.plugin" not in sys.modules


def test_the_first_use_of_a_namespace_loads_that_plugin_alone(site):
    site.plugin("demo")
    site.plugin("other")
    assert ops.demo.double(tg.ones(2)).tolist() == [2, 2]
    assert states() == {("demo", "tgx-demo"): "active", ("other", "tgx-other"): "found"}
    assert "tgx_other" not in sys.modules
    assert plugins.info("demo").ops == ("demo::double",)


def test_an_op_is_bound_to_its_owner_and_its_overloads(site):
    site.plugin()
    double = ops.demo.double
    assert repr(double) == "<function tinygrad_ext.ops.demo.double (tgx-demo 1.0)>"
    assert repr(double.candidates[0]) == "<op demo::double (tgx-demo 1.0)>"
    assert double.default(tg.ones(1)).tolist() == [2]
    assert dir(ops.demo) == ["double"]
    assert pickle.loads(pickle.dumps(double)) is double
    assert plugins.owner_of(double) == plugins.owner_of(double.candidates[0]) == ("tgx-demo", "1.0")
    with pytest.raises(TypeError, match=r"demo::double\(\): argument 'input'.*\[demo::double \(tgx-demo 1\.0\)\]"):
        double("text")


def test_an_op_can_be_unpickled_where_the_plugin_was_not_used_yet(site):
    site.plugin()
    data = pickle.dumps(ops.demo.double)
    plugins.disable("demo")
    plugins.enable("demo")
    assert pickle.loads(data) is ops.demo.double


def test_an_overload_can_be_called_alone(site):
    site.plugin(
        text="""
        from tinygrad_ext import hookimpl

        @hookimpl
        def tgx_register_ops(register):
            register("demo::f(Tensor self) -> Tensor", compose=lambda self: self + 1)
            register("demo::f.int(Tensor self, int n) -> Tensor", compose=lambda self, n: self + n)
        """
    )
    x = tg.zeros(1)
    assert ops.demo.f(x).item() == 1 == ops.demo.f.default(x).item()
    assert ops.demo.f(x, 5).item() == 5 == ops.demo.f.int(x, 5).item()
    with pytest.raises(TypeError):
        ops.demo.f.int(x)
    with pytest.raises(AttributeError, match="has no overload 'float'; it has default, int"):
        ops.demo.f.float


def test_the_view_of_built_in_ops_is_complete():
    assert ops.aten.add.Tensor(tg.ones(2), tg.ones(2)).tolist() == [2, 2]
    assert {o.schema.name for o in registry.ops.values() if o.name.startswith("aten::")} <= set(dir(ops.aten))
    for name in dir(ops.aten):
        assert getattr(ops.aten, name).overloads()
    with pytest.raises(AttributeError, match="no op 'sofmax'. Near: softmax"):
        ops.aten.sofmax


def test_two_entry_points_fill_one_namespace_in_order(site):
    site.plugin()
    site.install(
        "tgx-more",
        files={"tgx_more.py": (site.folder / "tgx_demo/plugin.py").read_text().replace("double", "triple")},
        entry_points="[tinygrad_ext.plugins]\ndemo.more = tgx_more\n",
    )
    assert dir(ops.demo) == ["double", "triple"]
    assert plugins.owner_of(ops.demo.triple) == ("tgx-more", "1.0")
    assert [p.name for p in plugins.list()] == ["demo", "demo.more"]


def test_a_method_is_added_only_when_asked_for_and_leaves_with_the_plugin(site):
    site.plugin(
        text="""
        from tinygrad_ext import hookimpl

        @hookimpl
        def tgx_register_ops(register):
            register("demo::tgx_twice(Tensor self) -> Tensor", compose=lambda self: self + self,
                     variants="function method inplace")
        """
    )
    assert ops.demo.tgx_twice_(tg.ones(1)).item() == 2 == tg.ones(1).tgx_twice().item()
    plugins.disable("demo")
    assert not hasattr(tg.Tensor, "tgx_twice")
    assert not hasattr(tg.Tensor, "tgx_twice_")


def test_modules_are_reached_by_namespace_and_by_name(site):
    site.plugin(text=MODULE)
    cls = nn.plugins.demo.Double
    assert cls is sys.modules["tgx_demo.plugin"].Double
    assert dir(nn.plugins.demo) == ["Double"]
    assert nn.create("demo::Double", factor=3.0)(tg.ones(1)).item() == 3
    assert plugins.owner_of(cls()) == ("tgx-demo", "1.0")
    with pytest.raises(TypeError, match=r"nn.create\('demo::Double'\) of tgx-demo 1.0: .*'bogus'"):
        nn.create("demo::Double", bogus=1)
    with pytest.raises(AttributeError, match="no module 'Doubel'. Near: Double"):
        nn.plugins.demo.Doubel
    with pytest.raises(LookupError, match="tinygrad_ext.nn.plugins has no namespace 'nowhere'"):
        nn.create("nowhere::Double")


def test_built_in_modules_come_through_the_same_registrar():
    assert nn.create("nn::Linear", in_features=2, out_features=1).weight.shape == (1, 2)
    assert registry.module_owners[nn.Linear] == ("nn::Linear", ("tinygrad_ext", None))


def test_a_state_dict_names_the_owner_and_a_failed_load_says_what_is_needed(site, tmp_path):
    site.plugin(text=MODULE)
    model = nn.Sequential(nn.Linear(2, 2), nn.plugins.demo.Double())
    saved = model.state_dict()
    assert saved._metadata["1"] == {"version": 1, "module": "demo::Double", "owner": "tgx-demo 1.0"}
    assert saved._metadata["0"] == {"version": 1}
    tg.save(saved, tmp_path / "model")
    plugins.disable("demo")
    loaded = tg.load(tmp_path / "model")  # the tensors need no plugin
    plain = nn.Sequential(nn.Linear(2, 2))
    with pytest.raises(
        RuntimeError, match=r"'1' was saved from a demo::Double of tgx-demo 1.0, .*disabled.*plugins.enable\('demo'\)"
    ):
        plain.load_state_dict(loaded)
    plugins.enable("demo")
    assert nn.Sequential(nn.Linear(2, 2), nn.plugins.demo.Double()).load_state_dict(loaded)
    with pytest.raises(
        RuntimeError, match=r"'1' was saved from a demo::Double .*tgx_demo.plugin.Double is that module"
    ):
        plain.load_state_dict(loaded)


def test_metadata_of_a_stranger_does_not_disturb_the_message():
    state = nn.Linear(1, 1).state_dict()
    state._metadata["x"] = 3
    state._metadata["y"] = {"module": 5, "owner": []}
    state["more"] = tg.ones(1)
    with pytest.raises(RuntimeError, match="Unexpected key"):
        nn.Linear(1, 1).load_state_dict(state)


def test_disable_undoes_everything_and_enable_brings_it_back(site, tables):
    before = tables()
    site.plugin(text=MODULE)
    kept = ops.demo.double
    nn.plugins.demo
    plugins.disable("demo")
    assert tables() == before
    with pytest.raises(
        AttributeError, match=r"plugin 'demo' of tgx-demo 1.0 is installed and disabled.*plugins.enable"
    ):
        ops.demo.double
    assert kept(tg.ones(1)).item() == 2, "what the program holds goes on working"
    plugins.enable("demo")
    assert ops.demo.double(tg.ones(1)).item() == 2


def test_scopes_are_undone_in_any_order(site, tables):
    before = tables()
    site.plugin("demo")
    site.plugin("other")
    ops.demo.double, ops.other.double
    plugins.disable("demo")
    assert ops.other.double(tg.ones(1)).item() == 2
    plugins.disable("other")
    assert tables() == before


def test_reload_takes_the_changed_source(site):
    site.plugin()
    assert ops.demo.double(tg.ones(1)).item() == 2
    text = (site.folder / "tgx_demo/plugin.py").read_text()
    site.write("tgx_demo/plugin.py", text.replace("self + self", "self * 100"))
    plugins.reload("demo")
    assert ops.demo.double(tg.ones(1)).item() == 100


def test_reload_takes_a_version_installed_meanwhile(site):
    site.plugin()
    ops.demo.double
    (site.folder / "tgx_demo-1.0.dist-info").rename(site.folder / "tgx_demo-2.0.dist-info")
    metadata = site.folder / "tgx_demo-2.0.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("1.0", "2.0"))
    plugins.rescan()
    assert [(p.version, p.state) for p in plugins.list()] == [("1.0", "active")]
    plugins.reload("demo")
    assert [(p.version, p.state) for p in plugins.list()] == [("2.0", "active")]
    assert "tgx-demo 2.0" in repr(ops.demo.double)


def test_a_namespace_s_name_means_all_that_add_to_it(site):
    site.plugin()
    text = (site.folder / "tgx_demo/plugin.py").read_text().replace("double", "triple")
    site.install("tgx-more", files={"tgx_more.py": text}, entry_points="[tinygrad_ext.plugins]\ndemo.more = tgx_more\n")
    ops.demo
    assert plugins.info("demo").distribution == "tgx-demo"
    plugins.disable("demo")
    assert set(states().values()) == {"disabled"}
    assert "demo" not in registry.namespaces
    plugins.enable("demo")
    plugins.disable("demo.more")
    assert dir(ops.demo) == ["double"]


def test_only_switches_the_others_off_for_a_while(site):
    site.plugin("demo")
    site.plugin("other")
    ops.demo.double, ops.other.double
    with plugins.only("other"):
        with pytest.raises(AttributeError, match="plugins.only"):
            ops.demo.double
        assert ops.other.double(tg.ones(1)).item() == 2
    assert ops.demo.double(tg.ones(1)).item() == 2
    with pytest.raises(plugins.PluginError, match="no plugin is called 'othr'.*Near: other"):
        plugins.only("othr").__enter__()


def test_load_all_loads_the_enabled_ones(site, monkeypatch):
    monkeypatch.setenv("TINYGRAD_EXT_DISABLE_PLUGINS", "other")
    site.plugin("demo")
    site.plugin("other")
    assert {i.name: i.state for i in plugins.load_all()} == {"demo": "active", "other": "disabled"}


def test_a_program_registers_a_plugin_of_its_own(site, tables):
    before = tables()

    class Own:
        @tg.hookimpl
        def tgx_register_ops(self, register):
            register("own::one(Tensor self) -> Tensor", compose=lambda self: self * 0 + 1)

    info = plugins.register("own", Own(), distribution="my-app", version="2.1")
    assert (info.state, info.ops) == ("active", ("own::one",))
    assert ops.own.one(tg.zeros(1)).item() == 1
    assert "my-app 2.1" in repr(ops.own.one)
    with pytest.raises(plugins.PluginError, match="the name 'own' is taken by plugin 'own' of my-app 2.1"):
        plugins.register("own", Own())
    plugins.unregister("own")
    assert tables() == before


def test_a_program_registers_a_module_by_its_name_without_metadata(site):
    (site.folder / "tgx_frozen.py").write_text(MODULE)
    plugins.register("demo", "tgx_frozen")
    assert nn.create("demo::Double")(tg.ones(1)).item() == 2
    plugins.unregister("demo")
    assert "tgx_frozen" not in sys.modules


def test_a_program_s_failing_plugin_raises_and_leaves_nothing(site, tables):
    before = tables()

    class Own:
        @tg.hookimpl
        def tgx_register_ops(self, register):
            register("own::one(Tensor self) -> Tensor", compose=lambda self: self)
            raise ValueError("no")

    with pytest.raises(plugins.PluginError, match="was not loaded: ValueError: no") as caught:
        plugins.register("own", Own())
    assert isinstance(caught.value.__cause__, ValueError)
    assert tables() == before
    assert plugins.list() == []


def test_one_plugin_may_use_the_ops_of_another_while_it_loads(site):
    site.plugin("base")
    site.plugin("demo", text="from tinygrad_ext import ops\ndouble = ops.base.double\n")
    with pytest.raises(AttributeError, match="plugin 'demo' of tgx-demo 1.0 is loaded, and registers no such op"):
        ops.demo.double
    assert states() == {("base", "tgx-base"): "active", ("demo", "tgx-demo"): "active"}


def test_modules_of_the_program_stay_when_its_plugin_goes(site, tmp_path, monkeypatch):
    package = tmp_path / "tgx_program"
    (package / "parts").mkdir(parents=True)
    for name in ("__init__", "later", "parts/__init__"):
        (package / f"{name}.py").write_text("")
    text = (
        "from tinygrad_ext import hookimpl\n\nclass Hooks:\n    @hookimpl\n    def tgx_register_ops(self, register):\n"
    )
    (package / "hooks.py").write_text(
        text + '        register("mine::same(Tensor self) -> Tensor", compose=lambda self: self + 0)\n'
    )
    (package / "parts" / "audio.py").write_text("from tgx_program.hooks import Hooks\n\nplugin = Hooks()\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import tgx_program.hooks

    for target in (tgx_program.hooks.Hooks(), "tgx_program.parts.audio:plugin"):
        plugins.register("mine", target, distribution="program")
        later = importlib.import_module("tgx_program.later")
        plugins.disable("mine")
        plugins.enable("mine")
        plugins.unregister("mine")  # unloaded a second time
        assert sys.modules["tgx_program.later"] is later and "tgx_program.hooks" in sys.modules
        assert "tgx_program.parts.audio" not in sys.modules
    for name in [m for m in sys.modules if m.startswith("tgx_program")]:
        del sys.modules[name]
