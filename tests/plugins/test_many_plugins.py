"""Fifty installed plugins cost an import and a call of a built-in op nothing."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.dummies import write_plugins
from tools import count_instructions

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def env(tmp_path_factory):
    """The environment of a process that has 50 plugins on its path."""
    folder = tmp_path_factory.mktemp("fifty")
    write_plugins(folder, 50)
    return {
        **count_instructions.ENV,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
        "XDG_CONFIG_HOME": str(folder),
        "TINYGRAD_EXT_PLUGINS": "all",
    }


def modules(env, code):
    """What a process has imported of pluggy, importlib.metadata and the plugins, at each `show()`."""
    head = """
import json, sys
def show():
    print(json.dumps([m for m in sys.modules if m.startswith(("pluggy", "importlib.metadata", "tgx_"))]))
"""
    done = subprocess.run([sys.executable, "-c", head + code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_after_an_import_and_a_training_step_no_plugin_and_nothing_that_finds_them_is_imported(env):
    code = """
import tinygrad_ext as tg
show()
x = tg.ones(2, requires_grad=True)
tg.nn.Linear(2, 2)(x).sum().backward()
show()
"""
    assert modules(env, code) == [[], []]


def test_the_first_use_of_a_namespace_imports_that_plugin_alone(env):
    code = """
import tinygrad_ext as tg
assert tg.ops.dummy7.double(tg.ones(2)).tolist() == [2, 2]
show()
assert len(tg.plugins.list()) >= 50
show()
tg.plugins.load_all()
show()
"""
    first, listed, loaded = ([m for m in found if m.startswith("tgx_")] for found in modules(env, code))
    assert first == listed == ["tgx_dummy7"]
    assert len(loaded) == 50


@pytest.mark.slow  # four counts by valgrind
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_a_call_of_a_builtin_op_takes_as_many_instructions_with_fifty_plugins_loaded_as_with_none(env):
    loading = "tg.plugins.load_all(); assert len([p for p in tg.plugins.list() if p.state == 'active']) >= 50"
    none, fifty = (count_instructions.per_call("a + b", setup, env) for setup in ("", loading))
    assert abs(fifty - none) < 0.002 * none  # what an allocation takes depends a little on those before
