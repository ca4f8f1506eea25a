"""`compile(backend=function)`, `Module.compile`: what a function gets to compile, and what calls then do."""

import copy
import gc
import importlib.util
import pickle
import weakref

import pytest

import tinygrad_ext as tg
from tinygrad_ext import fx, nn
from tinygrad_ext.jit import compiling

HAVE_TORCH = importlib.util.find_spec("torch") is not None


class Recording:
    """A backend that keeps what it is given."""

    def __init__(self):
        self.modules, self.inputs = [], []

    def __call__(self, gm, example_inputs):
        self.modules.append(gm)
        self.inputs.append(example_inputs)
        return gm.forward


def test_a_function_gets_a_graph_module_and_the_tensors_that_it_takes():
    backend = Recording()

    @tg.compile(backend=backend)
    def f(x, pair, n=2):
        return {"s": (x * n + pair[0]).sum(), "t": (x, x.shape[0], pair[1])}

    x, y = tg.ones(3), tg.full((3,), 2.0)
    for _ in range(2):
        found = f(x, (y, "word"))
        assert found["s"] == 12 and found["t"][0] is x and found["t"][1:] == (3, "word")
    assert len(backend.modules) == 1 and all(a is b for a, b in zip(backend.inputs[0], (x, y), strict=True))
    assert isinstance(backend.modules[0], fx.GraphModule) and "aten.mul.Tensor" in backend.modules[0].code
    assert f(x, (y, "word"), n=3)["s"] == 15 and f(tg.ones(4), (tg.ones(4), "word"))["s"] == 12
    assert len(backend.modules) == 3 and "3 graphs" in f.explain()


@pytest.mark.skipif(not HAVE_TORCH, reason="compares with PyTorch")
def test_what_a_backend_does_counts_as_in_pytorch():
    import torch

    found = []
    for T in (tg, torch):

        def backend(gm, inputs):
            return lambda *args: [a * 10 for a in gm(*args)]

        f = T.compile(lambda x: (x + 1, x.sum()), backend=backend)
        found.append([t.tolist() for t in f(T.ones(2))])
        for bad in ("no such backend", lambda gm, inputs: 1 / 0):
            with pytest.raises(RuntimeError) as error:
                T.compile(lambda x: x + 1, backend=bad)(T.ones(2))
            found.append(type(error.value).__name__ if callable(bad) else "nobody knows it")
    assert found[:3] == found[3:] == [[[20.0, 20.0], 20.0], "nobody knows it", "BackendCompilerFailed"]


def test_modules_keep_state_mode_and_gradients():
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
    twin, backend = copy.deepcopy(net), Recording()
    compiled = tg.compile(net, backend=backend, fullgraph=True)
    for mode in (True, False, True):
        net.train(mode)
        twin.train(mode)
        x = tg.randn(4, 3)
        results = []
        for run in (compiled, twin):
            tg.manual_seed(5)
            results.append(run(x))
            results[-1].square().sum().backward()
        assert results[0].equal(results[1])
    assert all(a.grad.equal(b.grad) for a, b in zip(net.parameters(), twin.parameters()))
    assert all(a.equal(b) for a, b in zip(net.state_dict().values(), twin.state_dict().values()))
    assert len(backend.modules) == 2 and net[0].weight in backend.inputs[0][:1]
    net[0].weight = nn.Parameter(tg.zeros(3, 3))
    net.eval()
    assert compiled(x).equal(net(x))


def test_what_is_written_to_is_written_to():
    held, backend = tg.zeros(3), Recording()

    def f(x):
        held.add_(x)
        x.mul_(2)
        return x, held

    x = tg.ones(3)
    found = tg.compile(f, backend=backend, fullgraph=True)(x)
    assert found[0] is x and found[1] is held and x.tolist() == [2] * 3 and held.tolist() == [1] * 3
    weight = tg.full((3,), 2.0, requires_grad=True)
    compiled = tg.compile(lambda x: x.mul_(weight), backend=backend)
    compiled(tg.ones(3)).sum().backward()
    assert weight.grad.tolist() == [1] * 3 and "a graph would lose that" in compiled.explain()


def test_a_step_of_training_is_one_graph():
    net, backend = nn.Linear(2, 1), Recording()
    twin = copy.deepcopy(net)
    losses = []
    for model, wrap in ((net, lambda f: tg.compile(f, backend=backend, fullgraph=True)), (twin, lambda f: f)):
        optimizer = tg.optim.SGD(model.parameters(), lr=0.1)

        def step(x, model=model, optimizer=optimizer):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            return loss

        run = wrap(step)
        losses.append([run(tg.ones(3, 2)).item() for _ in range(3)])
    assert losses[0] == losses[1] and net.weight.equal(twin.weight) and len(backend.modules) <= 2


def test_what_cannot_be_captured_runs_as_it_was_written():
    backend = Recording()
    f = lambda x: x * 2 if x.sum() > 0 else -x
    compiled = tg.compile(f, backend=backend)
    assert compiled(tg.ones(2)).equal(tg.full((2,), 2.0)) and compiled(-tg.ones(2)).equal(tg.ones(2))
    assert not backend.modules and "reads the elements" in compiled.explain()
    with pytest.raises(RuntimeError, match="reads the elements"):
        tg.compile(f, backend=backend, fullgraph=True)(tg.ones(2))


