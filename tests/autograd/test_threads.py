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
    import os, signal, threading, time
    import tinygrad_ext as tg
    x = tg.ones(64, requires_grad=True)
    {prepare}
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        {work}
    except KeyboardInterrupt:
        print("interrupted")
    x.grad = None
    (x * 2).sum().backward()
    print(x.grad[0].item())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "prepare, work",
    [
        ("y = x\n    for _ in range(3_000_000): y = y + x", "y.sum().backward()"),
        ("a = tg.ones(3_000_000)", "\n            [a.exp() for _ in range(100_000)]"),
    ],
    ids=["backward", "a long run of ops"],
)
def test_ctrl_c_interrupts_and_the_process_goes_on(prepare, work):
    code = textwrap.dedent(CTRL_C.replace("{prepare}", prepare).replace("{work}", work))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["interrupted", "2.0"], done.stdout + done.stderr
