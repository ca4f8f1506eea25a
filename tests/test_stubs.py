"""The stub files say what the records say, and a user's program passes mypy with them."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

import tinygrad_ext as tg
from tinygrad_ext import registry, stubs
from tools import stubs as tool

ROOT = Path(__file__).parent.parent
needs_mypy = pytest.mark.skipif(
    importlib.util.find_spec("mypy") is None, reason="mypy is not installed: pip install mypy"
)


def mypy(*arguments):
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--cache-dir", "build/mypy", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_stub_files_are_fresh():
    stale = [path for path, text in tool.render().items() if (ROOT / "tinygrad_ext" / path).read_text() != text]
    assert not stale, "run python -m tools.stubs"


@needs_mypy
def test_a_program_of_a_user_passes_strict_mypy():
    code, output = mypy("--strict", "tests/typing/sample.py")
    assert code == 0, output


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
