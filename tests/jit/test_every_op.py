"""Every op of the table gives eager mode's bits and gradients traced, scripted, and loaded from either's file, and what
was traced at one size runs at others. Here the first sample of each op; `full_every_op.py` has them all."""

import re

import pytest
from captured import same_bits
from ways import BY_SIZE, EXEMPT, PACKED, REFUSALS, WHOLE, batches, check_sizes, check_ways, filed, graphs_of, samples

import tinygrad_ext as tg
from tinygrad_ext import jit
from tinygrad_ext.testing import sweep

OPS = {op.name.removeprefix("aten::"): op for op in sweep.ops()}
NAMES = sorted(n for n, op in OPS.items() if not sweep.tagged(op, "unset"))
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("name", NAMES)
def test_first_sample_of_every_op_is_the_same_in_every_way(name):
    check_ways(next(samples(OPS[name])), name)


@pytest.mark.parametrize("name", sorted({*NAMES[::12], *BY_SIZE} - {*EXEMPT["trace"], *WHOLE, *PACKED}))
def test_traced_at_two_runs_at_one_three_and_seventeen(name):
    for call in samples(OPS[name]):
        for made in batches(call):
            check_sizes(call, name, made)
            return


SEVERAL = {
    "matrix product": (lambda x, w: tg.einsum("ij,kj->ik", x, w), (3, 4)),
    "outer product": (lambda x, w: tg.einsum("ij,k->ijk", x, w[0]), (3, 4)),
    "tensordot": (lambda x, w: tg.tensordot(x, w, ([1], [1])), (3, 4)),
    "mean and variance over the batch": (lambda x, w: (x - x.mean(0)) * x.var(0, unbiased=False) + x.std(0), (3, 4)),
    "broadcast": (lambda x, w: tg.broadcast_tensors(x, w[:1])[1], (3, 4)),
    "products": (lambda x, w: x.prod(0) + x.cumprod(0), (3, 4)),
    "values put by index": (lambda x, w: x.clone().index_put((tg.arange(1),), w[0]), (3, 4)),
    "window over memory": (lambda x, w: x.as_strided((1, 2), (4, 1)), (3, 4)),
}


@pytest.mark.parametrize("kind", SEVERAL)
def test_sizes_that_are_passed_through_capture_no_second_graph(kind):
    function, shape = SEVERAL[kind]

    def step(x, w):
        return tg.autograd.grad(function(x, w).square().sum(), [x, w], allow_unused=True)

    w = tg.randn(shape, requires_grad=True)
    given = {n: tg.randn(n, 4, requires_grad=True) for n in (2, 1, 3, 17)}
    traced = jit.trace(step, (given[2], w))
    loaded = filed(traced)
    for x in given.values():
        for program in (traced, loaded):
            assert same_bits(program(x, w), step(x, w))
    assert graphs_of(traced) == 1


@pytest.mark.parametrize(
    ("what", "function"),
    [
        ("x.shape[0] == 1", lambda x: x.squeeze(0)),
        ("how many tensors unbind.int gives", lambda x: x.unbind()),
        ("how many tensors chunk gives", lambda x: x.chunk(2)),
    ],
)
def test_what_python_sees_otherwise_is_captured_anew(what, function):
    traced = jit.trace(function, tg.randn(2, 3))
    loaded = filed(traced)
    x = tg.randn(1, 3)
    assert same_bits(traced(x), function(x)) and graphs_of(traced) == 2
    assert what in traced.explain()
    with pytest.raises(RuntimeError, match=re.escape(what)):
        loaded(x)


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in EXEMPT for name in EXEMPT[kind]])
def test_what_is_exempt_does_not_run(kind, name):
    def refused(call):
        try:
            program = call.scripted() if kind == "script" else jit.trace(call, tuple(call.tensors))
            program(*call.tensors)
        except REFUSALS:
            return True
        return False

    assert any(map(refused, samples(OPS[name])))


@pytest.mark.parametrize("name", WHOLE)
def test_what_is_called_whole_has_its_gradients_inside(name):
    call = next(samples(OPS[name]))

    def step(*tensors):
        wanted = [t for t in tensors if t.requires_grad]
        (first,) = tg.autograd.grad(call(*tensors)[0].square().sum(), wanted, create_graph=True)
        return first, *tg.autograd.grad(first.square().sum(), wanted)

    given = tuple(t.detach().requires_grad_(t.is_floating_point()) for t in call.tensors)
    assert same_bits(jit.trace(step, given)(*given), step(*given))


def test_one_op_in_thirty_is_exempt_at_most():
    unset = len(OPS) - len(NAMES)
    assert len({*EXEMPT["trace"], *EXEMPT["script"], *WHOLE}) + unset <= len(OPS) / 30