def test_backends_by_name():
    calls = []

    @compiling.register_backend(name="recorded")
    def recorded(gm, inputs, options=None):
        calls.append(options)
        return gm

    try:
        assert "recorded" in compiling.list_backends()
        assert tg.compile(lambda x: x + 1, backend="recorded", options={"a": 1})(tg.ones(1)) == 2
        assert calls == [{"a": 1}]
    finally:
        compiling._backends.pop("recorded")
    with pytest.raises(RuntimeError, match="Invalid backend: 'recorded'"):
        tg.compile(lambda x: x, backend="recorded")
    with pytest.raises(TypeError, match="must be a name or a function, not int"):
        tg.compile(lambda x: x, backend=3)
    with pytest.raises(compiling.BackendCompilerFailed, match="gave NoneType; it must return a function"):
        tg.compile(lambda x: x + 1, backend=lambda gm, inputs: None)(tg.ones(1))


# ---- Module.compile ------------------------------------------------------------------------------------------------


def test_a_module_is_compiled_in_place():
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    twin, x = copy.deepcopy(net), tg.randn(4, 3)
    assert net.compile(fullgraph=True) is None
    assert (
        net(x).equal(twin(x))
        and "1 graph" in net.forward.explain()
        and list(net.state_dict()) == list(twin.state_dict())
    )
    net.register_forward_hook(lambda module, args, result: result * 2)
    assert net(x).equal(twin(x) * 2)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(twin)), tg.jit.trace(net, x)):
        assert other(x).shape == (4, 3) and not isinstance(vars(other).get("forward"), compiling.CompiledForward)
    backend = Recording()
    net.compile(backend=backend)
    assert net(x).equal(twin(x) * 2) and len(backend.modules) == 1
    net.compile(disable=True)
    assert "forward" not in vars(net) and net(x).equal(twin(x) * 2)


def test_a_compiled_module_is_pickled_as_it_was_written():
    net = nn.Linear(3, 3)
    net.compile()
    x = tg.ones(2, 3)
    wanted = net(x)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert other(x).equal(wanted) and other.forward.__self__ is other
        other.weight.detach().zero_()
    assert net(x).equal(wanted)


def test_a_function_that_gives_too_few_results_is_told():
    def first(gm, example_inputs):
        return lambda *args: gm(*args)[:1]

    run = tg.compile(lambda x: (x + 1, x * 2), backend=first)
    with pytest.raises(IndexError, match="gave 1 of the 2 results of its graph: return what gm.forward returns"):
        run(tg.ones(2))


def test_a_compiled_program_keeps_no_batch():
    run, x = tg.compile(nn.Linear(4, 2), backend=lambda gm, example_inputs: gm.forward), tg.ones(3, 4)
    run(x)
    kept = weakref.ref(x)
    del x
    gc.collect()
    assert kept() is None


def test_an_equal_number_in_place_of_the_one_that_was_there_is_watched_too():
    held = {"v": float("2")}
    run = tg.compile(lambda x: x * held["v"])
    held["v"] = float("2.0")
    assert run(tg.ones(1)).item() == 2
    held["v"] = 7.0
    assert run(tg.ones(1)).item() == 7


def test_no_backend_is_that_of_the_library():
    assert tg.compile(lambda x: x + 1, backend=None, fullgraph=True)(tg.ones(1)).item() == 2
    with pytest.raises(TypeError, match="argument 'backend' must be a name or a function, not int"):
        tg.compile(lambda x: x, backend=3)


@pytest.mark.parametrize("backend", [None, lambda module, inputs: module.forward])
def test_graphs_of_a_program_have_a_limit(monkeypatch, capsys, backend):
    monkeypatch.setattr(compiling, "MOST", 3)

    def program(x, word):
        print(word)
        return x * len(word)

    made = tg.compile(program, backend=backend)
    for i in range(3):
        assert made(tg.ones(1), "a" * i).item() == i
    with pytest.warns(UserWarning, match=r"compile\(\): program was captured 3 times, and calls of further kinds run"):
        assert made(tg.ones(1), "aaaa").item() == 4
    capsys.readouterr()
    assert made(tg.ones(1), "aaaaa").item() == 5 and capsys.readouterr().out == "aaaaa\n"
    assert made(tg.ones(1), "a").item() == 1 and not capsys.readouterr().out
    assert len(made.left) == 0
    whole = tg.compile(program, backend=backend, fullgraph=True)
    for i in range(3):
        whole(tg.ones(1), "a" * i)
    with pytest.raises(RuntimeError, match="program was captured 3 times"):
        whole(tg.ones(1), "aaaa")


def test_captures_that_fail_have_the_same_limit(monkeypatch):
    monkeypatch.setattr(compiling, "MOST", 3)
    made = tg.compile(lambda x, word: x if float(x) == len(word) else -x)
    for i in range(3):
        assert made(tg.ones(1), "a" * i).item() == (1 if i == 1 else -1)
    assert len(made.left) == 3
    with pytest.warns(UserWarning, match="was captured 3 times"):
        made(tg.ones(1), "aaaa")
    assert len(made.left) == 3 and made(tg.ones(1), "a").item() == 1
