"""Hooks around the call, on gradients and on registration."""

import copy
import pickle
from collections import OrderedDict

import pytest

import tinygrad_ext as tg
from tinygrad_ext import nn
from tinygrad_ext.nn import hooks, registration


class Pair(nn.Module):
    def forward(self, a, b=None):
        return a * 2 if b is None else a * 2 + b


def test_hooks_run_in_the_documented_order():
    order = []
    net = Pair()
    net.register_forward_pre_hook(lambda *_: order.append("forward_pre"))
    net.register_forward_hook(lambda *_: order.append("forward"))
    net.register_full_backward_pre_hook(lambda *_: order.append("backward_pre"))
    net.register_full_backward_hook(lambda *_: order.append("backward"))
    net(tg.ones(1, requires_grad=True)).sum().backward()
    assert order == ["forward_pre", "forward", "backward_pre", "backward"]


def test_pre_hook_replaces_arguments():
    net = Pair()
    with net.register_forward_pre_hook(lambda module, args: args[0] + 1):
        assert float(net(tg.ones(1))) == 4
    assert float(net(tg.ones(1))) == 2
    net.register_forward_pre_hook(lambda m, args, kwargs: (args, {"b": tg.ones(1)}), with_kwargs=True)
    assert float(net(tg.ones(1))) == 3
    net.register_forward_pre_hook(lambda m, args, kwargs: args, with_kwargs=True)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        net(tg.ones(1))


def test_forward_hook_sees_and_replaces_the_output():
    net = Pair()
    handle = net.register_forward_hook(lambda module, args, output: output + 10)
    net.register_forward_hook(lambda m, args, kwargs, output: output + kwargs["b"], with_kwargs=True)
    assert float(net(tg.ones(1), b=tg.ones(1))) == 14
    handle.remove()
    handle.remove()
    assert float(net(tg.ones(1), b=tg.ones(1))) == 4


def test_prepend_puts_a_hook_first():
    order = []
    net = Pair()
    net.register_forward_hook(lambda *_: order.append(1))
    net.register_forward_hook(lambda *_: order.append(0), prepend=True)
    net(tg.ones(1))
    assert order == [0, 1]


def test_always_call_hook_runs_after_an_error():
    seen = []

    class Fails(nn.Module):
        def forward(self, input):
            raise ValueError("from forward")

    net = Fails()
    net.register_forward_hook(lambda module, args, output: seen.append(output), always_call=True)
    net.register_forward_hook(lambda module, args, output: seen.append("never"))
    with pytest.raises(ValueError, match="from forward"):
        net(1)
    assert seen == [None]
    net.register_forward_hook(lambda *_: 1 / 0, always_call=True)
    with pytest.warns(UserWarning, match="silenced"), pytest.raises(ValueError, match="from forward"):
        net(1)


def test_tables_can_be_edited_directly():
    net = Pair()
    net._forward_hooks[0] = lambda module, args, output: 7
    assert net(tg.ones(1)) == 7
    net._forward_hooks.clear()
    assert float(net(tg.ones(1))) == 2
    net._forward_hooks = {1: lambda module, args, output: 8}
    assert net(tg.ones(1)) == 8


def answer(module, args, output):
    return 9


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_keep_hooks(duplicate):
    net = nn.ReLU()
    net.register_forward_hook(answer)
    twin = duplicate(net)
    net._forward_hooks.clear()
    assert twin(tg.ones(1)) == 9 and float(net(tg.ones(1))) == 1


def test_global_hooks_run_before_a_modules_own():
    order = []
    net = Pair()
    net.register_forward_hook(lambda *_: order.append("own"))
    with hooks.register_module_forward_hook(lambda *_: order.append("global")):
        with hooks.register_module_forward_pre_hook(lambda *_: order.append("pre")):
            net(tg.ones(1))
    net(tg.ones(1))
    assert order == ["pre", "global", "own", "own"]


def test_full_backward_hook_gets_gradients_in_order_of_arguments():
    seen = []
    net = Pair()
    net.register_full_backward_hook(lambda module, gi, go: seen.append((gi, go)))
    a, b = tg.ones(2, requires_grad=True), tg.ones(2)
    net(a, b).sum().backward()
    ((grad_input, grad_output),) = seen
    assert grad_input[0].tolist() == [2, 2] and grad_input[1] is None
    assert grad_output[0].tolist() == [1, 1]


