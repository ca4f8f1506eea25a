"""Draws that nobody reads: the numbers behind them are those of eager mode all the same."""

import linecache

import pytest

import tinygrad_ext as tg
from tinygrad_ext import autograd, jit
from tinygrad_ext.graph.signature import signature_of
from tinygrad_ext.testing import sweep

OPS = {op.name: op for op in sweep.ops() if op.name.startswith("aten::")}
# what lets an op draw, by the names of its arguments
DRAWING = {"p": 0.5, "dropout": 0.5, "dropout_p": 0.5, "train": True, "training": True, "_random_samples": None}


def draws(op, sample):
    """Whether a call of the sample draws from the default generator, with what lets it."""
    names = [a.name for a in op.schema.args]
    given = {**dict(zip(names, sample.args)), **sample.kwargs}
    given.update({name: value for name, value in DRAWING.items() if name in names})
    if "num_layers" in given and given["num_layers"] < 2:
        return False  # between layers it is that something is dropped
    before = tg.manual_seed(0).get_state()  # as `call` does
    try:
        sweep.call(op, (), given)
    except (RuntimeError, TypeError, ValueError):
        return False
    return not before.equal(tg.get_rng_state())


def test_what_may_draw_says_so():
    candidates = [n for n, op in OPS.items() if DRAWING.keys() & {a.name for a in op.schema.args}]
    found = {n for n in candidates for s in [*sweep.samples(OPS[n], "float32")] if draws(OPS[n], s)}
    assert {"aten::dropout", "aten::lstm.input", "aten::scaled_dot_product_attention"} <= found
    assert not {n for n in found if not signature_of(n).random}


class Cube(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        return grad * 3 * ctx.saved_tensors[0] ** 2


PROGRAM = """
def run(x):
    y = {0}(Cube.apply(x))
    y = {0}(Cube.apply(x * 2))
    return y
"""


def program(drawn, more=""):
    """The function above, with the source that `script` reads."""
    name, text = f"<draws by {drawn} {more}>", PROGRAM.format(drawn) + more
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    names = {"tg": tg, "Cube": Cube}
    exec(compile(text, name, "exec"), names)
    return names["run"]


def check(run, compiled, x):
    for _ in range(3):  # captured, planned, and by the plan
        results = []
        for function in (run, compiled):
            tg.manual_seed(7)
            results.append((function(x), tg.rand(3)))
        assert results[0][0].equal(results[1][0]) and results[0][1].equal(results[1][1])


@pytest.mark.parametrize(
    "call",
    [
        "tg.dropout(v, 0.5, True)",
        "tg.alpha_dropout(v, 0.5, True)",
        "tg.nn.functional.dropout1d(v, 0.5, True)",
        "tg.nn.functional.rrelu(-v, 0.1, 0.9, True)",
        "tg.nn.functional.scaled_dot_product_attention(v, v, v, dropout_p=0.5)",
        "tg.nn.functional.fractional_max_pool2d(v.unsqueeze(1), 2, (2, 3))",
        "v + tg.rand(4)",
    ],
)
def test_a_draw_that_nobody_reads_is_made(call):
    run, x = program("drawn", f"\n\ndef drawn(v):\n    return {call}\n"), tg.randn(2, 3, 4)
    check(run, jit.script(run), x)
    check(run, jit.trace(run, x, check_trace=False), x)


def test_a_custom_op_that_draws_says_so_by_pytorch_s_tag():
    library = tg.library.Library("draws_here", "DEF")
    library.define("noise(Tensor x) -> Tensor", tags=tg.library.Tag.nondeterministic_seeded)
    library.impl("noise", lambda x: x + tg.rand(x.shape), "CompositeImplicitAutograd")
    run = program("tg.ops.draws_here.noise")
    check(run, jit.script(run), tg.randn(3))
    library._destroy()
