"""Ops that do nothing, next to what makes it so."""

from ..ir import Value
from ..walks import walked
from .base import OwnPass, replace, shown

# dtypes that hold every number of a dtype exactly
_WIDER = {
    "bool": {"uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"},
    "uint8": {"int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"},
    "int8": {"int16", "int32", "int64", "float16", "bfloat16", "float32", "float64"},
    "int16": {"int32", "int64", "float32", "float64"},
    "int32": {"int64", "float64"},
    "float16": {"float32", "float64"},
    "bfloat16": {"float32", "float64"},
    "float32": {"float64"},
    "complex64": {"complex128"},
}


class Peepholes(OwnPass):
    """Leaves out what changes no bit: `x * 1`, `x - 0`, `x + -0.0`, two transpositions, a detour over a wider dtype.

    `x + 0` stays for floating dtypes: it makes +0.0 of -0.0. What needs a dtype looks at the value's hint, and a value
    without one is left alone. A copy that a result may show stays a copy.
    """

    def changes(self, graph):
        visible, mapping, changed = None, {}, False
        for node in walked(graph.block):
            rule = _RULES.get(node.op)
            if rule is None:
                continue
            args, found = node.args, rule(node, mapping)
            changed = changed or node.args is not args
            if found is None:
                continue
            if node.op not in _VIEWS:
                visible = shown(graph) if visible is None else visible
                if id(node.output) in visible:
                    continue
            mapping[node.output] = found
        replace(graph, mapping)
        return changed or bool(mapping)


def _dtype(a):
    """dtype of a value as it was seen, or None."""
    return getattr(getattr(a, "hint", None), "dtype", None) if isinstance(a, Value) else None


def _is(a, *numbers):
    return type(a) in (int, float) and any(a == n and str(float(a)) == str(float(n)) for n in numbers)


def _kept(node, value):
    """The value, where node gives its dtype and sizes."""
    seen, made = getattr(value, "hint", None), getattr(node.output, "hint", None)
    if seen is None or made is None or seen.dtype is not made.dtype or tuple(seen.shape) != tuple(made.shape):
        return None
    return value if not made.dtype.is_complex and made.dtype.name != "bool" else None


def _times(node, mapping):
    a, b = node.args
    return _kept(node, a) if _is(b, 1) else _kept(node, b) if _is(a, 1) else None


def _over(node, mapping):
    return _kept(node, node.args[0]) if _is(node.args[1], 1) else None


def _plus(node, mapping):
    a, b, alpha = node.args
    floating = getattr(_dtype(a), "is_floating_point", True)
    return _kept(node, a) if _is(alpha, 1) and (_is(b, -0.0) or (not floating and _is(b, 0))) else None


def _minus(node, mapping):
    a, b, alpha = node.args
    return _kept(node, a) if _is(alpha, 1) and _is(b, 0) else None


def _negated(node, mapping):
    (a,) = node.args
    return _kept(node, a.node.args[0]) if _made_by(a, "aten::neg") else None


def _turned(node, mapping):
    a = node.args[0]
    return a.node.args[0] if _made_by(a, node.op) and _same(node.args[1:], a.node.args[1:]) else None


def _made_by(a, op):
    return isinstance(a, Value) and a.node is not None and a.node.op == op


def _same(a, b):
    """Whether the two dimensions that are exchanged are the same ones, in either order."""
    return all(type(d) is int for d in (*a, *b)) and sorted(a) == sorted(b)


def _converted(node, mapping):
    """A conversion of what was converted from a dtype that the one between holds exactly: from there at once."""
    a = node.args[0]
    if not _made_by(a, "aten::_to_copy") or not (_plain(node) and _plain(a.node)):
        return None
    source = a.node.args[0]
    before, between, after = _dtype(source), a.node.args[1], node.args[1]
    if before is None or between is None or after is None or between.name not in _WIDER.get(before.name, ()):
        return None
    if before is after:
        return _kept(node, source)
    node.args = (source, *node.args[1:])
    return None


def _plain(node):
    return all(a in (None, False) for a in node.args[2:])


_RULES = {
    "aten::mul.Tensor": _times,
    "aten::div.Tensor": _over,
    "aten::add.Tensor": _plus,
    "aten::sub.Tensor": _minus,
    "aten::neg": _negated,
    "aten::t": _turned,
    "aten::transpose.int": _turned,
    "aten::_to_copy": _converted,
}
_VIEWS = {"aten::t", "aten::transpose.int"}