def test_backward_hooks_replace_gradients():
    net = Pair()
    net.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 10,))
    net.register_full_backward_hook(lambda module, gi, go: tuple(g + 1 for g in gi))
    a, b = (tg.ones(1, requires_grad=True) for _ in range(2))
    net(a, b).sum().backward()
    assert float(a.grad) == 21 and float(b.grad) == 11


def test_backward_hook_without_inputs_that_require_grad_warns_and_may_not_replace():
    layer = nn.Linear(2, 1)
    seen = []
    handle = layer.register_full_backward_hook(lambda module, gi, go: seen.append(gi))
    with pytest.warns(UserWarning, match="no inputs require grad"):
        layer(tg.ones(1, 2)).sum().backward()
    assert seen == [(None,)]
    handle.remove()
    layer.register_full_backward_hook(lambda module, gi, go: (tg.ones(1, 2),))
    with pytest.warns(UserWarning), pytest.raises(RuntimeError, match="should always return None"):
        layer(tg.ones(1, 2)).sum().backward()


def test_backward_hook_with_the_wrong_number_of_gradients_raises():
    net = Pair()
    net.register_full_backward_hook(lambda module, gi, go: (None, None))
    with pytest.raises(RuntimeError, match="got 2, but expected 1"):
        net(tg.ones(1, requires_grad=True)).sum().backward()


def test_backward_hook_on_an_output_that_holds_no_tensors_warns():
    class Dict(nn.Module):
        def forward(self, input):
            return {"x": input}

    net = Dict()
    net.register_full_backward_hook(lambda *_: None)
    with pytest.warns(UserWarning, match="should be a Tensor or a tuple"):
        net(tg.ones(1, requires_grad=True))


def test_both_kinds_of_backward_hook_do_not_mix():
    net = Pair()
    net.register_backward_hook(lambda *_: None)
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks"):
        net.register_full_backward_hook(lambda *_: None)


def test_the_older_backward_hook_sees_the_last_op():
    seen = []
    net = Pair()
    net.register_backward_hook(lambda module, gi, go: seen.append(go[0].tolist()))
    with pytest.warns(FutureWarning, match="multiple autograd Nodes"):
        net(tg.ones(1, requires_grad=True)).sum().backward()
    assert seen == [[1]]


def test_registration_hooks_see_every_part():
    seen = []
    with registration.register_module_parameter_registration_hook(lambda m, name, p: seen.append(name)):
        with registration.register_module_module_registration_hook(lambda m, name, p: seen.append(name)):
            with registration.register_module_buffer_registration_hook(lambda m, name, p: seen.append(name)):
                nn.Sequential(nn.BatchNorm1d(1))
    assert seen == ["weight", "bias", "running_mean", "running_var", "num_batches_tracked", "0"]


def test_a_handle_does_not_keep_the_module_and_pickles():
    net = Pair()
    handle = net.register_forward_hook(answer)
    del net
    handle.remove()
    pickle.loads(pickle.dumps(handle)).remove()


def test_a_table_of_all_modules_is_put_back_with_what_it_held():
    import tinygrad_ext.nn.modules.module as place

    calls, layer = [], nn.Identity()
    handle = nn.modules.module.register_module_forward_pre_hook(lambda *_: calls.append(1))
    try:
        before = place._global_forward_pre_hooks
        place._global_forward_pre_hooks = {}
        layer(tg.ones(1))
        assert not calls
        place._global_forward_pre_hooks = before
        layer(tg.ones(1))
        assert calls == [1]
    finally:
        handle.remove()


@pytest.mark.parametrize(
    "register", ["forward_pre_hook", "forward_hook", "full_backward_pre_hook", "full_backward_hook"]
)
def test_hooks_of_a_module_that_pytorch_saved_are_called(register):
    state = {**nn.Linear(2, 2).__dict__, "_forward_hooks": OrderedDict(), "_forward_pre_hooks": OrderedDict()}
    for name in ("_live_hooks", "_backward_hooks", "_backward_pre_hooks", "_forward_hooks_with_kwargs"):
        del state[name]
    layer = nn.Linear.__new__(nn.Linear)
    layer.__setstate__({**state, "_forward_hooks": OrderedDict({3: lambda *_: calls.append("saved")})})
    calls, x = [], tg.ones(1, 2, requires_grad=True)
    layer(x)
    assert calls == ["saved"]
    getattr(layer, f"register_{register}")(lambda *_: calls.append("later"))
    layer(x).sum().backward()
    assert sorted(calls) == ["later", "saved", "saved"]
    layer._forward_hooks.clear()
    layer(x).sum().backward()
    assert len(calls) == (3 if register == "forward_hook" else 4)
