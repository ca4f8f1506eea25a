"""ModuleTracker: what it says forward and backward is what PyTorch 2.13 says of the same program, but for one thing.

PyTorch leaves out a module whose output is what the backward pass starts from, for its hooks of several gradients are
not called there.
"""

import tinygrad_ext as tg
from tinygrad_ext.utils.module_tracker import ModuleTracker


class Inner(tg.nn.Module):
    def __init__(self, see):
        super().__init__()
        self.lin, self.see = tg.nn.Linear(3, 3), see

    def forward(self, x):
        self.see("forward")
        y = self.lin(x) * 2
        y.register_hook(lambda grad: self.see("backward"))
        return {"y": y, "more": None}


class Net(tg.nn.Module):
    def __init__(self, see):
        super().__init__()
        self.a, self.b, self.see = Inner(see), Inner(see), see

    def forward(self, x):
        self.see("enters")
        y = self.b(self.a(x)["y"])["y"]
        self.see("leaves")
        return y.sum()


def test_modules_are_named_while_they_run_forward_and_backward():
    seen = []
    net = Net(lambda when: seen.append((when, sorted(tracker.parents), tracker.is_bw)))
    with ModuleTracker() as tracker:
        for x in (tg.ones(2, 3, requires_grad=True), tg.ones(2, 3)):
            seen.clear()
            loss = net(x)
            assert tracker.parents == {"Global"}
            loss.backward()
            assert tracker.parents == {"Global"} and not tracker.is_bw
            assert seen == [
                ("enters", ["Global", "Net"], False),
                ("forward", ["Global", "Net", "Net.a"], False),
                ("forward", ["Global", "Net", "Net.b"], False),
                ("leaves", ["Global", "Net"], False),
                ("backward", ["Global", "Net"], True),
                ("backward", ["Global", "Net", "Net.b", "Net.b.lin"], True),
            ]
    seen.clear()
    net(tg.ones(2, 3)).backward()
    assert all(names == ["Global"] for _, names, _ in seen) and len(seen) == 6


def test_the_alias_has_it(as_torch):
    from torch.utils.module_tracker import ModuleTracker as Aliased

    assert Aliased is ModuleTracker
