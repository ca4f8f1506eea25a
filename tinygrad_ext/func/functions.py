"""vmap over what has a rule of its own: calls of an autograd.Function, and custom ops.

A Function says by its `vmap` staticmethod what it does for a batch, or asks by `generate_vmap_rule = True` for its
forward and its backward to be run under vmap. That makes one node: a Function of the tensors behind the values, whose
context holds what the user's code kept, with the batch in front.
"""

from collections import namedtuple

from tinygrad_ext.autograd.function import Function
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.utils._trees import flattened, unflatten

from .carrying import Shared

# what a vmap rule is told: how many samples there are, and what random ops do
VmapInfo = namedtuple("VmapInfo", "batch_size randomness")


def by_rule(level, name, rule, args):
    """The outputs of a user's rule(info, in_dims, *args) -> (outputs, dimensions of the batch in them)."""
    dims, given = zip(*[_opened(level, a) for a in args]) if args else ((), ())
    returned = rule(VmapInfo(level.size, level.randomness), dims, *given)
    if not (isinstance(returned, tuple) and len(returned) == 2):
        raise RuntimeError(
            f"vmap: the rule of {name} is to have two returns, (outputs, out_dims), got {type(returned).__name__}"
        )
    return _shown(level, name, *returned)


def _opened(level, arg):
    """(in_dims, value) of an argument; of a container the same container of them."""
    if level.owns(arg):
        return 0, arg.value
    if isinstance(arg, Tensor):
        return None, arg
    leaves, spec = flattened(arg)
    owned = [level.owns(leaf) for leaf in leaves]
    if not any(owned):
        return (None if spec.is_leaf() else unflatten([None] * len(leaves), spec)), arg
    values = [leaf.value if o else leaf for leaf, o in zip(leaves, owned)]
    return unflatten([0 if o else None for o in owned], spec), unflatten(values, spec)


def _shown(level, name, outputs, out_dims):
    if not isinstance(outputs, (tuple, list)):
        return level.shown(_placed(name, outputs, out_dims))
    if not isinstance(out_dims, (tuple, list)):
        out_dims = (out_dims,) * len(outputs)
    if len(out_dims) != len(outputs):
        raise RuntimeError(
            f"vmap: the rule of {name} returned an incompatible (output, out_dims): {len(outputs)} outputs and "
            f"{len(out_dims)} out_dims"
        )
    return type(outputs)([_shown(level, name, o, d) for o, d in zip(outputs, out_dims)])


def _placed(name, output, dim):
    if dim is None or not isinstance(output, Tensor):
        return Shared(output)
    if type(dim) is not int:
        raise RuntimeError(
            f"vmap: the rule of {name} returned an incompatible (output, out_dims): out_dims has an int or None for "
            f"each output, got {dim!r}"
        )
    return output.movedim(dim, 0) if dim else output


def batched(level, operation, args):
    """The outputs of a Function for a whole batch."""
    function, name = operation.function, operation.function.__name__
    own = function.vmap is not Function.vmap
    if own and function.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {name}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
            "ambiguity."
        )
    if own:
        return by_rule(level, name, function.vmap, args)
    if not function.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {name}, but it does not have vmap support. Please override and implement the vmap "
            "staticmethod or set generate_vmap_rule=True."
        )
    if function.setup_context is Function.setup_context:
        raise RuntimeError(
            f"vmap: {name} has generate_vmap_rule=True, for which forward must not take ctx: keep what backward needs "
            "in a "
            "setup_context staticmethod."
        )
    return _generated(level, function, args)


class _Context:
    """What the user's setup_context and backward see: the real context, with values as the program sees them."""

    def __init__(self, level, real):
        object.__setattr__(self, "_level", level)
        object.__setattr__(self, "_real", real)
        object.__setattr__(self, "_kept", ())

    def save_for_backward(self, *tensors):
        object.__setattr__(self, "_kept", tensors)

    save_for_forward = save_for_backward

    @property
    def saved_tensors(self):
        real, owned = self._real.saved_tensors, self._real.owned
        return tuple([self._level.wrap(t) if o else t for t, o in zip(real, owned)])

    def __getattr__(self, name):
        return getattr(self._real, name)

    def __setattr__(self, name, value):
        level = self._level
        if level.owns(value):
            value = _Held(value.value)
        setattr(self._real, name, value)


class _Held:
    """A batched tensor that was put on ctx."""

    def __init__(self, tensor):
        self.tensor = tensor


def _generated(level, function, args):
    """One node whose halves run under vmap."""
    size, randomness, make = level.size, level.randomness, type(level)
    args, spec = flattened(args)  # what is batched inside of a container is an argument of the node
    owned_args = [level.owns(a) for a in args]
    owned_outputs = []

    def shown(inner, values, owned):
        return [inner.wrap(v) if o else v for v, o in zip(values, owned)]

    def as_called(inner, given):
        return unflatten(shown(inner, given, owned_args), spec)

    class Batched(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(*given):
            with make(size, randomness) as inner:
                outputs = function.forward(*as_called(inner, given))
                row = outputs if isinstance(outputs, tuple) else (outputs,)
                owned_outputs[:] = [inner.owns(o) for o in row]
                plain = tuple([o.value if inner.owns(o) else o for o in row])
            return plain if isinstance(outputs, tuple) else plain[0]

        @staticmethod
        def setup_context(ctx, inputs, output):
            with make(size, randomness) as inner:
                context = _Context(inner, ctx)
                row = shown(inner, output if isinstance(output, tuple) else (output,), owned_outputs)
                function.setup_context(
                    context,
                    as_called(inner, inputs),
                    tuple(row) if isinstance(output, tuple) else row[0],
                )
                ctx.owned = [inner.owns(t) for t in context._kept]
                ctx.save_for_backward(*[t.value if inner.owns(t) else t for t in context._kept])

        @staticmethod
        def backward(ctx, *grads):
            with make(size, randomness) as inner:
                held = {k: v for k, v in vars(ctx).items() if isinstance(v, _Held)}
                context = _Context(inner, ctx)
                for name, value in held.items():
                    object.__setattr__(context, name, inner.wrap(value.tensor))
                got = function.backward(context, *shown(inner, grads, owned_outputs))
                got = _of_leaves(got if isinstance(got, tuple) else (got,), spec)
                return tuple([_gradient(inner, g, owned) for g, owned in zip(got, owned_args)])

    Batched.__name__ = Batched.__qualname__ = f"Vmapped{function.__name__}"
    found = Batched.apply(*[a.value if o else a for a, o in zip(args, owned_args)])
    if not isinstance(found, tuple):
        return level.wrap(found) if owned_outputs[0] else found
    return tuple([level.wrap(f) if o else f for f, o in zip(found, owned_outputs)])


def _of_leaves(grads, spec):
    """A gradient for each leaf of the arguments: what lies in containers has none."""
    if len(grads) != spec.num_children:
        return grads  # the Function says so
    row = [[grad] if child.is_leaf() else [None] * child.num_leaves for grad, child in zip(grads, spec.children_specs)]
    return [grad for part in row for grad in part]


def _gradient(level, grad, owned):
    """A gradient of an input: of one that all samples share, the sum over them."""
    if grad is None or not isinstance(grad, Tensor):
        return grad
    if owned:
        return level.whole(grad)
    return grad.value.sum(0) if level.owns(grad) else grad
