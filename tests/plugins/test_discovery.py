"""What is installed is read once, in a fixed order, whatever state the metadata is in."""

import importlib.metadata
import sys

import pytest

import tinygrad_ext as tg
from tinygrad_ext import ops, plugins
from tinygrad_ext.plugins import PluginWarning, settings, table


def test_the_distributions_are_read_once_and_once_more_for_a_name_that_is_missed(site, monkeypatch):
    site.plugin()
    reads = []
    real = importlib.metadata.distributions
    monkeypatch.setattr(importlib.metadata, "distributions", lambda *a, **k: reads.append(1) or real(*a, **k))
    monkeypatch.setattr(table, "_scanned", None)
    plugins.list()
    plugins.info("demo")
    ops.demo.double
    assert reads == [1]
    for name in ("nowhere", "elsewhere"):
        with pytest.raises(AttributeError):
            getattr(ops, name).double
    assert reads == [1, 1]


def test_the_order_is_name_then_distribution(site):
    for name, ns in (("tgx-z", "b"), ("tgx-a", "b.x"), ("tgx-m", "a"), ("tgx-b", "b.x")):
        site.install(name, entry_points=f"[tinygrad_ext.plugins]\n{ns} = tgx_none.{name[-1]}\n")
    assert [(p.name, p.distribution) for p in plugins.list()] == [
        ("a", "tgx-m"),
        ("b", "tgx-z"),
        ("b.x", "tgx-a"),
        ("b.x", "tgx-b"),
    ]


def test_a_second_copy_on_the_path_is_shadowed_and_reported(site, monkeypatch):
    other = site.folder / "later"
    other.mkdir()
    site.plugin()
    monkeypatch.setattr(sys, "path", [*sys.path, str(other)])
    site.install("tgx_demo", "9.0", entry_points="[tinygrad_ext.plugins]\ndemo = tgx_demo.plugin\n", folder=other)
    assert [(p.version, p.state) for p in plugins.list()] == [("1.0", "found"), ("9.0", "shadowed")]
    shadowed = plugins.list()[1]
    assert "installed twice" in shadowed.reason and str(other) in shadowed.reason
    assert ops.demo.double(tg.ones(1)).item() == 2
    assert plugins.info("demo").version == "1.0"


def test_a_folder_that_stands_on_the_path_twice_is_one(site, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(site.folder), *sys.path])
    site.plugin()
    assert [p.state for p in plugins.list()] == ["found"]


def test_of_two_versions_in_one_folder_the_higher_is_taken(site):
    site.plugin(version="1.9")
    site.install("tgx-demo", "1.10", entry_points="[tinygrad_ext.plugins]\ndemo = tgx_demo.plugin\n")
    assert {p.version: p.state for p in plugins.list()} == {"1.10": "found", "1.9": "shadowed"}


def test_damaged_metadata_hides_no_other_plugin(site, monkeypatch):
    site.plugin()
    site.install("tgx-bad", entry_points="[tinygrad_ext.plugins]\nthis is no line\n")
    site.install("tgx-nameless", entry_points="[tinygrad_ext.plugins]\nnameless = tgx_x\n", metadata=False)
    (site.folder / "tgx_bytes-1.0.dist-info").mkdir()
    (site.folder / "tgx_bytes-1.0.dist-info" / "entry_points.txt").write_bytes(b"[tinygrad_ext.plugins]\n\xff\xfe = x")
    monkeypatch.setattr(table, "_scanned", None)
    with pytest.warns(PluginWarning, match="cannot be read") as caught:
        names = [p.name for p in plugins.list()]
    assert {"demo", "nameless"} <= set(names)
    assert 1 <= len(caught) <= 2
    assert ops.demo.double(tg.ones(1)).item() == 2


@pytest.mark.parametrize(
    "line, reason",
    [
        ("1demo = tgx_demo", "'1demo' is no namespace"),
        ("_demo = tgx_demo", "'_demo' is no namespace"),
        ("demo = tgx demo", "does not name a module or module:object"),
        ("demo = tgx_demo:a:b", "does not name a module or module:object"),
    ],
)
def test_an_entry_point_that_means_nothing_is_listed_with_its_reason(site, line, reason):
    site.install("tgx-demo", entry_points=f"[tinygrad_ext.plugins]\n{line}\n")
    (info,) = plugins.list()
    assert info.state == "failed"
    assert reason in info.reason


def test_extras_behind_an_entry_point_are_ignored(site):
    site.plugin()
    path = site.folder / "tgx_demo-1.0.dist-info" / "entry_points.txt"
    path.write_text("[tinygrad_ext.plugins]\ndemo = tgx_demo.plugin [fast]\n")
    plugins.rescan()
    assert ops.demo.double(tg.ones(1)).item() == 2


