"""The examples of PyTorch's extension notes, of 2017, 2020 and today: functions of one's own."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.autograd import Function, Variable, grad, gradcheck, gradgradcheck
from tinygrad_ext.nn import functional as F


def double(*size):
    return tg.randn(*size, dtype=tg.float64, requires_grad=True)


@pytest.fixture(autouse=True)
def seed():
    tg.manual_seed(0)


# ---- a linear map in three styles ----------------------------------------------------------------------------------


def affine(input, weight, bias):
    output = input.mm(weight.t())
    if bias is not None:
        output += bias.unsqueeze(0).expand_as(output)
    return output


def affine_gradients(saved, needed, grad_output):
    input, weight, bias = saved
    grad_input = grad_weight = grad_bias = None
    if needed[0]:
        grad_input = grad_output.mm(weight)
    if needed[1]:
        grad_weight = grad_output.t().mm(input)
    if bias is not None and needed[2]:
        grad_bias = grad_output.sum(0)
    return grad_input, grad_weight, grad_bias


class LinearWithCtx(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        return affine(input, weight, bias)

    @staticmethod
    def backward(ctx, grad_output):
        return affine_gradients(ctx.saved_tensors, ctx.needs_input_grad, grad_output)


class LinearWithSetup(Function):
    @staticmethod
    def forward(input, weight, bias=None):
        return affine(input, weight, bias)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad_output):
        return affine_gradients(ctx.saved_tensors, ctx.needs_input_grad, grad_output)


class LinearOnInstances(Function):
    """The style of 2017, which PyTorch itself refuses today."""

    def forward(self, input, weight, bias=None):
        self.save_for_backward(input, weight, bias)
        return affine(input, weight, bias)

    def backward(self, grad_output):
        return affine_gradients(self.saved_tensors, self.needs_input_grad, grad_output)


STYLES = {
    "ctx": LinearWithCtx.apply,
    "setup_context": LinearWithSetup.apply,
    "instance": lambda *args, **kwargs: LinearOnInstances()(*args, **kwargs),
}
each_style = pytest.mark.parametrize("linear", STYLES.values(), ids=STYLES)


@each_style
@pytest.mark.parametrize("sizes", [((4, 3), (2, 3)), ((4, 3), (2, 3), (2,)), ((1, 2), (1, 2), (1,))], ids=str)
def test_linear_passes_gradcheck_and_gradgradcheck(linear, sizes):
    inputs = tuple(double(*size) for size in sizes)
    assert gradcheck(linear, inputs, eps=1e-6, atol=1e-4)
    assert gradgradcheck(linear, inputs)


@each_style
def test_linear_equals_the_built_in_one(linear):
    inputs = double(4, 3), double(2, 3), double(2)
    twins = [t.detach().requires_grad_() for t in inputs]
    out, expected = linear(*inputs), F.linear(*twins)
    assert tg.allclose(out, expected)
    out.square().sum().backward()
    expected.square().sum().backward()
    for t, twin in zip(inputs, twins):
        assert tg.allclose(t.grad, twin.grad)


@each_style
def test_linear_takes_its_bias_by_position_by_name_or_not_at_all(linear):
    x, w, b = double(4, 3), double(2, 3), double(2)
    assert tg.equal(linear(x, w, b), linear(x, w, bias=b)) and tg.equal(linear(x, w), linear(x, w, None))
    linear(x, w, bias=b).sum().backward()
    assert b.grad.tolist() == [4, 4]


@each_style
def test_linear_computes_only_the_gradients_that_are_needed(linear):
    x, w, b = double(4, 3), double(2, 3).detach(), double(2).detach()
    out = linear(x, w, b)
    seen = []
    out.grad_fn.register_hook(lambda grads, incoming: seen.append([g is not None for g in grads]))
    out.sum().backward()
    assert seen[0][:3] == [True, False, False] and w.grad is None and b.grad is None


def test_one_instance_is_checked_with_inputs_made_by_variable():
    inputs = (
        Variable(tg.randn(5, 3).double(), requires_grad=True),
        Variable(tg.randn(4, 3).double(), requires_grad=True),
    )
    linear = LinearOnInstances()
    assert gradcheck(linear, inputs, eps=1e-6, atol=1e-4)
    first, second = linear(*inputs), linear(inputs[0] * 2, inputs[1])
    (a,), (b,) = grad(first.sum(), inputs[1:]), grad(second.sum(), inputs[1:])
    assert tg.allclose(a * 2, b)


# ---- Variable ------------------------------------------------------------------------------------------------------


def test_variable_is_a_tensor_over_the_same_memory_outside_the_graph():
    data = tg.ones(2, requires_grad=True) * 3
    x = Variable(data, requires_grad=True)
    assert type(x) is tg.Tensor and isinstance(data, Variable) and x.is_leaf and x.requires_grad
    assert not Variable(data).requires_grad and Variable().numel() == 0
    x.data[0] = 7
    assert data[0].item() == 7
    assert not isinstance(3, Variable) and not isinstance([1.0], Variable)


def test_variable_wants_a_tensor_and_warns_of_volatile():
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        Variable([1.0])
    with pytest.raises(RuntimeError, match="Only Tensors of floating point and complex dtype"):
        Variable(tg.arange(2), requires_grad=True)
    with pytest.warns(UserWarning, match="volatile was removed"):
        Variable(tg.ones(1), volatile=True)


# ---- options that are not tensors ----------------------------------------------------------------------------------


class AddConstant(Function):
    def __init__(self, constant):
        self.constant = constant

    def forward(self, x):
        return x + self.constant

    def backward(self, grad_output):
        return grad_output


class Transpose(Function):
    def __init__(self, first, second):
        self.first, self.second = first, second

    def forward(self, x):
        return x.transpose(self.first, self.second).contiguous()

    def backward(self, grad_output):
        return grad_output.transpose(self.first, self.second)


@pytest.mark.parametrize("f", [AddConstant(2.5), Transpose(0, 1), Transpose(2, 0)], ids=["add", "t01", "t20"])
def test_options_are_given_to_the_constructor_of_an_instance(f):
    x = double(2, 3, 4)
    assert gradcheck(f, (x,)) and gradgradcheck(f, (x,))


class MulConstantWithCtx(Function):
    @staticmethod
    def forward(ctx, tensor, constant):
        ctx.constant = constant
        return tensor * constant

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output * ctx.constant, None


class MulConstant(Function):
    """The same, with nothing to do where no gradient comes in."""

    seen = []

    @staticmethod
    def forward(tensor, constant):
        return tensor * constant

    @staticmethod
    def setup_context(ctx, inputs, output):
        _, ctx.constant = inputs
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(ctx, grad_output):
        MulConstant.seen.append(grad_output)
        if grad_output is None:
            return None, None
        return grad_output * ctx.constant, None


class Dead(Function):
    """Gives no gradient back."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad_output):
        return None


