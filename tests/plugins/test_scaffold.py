"""What `plugins new` writes is installed, found, tested, checked and removed, in an environment of its own."""

import os
from pathlib import Path

import pytest
from environments import Environment

from tinygrad_ext.cli import main
from tinygrad_ext.cli.new import TEMPLATES

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def environment(tmp_path):
    """A fresh Environment."""
    return Environment(tmp_path / "environment")


# builds a package with a compiler and runs pytest in it: 5 and 10 seconds, and nothing less would show that it works
@pytest.mark.slow
@pytest.mark.parametrize("override", [False, True])
@pytest.mark.parametrize("kind", ["pure", "cython", "c", "cpp"])
def test_a_new_package_is_built_installed_tested_checked_and_removed(environment, tmp_path, kind, override):
    more = ("--with", "override") if override else ()
    before = environment.cli("plugins", "list")
    files = set(environment.site.rglob("*"))
    made = environment.cli("plugins", "new", "ripple", "--kind", kind, *more, "--directory", str(tmp_path / "new"))
    package = tmp_path / "new" / "tgx-ripple"
    assert made["directory"] == str(package)
    assert sorted(f.relative_to(package).as_posix() for f in package.rglob("*") if f.is_file()) == made["files"]
    environment.pip("install", ".", cwd=package)
    (found,) = [p for p in environment.cli("plugins", "list") if p not in before]
    assert (found["name"], found["distribution"], found["version"]) == ("ripple", "tgx-ripple", "0.1.0")
    assert found["state"] == "found"
    assert " passed" in environment.python("-m", "pytest", "-p", "no:cacheprovider", cwd=package)
    report = environment.cli("plugins", "doctor", "ripple")
    assert report["ok"] and "ripple::smooth_abs" in report["plugins"][0]["ops"]
    checked = environment.cli("plugins", "check", "ripple")
    assert checked["ok"] and {r["subject"] for r in checked["results"]} > {"ripple::smooth_abs", "ripple::SmoothAbs"}
    handled = [r["status"] for r in checked["results"] if (r["subject"], r["check"]) == ("fractions", "declines")]
    assert handled == ["passed"] * override
    environment.pip("uninstall", "--yes", "tgx-ripple")
    assert environment.cli("plugins", "list") == before
    assert {f for f in environment.site.rglob("*") if "__pycache__" not in f.parts} == files


@pytest.mark.parametrize(
    ("name", "fragments"),
    [
        ("Two Words", ["'Two Words' is no namespace", "'two_words' would do"]),
        ("two-words", ["'two_words' would do"]),
        ("2d", ["'d' would do"]),
        ("_x", ["'x' would do"]),
        ("a__b", ["single underscores"]),
        ("größe", ["no namespace"]),
        ("../evil", ["'evil' would do"]),
        ("class", ["no keyword of Python"]),
        ("", ["no namespace"]),
        ("tgx_waves", ["write 'waves'"]),
        ("aten", ["belongs to tinygrad_ext"]),
        ("schema", ["belongs to tinygrad_ext"]),
        ("demo", ["taken by tgx-demo 1.0, which is installed"]),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_nothing_written(site, capsys, tmp_path, name, fragments):
    site.plugin()
    folder = tmp_path / "new"
    code = main(["plugins", "new", "--kind", "pure", "--directory", str(folder), "--", name])
    err = capsys.readouterr().err
    assert code == 2 and all(f in err for f in fragments), err
    assert not folder.exists()


def test_what_is_there_is_never_overwritten(capsys, tmp_path):
    (tmp_path / "tgx-ripple").mkdir()
    assert main(["plugins", "new", "ripple", "--kind", "pure", "--directory", str(tmp_path)]) == 2
    assert "tgx-ripple cannot be made: it exists already" in capsys.readouterr().err
    assert not list((tmp_path / "tgx-ripple").iterdir())


def test_for_people_it_says_how_to_go_on(capsys, tmp_path):
    assert main(["plugins", "new", "two_words", "--kind", "cython", "--directory", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "wrote  src/tgx_two_words/_kernels.pyx" in out
    assert f"cd {tmp_path / 'tgx-two-words'}\n" in out and "tinygrad-ext plugins list" in out
    texts = [f.read_text() for f in tmp_path.rglob("*") if f.is_file()]
    assert len(texts) == 12 and not [t for t in texts if "PLUGIN_" in t]


def test_the_templates_are_in_wheel_and_sdist():
    from setuptools import Distribution

    dist = Distribution({"src_root": str(ROOT)})
    here = os.getcwd()
    os.chdir(ROOT)
    try:
        dist.parse_config_files()
        build = dist.get_command_obj("build_py")
        build.ensure_finalized()
        build.manifest_files = {}  # of an egg-info, which there need not be
        files = build.find_data_files("tinygrad_ext.cli", "tinygrad_ext/cli")
    finally:
        os.chdir(here)
    templates = {f.relative_to(ROOT).as_posix() for f in TEMPLATES.rglob("*.in")}
    assert len(templates) == 27 and templates <= set(files)
    assert "graft tinygrad_ext" in (ROOT / "MANIFEST.in").read_text()


@pytest.mark.parametrize("kind", ["pure", "cython", "c", "cpp"])
def test_an_override_comes_with_its_entry_point_hook_and_tests(capsys, tmp_path, kind):
    made = {}
    for folder, more in (("plain", ()), ("more", ("--with", "override", "--with", "override"))):
        assert main(["plugins", "new", "ripple", "--kind", kind, *more, "--directory", str(tmp_path / folder)]) == 0
        root = tmp_path / folder / "tgx-ripple"
        made[folder] = {f.relative_to(root).as_posix(): f.read_text() for f in root.rglob("*") if f.is_file()}
    plain, more = made["plain"], made["more"]
    assert set(more) - set(plain) == {"src/tgx_ripple/overrides.py", "tests/test_overrides.py"}
    assert {f for f in plain if more[f] != plain[f]} == {"pyproject.toml", "src/tgx_ripple/plugin.py", "README.md"}
    assert all(more[f].startswith(plain[f]) for f in plain)
    assert more["pyproject.toml"].count("[project.entry-points.") == 2
    assert more["src/tgx_ripple/plugin.py"].count("@hookimpl") == 3
    assert not [text for text in more.values() if "PLUGIN_" in text]
