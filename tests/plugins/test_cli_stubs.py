"""`tinygrad-ext stubs`: type checkers know the ops of installed plugins."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tinygrad_ext.cli import main

ROOT = Path(__file__).parent.parent.parent
OPS = """
from tinygrad_ext import hookimpl

def register_all(register):
    def add(schema, **more):
        register(schema, compose=lambda *args: args[0], **more)
    add("demo::crop(Tensor self, int[2] size, *, bool center=True) -> Tensor", doc="Cut out a window. More.")
    add("demo::crop.by(Tensor self, float share) -> Tensor")
    add("demo::split_off(Tensor self, str? mode=None) -> (Tensor head, Tensor tail)", variants="function")
    add("demo::shift_(Tensor(a!) self, Scalar by) -> Tensor(a!)")
    add("demo::half(Tensor self) -> Tensor", variants="function inplace out")
    add("demo::nothing() -> Tensor")

@hookimpl
def tgx_register_ops(register):
    register_all(register)
"""
RIGHT = """
import tinygrad_ext as tg
from tinygrad_ext import Tensor, ops

x = tg.ones(3, 4)
a: Tensor = ops.demo.crop(x, (2, 2), center=False)
b: Tensor = tg.ops.demo.crop(x, share=0.5)
head: Tensor = ops.demo.split_off(x, mode="even").head
c: Tensor = ops.demo.half(x, out=ops.demo.half_(x))
d: Tensor = ops.demo.shift_(ops.demo.nothing(), 2.5)
e = ops.demo.crop.default(x, 2)
f = ops.not_seen.anything(x)
"""
WRONG = """
from tinygrad_ext import ones, ops
x = ones(3, 4)
ops.demo.crop(x)
ops.demo.crop("text", 2)
y: str = ops.demo.half(x)
ops.demo.no_such_op(x)
ops.demo.split_off(x).middle
"""


def mypy(program, stubs, file):
    """mypy's report on a program of a user, or on a stub file."""
    file.write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir", "build/mypy", str(file)],
        cwd=ROOT,
        env={**os.environ, "MYPYPATH": str(stubs)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


needs_mypy = pytest.mark.skipif(
    importlib.util.find_spec("mypy") is None, reason="mypy is not installed: pip install mypy"
)


@needs_mypy
def test_mypy_knows_the_ops_of_a_plugin(site, capsys, tmp_path):
    site.plugin(text=OPS)
    stubs = tmp_path / "typings"
    assert main(["stubs", "--output", str(stubs)]) == 0
    assert capsys.readouterr().out == (
        f"wrote 2 files in {stubs / 'tinygrad_ext_plugin_ops'}: __init__.pyi, demo.pyi\n"
    )
    code, output = mypy(RIGHT, stubs, tmp_path / "program.py")
    assert code == 0, output
    code, output = mypy(WRONG, stubs, tmp_path / "program.py")
    assert code == 1
    assert all(f"program.py:{line}: error" in output for line in range(4, 9)), output
    written = (stubs / "tinygrad_ext_plugin_ops" / "demo.pyi").read_text()
    code, output = mypy(written, tmp_path, tmp_path / "checked.pyi")
    assert code == 0, output


@needs_mypy
def test_without_the_stubs_everything_goes(tmp_path):
    code, output = mypy(
        "from tinygrad_ext import ops\nops.demo.anything(1)\nops.aten.add(1)\n", tmp_path, tmp_path / "program.py"
    )
    assert code == 0, output


def test_the_stubs_of_a_plugin_that_is_gone_leave(site, capsys, tmp_path):
    site.plugin()
    main(["stubs", "--output", str(tmp_path)])
    (tmp_path / "tinygrad_ext_plugin_ops" / "gone.pyi").write_text(
        (tmp_path / "tinygrad_ext_plugin_ops" / "demo.pyi").read_text()
    )
    capsys.readouterr()
    assert main(["stubs", "--output", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == ["__init__.pyi", "demo.pyi"]
    assert not (tmp_path / "tinygrad_ext_plugin_ops" / "gone.pyi").exists()


def test_a_folder_with_other_files_is_left_alone(site, capsys, tmp_path):
    mine = tmp_path / "tinygrad_ext_plugin_ops" / "mine.pyi"
    mine.parent.mkdir()
    mine.write_text("x: int\n")
    assert main(["stubs", "--output", str(tmp_path)]) == 2
    assert "holds mine.pyi, which this command did not write" in capsys.readouterr().err
    assert mine.read_text() == "x: int\n" and len(list(mine.parent.iterdir())) == 1


def test_a_broken_plugin_is_named_and_the_others_are_written(site, capsys, tmp_path):
    site.plugin()
    site.plugin("bad", text="raise ValueError('no luck')\n")
    assert main(["stubs", "--output", str(tmp_path)]) == 1
    out = capsys.readouterr()
    assert "__init__.pyi, demo.pyi" in out.out
    assert "its ops are left out: tgx-bad 1.0 is failed: ValueError: no luck" in out.err


def test_a_folder_that_cannot_be_written_is_told_without_a_traceback(site, capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert main(["stubs", "--output", str(tmp_path / "file")]) == 2
    told = capsys.readouterr().err
    assert "cannot be written: Not a directory; choose another DIR" in told
