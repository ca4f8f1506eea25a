"""The base of the optimizers: groups, state, hooks, copies, refusals."""

import copy
import pickle

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn, optim
from tinygrad_ext.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
    required,
)


def parameter(value=1.0, size=2):
    made = nn.Parameter(tg.ones(size) * value)
    made.grad = tg.ones(size)
    return made


def test_groups_take_their_own_options_and_the_defaults():
    a, b = parameter(), parameter()
    opt = optim.SGD([{"params": a, "lr": 1.0}, {"params": [b]}], lr=0.1)
    opt.step()
    assert a.tolist() == [0, 0] and b.tolist() == pytest.approx([0.9, 0.9])
    opt.add_param_group({"params": parameter(), "lr": 5.0})
    assert [group["lr"] for group in opt.param_groups] == [1.0, 0.1, 5.0]
    assert opt.state_dict()["param_groups"][2]["params"] == [2]


def test_named_parameters_keep_their_names():
    layer = nn.Linear(2, 1)
    opt = optim.Adam(layer.named_parameters())
    assert opt.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


def test_options_changed_in_a_group_are_used():
    p = parameter()
    opt = optim.SGD([p], lr=0.1)
    opt.param_groups[0]["lr"] = 0.5
    opt.step()
    assert p.tolist() == [0.5, 0.5]
    opt.param_groups[0]["lr"] = tg.tensor(0.5)
    opt.step()
    assert p.tolist() == [0, 0]


def test_state_edited_by_hand_is_used():
    p = parameter()
    opt = optim.SGD([p], lr=1.0, momentum=0.5)
    opt.step()
    opt.step()
    assert p.tolist() == [1 - 1 - 1.5] * 2
    opt.state[p]["momentum_buffer"] = tg.zeros(2)
    opt.step()
    assert p.tolist() == [-2.5] * 2
    opt.state.clear()
    opt.step()
    assert p.tolist() == [-3.5] * 2


def test_a_parameter_replaced_in_its_group_is_used():
    old, new = parameter(), parameter()
    opt = optim.SGD([old], lr=1.0, momentum=0.5)
    opt.step()
    opt.param_groups[0]["params"][0] = new
    opt.step()
    assert new.tolist() == [0, 0] and old.tolist() == [0, 0] and len(opt.state) == 2


def test_a_gradient_that_comes_later_starts_its_state_then():
    a, b = parameter(), parameter()
    b.grad = None
    opt = optim.Adam([a, b])
    opt.step()
    assert b not in opt.state
    b.grad = tg.ones(2)
    opt.step()
    assert float(opt.state[a]["step"]) == 2 and float(opt.state[b]["step"]) == 1


def test_closure_is_called_with_gradients_on():
    p = parameter()
    opt = optim.SGD([p], lr=0.1)

    def closure():
        opt.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    with tg.no_grad():
        assert float(opt.step(closure).detach()) == 2
    assert p.tolist() == pytest.approx([0.8, 0.8])


def test_zero_grad():
    p = parameter()
    opt = optim.SGD([p])
    opt.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0, 0]
    opt.zero_grad()
    assert p.grad is None


def test_an_update_counts_as_a_change_of_the_parameter():
    p = parameter()
    product = (p * p).sum()
    optim.SGD([p]).step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_copies_made_together_stay_together(duplicate):
    p = parameter()
    opt = optim.Adam([p])
    opt.step()
    twin_p, twin = duplicate((p, opt))
    twin_p.grad = tg.ones(2)
    twin.step()
    assert twin.param_groups[0]["params"][0] is twin_p
    assert float(twin.state[twin_p]["step"]) == 2 and float(opt.state[p]["step"]) == 1


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW])
def test_step_hooks_run_around_a_step_of_our_own(kind):
    order = []
    opt = type("Derived", (kind,), {})([parameter()]) if kind is optim.AdamW else kind([parameter()])
    opt.register_step_pre_hook(lambda o, args, kwargs: order.append("pre"))
    opt.register_step_post_hook(lambda o, args, kwargs: order.append("post"))
    opt.step()
    opt.step(lambda: order.append("closure"))
    assert order == ["pre", "post", "pre", "closure", "post"]


def test_step_hooks_run_around_one_step():
    order = []

    class Twice(optim.SGD):
        def step(self, closure=None):
            order.append("step")
            return super().step(closure)

    opt = Twice([parameter()])
    opt.register_step_pre_hook(lambda o, args, kwargs: order.append("pre"))
    handle = opt.register_step_post_hook(lambda o, args, kwargs: order.append("post"))
    with register_optimizer_step_pre_hook(lambda *_: order.append("global pre")):
        with register_optimizer_step_post_hook(lambda *_: order.append("global post")):
            opt.step()
    assert order == ["global pre", "pre", "step", "post", "global post"]
    handle.remove()
    opt.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        opt.step()


