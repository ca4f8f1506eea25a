"""autograd.Function in script: one node with a block forward and one backward, so that the derivative is the user's."""

from tinygrad_ext.autograd.function import Function, FunctionMeta
from tinygrad_ext.graph.ir import Block, Value
from tinygrad_ext.graph.types import TENSOR

from .environment import Scope
from .expressions import KINDS
from .values import Method, Static, TupleValue, type_of


class FunctionClass(Static):
    """A subclass of autograd.Function."""

    kind = "an autograd.Function"

    def __init__(self, python, name):
        self.python = self.cls = python
        self.name = name

    def attribute(self, c, name):
        if name != "apply":
            c.fault(f"of {self.python.__name__}, only apply is called in script")
        return Method("apply", lambda c, args, kwargs: _apply(c, self.python, args, kwargs))


def _known(c, value, name):
    return FunctionClass(value, name) if issubclass(value, Function) else None


KINDS.insert(0, (FunctionMeta, _known))


class Context(Static):
    """ctx. saved: operands of save_for_backward; kept: attributes; needs: needs_input_grad."""

    kind = "ctx"
    _REFUSED = {
        "mark_dirty": "an in-place Function is not taken in script; compute a new tensor",
        "mark_non_differentiable": "all outputs of a Function in script have derivatives; detach() the result instead",
        "set_materialize_grads": "gradients are always tensors in script",
    }

    def __init__(self, needs, saved=(), kept=None):
        self.needs, self.saved, self.kept = needs, list(saved), dict(kept or {})

    def attribute(self, c, name):
        if name == "save_for_backward":
            return Method(name, self._save)
        if name in ("saved_tensors", "saved_variables"):
            return TupleValue(self.saved)
        if name == "needs_input_grad":
            return TupleValue(self.needs)
        if name in self._REFUSED:
            c.fault(f"ctx.{name}: {self._REFUSED[name]}")
        if name not in self.kept:
            c.fault(f"ctx has no attribute '{name}': forward did not set it")
        return self.kept[name]

    def _save(self, c, args, kwargs):
        self.saved = list(args)

    def set(self, c, name, operand):
        self.kept[name] = operand


def _apply(c, cls, args, kwargs):
    if kwargs:
        c.fault("apply() takes arguments by position only")
    if cls._legacy:
        c.fault(f"{cls.__name__} is written in the legacy style; make forward and backward static methods")
    args = [c.value(a) if isinstance(a, Static) and type_of(a) is not None else a for a in args]
    places = [i for i, a in enumerate(args) if isinstance(a, Value)]
    forward = Block([c.graph.value(args[i].type) for i in places])
    inside = list(args)
    for place, value in zip(places, forward.inputs):
        inside[place] = value
    needs = [type_of(a) is TENSOR for a in args]
    ctx = Context(needs)
    with c.inside(forward, Scope(), Scope()):
        results = _forward(c, cls, ctx, inside)
        outputs = [c.value(r) for r in results.values] if isinstance(results, TupleValue) else [c.value(results)]
    keep = _kept(ctx)
    forward.outputs = [*outputs, *keep]
    backward = _backward(c, cls, ctx, keep, outputs, places)
    row = (cls.__name__, *[args[i] for i in places])
    node = c.node("prim::Function", row, [type_of(o) for o in outputs], [forward, backward])
    return TupleValue(node.outputs) if isinstance(results, TupleValue) else node.output


def _forward(c, cls, ctx, inside):
    if cls.setup_context is Function.setup_context:
        return c.inline(cls.forward, [], {}, (ctx, *inside))
    results = c.inline(cls.forward, [], {}, tuple(inside))
    c.inline(cls.setup_context, [], {}, (ctx, TupleValue(inside), results))
    return results


def _kept(ctx):
    """Values that backward gets from forward."""
    found = {}
    for operand in (*ctx.saved, *ctx.kept.values()):
        for value in operand.values if isinstance(operand, TupleValue) else [operand]:
            if isinstance(value, Value):
                found[id(value)] = value
    return list(found.values())


def _backward(c, cls, ctx, keep, outputs, places):
    function = cls.vjp if cls.backward is Function.backward else cls.backward
    grads = [c.graph.value(TENSOR) for _ in outputs]
    again = {id(v): c.graph.value(v.type) for v in keep}
    block = Block([*grads, *again.values()])

    def moved(operand):
        if isinstance(operand, TupleValue):
            return TupleValue([moved(v) for v in operand.values], operand.names)
        return again.get(id(operand), operand)

    inner = Context(ctx.needs, map(moved, ctx.saved), {n: moved(o) for n, o in ctx.kept.items()})
    with c.inside(block, Scope(), Scope()):
        found = c.inline(function, [], {}, (inner, *grads))
        found = c.unpacked(found, None) if _is_tuple(found) else [found]
        if len(found) < len(ctx.needs):
            c.fault(
                f"backward of {cls.__name__} gives {len(found)} gradients for {len(ctx.needs)} arguments of forward"
            )
        block.outputs = [c.value(found[i]) for i in places]
    return block


def _is_tuple(operand):
    type = type_of(operand)
    return isinstance(operand, TupleValue) or (type is not None and type.word == "Tuple")
