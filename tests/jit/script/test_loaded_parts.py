"""A module that was loaded is a part of another one: compiled with it, trained with it, saved with it."""

import io

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.norm = nn.Linear(2, 3), nn.BatchNorm1d(3)
        self.calls, self._shift = 0, 3
        self.names = ["a"]

    def forward(self, x, scale: float = 2.0):
        self.calls += 1
        y = self.norm(self.inner(x)) * scale
        if float(y.abs().sum()) > 1000.0:
            y = y * 0
        return y.relu() + self._shift

    @jit.export
    def named(self, name: str) -> list[str]:
        self.names.append(name)
        return self.names


class Model(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder, self.head = encoder, nn.Linear(3, 1)

    def forward(self, x):
        y = self.encoder(x) + self.encoder(x, scale=0.5)
        return self.head(y), self.encoder.calls, self.encoder.named("z")


def loaded(module):
    file = io.BytesIO()
    jit.save(module, file)
    file.seek(0)
    return jit.load(file)


def told(module, x):
    module.zero_grad()
    out, calls, names = module(x)
    out.sum().backward()
    grads = {name: p.grad.tolist() for name, p in module.named_parameters()}
    return out.tolist(), calls, list(names), grads, {name: b.tolist() for name, b in module.named_buffers()}


def test_it_gives_what_its_source_gives():
    x = tg.randn(4, 2)
    source = jit.script(Model(jit.script(Encoder())))
    outer = Model(loaded(jit.script(Encoder())))
    outer.load_state_dict(source.state_dict())
    scripted = jit.script(outer)
    ways = source, scripted, loaded(scripted)
    for turn in (2, 4):
        expected, *others = [told(module, x) for module in ways]
        assert expected[1] == turn and others == [expected] * 2
    x = x * 1e6
    assert told(source, x) == told(scripted, x)


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda self, x: self.encoder(x, 1.0, 2), "too much"),
        (lambda self, x: self.encoder(scale=1.0), "missing value for argument 'x'"),
        (lambda self, x: self.encoder.other(x), "saved without a scripted method 'other'"),
    ],
)
def test_wrong_calls_are_refused_with_the_line(call, words):
    made = type("Wrong", (Model,), {"forward": call})
    with pytest.raises(jit.Error, match=f"(?s){words}.*HERE"):
        jit.script(made(loaded(jit.script(Encoder()))))
