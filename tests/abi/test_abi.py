"""What is compiled against a past header runs; no field of a struct has moved; the header suits C99 and C++11."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import tinygrad_ext as tg
from tinygrad_ext.core.data.table import DTYPES
from tinygrad_ext.extension import elf, table

HERE = Path(__file__).parent
NOW = Path(tg.utils.include_paths()[0]) / "tgx.h"
PAST = sorted(HERE.glob("*/tgx.h"))
SAMPLES = HERE.parent / "extension" / "samples"
STRUCTS = {
    "tgx_view": "data device_type device_id ndim dtype shape strides byte_offset",
    "tgx_value": "tag count u",
    "tgx_geometry": "ndim dtype sizes",
    "tgx_op_def": "size flags schema doc kernel shape fake setup backward jvp batch self edges saved state_size "
    "release source line",
    "tgx_node_def": "size flags name backward release saved state_size",
    "tgx_extension": "size major minor needs name version init",
}


def entries(header):
    """Names of the functions of the table, in order."""
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    body = text[: text.index("} tgx_api;")].rpartition("typedef struct {")[2]
    return re.findall(r"^    \w[\w *]*\(\*(\w+)\)\(", body, re.M)


def layout(header, folder):
    """{"struct.field": offset} and the numbers of enums, as a compiler sees them."""
    fields = {**STRUCTS, "tgx_api": "size major minor features core_version " + " ".join(entries(header))}
    text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
    kinds = [k for body in re.findall(r"\benum\b[^{;]*{([^}]*)}", text) for k in re.findall(r"\bTGX_[A-Z0-9_]+", body)]
    lines = [f'printf("\\"{s}.{f}\\": %d,\\n", (int)offsetof({s}, {f}));' for s in fields for f in fields[s].split()]
    lines += [f'printf("\\"sizeof {s}\\": %d,\\n", (int)sizeof({s}));' for s in STRUCTS]
    lines += [f'printf("\\"{k}\\": %d,\\n", (int){k});' for k in kinds]
    program = folder / "layout.c"
    body = "\n".join(lines)
    program.write_text(
        "#define TGX_TARGET_MINOR 99\n#define TGX_NO_TABLE\n#include <stdio.h>\n#include <tgx.h>\n"
        f"int main(void) {{\n{body}\nreturn 0;\n}}\n"
    )
    subprocess.run(["cc", f"-I{header.parent}", str(program), "-o", str(folder / "layout")], check=True)
    told = subprocess.run([str(folder / "layout")], capture_output=True, text=True, check=True).stdout
    return json.loads("{" + told.rstrip().rstrip(",") + "}")


def test_no_field_and_no_number_has_moved(tmp_path):
    wanted, found = json.loads((HERE / "layout.json").read_text()), layout(NOW, tmp_path)
    moved = {name: (at, found.get(name)) for name, at in wanted.items() if found.get(name) != at}
    assert not moved, "what is compiled already would read something else"
    new = sorted(set(found) - set(wanted))
    assert not new, f"add to tests/abi/layout.json: {json.dumps({n: found[n] for n in new})}"


@pytest.mark.parametrize("header", PAST, ids=lambda p: p.parent.name)
def test_a_past_table_is_the_beginning_of_this_one(header, tmp_path):
    past = entries(header)
    assert entries(NOW)[: len(past)] == past
    now = layout(NOW, tmp_path)
    now = {name: at for name, at in now.items() if not name.startswith("sizeof")}
    assert {name: at for name, at in layout(header, tmp_path).items() if name in now}.items() <= now.items()


def test_the_declarations_for_cython_are_those_of_the_header():
    declared, text = NOW.with_suffix(".pxd").read_text(), re.sub(r"/\*.*?\*/", "", NOW.read_text(), flags=re.S)
    assert re.findall(r"^        \w[\w *]*\(\*(\w+)\)\(", declared, re.M) == entries(NOW)
    bodies = re.findall(r"\benum\b[^{;]*{([^}]*)}", text)
    kinds = [k for body in bodies for k in re.findall(r"\bTGX_[A-Z0-9_]+", body)]
    assert not [k for k in kinds if not re.search(rf"\b{k}\b", declared)]
    for name, fields in STRUCTS.items():
        if name != "tgx_extension":
            body = declared.partition(f"ctypedef struct {name}:")[2].partition("ctypedef")[0]
            assert re.findall(r"(\w+)(?=,|\n)", body)[: len(fields.split())] == fields.split(), name


# ---- samples: built against each header, run by each core ----------------------------------------------------------

PLUGINS = HERE.parents[1] / "plugins"
CHECKS = {
    SAMPLES / "squares.c": """
