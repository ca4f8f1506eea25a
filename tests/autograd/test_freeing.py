"""Every chain that the engine builds is freed without recursion: in a thread whose C stack could not hold it."""

import subprocess
import sys
import textwrap

import pytest

# From Python 3.13 on the interpreter lets deallocations nest as deep as calls in C, some thousand, before it puts them
# off; before that it was fifty.
LINKS, STACK = (8_000, 96 << 10) if sys.version_info < (3, 13) else (12_000, 1 << 20)

# Each body builds a chain of LINKS objects and lets go of it.
CHAINS = {
    "nodes": "for _ in range(LINKS): y = y * y",
    "nodes of an op on lists": "for _ in range(LINKS): y = tg.cat([y, x])[:4]",
    "writes to the whole tensor": "for _ in range(LINKS): y.mul_(2)",
    "writes through views": "for _ in range(LINKS): y[:2].mul_(2)",
    "writes through one view": """
        v = y[:2]
        for _ in range(LINKS): v.mul_(2)
        """,
    "assignments": "for _ in range(LINKS): y[0] = y[1] * 2",
    "writes through views, after backward": """
        for _ in range(LINKS): y[:2].mul_(1)
        y.sum().backward(retain_graph=True)
        """,
    "writes through views, found by the collector": """
        for _ in range(LINKS): y[:2].mul_(2)
        y.me = y
        del y
        gc.collect()
        """,
    "bases of views": """
        with tg.no_grad():
            for _ in range(LINKS): y = y.detach().view(4).requires_grad_().view(4).requires_grad_()
        """,
    "what Functions saved": "for _ in range(LINKS): y = Saves.apply(y)",
    "what Functions keep on ctx": "for _ in range(LINKS): y = Keeps.apply(x, y)",
    "Functions that write through views": "for _ in range(LINKS): Writes.apply(y[:2])",
    "nodes of a custom op": "for _ in range(LINKS): y = twice(y)",
    "writes of a custom op through views": "for _ in range(LINKS): double_(y[:2])",
    "packed saved tensors": """
        with tg.autograd.graph.saved_tensors_hooks(lambda t: [t], lambda t: t[0]):
            for _ in range(LINKS): y = y.detach().requires_grad_() * y
        """,
    "once-differentiable gradients": """
        for _ in range(LINKS): (y,) = tg.autograd.grad(Once.apply(y).sum(), y, create_graph=True)
        """,
    "retained outputs": """
        kept = []
        for _ in range(LINKS):
            y = y * 1.0
            y.retain_grad()
            kept.append(y)
        y.sum().backward()
        del kept
        """,
    "hooks of tensors": """
        for _ in range(LINKS):
            z = x * 2
            z.register_hook(lambda g, before=y: None)
            y = z
        """,
    "hooks of leaves": """
        for _ in range(LINKS):
            z = tg.ones(2, requires_grad=True)
            z.register_post_accumulate_grad_hook(lambda t, before=y: None)
            y = z
        """,
    "hooks of nodes": """
        for _ in range(LINKS):
            z = x * 2
            z.grad_fn.register_hook(lambda i, o, before=y: None)
            y = z
        """,
    "metadata of nodes": """
        for _ in range(LINKS):
            z = x * 2
            z.grad_fn.metadata["before"] = y
            y = z
        """,
    "nodes that were shown": """
        for _ in range(LINKS):
            y = y * y
            y.grad_fn
        """,
    "attributes": """
        for _ in range(LINKS):
            z = tg.ones(2)
            z.before = y
            y = z
        """,
    "attributes of a subclass": """
        for _ in range(LINKS):
            z = tg.ones(2).as_subclass(Sub)
            z.before = y
            y = z
        """,
    "gradients of gradients": """
        y = tg.ones(2)
        for _ in range(LINKS):
            z = tg.nn.Parameter(tg.ones(2))
            z.grad = y
            y = z
        """,
    "arrays of tensors of arrays": """
        y = tg.ones(4)
        for _ in range(LINKS): y = tg.from_numpy(y.numpy())
        """,
    "capsules of tensors of capsules": """
        y = tg.ones(4)
        for _ in range(LINKS): y = tg.from_dlpack(y.__dlpack__())
        """,
}

PREPARE = f"""
import gc, sys, threading
import tinygrad_ext as tg
from tinygrad_ext import library
LINKS = {LINKS}

class Sub(tg.Tensor):
    pass

def function(forward, backward):
    return type("Made", (tg.autograd.Function,), dict(forward=staticmethod(forward), backward=staticmethod(backward)))

Saves = function(lambda ctx, x: (ctx.save_for_backward(x), x * 2)[1], lambda ctx, g: g)
Keeps = function(lambda ctx, x, y: (setattr(ctx, "kept", y), x * 2)[1], lambda ctx, g: (g, None))
Writes = function(lambda ctx, x: (ctx.mark_dirty(x), x.mul_(2))[1], lambda ctx, g: g)
Once = function(lambda ctx, x: x * 2, tg.autograd.function.once_differentiable(lambda ctx, g: g * 2))

@library.custom_op("freeing::twice", mutates_args=())
def twice(x: tg.Tensor) -> tg.Tensor:
    return x * 2
twice.register_autograd(lambda ctx, g: g, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs))

@library.custom_op("freeing::double_", mutates_args=("x",))
def double_(x: tg.Tensor) -> None:
    x.mul_(2)
double_.register_autograd(lambda ctx, g: g)

def run(name, body):
    failed = []
    def work():
        try:
            x = tg.ones(4, requires_grad=True)
            exec(body, dict(globals(), x=x, y=x * 1))
        except BaseException as error:
            failed.append(error)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    print(name if not failed else f"{{name}}: {{failed[0]!r}}", flush=True)

threading.stack_size({STACK})
"""


def survivors(names):
    """Lines of one process that builds and frees these chains in turn."""
    code = PREPARE + "".join(f"run({n!r}, {textwrap.dedent(CHAINS[n])!r})\n" for n in names)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stdout.splitlines()


@pytest.fixture(scope="module")
def freed():
    """Lines of all chains. One that kills its process is left out, and the rest are tried in another."""
    waiting, lines = list(CHAINS), []
    while waiting:
        found = survivors(waiting)
        lines += found
        waiting = waiting[len(found) + 1 :]
    return lines


@pytest.mark.parametrize("name", CHAINS)
def test_a_chain_is_freed_in_a_small_stack(freed, name):
    assert name in freed, [line for line in freed if line.startswith(name)] or "the process died"
