"""Distributions made of a folder with .dist-info on sys.path, whose entry points the real importlib.metadata reads."""

import importlib
import sys
import textwrap

import pytest
from tinygrad_ext.core.call.callables import OpFunction

import tinygrad_ext as tg
from tinygrad_ext import nn, plugins, registry  # nn: so that its import is no part of a test
from tinygrad_ext.plugins import fence, loader, settings, table
from tinygrad_ext.registry import foreign, override_registrar, profiler_registrar

OP = """
from tinygrad_ext import hookimpl

@hookimpl
def tgx_register_ops(register):
    register("{ns}::double(Tensor self) -> Tensor", compose=lambda self: self + self)
"""


class Site:
    """A folder on sys.path into which distributions are put."""

    def __init__(self, folder):
        self.folder = folder

    def install(self, name, version="1.0", files=None, entry_points="", folder=None, record=True, metadata=True):
        """Write a distribution: files is {path: text}, entry_points the text of that file."""
        folder = folder or self.folder
        for path, text in (files or {}).items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(textwrap.dedent(text))
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        if metadata:
            (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nA text.\n")
        if record:
            (info / "RECORD").write_text("".join(f"{path},,\n" for path in files or {}))
        if entry_points:
            (info / "entry_points.txt").write_text(textwrap.dedent(entry_points))
        plugins.rescan()

    def plugin(self, ns="demo", text=None, name=None, **more):
        """One plugin tgx-<ns> whose module tgx_<ns>/plugin.py has the given text (default: an op `double`)."""
        self.install(
            name or f"tgx-{ns}",
            files={f"tgx_{ns}/__init__.py": "", f"tgx_{ns}/plugin.py": OP.format(ns=ns) if text is None else text},
            entry_points=f"[tinygrad_ext.plugins]\n{ns} = tgx_{ns}.plugin\n",
            **more,
        )

    def write(self, path, text):
        """Change a file; the compiled one of before is not reused."""
        (self.folder / path).write_text(textwrap.dedent(text))
        importlib.invalidate_caches()


@pytest.fixture
def tables():
    """The function `snapshot`."""
    return snapshot


@pytest.fixture
def site(tmp_path, monkeypatch):
    """An empty folder for distributions; nothing is loaded before, and nothing stays."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for key in ("TINYGRAD_EXT_PLUGINS", "TINYGRAD_EXT_DISABLE_PLUGINS", "TINYGRAD_EXT_STRICT_PLUGINS"):
        monkeypatch.delenv(key, raising=False)
    known = snapshot(), set(sys.modules)
    plugins.rescan()
    yield Site(folder)
    for plugin in table.known():
        loader.unload(plugin)
    table.registered().clear()
    settings.chosen.clear()
    for name in set(sys.modules) - known[1]:
        if name.startswith(("tgx_", "shared_dependency")):
            del sys.modules[name]
    sys.path.remove(str(folder))
    plugins.rescan()
    sys.path.insert(0, str(folder))
    assert snapshot() == known[0], "a test left something registered"


def snapshot():
    """All that a plugin can add to, so that two moments can be compared."""
    functions = {name: (id(f), f.candidates) for name, f in (*registry.functions.items(), *registry.methods.items())}
    return {
        "ops": dict(registry.ops),
        "functions": functions,
        "namespaces": {n: dict(vars(ns)) for n, ns in registry.namespaces.items() if n != "aten"},
        "modules": dict(registry.modules),
        "owners": dict(registry.module_owners),
        "samples": dict(registry.module_samples),
        "Tensor": dict(vars(tg.Tensor)),
        "package": {n: id(v) for n, v in vars(tg).items() if isinstance(v, OpFunction)},
        "functional": {n: id(v) for n, v in vars(nn.functional).items()},
        "receivers": dict(profiler_registrar.receivers),
        "handled": dict(override_registrar.handled),
        "overrides": dict(foreign._registered),
        "claimed": {k: set(v) for k, v in fence._claimed.items()},
        "sys.modules": {m for m in sys.modules if m.startswith(("tgx_", "shared_dependency"))},
    }
