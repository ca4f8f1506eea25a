"""Re-entrant and threaded backward, and Ctrl-C."""

import os
import subprocess
import sys
import textwrap
import threading

import pytest

import tinygrad_ext as tg


def test_backward_inside_backward():
    x = tg.tensor([2.0], requires_grad=True)
    inner = tg.tensor([3.0], requires_grad=True)

    def hook(g):
        with tg.enable_grad():  # backward runs hooks with recording off
            (inner * inner).sum().backward()
        return g

    y = x * x
    y.register_hook(hook)
    y.sum().backward()
    assert (x.grad.item(), inner.grad.item()) == (4.0, 6.0)


def test_backward_inside_backward_through_the_same_nodes():
    x = tg.tensor([2.0], requires_grad=True)
    shared = x * x
    seen = []

    def hook(g):
        if not seen:
            seen.append(None)
            with tg.enable_grad():
                total = shared.sum()
            seen.append(tg.autograd.grad(total, x, retain_graph=True)[0].item())
        return g

    shared.register_hook(hook)
    (shared * 3 + shared).sum().backward()
    assert seen == [None, 4.0] and x.grad.item() == 16.0


def test_threads_share_leaves():
    w = tg.ones(4, dtype=tg.float64, requires_grad=True)
    failures = []

    def work():
        try:
            for _ in range(200):
                x = tg.ones(4, dtype=tg.float64, requires_grad=True)
                (x * x * 3 + x).sum().backward()
                assert x.grad.tolist() == [7.0] * 4
                (g,) = tg.autograd.grad((w * x).sum(), w)
                assert g.tolist() == [1.0] * 4
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


def test_threads_accumulate_into_one_leaf():
    w = tg.zeros(1, dtype=tg.float64, requires_grad=True)

    def work():
        for _ in range(100):
            (w * 2).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert w.grad.item() == 800.0


CTRL_C = """
    import ctypes, os, signal
    import tinygrad_ext as tg
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs inherit that it is ignored
    reached = []
    x = tg.ones(64, requires_grad=True)
    try:
        {work}
        reached.append("the end")
    except KeyboardInterrupt:
        print("interrupted")
    print(len(reached))
    x.grad = None
    (x * 2).sum().backward()
    print(x.grad[0].item())
"""
# The signal comes from a hook without a line of Python, so that no other than the engine looks for it before the leaf,
# whose hook has none either.
WHILE_BACKWARD_RUNS = """
        interrupt = ctypes.pythonapi.PyErr_SetInterrupt
        interrupt.argtypes, interrupt.restype = [ctypes.py_object], None  # it takes a gradient and leaves it alone
        x.register_hook(reached.append)
        y = x * 2
        for _ in range(10_000):
            y = y + 1
        y.register_hook(interrupt)
        y.sum().backward()
"""
# Threads of the pool and of the BLAS run: the system may give the signal to any thread that does not block it.
WHILE_OPS_RUN = """
        a = tg.ones(300, 300)
        for step in range(100):
            a.exp().mm(a)
            if step == 50:
                os.kill(os.getpid(), signal.SIGINT)
"""


@pytest.mark.parametrize("work", [WHILE_BACKWARD_RUNS, WHILE_OPS_RUN], ids=["backward", "a run of ops"])
def test_ctrl_c_interrupts_and_the_process_goes_on(work):
    code = textwrap.dedent(CTRL_C.replace("{work}", work.strip()))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["interrupted", "0", "2.0"], done.stdout + done.stderr
