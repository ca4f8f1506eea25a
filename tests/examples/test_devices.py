"""The example device computes, differentiates and refuses as its docstring says, beside the cpu."""

import doctest
from pathlib import Path

import pytest

import tinygrad_ext as tg
from tinygrad_ext import library, plugins

FOLDER = Path(__file__).parents[2] / "examples" / "devices"


@pytest.fixture
def example(load):
    """The example's module, its device brought for one test by a plugin of the program's."""
    module = load("host_memory")

    class Plugin:
        @tg.hookimpl
        def tgx_register_devices(self, register):
            module.register(register)

    plugins.register("example", Plugin(), distribution="this program")
    yield module
    plugins.unregister("example")


def test_the_docstring_is_true(example):
    result = doctest.testmod(example)
    assert result.attempted > 0 and result.failed == 0


def program(device):
    """Two layers with shared weights, on a device; the loss and the gradients of the leaves."""
    tg.manual_seed(0)
    x, w = tg.rand(4, 3).to(device), tg.rand(3, 3).to(device).requires_grad_()
    b = tg.rand(4, 3).to(device).requires_grad_()
    loss = ((x @ w + b).relu() @ w * b).relu().sum()
    loss.backward()
    return loss, w.grad, b.grad


def test_a_program_on_it_has_the_values_and_gradients_of_the_cpu(example):
    for there, here in zip(program("example"), program("cpu")):
        assert there.device == tg.device("example", 0)
        assert tg.allclose(there.cpu(), here, rtol=1e-5, atol=1e-6)


def test_a_model_trains_on_it(example):
    model, x = tg.nn.Linear(2, 1).to("example"), tg.tensor([[1.0, 2.0], [3.0, 5.0]]).to("example")
    assert {p.device.type for p in model.parameters()} == {"example"}
    before = model.weight.detach().cpu()
    (x @ model.weight.t()).sum().backward()
    with tg.no_grad():
        model.weight.add_(model.weight.grad, alpha=-0.1)
    assert tg.allclose(model.weight.cpu(), before - 0.1 * tg.tensor([[4.0, 7.0]]))
    state = {name: value.cpu() for name, value in model.state_dict().items()}
    assert tg.equal(state["weight"], model.weight.cpu())


def test_a_program_brings_it_without_a_plugin(load):
    module = load("host_memory")
    with library.Library("aten", "IMPL") as lib:
        library.register_device(module.NAME, module.HostMemory(), lib=lib)
        lib.impl("relu", module.relu, module.NAME)
        assert tg.tensor([-1.0, 2.0]).to("example").relu().tolist() == [0, 2]
    with pytest.raises(RuntimeError, match="device type at start of device string: example"):
        tg.device("example")
