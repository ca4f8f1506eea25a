"""check_plugin, its command, and its pytest tests, on plugins that are installed in a folder on sys.path."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tinygrad_ext import cli, plugins
from tinygrad_ext.testing import check_plugin
from tinygrad_ext.testing.battery import PLUGIN_CHECKS, loading
from tinygrad_ext.testing.battery.check import run_check

ROOT = Path(__file__).parents[2]

PLUGIN = """
import tinygrad_ext as tg
from tinygrad_ext import hookimpl, nn
from tinygrad_ext.ops.samples import Sample

class Double(nn.Module):
    def forward(self, input):
        return input + input

@hookimpl
def tgx_register_ops(register):
    register("demo::double(Tensor self) -> Tensor", compose=lambda self: self + self)
    register("demo::grown(Tensor self) -> Tensor", kernel=lambda self: self.detach().add_(1).clone(), types="float",
             shape=lambda self: tg.empty_like(self), samples=lambda make: [Sample(make(2, 3))])

@hookimpl
def tgx_register_modules(register):
    register("demo::Double", Double, samples=lambda make: [Sample(make(2))])
"""
GOOD = PLUGIN.replace(".detach().add_(1).clone()", " * 1")
ONE = ["schema", "mutation", "forward", "repr"]


def test_the_report_covers_every_op_and_module(site):
    site.plugin(text=PLUGIN)
    report = check_plugin("demo", only=ONE)
    assert (report.name, report.owner, report.ok, report.exit_status) == ("demo", "tgx-demo 1.0", False, 1)
    assert [(r.subject, r.kind, r.check, r.status) for r in report.results] == [
        ("demo::double", "op", "schema", "passed"),
        ("demo::double", "op", "mutation", "passed"),
        ("demo::grown", "op", "schema", "passed"),
        ("demo::grown", "op", "mutation", "failed"),
        ("demo::Double", "module", "forward", "passed"),
        ("demo::Double", "module", "repr", "passed"),
    ]


def test_the_report_is_a_text_and_json(site):
    site.plugin(text=PLUGIN)
    report = check_plugin("demo", only=ONE)
    assert str(report).splitlines() == [
        "demo of tgx-demo 1.0: 5 passed, 1 failed",
        "  demo::double    2 passed",
        "  demo::grown     1 passed; failed: mutation",
        "  demo::Double    2 passed",
        "",
        "demo::grown  mutation: failed",
        "  changes its argument 'self' (from 1.0 to 2.0), which the schema does not declare; write 'Tensor(a!) self', "
        "or work on a copy",
        "  smallest case: tg.ops.demo.grown(tg.tensor(1.0, dtype=tg.float32))",
    ]
    found = json.loads(report.to_json())
    assert found["counts"] == {"passed": 5, "failed": 1, "skipped": 0}
    assert (found["ok"], found["owner"]) == (False, "tgx-demo 1.0")
    failed = next(r for r in found["results"] if r["status"] == "failed")
    assert failed["case"] == "tg.ops.demo.grown(tg.tensor(1.0, dtype=tg.float32))"
    assert (failed["dtype"], failed["cases"]) == ("float32", 1)


def test_a_sound_plugin_passes_everything(site):
    site.plugin(text=GOOD)
    report = check_plugin("demo")
    assert report.ok, str(report)
    assert {r.subject for r in report.results} == {"demo", "demo::double", "demo::grown", "demo::Double"}


CUSTOM = """
import numpy as np
import tinygrad_ext as tg
from tinygrad_ext import hookimpl
from tinygrad_ext.ops.samples import Sample

@tg.library.custom_op("demo::root", mutates_args=(), samples=lambda make: [Sample(make(2, 3, low=1, high=4))])
def root(x: tg.Tensor) -> tg.Tensor:
    if (x < 0).any():
        raise ValueError("the root of a negative number")
    return tg.from_numpy(np.sqrt(x.numpy()).astype(x.numpy().dtype))

@root.register_fake
def _(x):
    return tg.empty_like(x)

root.register_autograd(lambda ctx, grad: grad / (2 * ctx.saved_tensors[0]),
                       setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output))
"""


def test_an_op_of_custom_op_brings_samples_too(site):
    site.plugin(text=CUSTOM)
    report = check_plugin("demo", op="root")
    assert report.ok, str(report)
    assert {"derivative", "second_derivative"} <= {r.check for r in report.of("passed")}
    site.write("tgx_demo/plugin.py", CUSTOM.replace("2 * ctx", "3 * ctx").replace("ValueError", "KeyError"))
    plugins.reload("demo")
    failed = {r.check: r.message for r in check_plugin("demo", op="root").of("failed")}
    assert sorted(failed) == ["derivative", "second_derivative"]


def test_one_op_is_chosen_by_any_of_its_names(site):
    site.plugin(text=PLUGIN)
    for name in ("grown", "demo::grown"):
        assert {r.subject for r in check_plugin("demo", op=name, only=ONE).results} == {"demo::grown"}
    assert {r.subject for r in check_plugin("tgx-demo", op="Double", only=ONE).results} == {"demo::Double"}
    with pytest.raises(LookupError, match="plugin 'demo' has no op or module 'doubel'; it has demo::double"):
        check_plugin("demo", op="doubel")


def test_what_is_not_there_is_refused(site):
    site.plugin(text=PLUGIN)
    with pytest.raises(LookupError, match="there is no check 'mutations'; there are .*mutation"):
        check_plugin("demo", only=["mutations"])
    with pytest.raises(plugins.PluginError, match="no plugin is called 'dema'"):
        check_plugin("dema")


def test_a_plugin_that_brings_nothing_is_not_all_well(site):
    site.plugin(text="from tinygrad_ext import hookimpl\n@hookimpl\ndef tgx_register_ops(register): pass\n")
    assert check_plugin("demo", only=["schema"]).exit_status == 1


# ---- the command ---------------------------------------------------------------------------------------------------


def test_the_command_prints_a_report_and_its_status_is_that_of_the_checks(site, capsys):
    site.plugin(text=PLUGIN)
    assert cli.main(["plugins", "check", "demo", "--only", "mutation"]) == 1
    assert "demo::grown  mutation: failed" in capsys.readouterr().out
    assert cli.main(["plugins", "check", "demo", "--only", "mutation", "--op", "double", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"]["passed"] == 1


def test_the_command_refuses_unknown_names_with_status_2(site, capsys):
    site.plugin(text=PLUGIN)
    for arguments, text in (
        (["dema"], "no plugin is called 'dema'"),
        (["demo", "--op", "tripel"], "has no op or module 'tripel'"),
        (["demo", "--only", "speed"], "there is no check 'speed'"),
    ):
        assert cli.main(["plugins", "check", *arguments]) == 2
        assert text in capsys.readouterr().err


HANDLER = """
from tinygrad_ext import hookimpl

