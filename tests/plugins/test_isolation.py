"""The fixtures for authors: nothing that a test does about plugins outlives it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn, ops, plugins
from tinygrad_ext.testing.isolation import isolated, temporary

ROOT = Path(__file__).parents[2]


class Demo:
    @tg.hookimpl
    def tgx_register_ops(self, register):
        register("demo::double(Tensor self) -> Tensor", compose=lambda self: self * 2.0)
        register("demo::thrice(Tensor self) -> Tensor", compose=lambda self: self * 3, variants="function method")


class Double(nn.Module):
    def forward(self, input):
        return input * 2


def test_no_plugin_is_seen_inside(site):
    site.plugin("demo")
    site.plugin("other")
    assert ops.demo.double(tg.ones(1)).tolist() == [2]
    with isolated():
        assert plugins.list() == []
        assert not hasattr(ops.demo, "double")
        assert "tgx_demo.plugin" not in sys.modules


def test_all_is_put_back_afterwards(site):
    site.plugin("demo")
    site.plugin("other")
    double = ops.demo.double
    module = sys.modules["tgx_demo.plugin"]
    plugins.disable("other")
    with isolated() as inside:
        inside.register("demo", Demo())
        assert tg.ones(1).thrice().tolist() == [3]
        plugins.disable("demo")
        os.environ["TINYGRAD_EXT_PLUGINS"] = "none"
    assert {i.name: i.state for i in plugins.list()} == {"demo": "active", "other": "disabled"}
    assert not hasattr(tg.Tensor, "thrice")
    assert sys.modules["tgx_demo.plugin"] is module
    assert ops.demo.double(tg.ones(1)).tolist() == double(tg.ones(1)).tolist()
    assert "TINYGRAD_EXT_PLUGINS" not in os.environ


def test_it_is_put_back_when_the_test_fails(site):
    site.plugin("demo")
    with pytest.raises(ZeroDivisionError), isolated() as inside:
        inside.register("demo", Demo())
        raise ZeroDivisionError
    assert [i.name for i in plugins.list()] == ["demo"]


def test_an_installed_plugin_is_seen_when_asked_for(site):
    site.plugin("demo")
    site.plugin("other")
    plugins.disable("demo")
    with isolated() as inside:
        inside.use("demo")
        assert [i.name for i in plugins.list()] == ["demo"]
        assert ops.demo.double(tg.ones(1)).tolist() == [2]
        with pytest.raises(plugins.PluginError, match="no installed plugin is called 'dome'; there are demo, other"):
            inside.use("dome")
    assert plugins.info("demo").state == "disabled"


def test_settings_of_the_user_say_nothing_inside(site, monkeypatch):
    monkeypatch.setenv("TINYGRAD_EXT_DISABLE_PLUGINS", "demo")
    with isolated() as inside:
        assert inside.register("demo", Demo()).state == "active"
    assert os.environ["TINYGRAD_EXT_DISABLE_PLUGINS"] == "demo"


def test_what_is_registered_temporarily_goes(tables):
    before = tables()

    class Mine:
        pass

    with temporary() as register:
        double = register.op("mine::double(Tensor self) -> Tensor", compose=lambda self: self * 2)
        assert register.module("mine::Double", Double, samples=lambda make: []) is Double
        register.override(Mine, lambda func, types, args, kwargs: "handled")
        assert double is ops.mine.double
        assert double.candidates[0].record.source == __file__
        assert nn.create("mine::Double")(tg.ones(1)).tolist() == [2]
        assert double(Mine()) == "handled"
    assert tables() == before


def test_the_fixtures_are_these(isolated_plugins, register_temporarily):
    register_temporarily.op("mine::double(Tensor self) -> Tensor", compose=lambda self: self * 2)
    isolated_plugins.register("demo", Demo())
    assert [i.name for i in plugins.list()] == ["demo"]
    assert ops.mine.double(tg.ones(1)).tolist() == ops.demo.double(tg.ones(1)).tolist()


def test_starting_pytest_does_not_import_the_package(tmp_path):
    (tmp_path / "test_nothing.py").write_text(
        "import sys\n\ndef test_nothing():\n    assert 'tinygrad_ext' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "pytest_tinygrad_ext", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
