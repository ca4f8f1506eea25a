"""The package's own namespace."""

import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

import tinygrad_ext as tg

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", [*tg._LAZY, *tg._LAZY_NAMES])
def test_every_lazy_name_resolves(name):
    assert getattr(tg, name) is not None


def test_an_unknown_name_points_to_the_page_of_differences():
    with pytest.raises(AttributeError, match=r"no attribute 'sofmax'.*'softmax'.*docs/differences\.md"):
        _ = tg.sofmax


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
