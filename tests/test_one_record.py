"""One record in somebody else's package is enough: every form, check, page, stub and benchmark follows from it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import tinygrad_ext as tg
from tinygrad_ext import registry
from tinygrad_ext.describe import op_facts, stubs
from tinygrad_ext.testing import compare, sweep

ROOT = Path(__file__).parent.parent
PACKAGE = '''
"""A package with one op."""

from tinygrad_ext.ops.record import Owner
from tinygrad_ext.ops.samples import unary
from tinygrad_ext.registry.op_registrar import OpRegistrar
from tinygrad_ext.registry.scope import Scope


def _kernel(self, scale):
    if not self.dtype.is_floating_point:
        raise NotImplementedError(f'"scaled_square" not implemented for {self.dtype}: convert it with .float()')
    return self * self * scale


SCOPE = Scope(Owner("tgx-demo", "1.0"), ["tgxdemo"])
REGISTER = OpRegistrar(SCOPE)
REGISTER("tgxdemo::scaled_square(Tensor self, float scale=0.5) -> Tensor",
         kernel=_kernel, types="float half", variants="function method inplace out",
         grad={"self": lambda grad, self, scale: grad * self * (2 * scale)},
         shape=lambda self, scale: self * self * scale, samples=unary,
         reference=lambda x, scale=0.5: x * x * x.dtype.type(scale),
         doc="Square of each element times a number. The number is one half unless given.")
'''
NAME = "scaled_square"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where the package stands."""
    folder = tmp_path_factory.mktemp("demo")
    (folder / "tgx_demo.py").write_text(PACKAGE)
    return folder


@pytest.fixture(scope="module")
def op(folder):
    """The op, registered by importing the package, and taken out of the tables at the end."""
    sys.path.insert(0, str(folder))
    before = tables()
    import tgx_demo

    yield registry.ops[f"tgxdemo::{NAME}"]
    sys.path.remove(str(folder))
    del sys.modules["tgx_demo"]
    tgx_demo.SCOPE.undo()
    assert tables() == before


def tables():
    """All that a record adds to."""
    parts = (registry.ops, registry.functions, registry.methods, registry.namespaces, vars(tg.Tensor))
    return [dict(part) for part in parts]


@pytest.fixture
def fn(op):
    return tg.ops.tgxdemo.scaled_square


def test_function_and_method_compute_it(fn):
    x = tg.tensor([1.0, -2.0])
    assert fn(x).tolist() == [0.5, 2.0]
    assert fn(input=x, scale=2.0).tolist() == [2.0, 8.0]
    assert x.scaled_square(1.0).tolist() == [1.0, 4.0]


def test_inplace_and_out_forms_write_where_they_should(fn):
    x, out = tg.tensor([1.0, -2.0]), tg.zeros(2)
    assert fn(x, out=out) is out
    assert out.tolist() == [0.5, 2.0]
    assert x.scaled_square_() is x
    assert x.tolist() == [0.5, 2.0]


def test_it_is_differentiable_twice(fn):
    x = tg.tensor([1.0, -2.0], dtype=tg.float64, requires_grad=True)
    assert tg.autograd.gradcheck(fn, (x,))
    assert tg.autograd.gradgradcheck(fn, (x,))
    assert type(fn(x).grad_fn).__name__
    assert fn(x).grad_fn.name() == "ScaledSquareBackward0"


def test_it_runs_without_data_on_meta(fn):
    assert fn(tg.empty(2, 3, device="meta")).shape == (2, 3)


def test_it_can_be_overridden(fn):
    class Duck:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, args, kwargs

    duck, x = Duck(), tg.ones(2)
    assert fn(duck, scale=3.0) == (fn, (duck,), {"scale": 3.0})

    class Mode(tg.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return "mode", func

    with Mode():
        assert fn(x) == ("mode", fn)


def test_wrong_arguments_are_refused_by_its_name(fn):
    with pytest.raises(TypeError, match=r"scaled_square\(\)"):
        fn("text")


def test_it_has_a_stub(fn):
    assert stubs.stub(fn) == (
        "def scaled_square(input: Tensor, scale: _float = 0.5, *, out: Tensor | None = None) -> Tensor:\n"
        '    """Square of each element times a number."""\n    ...'
    )


def test_it_has_a_section_in_the_reference(op):
    from tools import docs

    page = docs.render([op])["tgxdemo.md"]
    for wanted in (
        f"## {NAME}",
        op.record.schema,
        "Square of each element times a number.",
        "Owner: tgx-demo 1.0",
        "Derivative: yes, by self",
        "Dtypes: float32, float64, float16, bfloat16",
    ):
        assert wanted in page


def test_the_command_line_finds_it(op, capsys):
    from tinygrad_ext.cli import main

    assert main(["ops", "where", NAME]) == 0
    out = capsys.readouterr().out
    assert f"{op_facts.place(op)[0]}:{op.record.line}" in out
    assert "tgx-demo 1.0" in out


def test_it_has_benchmark_rows(op):
    benchmarks = pytest.importorskip("benchmarks.per_op")
    from benchmarks import libraries, runner

    cases = [c for c in benchmarks.cases(threshold=1000) if NAME in c.name]
    assert [c.name for c in cases] == [f"tgxdemo::{NAME} small", f"tgxdemo::{NAME} large"]
    rows = runner.run(cases, [libraries.Library("tinygrad_ext", tg)], seed=0, rounds=2, seconds=0.002)
    assert all(row.values["tinygrad_ext"] > 0 for row in rows)


def test_the_sweep_covers_it(op):
    assert op in sweep.ops()
    for dtype in sweep.supported(op):
        for sample in sweep.samples(op, dtype):
            if dtype == "bfloat16":  # NumPy has none
                continue
            want = sweep.reference(op)(compare.to_numpy(sample.args[0]))
            compare.assert_close(sweep.call(op, sample.args, sample.kwargs), want, dtype, op.name)


def test_the_test_run_covers_it(folder):
    """`pytest -k` of its name finds and passes its tests, once the package is imported."""
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tgx_demo", "-k", NAME, "tests/test_every_op.py"],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert "passed" in done.stdout, done.stdout


def test_a_second_record_of_the_same_name_is_refused(op):
    import tgx_demo

    with pytest.raises(RuntimeError, match=r"is registered already, by tgx-demo 1.0 at .*tgx_demo.py:\d+"):
        tgx_demo.REGISTER.add(op.record)