for way in ("by_call", "by_memory", "by_hand", "composite"):
    f, x = getattr(tg.ops.squares, way), tg.tensor([1.0, -2.0], requires_grad=True)
    for _ in range(10):
        (g,) = tg.autograd.grad(f(x).sum(), x)
        assert f(x).tolist() == [1, 4] and g.tolist() == [2, -4]
assert tg.ops.squares.plus(tg.ones(2), 2.0).tolist() == [3, 3]
assert tg.ops.squares.scale_(tg.ones(2), 2.0).tolist() == [2, 2]
assert tg.vmap(tg.ops.squares.forward)(tg.ones(2, 2)).tolist() == [[1, 1], [1, 1]]
""",
    SAMPLES / "values.c": """
assert tg.ops.values.tell6([1, 2]) == "list2(int 1, int 2)" and tg.ops.values.echo21("a") == "a"
""",
    SAMPLES / "gate.cpp": """
x, g = (tg.rand(3, dtype=tg.float64, requires_grad=True) for _ in range(2))
assert tg.autograd.gradgradcheck(tg.ops.gates.gate, (x, g))
try:
    tg.ops.gates.fails(1)
except KeyError as error:
    assert "no such key" in str(error)
""",
    PLUGINS / "vision/src/tgx_vision/roi_align.c": """
x, rois = tg.rand(1, 2, 4, 4, requires_grad=True), tg.tensor([[0.0, 0, 0, 3, 3]])
(g,) = tg.autograd.grad(tg.ops.vision.roi_align(x, rois, 1.0, 2, 2, 2).sum(), x)
assert g.shape == x.shape and abs(g.sum().item() - 8) < 1e-5
""",
    SAMPLES / "cubes.pyx": """
