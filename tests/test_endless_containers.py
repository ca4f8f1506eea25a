"""A list, tuple or dict that holds itself, or is nested deeper than any program's, is refused in words: what walks
through containers in C would else run out of the stack, and the process would end."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext import func, jit
from tinygrad_ext.utils import _pytree


def itself(kind):
    inner = [tg.ones(2)]
    made = {list: inner, tuple: (inner,), dict: {"a": inner}}[kind]
    inner.append(made)
    return made


def deep():
    made = tg.ones(2)
    for _ in range(100_000):
        made = [made]
    return made


TRACED = jit.trace(lambda xs: xs[0] + 1, ([tg.ones(2)],))
WALKS = {
    "tree_flatten": _pytree.tree_flatten,
    "tree_map": lambda a: _pytree.tree_map(lambda x: x, a),
    "vmap": func.vmap(lambda x: x),
    "grad": func.grad(lambda x: x[0].sum()),
    "jvp": lambda a: func.jvp(lambda x: x, (a,), (a,)),
    "vjp": lambda a: func.vjp(lambda x: x, a),
    "call of a trace": TRACED,
    "trace": lambda a: jit.trace(lambda x: x[0], (a,)),
    "compile": lambda a: tg.compile(lambda x: x[0])(a),
    "tensor": tg.tensor,
    "save": lambda a: tg.save(a, "unwritten"),
    "index": lambda a: tg.ones(3)[a],
}


@pytest.mark.parametrize("name", WALKS)
@pytest.mark.parametrize("kind", [list, tuple, dict, "deep"])
def test_what_walks_through_containers_comes_to_an_end(name, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((RecursionError, RuntimeError, ValueError, TypeError, IndexError)):
        WALKS[name](deep() if kind == "deep" else itself(kind))
