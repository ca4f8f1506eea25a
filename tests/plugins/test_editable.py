"""`pip install -e` is one installation, in whatever form its build leaves the sources; two installations are two."""

import json
import shutil
import sys

import pytest
from environments import ROOT, Environment

import tinygrad_ext as tg
from tinygrad_ext import ops, plugins

ENTRY = "[tinygrad_ext.plugins]\ndemo = tgx_demo.plugin\n"
PACKAGES = sorted(p.parent.name for p in (ROOT / "plugins").glob("*/pyproject.toml"))
# what `--config-settings editable_mode=` makes of an installation: one .pth, or a finder or a tree of links
MODES = {"default": (), "finder": ("editable_mode=strict",), "pth": ("editable_mode=compat",)}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project whose sources stand on sys.path, as its .pth puts them there, with the .egg-info of its build."""
    source = tmp_path / "the project" / "src"
    (source / "tgx_demo").mkdir(parents=True)
    (source / "tgx_demo" / "__init__.py").write_text("")
    text = "from tinygrad_ext import hookimpl\n@hookimpl\ndef tgx_register_ops(register):\n"
    register = "    register('demo::double(Tensor self) -> Tensor', compose=lambda self: self + self)\n"
    (source / "tgx_demo" / "plugin.py").write_text(text + register)
    egg(source)
    monkeypatch.setattr(sys, "path", [*sys.path, str(source)])
    return source.parent


def egg(folder, version="0.1"):
    """The .egg-info that a build leaves in a folder."""
    info = folder / "tgx_demo.egg-info"
    info.mkdir(exist_ok=True)
    (info / "PKG-INFO").write_text(f"Metadata-Version: 2.1\nName: tgx-demo\nVersion: {version}\n\n")
    (info / "entry_points.txt").write_text(ENTRY)
    (info / "SOURCES.txt").write_text("setup.py\nsrc/tgx_demo/plugin.py\ntests/test_demo.py\n")
    (info / "top_level.txt").write_text("tgx_demo\n")


def install(site, project, version="0.1", **more):
    """The .dist-info that pip writes for a project installed as editable, or for a copy of it."""
    site.install("tgx-demo", version, entry_points=ENTRY, **more)
    if project is not None:
        origin = {"url": project.as_uri(), "dir_info": {"editable": True}}
        info = (more.get("folder") or site.folder) / f"tgx_demo-{version}.dist-info"
        (info / "direct_url.json").write_text(json.dumps(origin))
    plugins.rescan()


def states():
    return [(i.version, i.state) for i in plugins.list()]


@pytest.mark.parametrize("version", ["0.1", "0.2"])
def test_the_egg_info_of_the_sources_is_no_second_installation(site, project, version):
    install(site, project, version)
    assert states() == [(version, "found")]
    assert ops.demo.double(tg.ones(1)).item() == 2


@pytest.mark.parametrize("where", ["src", "."])
def test_nor_is_it_where_the_sources_come_first_on_the_path(site, project, monkeypatch, where):
    install(site, project)
    egg(project / where)
    monkeypatch.setattr(sys, "path", [str(project / where), *sys.path])
    plugins.rescan()
    assert states() == [("0.1", "found")]
    assert plugins.list()[0].location == str(site.folder)


def test_a_link_to_the_project_leads_to_the_same_project(site, project, tmp_path, monkeypatch):
    (tmp_path / "link").symlink_to(project)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "link" / "src")])
    install(site, tmp_path / "link")
    assert states() == [("0.1", "found")]


def test_an_egg_link_leads_to_one_installation(site, project):
    """The form before .dist-info: sources on the path, and a file that nothing but pip reads."""
    (site.folder / "tgx-demo.egg-link").write_text(f"{project / 'src'}\n../\n")
    plugins.rescan()
    assert states() == [("0.1", "found")]
    assert ops.demo.double(tg.ones(1)).item() == 2


def test_a_folder_and_a_link_to_it_are_one(site, monkeypatch, tmp_path):
    """lib and lib64 of a virtual environment."""
    site.plugin()
    (tmp_path / "lib64").symlink_to(site.folder)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "lib64")])
    plugins.rescan()
    assert states() == [("1.0", "found")]


@pytest.mark.parametrize("editable", [True, False])
def test_a_copy_in_the_user_s_folder_is_a_second_installation(site, project, tmp_path, monkeypatch, editable):
    user = tmp_path / "user"
    user.mkdir()
    monkeypatch.setattr(sys, "path", [*sys.path, str(user)])
    install(site, project if editable else None)
    install(site, None, "0.3", folder=user)
    assert ("0.3", "shadowed") in states() and states()[0] == ("0.1", "found")
    assert "installed twice" in next(i.reason for i in plugins.list() if i.version == "0.3")


def test_sources_beside_an_installation_of_a_copy_are_two(site, project):
    install(site, None)
    assert states() == [("0.1", "found"), ("0.1", "shadowed")]


def test_sources_of_another_project_are_a_second_installation(site, project, tmp_path):
    install(site, tmp_path / "elsewhere")
    assert states() == [("0.1", "found"), ("0.1", "shadowed")]


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"url": 5, "dir_info": {"editable": true}}', '{"dir_info": 1}', '{"url": "https://a/b"}', ""]
)
def test_a_damaged_origin_says_nothing(site, project, text):
    install(site, None)
    (site.folder / "tgx_demo-0.1.dist-info" / "direct_url.json").write_text(text)
    plugins.rescan()
    assert [s for _, s in states()] == ["found", "shadowed"]


@pytest.mark.parametrize("finder", [True, False])
def test_its_modules_are_its_own_in_every_form(site, project, finder):
    """What a failure names and what a reload takes along."""
    (project / "src" / "tgx_demo" / "plugin.py").write_text("1 / 0\n")
    files = {"__editable__.tgx_demo-0.1.pth": "\n", **({"__editable___tgx_demo_finder.py": ""} if finder else {})}
    install(site, project, files=files)
    with pytest.raises(plugins.PluginError, match=r"plugin\.py:1: 1 / 0"):
        plugins.load("demo")
    (project / "src" / "tgx_demo" / "plugin.py").write_text("")
    plugins.reload("demo")
    assert "tgx_demo.plugin" in sys.modules
    plugins.disable("demo")
    assert not [m for m in sys.modules if m.startswith("tgx_demo")]


# ---- by pip --------------------------------------------------------------------------------------------------------


@pytest.fixture
def environment(tmp_path):
    """A fresh Environment."""
    return Environment(tmp_path / "environment")


def check_installed(environment, name, distribution):
    """It is found once, the doctor is content, and a reload works."""
    (found,) = [p for p in environment.cli("plugins", "list") if p["distribution"] == distribution]
    assert found["state"] == "found" and found["reason"] == ""
    report = environment.cli("plugins", "doctor", distribution)
    assert report["ok"] and [p["state"] for p in report["plugins"]] == ["loaded"]
    code = f"from tinygrad_ext import plugins\nplugins.load({name!r}), plugins.reload({name!r})\n"
    assert environment.python("-W", "error", "-c", code) == ""


# builds packages with a compiler: 4 to 10 seconds each, and nothing less would show that the tools' own files are read
@pytest.mark.slow
@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_of_this_repository_is_installed_from_its_folder(environment, tmp_path, name):
    if list((ROOT / "plugins" / name).rglob("*.zig")):
        pytest.importorskip("ziglang", reason="the compiler of this package")
    package = tmp_path / name
    shutil.copytree(
        ROOT / "plugins" / name, package, ignore=shutil.ignore_patterns("build", "*.so", "*.egg-info", "__pycache__")
    )
    environment.pip("install", "-e", ".", cwd=package)
    check_installed(environment, name, f"tgx-{name}")
    assert " passed" in environment.python("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", cwd=package)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "mode"), [*(("pure", mode) for mode in MODES), ("cython", "default")])
def test_a_new_package_is_installed_from_its_folder(environment, tmp_path, kind, mode):
    environment.cli("plugins", "new", "ripple", "--kind", kind, "--directory", str(tmp_path))
    package = tmp_path / "tgx-ripple"
    settings = [word for setting in MODES[mode] for word in ("--config-settings", setting)]
    environment.pip("install", "-e", ".", *settings, cwd=package)
    # what older versions of setuptools leave there
    environment.python("-c", "from setuptools import setup; setup()", "-q", "egg_info", cwd=package)
    assert list(package.rglob("*.egg-info"))
    check_installed(environment, "ripple", "tgx-ripple")
    assert " passed" in environment.python("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=package)