def test_step_hooks_see_and_replace_all_that_the_step_gets():
    opt, asked = optim.SGD([parameter()]), []
    opt.register_step_pre_hook(lambda o, args, kwargs: ((o, lambda: asked.append("other")), kwargs))
    opt.register_step_post_hook(lambda o, args, kwargs: asked.append((args[0] is o, len(args), kwargs)))
    opt.step(lambda: asked.append("own"))
    assert asked == ["other", (True, 2, {})]


@pytest.mark.parametrize("kind", [optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad])
@pytest.mark.parametrize("other", ["foreach", "differentiable"])
def test_fused_refuses_another_kind_of_step(kind, other):
    with pytest.raises(RuntimeError, match=f"`fused` .*`{other}`"):
        kind([parameter()], fused=True, **{other: True})


def test_state_dict_hooks():
    opt = optim.SGD([parameter()])
    seen = []
    opt.register_state_dict_pre_hook(lambda o: seen.append("pre"))
    opt.register_state_dict_post_hook(lambda o, state: {**state, "more": 1})
    opt.register_load_state_dict_pre_hook(lambda o, state: seen.append(state.pop("more")))
    opt.register_load_state_dict_post_hook(lambda o: seen.append("post"))
    opt.load_state_dict(opt.state_dict())
    assert seen == ["pre", 1, "post"]


def test_loaded_state_is_cast_to_the_parameters_dtype():
    a, b = parameter(), nn.Parameter(tg.ones(2, dtype=tg.float64))
    first, second = optim.Adam([a]), optim.Adam([b])
    first.step()
    second.load_state_dict(first.state_dict())
    assert second.state[b]["exp_avg"].dtype == tg.float64 and second.state[b]["step"].dtype == tg.float32


def test_steps_counted_with_a_number_become_tensors():
    p = parameter()
    opt = optim.Adam([p])
    opt.step()
    state = opt.state_dict()
    state["state"][0]["step"] = 1
    opt.load_state_dict(state)
    opt.step()
    assert float(opt.state[p]["step"]) == 2


def test_an_optimizer_of_ones_own():
    class Sign(optim.Optimizer):
        def __init__(self, params, lr=required):
            super().__init__(params, {"lr": lr})

        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    state = self.state[p]
                    state["steps"] = state.get("steps", 0) + 1
                    with tg.no_grad():
                        p.sub_(p.grad.sign(), alpha=group["lr"])

    p = parameter()
    opt = Sign([p], lr=1.0)
    opt.step()
    assert p.tolist() == [0, 0] and opt.state_dict()["state"] == {0: {"steps": 1}}
    with pytest.raises(ValueError, match="didn't specify a value of required"):
        Sign([p])


P = parameter()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: optim.SGD(P), TypeError, "should be an iterable of Tensors"),
        (lambda: optim.SGD([]), ValueError, "empty parameter list"),
        (lambda: optim.SGD([P * 2]), ValueError, "can't optimize a non-leaf"),
        (lambda: optim.SGD([3]), TypeError, "one of the params is int"),
        (lambda: optim.SGD([{"params": {P}}]), TypeError, "ordered collections"),
        (lambda: optim.SGD([{"params": [P]}, {"params": [P]}]), ValueError, "more than one parameter group"),
        (lambda: optim.SGD([("a", P), parameter()]), ValueError, "names are missing"),
        (lambda: optim.SGD([P]).add_param_group(3), TypeError, "must be a dict"),
        (lambda: optim.SGD([P], lr=-1), ValueError, "Invalid learning rate: -1"),
        (lambda: optim.SGD([P], lr=tg.ones(2)), ValueError, "must be 1-element"),
        (lambda: optim.SGD([P], momentum=-1), ValueError, "Invalid momentum value"),
        (lambda: optim.SGD([P], weight_decay=-1), ValueError, "Invalid weight_decay value"),
        (lambda: optim.SGD([P], nesterov=True), ValueError, "requires a momentum and zero dampening"),
        (lambda: optim.Adam([P], betas=(0.1, 1)), ValueError, "Invalid beta parameter at index 1"),
        (lambda: optim.Adam([P], eps=-1), ValueError, "Invalid epsilon value"),
        (lambda: optim.Optimizer([P], {}).step(), NotImplementedError, "does not define step"),
        (
            lambda: optim.SGD([P]).load_state_dict({"state": {}, "param_groups": []}),
            ValueError,
            "different number of parameter groups",
        ),
        (
            lambda: optim.SGD([P]).load_state_dict(optim.SGD([P, parameter()]).state_dict()),
            ValueError,
            "doesn't match the size",
        ),
    ],
)
def test_wrong_use_raises(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_parameter_twice_in_a_group_warns():
    with pytest.warns(UserWarning, match="duplicate parameters"):
        optim.SGD([P, P])


@pytest.mark.parametrize("kind", ["Adam", "AdamW", "SGD", "Adagrad"])
def test_fused_steps_take_parameters_of_floats_with_memory(kind):
    for param in (tg.ones(1, device="meta"), tg.ones(1, dtype=tg.complex64)):
        with pytest.raises(RuntimeError, match="fused=True"):
            getattr(optim, kind)([param], fused=True)
        getattr(optim, kind)([param])
    getattr(optim, kind)([tg.ones(1)], fused=True)
