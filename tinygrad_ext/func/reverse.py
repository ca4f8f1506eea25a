"""Reverse mode as functions of functions: grad, vjp, jacrev.

The inputs are given a history of their own, the function runs, and eager autograd differentiates at the bottom of all
levels. Under vmap an input that all samples share is repeated first, so each sample has a gradient of its own.
"""

import functools

from tinygrad_ext.autograd.engine import gradients as gradients_of
from tinygrad_ext.autograd.modes import recording
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.call.levels import active_levels
from tinygrad_ext.core.call.modes import is_grad_enabled
from tinygrad_ext.core.data.tensor import Carried, Tensor
from tinygrad_ext.core.grad.reach import leads_elsewhere
from tinygrad_ext.utils._pytree import tree_flatten, tree_map, tree_unflatten

from .batch import Batch
from .nesting import bottoms, severed


class Pass:
    """One differentiation: the inputs that it made, and what of its results anybody else may differentiate.

    Attributes:
        tracked: whether somebody outside wants derivatives too.
    """

    def __init__(self):
        self.tracked = is_grad_enabled()
        self.leaves = set()  # ids of the leaves that are this pass's own
        self.kept = []
        self.outer = False  # whether an input has a history that leads out

    def fresh(self, x, levels=None):
        """An input that only this pass knows, which looks like `x`."""
        if not isinstance(x, Tensor):
            return x
        levels = active_levels() if levels is None else levels
        for i in range(len(levels) - 1, -1, -1):
            level, below = levels[i], levels[:i]
            if isinstance(level, Batch):
                return level.wrap(self.fresh(level.whole(x), below))
            if hasattr(level, "pair") and level.owns(x):
                primal, tangent = level.parts(x)
                return level.pair(self.fresh(primal, below), tangent)
        if x.requires_grad:
            self.outer = True
            made = x.view_as(x)
        else:
            made = (_copied(x, len(levels)) if x.is_inference() else x.detach()).requires_grad_()
            self.leaves.add(id(made))
        self.kept.append(made)
        return made

    def arguments(self, func, argnums, args, who):
        """(inputs of the pass, their structure, arguments with them in their places)."""
        chosen = positions(argnums, len(args))
        flat, spec = tree_flatten([args[i] for i in chosen])
        levels = active_levels()
        inputs = [self.fresh(checked_input(x, who), levels) for x in flat]
        given = list(args)
        for i, part in zip(chosen, tree_unflatten(inputs, spec)):
            given[i] = part
        return inputs, spec, given

    def leads_out(self, *values):
        """Whether derivatives of the values by something else than this pass's inputs may be wanted."""
        if not self.tracked:
            return False
        if self.outer:
            return True
        roots = []
        for v in values:
            for b in bottoms(v):
                if type(b) is not Carried:
                    if b.grad_fn is not None:
                        roots.append(b.grad_fn)
                elif b.requires_grad and any(id(leaf) not in self.leaves for leaf in b.level.leaves.values()):
                    return True  # a program that is written down: whatever needs a gradient there
        return leads_elsewhere(roots, self.leaves)

    def released(self, value):
        """A result without the history that is only this pass's."""
        if isinstance(value, Tensor) and value.requires_grad and not self.leads_out(value):
            return severed(value)
        return value

    def gradients(self, outputs, inputs, seeds=None, keep=False, create=None):
        """Gradients of outputs that may not hang on the inputs; zeros where nothing arrives.

        create: somebody else wants derivatives of them; None: it is found out.
        """
        if create is None:
            create = self.tracked and (self.leads_out(*outputs) or any(s.requires_grad for s in seeds or ()))
        got = [None] * len(inputs)
        roots = [i for i, o in enumerate(outputs) if o.requires_grad]
        if roots and inputs:
            if len(roots) < len(outputs):
                outputs, seeds = [outputs[i] for i in roots], None if seeds is None else [seeds[i] for i in roots]
            got = gradients_of(outputs, inputs, seeds, keep or create, create, True)
        return [x.new_zeros(x.shape) if g is None else g for g, x in zip(got, inputs)]


def _copied(x, below):
    """A copy that no level sees but those below a place in the stack."""
    levels = active_levels()
    return levels[below].suspend(x.clone) if below < len(levels) else x.clone()


# ---- grad ----------------------------------------------------------------------------------------------------------


@boundary
def grad(func, argnums=0, has_aux=False):
    """The gradient of a function with a single element: a function of the same arguments.

    Arguments:
        func: function of tensors, in containers too, that returns a tensor of one element.
        argnums: which argument to differentiate by: a number, or a tuple of them, for which a tuple is returned.
        has_aux: func returns (output, others), and the result is (gradients, others).

    Inside vmap there is one gradient for each sample, of what all samples share too. Raises RuntimeError when the
    output is no tensor of one element.

    Example::

        grad(torch.sin)(torch.tensor(0.0))                             # 1
        grad(grad(torch.sin))(torch.tensor(1.0))                       # -sin(1)
    """

    @boundary
    def wrapped(*args, **kwargs):
        gradients, value = _grad_and_value(func, argnums, has_aux, args, kwargs, "grad")
        return (gradients, value[1]) if has_aux else gradients

    return functools.update_wrapper(wrapped, func, updated=())


@boundary
def grad_and_value(func, argnums=0, has_aux=False):
    """The gradient of a function and its value: (gradients, value), or (gradients, (value, others)) with has_aux.

    Arguments and errors as for `grad`.
    """

    @boundary
    def wrapped(*args, **kwargs):
        return _grad_and_value(func, argnums, has_aux, args, kwargs, "grad_and_value")

    return functools.update_wrapper(wrapped, func, updated=())


