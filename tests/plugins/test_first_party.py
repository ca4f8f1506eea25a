"""The packages below plugins/: whole projects, discovered by their entry points, with READMEs that run."""

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "plugins"
NAMES = sorted(p.parent.name for p in FOLDER.glob("*/pyproject.toml"))
ENTRY = re.compile(r'^\[project\.entry-points\."?(tinygrad_ext\.\w+)"?\]\n"?([\w.]+)"? = "([\w.]+)"', re.M)
LISTED = """
import json, sys
from tinygrad_ext import plugins
found = [[i.name, i.distribution, i.state, i.entry_points] for i in plugins.list() if i.distribution == sys.argv[1]]
print(json.dumps([found, [m for m in sys.modules if m.startswith("tgx_")]]))
"""

every_package = pytest.mark.parametrize("name", NAMES)


@pytest.fixture
def installed(name):
    """Version of an installed package of the folder."""
    try:
        return importlib.metadata.version(f"tgx-{name}")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"tgx-{name} is not installed: pip install ./plugins/{name}")


def run(code, *arguments, cwd=None):
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return done.stdout


@every_package
def test_a_package_is_a_whole_project(name):
    for part in ("pyproject.toml", "README.md", "LICENSE", "src", "tests"):
        assert (FOLDER / name / part).exists(), f"plugins/{name} lacks {part}"
    assert f"tgx-{name}" in (FOLDER / "README.md").read_text()


@every_package
def test_it_is_discovered_by_its_entry_points_and_not_imported(name, installed):
    declared = [f"{group}: {key} = {module}" for group, key, module in ENTRY.findall(project_file(name))]
    found, imported = json.loads(run(LISTED, f"tgx-{name}"))
    assert [(i[1], i[2]) for i in found] == [(f"tgx-{name}", "found")] * len(found)
    assert sorted(e for i in found for e in i[3]) == sorted(declared) != []
    assert imported == []


@every_package
def test_the_snippets_of_its_page_run(name, installed, tmp_path):
    code = re.findall(r"^```python\n(.*?)^```", (FOLDER / name / "README.md").read_text(), re.M | re.S)
    assert code
    run("\n".join(code), cwd=tmp_path)


def project_file(name):
    return (FOLDER / name / "pyproject.toml").read_text()


@pytest.mark.slow  # loops for three instruction sets
def test_a_wheel_of_loops_is_built_from_a_source_distribution(tmp_path):
    copy = tmp_path / "curves"
    shutil.copytree(FOLDER / "curves", copy, ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    build = [sys.executable, "-c", "import setuptools.build_meta as b, sys; getattr(b, sys.argv[1])(sys.argv[2])"]
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*build, "build_sdist", str(tmp_path)], cwd=copy, **quiet)
    (archive,) = tmp_path.glob("tgx_curves-*.tar.gz")
    shutil.unpack_archive(archive, tmp_path / "unpacked")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    subprocess.run([*build, "build_wheel", str(tmp_path)], cwd=unpacked, **quiet)
    (wheel,) = tmp_path.glob("tgx_curves-*.whl")
    shutil.unpack_archive(wheel, tmp_path / "site", "zip")
    assert not list((tmp_path / "site").rglob("*.c"))
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path / "site")!r})
import tgx_curves
import tinygrad_ext as tg
assert tgx_curves.__file__.startswith(sys.path[0])
x = tg.linspace(-1, 1, 3)
traced = tg.jit.trace(lambda x: tg.ops.curves.bump(x * 1) + 1, (x,))
assert traced(x).tolist() == [1.5, 2, 1.5]
"""
    run(code)
