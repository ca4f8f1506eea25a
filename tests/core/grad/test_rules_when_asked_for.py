"""Derivative rules of the package's own ops are found when a call is first recorded, by whichever thread that is."""

import subprocess
import sys

PROGRAM = """
import sys, threading
import tinygrad_ext as tg

sys.setswitchinterval(1e-6)
NAMES = "sin cos exp tanh sigmoid sqrt log erf atan asinh softplus log1p expm1 rsqrt square reciprocal".split()
NAMES += "cumsum prod amax var logsumexp".split()
FOUND = {name: set() for name in NAMES}
start = threading.Barrier(6)


def one(name):
    x = tg.linspace(0.1, 0.9, 5).requires_grad_()
    op = getattr(tg.nn.functional if name == "softplus" else tg, name)
    y = op(x, 0) if name in ("cumsum", "logsumexp") else op(x)
    y.sum().backward()
    return tuple(x.grad.tolist())


def work():
    start.wait()
    for name in NAMES:
        FOUND[name].add(one(name))


threads = [threading.Thread(target=work) for _ in range(6)]
for t in threads:
    t.start()
for t in threads:
    t.join()
assert all(FOUND[name] == {one(name)} for name in NAMES), FOUND
"""


def test_threads_that_record_the_first_calls_together_have_whole_rules():
    for _ in range(3):
        subprocess.run([sys.executable, "-c", PROGRAM], check=True)