def _grad_and_value(func, argnums, has_aux, args, kwargs, who):
    """(gradients, value), or (gradients, (value, others)); for "grad" the value is None."""
    task = Pass()
    with recording():
        inputs, spec, given = task.arguments(func, argnums, args, who)
        output, aux = split_aux(func(*given, **kwargs), has_aux, who)
        _check_output(output, who)
        leads_out = task.leads_out(output)
        got = tree_unflatten(task.gradients([output], inputs, create=leads_out), spec)
        value = None
        if who != "grad":
            value = output if leads_out or not output.requires_grad else severed(output)
        if has_aux:
            value = value, tree_map(task.released, aux)
    return got[0] if isinstance(argnums, int) else tuple(got), value


def split_aux(output, has_aux, who):
    """(output, others) of a function; others None without has_aux."""
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(
            f"{who}(): output of function f should be a tuple: (output, aux) if has_aux is True, got "
            f"{type(output).__name__}"
        )
    return output


def positions(argnums, count):
    """Which positional arguments to differentiate by."""
    if not isinstance(argnums, (int, tuple)) or isinstance(argnums, bool):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    chosen = (argnums,) if isinstance(argnums, int) else argnums
    if not chosen:
        raise RuntimeError("argnums must be non-empty")
    for i in chosen:
        if not isinstance(i, int):
            raise RuntimeError(f"argnum must be int, got: {type(i)}; argnums is an int or a tuple of them")
        if not -count <= i < count:
            raise RuntimeError(f"Got argnum={i}, but only {count} positional inputs")
    found = [i % count for i in chosen]
    if len(set(found)) < len(found):
        raise RuntimeError(f"argnums elements must be unique, got: {argnums}")
    return found


def checked_input(x, who):
    if not isinstance(x, Tensor):
        raise ValueError(
            f"{who}(): expected the arguments to differentiate by to hold tensors, got {type(x).__name__}. Leave it "
            "out of "
            "argnums, or make a tensor of it"
        )
    if not (x.is_floating_point() or x.is_complex()):
        raise RuntimeError(f"{who}(): only Tensors of floating point dtype can require gradients, got {x.dtype}")
    return x


def _check_output(output, who):
    if not isinstance(output, Tensor):
        raise RuntimeError(
            f"{who}(f)(*args): Expected f(*args) to return a Tensor, got type {type(output).__name__}. With "
            "has_aux=True it "
            "may return (output, others)"
        )
    if output.dim():
        raise RuntimeError(
            f"{who}(f)(*args): Expected f(*args) to return a scalar tensor, got tensor with {output.dim()} dims. "
            "Maybe you "
            "wanted to use the vjp or jacrev APIs instead?"
        )
    if output.is_complex():
        raise RuntimeError(
            f"{who}(f)(*args): Expected f(*args) to return a real tensor, got one of {output.dtype}: return its .real "
            "or its "
            ".abs()"
        )
    if not output.is_floating_point():
        raise RuntimeError(f"{who}(f)(*args): Expected f(*args) to return a floating point tensor, got {output.dtype}")


# ---- vjp -----------------------------------------------------------------------------------------------------------


@boundary
def vjp(func, *primals, has_aux=False):
    """The value of a function, and the function that multiplies vectors with its Jacobian from the left.

    Arguments:
        func: function of the primals that returns tensors, in containers too.
        primals: where it is differentiated.
        has_aux: func returns (output, others), and the result is (output, vjp_fn, others).

    Returns (output, vjp_fn). vjp_fn(*cotangents) takes tensors of the structure and shapes of the output, and gives the
    products with the Jacobians by each of the primals; it can be called any number of times, and inside vmap.

    Example::

        output, back = vjp(torch.sin, torch.tensor(0.0))
        back(torch.tensor(2.0))                                        # (2,)
    """
    task = Pass()
    with recording():
        flat, spec = tree_flatten(primals)
        inputs = [task.fresh(checked_input(x, "vjp")) for x in flat]
        output, aux = split_aux(func(*tree_unflatten(inputs, spec)), has_aux, "vjp")
        aux = tree_map(task.released, aux)
        outputs, made = tree_flatten(output)
        for o in outputs:
            if not isinstance(o, Tensor):
                raise RuntimeError(
                    f"vjp(f, *primals): Expected f(*primals) to return tensors, got unsupported type {type(o).__name__}"
                )
        shown = tree_unflatten([task.released(o) for o in outputs], made)

    @boundary
    def vjp_fn(*cotangents):
        """The products of cotangents with the Jacobians by each primal."""
        given = cotangents[0] if len(cotangents) == 1 and not isinstance(output, tuple) else cotangents
        if len(cotangents) == 1 and isinstance(cotangents[0], tuple) and isinstance(output, tuple):
            given = cotangents[0]
        seeds, built = tree_flatten(given)
        if built != made:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {built}, primal output: {made}"
            )
        for seed, o in zip(seeds, outputs):
            if tuple(seed.shape) != tuple(o.shape):
                raise RuntimeError(
                    f"vjp_fn: expected a cotangent of the output's shape {list(o.shape)}, got {list(seed.shape)}"
                )
        again = Pass()
        again.leaves, again.outer = task.leaves, task.outer
        got = again.gradients(outputs, inputs, seeds, keep=True)
        return tuple(tree_unflatten(got, spec))

    return (shown, vjp_fn, aux) if has_aux else (shown, vjp_fn)
