"""Counts of instructions: what has grown fails, what cannot be compared is told, the committed file fits the paths."""

import json
import shutil
import subprocess
import sys

import pytest

from tools import count_instructions as counts
from tools.hot_paths import PATHS


def test_the_committed_file_has_a_count_for_each_path_in_each_environment():
    for here, found in json.loads(counts.COMMITTED.read_text()).items():
        assert set(found) == set(PATHS), here
        assert all(isinstance(n, int) and n > 0 for n in found.values())


THRICE = """
from tools.hot_paths import PATHS
for name in {names}:
    call = PATHS[name]()
    for _ in range(3):
        call()
    print(name)
"""


def test_each_path_can_be_called_again_and_again():
    """In a process of their own, for some bring ops."""
    names = [name for name in PATHS if not name.startswith("op in C") or shutil.which("cc")]
    command = [sys.executable, "-c", THRICE.format(names=names)]
    done = subprocess.run(command, cwd=counts.ROOT, capture_output=True, text=True, check=False, timeout=120)
    assert done.stdout.splitlines() == names, done.stderr


@pytest.fixture
def file(tmp_path):
    """A file with counts of two paths for the environment 'here'."""
    path = tmp_path / "instructions.json"
    path.write_text(json.dumps({"here": {"a": 1000, "b": 200}}))
    return path


def test_a_path_that_grew_by_more_than_is_allowed_fails_and_stands_in_a_table(file, capsys):
    assert counts.check({"a": 1151, "b": 200}, "here", file) == 1
    said = capsys.readouterr().out
    assert "1000" in said and "1151" in said and "+15.1%" in said and "GREW" in said
    assert "\nb " not in said


def test_what_grew_less_or_fell_passes(file, capsys):
    assert counts.check({"a": 1150, "b": 200}, "here", file) == 0
    assert "GREW" not in capsys.readouterr().out
    assert counts.check({"a": 500}, "here", file) == 0
    assert "fell" in capsys.readouterr().out


def test_a_path_without_a_committed_count_fails(file, capsys):
    assert counts.check({"c": 10}, "here", file) == 1
    assert "no committed count" in capsys.readouterr().out


def test_another_environment_is_told_that_nothing_is_compared(file, capsys):
    assert counts.check({"a": 9000}, "Python 3.99, x", file) == 0
    said = capsys.readouterr().out
    assert "nothing is compared" in said and "Python 3.99, x" in said and "here" in said


def test_written_counts_stand_beside_those_of_other_environments(file):
    counts.write({"a": 7}, "there", file)
    counts.write({"a": 900}, "here", file)
    assert json.loads(file.read_text()) == {"here": {"a": 900, "b": 200}, "there": {"a": 7}}


def test_the_environment_names_python_compiler_and_processor():
    assert counts.environment().count(", ") == 2 and counts.environment().startswith("Python 3.")


def test_without_valgrind_there_is_an_error_that_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(counts.shutil, "which", lambda name: None)
    with pytest.raises(SystemExit, match="valgrind, which counts, is not installed: apt-get install valgrind"):
        counts.main(["--check"])


def test_a_name_that_no_path_has_is_refused_with_the_names(capsys):
    with pytest.raises(SystemExit):
        counts.main(["--only", "no such path"])
    assert "a + b" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind is not installed")
def test_counts_repeat_and_the_loop_around_them_is_not_counted():
    one, two = (counts.paths(["softmax", "shape"]) for _ in range(2))
    assert one == two
    assert 100 < one["shape"] < one["softmax"] < 20_000
