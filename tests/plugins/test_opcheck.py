"""opcheck: PyTorch's names and results over the checks of the battery."""

import numpy as np
import pytest

import tinygrad_ext as tg
from tinygrad_ext import library
from tinygrad_ext.testing import check_op
from tinygrad_ext.testing.opcheck import DEFAULT, OpCheckError, opcheck

SUCCESS = dict.fromkeys(DEFAULT, "SUCCESS")
ONE = ["schema", "mutation", "derivative"]
SCHEMA = "faulty::f(Tensor self, float factor=2.0) -> Tensor"


@pytest.fixture
def register(register_temporarily):
    """Registers an op with a shape rule."""

    def op(kernel, **fields):
        fields = {"shape": lambda self, factor: tg.empty_like(self), **fields}
        return register_temporarily.op(SCHEMA, kernel=kernel, **fields)

    return op


def test_a_sound_op_gives_success_for_each_of_pytorchs_tests(register):
    op = register(lambda self, factor: self * factor, grad={"self": lambda grad, factor: grad * factor})
    x = tg.rand(2, 3, requires_grad=True)
    assert opcheck(op, (x,), {"factor": 3.0}) == SUCCESS
    assert opcheck(op.default, [x]) == SUCCESS
    assert opcheck("faulty::f", (x,)) == SUCCESS
    assert list(SUCCESS) == [
        "test_schema",
        "test_autograd_registration",
        "test_faketensor",
        "test_aot_dispatch_dynamic",
    ]


FAULTS = {
    "test_schema": ({"kernel": lambda self, factor: self}, "shares memory with its argument 'self'"),
    "test_autograd_registration": (
        {"kernel": lambda self, factor: self * factor, "grad": {"self": lambda grad: grad.sum()}},
        "returned an invalid gradient",
    ),
    "test_faketensor": (
        {"kernel": lambda self, factor: self * factor, "shape": lambda self, factor: self[None]},
        "meta gives torch.Size([1])",
    ),
    "test_aot_dispatch_dynamic": (
        {
            "kernel": lambda self, factor: self * factor,
            "grad": {"self": lambda grad, self, factor: grad * factor * float(self.sum() == self.sum())},
        },
        "cannot be called on meta tensors",
    ),
    "derivative": (
        {"kernel": lambda self, factor: self * factor, "grad": {"self": "grad"}},
        "Jacobian mismatch",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_raised_or_returned_under_the_name_of_its_test(register, name):
    fields, message = FAULTS[name]
    op = register(**fields)
    x = tg.rand(2, 3, requires_grad=True)
    found = opcheck(op, (x,), test_utils=name, raise_exception=False)
    assert list(found) == [name]
    assert isinstance(found[name], OpCheckError)
    with pytest.raises(OpCheckError) as raised:
        opcheck(op, (x,), test_utils=(name,))
    assert str(raised.value) == str(found[name])
    assert str(raised.value).startswith(f"opcheck of faulty::f: {name}")
    assert message in str(raised.value)
    assert "smallest case: tg.ops.faulty.f(tg.tensor(" in str(raised.value)


def test_the_given_arguments_are_not_touched(register):
    op = register(lambda self, factor: self.add_(1) * factor)
    x = tg.rand(2, 3)
    before, version = x.tolist(), x._version
    assert "changes its argument 'self'" in str(opcheck(op, (x,), raise_exception=False)["test_schema"])
    assert (x.tolist(), x._version) == (before, version)


def test_tolerances_given_are_used_and_put_back(register):
    calls = iter(range(1000))
    op = register(lambda self, factor: self * factor + 1e-4 * next(calls))
    x = tg.rand(2, 3)
    assert opcheck(op, (x,), test_utils="layouts", atol=1.0) == {"layouts": "SUCCESS"}
    assert opcheck(op, (x,), test_utils="layouts", raise_exception=False) != {"layouts": "SUCCESS"}


def test_built_in_ops_can_be_checked():
    assert opcheck(tg.matmul, (tg.rand(2, 3, requires_grad=True), tg.rand(3, 4))) == SUCCESS
    assert opcheck(tg.ops.aten.sum, (tg.rand(2, 3, requires_grad=True),), {"dim": 1}) == SUCCESS


def test_an_op_of_custom_op_is_checked_as_it_stands():
    @library.custom_op("faulty::numpy_sin", mutates_args=())
    def numpy_sin(x: tg.Tensor) -> tg.Tensor:
        return tg.from_numpy(np.sin(x.numpy()))

    try:
        x = tg.rand(3, requires_grad=True)
        found = library.opcheck(numpy_sin, (x,), raise_exception=False)
        assert "register_fake" in str(found.pop("test_faketensor"))
        assert found["test_schema"] == found["test_autograd_registration"] == "SUCCESS"
        numpy_sin.register_fake(lambda x: tg.empty_like(x))
        assert library.opcheck(numpy_sin, (x,)) == SUCCESS
        numpy_sin.register_autograd(
            lambda ctx, grad: grad * ctx.saved_tensors[0].sin(),  # should be cos
            setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
        )
        assert library.opcheck(numpy_sin, (x,)) == SUCCESS
        assert "Jacobian mismatch" in str(opcheck(numpy_sin, (x,), test_utils="derivative", raise_exception=False))
        assert [r.check for r in check_op("faulty::numpy_sin", only=ONE).of("failed")] == ["derivative"]
    finally:
        library.definition.undefine("faulty::numpy_sin")


def test_an_op_that_writes_is_checked_on_copies():
    @library.custom_op("faulty::increase", mutates_args=["x"])
    def increase(x: tg.Tensor, by: float = 1.0) -> None:
        x.add_(by)

    try:
        increase.register_fake(lambda x, by=1.0: None)
        x = tg.zeros(3)
        assert library.opcheck(increase, (x,)) == SUCCESS
        assert x.tolist() == [0, 0, 0]
        assert library.opcheck(increase, (tg.zeros(3, requires_grad=True), 2.0)) == SUCCESS
        assert library.opcheck(increase, (x,), test_utils=["override", "settings", "threads", "repeat"])
        assert check_op(increase).ok
    finally:
        library.definition.undefine("faulty::increase")


def test_wrong_calls_are_refused():
    with pytest.raises(ValueError, match="test_utils names 'test_jit', which is no check of one call; there are"):
        opcheck(tg.exp, (tg.ones(1),), test_utils=["test_jit"])
    with pytest.raises(TypeError, match="argument 'args' must be a tuple of the op's arguments, not Tensor"):
        opcheck(tg.exp, tg.ones(1))
    with pytest.raises(TypeError, match="expected an op, such as tinygrad_ext.ops.vision.nms"):
        opcheck(len, (tg.ones(1),))
