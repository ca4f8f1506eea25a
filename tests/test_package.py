"""The package's own namespace."""

import importlib
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import tinygrad_ext as tg
from tinygrad_ext.registry import derivatives

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "tinygrad_ext"


@pytest.mark.parametrize("name", [*tg._LAZY, *tg._LAZY_NAMES])
def test_every_lazy_name_resolves(name):
    assert getattr(tg, name) is not None


def test_at_most_twelve_modules_stand_at_the_top():
    """Each is a room of its own, or a name that PyTorch's users import; everything else belongs into a room."""
    loose = sorted(p.name for p in PACKAGE.iterdir() if p.suffix in (".py", ".pyx"))
    assert len(loose) <= 12, loose


@pytest.mark.parametrize("name", ["amp", "cuda", "config", "linalg", "random", "return_types", "serialization"])
def test_the_paths_that_users_of_pytorch_import_stay(name):
    module = importlib.import_module(f"tinygrad_ext.{name}")
    assert getattr(tg, name) is module


def test_the_import_brings_no_library_and_no_slow_part_of_pythons():
    """What the package can do without until somebody asks for it; some cost as much as the rest of it."""
    slow = "numpy scipy pluggy inspect typing re random ctypes dataclasses importlib.metadata"
    found = f"[m for m in '{slow}'.split() if m in sys.modules]"
    code = f"import sys; import tinygrad_ext as tg; tg.ones(2) + 1; print({found})"
    done = subprocess.run([sys.executable, "-S", "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


def test_the_import_leaves_the_collector_as_it_was():
    for call, wanted in (("enable", "True"), ("disable", "False")):
        code = f"import gc; gc.{call}(); import tinygrad_ext; print(gc.isenabled())"
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
        assert done.stdout.strip() == wanted


def test_the_collector_is_on_again_where_the_import_fails():
    code = "import gc, sys; sys.modules['tinygrad_ext._assemble'] = None\ntry: import tinygrad_ext\n"
    code += "except ImportError: print(gc.isenabled())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "True"


def test_what_a_program_froze_stays_frozen_when_it_imports():
    code = "import gc; a = []; gc.freeze(); import tinygrad_ext; print(any(o is a for o in gc.get_objects()))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_the_import_freezes_nothing_for_good():
    code = "import gc, tinygrad_ext; print(gc.get_freeze_count())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "0"


def test_the_derivative_rules_of_every_op_can_be_read():
    """They are read when a call is first recorded, so that an import does not tell of one that is wrong."""
    for op in list(tg.registry.ops.values()):
        op.settle_rules()
        rules = [rule for rule in (op.record.grad or {}).values() if rule not in ("zero", "none")]
        assert bool(rules) == bool(derivatives.rules_of(op)), op.name
        assert op.node_type.endswith("Backward0")


def test_the_room_called_tensor_does_not_hide_the_function():
    """Whoever imports from it, and however early: `tensor` of the package is the function."""
    code = "import tinygrad_ext.tensor.sizes; import tinygrad_ext as tg; assert tg.tensor([1, 2]).tolist() == [1, 2]"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
    rooms = {p.name for p in PACKAGE.iterdir() if p.is_dir()}
    assert all(callable(getattr(tg, name)) for name in rooms & set(tg.registry.functions))


def test_an_unknown_name_points_to_the_page_of_differences():
    with pytest.raises(AttributeError, match=r"no attribute 'sofmax'.*'softmax'.*docs/differences\.md"):
        _ = tg.sofmax


WHEEL = """
import os
from setuptools import Distribution
dist = Distribution()
dist.parse_config_files(["pyproject.toml"])
command = dist.get_command_obj("build_py")
command.ensure_finalized()
for package, folder, _, names in command.data_files:
    print(*(os.path.join(folder, name) for name in names), sep="\\n")
"""


def test_the_wheel_ships_what_is_read_at_run_time_and_nothing_private():
    """Sources and declarations of the compiled parts are the build's: who compiled against them would break. Those for
    extensions (include/) are the public ones."""
    done = subprocess.run([sys.executable, "-c", WHEEL], cwd=ROOT, check=True, capture_output=True, text=True)
    shipped = [Path(line).relative_to("tinygrad_ext") for line in done.stdout.split()]
    assert {"py.typed", "errors/torch_names.json", "nn/functional.pyi"} <= set(map(str, shipped))
    assert any("templates" in p.parts for p in shipped)
    assert {"tgx.h", "tgx.hpp", "tgx.pxd"} <= {p.name for p in shipped if p.parent.name == "include"}
    shipped = [p for p in shipped if p.parent.name != "include"]
    assert not [p for p in shipped if p.suffix in (".pxd", ".pyx", ".pxi", ".c") or p.match("core/*.h")]


def test_the_wheel_ships_the_headers_of_pointwise_loops_and_no_others():
    """A PointwiseExtension includes what the built-in loops do, and that is compiled where the package is installed."""
    kernels = PACKAGE / "kernels"
    found = {"loop_library.h", "emit_formula.h"}
    waiting = [*found, *(path.name for path in kernels.glob("loops_*_gen.c"))]
    while waiting:
        names = re.findall(r'^#include "([^"]+)"', (kernels / waiting.pop()).read_text(), re.M)
        waiting += [name for name in names if name not in found]
        found.update(names)
    done = subprocess.run([sys.executable, "-c", WHEEL], cwd=ROOT, check=True, capture_output=True, text=True)
    assert {Path(line).name for line in done.stdout.split() if Path(line).parent.name == "kernels"} == found


@pytest.mark.slow
def test_the_sdist_is_the_repository(tmp_path):
    """All of it, so that its tests run; the build of a wheel from it is `make smoke`."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a clone: git does not know what belongs to it")
    folders = ["egg_info", "--egg-base", str(tmp_path), "sdist", "--dist-dir", str(tmp_path)]
    subprocess.run([sys.executable, "setup.py", "--quiet", *folders], cwd=ROOT, check=True, capture_output=True)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        packed = {name.partition("/")[2] for name in tar.getnames() if tar.getmember(name).isfile()}
    made = {name for name in packed if name in ("PKG-INFO", "setup.cfg") or ".egg-info/" in name}
    here = {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    assert here - packed == set()
    assert packed - made - here == set()
