"""`python -m tinygrad_ext ops ...` finds every op and says where its parts stand."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tinygrad_ext as tg
from tinygrad_ext import describe, registry
from tinygrad_ext.cli import main

# Ops whose kernel calls NumPy or SciPy. The number may only fall, or rise with a reason in docs/decisions/.
CALL_A_LIBRARY_AT_MOST = 0


def run(capsys, *arguments):
    code = main(list(arguments))
    return code, capsys.readouterr()


def test_where_names_file_line_kernel_derivative_owner_checks_and_page(capsys):
    code, out = run(capsys, "ops", "where", "exp")
    record = tg.exp.candidates[0].record
    assert code == 0
    for wanted in (
        f"tinygrad_ext/ops/elementary.py:{record.line}",
        "pointwise, loops exp_{f32,f64}",
        "yes, by self",
        "owner       tinygrad_ext",
        "pytest -k exp",
        "docs/reference/elementary.md#exp",
    ):
        assert wanted in out.out


def test_where_leads_to_the_line_of_the_record():
    for op in registry.ops.values():
        lines = Path(op.record.source).read_text().split("\n")
        assert "op(" in lines[op.record.line - 1] or "record(" in lines[op.record.line - 1], op.name


def test_where_finds_the_file_of_every_compiled_kernel():
    for op in registry.ops.values():
        if isinstance(op.record.kernel or op.record.compose, str):
            assert ", native/" in describe.computed_by(op), describe.computed_by(op)


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
    assert all(o["kind"] in ("pointwise", "kernel", "python", "composite") for o in listed)


def test_list_of_one_kind(capsys):
    _, out = run(capsys, "ops", "list", "--kind", "pointwise")
    assert "aten::exp " in out.out
    assert "aten::cat " not in out.out


def test_few_kernels_call_a_library():
    found = {o.name: describe.calls_library(o) for o in registry.ops.values() if describe.calls_library(o)}
    assert len(found) <= CALL_A_LIBRARY_AT_MOST, found


def test_no_compiled_kernel_calls_a_library():
    for path in (describe.PACKAGE / "native").glob("*.pyx"):
        assert not re.search(r"^\s*(?:import|from)\s+(?:numpy|scipy)", path.read_text(), re.M), path.name


def test_a_library_is_found_behind_helpers():
    class Fake:
        class record:
            kernel, compose = staticmethod(_through_helper), None

    assert describe.calls_library(Fake) == "numpy"


def _through_helper(x):
    return _helper(x)


def _helper(x):
    import numpy

    return numpy.fft.fft(x)


def test_the_package_does_not_load_its_command_line():
    code = (
        "import sys, tinygrad_ext; bad = {'rich', 'click', 'argparse', 'tinygrad_ext.cli', 'tinygrad_ext.describe', "
        "'tinygrad_ext.stubs', 'tinygrad_ext.testing'} & set(sys.modules); assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
