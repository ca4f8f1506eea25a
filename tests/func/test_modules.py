"""Modules as functions of their tensors: functional_call, stacked models, gradients of each sample."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import func, nn
from tinygrad_ext.func import functional_call, grad, stack_module_state, vmap


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Parameter(tg.ones(2))
        self.b = self.a
        self.register_buffer("count", tg.zeros(()))

    def forward(self, x):
        self.count = self.count + 1
        return x * self.a + self.b


def test_a_module_is_called_with_other_tensors_and_stays_as_it_is():
    model = nn.Sequential(nn.Linear(3, 2), nn.ReLU())
    before = {name: p for name, p in model.named_parameters()}
    x = tg.rand(4, 3)
    got = functional_call(model, {"0.weight": tg.zeros(2, 3), "0.bias": tg.ones(2)}, x)
    assert tg.equal(got, tg.ones(4, 2))
    assert all(p is before[name] for name, p in model.named_parameters())


def test_it_stays_as_it_is_when_the_call_fails():
    model = nn.Linear(3, 2)
    weight = model.weight
    with pytest.raises(RuntimeError):
        functional_call(model, {"weight": tg.zeros(2, 7)}, (tg.rand(1, 3),))
    assert model.weight is weight


def test_what_a_module_assigns_is_found_in_the_dict():
    model, given = Tied(), {"count": tg.tensor(5.0)}
    functional_call(model, given, tg.ones(2))
    assert given["count"].item() == 6 and model.count.item() == 0


def test_tied_weights_are_replaced_together():
    model, x = Tied(), tg.ones(2)
    assert functional_call(model, {"a": tg.zeros(2)}, x).tolist() == [0, 0]
    assert functional_call(model, {"a": tg.zeros(2)}, x, tie_weights=False).tolist() == [1, 1]
    with pytest.raises(ValueError, match="multiple values for keys"):
        functional_call(model, {"a": tg.zeros(2), "b": tg.ones(2)}, x)


@pytest.mark.parametrize(
    "given, options, error, words",
    [
        ({"weight": tg.zeros(2, 3), "more": tg.zeros(1)}, {"strict": True}, RuntimeError, "Unexpected key.*'more'"),
        ({"weight": tg.zeros(2, 3)}, {"strict": True}, RuntimeError, "Missing key.*'bias'"),
        ({"weight": 3.0}, {}, TypeError, "Tensor, got float"),
        ([{"weight": tg.zeros(2, 3)}, {"weight": tg.zeros(2, 3)}], {}, ValueError, "multiple dictionaries"),
        ([{"weight": tg.zeros(2, 3)}, 1], {}, ValueError, "to be dictionaries"),
        (3, {}, ValueError, "to be a dict"),
        ({"inner.weight": tg.zeros(1)}, {}, AttributeError, "no attribute `inner`"),
    ],
)
def test_what_is_wrong_is_told(given, options, error, words):
    with pytest.raises(error, match=words):
        functional_call(nn.Linear(3, 2), given, tg.rand(1, 3), **options)


def test_gradients_of_each_sample_are_those_of_a_loop():
    model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
    x, y = tg.rand(6, 5), tg.randint(3, (6,))

    def loss(parameters, x, y):
        return nn.functional.cross_entropy(functional_call(model, parameters, x.unsqueeze(0)), y.unsqueeze(0))

    given = {name: p.detach() for name, p in model.named_parameters()}
    got = vmap(grad(loss), (None, 0, 0))(given, x, y)
    for i in range(6):
        model.zero_grad()
        nn.functional.cross_entropy(model(x[i : i + 1]), y[i : i + 1]).backward()
        for name, p in model.named_parameters():
            assert tg.allclose(got[name][i], p.grad, atol=1e-6), name


def test_several_models_run_as_one():
    models = [nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)) for _ in range(5)]
    parameters, buffers = stack_module_state(models)
    assert parameters["0.weight"].shape == (5, 4, 3) and parameters["0.weight"].is_leaf
    assert parameters["0.weight"].requires_grad and not buffers
    x = tg.rand(6, 3)
    got = vmap(lambda p, x: functional_call(models[0], p, x), (0, None))(parameters, x)
    for model, rows in zip(models, got):
        assert tg.allclose(rows, model(x), atol=1e-6)
    got.sum().backward()
    assert parameters["0.weight"].grad.shape == (5, 4, 3)


def test_models_that_cannot_be_stacked_are_refused():
    frozen = nn.Linear(3, 2)
    frozen.weight.requires_grad_(False)
    for models, words in [
        ([], "at least one model"),
        ([nn.Linear(3, 2), nn.ReLU()], "same class"),
        ([nn.Linear(3, 2), nn.Linear(3, 2).eval()], "same training/eval mode"),
        ([nn.Linear(3, 2), frozen], "same .requires_grad"),
    ]:
        with pytest.raises(RuntimeError, match=words):
            stack_module_state(models)


def test_batch_norms_give_up_their_statistics_and_run_under_vmap():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.BatchNorm1d(2, track_running_stats=False))
    x = tg.rand(5, 4, 3)
    with pytest.raises(RuntimeError, match="running"):
        vmap(model)(x)
    assert func.replace_all_batch_norm_modules_(model) is model
    assert not [name for name in model.state_dict() if "running" in name or "num_batches" in name]
    assert tg.allclose(vmap(model)(x), tg.stack([model(part) for part in x]), atol=1e-6)
    assert tg.allclose(model.eval()(x[0]), model.train()(x[0]))


def test_a_parameter_that_a_call_brings_is_gone_after_it():
    net = nn.Linear(1, 1)
    given = {"extra": nn.Parameter(tg.ones(1)), "weight": tg.ones(1, 1)}
    for _ in range(2):
        func.functional_call(net, dict(given), tg.ones(1, 1))
        assert [name for name, _ in net.named_parameters()] == ["weight", "bias"] and not hasattr(net, "extra")
    assert nn.utils.stateless._functional_call(net, given, tg.zeros(1, 1)).item() == net.bias.item()
