"""The hook `tgx_register_profilers`: who may register, who is loaded when, what becomes of errors."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import hookimpl, plugins
from tinygrad_ext.profiler import profile, receiver
from tinygrad_ext.registry.profiler_registrar import receivers


class Plugin:
    def __init__(self, name, receive):
        self.name, self.receive = name, receive

    @hookimpl
    def tgx_register_profilers(self, register):
        register(self.name, self.receive)
        self.register = register


@pytest.fixture
def plugin():
    def add(name="told::count", receive=lambda events, into: into.append(len(events)), namespace="told"):
        made = Plugin(name, receive)
        plugins.register(namespace, made)  # which loads it
        added.add(namespace)
        return made

    added = set()
    yield add
    for namespace in added:
        plugins.unregister(namespace)
    assert not receivers


def test_a_receiver_gets_each_recording_and_the_users_arguments(plugin):
    plugin()
    found = []
    with profile(on_trace_ready=receiver("told::count", found)):
        tg.ones(1)
        assert not found
    assert found == [1]
    plugins.unregister("told")
    assert "told::count" not in receivers
    plugin()


def test_the_plugin_is_loaded_by_the_receivers_name(site):
    site.plugin(
        text="from tinygrad_ext import hookimpl\n"
        "@hookimpl\ndef tgx_register_profilers(register):\n"
        "    register('demo::names', lambda events, into: into.extend(events))\n"
    )
    assert plugins.info("demo").state != "active"
    found = []
    with profile(on_trace_ready=receiver("demo::names", into=found)):
        tg.ones(1)
    assert [e.name for e in found] == ["aten::ones"] and plugins.info("demo").state == "active"


def test_what_it_raises_goes_to_the_program(plugin):
    def fails(events):
        raise OSError("disk is full")

    plugin(receive=fails)
    with pytest.raises(OSError, match="disk is full"), profile(on_trace_ready=receiver("told::count")) as p:
        tg.ones(1)
    assert len(p.events()) == 1
    tg.ones(1)


@pytest.mark.parametrize("name", ["count", "other::count", "told::", 3])
def test_a_name_outside_of_the_plugins_namespace_is_refused(plugin, name):
    with pytest.raises(plugins.PluginError, match="registered as 'told::...'"):
        plugin(name)


def test_what_cannot_be_called_a_taken_name_and_a_late_call_are_refused(plugin):
    with pytest.raises(plugins.PluginError, match="is none"):
        plugin(receive=3)
    made = plugin("second::count", namespace="second")
    with pytest.raises(RuntimeError, match="which is over"):
        made.register("second::more", print)


def test_an_unknown_receiver_is_told():
    with pytest.raises(ValueError, match=r"no plugin has registered 'nowhere::x'; .*tgx_register_profilers"):
        receiver("nowhere::x")
    with pytest.raises(ValueError, match="no plugin has registered 'x'"):
        receiver("x")