x = tg.tensor([1.0, -2.0], dtype=tg.float64, requires_grad=True)
assert tg.autograd.gradgradcheck(tg.ops.cubes.cube, (x,))
""",
}


@pytest.fixture(scope="module")
def translated(tmp_path_factory):
    """cubes.pyx as C."""
    made = tmp_path_factory.mktemp("cython") / "cubes.c"
    words = [sys.executable, "-m", "cython", "-3", f"-I{NOW.parent}", str(SAMPLES / "cubes.pyx"), "-o", str(made)]
    subprocess.run(words, check=True)
    return made


@pytest.fixture(scope="module", params=[*PAST, NOW], ids=lambda p: p.parent.name)
def built(request, tmp_path_factory, translated):
    """All samples, built with one header: a program that loads and runs them."""
    folder, lines = tmp_path_factory.mktemp("built"), ["import importlib.util", "import tinygrad_ext as tg"]
    for name in (request.param, NOW.with_suffix(".hpp")):  # the wrapper belongs to whoever compiles
        (folder / name.name).write_bytes(name.read_bytes())
    running = []
    for sample, check in CHECKS.items():
        path = folder / (sample.stem + ".so")
        source = translated if sample.suffix == ".pyx" else sample
        words = ["c++", "-std=c++11"] if sample.suffix == ".cpp" else ["cc", "-std=gnu99"]
        more = [f"-I{folder}", f"-I{sample.parent}"]
        if sample.suffix == ".pyx":
            more.append(f"-I{sysconfig.get_path('include')}")
            load = f"s = importlib.util.spec_from_file_location('cubes', {str(path)!r})\n"
            load += "m = importlib.util.module_from_spec(s)\ns.loader.exec_module(m)"
        else:
            load = f"tg.ops.load_library({str(path)!r})"
        command = [*words, "-O0", "-shared", "-fPIC", *more, str(source), "-lm", "-o", str(path)]
        running.append(subprocess.Popen(command))
        lines += [load, check]
    assert [p.wait() for p in running] == [0] * len(running)
    return "\n".join(lines), folder


@pytest.mark.parametrize("core", ["", "1.0"], ids=["this core", "a core of 1.0"])
def test_every_sample_built_for_a_header_runs(built, core):
    program, folder = built
    env = {**os.environ, "TINYGRAD_EXT_ABI_PRETEND": core, "TINYGRAD_EXT_PLUGINS": "none"}
    subprocess.run([sys.executable, "-W", "error", "-c", program], env=env, check=True)
    for path in folder.glob("*.so"):
        if path.stem != "cubes":  # a module of Python
            assert not [n for n in elf.undefined(path) if "tgx" in n.lower() or n.startswith(("Py", "_Py"))], path


def test_what_needs_this_table_is_refused_by_an_older_core_and_runs_on_this_one(tmp_path):
    path = tmp_path / "values.so"
    words = ["cc", "-O1", "-shared", "-fPIC", "-DTGX_TARGET_MINOR=1", f"-I{NOW.parent}"]
    subprocess.run([*words, str(SAMPLES / "values.c"), "-o", str(path)], check=True)
    code = f"import tinygrad_ext as tg\ntg.ops.load_library({str(path)!r})\nassert len(tg.ops.values.draw()) == 3"
    subprocess.run([sys.executable, "-c", code], check=True)
    env = {**os.environ, "TINYGRAD_EXT_ABI_PRETEND": "1.0"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.search(r"ImportError: .*needs table 1\.1, and tinygrad_ext \S+ has 1\.0", done.stderr)


@pytest.mark.parametrize("header", [*PAST, NOW], ids=lambda p: p.parent.name)
@pytest.mark.parametrize("words", ["cc -std=c99", "cc -std=c11", "c++ -x c++ -std=c++11", "c++ -x c++ -std=c++20"])
def test_the_header_is_plain_c_and_c_plus_plus(header, words, tmp_path):
    source = tmp_path / "x.c"
    source.write_text(
        '#include <tgx.h>\nstatic int init(tgx_ctx *c) { (void)c; return 0; }\nTGX_EXTENSION("x", "1", init)\n'
    )
    path = tmp_path / "x.so"
    flags = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-shared", "-fPIC", f"-I{header.parent}"]
    subprocess.run([*words.split(), *flags, str(source), "-o", str(path)], check=True)
    assert elf.exported(path) == (40, 1, 0, 1)
    assert not [name for name in elf.undefined(path) if "tgx" in name or name.startswith("Py")]


def test_the_table_is_as_large_as_the_header_says(tmp_path):
    found = layout(NOW, tmp_path)
    assert table.facts()["size"] == found["tgx_api.range_end"] + 8


def test_dtypes_keep_the_numbers_that_loops_of_packages_are_built_with():
    """A new one comes last: a library of loops says how many it knows (kernels/loop_library.h)."""
    numbered = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128"
    assert [row.name for row in DTYPES[:12]] == numbered.split()


def libraries():
    """Libraries of the installed packages below plugins/ that know no Python."""
    found = []
    for project in sorted((HERE.parents[1] / "plugins").glob("*/pyproject.toml")):
        try:
            files = importlib.metadata.files(f"tgx-{project.parent.name}") or ()
        except importlib.metadata.PackageNotFoundError:
            continue
        paths = [Path(f.locate()) for f in files if f.suffix == ".so" and ".cpython" not in f.name]
        found += [p for p in paths if p.stem != "_loops"]
    return found


def test_libraries_of_packages_take_nothing_of_python_or_the_core_by_name():
    paths = libraries()
    if not paths:
        pytest.skip("no package below plugins/ with a library is installed: make test does it")
    for path in paths:
        assert elf.exported(path)[1:3] == (1, 0), path  # they ask for the oldest table
        assert not [n for n in elf.undefined(path) if "tgx" in n.lower() or n.startswith(("Py", "_Py"))], path
