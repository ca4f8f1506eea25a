"""Each check of the battery for modules fails for the fault it is there for; built-in modules pass."""

import re

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.ops.samples import Sample
from tinygrad_ext.testing import battery, check_module
from tinygrad_ext.testing.battery.check import run_check
from tinygrad_ext.testing.battery.modules import ModuleSubject


class Good(nn.Module):
    """A module with a parameter, a buffer and a child; the faulty ones change one thing about it."""

    def __init__(self, size=3):
        super().__init__()
        self.weight = nn.Parameter(tg.randn(size))
        self.register_buffer("offset", tg.randn(size))
        self.child = nn.Dropout(0.5)

    def forward(self, input):
        return self.child(input * self.weight + self.offset)


class NeedsSize(Good):
    def __init__(self, size):
        super().__init__(size)


class WritesInput(Good):
    def forward(self, input):
        return super().forward(input.detach().add_(1))


class HidesState(Good):
    def __init__(self, size=3):
        super().__init__(size)
        self.scale = tg.randn(size)

    def forward(self, input):
        return super().forward(input) * self.scale


class SharesOnCopy(Good):
    def __deepcopy__(self, memo):
        twin = Good()
        twin.__class__ = SharesOnCopy
        twin.train(self.training)
        twin.weight, twin.offset = self.weight, self.offset
        return twin


class HoldsLambda(Good):
    def __init__(self, size=3):
        super().__init__(size)
        self.activation = lambda x: x.relu()


class ForgetsSelf(Good):
    def train(self, mode=True):
        super().train(mode)


class Detaches(Good):
    def forward(self, input):
        return super().forward(input.detach()).detach()


class Wrong(tg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 3


class WrongGradient(Good):
    def forward(self, input):
        return Wrong.apply(super().forward(input))


class Narrow(Good):
    def forward(self, input):
        return super().forward(input).float()


class Anonymous(Good):
    def __repr__(self):
        return "a module"


def rows(make):
    yield Sample(make(4, 3))
    yield Sample(make(3), size=3)
    yield Sample(make(2, 5), size=5)


FAULTS = {
    "samples": (NeedsSize, None, "no samples: add register('faulty::M', NeedsSize, samples=...)"),
    "forward": (WritesInput, rows, "forward changes its input 0"),
    "state_dict": (HidesState, rows, "must be a parameter, a buffer or an argument of the class"),
    "deepcopy": (SharesOnCopy, rows, "a deep copy shares weight, offset with the original"),
    "pickle": (HoldsLambda, rows, "HoldsLambda.__init__.<locals>.<lambda>"),
    "train_eval": (ForgetsSelf, rows, "eval() does not return the module"),
    "gradients": (Detaches, rows, "the result does not require grad, so nothing reaches weight"),
    "derivative": (WrongGradient, rows, "Jacobian mismatch for output 0 with respect to input 0"),
    "double": (Narrow, rows, "gives torch.float32 for float64 inputs"),
    "repr": (Anonymous, rows, "repr() is 'a module', which does not name Anonymous"),
}


@pytest.mark.parametrize("check", FAULTS)
def test_a_check_fails_for_its_fault_and_names_the_smallest_case(check, register_temporarily):
    cls, samples, message = FAULTS[check]
    register_temporarily.module("faulty::M", cls, samples=samples)
    result = run_check(battery.MODULE_CHECKS[check], ModuleSubject("faulty::M"))
    assert result.status == "failed"
    assert message in result.message
    if samples is not None:
        call = 'tg.nn.create("faulty::M", size=3)(tg.tensor(N, dtype=tg.float32'
        assert re.sub(r"-?\d+\.\d+", "N", result.case).startswith(call)


def test_every_check_of_modules_has_a_fault():
    assert set(FAULTS) == set(battery.MODULE_CHECKS)


def test_a_good_module_passes(register_temporarily):
    register_temporarily.module("good::M", Good, samples=rows)
    assert check_module("good::M").counts == {"passed": 10, "failed": 0, "skipped": 0}


def test_a_module_without_samples_is_made_without_arguments_and_called_with_a_tensor(register_temporarily):
    register_temporarily.module("good::M", Good)
    report = check_module("good::M")
    assert report.counts == {"passed": 10, "failed": 0, "skipped": 0}


@pytest.mark.parametrize("name", ["Linear", "ReLU", "Conv2d", "BatchNorm1d", "LayerNorm", "Dropout", "Embedding"])
def test_built_in_modules_pass(name, monkeypatch):
    monkeypatch.setitem(tg.registry.module_samples, f"nn::{name}", SAMPLES[name])
    report = check_module(f"nn::{name}")
    assert report.ok, str(report)


SAMPLES = {
    "Linear": lambda make: [Sample(make(2, 3), in_features=3, out_features=2)],
    "ReLU": lambda make: [Sample(make(2, 3)), Sample(make(()))],
    "Conv2d": lambda make: [Sample(make(1, 2, 5, 5), in_channels=2, out_channels=3, kernel_size=3)],
    "BatchNorm1d": lambda make: [Sample(make(4, 3), num_features=3)],
    "LayerNorm": lambda make: [Sample(make(4, 3), normalized_shape=3)],
    "Dropout": lambda make: [Sample(make(4, 3), p=0.25)],
    "Embedding": lambda make: [Sample(make.ints(0, 4, (3,)), num_embeddings=4, embedding_dim=2)],
}


def test_samples_must_be_a_function(register_temporarily):
    with pytest.raises(TypeError, match="samples= takes a function of a Maker"):
        register_temporarily.module("good::M", Good, samples=[1])


def test_an_unknown_module_is_refused():
    with pytest.raises(LookupError, match="Linnear"):
        check_module("nn::Linnear")
