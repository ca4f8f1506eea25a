"""What `.ci/run` does, with a make that only says what it was asked for."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tools import sanitize

ROOT = Path(__file__).parent.parent
MAKE = """#!/bin/sh
echo "making $1"
case $1 in
    test) echo "1 passed in 0.1s"; echo "2 failed, 3 passed in 0.2s"; echo "and a warning" ;;
    broken) exit 3 ;;
    endless) exec sleep 600 ;;
esac
"""


def steps():
    rows = [row.split("|") for row in (ROOT / ".ci" / "steps").read_text().splitlines() if not row.startswith("#")]
    return {target.strip(): float(minutes) for minutes, target, *_ in rows}


@pytest.fixture
def run(tmp_path):
    """Run `.ci/run` with other steps; (status, lines of what it printed)."""
    for tool in ("bash", "timeout"):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool}")
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    make = tmp_path / "make"
    make.write_text(MAKE)
    make.chmod(0o755)

    def runs(table):
        (tmp_path / ".ci" / "steps").write_text(table)
        env = {**os.environ, "PATH": os.pathsep.join([str(tmp_path), os.environ["PATH"]])}
        command = ["bash", str(tmp_path / ".ci" / "run")]
        done = subprocess.run(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        return done.returncode, done.stdout.splitlines()

    return runs


def test_the_steps_take_at_most_an_hour_together():
    assert sum(steps().values()) <= 60


def test_each_step_is_a_target_of_make():
    targets = set(re.findall(r"^([\w-]+)(?=[\w -]*:(?!=))", (ROOT / "Makefile").read_text(), re.MULTILINE))
    phony = re.search(r"\.PHONY: (.*(?:\\\n.*)*)", (ROOT / "Makefile").read_text())[1]
    assert set(steps()) <= targets | set(phony.replace("\\", " ").split())


def test_tests_come_before_the_long_steps():
    order = list(steps())
    assert all(order.index("test") < order.index(long) for long in ("demo", "smoke", "sanitize-short"))


def test_the_last_line_is_the_one_in_which_pytest_sums_up(run):
    status, lines = run("# a remark\n 1 | test\n 1 | demo\n")
    assert (status, lines[-1]) == (0, "2 failed, 3 passed in 0.2s")
    assert "making demo" in lines


def test_a_step_that_fails_ends_the_run_unless_it_is_optional(run):
    status, lines = run("1 | broken | optional\n1 | test\n1 | broken\n1 | demo\n")
    assert status == 3
    assert "making test" in lines and "making demo" not in lines


def test_a_step_that_takes_longer_than_its_share_is_stopped(run):
    status, lines = run("0.005 | endless\n1 | demo\n")
    assert status == 124
    assert lines[-1] == "make endless was stopped: it took longer than its share and what was left of others"


def test_what_a_step_leaves_of_its_share_is_for_the_next(run):
    _, lines = run("60 | demo\n30 | test\n")
    seconds = [int(re.search(r"at most (\d+) seconds", line)[1]) for line in lines if line.startswith("==")]
    assert seconds[0] <= 60 * 60 and 30 * 60 < seconds[1] <= 90 * 60


def test_the_tools_name_tests_that_are_there():
    named = [path for path in sanitize.LONG if path.startswith("tests/")]
    named += re.findall(r'"(tests/[^"]*)"', (ROOT / "tools" / "interpreters.py").read_text())
    assert named and not [path for path in named if not (ROOT / path).exists()]
