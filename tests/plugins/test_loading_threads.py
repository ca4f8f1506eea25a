"""Plugins are loaded once, by many threads and across a fork."""

import os
import subprocess
import sys
import threading

import pytest

import tinygrad_ext as tg
from tinygrad_ext import ops, plugins

MODULE = """
from tinygrad_ext import hookimpl, nn

class Double(nn.Module):
    def __init__(self, factor=2.0):
        super().__init__()
        self.weight = nn.Parameter(__import__("tinygrad_ext").ones(2))
        self.factor = factor

    def forward(self, input):
        return input * self.factor

@hookimpl
def tgx_register_ops(register):
    register("demo::double(Tensor self) -> Tensor", compose=lambda self: self + self)

@hookimpl
def tgx_register_modules(register):
    register("demo::Double", Double)
"""


def test_many_threads_load_a_plugin_once(site):
    site.plugin(text="import time, builtins\ntime.sleep(0.1)\nbuiltins._tgx_loads.append(1)\n" + MODULE)
    import builtins

    builtins._tgx_loads, results, errors = [], [], []
    start = threading.Barrier(8)

    def use():
        start.wait()
        try:
            results.append(ops.demo.double(tg.ones(1)).item())
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=use) for _ in range(8)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert (results, errors, builtins._tgx_loads) == ([2.0] * 8, [], [1])
    del builtins._tgx_loads


def test_threads_that_wait_for_each_other_s_plugins_are_told(site):
    """Two threads load a plugin each, and each plugin needs the other."""
    text = """
    import builtins
    builtins._tgx_both.wait(600)
    from tinygrad_ext import ops
    ops.{other}
    """
    site.plugin("left", text=text.format(other="right"))
    site.plugin("right", text=text.format(other="left"))
    import builtins

    builtins._tgx_both, caught = threading.Barrier(2), []

    def use(name):
        try:
            getattr(ops, name).double
        except (AttributeError, plugins.PluginWarning) as error:  # a warning is an error in the test run
            caught.append(str(error))

    threads = [threading.Thread(target=use, args=(n,), daemon=True) for n in ("left", "right")]
    [t.start() for t in threads], [t.join() for t in threads]
    assert len(caught) == 2, "neither hangs"
    assert any("waits for what this thread is loading" in text for text in caught)
    del builtins._tgx_both


FORK = """
import builtins, os, sys, threading, warnings
warnings.simplefilter("ignore")
from tinygrad_ext import ops
import tinygrad_ext as tg
from tinygrad_ext.plugins import loader
reached, go = threading.Event(), threading.Event()
main = threading.get_ident()
builtins._tgx_pause = lambda: None if threading.get_ident() == main else (reached.set(), go.wait(600))
thread = threading.Thread(target=lambda: ops.demo.double)
thread.start()
reached.wait(600)
{before}
pid = os.fork()
if pid == 0:
    try:
        print(ops.demo.double(tg.ones(1)).item(), flush=True)
    except AttributeError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(pid, 0)
go.set()
thread.join()
print(ops.demo.double(tg.ones(1)).item())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(
    "before, child",
    [
        ("loader.FORK_PATIENCE = 600; threading.Timer(0.3, go.set).start()", "2.0"),
        ("loader.FORK_PATIENCE = 0.1", "failed: another thread was loading it when this process was forked"),
    ],
)
def test_a_fork_waits_for_the_loads_of_other_threads_but_not_for_ever(site, before, child):
    site.plugin(text="import builtins\nbuiltins._tgx_pause()\n" + MODULE)
    env = {"PYTHONPATH": ":".join([str(site.folder), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", FORK.replace("{before}", before)],
        env=env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    lines = done.stdout.splitlines()
    assert child in lines[0], done.stderr
    assert lines[1] == "2.0"
