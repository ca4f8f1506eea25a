"""Plugins that bring a compiled library: loaded, disabled, loaded again, and told about by `plugins doctor`."""

import json
import subprocess
import sys

import pytest

import tinygrad_ext as tg
from tinygrad_ext import plugins, registry
from tinygrad_ext.cli import main
from tinygrad_ext.registry import scope

PLUGIN = """
from pathlib import Path
from tinygrad_ext import hookimpl

@hookimpl
def tgx_register_ops(register):
    register.library(Path(__file__).with_name("_ops.so"), {"answer": {"tags": "core"}})
    {more}
"""
SOURCE = """
#include <stdlib.h>
#include <tgx.h>
#ifndef BEFORE
#define BEFORE
#endif
#ifndef ASIDE
#define ASIDE
#endif
ASIDE
static int answer(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    out[0] = tgx_of_int(42);
    return 0;
}
static int init(tgx_ctx *c) {
    BEFORE
    tgx_op_def d = {sizeof(tgx_op_def)};
    d.schema = "demo::answer() -> int", d.kernel = answer;
    return tgx->register_op(c, &d) FAIL;
}
TGX_EXTENSION("demo", "1.0", init)
"""


@pytest.fixture
def compiled(site, tmp_path):
    """A plugin demo with a library; flags for the compiler, further lines of the hook, the compiler."""

    def make(*flags, more="pass", language="c"):
        site.plugin(text=PLUGIN.replace("{more}", more))
        source, path = tmp_path / "ops.c", site.folder / "tgx_demo" / "_ops.so"
        source.write_text(SOURCE)
        include = f"-I{tg.utils.include_paths()[0]}"
        words = ["c++" if language == "c++" else "cc", "-shared", "-fPIC", include, *(flags or ("-DFAIL=",))]
        words += ["-x", language, str(source), "-o", str(path)]
        subprocess.run(words, check=True)
        return path

    return make


def test_its_ops_are_the_plugins(compiled):
    compiled()
    assert tg.ops.demo.answer() == 42
    assert str(tg.ops.demo.answer.owner) == "tgx-demo 1.0"
    assert registry.ops["demo::answer"].record.tags == "core"
    assert plugins.info("demo").ops == ("demo::answer",)


def test_it_goes_and_comes_back(compiled):
    compiled()
    for _ in range(3):
        assert tg.ops.demo.answer() == 42
        plugins.disable("demo")
        with pytest.raises(AttributeError):
            _ = tg.ops.demo.answer
        plugins.enable("demo")


@pytest.mark.parametrize(
    "flags, more, words",
    [
        (('-DFAIL=|| tgx->fail(c, "OSError", "no device")',), "pass", "no device"),
        (("-DFAIL=",), "raise OSError('afterwards')", "afterwards"),
    ],
)
def test_a_load_that_fails_leaves_nothing(compiled, tables, flags, more, words):
    before = tables()
    compiled(*flags, more=more)
    with pytest.raises(plugins.PluginError, match=words):
        plugins.load("demo")
    now = tables()
    assert {k: now[k] for k in ("ops", "functions", "namespaces")} == {
        k: before[k] for k in ("ops", "functions", "namespaces")
    }


def test_doctor_tells_which_table_a_library_needs(compiled, capsys):
    compiled()
    assert main(["plugins", "doctor", "demo"]) == 0
    assert "library      _ops.so, for table 1.0" in capsys.readouterr().out


def test_doctor_tells_that_a_library_is_for_a_newer_table(compiled, capsys):
    compiled("-DFAIL=", "-DTGX_TARGET_MINOR=77")
    assert main(["plugins", "doctor", "demo"]) == 1
    out = capsys.readouterr().out
    assert "needs table 1.77" in out and "Install a newer tinygrad_ext" in out


# what -D says of the library -> (its language, how the plugin ends, what doctor tells of that)
HARM = {
    "init reads nowhere": (["-DBEFORE=*(volatile int *)8=1;"], "c", "crash", "SIGSEGV"),
    "init aborts": (["-DBEFORE=abort();"], "c", "crash", "SIGABRT"),
    "init ends the process": (["-DBEFORE=_Exit(3);"], "c", "exit", "status 3"),
    "init has no end": (["-DBEFORE=for (volatile int i = 1; i;);"], "c", "hang", "did not come to an end in 3 seconds"),
    "init throws": (["-DBEFORE=throw 3;"], "c++", "crash", "SIGABRT"),
    "it crashes before init": (
        ["-DASIDE=__attribute__((constructor)) static void f(void) {abort();}"],
        "c",
        "crash",
        "SIGABRT",
    ),
    "init says nothing": (["-DBEFORE=return -1;"], "c", "failed", "demo"),
    "init gives nonsense": (["-DBEFORE=return 12345;"], "c", "failed", "demo"),
}


@pytest.mark.parametrize("case", HARM)
def test_doctor_tells_whose_library_ends_the_process(compiled, site, capsys, case):
    flags, language, end, words = HARM[case]
    site.plugin("good")
    compiled("-DFAIL=", *flags, language=language)
    assert main(["plugins", "doctor", "--json", "--timeout", "3" if end == "hang" else "600"]) == 1
    found = {p["name"]: p for p in json.loads(capsys.readouterr().out)["plugins"]}
    problem = found["demo"]["problems"][0]
    assert (found["good"]["state"], found["demo"]["state"]) == ("loaded", end)
    assert words in problem["cause"]
    assert "register.library(" in problem["line"] or end == "exit"  # which leaves no time to look where it stood


def test_two_scopes_do_not_share_a_library(compiled):
    path = compiled()
    mark = scope.application.mark()
    made = tg.ops.load_library(path)
    assert made.ops == ["demo::answer"] and sys.modules.get("tgx_demo") is None
    scope.application.undo(mark)
    assert tg.ops.demo.answer() == 42  # now the plugin's