def test_a_namespace_that_is_a_part_of_the_package_is_refused(site):
    site.plugin("record")
    with pytest.warns(PluginWarning, match="'record' is a name of the package tinygrad_ext.ops"):
        with pytest.raises(plugins.PluginError):
            plugins.load_all()
            plugins.load("record")


def test_a_family_of_built_in_records_does_not_take_a_namespace(site):
    site.plugin("special")
    assert ops.special.double(tg.ones(1)).item() == 2


def test_unknown_names_say_what_is_near_and_what_is_installed(site):
    site.plugin("vision")
    with pytest.raises(AttributeError, match=r"no namespace 'visoin'. Did you mean 'vision' \(of tgx-vision 1.0\)\?"):
        ops.visoin.double
    with pytest.raises(AttributeError, match="no op 'doubel'. Near: double"):
        ops.vision.doubel
    with pytest.raises(AttributeError, match="no op 'zzz'. It has double. plugin 'vision' of tgx-vision 1.0 is loaded"):
        ops.vision.zzz
    with pytest.raises(AttributeError, match="A plugin provides the namespace tinygrad_ext.ops.vision"):
        tg.vision
    site.plugin("more", text=(site.folder / "tgx_vision/plugin.py").read_text().replace("vision::double", "more::roi"))
    plugins.load("more")
    with pytest.raises(AttributeError, match="There is tinygrad_ext.ops.more.roi."):
        tg.roi


# ---- which are enabled ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "load, disable, enabled",
    [
        (None, None, "demo other"),
        ("all", None, "demo other"),
        ("none", None, ""),
        ("", None, ""),
        ("demo", None, "demo"),
        ("tgx_demo, other", None, "demo other"),
        (None, "demo", "other"),
        ("all", "tgx-demo", "other"),
        ("demo", "demo", ""),
    ],
)
def test_the_environment_chooses(site, monkeypatch, load, disable, enabled):
    site.plugin("demo")
    site.plugin("other")
    for key, value in (("TINYGRAD_EXT_PLUGINS", load), ("TINYGRAD_EXT_DISABLE_PLUGINS", disable)):
        if value is not None:
            monkeypatch.setenv(key, value)
    assert " ".join(p.name for p in plugins.list() if p.state == "found") == enabled


def configure(text):
    folder = settings.config_folder()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plugins.ini").write_text(text)


def test_the_user_s_file_chooses_and_the_environment_and_the_program_come_before_it(site, monkeypatch):
    site.plugin("demo")
    site.plugin("other")
    configure("[plugins]\nload = all\ndisable = demo\n")
    assert "plugins.ini" in plugins.info("demo").reason
    assert plugins.info("demo").state == "disabled"
    monkeypatch.setenv("TINYGRAD_EXT_PLUGINS", "demo")  # an explicit list wins over "off" of a lower level
    assert [p.state for p in plugins.list()] == ["found", "disabled"]
    monkeypatch.setenv("TINYGRAD_EXT_PLUGINS", "none")
    assert [p.state for p in plugins.list()] == ["disabled", "disabled"]
    plugins.enable("other")
    assert [p.state for p in plugins.list()] == ["disabled", "found"]


@pytest.mark.parametrize("text", ["[plugins\n", "load = all\n", "[plugins]\nlaod = all\n", "[other]\n", "\xff"])
def test_a_file_that_cannot_be_read_enables_nothing(site, text):
    site.plugin()
    configure(text)
    info = plugins.info("demo")
    assert info.state == "disabled"
    assert "cannot be read, so nothing is loaded" in info.reason
    plugins.enable("demo")
    assert ops.demo.double(tg.ones(1)).item() == 2


def test_no_file_of_the_current_folder_counts(site, tmp_path, monkeypatch):
    site.plugin()
    work = tmp_path / "cloned"
    (work / "tinygrad_ext").mkdir(parents=True)
    for place in (work / "plugins.ini", work / "tinygrad_ext" / "plugins.ini"):
        place.write_text("[plugins]\nload = none\n")
    monkeypatch.chdir(work)
    monkeypatch.setenv("XDG_CONFIG_HOME", ".")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert plugins.info("demo").state == "found"


def test_a_name_in_the_environment_that_means_nothing_is_told_once(site, monkeypatch):
    site.plugin("vision")
    monkeypatch.setenv("TINYGRAD_EXT_DISABLE_PLUGINS", "visoin")
    monkeypatch.setattr(table, "_scanned", None)
    with pytest.warns(PluginWarning, match="TINYGRAD_EXT_DISABLE_PLUGINS names 'visoin'.*did you mean 'vision'"):
        plugins.list()
    assert plugins.list()[0].state == "found"


def test_an_unknown_plugin_is_named_with_near_misses(site):
    site.plugin("vision")
    for function in (plugins.info, plugins.disable, plugins.enable, plugins.load, plugins.reload):
        with pytest.raises(plugins.PluginError, match="no plugin is called 'visoin'.*Near: vision"):
            function("visoin")
