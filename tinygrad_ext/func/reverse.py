"""Reverse mode as functions of functions: grad, vjp, jacrev.

The inputs are given a history of their own, the function runs, and eager autograd differentiates at the bottom of all
levels. Under vmap an input that all samples share is repeated first, so each sample has a gradient of its own.
"""

import functools

from tinygrad_ext.autograd.modes import recording
from tinygrad_ext.core.call.boundary import boundary
from tinygrad_ext.core.data.tensor import Tensor
from tinygrad_ext.utils._pytree import tree_map
from tinygrad_ext.utils._trees import flattened, unflatten

from .differentiation import Differentiation, checked_input
from .nesting import severed

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
    task = Differentiation()
    with recording():
        inputs, spec, given = task.arguments(func, argnums, args, who)
        output, aux = split_aux(func(*given, **kwargs), has_aux, who)
        _check_output(output, who)
        leads_out = task.leads_out([output])
        got = unflatten(task.gradients([output], inputs, create=leads_out), spec)
        value = None
        if who != "grad":
            value = output if leads_out or not output.requires_grad else severed(output)
        if has_aux:
            value = value, tree_map(task.released, aux)
    return got[0] if isinstance(argnums, int) else tuple(got), value


def check_outputs(outputs, who):
    """Refuse what a function that is differentiated returned, where it is nothing or no tensor."""
    if not outputs or (len(outputs) == 1 and outputs[0] is None):
        raise RuntimeError(f"{who}: Expected f to be a function that has non-empty output (got output = {outputs})")
    for o in outputs:
        if not isinstance(o, Tensor):
            raise RuntimeError(
                f"{who}: expected f(*primals) to return only tensors, got unsupported type {type(o).__name__}"
            )


_CALLS = {"vjp": "vjp(f, *primals)", **dict.fromkeys(("grad", "grad_and_value"), "grad_and_value(f)(*args)")}


def split_aux(output, has_aux, who):
    """(output, others) of a function; others None without has_aux."""
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(
            f"{_CALLS.get(who, who + '()')}: output of function f should be a tuple: (output, aux) if has_aux is True, "
            f"got {type(output).__name__}"
        )
    return output


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
    task = Differentiation()
    with recording():
        flat, spec = flattened(primals)
        inputs = [task.fresh(checked_input(x, "vjp")) for x in flat]
        output, aux = split_aux(func(*unflatten(inputs, spec)), has_aux, "vjp")
        aux = tree_map(task.released, aux)
        outputs, made = flattened(output)
        check_outputs(outputs, "vjp(f, *primals)")
        shown = unflatten([task.released(o) for o in outputs], made)

    @boundary
    def vjp_fn(*cotangents):
        """The products of cotangents with the Jacobians by each primal."""
        given = cotangents[0] if len(cotangents) == 1 and not isinstance(output, tuple) else cotangents
        if len(cotangents) == 1 and isinstance(cotangents[0], tuple) and isinstance(output, tuple):
            given = cotangents[0]
        seeds, built = flattened(given)
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
        got = task.again().gradients(outputs, inputs, seeds, keep=True)
        return tuple(unflatten(got, spec))

    return (shown, vjp_fn, aux) if has_aux else (shown, vjp_fn)
