"""fork, wait and Futures in script: the call runs at once, and gives what eager mode gives."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import Tensor, jit, nn
from tinygrad_ext.jit import Future


def double(x: Tensor, times: int = 2) -> Tensor:
    return x * times


def started(x: Tensor) -> Future[Tensor]:
    return jit.fork(double, x)


def pair(x: Tensor):
    return x + 1, x - 1


def one(x: Tensor) -> Tensor:
    later = jit.fork(double, x, times=3)
    return jit.wait(later) + x


def method(x: Tensor) -> Tensor:
    later: Future[Tensor] = tg.jit.fork(double, x)
    assert later.done()
    return later.wait() + later.value()


def listed(x: Tensor) -> Tensor:
    waiting: list[Future[Tensor]] = []
    for i in range(4):
        waiting.append(jit.fork(double, x, i))
    total = tg.zeros_like(x)
    for later in waiting:
        total = total + jit.wait(later)
    return total


def annotated(x: Tensor) -> Tensor:
    waiting = jit.annotate(list[Future[Tensor]], [])
    waiting += [jit.fork(double, x) for _ in range(2)]
    return tg.stack([jit.wait(later) for later in waiting]).sum(0)


def in_branches(x: Tensor) -> Tensor:
    if bool(x.sum() > 0):
        later = jit.fork(double, x)
    else:
        later = jit.fork(double, x, 5)
    return jit.wait(later)


def of_a_function(x: Tensor) -> Tensor:
    return jit.wait(started(x)) + started(x).wait()


def of_tuples(x: Tensor) -> Tensor:
    a, b = jit.wait(jit.fork(pair, x))
    return a * b


def maybe(x: Tensor) -> Tensor:
    later: Future[Tensor] | None = None
    if x.shape[0] > 1:
        later = jit.fork(double, x)
    return x if later is None else jit.wait(later)


def by_name(x: Tensor) -> Tensor:
    waiting: dict[str, Future[Tensor]] = {"a": jit.fork(double, x), "b": jit.fork(double, x, 3)}
    return waiting["a"].wait() - waiting["b"].wait()


def nested(x: Tensor) -> Tensor:
    return jit.wait(jit.fork(one, jit.wait(jit.fork(double, x))))


PROGRAMS = [one, method, listed, annotated, in_branches, of_a_function, of_tuples, maybe, by_name, nested]


def outcome(f, x):
    x = x.clone().requires_grad_()
    y = f(x)
    (g,) = tg.autograd.grad((y * y).sum(), x)
    return y.tolist(), g.tolist()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_script_gives_what_eager_mode_gives(program, tmp_path):
    scripted = jit.script(program)
    scripted.save(tmp_path / "forks.tg")
    loaded = jit.load(tmp_path / "forks.tg")
    for x in (tg.tensor([1.0, 2.0]), tg.tensor([-3.0, 0.5, 1.0])):
        assert outcome(scripted, x) == outcome(program, x) == outcome(loaded, x)


class Branches(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(3, 2), nn.Linear(3, 2)

    def side(self, x: Tensor) -> Tensor:
        return tg.tanh(self.right(x))

    def forward(self, x: Tensor) -> Tensor:
        left, right = jit.fork(self.left, x), jit.fork(self.side, x)
        return jit.wait(left) * jit.wait(right)


def test_modules_and_methods_are_forked(tmp_path):
    module, x = Branches(), tg.randn(4, 3)
    scripted = jit.script(module)
    scripted.save(tmp_path / "branches.tg")
    assert tg.equal(scripted(x), module(x))
    assert tg.equal(jit.load(tmp_path / "branches.tg")(x), module(x))


def test_what_is_drawn_is_drawn_at_the_fork():
    def program(x: Tensor) -> Tensor:
        later = jit.fork(tg.rand_like, x)
        drawn = tg.rand_like(x)
        return jit.wait(later) - drawn

    scripted = jit.script(program)
    tg.manual_seed(3)
    expected = program(tg.zeros(4))
    tg.manual_seed(3)
    assert tg.equal(scripted(tg.zeros(4)), expected)


def test_an_error_is_raised_at_the_fork():
    def fails(x: Tensor) -> Tensor:
        if x.shape[0] > 1:
            raise ValueError("too long")
        return x

    def program(x: Tensor) -> Tensor:
        later = jit.fork(fails, x)
        return jit.wait(later)

    with pytest.raises(Exception, match="too long"):
        jit.script(program)(tg.ones(2))


def test_a_future_does_not_leave_a_program():
    with pytest.raises(jit.Error, match="does not leave a compiled program"):
        jit.script(started)


def test_what_is_no_future_is_refused():
    def waits(x: Tensor) -> Tensor:
        return jit.wait(x)

    def forks(x: Tensor) -> Tensor:
        return jit.wait(jit.fork(x))

    def indexes(x: Tensor) -> Tensor:
        return jit.fork(double, x)[0]

    for program, told in ((waits, "takes one Future"), (forks, "takes a function"), (indexes, "no tuple")):
        with pytest.raises(jit.Error, match=told):
            jit.script(program)
