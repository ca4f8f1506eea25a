"""A plugin that brings a device is loaded by its name, takes it back, and is named where something is missing."""

import sys

import pytest

import tinygrad_ext as tg
from tinygrad_ext import plugins, registry
from tinygrad_ext.cli import main
from tinygrad_ext.plugins import PluginError, PluginWarning

BRINGS = """
import ctypes
from tinygrad_ext import hookimpl, library

class Memory:
    def allocate(self, nbytes):
        block = ctypes.create_string_buffer(nbytes)
        return ctypes.addressof(block), block

    def read(self, address, into):
        into[:] = ctypes.string_at(address, len(into))

    def write(self, address, data):
        ctypes.memmove(address, bytes(data), len(data))

def exp(self):
    return self.cpu().exp().to("tgxcard")

@hookimpl
def tgx_register_devices(register):
    register("tgxcard", Memory())
    library.impl("aten::exp", "tgxcard", exp)
    {more}
"""


@pytest.fixture
def card(site):
    """A function that installs the plugin, with a line more in its hook."""

    def install(more="", entry="tgxcard"):
        site.install(
            "tgx-card",
            files={"tgx_card.py": BRINGS.replace("{more}", more)},
            entry_points=f"[tinygrad_ext.devices]\n{entry} = tgx_card\n",
        )

    return install


def test_it_is_loaded_by_the_first_use_of_the_name_and_not_before(card):
    card()
    assert tg.ones(2).exp().device.type == "cpu" and tg.device("cuda:1").type == "cuda"
    assert "tgx_card" not in sys.modules
    x = tg.zeros(2, device="tgxcard")
    assert "tgx_card" in sys.modules and x.exp().tolist() == [1, 1]
    info = plugins.info("tgx-card")
    assert (info.state, info.devices, info.namespaces) == ("active", ("tgxcard",), ())


def test_a_missing_kernel_names_the_distribution_and_its_version(card):
    card()
    words = "'aten::sin' with arguments from the 'tgxcard' backend: tgx-card 1.0, which brings the device, has no"
    with pytest.raises(NotImplementedError, match=words):
        tg.zeros(2, device="tgxcard").sin()


def test_disabling_it_takes_device_and_kernels_back_and_enabling_brings_them(card):
    card()
    x = tg.zeros(2, device="tgxcard")
    plugins.disable("tgx-card")
    with pytest.raises(RuntimeError, match="Expected one of cpu, meta, cuda"):
        tg.device("tgxcard")
    with pytest.raises(RuntimeError, match="the device tgxcard:0 is gone"):
        x.cpu()
    assert registry.ops["aten::exp"].rows is None
    plugins.enable("tgx-card")
    assert tg.device("tgxcard", 0) == x.device and x.tolist() == [0, 0] and x.clone().exp().tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="before the device went and came back: clone"):
        x.exp()


def test_a_hook_that_fails_leaves_nothing_behind(card):
    card("raise ValueError('no card')")
    with (
        pytest.warns(PluginWarning, match="no card"),
        pytest.raises(RuntimeError, match="Expected one of cpu, meta, cuda"),
    ):
        tg.device("tgxcard")
    with pytest.raises(PluginError, match="no card"):
        plugins.load("tgx-card")


def test_an_entry_point_that_is_no_device_is_told(card):
    card(entry="Card.1")
    assert "no device: write small letters" in plugins.info("tgx-card").reason


def test_two_plugins_cannot_bring_one_device(card, site):
    card()
    site.install(
        "tgx-other",
        files={"tgx_other.py": BRINGS.replace("{more}", "")},
        entry_points="[tinygrad_ext.devices]\nothercard = tgx_other\n",
    )
    tg.device("tgxcard")
    with pytest.raises(PluginError, match="there is a device 'tgxcard' already"):
        plugins.load("tgx-other")
    assert tg.zeros(1, device="tgxcard").exp().tolist() == [1]


def test_two_that_declare_one_device_are_both_left_out_and_the_user_reads_the_ways_out(card, site):
    card()
    site.install(
        "tgx-rival",
        files={"tgx_rival.py": BRINGS.replace("{more}", "")},
        entry_points="[tinygrad_ext.devices]\ntgxcard = tgx_rival\n",
    )
    words = r"string: tgxcard. .*several distributions declare a device 'tgxcard'.*DISABLE_PLUGINS=tgx-rival"
    with pytest.raises(RuntimeError, match=words):
        tg.device("tgxcard")
    plugins.disable("tgx-rival")
    assert tg.zeros(1, device="tgxcard").exp().tolist() == [1]


@pytest.mark.parametrize("name", ["cpu", "meta", "cuda"])
def test_a_plugin_that_would_shadow_a_device_fails_and_changes_nothing(site, name):
    site.install(
        "tgx-shadow",
        files={"tgx_shadow.py": BRINGS.replace("tgxcard", name).replace("{more}", "")},
        entry_points=f"[tinygrad_ext.devices]\n{name} = tgx_shadow\n",
    )
    assert tg.zeros(1, device="cpu").is_cpu and "tgx_shadow" not in sys.modules
    with pytest.raises(PluginError, match=f"there is a device '{name}' already"):
        plugins.load("tgx-shadow")
    assert tg.zeros(1, device="cpu").exp().tolist() == [1] and registry.ops["aten::exp"].rows is None


def test_a_device_that_is_declared_and_not_brought_is_told(card):
    card(entry="othercard")
    with pytest.raises(RuntimeError, match="othercard. plugin 'othercard' of tgx-card 1.0 is loaded, and registers no"):
        tg.device("othercard")


def test_the_command_line_tells_of_devices(card, capsys):
    card()
    assert main(["plugins", "list"]) == 0 and "device tgxcard" in capsys.readouterr().out
    assert "tgx_card" not in sys.modules
    assert main(["plugins", "doctor"]) == 0
    assert "provides     tgxcard" in capsys.readouterr().out


def test_the_registrar_is_for_the_hook_alone(site):
    site.plugin(
        text="""
        from tinygrad_ext import hookimpl
        kept = []

        @hookimpl
        def tgx_register_devices(register):
            kept.append(register)
        """
    )
    plugins.load("demo")
    with pytest.raises(RuntimeError, match="inside the hook only"):
        sys.modules["tgx_demo.plugin"].kept[0]("late", None)
