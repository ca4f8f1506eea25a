"""Programs captured for tests: a function's graph, and whether what it returns is what eager mode returns, bit for
bit."""

import tinygrad_ext as tg
from tinygrad_ext.graph.capture import capture
from tinygrad_ext.graph.interpret import run


def mapped(function, tree):
    """The tree with function(tensor) in the place of each tensor."""
    if isinstance(tree, tg.Tensor):
        return function(tree)
    if isinstance(tree, tuple) and hasattr(tree, "_make"):
        return tree._make(mapped(function, part) for part in tree)
    if isinstance(tree, (tuple, list)):
        return type(tree)(mapped(function, part) for part in tree)
    if isinstance(tree, dict):
        return {key: mapped(function, value) for key, value in tree.items()}
    return tree


def leaves(tree):
    found = []
    mapped(found.append, tree)
    return found


def captured(function, *args):
    """The graph of function(*args)."""
    return capture(function)(*args)


def states(graph):
    """What a graph's states are where it only draws random numbers."""
    assert all(s.kind == "generator" for s in graph.state)
    return [tg.default_generator] * len(graph.state)


def evaluated(graph, *args):
    (result,), _ = run(graph, args, states(graph))
    return result


def same_bits(a, b):
    """Whether two results are equal in structure, dtypes, shapes and bits, any NaN being one."""
    mine, others = leaves(a), leaves(b)
    if not mine and not others:
        return str(a) == str(b)
    return len(mine) == len(others) and all(
        p.dtype == q.dtype and p.shape == q.shape and _bytes(one_nan(p)) == _bytes(one_nan(q))
        for p, q in zip(mine, others)
    )


def one_nan(t):
    """A tensor whose NaNs are one and the same: which of two an operation passes on is the compiler's affair."""
    return t.detach().where(t == t, tg.tensor(float("nan"), dtype=t.dtype)) if t.is_floating_point() else t


def _bytes(t):
    t = t.detach().resolve_conj().resolve_neg().contiguous()
    as_whole = {tg.bfloat16: tg.int16, tg.complex32: tg.int32}.get(t.dtype, t.dtype)
    return t.view(as_whole).numpy().tobytes()
