"""`step.repeat(data)` does what calls one after the other do."""

import itertools
import signal

import pytest

import tinygrad_ext as tg
from tests.jit.test_noticing import Training, frames_of
from tinygrad_ext import jit

OPTIMIZERS = {
    "SGD": lambda p: tg.optim.SGD(p, lr=0.1, momentum=0.9),
    "Adam": lambda p: tg.optim.Adam(p, lr=0.01),
    "AdamW": lambda p: tg.optim.AdamW(p, lr=0.01),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_hundred_steps_have_eagers_bits(name):
    data = [(tg.randn(2 + i % 3, 3),) for i in range(100)]  # three geometries
    eager, twin = Training(OPTIMIZERS[name]), Training(OPTIMIZERS[name])
    losses = jit.trace(twin.step, data[0]).repeat(data)
    assert [float(loss) for loss in losses] == [float(eager.step(*given)) for given in data]
    for mine, wanted in zip(twin.model.parameters(), eager.model.parameters()):
        assert mine.equal(wanted) and mine.grad.equal(wanted.grad)


def test_forms_of_data():
    traced = jit.trace(lambda x, n: x * n, (tg.ones(2), 2))
    assert [r.tolist() for r in traced.repeat([(tg.ones(2), 3), [tg.ones(1), 4]])] == [[3, 3], [4]]
    assert [r.tolist() for r in traced.repeat(zip(tg.ones(2, 1), range(2)))] == [[0], [1]]
    assert traced.repeat(iter(())) == []
    square = jit.trace(lambda x: x * x, (tg.ones(()),))
    assert [float(r) for r in square.repeat(tg.tensor([1.0, 2.0, 3.0]))] == [1, 4, 9]


def test_what_changes_between_steps_is_noticed():
    eager, twin = Training(), Training()
    traced = jit.trace(twin.step, (tg.ones(2, 3),))

    def batches(training):
        for i in range(8):
            training.optimizer.param_groups[0]["lr"] = 0.1 / (i + 1)
            training.model[0].weight.requires_grad_(i % 3 > 0)
            yield (tg.full((2, 3), float(i)),)

    losses = traced.repeat(batches(twin))
    assert [float(loss) for loss in losses] == [float(eager.step(*given)) for given in batches(eager)]


def test_an_error_names_the_step_and_the_line_and_keeps_the_steps_before():
    count = tg.zeros(())

    def step(x, y):
        count.add_(1)
        return x @ y

    traced = jit.trace(step, (tg.ones(2, 3), tg.ones(3, 2)))
    data = [(tg.ones(2, 3), tg.ones(3, 2)), (tg.ones(4, 3), tg.ones(3, 2)), (tg.ones(2, 3), tg.ones(4, 2))]
    with pytest.raises(RuntimeError, match=r"(?s)test_repeat.py.*in step 2 of repeat\(\)"):
        traced.repeat(data)
    assert count == 2


def test_an_interrupt_ends_it_between_two_steps():
    count = tg.zeros(())
    traced = jit.trace(lambda x: count.add_(x), (tg.ones(()),))

    one = (tg.ones(()),)
    data = itertools.chain([one] * 5, map(signal.raise_signal, [signal.SIGINT]), [one])  # no Python that could look
    with pytest.raises(KeyboardInterrupt):
        traced.repeat(data)
    assert count == 5


def test_it_has_no_frame_of_python():
    training = Training(OPTIMIZERS["SGD"])
    traced = jit.trace(training.step, (tg.ones(2, 3),))
    assert frames_of(traced.repeat, [(tg.ones(2, 3),)] * 10) == []


def test_a_program_that_repeats_is_traced_step_by_step():
    double = jit.trace(lambda x: x * 2, (tg.ones(2),))
    outer = jit.trace(lambda x, y: double.repeat([(x,), (y,)]), (tg.ones(2), tg.ones(2)))
    assert [r.tolist() for r in outer(tg.ones(1), tg.zeros(1))] == [[2], [0]]


def test_modules_and_methods_repeat_too():
    class Scale(tg.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = tg.nn.Parameter(tg.tensor([2.0]))

        def forward(self, x):
            return x * self.w

        def halved(self, x):
            return x * self.w / 2

    module, data = Scale(), [(tg.ones(2),), tg.ones(3)]
    traced = jit.trace(module, (tg.ones(2),))
    for found in (traced, tg.compile(module)):
        assert [r.tolist() for r in found.repeat(data)] == [[2, 2], [2, 2, 2]]
    method = jit.trace(module.halved, (tg.ones(2),))
    methods = jit.trace_module(module, {"halved": (tg.ones(2),)})
    assert (
        [r.tolist() for r in method.repeat(data)]
        == [r.tolist() for r in methods.halved.repeat(data)]
        == [[1, 1], [1, 1, 1]]
    )
    seen = []
    traced.register_forward_hook(lambda module, args, result: seen.append(len(result)))
    traced.repeat(data)
    assert seen == [2, 3]
    wide = jit.trace(tg.nn.Linear(2, 1), (tg.ones(1, 2),))
    with pytest.raises(RuntimeError, match=r"in step 1 of repeat\(\)"):
        wide.repeat([tg.ones(1, 2), tg.ones(1, 3)])
