"""Conditions on attributes of modules narrow them, as those on names do."""

import io

import pytest

import tinygrad_ext as tg
from tinygrad_ext import jit, nn


class Kept(nn.Module):
    h: tg.Tensor | None

    def __init__(self, h=None):
        super().__init__()
        self.h = h
        self.n: int | str = 3

    def forward(self, x):
        if self.h is not None and self.h.sum() > 0:
            x = self.h + x
        elif self.h is None:
            self.h = x
            return x * self.h
        assert self.h is not None
        self.h = self.h + 1
        return x + self.h.sum()

    @jit.export
    def early(self, x):
        if self.h is None:
            return x
        y = self.h * x
        for _ in range(2):
            y = y + self.h
        if isinstance(self.n, int):
            y = y + self.n
        return y

    @jit.export
    def turns(self, x):
        k = 0
        while self.h is not None and k < 3:
            x = x + self.h
            k += 1
        return x

    @jit.export
    def ternary(self, x):
        return x if self.h is None else self.h * x


@pytest.mark.parametrize("start", [None, 2.0])
def test_an_attribute_is_narrowed_by_conditions(start):
    made = [Kept(None if start is None else tg.full((3,), start)) for _ in range(2)]
    scripted, plain = jit.script(made[0]), made[1]
    x = tg.ones(3)
    for name in ("early", "turns", "ternary", "forward", "forward", "early", "turns", "ternary"):
        assert getattr(scripted, name)(x).equal(getattr(plain, name)(x)), name
    file = io.BytesIO()
    jit.save(scripted, file)
    file.seek(0)
    assert jit.load(file).early(x).equal(plain.early(x))


def test_reading_narrows_without_writing_the_attribute():
    graph = jit.script(Kept()).early.graph
    assert all(state.new is state.value for state in graph.state) and not graph.effects


def test_what_is_set_is_not_what_was_asked():
    class Emptied(Kept):
        def forward(self, x):
            if self.h is not None:
                self.h = None
                return self.h + x
            return x

    with pytest.raises(jit.Error, match="NoneType"):
        jit.script(Emptied())

    class Joined(Kept):
        def forward(self, x):
            if x.sum() > 0:
                assert self.h is not None
            return self.h + x

    with pytest.raises(jit.Error, match="Optional"):
        jit.script(Joined())


class Forgets(nn.Module):
    h: tg.Tensor | None

    def __init__(self, h):
        super().__init__()
        self.h = h

    def forward(self, x):
        found = x * 7 if self.h is None else x + self.h
        if self.h is not None:
            self.h = None
        elif x.sum() > 0:
            self.h = x
        return found

    @jit.export
    def reset(self):
        self.h = None


@pytest.mark.parametrize("start", [None, tg.tensor([2.0])], ids=["nothing", "a tensor"])
def test_an_optional_tensor_may_go_and_come_whatever_it_was_when_compiled(start):
    eager, scripted = Forgets(start), jit.script(Forgets(start))
    file = io.BytesIO()
    jit.save(scripted, file)
    file.seek(0)
    for module in (scripted, jit.load(file)):
        eager.h = start
        for x in (tg.ones(1), -tg.ones(1), tg.ones(1), tg.ones(1)):
            assert module(x).equal(eager(x))
            assert (module.h is None) == (eager.h is None)
        module.h = tg.zeros(1)
        assert module(tg.ones(1)).item() == 1
        module.reset()
        assert module(-tg.ones(1)).item() == -7


class Buffered(nn.Module):
    h: tg.Tensor | None

    def __init__(self, h):
        super().__init__()
        self.register_buffer("h", h)

    def forward(self, x):
        found = x * 7 if self.h is None else x + self.h
        self.h = None if bool(x.sum() < 0) else x
        return found


@pytest.mark.parametrize("start", [None, tg.tensor([2.0])], ids=["nothing", "a tensor"])
def test_an_optional_buffer_may_go_and_come(start):
    eager, scripted = Buffered(start), jit.script(Buffered(start))
    for x in (tg.ones(1), -tg.ones(1), tg.ones(1), tg.ones(1)):
        assert scripted(x).equal(eager(x))
        assert list(scripted.state_dict()) == list(eager.state_dict())
