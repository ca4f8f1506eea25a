"""What commands print in terminals of several widths, piped, as JSON, and into a pipe that nobody reads any more."""

import json
import os
import subprocess
import sys

import pytest

from tinygrad_ext import plugins
from tinygrad_ext.cli import main

LONG = "a_name_that_is_not_there_and_quite_long"
BAD = f"from tinygrad_ext import (\n    hookimpl,\n    {LONG},\n)\n"


@pytest.fixture
def installed(site):
    """A good plugin, a broken one, and two in conflict."""
    site.plugin("good")
    site.plugin("bad", text=BAD)
    for name in ("tgx-a", "tgx-b"):
        site.install(name, entry_points="[tinygrad_ext.plugins]\ndemo = tgx_none\n")
    return site


@pytest.fixture
def terminal(capsys, monkeypatch):
    """terminal(width, *arguments): the lines that a command prints on a terminal of that width."""

    def run(width, *arguments):
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        for key, value in (("TERM", "xterm"), ("COLUMNS", str(width)), ("NO_COLOR", "1")):
            monkeypatch.setenv(key, value)
        main([*arguments])
        return capsys.readouterr().out.replace("\x1b[1m", "").replace("\x1b[0m", "").splitlines()

    return run


COMMANDS = (
    ["plugins", "list", "--load"],
    ["plugins", "info", "good", "--load"],
    ["plugins", "doctor", "good", "bad", "demo"],
    ["ops", "list", "--kind", "python"],
    ["ops", "where", "exp"],
)


@pytest.mark.parametrize("width", [40, 80, 200])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_line_is_longer_than_the_terminal_but_for_one_long_word(installed, terminal, width, command):
    lines = terminal(width, *command)
    assert lines
    for line in lines:
        assert len(line) <= width or len(line.split()) <= 2 or len(max(line.split(), key=len)) > width - 24, line


@pytest.mark.parametrize("width", [40, 80, 200])
def test_words_and_names_are_never_broken(installed, terminal, width):
    lines = terminal(width, "plugins", "list", "--load")
    assert LONG in "\n".join(lines)
    for word in ("tgx-good", "ops.good;", "conflict", "TINYGRAD_EXT_DISABLE_PLUGINS=tgx-b;"):
        assert any(word in line.split() for line in lines), word


def test_a_row_is_a_block_where_columns_do_not_fit(installed, terminal):
    lines = terminal(40, "plugins", "list")
    at = lines.index("good")
    assert lines[at + 1 : at + 5] == [
        "  distribution  tgx-good",
        "  version       1.0",
        "  state         found",
        "  provides      ops.good",
    ]
    assert terminal(80, "plugins", "list")[0].split() == ["name", "distribution", "version", "state", "provides"]


def test_a_conflict_is_told_once(installed, capsys):
    main(["plugins", "list"])
    assert capsys.readouterr().out.count("several distributions declare") == 1
    main(["plugins", "doctor", "demo"])
    out = capsys.readouterr().out
    assert out.count("several distributions declare") == 1 and "conflict: the one told of tgx-a" in out


def test_nothing_is_conflict(installed, capsys, tmp_path):
    for command in (["plugins", "check", "tgx-a"], ["plugins", "list"], ["stubs", "--output", str(tmp_path)]):
        main(command)
        out = capsys.readouterr()
        assert "is in conflict:" in out.out + out.err and "is conflict:" not in out.out + out.err


def test_a_statement_over_several_lines_is_shown_whole(installed, capsys):
    main(["plugins", "doctor", "bad"])
    assert f"plugin.py:1: from tinygrad_ext import (hookimpl, {LONG},)\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "fragment"),
    [
        (["plugins", "info", "nope"], "no plugin is called 'nope'"),
        (["plugins", "check", "nope"], "no plugin is called 'nope'"),
        (["plugins", "check", "good", "--only", "nope"], "there is no check 'nope'"),
        (["plugins", "doctor", "nope"], "no plugin is called 'nope'"),
        (["plugins", "new", "2x", "--kind", "pure"], "'2x' is no namespace"),
        (["plugins", "info"], "Missing argument 'NAME'"),
        (["ops", "where", "nope"], "no op is called 'nope'"),
        (["ops", "list", "--kind", "nope"], "'nope' is not one of"),
        (["nope"], "No such command 'nope'"),
    ],
)
def test_an_error_is_json_where_json_is_wanted(site, capsys, command, fragment):
    site.plugin("good")
    assert main([*command, "--json"]) == 2
    out = capsys.readouterr()
    assert fragment in json.loads(out.out)["error"] and out.err == ""
    assert main(command) == 2
    out = capsys.readouterr()
    assert fragment in out.err and out.out == ""


def test_no_column_of_ops_is_empty(capsys):
    with plugins.only():
        main(["ops", "list"])
    head, *rows = capsys.readouterr().out.partition("\n\n")[0].splitlines()
    for name in head.split():
        assert sum(bool(row[head.index(name) :].strip()) for row in rows) == len(rows), name


@pytest.mark.parametrize("command", [["ops", "list"], ["ops", "list", "--json"], ["plugins", "list"]])
def test_a_reader_that_goes_away_ends_it_without_a_word(command):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "tinygrad_ext", *command],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env={**os.environ, "TINYGRAD_EXT_PLUGINS": "none"},
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")
