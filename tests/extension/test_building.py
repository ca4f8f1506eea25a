"""Compiling: the cache, the compiler's words, and what a setup.py makes."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import tinygrad_ext as tg
from tinygrad_ext.registry import scope
from tinygrad_ext.utils import compiling, cpp_extension

ONE = """
static int one(tgx_ctx *c, void *self, const tgx_value *in, int32_t n, tgx_value *out, int32_t m) {
    out[0] = tgx_of_int(NUMBER);
    return 0;
}
static int init(tgx_ctx *c) { return tgx->register_op(c, &TGX_OP(.schema = "probe::one() -> int", .kernel = one)); }
TGX_EXTENSION("probe", "1", init)
"""


@pytest.fixture
def runs(monkeypatch):
    """What was run."""
    found, run = [], compiling._run

    def noted(words, *more):
        found.append(words)
        return run(words, *more)

    monkeypatch.setattr(compiling, "_run", noted)
    return found


def test_the_same_text_is_compiled_once(inline, runs, tmp_path):
    for _ in range(3):
        mark = scope.application.mark()
        made = inline(ONE, extra_cflags=["-DNUMBER=7"], build_directory=tmp_path)
        assert tg.ops.probe.one() == 7 and made.ops == ["probe::one"] and made.abi == "1.0"
        scope.application.undo(mark)
    assert len(runs) == 2  # the compiler and the linker
    assert not hasattr(tg.ops, "probe") or not hasattr(tg.ops.probe, "one")


def test_other_flags_and_other_texts_are_compiled_anew(inline, tmp_path):
    for number in (1, 2):
        mark = scope.application.mark()
        inline(ONE, extra_cflags=[f"-DNUMBER={number}"], build_directory=tmp_path)
        assert tg.ops.probe.one() == number
        scope.application.undo(mark)


def test_a_header_that_changed_is_seen(tmp_path):
    header, source = tmp_path / "number.h", tmp_path / "one.c"
    source.write_text('#include <tgx.h>\n#include "number.h"\n' + ONE)
    for number in (1, 2):
        header.write_text(f"#define NUMBER {number}\n")
        mark = scope.application.mark()
        cpp_extension.load("probe", source, build_directory=tmp_path / "made")
        assert tg.ops.probe.one() == number
        scope.application.undo(mark)


def test_the_compiler_names_the_line_of_the_python_file(tmp_path):
    with pytest.raises(RuntimeError, match="Error building extension 'probe'") as caught:
        cpp_extension.load_inline(
            "probe",
            c_sources="""
            static int init(tgx_ctx *c) {
                return no_such_name;
            }
            TGX_EXTENSION("probe", "1", init)
            """,
            build_directory=tmp_path,
        )
    lines = Path(__file__).read_text().split("\n")
    wanted = next(i for i, line in enumerate(lines) if "return no_such_name" in line) + 1
    assert f"{Path(__file__).name}:{wanted}:" in str(caught.value)
    assert not [p for p in tmp_path.iterdir() if p.suffix in (".so", ".json")]


def test_the_compiler_names_the_line_of_a_file(tmp_path):
    source = tmp_path / "wrong.c"
    source.write_text("#include <tgx.h>\n\nint x = no_such_name;\n")
    with pytest.raises(RuntimeError, match=rf"{source}:3:"):
        cpp_extension.load("wrong", [source], build_directory=tmp_path / "made")


def test_a_build_that_was_killed_stops_nobody(inline, tmp_path):
    code = "import fcntl, os, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX); os.kill(os.getpid(), 9)"
    job = compiling.Job("probe", [("probe0.c", ONE, ("x", 1), "#include <tgx.h>\n")], ["-DNUMBER=7"], [], [])
    tmp_path.joinpath(f"probe-{job.key()}.json").write_text('{"libr')  # as a crash may leave it
    subprocess.run([sys.executable, "-c", code, str(tmp_path / f"probe-{job.key()}.lock")], check=False)
    inline(ONE, extra_cflags=["-DNUMBER=7"], build_directory=tmp_path)
    assert tg.ops.probe.one() == 7


def test_processes_that_build_the_same_do_it_once(tmp_path):
    code = textwrap.dedent(
        f"""
        from tinygrad_ext.utils import cpp_extension
        import tinygrad_ext as tg
        cpp_extension.load_inline("probe", c_sources={ONE!r}, extra_cflags=["-DNUMBER=9"])
        assert tg.ops.probe.one() == 9
        """
    )
    env = {**os.environ, "TINYGRAD_EXT_EXTENSIONS_DIR": str(tmp_path)}
    started = [subprocess.Popen([sys.executable, "-c", code], env=env) for _ in range(4)]
    assert [p.wait() for p in started] == [0] * 4
    assert len(list(tmp_path.glob("*.so"))) == 1 and not list(tmp_path.glob(".probe*"))
    (note,) = tmp_path.glob("*.json")
    assert json.loads(note.read_text())["library"].endswith(".so")


def test_c_plus_plus_and_c_go_together(tmp_path):
    (tmp_path / "a.cpp").write_text(
        '#include <tgx.h>\n#include <vector>\nextern "C" int number();\n'
        "static int one(tgx_ctx *, void *, const tgx_value *, int32_t, tgx_value *out, int32_t) {\n"
        "    std::vector<int> v(3, number());\n    out[0] = tgx_of_int(v[2]);\n    return 0;\n}\n"
        "static int init(tgx_ctx *c) {\n    tgx_op_def d = {};\n    d.size = sizeof d;\n"
        '    d.schema = "probe::one() -> int";\n    d.kernel = one;\n    return tgx->register_op(c, &d);\n}\n'
        'TGX_EXTENSION("probe", "1", init)\n'
    )
    (tmp_path / "b.c").write_text("int number(void) { return 11; }\n")
    cpp_extension.load("probe", [tmp_path / "a.cpp", tmp_path / "b.c"], build_directory=tmp_path / "made")
    assert tg.ops.probe.one() == 11


def test_wrong_calls_are_told(tmp_path):
    with pytest.raises(ValueError, match="letters, digits"):
        cpp_extension.load_inline("a-b", c_sources=ONE)
    with pytest.raises(ValueError, match="nothing to compile"):
        cpp_extension.load_inline("probe")
    with pytest.raises(ValueError, match="no language"):
        cpp_extension.load("probe", ["x.f90"])


def test_without_a_compiler_it_is_told_how_to_get_one(inline, tmp_path, monkeypatch):
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(RuntimeError, match="no-such-compiler"):
        inline(ONE, build_directory=tmp_path)


def test_a_setup_py_makes_a_library_without_a_name_of_python(tmp_path):
    (tmp_path / "one.c").write_text("#include <tgx.h>\n#define NUMBER 3\n" + ONE)
    (tmp_path / "setup.py").write_text(
        "from setuptools import setup\nfrom tinygrad_ext.utils.cpp_extension import BuildExtension, CExtension\n"
        'setup(name="x", ext_modules=[CExtension("_one", ["one.c"])], cmdclass={"build_ext": BuildExtension})\n'
    )
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=tmp_path, check=True)
    tg.ops.load_library(tmp_path / "_one.so")
    assert tg.ops.probe.one() == 3


def test_the_command_line_tells_where_the_header_is():
    run = [sys.executable, "-m", "tinygrad_ext"]
    folder = subprocess.run([*run, "--includes"], capture_output=True, text=True, check=True).stdout
    assert folder.startswith("-I") and Path(folder.strip()[2:], "tgx.h").exists()
    told = subprocess.run([*run, "--config"], capture_output=True, text=True, check=True).stdout
    assert "table     1.1" in told and f"version   {tg.__version__}" in told
