"""NormalizeArgs of functions with several overloads: what nodes do not tell stays as it is."""

import pytest

import tinygrad_ext as tg
from tinygrad_ext.fx.experimental.normalize import NormalizeArgs

C = tg.tensor([[True, False], [False, True]])
CALLS = {
    "least along a dimension": lambda x: tg.min(x, 1)[0],
    "deviation along a dimension": lambda x: tg.std(x, 0),
    "variance and mean": lambda x: tg.var_mean(x, 1)[0],
    "choice": lambda x: tg.where(C, x, x * 2.0),
    "number scattered": lambda x: x.scatter(0, C.long(), 5.0),
    "search": lambda x: tg.searchsorted(x, x),
    "operands one by one": lambda x: tg.einsum("ij,jk->ik", x, x),
    "list": lambda x: tg.cat([x, x], 1),
    "one overload": lambda x: tg.addmm(x, x, x, beta=2),
}


@pytest.mark.parametrize("name", CALLS)
def test_it_computes_what_it_did(name):
    f, x = CALLS[name], tg.tensor([[1.0, 3.0], [2.0, 5.0]])
    made = NormalizeArgs(tg.fx.symbolic_trace(f)).transform()
    assert tg.equal(made(x), f(x))
    if name in ("list", "one overload"):
        assert not any(n.args for n in made.graph.nodes if n.op == "call_function")
