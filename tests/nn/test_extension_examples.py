"""The examples of PyTorch's extension notes, of 2017, 2020 and today: a linear layer of one's own."""

import pytest

import tinygrad_ext as torch
from tinygrad_ext import nn, optim
from tinygrad_ext.autograd import Function, gradcheck


class LinearFunction(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        return output if bias is None else output + bias

    @staticmethod
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        return grad_output.mm(weight), grad_output.t().mm(input), None if bias is None else grad_output.sum(0)


class LegacyLinear(Function):
    def forward(self, input, weight, bias=None):
        self.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        return output if bias is None else output + bias

    def backward(self, grad_output):
        input, weight, bias = self.saved_tensors
        return grad_output.mm(weight), grad_output.t().mm(input), None if bias is None else grad_output.sum(0)


class Linear2017(nn.Module):
    """No super().__init__(), memory without values, an instance of the Function for every call."""

    def __init__(self, input_features, output_features, bias=True):
        self.input_features = input_features
        self.output_features = output_features
        self.weight = nn.Parameter(torch.Tensor(output_features, input_features))
        if bias:
            self.bias = nn.Parameter(torch.Tensor(output_features))
        else:
            self.register_parameter("bias", None)
        self.weight.data.uniform_(-0.1, 0.1)
        if self.bias is not None:
            self.bias.data.uniform_(-0.1, 0.1)

    def forward(self, input):
        return LegacyLinear()(input, self.weight, self.bias)


class Linear2020(nn.Module):
    def __init__(self, input_features, output_features, bias=True):
        super(Linear2020, self).__init__()  # noqa: UP008 - as it was written then
        self.input_features = input_features
        self.output_features = output_features
        self.weight = nn.Parameter(torch.Tensor(output_features, input_features))
        if bias:
            self.bias = nn.Parameter(torch.Tensor(output_features))
        else:
            self.register_parameter("bias", None)
        self.weight.data.uniform_(-0.1, 0.1)
        if self.bias is not None:
            self.bias.data.uniform_(-0.1, 0.1)

    def forward(self, input):
        return LinearFunction.apply(input, self.weight, self.bias)

    def extra_repr(self):
        return "{} -> {}, bias={}".format(self.input_features, self.output_features, self.bias is not None)  # noqa: UP032


class LinearToday(nn.Module):
    def __init__(self, input_features, output_features, bias=True):
        super().__init__()
        self.input_features = input_features
        self.output_features = output_features
        self.weight = nn.Parameter(torch.empty(output_features, input_features))
        if bias:
            self.bias = nn.Parameter(torch.empty(output_features))
        else:
            self.register_parameter("bias", None)
        nn.init.uniform_(self.weight, -0.1, 0.1)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -0.1, 0.1)

    def forward(self, input):
        return LinearFunction.apply(input, self.weight, self.bias)

    def extra_repr(self):
        return f"{self.input_features} -> {self.output_features}, bias={self.bias is not None}"


each_era = pytest.mark.parametrize("layer", [Linear2017, Linear2020, LinearToday])


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@each_era
def test_parameters_are_registered_and_start_in_their_interval(layer):
    made = layer(30, 20)
    assert [n for n, _ in made.named_parameters()] == ["weight", "bias"]
    for p in made.parameters():
        assert p.requires_grad and p.is_leaf and p.grad_fn is None
        assert p.abs().max().item() <= 0.1 and p.std().item() > 0.03


@each_era
def test_a_layer_without_bias_has_an_empty_place_for_it(layer):
    made = layer(3, 2, bias=False)
    assert made.bias is None and [n for n, _ in made.named_parameters()] == ["weight"]
    assert list(made.state_dict()) == ["weight"] and "bias" in made._parameters
    made(torch.ones(4, 3)).sum().backward()
    assert made.weight.grad.tolist() == [[4, 4, 4], [4, 4, 4]]
    made.bias = nn.Parameter(torch.ones(2))
    assert len(list(made.parameters())) == 2


@each_era
def test_values_and_gradients_are_those_of_the_built_in_layer(layer):
    mine, built_in = layer(3, 2), nn.Linear(3, 2)
    built_in.load_state_dict(mine.state_dict())
    x = torch.randn(5, 3)
    for made in (mine, built_in):
        made(x).square().sum().backward()
    assert torch.allclose(mine(x), built_in(x))
    assert torch.allclose(mine.weight.grad, built_in.weight.grad)
    assert torch.allclose(mine.bias.grad, built_in.bias.grad)


@each_era
def test_a_layer_in_double_passes_gradcheck(layer):
    assert gradcheck(layer(3, 2).double(), (torch.randn(4, 3, dtype=torch.float64, requires_grad=True),))


@each_era
def test_a_layer_works_inside_a_model_that_is_trained_saved_and_loaded(layer, tmp_path):
    model = nn.Sequential(layer(2, 8), nn.Tanh(), layer(8, 1))
    x = torch.randn(32, 2)
    target = x[:, :1] - x[:, 1:]
    optimizer = optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 10
    torch.save(model.state_dict(), tmp_path / "model")
    fresh = nn.Sequential(layer(2, 8), nn.Tanh(), layer(8, 1))
    fresh.load_state_dict(torch.load(tmp_path / "model"))
    assert torch.equal(fresh(x), model(x))


def test_extra_repr_stands_between_the_parentheses():
    assert repr(Linear2017(3, 2)) == "Linear2017()"
    assert repr(Linear2020(3, 2)) == "Linear2020(3 -> 2, bias=True)"
    assert repr(nn.Sequential(LinearToday(3, 2, False))) == "Sequential(\n  (0): LinearToday(3 -> 2, bias=False)\n)"


def test_both_ways_to_fill_a_parameter_draw_the_same_numbers():
    torch.manual_seed(7)
    old = Linear2020(4, 4)
    torch.manual_seed(7)
    new = LinearToday(4, 4)
    assert torch.equal(old.weight, new.weight) and torch.equal(old.bias, new.bias)
