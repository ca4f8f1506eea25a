"""A traced program is saved and loaded as one file that needs none of its Python."""

import subprocess
import sys
import textwrap

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


def model():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 3))


def test_a_loaded_module_gives_the_same_bits_for_other_sizes(tmp_path):
    net = model().eval()
    jit.trace(net, tg.randn(2, 1, 8, 8)).save(tmp_path / "net.tgx")
    loaded = jit.load(tmp_path / "net.tgx")
    assert [n for n, _ in loaded.named_parameters()] == [n for n, _ in net.named_parameters()]
    for batch in (1, 2, 5):
        x = tg.randn(batch, 1, 8, 8)
        assert loaded(x).equal(net(x))
    loaded.load_state_dict({k: v + 1 if v.is_floating_point() else v for k, v in loaded.state_dict().items()})
    assert not loaded(x).equal(net(x))
    assert str(loaded.forward.schema) == "forward(__torch__.Sequential self, Tensor input) -> Tensor"


def test_gradients_of_a_loaded_module(tmp_path):
    net = nn.Linear(3, 2)
    jit.save(jit.trace(net, tg.randn(2, 3)), tmp_path / "net.tgx")
    loaded = jit.load(tmp_path / "net.tgx")
    x = tg.randn(4, 3)
    loaded(x).pow(2).sum().backward()
    net(x).pow(2).sum().backward()
    assert all(p.grad.equal(q.grad) for p, q in zip(loaded.parameters(), net.parameters()))


def test_structures_methods_and_extra_files(tmp_path):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(tg.ones(1))

        def forward(self, x, n):
            return {"y": x * n, "parts": (x, [self.scale])}

        def halved(self, x):
            return x / 2

    traced = jit.trace_module(Two(), {"forward": (tg.ones(2), 3), "halved": tg.ones(2)})
    jit.save(traced, tmp_path / "two.tgx", {"note.txt": "hello"})
    extra = {"note.txt": ""}
    loaded = jit.load(tmp_path / "two.tgx", _extra_files=extra)
    out = loaded(tg.ones(2), n=5)
    assert out["y"].tolist() == [5, 5] and out["parts"][1][0].tolist() == [1]
    assert loaded.halved(tg.ones(2)).tolist() == [0.5, 0.5] and extra["note.txt"] == b"hello"
    with pytest.raises(TypeError, match=r"forward\(\) takes x, n, but 1 were given"):
        loaded(tg.ones(2))


def test_a_program_is_loaded_where_its_class_is_not(tmp_path):
    net = model().eval()
    x = tg.randn(3, 1, 8, 8)
    jit.trace(net, x).save(tmp_path / "net.tgx")
    tg.save({"x": x, "y": net(x)}, tmp_path / "wanted.safetensors")
    code = f"""
        import tinygrad_ext as tg
        loaded = tg.jit.load({str(tmp_path / "net.tgx")!r})
        wanted = tg.load({str(tmp_path / "wanted.safetensors")!r})
        assert loaded(wanted["x"]).equal(wanted["y"])
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=60)


def test_a_guard_that_fails_without_python_names_the_line(tmp_path):
    traced = jit.trace(lambda x: x * 2 if x.shape[0] > 2 else x, (tg.ones(3),))
    jit.save(traced, tmp_path / "f.tgx")
    loaded = jit.load(tmp_path / "f.tgx")
    assert loaded(tg.ones(5)).tolist() == [2] * 5
    with pytest.raises(RuntimeError, match=r"captured with True, not False, where .*test_saving_traces.py:\d+"):
        loaded(tg.ones(1))


def test_what_is_no_program_is_refused(tmp_path):
    with pytest.raises(AttributeError, match="'Linear' object is no compiled program"):  # as in PyTorch
        jit.save(nn.Linear(1, 1), tmp_path / "x")


def test_a_whole_training_step_is_saved_and_goes_on(tmp_path):
    def made():
        tg.manual_seed(0)
        net = nn.Linear(3, 1)
        optim = tg.optim.Adam(net.parameters(), lr=0.1)

        def step(x):
            optim.zero_grad()
            loss = net(x).pow(2).mean()
            loss.backward()
            optim.step()
            return loss

        return net, step

    net, step = made()
    twin, twin_step = made()
    x = tg.randn(4, 3)
    traced = jit.trace(twin_step, (x,))
    for _ in range(3):
        step(x), traced(x)
    jit.save(traced, tmp_path / "step.tgx")
    loaded = jit.load(tmp_path / "step.tgx")
    for _ in range(5):
        assert loaded(x).equal(step(x))
    assert dict(loaded.named_parameters())["net.weight"].equal(net.weight)
