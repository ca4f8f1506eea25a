"""The stub files say what the records say, and a user's program passes mypy with them."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tinygrad_ext as tg
from tinygrad_ext import registry
from tinygrad_ext.describe import stubs
from tools import stubs as tool

ROOT = Path(__file__).parent.parent
needs_mypy = pytest.mark.skipif(
    importlib.util.find_spec("mypy") is None, reason="mypy is not installed: pip install mypy"
)


needs_pyright = pytest.mark.skipif(
    importlib.util.find_spec("pyright") is None or not (shutil.which("node") or importlib.util.find_spec("nodejs")),
    reason="pyright is not installed, or has no node: pip install 'pyright[nodejs]'",
)
PROGRAMS = ("sample", "user")
REVEALED = """
import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.utils.data import Dataset, random_split

x, data = tg.ones(2, 2), Dataset[int]()
reveal_type(nn.Linear(1, 1).weight)
reveal_type(nn.Conv1d(1, 2, 3).out_channels)
reveal_type(nn.BatchNorm2d(3).running_var)
reveal_type(tg.einsum("ij,jk->ik", x, x))
reveal_type(tg.meshgrid(x, x, indexing="ij"))
reveal_type(tg.broadcast_tensors(x, x)[0])
reveal_type(x @ x + 1)
reveal_type(random_split(data, [1, 2]))
"""


def run(*command, **env):
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, check=False)


def mypy(*arguments):
    done = run(sys.executable, "-m", "mypy", "--cache-dir", "build/mypy", *arguments)
    return done.returncode, done.stdout + done.stderr


def test_stub_files_are_fresh():
    stale = [path for path, text in tool.render().items() if (ROOT / "tinygrad_ext" / path).read_text() != text]
    assert not stale, "run python -m tools.stubs"


@needs_mypy
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_a_user_passes_strict_mypy(program):
    code, output = mypy("--strict", f"tests/typing/{program}.py")
    assert code == 0, output


@pytest.mark.slow
@needs_pyright
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_a_user_passes_pyright(program):
    done = run(sys.executable, "-m", "pyright", f"tests/typing/{program}.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_users_program_runs():
    done = run(sys.executable, "-W", "error", "tests/typing/user.py", PYTHONPATH=str(ROOT))
    assert done.returncode == 0, done.stderr


@needs_mypy
def test_types_reach_where_users_look(tmp_path):
    program = tmp_path / "reveal.py"
    program.write_text(REVEALED)
    code, output = mypy("--strict", str(program))
    assert code == 0, output
    told = re.findall(r'Revealed type is "([^"]+)"', output)
    kinds = [re.sub(r"\b(?:builtins|tinygrad_ext\.[a-z.]+)\.", "", kind) for kind in told]
    assert kinds == [
        "Parameter",
        "int",
        "Tensor",
        "Tensor",
        "tuple[Tensor, ...]",
        "Tensor",
        "Tensor",
        "list[Subset[int]]",
    ]


@needs_mypy
def test_the_stub_files_themselves_pass_strict_mypy():
    code, output = mypy("--strict", *(f"tinygrad_ext/{path}" for path in tool.FILES))
    assert code == 0, output


@needs_mypy
def test_wrong_programs_are_refused(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import tinygrad_ext as tg\nx = tg.zeros('three')\ny = tg.ones(2).exp(1)\ntg.no_such_op()\n")
    code, output = mypy("--strict", str(wrong))
    assert code == 1
    assert all(f"wrong.py:{line}: error" in output for line in (2, 3, 4)), output


def test_every_public_name_of_tensor_is_in_its_stub():
    text = tool.tensor_stub()
    for name in dir(tg.Tensor):
        if not name.startswith("_"):
            assert f"def {name}(" in text or f"    {name}: " in text, name


def test_every_public_function_of_the_package_is_in_its_stub():
    text = tool.package_stub()
    for path, fn in registry.functions.items():
        if "." not in path and not path.startswith("_"):
            assert f"def {fn.__name__}(" in text or f"def {path}(" in text, path


def test_doc_is_cut_after_its_first_sentence():
    assert stubs.first_sentence("Sum, e.g. of 1.5 and 2. Raises nothing.") == "Sum, e.g. of 1.5 and 2."