@pytest.mark.parametrize("f", [MulConstantWithCtx, MulConstant])
def test_a_constant_gets_no_gradient(f):
    x = double(3)
    assert gradcheck(lambda t: f.apply(t, 5.5), (x,)) and gradgradcheck(lambda t: f.apply(t, 5.5), (x,))
    f.apply(x, constant=2).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]


def test_a_gradient_that_is_not_materialized_arrives_as_none():
    x = double(3)
    MulConstant.seen.clear()
    Dead.apply(MulConstant.apply(x, 2)).sum().backward()
    assert MulConstant.seen == [None] and x.grad is None


def test_a_gradient_is_materialized_as_zeros_by_default():
    x = double(3)
    Dead.apply(MulConstantWithCtx.apply(x, 2)).sum().backward()
    assert x.grad.tolist() == [0, 0, 0]


# ---- an intermediate result that higher derivatives need --------------------------------------------------------


class MyCube(Function):
    """x³ together with its derivative, so that gradients flow through what backward uses."""

    @staticmethod
    def forward(x):
        slope = 3 * x**2
        return x**3, slope

    @staticmethod
    def setup_context(ctx, inputs, output):
        (x,), (_, slope) = inputs, output
        ctx.save_for_backward(x, slope)

    @staticmethod
    def backward(ctx, grad_output, grad_slope):
        x, slope = ctx.saved_tensors
        return grad_output * slope + grad_slope * 6 * x


def my_cube(x):
    return MyCube.apply(x)[0]


def test_the_cube_is_right_to_the_third_derivative():
    x = double(4)
    expected = [3 * x**2, 6 * x, tg.full_like(x, 6)]
    y = my_cube(x)
    for want in expected:
        (y,) = grad(y.sum(), x, create_graph=True)
        assert tg.allclose(y, want)
    (fourth,) = grad(y.sum(), x)
    assert fourth.tolist() == [0, 0, 0, 0]


def derivative(f):
    return lambda x: grad(f(x).sum(), x, create_graph=True)[0]


@pytest.mark.parametrize("order", [0, 1, 2])
def test_the_cube_passes_gradcheck_at_every_order(order):
    f = my_cube
    for _ in range(order):
        f = derivative(f)
    assert gradcheck(f, (double(3),)) and gradgradcheck(f, (double(3),))


def test_both_outputs_of_the_cube_can_be_differentiated():
    x = double(3)
    assert gradcheck(MyCube.apply, (x,)) and gradgradcheck(MyCube.apply, (x,))