class Mine:
    pass

def handle(func, types, args, kwargs):
    return NotImplemented if func.__name__ == "unserved" and len(args) < {least} else "handled"

@hookimpl
def tgx_register_overrides(register):
    register(Mine, handle)
    register("tgx_demo.types", handle)
"""


def test_a_handler_of_foreign_types_must_decline_what_it_does_not_know(site):
    site.plugin(text=HANDLER.format(least=9))
    assert [(r.subject, r.status) for r in check_plugin("demo", only=["declines"]).results] == [
        ("tgx_demo.plugin.Mine", "passed"),
        ("tgx_demo.types", "passed"),
    ]
    site.write("tgx_demo/plugin.py", HANDLER.format(least=1))
    plugins.reload("demo")
    failed = check_plugin("demo", only=["declines"]).of("failed")
    assert len(failed) == 2
    assert "called for a function it cannot know, the handler returned 'handled'" in failed[0].message


# ---- the plugin as a whole -----------------------------------------------------------------------------------------


def test_a_slow_import_fails_and_names_the_dearest_modules(site, monkeypatch):
    site.install(
        "tgx-demo",
        files={
            "tgx_demo/__init__.py": "",
            "tgx_demo/heavy.py": "sum(range(10**7))\n",
            "tgx_demo/plugin.py": "import tgx_demo.heavy\n" + PLUGIN,
        },
        entry_points="[tinygrad_ext.plugins]\ndemo = tgx_demo.plugin\n",
    )
    monkeypatch.setattr(loading, "BUDGET", 0.0)
    monkeypatch.setattr(loading, "RUNS", 1)
    result = whole("import_cost")
    assert result.status == "failed"
    assert "at most 0.0 s are allowed" in result.message
    assert result.message.splitlines()[1].endswith(" ms  tgx_demo.heavy")


def test_what_lies_in_the_current_folder_is_not_loaded_instead(site, tmp_path, monkeypatch):
    site.plugin(text=GOOD)
    (tmp_path / "elsewhere" / "tinygrad_ext").mkdir(parents=True)
    (tmp_path / "elsewhere" / "tinygrad_ext" / "__init__.py").write_text("raise ImportError('not built')\n")
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert whole("host_untouched").status == "passed"


def whole(check):
    return run_check(PLUGIN_CHECKS[check], loading.PluginSubject(plugins.info("demo")))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tg.set_default_dtype(tg.float64)", "default dtype torch.float32 -> torch.float64"),
        ("tg.set_num_threads(1 if tg.get_num_threads() > 1 else 2)", "number of threads"),
        ("tg.manual_seed(3)", "random state"),
        ("tg.Tensor.shout = print", "attributes of Tensor shout"),
        ("tg.add = print", "attributes of tinygrad_ext add"),
        ("__import__('warnings').simplefilter('ignore')", "warning filters"),
        ("print('hello, I am a plugin')", "loading it prints: hello, I am a plugin"),
    ],
)
def test_a_plugin_that_changes_the_host_fails(site, line, message):
    site.plugin(text="import tinygrad_ext as tg\ntg.add\n" + line + "\n" + GOOD)
    result = whole("host_untouched")
    assert result.status == "failed"
    assert message in result.message


def test_a_plugin_of_the_program_has_no_import_to_check(isolated_plugins):
    class Empty:
        pass

    isolated_plugins.register("demo", Empty())
    assert whole("import_cost").message == "it is registered by this program, not installed"


# ---- as pytest tests -----------------------------------------------------------------------------------------------


def test_plugin_tests_are_one_test_for_each_op_and_check(site, tmp_path):
    site.plugin(text=PLUGIN)
    file = tmp_path / "test_demo.py"
    file.write_text(
        "from tinygrad_ext.testing import plugin_tests\n"
        "test_demo = plugin_tests('demo', only=['schema', 'mutation', 'reference', 'repr'])\n"
    )
    path = os.pathsep.join([str(ROOT), str(site.folder), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", str(file)],
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert "PASSED test_demo.py::test_demo[double-mutation]" in lines
    assert "PASSED test_demo.py::test_demo[Double-repr]" in lines
    assert any(line.startswith("FAILED test_demo.py::test_demo[grown-mutation]") for line in lines)
    assert any("SKIPPED" in line and "the record names no reference" in line for line in lines)
    assert "smallest case: tg.ops.demo.grown(tg.tensor(1.0, dtype=tg.float32))" in done.stdout
    assert done.returncode == 1
