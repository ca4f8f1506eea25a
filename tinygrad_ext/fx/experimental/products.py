"""Layers, products and views as `make_fx` tells them: by the few ops that programs which read such graphs look for.

Each function gets how a call is written down, the arguments of a node and their examples; it gives what stands for the
node, None to keep it.
"""

import math

import tinygrad_ext as tg
from tinygrad_ext.graph.signature import signature_of

_aten = tg.ops.aten


def _linear(call, args, examples):
    input, weight, bias = args
    x, w, b = examples
    if w.dim() != 2 or x.dim() < 2 or (b is not None and b.dim() != 1):
        return None
    turned = call(_aten.t.default, (weight,))
    flat = _aten.view if x.is_contiguous() else _aten.reshape
    rows = input if x.dim() == 2 else call(flat.default, (input, [math.prod(x.shape[:-1]), x.shape[-1]]))
    made = call(_aten.mm.default, (rows, turned)) if b is None else call(_aten.addmm.default, (bias, rows, turned))
    return made if x.dim() == 2 else call(_aten.view.default, (made, [*x.shape[:-1], w.shape[0]]))


_PRODUCTS = {(1, 1): _aten.dot, (2, 1): _aten.mv, (2, 2): _aten.mm, (3, 3): _aten.bmm}


def _matmul(call, args, examples):
    x, y = examples
    packet = _PRODUCTS.get((x.dim(), y.dim()))
    if packet is None or (x.dim() == 3 and x.shape[0] != y.shape[0]):
        return None
    return call(packet.default, tuple(args))


def _convolution(call, args, examples):
    input, weight, bias, *numbers, groups = args
    dims = examples[1].dim() - 2
    if examples[0].dim() != dims + 2:
        return None  # of one sample
    rows = [list(n) if isinstance(n, (tuple, list)) else [n] for n in numbers]
    stride, padding, dilation = [row * dims if len(row) == 1 else row for row in rows]
    rest = (stride, padding, dilation, False, [0] * dims, groups)
    return call(_aten.convolution.default, (input, weight, bias, *rest))


def _reshape(call, args, examples):
    size = args[1]
    if not examples[0].is_contiguous() or isinstance(size, int):
        return None
    known = math.prod(n for n in size if n != -1)
    if -1 in size and not known:
        return None
    return call(_aten.view.default, (args[0], [examples[0].numel() // known if n == -1 else n for n in size]))


def _flatten(call, args, examples):
    input, start, end = args
    shape, rank = examples[0].shape, examples[0].dim()
    if rank < 2 or start % rank == end % rank or not examples[0].is_contiguous():
        return None
    start, end = start % rank, end % rank
    size = [*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :]]
    return call(_aten.view.default, (input, size))


SIMPLER = {
    "aten::reshape": _reshape,
    "aten::flatten.using_ints": _flatten,
    "aten::linear": _linear,
    "aten::matmul": _matmul,
    "aten::conv1d": _convolution,
    "aten::conv2d": _convolution,
}

_TOLD_BY = ("t", "addmm", "mm", "bmm", "mv", "dot", "convolution")


def through(functions):
    """A table of functions by the names of ops, with layers and products by what it has for the ops that tell them.

    functions: name of an op -> function, as `functions_of` gives it. An entry of the table for a layer goes before.
    """
    if not any(f"aten::{name}" in functions for name in _TOLD_BY):
        return functions

    def call(op, args):
        return functions.get(f"aten::{op.name().partition('::')[2]}", op)(*args)

    def standing_for(name, simpler):
        op = signature_of(name).op
        packet, _, overload = name.partition("::")[2].partition(".")
        plain = getattr(getattr(_aten, packet), overload or "default")

        def run(*given):
            args = [*given, *(a.default for a in op.schema.args[len(given) :])]
            made = simpler(call, args, args)
            return plain(*args) if made is None else made

        return run

    return {**{name: standing_for(name, simpler) for name, simpler in SIMPLER.items()}, **functions}
