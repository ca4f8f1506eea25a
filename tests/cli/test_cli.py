"""The command line as such, and `ops ...`, which finds every op and says where its parts stand."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tinygrad_ext as tg
from tinygrad_ext import registry
from tinygrad_ext.cli import main
from tinygrad_ext.cli.app import app
from tinygrad_ext.describe import op_facts
from tinygrad_ext.ops.record import BUILTIN

# Ops whose kernel calls NumPy or SciPy. The number may only fall, or rise with a reason in docs/decisions/.
CALL_A_LIBRARY_AT_MOST = 1  # linalg.solve, decision 0012


def run(capsys, *arguments):
    code = main(list(arguments))
    return code, capsys.readouterr()


def test_where_names_file_line_kernel_derivative_owner_checks_and_page(capsys):
    code, out = run(capsys, "ops", "where", "exp")
    record = tg.exp.candidates[0].record
    assert code == 0
    for wanted in (
        f"tinygrad_ext/ops/elementary.py:{record.line}",
        "pointwise, loops exp_{f32,f64,f16,bf16,c64,c128}",
        "yes, by self",
        "owner       tinygrad_ext",
        "pytest -k exp",
        "docs/reference/elementary.md#exp",
    ):
        assert wanted in out.out


def builtin_ops():
    """Without those of plugins that are installed and that another test loaded."""
    return [op for op in registry.ops.values() if op.record.owner == BUILTIN]


def test_where_leads_to_the_line_of_the_record():
    for op in builtin_ops():
        lines = Path(op.record.source).read_text().split("\n")
        assert "op(" in lines[op.record.line - 1] or "record(" in lines[op.record.line - 1], op.name


def test_where_finds_the_file_of_every_compiled_kernel():
    for op in builtin_ops():
        if isinstance(op.record.kernel or op.record.compose, str):
            folder = "kernels" if op.kernel_kind == "kernel" else "native"
            assert f", {folder}/" in op_facts.computed_by(op), op_facts.computed_by(op)


@pytest.mark.parametrize("name", ["add", "add.Tensor", "aten::add.Tensor", "add_", "multiply", "Tensor.exp"])
def test_an_op_is_found_by_each_of_its_names(capsys, name):
    assert run(capsys, "ops", "show", name)[0] == 0


def test_an_unknown_name_lists_near_ones(capsys):
    code, out = run(capsys, "ops", "where", "expp")
    assert code == 2
    assert "no op is called 'expp'. Near: exp" in out.err


def test_list_counts_kinds_and_json_holds_every_op(capsys):
    _, out = run(capsys, "ops", "list")
    assert f"{len(registry.ops)} ops: " in out.out
    _, out = run(capsys, "ops", "list", "--json")
    listed = json.loads(out.out)
    assert {o["name"] for o in listed} == set(registry.ops)
    assert all(o["kind"] in ("pointwise", "kernel", "boxed", "python", "composite") for o in listed)


def test_where_and_show_print_json_too(capsys):
    _, out = run(capsys, "ops", "where", "add", "--json")
    assert [o["name"] for o in json.loads(out.out)] == [o.name for o in tg.add.candidates]
    _, out = run(capsys, "ops", "show", "exp", "--json")
    (shown,) = json.loads(out.out)
    assert shown["stub"] == ["def exp(input: Tensor, *, out: Tensor | None = None) -> Tensor: ..."]


def test_list_of_kernels_counts_them_and_says_why_some_are_python(capsys):
    _, out = run(capsys, "ops", "list", "--kernel")
    assert "gives nested lists of Python numbers" in out.out and "aten::logsumexp" in out.out
    assert "aten::exp " not in out.out and f"{len(registry.ops)} ops: " in out.out


def test_list_of_one_kind(capsys):
    _, out = run(capsys, "ops", "list", "--kind", "pointwise")
    assert "aten::exp " in out.out
    assert "aten::cat " not in out.out


def test_list_tells_how_tangents_are_found_and_few_ops_need_two_backward_passes(capsys):
    _, out = run(capsys, "ops", "list", "--jvp")
    kinds = {line.split()[0]: line.split()[-1] for line in out.out.splitlines() if line.startswith("aten::")}
    assert (
        kinds["aten::exp"] == "pointwise"
        and kinds["aten::cat"] == "linear"
        and kinds["aten::softmax.int"] == "symmetric"
    )
    assert sum(kind == "transposed" for kind in kinds.values()) <= 7


def test_list_tells_how_ops_go_through_vmap_and_no_builtin_one_loops(capsys):
    _, out = run(capsys, "ops", "list", "--batch")
    kinds = {line.split()[0]: line.split()[-1] for line in out.out.splitlines() if line.startswith("aten::")}
    assert kinds["aten::exp"] == "pointwise" and kinds["aten::conv2d"] == "rule" and kinds["aten::zeros"] == "shared"
    assert kinds["aten::item"] == "read" and "loop" not in kinds.values()


def test_few_kernels_call_a_library():
    found = {o.name: op_facts.calls_library(o) for o in builtin_ops() if op_facts.calls_library(o)}
    assert len(found) <= CALL_A_LIBRARY_AT_MOST, found


def test_no_compiled_kernel_calls_a_library():
    for path in (op_facts.PACKAGE / "native").glob("*.pyx"):
        assert not re.search(r"^\s*(?:import|from)\s+(?:numpy|scipy)", path.read_text(), re.M), path.name


def test_a_library_is_found_behind_helpers():
    class Fake:
        class record:
            kernel, compose = staticmethod(_through_helper), None

    assert op_facts.calls_library(Fake) == "numpy"


def _through_helper(x):
    return _helper(x)


def _helper(x):
    import numpy

    return numpy.fft.fft(x)


def test_the_package_does_not_load_its_command_line():
    code = (
        "import sys, tinygrad_ext; bad = {'rich', 'click', 'packaging', 'argparse', 'tinygrad_ext.cli', "
        "'tinygrad_ext.describe', 'tinygrad_ext.testing'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_module_runs_it_and_piped_output_is_plain():
    done = subprocess.run(
        [sys.executable, "-m", "tinygrad_ext", "ops", "show", "exp"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "FORCE_COLOR": "1"},
    )
    assert done.stdout.startswith("aten::exp\n") and "\x1b" not in done.stdout


def test_on_a_terminal_rich_prints(capsys, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    code, out = run(capsys, "ops", "show", "exp")
    assert code == 0 and "\x1b[1maten::exp" in out.out


@pytest.mark.parametrize("call", [["ops", "lisst"], ["ops", "list", "--kind", "wood"], ["ops", "where"], ["nothing"]])
def test_a_wrong_call_ends_with_status_2_and_the_usage(capsys, call):
    code, out = run(capsys, *call)
    assert code == 2 and out.err.startswith("Usage: tinygrad-ext") and "Error: " in out.err


def test_help_tells_the_exit_status(capsys):
    code, out = run(capsys, "--help")
    assert code == 0 and "Exit status: 0 done; 1 done, and something is wrong" in out.out


def test_every_command_prints_json():
    leaves = [c for group in app.commands.values() for c in getattr(group, "commands", {"": group}).values()]
    assert len(leaves) >= 7
    for command in leaves:
        assert any("--json" in p.opts for p in command.params), command.name


@pytest.mark.parametrize("missing", ["click", "rich", "packaging"])
def test_without_the_extra_one_line_says_how_to_get_it(missing):
    code = f"import sys; sys.modules[{missing!r}] = None; from tinygrad_ext.cli import main; sys.exit(main(['ops']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"tinygrad-ext needs {missing}: python -m pip install click rich packaging\n"


def test_the_console_script_is_declared():
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert '[project.scripts]\ntinygrad-ext = "tinygrad_ext.cli:main"\n' in text
