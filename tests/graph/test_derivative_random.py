"""Random programs with branches and loops within each other: gradients as in eager mode, None where that gives None."""

import linecache
import random

import numpy as np
import pytest

import tinygrad_ext as tg
from tests.helpers.derivatives import runner, tensors
from tinygrad_ext import jit

UNARY = ["{}.tanh()", "{}.sin()", "{} * 0.5", "{} + 1", "-{}", "{}.sigmoid() * {}", "{} - {}.mean()"]
BINARY = ["{}.sum(1, True) * {}", "{} + {}", "{} * {}", "{} - {} * 2", "tg.minimum({}, {})"]
BINARY += ["({} @ w) * {}", "tg.where({} > {}, x, y)"]


class Shifted(tg.autograd.Function):
    """Its backward gives something even for zeros, so it shows where it runs without a gradient."""

    @staticmethod
    def forward(ctx, a):
        return a.tanh()

    @staticmethod
    def backward(ctx, grad):
        return grad * 0.5 + 0.25


class Two(tg.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a)
        return a - b, b.sin()

    @staticmethod
    def backward(ctx, one, other):
        (a,) = ctx.saved_tensors
        return one * a + other.cos(), other * 2 - 0.125


FUNCTIONS = ["Shifted.apply({})", "Shifted.apply({}) * {}", "Two.apply({}, {})[0]", "Two.apply({}, {})[1]"]


def numbers_of(call, args):
    out = call(*args)
    grads = tg.autograd.grad(out, args[:3], allow_unused=True) if out.requires_grad else ()
    return [None if t is None else t.detach().numpy() for t in (out, *grads)]


def source(seed, functions=()):
    """A program over tensors x, y, z of one size, with branches and loops within each other."""
    rng, functions = random.Random(seed), list(functions)
    lines = ["def program(x, w, y, n: int):", "    z = x"]

    def statements(indent, depth, count):
        for _ in range(count):
            kind = rng.random()
            pad = "    " * indent
            target = rng.choice("xyz")
            if kind < 0.2 and depth:
                test = rng.choice(["n % 2 == 0", "bool(x.sum() > 0)", "bool(y.mean() < z.mean())", "n > 2"])
                lines.append(f"{pad}if {test}:")
                statements(indent + 1, depth - 1, rng.randint(1, 3))
                if rng.random() < 0.7:
                    lines.append(f"{pad}else:")
                    statements(indent + 1, depth - 1, rng.randint(1, 3))
            elif kind < 0.4 and depth:
                i = f"i{indent}"
                lines.append(f"{pad}for {i} in range({rng.choice(['n', '2', 'n - 2'])}):")
                statements(indent + 1, depth - 1, rng.randint(1, 3))
                if rng.random() < 0.3:
                    lines.append(f"{pad}    if bool(x.abs().max() > 3):")
                    lines.append(f"{pad}        break")
            else:
                form = rng.choice((UNARY if kind < 0.7 else BINARY) + functions)
                lines.append(f"{pad}{target} = {form.format(*(rng.choice('xyz') for _ in range(form.count('{}'))))}")

    statements(1, 3, 5)
    lines.append("    return (x.sum() + (y * z).sum())")
    return "\n".join(lines) + "\n"


def program_of(seed, functions=()):
    """(a random program, its source)."""
    text = source(seed, functions)
    name = f"<random program {seed} of {len(functions)} functions>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space = {"tg": tg, "Shifted": Shifted, "Two": Two}
    exec(compile(text, name, "exec"), space)
    return space["program"], text


def check_random(seed, functions=()):
    program, text = program_of(seed, functions)
    graph = jit.script(program).graph
    for rows, sign, n in ((3, 1.0, 3), (2, -1.0, 2), (4, 1.0, 0)):
        x, w = tensors(rows, sign)
        x, w = (t.detach().double().requires_grad_() for t in (x, w))
        args = x, w, (x.detach() * 0.5).requires_grad_(), n
        found, expected = (numbers_of(call, args) for call in (runner(graph), program))
        if not all(a is None or np.isfinite(a).all() for a in (*found, *expected)):
            continue  # what stands for no gradient is a zero, and nan where an infinite number meets it
        for a, b in zip(found, expected):  # what a loop begins with has one gradient of the loop, in eager mode several
            assert (a is None) == (b is None), text
            assert a is None or np.allclose(a, b, rtol=1e-8, atol=1e-8, equal_nan=True), text
    return not graph.derivative.refused


def test_random_programs():
    derived = sum(check_random(seed) for seed in range(40))
    assert derived >= 36


def test_functions_run_backward_where_a_gradient_arrives_alone():
    derived = sum(check_random(seed, FUNCTIONS) for seed in range(25))
    assert derived >= 20


@pytest.mark.slow
def test_many_random_programs():
    derived = sum(check_random(seed, FUNCTIONS if seed % 2 else ()) for seed in range(40, 340))
    assert derived >= 270
