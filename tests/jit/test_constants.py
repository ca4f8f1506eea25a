"""Numbers that a traced program reads of its surroundings are constants of its graphs, told by explain() with the line,
and another number is noticed."""

import tinygrad_ext as tg
from tinygrad_ext import jit, nn

SCALE = 2.0


def test_numbers_closed_over_global_and_in_containers():
    global SCALE
    shift, parts = 1.0, {"weights": [3.0, 4]}

    def f(x):
        return x * SCALE + shift + parts["weights"][1]

    traced = jit.trace(f, (tg.ones(2),))
    told = traced.explain()
    assert "constant: shift = 1.0 (" in told and "constant: SCALE = 2.0 (" in told
    assert "constant: parts.weights.1 = 4 (" in told and f"test_constants.py:{f.__code__.co_firstlineno + 1})" in told
    assert traced(tg.ones(2)).tolist() == [7, 7]
    shift = 10.0
    assert traced(tg.ones(2)).tolist() == [16, 16]
    parts["weights"][1] = 0
    assert traced(tg.ones(2)).tolist() == [12, 12]
    SCALE = 5.0
    assert traced(tg.ones(2)).tolist() == [15, 15]
    SCALE, shift, parts["weights"][1] = 2.0, 1.0, 4
    assert traced(tg.ones(2)).tolist() == [7, 7]
    assert "4 graphs captured" in traced.explain()  # the first one served again


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.factor, self.unread = nn.LayerNorm(2, eps=0.5), 3, 1.0

    def forward(self, x):
        return self.norm(x) * self.factor


def test_attributes_of_modules():
    model = Scaled()
    traced = jit.trace(model, tg.tensor([[1.0, 2.0]]))
    told = traced.explain()
    assert "constant: factor = 3 (" in told and "constant: norm.eps = 0.5 (" in told and "unread" not in told
    x = tg.tensor([[1.0, 5.0]])
    for factor, eps in ((3, 0.5), (2, 0.5), (2, 0.0), (3, 0.5)):
        model.factor, model.norm.eps, model.unread = factor, eps, model.unread + 1
        assert traced(x).equal(model(x))
    assert "3 graphs captured" in traced.explain()


class Trainer:
    def __init__(self):
        self.rate, self.steps, self.seen = 0.5, 0, 0
        self.w = nn.Parameter(tg.ones(2))

    def step(self, x):
        self.seen += 1
        (self.w * x).sum().backward()
        with tg.no_grad():
            self.w -= self.rate * self.w.grad
        self.w.grad = None


def test_attributes_of_objects_that_are_read_and_not_counted():
    trainer = Trainer()
    traced = jit.trace(trainer.step, (tg.ones(2),))
    for _ in range(40):
        trainer.steps += 1  # nobody reads it
        traced(tg.ones(2))
    assert "1 graph captured" in traced.explain() and "rate = 0.5" in traced.explain()
    trainer.rate = 0.25
    before = trainer.w.detach().clone()
    traced(tg.ones(2))
    assert trainer.w.equal(before - 0.25)
