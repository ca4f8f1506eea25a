"""Modules made ready for inference."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.fx.experimental.optimization import fuse, remove_dropout


def net(T, nn):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.one = nn.Sequential(nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU())
            self.two, self.norm = nn.Conv2d(4, 4, 1), nn.BatchNorm2d(4, affine=False)
            self.drop, self.fc, self.last = nn.Dropout(0.5), nn.Linear(4, 6), nn.BatchNorm1d(6)
            self.shared, self.after = nn.Linear(6, 6), nn.BatchNorm1d(6)

        def forward(self, x):
            x = self.norm(self.two(self.one(x))).mean((2, 3))
            x = self.last(self.fc(self.drop(x)))
            return self.after(self.shared(x)) + self.shared(x)

    T.manual_seed(0)
    return Net()


def test_batch_norms_become_part_of_what_is_before_them():
    model, x = net(tg, nn), tg.randn(2, 3, 6, 6)
    for _ in range(3):
        model(tg.randn(8, 3, 6, 6) * 2 + 1)
    with pytest.raises(RuntimeError, match="call eval"):
        fuse(model)
    wanted, weight = model.eval()(x), model.two.weight.clone()
    made = fuse(model)
    assert tg.allclose(made(x), wanted, 1e-4, 1e-5) and model.two.weight.equal(weight)
    names = [type(m).__name__ for m in made.modules()]
    assert names.count("BatchNorm2d") == 0 and names.count("BatchNorm1d") == 1  # shared is called twice
    again = fuse(tg.fx.symbolic_trace(model), inplace=True, no_trace=True)
    assert tg.allclose(again(x), wanted, 1e-4, 1e-5)


def test_dropout_is_left_out():
    model, x = net(tg, nn), tg.randn(8, 3, 6, 6)
    made = remove_dropout(model)
    assert not any(isinstance(m, nn.Dropout) for m in made.modules())
    tg.manual_seed(0)
    state = tg.get_rng_state()
    made(x)
    assert tg.get_rng_state().equal(state)


def test_modules_are_those_that_pytorch_leaves():
    torch = pytest.importorskip("torch", reason="compares with PyTorch")
    other = pytest.importorskip("torch.fx.experimental.optimization")
    kinds = lambda made: [n.target for n in made.graph.nodes if n.op == "call_module"]
    model, twin = net(tg, nn), net(torch, torch.nn)
    assert kinds(remove_dropout(model)) == kinds(other.remove_dropout(twin))
    simple = lambda nn: nn.Sequential(nn.Conv2d(1, 2, 1), nn.BatchNorm2d(2), nn.ReLU(), nn.BatchNorm2d(2)).eval()
    assert kinds(fuse(simple(nn))) == kinds(other.fuse(simple(torch.nn)))
