"""torch._decomp: which functions stand for ops. The table is that of `export.default_decompositions`."""

from tinygrad_ext.export import default_decompositions as _default
from tinygrad_ext.graph.decompose import functions_of as _functions_of

decomposition_table = {}  # what register_decomposition was given


def register_decomposition(aten_op, registry=None, *, type="post_autograd", unsafe=False):
    """A decorator that enters a function for an op, or several, into `registry`, or into the table here."""

    def enter(function):
        table = decomposition_table if registry is None else registry
        table.update(dict.fromkeys(aten_op if isinstance(aten_op, (list, tuple)) else [aten_op], function))
        return function

    return enter


def get_decompositions(aten_ops, type="post_autograd"):
    """A dict of those of the ops that a function is known for; a packet stands for all of its overloads."""
    found = {**_default(), **decomposition_table}
    wanted = set(_functions_of(dict.fromkeys(aten_ops, len)))
    return {op: function for op, function in found.items() if wanted & set(_functions_of({op: function}))}


def core_aten_decompositions():
    """All that a function is known for."""
    return {**_default(), **decomposition_table}
