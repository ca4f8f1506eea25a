"""The report on the machine."""

import platform

import numpy as np

import tinygrad_ext as tg
from tinygrad_ext.utils import collect_env


def test_the_report_names_versions_and_the_machine(monkeypatch, capsys):
    monkeypatch.setenv("TINYGRAD_EXT_DISABLE_PLUGINS", "none-of-them")
    monkeypatch.setenv("CC", "a-compiler-that-is-not-there")
    found = collect_env.get_env_info()
    assert found.version == tg.__version__ and platform.python_version() in found.python_version
    assert f"numpy=={np.__version__}" in found.pip_packages and found.gcc_version == "not found"
    assert "TINYGRAD_EXT_DISABLE_PLUGINS=none-of-them" in found.variables
    collect_env.main()
    text = capsys.readouterr().out
    assert text.startswith(f"version: {tg.__version__}\n") and "  instruction set: " in text


def test_runs_commands_as_libraries_ask_it_to():
    assert collect_env.run("echo a; echo b >&2; exit 3") == (3, "a", "b")
    assert collect_env.run(["no-such-command-here"]) == (127, "", "Command not found")
    assert collect_env.run_and_read_all(collect_env.run, "echo a; echo b") == "a\nb"
    assert collect_env.run_and_read_all(collect_env.run, "exit 1") is None
    assert collect_env.run_and_return_first_line(collect_env.run, "echo a; echo b") == "a"
    assert collect_env.run_and_parse_first_match(collect_env.run, "echo version 1.2", r"version (\S+)") == "1.2"
    assert collect_env.run_and_parse_first_match(collect_env.run, "echo", "(a)") is None


def test_tells_the_parts_of_the_report():
    run = collect_env.run
    report = collect_env.get_env_info()
    assert collect_env.get_cpu_info(run) == report.cpu_info and collect_env.get_os(run) == report.os
    assert collect_env.get_libc_version() == report.libc_version and collect_env.get_platform() in ("linux", "darwin")
    assert collect_env.get_gcc_version(lambda command: (1, "", "")) is None
    assert collect_env.get_pip_packages(run, ["numpy"]) == ("pip", f"numpy=={np.__version__}")
