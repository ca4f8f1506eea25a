"""Plugins cost the start of a program nothing, and finding them takes little. (Calls: tests/core/test_slots.py.)"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tinygrad_ext import plugins

ROOT = Path(__file__).parents[2]
OP = """
from tinygrad_ext import hookimpl

@hookimpl
def tgx_register_ops(register):
    register("p{k}::double(Tensor self) -> Tensor", compose=lambda self: self + self)
"""
# everything the import does beyond Python itself is seen by the audit hook: files opened, folders listed, modules found
START = """
import json, sys
seen = []
sys.addaudithook(lambda event, args: seen.append(event) if event in EVENTS else None)
EVENTS = ("open", "import", "os.listdir", "os.scandir")
import tinygrad_ext
print(json.dumps([sorted(sys.modules), [seen.count(event) for event in EVENTS]]))
"""


@pytest.fixture
def fifty(tmp_path):
    """A folder with fifty plugins, and an empty one."""
    folders = tmp_path / "fifty", tmp_path / "none"
    for folder in folders:
        folder.mkdir()
    _fill(folders[0], 50)
    return folders


def _fill(folder, count):
    for k in range(count):
        (folder / f"tgx_p{k}.py").write_text(OP.format(k=k))
        info = folder / f"tgx_p{k}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: tgx-p{k}\nVersion: 1.0\n\nA text.\n")
        (info / "RECORD").write_text(f"tgx_p{k}.py,,\n")
        (info / "entry_points.txt").write_text(f"[tinygrad_ext.plugins]\np{k} = tgx_p{k}\n")


def run(code, folder, *arguments):
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_import_does_the_same_whatever_is_installed(fifty):
    with_fifty, with_none = (run(START, folder) for folder in fifty)
    assert with_fifty == with_none
    modules = with_fifty[0]
    assert "tinygrad_ext" in modules
    assert not [m for m in modules if m in ("pluggy", "importlib.metadata") or m.startswith("tgx_")]
    assert "tinygrad_ext.plugins" not in modules


def test_the_first_use_imports_that_one_plugin_only(fifty):
    code = "import json, sys; from tinygrad_ext import ops; ops.p7; print(json.dumps([*sys.modules]))"
    assert [m for m in run(code, fifty[0]) if m.startswith("tgx_")] == ["tgx_p7"]


# what looking for plugins does, apart from Python's own imports
SCAN = """
import json, sys
from tinygrad_ext.plugins.scan import scan
scan()  # what it imports for its first call does not count
seen = []
sys.addaudithook(lambda event, args: seen.append(event) if event in EVENTS else None)
EVENTS = ("open", "import", "os.listdir", "os.scandir")
found, problems = scan()
print(json.dumps([len(found), len(problems), [seen.count(event) for event in EVENTS]]))
"""


def test_finding_opens_at_most_four_files_of_each_plugin_and_imports_none(fifty):
    (fifty_found, problems, with_fifty), (none_found, _, with_none) = (run(SCAN, folder) for folder in fifty)
    assert (fifty_found - none_found, problems) == (50, 0)
    opened, imported, listed, walked = (a - b for a, b in zip(with_fifty, with_none))
    assert opened <= 4 * 50 and (imported, listed, walked) == (0, 0, 0)


def test_two_hundred_are_found(site):
    _fill(site.folder, 200)
    plugins.rescan()
    assert len(plugins.list()) == 200
