"""A plugin whose group of entry points is misspelt or missing is told by name, with the group it meant."""

import json

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn, ops, plugins
from tinygrad_ext.cli import main
from tinygrad_ext.plugins import undeclared

MISSPELT = {
    "tinygrad_ext.plugin": "tinygrad_ext.plugins",
    "tinygrad-ext.plugins": "tinygrad_ext.plugins",
    "tinygrad_ext_plugins": "tinygrad_ext.plugins",
    "tinygard_ext.plugins": "tinygrad_ext.plugins",
    "TinyGrad_Ext.Plugins": "tinygrad_ext.plugins",
    "tinygrad.plugins": "tinygrad_ext.plugins",
    "tinygrad_ext.override": "tinygrad_ext.overrides",
    "tinygrad_ext.overides": "tinygrad_ext.overrides",
}


def text_of(name):
    with pytest.raises(AttributeError) as caught:
        getattr(ops, name).double
    return str(caught.value)


@pytest.mark.parametrize("group", MISSPELT)
def test_a_misspelt_group_is_told_with_the_nearest(site, capsys, group):
    site.install("acme-ripple", entry_points=f"[{group}]\nripple = acme.plugin\n")
    wanted = f"acme-ripple 1.0 is installed, and its entry points stand in the group '{group}'"
    meant = f"did its author mean '{MISSPELT[group]}'?"
    for text in (text_of("ripple"), text_of("acme_ripple")):
        assert wanted in text and meant in text
    with pytest.raises(AttributeError, match="acme-ripple 1.0 is installed"):
        nn.plugins.ripple
    assert main(["plugins", "doctor", "--json"]) == 1
    (report,) = [r for r in json.loads(capsys.readouterr().out)["plugins"] if r["state"] == "undeclared"]
    assert report["distribution"] == "acme-ripple" and meant in report["problems"][0]["cause"]
    for command in (["plugins", "doctor", "ripple"], ["plugins", "info", "ripple"], ["plugins", "check", "ripple"]):
        assert main(command) == 2
        assert wanted in capsys.readouterr().err
    main(["plugins", "list"])
    out = capsys.readouterr().out
    assert f"not listed: {wanted}" in out


def test_a_missing_group_is_told_with_the_lines_to_write(site, capsys):
    site.install("tgx-ripple", entry_points="[console_scripts]\nripple = tgx_ripple.main:run\n")
    text = text_of("ripple")
    assert "tgx-ripple 1.0 is installed and declares no plugin" in text
    assert '[project.entry-points."tinygrad_ext.plugins"] with a line such as ripple = "tgx_ripple.plugin"' in text
    assert main(["plugins", "doctor"]) == 1
    assert "plugin 'tgx-ripple' of tgx-ripple 1.0: undeclared" in capsys.readouterr().out


def test_of_two_groups_the_misspelt_one_is_told(site):
    groups = "[tinygrad_ext.plugins]\nripple = tgx_ripple\n[tinygrad_ext.override]\nfractions = tgx_ripple\n"
    site.install("tgx-ripple", entry_points=groups)
    assert [u.distribution for u in undeclared.find("fractions")] == ["tgx-ripple"]


def test_a_program_that_needs_the_package_is_asked_about_by_name_only(site, capsys):
    site.install("painter")
    info = site.folder / "painter-1.0.dist-info" / "METADATA"
    info.write_text("Metadata-Version: 2.1\nName: painter\nVersion: 1.0\nRequires-Dist: tinygrad-ext>=0.1\n\nText.\n")
    assert "painter 1.0 is installed and declares no plugin" in text_of("painter")
    assert "painter" not in text_of("other")
    main(["plugins", "list"])
    assert "painter" not in capsys.readouterr().out


@pytest.mark.parametrize("group", ["pytest11", "console_scripts", "torch.plugins", "flake8.extension", "plugins"])
def test_groups_of_others_are_none_of_ours(site, group):
    site.install("acme-ripple", entry_points=f"[{group}]\nripple = acme.plugin\n")
    assert undeclared.find("ripple") == [] and "If a package provides it" in text_of("ripple")


def test_nothing_is_looked_for_while_nothing_is_missed(site, monkeypatch):
    monkeypatch.setattr(undeclared, "find", None)
    site.plugin()
    assert ops.demo.double(tg.ones(1)).item() == 2 and plugins.list()
