"""Forward mode of what is no op: calls of an autograd.Function, and custom ops with a jvp of their own.

A Function that has a setup_context gets a ctx for this pass alone. One whose forward takes the ctx is run by a subclass
that keeps the ctx, so its outputs have the history that they have without forward mode.
"""

from tinygrad_ext.core.data.tensor import Carried, Tensor
from tinygrad_ext.library.state import AUTOGRAD, JVP, states
from tinygrad_ext.registry import functions

from .nesting import bottoms
from .transposed import transposed


class Context:
    """What setup_context and jvp get as ctx."""

    def __init__(self, needs=(), tensors=(), ctx=None):
        self.needs_input_grad, self.saved_tensors, self.materialize = needs, tensors, True
        self.marked, self.dirty, self.ctx = (), (), ctx

    def __getattr__(self, name):
        if name == "ctx" or self.ctx is None:
            raise AttributeError(f"ctx has no attribute '{name}': set it in forward or setup_context")
        return getattr(self.ctx, name)

    def save_for_backward(self, *tensors):
        """Keep tensors, where nothing is kept for forward mode."""
        self.saved_tensors = self.saved_tensors or tensors

    def save_for_forward(self, *tensors):
        """Keep tensors for jvp, which reads them by either name."""
        self.saved_tensors = self.saved_for_forward = tensors

    def mark_dirty(self, *tensors):
        """Inputs that were written to."""
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors):
        """Outputs without a derivative."""
        self.marked = tensors

    def set_materialize_grads(self, value):
        """Whether jvp gets zeros or None for inputs without a tangent."""
        self.materialize = value


def function(level, operation, args):
    """The outputs of a Function with their tangents."""
    cls = operation.function
    tangents = [level.tangent(a) for a in args]
    primals = level.stripped(args)
    if all(t is None for t in tangents):
        return level.joined(operation(*primals), None, ())
    if cls._legacy:
        raise NotImplementedError(f"{operation.name}: a legacy Function has no forward mode; give it static methods")
    base = next(c for c in cls.__mro__ if c.__name__ == "Function" and c.__module__.endswith("autograd.function"))
    if cls.setup_context is not base.setup_context:
        result = operation(*primals)
        ctx = Context(tuple([isinstance(p, Tensor) and p.requires_grad for p in primals]))
        cls.setup_context(ctx, tuple(primals), result)
    else:
        ctx, result = _kept(cls, operation, primals)
    return _with_tangents(level, operation.name, cls.jvp, ctx, args, primals, tangents, result)


def _kept(cls, operation, primals):
    """(ctx, outputs) of a Function whose forward takes the ctx."""
    if any(type(b) is not type(p) or b is not p for p in primals for b in bottoms(p)):
        raise RuntimeError(
            "In order to use an autograd.Function with several function transforms (vmap, grad, jvp, ...) at once, it "
            f"must override the setup_context staticmethod: {operation.name} does not"
        )
    kept = []

    def forward(ctx, *args):
        result = cls.forward(ctx, *args)
        kept.append((ctx, *ctx.asked_in_forward()))
        return result

    result = type(cls.__name__, (cls,), {"forward": staticmethod(forward)}).apply(*primals)
    ctx, shared, dirty, marked, materialize = kept[0]
    found = Context((), shared, ctx)
    found.saved_for_forward = shared
    found.dirty, found.marked, found.materialize = dirty, marked, materialize
    return found, result


def custom(op, call, primals, tangents):
    """The results of a custom op and their tangents: by its jvp, else by the transpose of its backward."""
    state = states[op.name]
    derivative, backward = state.get(JVP), state.get(AUTOGRAD)
    if derivative is None and (backward is not None or op.record.grad):
        return transposed(op)(call, primals, tangents)
    result = call(*primals)
    if derivative is None:
        if state.made_here:
            raise NotImplementedError(
                f"Trying to use forward AD with {op.name} that does not support it because no formula was registered. "
                f"Please use register_jvp or register_autograd to add one"
            )
        return result, None
    ctx, places = Context(), [not a.kwarg_only for a in op.schema.args]
    setup = derivative if derivative.setup is not None else backward
    if setup is not None and setup.setup is not None:
        given = tuple([p for p, place in zip(primals, places) if place])
        named = {a.name: p for a, p, place in zip(op.schema.args, primals, places) if not place}
        setup.setup(ctx, given, *((named,) if setup.keyword_inputs else ()), result)
    found = derivative(ctx, *[t for t, place in zip(tangents, places) if place])
    return result, found


def _with_tangents(level, name, jvp, ctx, args, primals, tangents, result):
    if ctx.materialize:
        tangents = [
            functions["zeros_like"](p) if t is None and isinstance(p, Tensor) and p.is_floating_point() else t
            for t, p in zip(tangents, primals)
        ]
    found = jvp(ctx, *tangents)
    one = not isinstance(result, (tuple, list))
    results = (result,) if one else tuple(result)
    found = found if isinstance(found, tuple) else (found,)
    if len(found) != len(results):
        raise RuntimeError(
            f"{name}: Function's jvp returned an invalid number of forward gradients (expected {len(results)} but got "
            f"{len(found)})"
        )
    row = [_output(level, name, ctx, args, primals, r, t, i) for i, (r, t) in enumerate(zip(results, found))]
    return row[0] if one else type(result)(row)


def _output(level, name, ctx, args, primals, result, tangent, i):
    if not isinstance(result, Tensor):
        return result
    if tangent is not None and any(result is m for m in ctx.marked):
        tangent = None
    if tangent is not None and tuple(tangent.shape) != tuple(result.shape):
        raise RuntimeError(
            f"{name}: jvp returned a forward gradient of shape {list(tangent.shape)} for output {i}, which has shape "
            f"{list(result.shape)}"
        )
    for a, p in zip(args, primals):
        if result is p and type(a) is Carried and a.level is level and any(p is d for d in ctx.dirty):
            if tangent is not None:
                a.value.own(tangent).copy_(tangent)
            return a
    shown = level.joined(result, tangent, ())
    if type(shown) is Carried and shown.level is level:
        shown.value.loose = True  # it may be what the Function keeps
    return shown
