"""Transforms, traces, scripts and archives of programs with conjugate views give what eager gives."""

import io

import numpy as np
import pytest

import tinygrad_ext as tg


def numbers(*shape, of=tg):
    """Complex numbers whose products and sums are exact."""
    n = int(np.prod(shape))
    data = [complex(k % 7 - 3, k % 5 - 1) for k in range(n)]
    return of.tensor(data, dtype=of.complex64).reshape(shape)


def _resolved_apart(a):
    a = a * 1
    y = a.conj()
    z = y.resolve_conj()
    z.mul_(3)
    return a, y, z


def _written(a):
    a = a * 1
    y = a.conj()
    y[0] = 5j
    y.imag.add_(1.0)
    a.mul_(2)
    return a, y, y.imag


def _asked(a):
    a = a * 1
    y = a.conj()
    (y.clone() if y.is_conj() and not y.imag.is_conj() and y.imag.is_neg() else y).mul_(3)
    return a, y


PROGRAMS = {
    "asked": _asked,
    "conj": lambda a: a.conj() * 2,
    "product": lambda a: a.unsqueeze(0).mH @ a.unsqueeze(0),
    "resolved": _resolved_apart,
    "written": _written,
}


def _values(result):
    return [t.tolist() for t in (result if isinstance(result, tuple) else (result,))]


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("view", [False, True])
def test_graphs_and_transforms_give_what_eager_gives(name, view):
    f, x = PROGRAMS[name], numbers(3)
    given = x.conj_physical().conj() if view else x
    want = _values(f(x))
    traced = tg.jit.trace(f, (x,))
    assert _values(traced(given)) == want and _values(traced(given)) == want
    assert _values(tg.jit.trace(f, (given,))(x)) == want
    assert [row[0] for row in _values(tg.func.vmap(f)(given.unsqueeze(0)))] == want
    values, tangents = tg.func.jvp(f, (given,), (given,))
    assert _values(values) == want and len(_values(tangents)) == len(want)


@pytest.mark.parametrize("f", [_written, _resolved_apart])
def test_scripts_follow_writes_to_views(f):
    assert _values(tg.jit.script(f)(numbers(3))) == _values(f(numbers(3)))


def test_a_graph_writes_through_to_its_argument_that_is_a_view():
    def f(a):
        a.conj().mul_(2j)
        return a + 1

    for given in (numbers(3), numbers(3).conj()):
        mine, other = given.conj_physical().conj() if given.is_conj() else given.clone(), given.clone()
        traced = tg.jit.trace(f, (given.clone(),))
        assert traced(mine).tolist() == f(other).tolist() and mine.tolist() == other.tolist()


def test_archives_of_graphs_hold_a_copy(tmp_path):
    traced = tg.jit.trace(lambda a: a.conj() * 2, (numbers(3),))
    buffer = io.BytesIO()
    tg.jit.save(traced, buffer)
    buffer.seek(0)
    loaded = tg.jit.load(buffer)
    assert loaded(numbers(3).conj()).tolist() == (numbers(3) * 2).tolist()
    assert "conj_physical" in str(traced.graph) and "_conj(" not in str(traced.graph).replace("conj_physical(", "")
